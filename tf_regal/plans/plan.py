"""`Plan` and its file format: JSON with a schema version and a checksum."""

import dataclasses
import functools
import hashlib
import json
import os
import tempfile

import numpy as np

from tf_regal import errors
from tf_regal.devices import Topology
from tf_regal.search import OBJECTIVES

SCHEMA = 1
_KIND = "tf_regal.Plan"


@dataclasses.dataclass(frozen=True)
class Figures:
    """What a schedule is predicted to take.

    makespan_s: seconds. peak_bytes: {device: bytes that kernels ask for at most at once}, persistent memory included. transfer_bytes
    between devices. allocator_bytes: {device: bytes}, what the device's allocator is expected to report as its peak, which counts whole
    chunks and, on a CPU, only those of 256 KiB and more (see `tf_regal.plans.allocator`).
    """

    makespan_s: float
    peak_bytes: dict
    transfer_bytes: int
    allocator_bytes: dict


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Lower bounds that no plan can be below: makespan_s (seconds), peak_bytes (of the largest per-device peak)."""

    makespan_s: float
    peak_bytes: int


@dataclasses.dataclass(frozen=True)
class SearchInfo:
    """method, evaluations (calls of the simulator), seconds, policy (name or None: uniform), seed."""

    method: str
    evaluations: int
    seconds: float
    policy: str | None
    seed: int


@dataclasses.dataclass(eq=False)
class Plan:
    """Where every op runs and in which order, with what that is predicted to give.

    ops: list of str, the graph's ops; the arrays below refer to them by index.
    device: int32 [ops], index into topology.devices. start_order: list of op indices, in the order of their planned starts.
    edges: int32 [k, 2], control edges to add (before, after).
    start_ns, end_ns: int64 [ops], the predicted schedule. transfers: list of (op that made the tensor, source, destination, start ns, end ns, bytes).
    memory: per device list of (ns, bytes). persistent_bytes: int64 [ops], bytes that live on the op's device all the time (variables, constants, arguments).
    predicted, default: `Figures` of the plan and of the default plan. bounds: `Bounds`.
    fingerprint: of the graph's content. pays: whether it beats the default plan by the margin. notes: what was assumed.
    """

    ops: list
    device: np.ndarray
    start_order: list
    edges: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    transfers: list
    memory: list
    persistent_bytes: np.ndarray
    predicted: Figures
    default: Figures
    bounds: Bounds
    objective: str
    order_mode: str
    topology: Topology
    fingerprint: str
    search: SearchInfo
    pays: bool
    feasible: bool
    notes: list

    @functools.cached_property
    def placement(self):
        """{op name: device name}."""
        names = self.topology.names
        return {op: names[q] for op, q in zip(self.ops, self.device.tolist(), strict=True)}

    @functools.cached_property
    def order(self):
        """{device name: op names in the order of their planned starts}."""
        names = self.topology.names
        result = {name: [] for name in names}
        for op in self.start_order:
            result[names[self.device[op]]].append(self.ops[op])
        return result

    @property
    def control_edges(self):
        """List of (op name that goes first, op name that waits)."""
        return [(self.ops[a], self.ops[b]) for a, b in self.edges.tolist()]

    def renamed(self, names):
        """The same plan for a graph of the same content with other op names (list of str in the same op order)."""
        if len(names) != len(self.ops):
            raise errors.PlanMismatchError(f"the plan is for {len(self.ops)} ops; the graph has {len(names)}. Plan this graph again.")
        return dataclasses.replace(self, ops=list(names))

    def to_json(self):
        data = {"schema": SCHEMA, "kind": _KIND}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value = value.tolist()
            elif isinstance(value, Topology):
                value = value.to_json()
            elif dataclasses.is_dataclass(value):
                value = dataclasses.asdict(value)
            data[field.name] = value
        return data

    @classmethod
    def from_json(cls, data):
        """Raises PlanFileError where the dict is not a plan of this schema."""
        if not isinstance(data, dict) or data.get("kind") != _KIND:
            raise errors.PlanFileError(f"the JSON is not a tf-regal plan (no 'kind': {_KIND!r}). Make one with `tf-regal plan`.")
        if data.get("schema") != SCHEMA:
            raise errors.PlanFileError(f"the plan has schema {data.get('schema')!r}; this version reads {SCHEMA}. Plan again.")
        try:
            n = len(data["ops"])
            plan = cls(
                ops=[str(x) for x in data["ops"]],
                device=np.array(data["device"], np.int32),
                start_order=[int(x) for x in data["start_order"]],
                edges=np.array(data["edges"], np.int32).reshape(-1, 2),
                start_ns=np.array(data["start_ns"], np.int64),
                end_ns=np.array(data["end_ns"], np.int64),
                transfers=[tuple(int(x) for x in row) for row in data["transfers"]],
                memory=[[(int(t), int(b)) for t, b in steps] for steps in data["memory"]],
                persistent_bytes=np.array(data["persistent_bytes"], np.int64),
                predicted=Figures(**data["predicted"]),
                default=Figures(**data["default"]),
                bounds=Bounds(**data["bounds"]),
                objective=str(data["objective"]),
                order_mode=str(data["order_mode"]),
                topology=Topology.from_json(data["topology"]),
                fingerprint=str(data["fingerprint"]),
                search=SearchInfo(**data["search"]),
                pays=bool(data["pays"]),
                feasible=bool(data["feasible"]),
                notes=[str(x) for x in data["notes"]],
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise errors.PlanFileError(f"the plan is damaged: {error!r}. Plan again.") from error
        if not (len(plan.device) == len(plan.start_order) == len(plan.start_ns) == len(plan.end_ns) == len(plan.persistent_bytes) == n):
            raise errors.PlanFileError("the plan is damaged: its columns have different lengths. Plan again.")
        if n and (plan.device.min() < 0 or plan.device.max() >= plan.topology.n_devices or sorted(plan.start_order) != list(range(n))):
            raise errors.PlanFileError("the plan is damaged: it names devices or ops that it does not have. Plan again.")
        if plan.objective not in OBJECTIVES or len(set(plan.ops)) != n or len(plan.memory) != plan.topology.n_devices:
            raise errors.PlanFileError("the plan is damaged: its objective, ops or memory curves do not fit. Plan again.")
        if any(len(t) != 6 or not (0 <= t[0] < n and max(t[1:3]) < plan.topology.n_devices and min(t) >= 0) for t in plan.transfers):
            raise errors.PlanFileError("the plan is damaged: a transfer names an op or device that it does not have. Plan again.")
        if plan.edges.size and (plan.edges.min() < 0 or plan.edges.max() >= n):
            raise errors.PlanFileError("the plan is damaged: an edge names an op that it does not have. Plan again.")
        return plan

    def save(self, path):
        """Writes the plan as JSON, atomically."""
        write_checked_json(path, self.to_json())

    def to_chrome_trace(self, path):
        """Writes the predicted schedule in Chrome's trace format (opens in Perfetto and chrome://tracing)."""
        from tf_regal.plans import chrome_trace

        write_atomically(path, json.dumps(chrome_trace.events(self)))


def load_plan(path):
    """Reads a plan that `Plan.save` or `tf-regal plan` wrote. Raises PlanFileError where it is damaged or no plan."""
    return Plan.from_json(read_checked_json(path))


def write_atomically(path, text):
    """Writes to a temporary file beside `path` and renames it: readers see the old file or the whole new one."""
    path = os.fspath(path)
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise errors.InvalidArgumentError(f"path={path!r}: the directory {directory!r} does not exist. Create it first.")
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=os.path.basename(path) + ".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_checked_json(path, data):
    """Writes {"sha256": …, "data": data}."""
    text = json.dumps(data, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    write_atomically(path, f'{{"sha256":"{digest}","data":{text}}}\n')


def read_checked_json(path):
    """What `write_checked_json` wrote. Raises PlanFileError where it is cut short, changed, or something else."""
    try:
        with open(path, encoding="utf-8") as file:
            outer = json.load(file)
    except FileNotFoundError as error:
        raise errors.PlanFileError(f"path={os.fspath(path)!r}: there is no such file. Make one with `tf-regal plan MODEL -o {os.fspath(path)}`.") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise errors.PlanFileError(f"path={os.fspath(path)!r} cannot be read as JSON ({error}): the file is truncated or no plan. Plan again.") from error
    if not isinstance(outer, dict) or "sha256" not in outer or "data" not in outer:
        raise errors.PlanFileError(f"path={os.fspath(path)!r} is JSON but no tf-regal file (it has no 'sha256' and 'data'). Make one with `tf-regal plan`.")
    text = json.dumps(outer["data"], separators=(",", ":"))
    if hashlib.sha256(text.encode()).hexdigest() != outer["sha256"]:
        raise errors.PlanFileError(f"path={os.fspath(path)!r}: the checksum does not fit the content: the file was changed or damaged. Plan again.")
    return outer["data"]

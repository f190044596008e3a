"""`Plan` and its file format: JSON with a schema version and a checksum."""

import dataclasses
import functools
import json

import numpy as np

from tf_regal import errors, storage
from tf_regal.devices import Topology
from tf_regal.plans import columns
from tf_regal.plans import details as details_lib
from tf_regal.plans import variables as variables_lib
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
    variables: where variables (and optimizer slots) are to live, in the order of their creation (`tf_regal.plans.variables.entry`); None: where they are.
    details: what the plan is looked at with (`tf_regal.plans.details`); None in plans of older versions.
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
    variables: list | None = None
    details: details_lib.Details | None = None

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

    def scope(self):
        """A context manager: variables that are created inside (Keras 3, tf_keras, tf.Variable) are put where the plan wants them.

        They are told apart by name, shape and dtype, and among equals by the order of creation, so the model and its optimizer must be made as they were for
        the planning. Variables that the plan does not know go where they would go without it. Needs a plan made with move_variables=True
        (InvalidArgumentError otherwise).
        """
        return variables_lib.scope(self)

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
            elif isinstance(value, (Topology, details_lib.Details)):
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
            plan = cls(
                ops=_texts("ops", data["ops"]),
                device=_indices("device", data["device"]),
                start_order=columns.whole("start_order", data["start_order"]).tolist(),
                edges=_indices("edges", data["edges"], 2),
                start_ns=columns.whole("start_ns", data["start_ns"]),
                end_ns=columns.whole("end_ns", data["end_ns"]),
                transfers=columns.rows("transfers", data["transfers"], 6),
                memory=[columns.rows("memory", steps, 2) for steps in data["memory"]],
                persistent_bytes=columns.whole("persistent_bytes", data["persistent_bytes"]),
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
                notes=_texts("notes", data["notes"]),
                variables=None if data.get("variables") is None else [variables_lib.entry(**item) for item in data["variables"]],
            )
            _check(plan)
            if data.get("details") is not None:
                plan.details = details_lib.Details.from_json(data["details"], plan)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            text = str(error) if type(error) is ValueError else repr(error)
            raise errors.PlanFileError(f"the plan is damaged: {text}. Plan again.") from error
        return plan

    def save(self, path):
        """Writes the plan as JSON, atomically."""
        storage.write_checked_json(path, self.to_json())

    def to_chrome_trace(self, path):
        """Writes the predicted schedule in Chrome's trace format (opens in Perfetto and chrome://tracing)."""
        from tf_regal.plans import chrome_trace

        storage.write_atomically(path, json.dumps(chrome_trace.events(self)))


def _indices(name, values, count=None):
    array = columns.whole(name, values, count)
    if array.size and (array.min() < 0 or array.max() >= 1 << 31):
        raise ValueError(f"{name}: it names devices or ops that it does not have")
    return array.astype(np.int32)


def _texts(name, values):
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of texts")
    return list(values)


def _check(plan):
    """ValueError where the parts of a plan that was read do not fit together."""
    n, d = len(plan.ops), plan.topology.n_devices
    if not (len(plan.device) == len(plan.start_order) == len(plan.start_ns) == len(plan.end_ns) == len(plan.persistent_bytes) == n):
        raise ValueError("its columns have different lengths")
    if n and (plan.device.min() < 0 or plan.device.max() >= d or sorted(plan.start_order) != list(range(n))):
        raise ValueError("it names devices or ops that it does not have")
    if n and (plan.start_ns.min() < 0 or np.any(plan.end_ns < plan.start_ns)):
        raise ValueError("an op starts before 0 or ends before it starts")
    if plan.objective not in OBJECTIVES or len(set(plan.ops)) != n or len(plan.memory) != d:
        raise ValueError("its objective, ops or memory curves do not fit")
    if any(not (0 <= t[0] < n and max(t[1:3]) < d and min(t) >= 0) for t in plan.transfers):
        raise ValueError("a transfer names an op or device that it does not have")
    if plan.edges.size and (plan.edges.min() < 0 or plan.edges.max() >= n):
        raise ValueError("an edge names an op that it does not have")
    numbers = {f"bounds.{name}": getattr(plan.bounds, name) for name in ("makespan_s", "peak_bytes")}
    for label, figures in (("predicted", plan.predicted), ("default", plan.default)):
        numbers |= {f"{label}.{name}": getattr(figures, name) for name in ("makespan_s", "transfer_bytes")}
        for name in ("peak_bytes", "allocator_bytes"):
            by_device = getattr(figures, name)
            if set(by_device) != set(plan.topology.names):
                raise ValueError(f"{label}.{name} does not name the plan's devices")
            numbers |= {f"{label}.{name}[{device!r}]": value for device, value in by_device.items()}
    numbers |= {f"search.{name}": getattr(plan.search, name) for name in ("evaluations", "seconds", "seed")}
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1 << 63:
            raise ValueError(f"{name} is {value!r}; expected a number from 0 to 2^63")
    if not isinstance(plan.search.method, str) or not isinstance(plan.search.policy, (str, type(None))):
        raise ValueError("search.method and search.policy must be texts")


def load_plan(path):
    """Reads a plan that `Plan.save` or `tf-regal plan` wrote. Raises PlanFileError where it is damaged or no plan."""
    return Plan.from_json(storage.read_checked_json(path))

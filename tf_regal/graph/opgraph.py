"""`OpGraph`: the graph that is planned, as columns. Knows nothing of TensorFlow."""

import dataclasses
import json
import lzma
import os

import numpy as np

from tf_regal import errors

SCHEMA = 1
_ARRAYS = {
    "group": np.int32, "persistent": np.int64, "orderable": bool, "producer": np.int32, "size": np.int64,
    "view": np.int32, "lifetime": np.uint8, "reuse_ptr": np.int32, "reuse_idx": np.int32, "input_ptr": np.int32,
    "input_idx": np.int32, "control_ptr": np.int32, "control_idx": np.int32,
}
_LISTS = ("names", "types", "devices", "kinds", "members", "bindings", "notes")


@dataclasses.dataclass(eq=False)
class OpGraph:
    """Ops, tensors and edges of what will run.

    Per op (`n`):
        names: list of str, unique.
        types: list of str, TensorFlow's op types; "Region" for a contracted control-flow region.
        devices: list of str; the device where the op must stay, "" where it is free.
        kinds: list of list of str; device kinds that have a kernel for it ("CPU", "GPU", "TPU").
        members: list of list of str; graph nodes that the op stands for (itself, or the nodes of a region).
        group: int32 [n]; ops of one group run on one device.
        persistent: int64 [n]; bytes that live on its device during the whole step.
        orderable: bool [n]; whether control edges may be added from and to the op.
    Per tensor (`m`): producer int32, size int64 (bytes), view int32, lifetime uint8, and `reuse` as CSR; see docs/simulator.md.
    Edges: `input` (op → tensors) and `control` (op → ops) as CSR.
    durations: {device model: int64 [n]}, ns; scratch: {device model: int64 [n]}, bytes. What a cost model gave, or the file.
    fingerprint: hex digest of the content (op types, attributes, edges, bound shapes), not of the names.
    bindings: list of str; how each unknown dimension was bound. notes: list of str; what else the reader had to assume.
    outputs: list of str, what each op gives, "float32[32, 10]", several apart by "; "; empty where nobody knows. For people only.
    """

    names: list
    types: list
    devices: list
    kinds: list
    members: list
    group: np.ndarray
    persistent: np.ndarray
    orderable: np.ndarray
    producer: np.ndarray
    size: np.ndarray
    view: np.ndarray
    lifetime: np.ndarray
    reuse_ptr: np.ndarray
    reuse_idx: np.ndarray
    input_ptr: np.ndarray
    input_idx: np.ndarray
    control_ptr: np.ndarray
    control_idx: np.ndarray
    fingerprint: str
    durations: dict = dataclasses.field(default_factory=dict)
    scratch: dict = dataclasses.field(default_factory=dict)
    bindings: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        for name, dtype in _ARRAYS.items():
            setattr(self, name, _column(name, getattr(self, name), dtype))
        n = len(self.names)
        for name in ("types", "devices", "kinds", "members", "group", "persistent", "orderable"):
            if len(getattr(self, name)) != n:
                raise errors.GraphError(f"graph: {name} has {len(getattr(self, name))} entries for {n} ops")
        _check(self)

    @property
    def n_ops(self):
        return len(self.names)

    @property
    def n_tensors(self):
        return len(self.producer)

    def inputs(self, op):
        return self.input_idx[self.input_ptr[op]:self.input_ptr[op + 1]]

    def control_inputs(self, op):
        return self.control_idx[self.control_ptr[op]:self.control_ptr[op + 1]]

    def to_json(self):
        """A dict of plain values; `from_json` reads it back."""
        data = {"schema": SCHEMA, "kind": "tf_regal.OpGraph", "fingerprint": self.fingerprint}
        data.update({name: getattr(self, name) for name in _LISTS})
        data.update({name: getattr(self, name).tolist() for name in _ARRAYS})
        if self.outputs:
            data["outputs"] = self.outputs
        data["durations"] = {model: np.asarray(v).tolist() for model, v in self.durations.items()}
        data["scratch"] = {model: np.asarray(v).tolist() for model, v in self.scratch.items()}
        return data

    @classmethod
    def from_json(cls, data):
        """Raises GraphError where the dict is not an OpGraph of this schema."""
        if not isinstance(data, dict) or data.get("kind") != "tf_regal.OpGraph":
            raise errors.GraphError("graph: the JSON is not an exported OpGraph (no 'kind': 'tf_regal.OpGraph')")
        if data.get("schema") != SCHEMA:
            raise errors.GraphError(f"graph: schema {data.get('schema')!r} is not supported; expected {SCHEMA}. Export the graph again.")
        try:
            return cls(
                fingerprint=str(data["fingerprint"]),
                outputs=list(data.get("outputs", ())),
                durations={k: _column(f"durations[{k!r}]", v, np.int64) for k, v in data["durations"].items()},
                scratch={k: _column(f"scratch[{k!r}]", v, np.int64) for k, v in data["scratch"].items()},
                **{name: list(data[name]) for name in _LISTS},
                **{name: data[name] for name in _ARRAYS},
            )
        except errors.GraphError as error:
            raise errors.GraphError(f"graph: the exported OpGraph is damaged: {str(error).removeprefix('graph: ')}. Export it again.") from error
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise errors.GraphError(f"graph: the exported OpGraph is damaged: {error!r}. Export it again.") from error

    def save(self, path):
        """Writes the JSON to `path`; compressed where that ends in .xz. Equal graphs give equal bytes."""
        text = json.dumps(self.to_json(), separators=(",", ":"))
        if os.fspath(path).endswith(".xz"):
            with lzma.open(path, "wb", preset=9) as file:
                file.write(text.encode())
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    @classmethod
    def load(cls, path):
        """The OpGraph that `save` wrote to `path` (.json or .json.xz). Raises GraphError where it is not one, OSError where it cannot be read."""
        try:
            if os.fspath(path).endswith(".xz"):
                with lzma.open(path, "rt", encoding="utf-8") as file:
                    data = json.load(file)
            else:
                with open(path, encoding="utf-8") as file:
                    data = json.load(file)
        except (lzma.LZMAError, EOFError) as error:
            raise errors.GraphError(f"path={os.fspath(path)!r} is not xz data: {error}. Give an OpGraph that OpGraph.save wrote (.json, .json.xz).") from error
        except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested too deeply
            raise errors.GraphError(f"path={os.fspath(path)!r} is not JSON: {error}. Give an OpGraph that OpGraph.save wrote (.json or .json.xz).") from error
        return cls.from_json(data)


def _column(name, values, dtype):
    """`values` as a contiguous array of one axis; GraphError where a value does not fit the dtype: nothing is cut or rounded silently."""
    try:
        array = np.asarray(values)
    except ValueError as error:  # nested lists of different lengths
        raise errors.GraphError(f"graph: {name} is not one list of numbers: {error}") from error
    if array.ndim != 1 or (array.size and array.dtype.kind not in "biuf"):
        raise errors.GraphError(f"graph: {name} has {array.ndim} axes and dtype {array.dtype}; expected one axis of numbers")
    if array.dtype.kind != np.dtype(dtype).kind and array.size and dtype is not bool:
        limits = np.iinfo(dtype)
        # The largest int64 is not a float64; everything below 2^63 is in range.
        wrong = ~((array >= limits.min) & (array < float(limits.max) + 1) & (array == np.floor(array)))
    elif array.dtype.itemsize > np.dtype(dtype).itemsize and dtype is not bool:
        limits = np.iinfo(dtype)
        wrong = (array < limits.min) | (array > limits.max)
    else:
        wrong = np.zeros(0, bool)
    if wrong.any():
        at = int(wrong.argmax())
        raise errors.GraphError(f"graph: {name}[{at}] is {array[at].item()!r}; expected a whole number that fits {np.dtype(dtype)}")
    return np.ascontiguousarray(array, dtype=dtype)


def _check(graph):
    """GraphError where names, ranges or lengths are wrong. Cycles are left to the core, and so are sums that do not fit int64."""
    n, m = graph.n_ops, graph.n_tensors
    if len(graph.outputs) not in (0, n):
        raise errors.GraphError(f"graph: outputs has {len(graph.outputs)} entries for {n} ops")
    for name in ("names", "types", "devices", "outputs"):
        wrong = [x for x in getattr(graph, name) if not isinstance(x, str)]
        if wrong:
            raise errors.GraphError(f"graph: {name} holds {wrong[0]!r}; expected str")
    for name in ("kinds", "members"):
        wrong = [x for x in getattr(graph, name) if not isinstance(x, (list, tuple)) or not all(isinstance(y, str) for y in x)]
        if wrong:
            raise errors.GraphError(f"graph: {name} holds {wrong[0]!r}; expected lists of str")
    if len(set(graph.names)) != n:
        twice = next(name for i, name in enumerate(graph.names) if name in graph.names[:i])
        raise errors.GraphError(f"graph: two ops are called {twice!r}; every op needs a name of its own")
    for name in ("size", "view", "lifetime"):
        if len(getattr(graph, name)) != m:
            raise errors.GraphError(f"graph: {name} has {len(getattr(graph, name))} entries for {m} tensors")
    for name, rows, columns in (("reuse", m, m), ("input", n, m), ("control", n, n)):
        ptr, idx = getattr(graph, f"{name}_ptr"), getattr(graph, f"{name}_idx")
        if len(ptr) != rows + 1 or ptr[0] != 0 or ptr[-1] != len(idx) or np.any(np.diff(ptr.astype(np.int64)) < 0):
            raise errors.GraphError(f"graph: {name}_ptr must have {rows + 1} entries that rise from 0 to the length of {name}_idx, {len(idx)}")
        _in_range(f"{name}_idx", idx, 0, columns)
    _in_range("producer", graph.producer, 0, n)
    _in_range("view", graph.view, -1, m)
    _in_range("group", graph.group, 0, n)
    if n and len(np.unique(graph.group)) != graph.group.max() + 1:
        raise errors.GraphError(f"graph: group leaves numbers below its largest, {graph.group.max()}, out; number the groups from 0 without gaps")
    _in_range("lifetime", graph.lifetime, 0, 3)
    _in_range("persistent", graph.persistent, 0)
    _in_range("size", graph.size, 0)
    for name in ("durations", "scratch"):
        for model, values in getattr(graph, name).items():
            label = f"{name}[{model!r}]"
            if len(_column(label, values, np.int64)) != n:
                raise errors.GraphError(f"graph: {label} has {len(values)} entries for {n} ops")
            _in_range(label, np.asarray(values), 0)


def _in_range(name, values, low, high=None):
    wrong = values < low if high is None else (values < low) | (values >= high)
    if np.any(wrong):
        at = int(np.argmax(wrong))
        valid = f"{low} or more" if high is None else f"{low} to {high - 1}"
        raise errors.GraphError(f"graph: {name}[{at}] is {values[at].item()!r}; expected {valid}")

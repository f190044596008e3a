"""`OpGraph`: the graph that is planned, as columns. Knows nothing of TensorFlow."""

import dataclasses
import json

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

    def __post_init__(self):
        for name, dtype in _ARRAYS.items():
            setattr(self, name, np.ascontiguousarray(getattr(self, name), dtype=dtype))
        n = len(self.names)
        for name in ("types", "devices", "kinds", "members", "group", "persistent", "orderable"):
            if len(getattr(self, name)) != n:
                raise errors.GraphError(f"graph: {name} has {len(getattr(self, name))} entries for {n} ops")

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
                durations={k: np.asarray(v, np.int64) for k, v in data["durations"].items()},
                scratch={k: np.asarray(v, np.int64) for k, v in data["scratch"].items()},
                **{name: list(data[name]) for name in _LISTS},
                **{name: np.asarray(data[name]) for name in _ARRAYS},
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise errors.GraphError(f"graph: the exported OpGraph is damaged: {error!r}. Export it again.") from error

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.to_json(), file)

"""The planning problem as flat arrays: what the core solves. Knows nothing of TensorFlow."""

import dataclasses
import re

import numpy as np

from tf_regal import errors

UNLIMITED = np.iinfo(np.int64).max
"""Capacity of a device whose memory is not limited, in bytes."""

LIFETIME_NORMAL, LIFETIME_OUTPUT, LIFETIME_PERSISTENT = 0, 1, 2

_FIELDS = {
    "duration": np.int64, "scratch": np.int64, "persistent": np.int64, "group": np.int32,
    "producer": np.int32, "size": np.int64, "view": np.int32, "lifetime": np.uint8,
    "reuse_ptr": np.int32, "reuse_idx": np.int32, "input_ptr": np.int32, "input_idx": np.int32,
    "control_ptr": np.int32, "control_idx": np.int32, "lanes": np.int32, "capacity": np.int64,
    "latency": np.int64, "ns_per_byte": np.float64,
}


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Ops, tensors, edges and devices as arrays.

    The arrays, their shapes, units and meaning are the table in docs/simulator.md: `n` ops, `m` tensors, `d` devices;
    nanoseconds and bytes as int64. Arrays are converted to the right dtype and made contiguous; the values are
    checked when the native core takes the problem (`tf_regal.ops.Simulator`).
    """

    duration: np.ndarray
    scratch: np.ndarray
    persistent: np.ndarray
    group: np.ndarray
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
    lanes: np.ndarray
    capacity: np.ndarray
    latency: np.ndarray
    ns_per_byte: np.ndarray
    blocking_transfers: bool = False

    def __post_init__(self):
        for name, dtype in _FIELDS.items():
            value = np.ascontiguousarray(getattr(self, name))
            if value.dtype != dtype:
                if value.size and value.dtype.kind not in "iufb":
                    raise errors.InvalidProblemError(f"{name} has dtype {value.dtype}; expected numbers that fit {np.dtype(dtype)}")
                _check_fits(name, value, dtype)
                value = value.astype(dtype) if value.size else np.empty(value.shape, dtype)
            object.__setattr__(self, name, value)

    @property
    def n_ops(self):
        return self.duration.shape[0]

    @property
    def n_tensors(self):
        return self.producer.shape[0]

    @property
    def n_devices(self):
        return self.lanes.shape[0]

    @property
    def n_groups(self):
        return int(self.group.max()) + 1 if self.group.size else 0

    @property
    def allowed(self):
        """Which groups may run where: bool [groups, devices]."""
        allowed = np.ones((self.n_groups, self.n_devices), bool)
        np.logical_and.at(allowed, self.group, self.duration >= 0)
        return allowed

    def inputs(self, op):
        """Tensor indices that the op takes, int32 [inputs]."""
        return self.input_idx[self.input_ptr[op]:self.input_ptr[op + 1]]

    def control_inputs(self, op):
        """Op indices that must have ended before the op, int32 [predecessors]."""
        return self.control_idx[self.control_ptr[op]:self.control_ptr[op + 1]]

    def replace(self, **changes):
        """A copy with some arrays changed."""
        return dataclasses.replace(self, **changes)


def _check_fits(name, values, dtype):
    """InvalidProblemError where the conversion to a type of whole numbers would change a value."""
    if np.dtype(dtype).kind == "f" or values.dtype.kind == "b" or values.size == 0:
        return
    limits = np.iinfo(dtype)
    # As float64 for floats, where 2^63 − 1 rounds up to 2^63: everything below that is in range.
    high = values < float(limits.max) + 1 if values.dtype.kind == "f" else values <= limits.max
    wrong = ~(high & (values >= limits.min) & (values == np.floor(values)))
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise errors.InvalidProblemError(
            f"{name}[{', '.join(map(str, at))}] is {values[at].item()!r}; expected a whole number that fits {np.dtype(dtype)}"
        )


def csr(lists):
    """Lists of ints → (ptr int32 [len + 1], idx int32 [sum of lengths])."""
    ptr = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(x) for x in lists], out=ptr[1:])
    idx = np.fromiter((i for x in lists for i in x), np.int32, count=int(ptr[-1]))
    return ptr, idx


def build(graph, topology):
    """OpGraph × Topology → (Problem, notes).

    Args:
        graph: an `OpGraph` with durations (ns) for every device model of the topology, from a cost model or a file.
        topology: a `Topology`.

    Returns:
        the Problem, and a list of str: what had to be assumed (ops without a kernel or a device in this topology).

    Raises:
        GraphError: the graph has no costs for a device of the topology.
    """
    n, d = graph.n_ops, topology.n_devices
    duration = np.empty((n, d), np.int64)
    scratch = np.zeros((n, d), np.int64)
    for q, spec in enumerate(topology.devices):
        model = spec.model if spec.model in graph.durations else "*"  # "*": costs of a file that hold for every device
        if model not in graph.durations:
            raise errors.GraphError(
                f"graph: no costs for device {spec.model!r}; it has costs for {sorted(graph.durations) or 'none'}. Capture it again for this topology."
            )
        duration[:, q] = graph.durations[model]
        if model in graph.scratch:
            scratch[:, q] = graph.scratch[model]
    allowed, notes = _allowed_devices(graph, topology)
    duration[~allowed] = -1
    problem = Problem(
        duration=duration, scratch=scratch, persistent=graph.persistent, group=graph.group, producer=graph.producer, size=graph.size,
        view=graph.view, lifetime=graph.lifetime, reuse_ptr=graph.reuse_ptr, reuse_idx=graph.reuse_idx, input_ptr=graph.input_ptr,
        input_idx=graph.input_idx, control_ptr=graph.control_ptr, control_idx=graph.control_idx,
        blocking_transfers=topology.blocking_transfers, **topology.arrays(),
    )
    return problem, notes


def _allowed_devices(graph, topology):
    """bool [ops, devices] and notes: kernels, the user's devices, and colocation, with a way out where they contradict each other."""
    n, d = graph.n_ops, topology.n_devices
    names = [parse_device(name) for name in topology.names]
    kinds = [spec.kind for spec in topology.devices]
    by_kinds, by_name = {}, {}
    kernel = np.empty((n, d), bool)
    wanted = np.ones((n, d), bool)
    n_elsewhere = 0
    for op in range(n):
        key = tuple(graph.kinds[op])
        if key not in by_kinds:
            by_kinds[key] = np.array([kind in key for kind in kinds])
        kernel[op] = by_kinds[key]
        device = graph.devices[op]
        if device:
            if device not in by_name:
                asked = parse_device(device)
                by_name[device] = np.array([matches(asked, name) for name in names])
            if by_name[device].any():
                wanted[op] = by_name[device]
            else:
                n_elsewhere += 1
                wanted[op] = np.arange(d) == 0
    allowed = kernel & wanted
    by_group = np.ones((graph.group.max() + 1 if n else 0, d), bool)
    np.logical_and.at(by_group, graph.group, allowed)
    notes = []
    # Kernels come second where nothing fits both: TensorFlow would place such an op on the host of the device (soft placement).
    stuck = np.flatnonzero(~by_group.any(axis=1))
    if stuck.size:
        again = np.ones_like(by_group)
        np.logical_and.at(again, graph.group, wanted)
        again[~again.any(axis=1), 0] = True
        by_group[stuck] = again[stuck]
        conflicting = int(np.isin(graph.group, stuck).sum())
        notes.append(f"{conflicting} ops have no kernel on a device of {topology.name} that they may use; they count as run by the device's host")
    if n_elsewhere:
        notes.append(f"{n_elsewhere} ops must stay on devices that {topology.name} does not have; they are kept on {topology.names[0]}")
    return by_group[graph.group], notes


_DEVICE_PART = re.compile(r"/(job|replica|task|device):([^/]+)")


def parse_device(name):
    """A TensorFlow device name, full or partial, as a dict of job, replica, task, kind and index; what is not said is left out."""
    parts = {}
    text = name if name.startswith("/") else f"/device:{name}"
    text = re.sub(r"/(cpu|gpu|tpu):", lambda m: f"/device:{m.group(1).upper()}:", text, flags=re.IGNORECASE)
    for key, value in _DEVICE_PART.findall(text):
        if key == "device":
            kind, _, index = value.partition(":")
            parts["kind"] = kind.upper()
            if index not in ("", "*"):
                parts["index"] = index
        else:
            parts[key] = value
    return parts


def matches(asked, name):
    """Whether a full device (`parse_device`) is one that the partial device `asked` means."""
    return all(name.get(key) == value for key, value in asked.items())

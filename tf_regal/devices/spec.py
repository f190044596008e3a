"""`DeviceSpec`, one device, and `Link`, the directed way from one device to another."""

import dataclasses
import math
import re

from tf_regal.devices import checks
from tf_regal.errors import TopologyError

KINDS = ("CPU", "GPU", "TPU")

_NAME = re.compile(
    r"/job:(?P<job>[A-Za-z][\w.-]*)/replica:(?P<replica>\d+)/task:(?P<task>\d+)"
    r"/device:(?P<kind>[A-Za-z_]+):(?P<index>\d+)"
)


def device_name(kind, index, job_and_task="/job:localhost/replica:0/task:0"):
    """TensorFlow's full name of a device, "/job:localhost/replica:0/task:0/device:GPU:0"."""
    return f"{job_and_task}/device:{kind}:{index}"


def process_of(name):
    """The job and task of a full device name: "/job:worker/replica:0/task:1"."""
    return name.partition("/device:")[0]


@dataclasses.dataclass(frozen=True)
class DeviceSpec:
    """One device, as the costs and the simulator see it.

    Attributes:
        name: TensorFlow's full device name, "/job:localhost/replica:0/task:0/device:GPU:0".
        model: what it is, "A100-40GB"; free text, a name of the catalogue when the figures come from there. Costs are
            kept per model: devices of a topology with the same model must be equally fast.
        kind: "GPU", "TPU" or "CPU"; the device type of `name`.
        flops: peak FLOP/s, float, of the whole device (all lanes together) for a float32 matrix product as TensorFlow
            runs it by default. Ampere and later GPUs: TF32 tensor cores, without sparsity. Older GPUs: float32 units.
            TPUs: the matrix unit, which multiplies float32 in bfloat16. CPUs: cores x frequency x SIMD width x 2 FMAs.
        bandwidth: bytes/s, float, between the device and its memory, for the whole device.
        lanes: ops that it runs at once. 1 for a GPU or TPU (one stream), the inter-op parallelism for a CPU.
        memory: bytes that tensors may take, or None: unlimited.
        launch_overhead_ns: ns that every op costs before its kernel does anything.

    Raises:
        TopologyError: a value is not valid; the message names the argument.
    """

    name: str
    model: str
    kind: str
    flops: float
    bandwidth: float
    lanes: int = 1
    memory: int | None = None
    launch_overhead_ns: int = 0

    def __post_init__(self):
        if self.kind not in KINDS:
            raise TopologyError(f"kind={checks.shown(self.kind)} is not a device kind: give one of {', '.join(KINDS)}")
        _check_name(self.name, self.kind)
        checks.text("model", self.model)
        put = object.__setattr__  # the dataclass is frozen
        put(self, "flops", checks.positive("flops", self.flops, "FLOP/s"))
        put(self, "bandwidth", checks.positive("bandwidth", self.bandwidth, "bytes/s"))
        put(self, "lanes", checks.whole("lanes", self.lanes, 1, "the number of ops that run at once"))
        if self.memory is not None:
            put(self, "memory", checks.whole("memory", self.memory, 1, "bytes (None: unlimited)"))
        put(self, "launch_overhead_ns", checks.whole("launch_overhead_ns", self.launch_overhead_ns, 0, "ns"))
        # Lanes are int32 in the arrays of `Problem`.
        if self.lanes > 2**31 - 1:
            raise TopologyError(f"lanes={self.lanes!r} is out of range: give at most 2**31 - 1")


def _check_name(name, kind):
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise TopologyError(
            f"name={checks.shown(name)} is not a full TensorFlow device name: write it like {device_name(kind, 0)!r}"
        )
    if match["kind"] != kind:
        raise TopologyError(
            f"name={name!r} is of type {match['kind']!r} and kind={kind!r}: make them equal, "
            f"for instance name={device_name(kind, int(match['index']))!r}"
        )


@dataclasses.dataclass(frozen=True)
class Link:
    """The directed way from one device to another; a transfer takes latency_ns + bytes / bandwidth.

    Attributes:
        latency_ns: ns before the first byte arrives, int.
        bandwidth: bytes/s, float; math.inf: bytes are free.

    Raises:
        TopologyError: a value is not valid; the message names the argument.
    """

    latency_ns: int
    bandwidth: float

    def __post_init__(self):
        object.__setattr__(self, "latency_ns", checks.whole("latency_ns", self.latency_ns, 0, "ns"))
        object.__setattr__(self, "bandwidth", checks.positive("bandwidth", self.bandwidth, "bytes/s", infinite=True))


FREE_LINK = Link(latency_ns=0, bandwidth=math.inf)


_LOCAL = "/job:localhost/replica:0/task:0/device:"


def short_names(names):
    """{device name: what to call it}: "GPU:0" where all devices are this process's, else the name in full."""
    local = all(name.startswith(_LOCAL) for name in names)
    return {name: name.removeprefix(_LOCAL) if local else name for name in names}

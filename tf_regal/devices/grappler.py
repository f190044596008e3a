"""Devices as Grappler, TensorFlow's cost model, takes them."""

from tf_regal.devices import checks
from tf_regal.devices.spec import DeviceSpec
from tf_regal.errors import TopologyError

# How Grappler reads a device, measured on TensorFlow 2.21 with MeasureCosts of one MatMul and one Add:
#   type "CPU":  FLOP/s = num_cores * frequency * 1e6
#   type "GPU":  FLOP/s = num_cores * frequency * 1e6 * 2 * (cores per multiprocessor), where the last is 64 from
#                architecture "6" on. Architectures are compared as text: "10" counts as older than "3", and without
#                the key the process dies. 1e9 FLOP/s and 12e9 bytes/s stand for every other type.
#   bandwidth:   in units of 1,000 bytes/s.
# Only the product of cores and frequency counts, so that one "core" gives the finest steps.
_GPU_ARCHITECTURE = "8.0"
_GPU_FLOP_PER_CYCLE = 2 * 64


def device_properties(spec, slowdown=1):
    """A NamedDevice whose peak in Grappler's cost model is `spec.flops` and `spec.bandwidth`.

    For `tensorflow.python.grappler.cluster.Cluster(devices=[…])`. Grappler adds the compute and the memory time of an
    op, and knows nothing of `lanes`, `launch_overhead_ns` or links. It has no TPUs: a TPU keeps its name and is
    described as a GPU of its speed.

    `Cluster.MeasureCosts` reports whole microseconds, which makes most ops of a fast device free. Costs are inversely
    proportional to both figures, so describe a device that is 1000 times slower and divide the costs by 1000: then
    they are exact to the nanosecond. Figures are rounded to steps of 128 MFLOP/s (CPU: 1 MFLOP/s) and 1 kB/s *after*
    the division: over the catalogue, 1e-3 off at most, and 1e-2 with slowdown=1000.

    Args:
        spec: a `DeviceSpec`.
        slowdown: describe a device that is slower by this factor, an int >= 1.

    Raises:
        TopologyError: an argument is not valid.
    """
    if not isinstance(spec, DeviceSpec):
        raise TopologyError(
            f"spec={checks.shown(spec)} must be a DeviceSpec, such as Topology.parse('2xT4').devices[0]"
        )
    slowdown = checks.whole("slowdown", slowdown, 1, "a factor")

    from tf_regal import _tf_private

    device = _tf_private.device_properties_pb2.NamedDevice(name=spec.name)
    properties = device.properties
    properties.model = spec.model
    properties.num_cores = 1
    if spec.kind == "CPU":
        properties.type = "CPU"
        flop_per_cycle = 1
    else:
        properties.type = "GPU"
        properties.environment["architecture"] = _GPU_ARCHITECTURE
        flop_per_cycle = _GPU_FLOP_PER_CYCLE
    properties.frequency = _steps(spec.flops / slowdown / flop_per_cycle, 1e6)
    properties.bandwidth = _steps(spec.bandwidth / slowdown, 1e3)
    if spec.memory is not None:
        properties.memory_size = spec.memory
    return device


def _steps(value, step):
    # 0 would mean "unknown" to Grappler.
    return min(max(1, round(value / step)), checks.MAX_INT64)

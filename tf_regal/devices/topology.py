"""`Topology`: the devices that a graph may run on and the directed links between them."""

import dataclasses

import numpy as np

from tf_regal.devices import checks
from tf_regal.devices.spec import FREE_LINK, DeviceSpec, Link
from tf_regal.errors import TopologyError

MAX_DEVICES = 64

# What the duration of an op depends on. Costs are kept per model, so these are the same on all devices of a model.
_FIGURES_OF_A_MODEL = ("kind", "flops", "bandwidth", "launch_overhead_ns")


@dataclasses.dataclass(frozen=True)
class Topology:
    """Devices plus directed links.

    The matrices may be given as any nested sequences or arrays of shape [d, d]; they are kept as tuples, so that a
    topology can be compared and hashed. Row: source, column: destination. The diagonal is always latency 0 and
    bandwidth math.inf, whatever was given.

    Attributes:
        name: what to call it in reports, such as the text that it was parsed from.
        devices: 1 to 64 `DeviceSpec`s with different names; those of one model are equally fast.
        latency_ns: [d][d], ns per transfer, int.
        bandwidth: [d][d], bytes/s, float; math.inf: bytes are free.
        blocking_transfers: a transfer occupies one lane of both its devices (the REGAL paper's synchronous transfers).

    Raises:
        TopologyError: a value is not valid; the message names the argument.

    Example:
        >>> topology = Topology.parse("2xA100-40GB@PCIe4")
        >>> topology.names[1]
        '/job:localhost/replica:0/task:0/device:GPU:1'
    """

    name: str
    devices: tuple[DeviceSpec, ...]
    latency_ns: tuple[tuple[int, ...], ...]
    bandwidth: tuple[tuple[float, ...], ...]
    blocking_transfers: bool = False

    def __post_init__(self):
        checks.text("name", self.name)
        devices = _checked_devices(self.devices)
        if not isinstance(self.blocking_transfers, (bool, np.bool_)):
            raise TopologyError(f"blocking_transfers={checks.shown(self.blocking_transfers)} must be True or False")
        latency_ns = _checked_matrix("latency_ns", self.latency_ns, len(devices))
        bandwidth = _checked_matrix("bandwidth", self.bandwidth, len(devices))
        links = [
            [
                FREE_LINK if source == target else _checked_link(source, target, latency_ns, bandwidth)
                for target in range(len(devices))
            ]
            for source in range(len(devices))
        ]
        put = object.__setattr__  # the dataclass is frozen
        put(self, "devices", devices)
        put(self, "blocking_transfers", bool(self.blocking_transfers))
        put(self, "latency_ns", tuple(tuple(link.latency_ns for link in row) for row in links))
        put(self, "bandwidth", tuple(tuple(link.bandwidth for link in row) for row in links))

    @classmethod
    def from_links(cls, name, devices, link, blocking_transfers=False):
        """A topology from a function `link(source, destination) -> Link` of two device indices."""
        devices = tuple(devices)
        indices = range(len(devices))
        links = [[FREE_LINK if i == j else link(i, j) for j in indices] for i in indices]
        latency_ns = [[entry.latency_ns for entry in row] for row in links]
        bandwidth = [[entry.bandwidth for entry in row] for row in links]
        return cls(name, devices, latency_ns, bandwidth, blocking_transfers)

    @classmethod
    def parse(cls, spec):
        """The topology that `spec` describes.

        Args:
            spec: one of
                - a `Topology`, returned as it is;
                - "2xA100-40GB", "4xTPUv4", "2xCPU", or a mix, "1xCPU+2xT4": models of the catalogue. Equal models are
                  joined by their own link, different ones by the slower one's PCIe;
                - the same with a link of the catalogue between all devices, "2xA100-40GB@PCIe4";
                - "paper": the REGAL paper's two equal devices of 16 GiB with free transfers;
                - "local": what TensorFlow sees in this process (`Topology.detect`);
                - "/job:worker", a full or partial device name: those of "local" that it means;
                - a path (str or os.PathLike) that ends in .json (see `save`).
                Letter case does not count, but in paths.

        Raises:
            TopologyError: it is none of these, or the file cannot be read.
        """
        from tf_regal.devices import notation

        return notation.parse(spec)

    @classmethod
    def detect(cls, include_remote=True, measure=None, only=None):
        """What TensorFlow sees in this process; sets TensorFlow's context up if nothing has so far.

        Args:
            include_remote: also the devices of other processes that this one is connected to (/job:worker/…).
            measure: time a few kernels on the CPUs and transfers between the processes, some seconds the first time; kept in the user's cache.
                None: where there are several processes; True, False; "again": in place of what is kept.
            only: a full or partial device name, "/job:worker": the devices that it means, and no others.

        Raises:
            TopologyError: TensorFlow cannot be imported, or there are more than 64 devices.
        """
        from tf_regal.devices import detection

        return detection.detect(include_remote, measure, only)

    @classmethod
    def load(cls, path):
        """The topology that `save` wrote to `path`.

        Raises:
            TopologyError: there is no such file, it is not JSON (the message has the line), or it is not valid.
        """
        from tf_regal.devices import exchange

        return exchange.load(path)

    @classmethod
    def from_json(cls, document):
        """The topology in a dict that `to_json` made.

        Raises:
            TopologyError: a key is missing, unknown, or has a value that is not valid.
        """
        from tf_regal.devices import exchange

        return exchange.from_json(document)

    def to_json(self):
        """A dict of JSON types: "schema": 1, "name", "devices", "links", "blocking_transfers".

        JSON has no infinity: null stands for a bandwidth of math.inf, and for unlimited memory.
        """
        from tf_regal.devices import exchange

        return exchange.to_json(self)

    def save(self, path):
        """Writes `to_json` to `path`, one device and one matrix row a line.

        Raises:
            TopologyError: the file cannot be written.
        """
        from tf_regal.devices import exchange

        exchange.save(self, path)

    @property
    def n_devices(self):
        """Number of devices, d."""
        return len(self.devices)

    @property
    def names(self):
        """TensorFlow device names, a tuple of d str."""
        return tuple(device.name for device in self.devices)

    @property
    def kinds(self):
        """Kind per device, a tuple of d str: "CPU", "GPU" or "TPU"."""
        return tuple(device.kind for device in self.devices)

    def link(self, source, destination):
        """The `Link` between two device indices."""
        return Link(self.latency_ns[source][destination], self.bandwidth[source][destination])

    def arrays(self):
        """The arrays that the simulator takes (docs/simulator.md), a dict.

        Returns:
            lanes: int32 [d], ops that a device runs at once.
            capacity: int64 [d], bytes; the largest int64 when unlimited.
            latency: int64 [d, d], ns, row: source.
            ns_per_byte: float64 [d, d], 1e9 / bandwidth; 0 where bytes are free, and on the diagonal.
        """
        unlimited = np.iinfo(np.int64).max
        memory = [unlimited if device.memory is None else device.memory for device in self.devices]
        with np.errstate(over="ignore"):  # a link of less than 1e-299 bytes/s: the core refuses it
            ns_per_byte = 1e9 / np.array(self.bandwidth, dtype=np.float64)
        return {
            "lanes": np.array([device.lanes for device in self.devices], dtype=np.int32),
            "capacity": np.array(memory, dtype=np.int64),
            "latency": np.array(self.latency_ns, dtype=np.int64),
            "ns_per_byte": ns_per_byte,
        }

    def with_memory(self, memory):
        """A copy whose devices all have `memory` bytes; None: unlimited.

        Raises:
            TopologyError: `memory` is not None and not a whole number >= 1.
        """
        devices = tuple(dataclasses.replace(device, memory=memory) for device in self.devices)
        return dataclasses.replace(self, devices=devices)


def _checked_devices(devices):
    if isinstance(devices, DeviceSpec) or not hasattr(devices, "__iter__"):
        raise TopologyError(f"devices={checks.shown(devices)} must be a sequence of DeviceSpec")
    devices = tuple(devices)
    if not 1 <= len(devices) <= MAX_DEVICES:
        raise TopologyError(f"devices has {len(devices)} entries: give 1 to {MAX_DEVICES} devices")
    seen, models = {}, {}
    for index, device in enumerate(devices):
        if not isinstance(device, DeviceSpec):
            raise TopologyError(f"devices[{index}]={checks.shown(device)} is not a DeviceSpec")
        if device.name in seen:
            raise TopologyError(
                f"devices[{index}].name={device.name!r} is also the name of devices[{seen[device.name]}]: "
                "give every device a name of its own"
            )
        seen[device.name] = index
        first = models.setdefault(device.model, index)
        for field in _FIGURES_OF_A_MODEL:
            value, other = getattr(device, field), getattr(devices[first], field)
            if value != other:
                raise TopologyError(
                    f"devices[{index}].{field}={value!r}, but devices[{first}] of the same model {device.model!r} "
                    f"has {other!r}: give devices that are not equally fast models with different names"
                )
    return devices


def _checked_matrix(name, matrix, count):
    """`matrix` as nested lists of Python scalars, known to be [count][count]."""
    rows = matrix.tolist() if isinstance(matrix, np.ndarray) else matrix
    subject = "1 device needs" if count == 1 else f"{count} devices need"
    wanted = f"{subject} {count} x {count} entries (row: source, column: destination)"
    if not isinstance(rows, (list, tuple)):
        raise TopologyError(f"{name}={checks.shown(matrix)} is not a matrix: {wanted}")
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]
    if len(rows) != count:
        raise TopologyError(f"{name} has {len(rows)} rows: {wanted}")
    for index, row in enumerate(rows):
        if not isinstance(row, (list, tuple)) or len(row) != count:
            size = f"{len(row)} entries" if isinstance(row, (list, tuple)) else f"the value {checks.shown(row)}"
            raise TopologyError(f"{name}[{index}] has {size}: {wanted}")
    return rows


def _checked_link(source, target, latency_ns, bandwidth):
    where = f"[{source}][{target}]"
    return Link(
        checks.whole(f"latency_ns{where}", latency_ns[source][target], 0, "ns"),
        checks.positive(f"bandwidth{where}", bandwidth[source][target], "bytes/s", infinite=True),
    )

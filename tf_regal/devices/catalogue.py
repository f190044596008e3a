"""The devices and links that can be named, with where each figure comes from.

Rated figures are peaks: what a data sheet promises, not what a kernel reaches. Figures that nobody publishes (the
host's overhead per op, latencies as TensorFlow sees them) are estimates or our own measurements; comments say which.
"""

import dataclasses

from tf_regal.devices import checks
from tf_regal.devices.spec import FREE_LINK, DeviceSpec, Link
from tf_regal.errors import TopologyError

_GiB = 2**30

# 3.8 us per short kernel launched back to back on a V100 (NVIDIA developer blog, "Getting Started with CUDA Graphs",
# 2019), plus about 1 us for TensorFlow's executor (0.3-0.8 us per op measured with TensorFlow 2.21 on a server CPU).
_GPU_LAUNCH_NS = 5_000
# Estimate: the ops of a TPU program are not launched by the host one by one; what is left is issue and DMA set-up.
_TPU_LAUNCH_NS = 1_000
# Measured with TensorFlow 2.21 on a 2.4 GHz EPYC core: 0.3-0.8 us per op of a long chain of scalar ops.
_CPU_LAUNCH_NS = 500


@dataclasses.dataclass(frozen=True)
class LinkModel:
    """A kind of link: its name, its figures in one direction (see `Link`), and their source."""

    name: str
    link: Link
    source: str


@dataclasses.dataclass(frozen=True)
class DeviceModel:
    """A model of device: the fields of `DeviceSpec` that do not depend on where it is, and its links.

    Attributes:
        peer_link: name of the link that joins two devices of this model by default.
        host_link: name of the link to devices of other models.
        source: where the figures come from.
    """

    model: str
    kind: str
    flops: float
    bandwidth: float
    memory: int | None
    launch_overhead_ns: int
    peer_link: str
    host_link: str
    source: str
    lanes: int = 1

    def spec(self, name):
        """The `DeviceSpec` of a device of this model with the TensorFlow device name `name`."""
        return DeviceSpec(
            name=name,
            model=self.model,
            kind=self.kind,
            flops=self.flops,
            bandwidth=self.bandwidth,
            lanes=self.lanes,
            memory=self.memory,
            launch_overhead_ns=self.launch_overhead_ns,
        )


def _gpu(model, flops, bandwidth, memory, peer_link, host_link, source):
    return DeviceModel(model, "GPU", flops, bandwidth, int(memory), _GPU_LAUNCH_NS, peer_link, host_link, source)


def _tpu(model, flops, bandwidth, memory, peer_link, host_link, source):
    return DeviceModel(model, "TPU", flops, bandwidth, int(memory), _TPU_LAUNCH_NS, peer_link, host_link, source)


_DEVICES = (
    # V100 has no TF32: float32 runs on the float32 units (15.7 TFLOP/s in the SXM2 module). 900 GB/s HBM2.
    _gpu("V100-16GB", 15.7e12, 900e9, 16 * _GiB, "NVLink2", "PCIe3", "NVIDIA Tesla V100 data sheet (SXM2), 2017"),
    _gpu("V100-32GB", 15.7e12, 900e9, 32 * _GiB, "NVLink2", "PCIe3", "NVIDIA Tesla V100 data sheet (SXM2), 2018"),
    # TF32 156 TFLOP/s dense. HBM2 1,555 GB/s in the 40 GB module, HBM2e 2,039 GB/s in the 80 GB module.
    _gpu("A100-40GB", 156e12, 1555e9, 40 * _GiB, "NVLink3", "PCIe4", "NVIDIA A100 data sheet (SXM4 40GB), 2020"),
    _gpu("A100-80GB", 156e12, 2039e9, 80 * _GiB, "NVLink3", "PCIe4", "NVIDIA A100 data sheet (SXM4 80GB), 2021"),
    # The data sheet's 989 TFLOP/s TF32 is with sparsity; dense is half (494.7 in the architecture white paper).
    _gpu("H100-80GB", 494.7e12, 3350e9, 80 * _GiB, "NVLink4", "PCIe5", "NVIDIA H100 data sheet (SXM5), 2023"),
    # The data sheet's 120 TFLOP/s TF32 is with sparsity; dense is half. ECC takes 1/16 of GDDR6: 22.5 of 24 GiB stay.
    _gpu("L4", 60e12, 300e9, 22.5 * _GiB, "PCIe4", "PCIe4", "NVIDIA L4 data sheet, 2023"),
    # T4 has no TF32: 8.1 TFLOP/s float32. ECC takes 1/16 of GDDR6: 15 of 16 GiB stay.
    _gpu("T4", 8.1e12, 320e9, 15 * _GiB, "PCIe3", "PCIe3", "NVIDIA T4 data sheet, 2018"),
    # TensorFlow shows each of the two cores of a v2 or v3 chip as a device: half of the chip's 46 TFLOP/s bfloat16,
    # 700 GB/s and 16 GiB (v2); 123 TFLOP/s, 900 GB/s and 32 GiB (v3).
    _tpu("TPUv2", 23e12, 350e9, 8 * _GiB, "ICIv2", "PCIe3", "Jouppi et al., CACM 63(7), 2020; half a chip"),
    _tpu("TPUv3", 61.5e12, 450e9, 16 * _GiB, "ICIv3", "PCIe3", "Google Cloud TPU v3 documentation, 2024; half a chip"),
    # From v4 on a device is a chip (the two cores of v4 and v5p work as one, "megacore").
    _tpu("TPUv4", 275e12, 1200e9, 32 * _GiB, "ICIv4", "PCIe3", "Google Cloud TPU v4 documentation, 2024"),
    _tpu("TPUv5e", 197e12, 819e9, 16e9, "ICIv5e", "PCIe4", "Google Cloud TPU v5e documentation, 2024"),
    _tpu("TPUv5p", 459e12, 2765e9, 95e9, "ICIv5p", "PCIe4", "Google Cloud TPU v5p documentation, 2024"),
    # A generic server CPU: one socket, 16 cores x 3.0 GHz x 2 FMA units x 8 floats x 2 = 1.536 TFLOP/s, 8 channels of
    # DDR4-3200. One lane: one op has all cores (intra-op parallelism), so that named CPUs do not depend on thread
    # settings; `Topology.detect()` gives the lanes of a real process. "2xCPU" is thus a server of two sockets, not two
    # logical devices that share one. Memory is what was bought: unlimited here.
    DeviceModel(
        model="CPU",
        kind="CPU",
        flops=1.536e12,
        bandwidth=204.8e9,
        memory=None,
        launch_overhead_ns=_CPU_LAUNCH_NS,
        peer_link="HostMemory",
        host_link="PCIe5",  # the newest: the card decides, since a card sits in a host of its own generation
        source="AMD EPYC 7313 product page, 2021",
    ),
)

_ALIASES = {"v100": "V100-16GB", "a100": "A100-40GB", "h100": "H100-80GB"}

# Estimates: a peer-to-peer copy as TensorFlow issues it (event, copy engine, event), not the wire alone.
_NVLINK_NS = 10_000
_PCIE_NS = 20_000
# Estimate: one hop between chips of a slice.
_ICI_NS = 2_000
# A 4-byte _Send/_Recv between two TensorFlow 2.21 processes over loopback took 215 us (best of five): that is gRPC's
# stack. A switched network adds about 50 us (estimate).
_GRPC_NS = 200_000

_LINKS = (
    LinkModel("Free", FREE_LINK, "the REGAL paper's free transfers (arXiv 1905.02494)"),
    # In-process _Send/_Recv between logical CPU devices passes a reference: 5-7 us per hop measured with TensorFlow
    # 2.21, almost whatever the size. The bandwidth is that of the catalogue's CPU.
    LinkModel("HostMemory", Link(5_000, 204.8e9), "measured latency; AMD EPYC 7313 product page, 2021"),
    # One direction of all links of a device, as through an NVSwitch: half of the rated total. Pairs in a DGX-1 (V100)
    # have one or two of the six links only (25 or 50 GB/s): write a topology file for that.
    LinkModel("NVLink2", Link(_NVLINK_NS, 150e9), "NVIDIA Tesla V100 data sheet, 2017 (300 GB/s both ways)"),
    LinkModel("NVLink3", Link(_NVLINK_NS, 300e9), "NVIDIA A100 data sheet, 2020 (600 GB/s both ways)"),
    LinkModel("NVLink4", Link(_NVLINK_NS, 450e9), "NVIDIA H100 data sheet, 2023 (900 GB/s both ways)"),
    # 16 lanes, one direction, after the 128b/130b encoding.
    LinkModel("PCIe3", Link(_PCIE_NS, 15.75e9), "PCI Express base specification 3.0, 2010 (x16)"),
    LinkModel("PCIe4", Link(_PCIE_NS, 31.5e9), "PCI Express base specification 4.0, 2017 (x16)"),
    LinkModel("PCIe5", Link(_PCIE_NS, 63e9), "PCI Express base specification 5.0, 2019 (x16)"),
    # One of a chip's links to its neighbours, one direction.
    LinkModel("ICIv2", Link(_ICI_NS, 62e9), "Jouppi et al., CACM 63(7), 2020 (496 Gbit/s per link)"),
    LinkModel("ICIv3", Link(_ICI_NS, 82e9), "Jouppi et al., CACM 63(7), 2020 (656 Gbit/s per link)"),
    LinkModel("ICIv4", Link(_ICI_NS, 50e9), "Jouppi et al., ISCA 2023 (6 links at 50 GB/s)"),
    LinkModel("ICIv5e", Link(_ICI_NS, 50e9), "Google Cloud TPU v5e documentation, 2024 (1,600 Gbit/s, 4 links)"),
    LinkModel("ICIv5p", Link(_ICI_NS, 100e9), "Google Cloud TPU v5p documentation, 2024 (4,800 Gbit/s, 6 links)"),
    # Two processes on one host. Line rate of loopback is not the limit, gRPC is: 0.9-1.2 GB/s measured.
    LinkModel("Loopback", Link(_GRPC_NS, 1.2e9), "measured: TensorFlow 2.21, gRPC between two processes on one host"),
    # Line rates. TensorFlow's gRPC alone does not reach 12.5 GB/s.
    LinkModel("Ethernet10G", Link(_GRPC_NS + 50_000, 1.25e9), "IEEE 802.3ae, 2002 (line rate); latency estimated"),
    LinkModel("Ethernet100G", Link(_GRPC_NS + 50_000, 12.5e9), "IEEE 802.3ba, 2010 (line rate); latency estimated"),
)


def device_models():
    """Every `DeviceModel` of the catalogue, as a tuple."""
    return _DEVICES


def link_models():
    """Every `LinkModel` of the catalogue, as a tuple."""
    return _LINKS


def device_model(name):
    """The `DeviceModel` called `name`; letter case does not count, "A100", "V100" and "H100" are aliases.

    Raises:
        TopologyError: there is none; the message lists what there is.
    """
    wanted = _ALIASES.get(name.lower(), name).lower()
    for entry in _DEVICES:
        if entry.model.lower() == wanted:
            return entry
    names = [entry.model for entry in _DEVICES]
    hint = checks.closest(name, [*names, *(alias.upper() for alias in _ALIASES)])
    raise TopologyError(f"device model {name!r} is not in the catalogue: {', '.join(names)}{hint}")


def link_model(name):
    """The `LinkModel` called `name`; letter case does not count.

    Raises:
        TopologyError: there is none; the message lists what there is.
    """
    for entry in _LINKS:
        if entry.name.lower() == name.lower():
            return entry
    names = [entry.name for entry in _LINKS]
    raise TopologyError(f"link {name!r} is not in the catalogue: {', '.join(names)}{checks.closest(name, names)}")


def default_link(first, second):
    """The `Link` that joins devices of two models by default.

    Equal models: their peer link. Different models: over the host's bus, at the pace of the slower host link.
    """
    if first.model == second.model:
        return link_model(first.peer_link).link
    one, other = link_model(first.host_link).link, link_model(second.host_link).link
    return Link(max(one.latency_ns, other.latency_ns), min(one.bandwidth, other.bandwidth))

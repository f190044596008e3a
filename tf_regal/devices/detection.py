"""`Topology.detect()`: the devices that TensorFlow sees in this process, with the figures of this machine."""

import collections
import contextlib
import dataclasses
import os
import re
import statistics
import warnings

from absl import logging

from tf_regal import problem
from tf_regal.devices import catalogue, host, measurement
from tf_regal.devices.spec import KINDS, DeviceSpec, Link, device_name
from tf_regal.devices.topology import Topology
from tf_regal.errors import TopologyError

_JOB_AND_TASK = re.compile(r"/job:[^/]+/replica:\d+/task:\d+")
_LOCAL = "/job:localhost/replica:0/task:0"
_READS = 3  # of a file of another machine, until it says something

# What TensorFlow calls the card ("Tesla V100-SXM2-32GB", "NVIDIA A100-SXM4-80GB") -> model; the first that fits counts.
_GPU_NAMES = (
    (r"V100.*32GB", "V100-32GB"),
    (r"V100", "V100-16GB"),
    (r"A100.*80GB", "A100-80GB"),
    (r"A100", "A100-40GB"),
    (r"H100", "H100-80GB"),
    (r"\bL4\b", "L4"),
    (r"\bT4\b", "T4"),
)
# The nearest of the catalogue for cards that it does not have, by compute capability (major, minor) or older.
_GPU_STAND_INS = (((9, 0), "H100-80GB"), ((8, 6), "L4"), ((8, 0), "A100-40GB"), ((7, 5), "T4"), ((7, 0), "V100-16GB"))

_TPU_STAND_IN = "TPUv3"
_HOP_NS = 5_000  # see the catalogue's HostMemory


@dataclasses.dataclass(frozen=True)
class _Found:
    """A device with what decides its links."""

    spec: DeviceSpec
    model: catalogue.DeviceModel
    host: host.Host
    process: str
    card: tuple | None = None
    pcie_only: bool = False


def detect(include_remote=True, measure=None, only=None):
    """See `Topology.detect`."""
    if not (measure is None or measure is True or measure is False or measure == "again"):
        raise TopologyError(f"measure={measure!r} is not valid: give True, False, 'again', or None (measured where devices are in other processes)")
    try:
        import tensorflow as tf
    except ImportError as error:
        raise TopologyError(
            "topology='local' needs TensorFlow, which cannot be imported here: install it, or name the devices, "
            "as in topology='2xA100-40GB'"
        ) from error

    # Planning may be asked for while a tf.function is traced, or under a device scope: look from outside of both.
    with tf.init_scope(), tf.device(None):
        local = local_process()
        names, reached = collections.defaultdict(list), {local: True}
        for device in tf.config.list_logical_devices():
            match = _JOB_AND_TASK.match(device.name)
            process = match[0] if match else local
            if process not in reached:
                reached[process] = include_remote and answers(process)
            if device.device_type in KINDS and reached[process]:
                names[process].append((device.device_type, int(device.name.rpartition(":")[2])))
        found = []
        for process, devices in names.items():
            found += _local(tf, process, devices) if process == local else _remote(tf, process, devices)
        found = _share_memory(found)
        if only is not None:
            found = _selected(found, only)
        several = len({entry.process for entry in found}) > 1
        links = {}
        if measure or (measure is None and several):
            found, links = _measured(tf, found, measure == "again")
    # Processes send to one another with the threads and cores that also run ops.
    blocking = several and all(entry.spec.kind == "CPU" for entry in found)
    return Topology.from_links(only or "local", [entry.spec for entry in found], lambda i, j: links.get((i, j)) or _link(found[i], found[j]), blocking)


def answers(process):
    """Whether another process of the cluster still runs ops. TensorFlow goes on listing the devices of those that ended."""
    import tensorflow as tf

    try:
        with tf.init_scope(), tf.device(device_name("CPU", 0, process)):
            tf.constant(0).numpy()
    except tf.errors.OpError:
        return False
    return True


def _selected(found, only):
    """The devices that a full or partial name means."""
    asked = problem.parse_device(only)
    chosen = [entry for entry in found if problem.matches(asked, problem.parse_device(entry.spec.name))]
    if not chosen or not asked:
        names = ", ".join(entry.spec.name for entry in found)
        raise TopologyError(f"topology={only!r} names no device that TensorFlow sees here; it sees {names}")
    return chosen


def _measured(tf, found, again):
    """Devices and links as they were measured: CPUs, and one link per pair of processes; {(source, destination): Link}."""
    cpus = [i for i, entry in enumerate(found) if entry.spec.kind == "CPU"]
    first = {}
    for i, entry in enumerate(found):
        first.setdefault(entry.process, i)
    pairs = [(a, b) for a in first.values() for b in first.values() if a < b]
    facts = [[e.spec.name, e.spec.model, e.spec.lanes, e.host.identity, e.host.cores] for e in found]

    def measure():
        logging.info("tf_regal: measuring %d devices and %d links", len(cpus), len(pairs))
        return {
            "speeds": [dataclasses.asdict(measurement.speed(tf, found[i].spec.name)) for i in cpus],
            "links": [dataclasses.asdict(measurement.link(tf, found[a].spec.name, found[b].spec.name)) for a, b in pairs],
        }

    value = measurement.cached([tf.__version__, facts], measure, again)
    by_model = collections.defaultdict(list)
    for i, speed in zip(cpus, value["speeds"], strict=True):
        by_model[found[i].spec.model].append(speed)
    for i in cpus:
        # Devices of a model are equally fast: what differs between them is taken for noise.
        speeds = by_model[found[i].spec.model]
        middle = {name: statistics.median(speed[name] for speed in speeds) for name in speeds[0]}
        spec = dataclasses.replace(
            found[i].spec, model=f"{found[i].spec.model}, measured", flops=middle["flops"], bandwidth=middle["bandwidth"],
            launch_overhead_ns=int(middle["launch_overhead_ns"]),
        )  # fmt: skip
        found[i] = dataclasses.replace(found[i], spec=spec)
    links = {}
    for (a, b), entry in zip(pairs, value["links"], strict=True):
        between = Link(**entry)
        for i, source in enumerate(found):
            for j, target in enumerate(found):
                if {source.process, target.process} == {found[a].process, found[b].process} and source.process != target.process:
                    links[i, j] = between
    return found, links


def visible_devices():
    """Full names of the devices that this process can place ops on; those of processes that do not answer any more too."""
    import tensorflow as tf

    with tf.init_scope(), tf.device(None):
        local = local_process()
        return [d.name if d.name.startswith("/job:") else local + d.name for d in tf.config.list_logical_devices()]


def local_process():
    """The job and task of this process; TensorFlow lists local devices without it until it joins a cluster."""
    import tensorflow as tf

    with tf.init_scope(), tf.device(None):
        match = _JOB_AND_TASK.match(tf.constant(0).device)
    return match[0] if match else _LOCAL


def _local(tf, process, devices):
    machine = host.local_host()
    lanes = tf.config.threading.get_inter_op_parallelism_threads() or machine.cores
    cards = _cards(tf)
    found = []
    for kind, index in devices:
        name = device_name(kind, index, process)
        if kind == "CPU":
            count = sum(other == "CPU" for other, _ in devices)
            found.append(_cpu(name, process, machine, lanes, count))
        elif kind == "GPU":
            details, limit, card, sharers = cards[index] if index < len(cards) else ({}, None, None, 1)
            title = details.get("device_name", "")
            model = _gpu_model(name, title, details.get("compute_capability"))
            spec = _shared(model.spec(name), sharers, limit)
            found.append(_Found(spec, model, machine, process, card, pcie_only="PCIE" in title.upper()))
        else:
            found.append(_tpu(name, process, machine, host.read_local))
    return found


def _remote(tf, process, devices):
    read = _remote_reader(tf, process)
    machine = host.describe(read)
    if not read("/proc/cpuinfo"):
        warnings.warn(
            f"tf-regal cannot read what machine {process} runs on, and takes it for a machine like this one; "
            "describe the devices in a topology file (Topology.save) if it is not",
            stacklevel=4,
        )
        machine = dataclasses.replace(host.local_host(), identity=None)
    found = []
    for kind, index in devices:
        name = device_name(kind, index, process)
        if kind == "CPU":
            count = sum(other == "CPU" for other, _ in devices)
            found.append(_cpu(name, process, machine, machine.cores, count))
        elif kind == "GPU":
            # TensorFlow tells nothing about another process's cards; the driver does.
            model = _gpu_model(name, _driver_title(tf, process, read), None)
            found.append(_Found(model.spec(name), model, machine, process, card=(process, index)))
        else:
            found.append(_tpu(name, process, machine, read))
    return found


def _remote_reader(tf, process):
    def read(path):
        # A busy worker may refuse once; what a file says decides over links and memory, so that is not taken for an answer.
        for _ in range(_READS):
            with contextlib.suppress(tf.errors.OpError), tf.device(device_name("CPU", 0, process)):
                # Asked first, since an op that fails on another process can leave the next one waiting without end.
                if not len(tf.io.matching_files(path).numpy()):
                    return ""
                text = tf.io.read_file(path).numpy().decode("utf-8", "replace")
                if text:
                    return text
        return ""

    return read


def _driver_title(tf, process, read):
    try:
        with tf.device(device_name("CPU", 0, process)):
            paths = tf.io.matching_files("/proc/driver/nvidia/gpus/*/information").numpy()
    except tf.errors.OpError:
        paths = ()
    text = read(paths[0].decode()) if len(paths) else ""
    match = re.search(r"^Model:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def _cpu(name, process, machine, lanes, count):
    # Logical CPU devices of a process share its threads and cores.
    cores, flops = machine.cores / count, machine.flops / count
    spec = DeviceSpec(
        name=name,
        # The same processor on another host or in another process may come with more cores: another model.
        model=f"{machine.model} ({cores:.3g} core{'s' if cores > 1 else ''}, {flops / 1e9:.6g} GFLOP/s)",
        kind="CPU",
        flops=flops,
        bandwidth=machine.bandwidth / count,
        lanes=max(1, lanes // count),
        memory=machine.memory,
        launch_overhead_ns=catalogue.device_model("CPU").launch_overhead_ns,
    )
    return _Found(spec, catalogue.device_model("CPU"), machine, process)


def _cards(tf):
    """Per logical GPU, in TensorFlow's order: details of its card, memory limit or None, card, logical GPUs on it."""
    cards = []
    for number, card in enumerate(tf.config.get_visible_devices("GPU")):
        details = tf.config.experimental.get_device_details(card)
        slices = tf.config.get_logical_device_configuration(card) or [None]
        for entry in slices:
            limit = getattr(entry, "memory_limit", None)
            # TensorFlow gives the limit in MiB.
            cards.append((details, int(limit * 2**20) if limit else None, ("local", number), len(slices)))
    return cards


def _shared(spec, sharers, limit):
    """`spec` as one of `sharers` logical devices of its card, with a memory limit of its own or None."""
    return dataclasses.replace(
        spec,
        model=spec.model if sharers == 1 else f"{spec.model} (1/{sharers})",
        flops=spec.flops / sharers,
        bandwidth=spec.bandwidth / sharers,
        memory=limit or spec.memory // sharers,
    )


def _gpu_model(name, title, capability):
    for pattern, model in _GPU_NAMES:
        if re.search(pattern, title, re.IGNORECASE):
            return catalogue.device_model(model)
    capability = tuple(capability or ())
    stand_in = next((model for least, model in _GPU_STAND_INS if capability >= least), "T4")
    warnings.warn(
        f"tf-regal has no figures for {name} ({title or 'model not known'}) and takes it for a {stand_in}; "
        "describe the devices in a topology file (Topology.save) to give it its own",
        stacklevel=5,
    )
    return catalogue.device_model(stand_in)


def _tpu(name, process, machine, read):
    # TPU virtual machines name their accelerator, "v4-8" or "v5litepod-4", in the environment of every process.
    title = os.environ.get("TPU_ACCELERATOR_TYPE", "") if read is host.read_local else ""
    generation = title.lower().partition("-")[0].replace("v5litepod", "v5e")
    try:
        model = catalogue.device_model(f"TPU{generation}")
    except TopologyError:
        model = catalogue.device_model(_TPU_STAND_IN)
        warnings.warn(
            f"tf-regal cannot tell the generation of {name} (TPU_ACCELERATOR_TYPE={title!r}) and takes it for a "
            f"{_TPU_STAND_IN}; name it, as in topology='4xTPUv4'",
            stacklevel=5,
        )
    return _Found(model.spec(name), model, machine, process)


def _share_memory(found):
    """CPU devices of one machine, of whatever process, share its memory."""
    count = collections.Counter(_machine(entry) for entry in found if entry.spec.kind == "CPU")
    shared = []
    for entry in found:
        if entry.spec.kind == "CPU" and entry.spec.memory is not None:
            spec = dataclasses.replace(entry.spec, memory=max(1, entry.spec.memory // count[_machine(entry)]))
            entry = dataclasses.replace(entry, spec=spec)
        shared.append(entry)
    return shared


def _machine(entry):
    return entry.host.identity or entry.process


def _link(source, target):
    if source.process != target.process:
        same_machine = _machine(source) == _machine(target)
        return catalogue.link_model("Loopback" if same_machine else "Ethernet10G").link
    if source.spec.kind == target.spec.kind == "CPU":
        return Link(_HOP_NS, source.host.bandwidth)
    if source.card is not None and source.card == target.card:
        # Logical GPUs of one card: a copy within its memory, which is read and written.
        return Link(_HOP_NS, source.model.bandwidth / 2)
    if source.pcie_only or target.pcie_only:
        model = source.model if source.pcie_only else target.model
        return catalogue.link_model(model.host_link).link
    return catalogue.default_link(source.model, target.model)

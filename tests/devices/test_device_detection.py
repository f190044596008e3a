"""Topology.detect: with the TensorFlow of this machine (no accelerator), and with a stand-in that reports others."""

import collections
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

from tf_regal.devices import Link, Topology, device_model, link_model
from tf_regal.errors import TopologyError

ROOT = pathlib.Path(__file__).resolve().parents[2]
TASK = "/job:localhost/replica:0/task:0/device:"
WORKER = "/job:worker/replica:0/task:{}/device:"


def run(script, cores=None):
    """What a script prints as JSON in a process of its own (a TensorFlow context is set up once), on `cores` cores."""
    usable = sorted(os.sched_getaffinity(0))[:cores]
    code = f"import os; os.sched_setaffinity(0, {usable}); import json; import tensorflow as tf\n{script}"
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1]), len(usable)


@pytest.mark.slow
def test_logical_cpus_share_the_machine():
    script = """
from tf_regal.devices import Topology
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
@tf.function
def traced():
    with tf.device("CPU:1"):
        return Topology.detect()   # works while a function is traced, under a device scope
seen = []
tf.function(lambda: seen.append(traced.python_function()))()
assert seen[0] == Topology.detect() == Topology.parse("local")
print(json.dumps(seen[0].to_json()))
"""
    document, cores = run(script)
    topology = Topology.from_json(document)
    total = sum(device.memory for device in topology.devices)
    assert topology.name == "local"
    assert topology.names == tuple(f"{TASK}CPU:{index}" for index in range(3))
    assert [device.lanes for device in topology.devices] == [max(1, cores // 3)] * 3
    assert total <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") + 2**20
    assert 1e9 < sum(device.flops for device in topology.devices) < cores * 64 * 6e9
    # A transfer passes a reference: at the pace of the machine's memory, not of the device's share of it.
    assert topology.link(0, 2).latency_ns == 5_000
    assert topology.link(0, 2).bandwidth == pytest.approx(sum(device.bandwidth for device in topology.devices))


@pytest.mark.slow
def test_inter_op_threads_are_the_lanes():
    script = """
from tf_regal.devices import Topology
tf.config.threading.set_inter_op_parallelism_threads(7)
print(json.dumps(Topology.detect().to_json()))
"""
    document, _ = run(script, cores=1)
    assert [device["lanes"] for device in document["devices"]] == [7]


@pytest.mark.slow
def test_remote_workers():
    script = """
from tf_regal.devices import Topology
servers = [tf.distribute.Server.create_local_server() for _ in range(2)]
hosts = [server.target.removeprefix("grpc://") for server in servers]
tf.config.experimental_connect_to_host(hosts, job_name="worker")
print(json.dumps([Topology.detect(measure=False).to_json(), Topology.detect(include_remote=False).to_json()]))
"""  # What is measured differs from link to link: test_measurement.py.
    (everything, local), cores = run(script, cores=1)
    everything, local = Topology.from_json(everything), Topology.from_json(local)
    assert everything.names == (f"{TASK}CPU:0", WORKER.format(0) + "CPU:0", WORKER.format(1) + "CPU:0")
    assert local.names == everything.names[:1]
    assert everything.link(0, 1) == everything.link(1, 2) == link_model("Loopback").link
    here, first, second = everything.devices
    assert (first.flops, first.lanes, first.model) == (here.flops, cores, here.model)
    assert second.memory == here.memory == local.devices[0].memory // 3, "three processes share one machine's memory"


MEMINFO = "MemTotal:       {} kB\nMemFree:        22803132 kB\n"


def cpuinfo(count, **fields):
    fields = {
        "vendor_id": "GenuineIntel",
        "model name": "Some  Xeon",
        "cpu MHz": "1200.0",
        "bogomips": "5000.00",
    } | fields
    block = "\n".join(f"{key}\t: {value}" for key, value in fields.items() if value is not None)
    return "\n\n".join(f"processor\t: {index}\n{block}" for index in range(count)) + "\n"


class OpError(Exception):
    pass


class Tensor(types.SimpleNamespace):
    def numpy(self):
        return self.value


class Card(types.SimpleNamespace):
    """A graphics card: what TensorFlow calls it and, if it is cut into logical devices, their limits in MiB."""

    def __init__(self, name, limits=None, capability=(8, 0)):
        super().__init__(name=name, limits=limits, capability=capability)


def tensorflow(logical=(), cards=(), files=None, threads=0, here=TASK + "CPU:0", failures=0):
    """A module that stands in for tensorflow.

    Args:
        logical: names of the logical devices.
        cards: `Card`s of this process.
        files: {process: {path: text}}, the files of remote machines.
        failures: how many times a file cannot be read before it can.
    """
    scopes, reads = [], collections.Counter()

    @contextlib.contextmanager
    def device(name):
        scopes.append(name)
        yield
        scopes.pop()

    def remote_files():
        return (files or {}).get(scopes[-1].partition("/device:")[0], {})

    def read_file(path):
        reads[path] += 1
        if path not in remote_files() or reads[path] <= failures:
            raise OpError(path)
        return Tensor(value=remote_files()[path].encode())

    def matching_files(pattern):
        prefix = pattern.partition("*")[0]
        return Tensor(value=[path.encode() for path in remote_files() if path.startswith(prefix)])

    def configuration(card):
        return None if card.limits is None else [types.SimpleNamespace(memory_limit=limit) for limit in card.limits]

    def devices():
        return [types.SimpleNamespace(name=name, device_type=name.split(":")[-2]) for name in logical]

    return types.SimpleNamespace(
        init_scope=contextlib.nullcontext,
        device=device,
        constant=lambda value: Tensor(value=value, device=here),
        errors=types.SimpleNamespace(OpError=OpError),
        io=types.SimpleNamespace(read_file=read_file, matching_files=matching_files),
        config=types.SimpleNamespace(
            list_logical_devices=devices,
            get_visible_devices=lambda kind: list(cards) if kind == "GPU" else [],
            get_logical_device_configuration=configuration,
            threading=types.SimpleNamespace(get_inter_op_parallelism_threads=lambda: threads),
            experimental=types.SimpleNamespace(
                get_device_details=lambda card: {"device_name": card.name, "compute_capability": card.capability}
            ),
        ),
    )


@pytest.fixture
def detect(monkeypatch):
    """detect(**arguments of `tensorflow`): the topology that such a TensorFlow makes."""

    def run_detection(**arguments):
        monkeypatch.setitem(sys.modules, "tensorflow", tensorflow(**arguments))
        return Topology.detect(measure=False)  # this TensorFlow runs nothing that could be timed

    return run_detection


@pytest.mark.parametrize(
    ("title", "model"),
    [
        ("Tesla V100-SXM2-16GB", "V100-16GB"),
        ("Tesla V100-SXM2-32GB", "V100-32GB"),
        ("NVIDIA A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100-80GB"),
        ("NVIDIA L4", "L4"),
        ("Tesla T4", "T4"),
    ],
)
def test_gpu_models(detect, title, model):
    topology = detect(logical=["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"], cards=[Card(title)] * 2)
    entry = device_model(model)
    assert topology.kinds == ("CPU", "GPU", "GPU")
    assert topology.devices[2] == entry.spec(f"{TASK}GPU:1")
    assert topology.link(0, 1) == topology.link(1, 0) == link_model(entry.host_link).link
    peer = entry.host_link if "PCIe" in title else entry.peer_link
    assert topology.link(1, 2) == link_model(peer).link


def test_logical_gpus_share_their_card(detect):
    cards = [
        Card("Tesla T4", limits=[4096, 2048]),
        Card("Tesla T4", limits=[1024]),
        Card("Tesla T4", limits=[None, None]),
    ]
    topology = detect(logical=[f"/device:GPU:{index}" for index in range(5)], cards=cards)
    t4 = device_model("T4")
    assert [device.memory for device in topology.devices] == [2**32, 2**31, 2**30, t4.memory // 2, t4.memory // 2]
    assert [device.model for device in topology.devices] == ["T4 (1/2)", "T4 (1/2)", "T4", "T4 (1/2)", "T4 (1/2)"]
    assert [device.flops / t4.flops for device in topology.devices] == [0.5, 0.5, 1, 0.5, 0.5]
    assert [device.bandwidth / t4.bandwidth for device in topology.devices] == [0.5, 0.5, 1, 0.5, 0.5]
    assert topology.link(0, 1) == topology.link(3, 4) == Link(5_000, t4.bandwidth / 2), "a copy within one card"
    assert topology.link(1, 2) == link_model("PCIe3").link


@pytest.mark.parametrize(
    ("capability", "stand_in"),
    [((12, 0), "H100-80GB"), ((8, 9), "L4"), ((8, 0), "A100-40GB"), ((6, 1), "T4"), (None, "T4")],
)
def test_gpu_that_the_catalogue_does_not_have(detect, capability, stand_in):
    with pytest.warns(
        UserWarning, match=rf"no figures for .*GPU:0 \(GeForce\) and takes it for a {stand_in}; describe the"
    ):
        topology = detect(logical=["/device:GPU:0"], cards=[Card("GeForce", capability=capability)])
    assert topology.devices[0].model == stand_in


@pytest.mark.parametrize(
    ("title", "model"), [("v4-8", "TPUv4"), ("v5litepod-4", "TPUv5e"), ("v5p-8", "TPUv5p"), ("v2-8", "TPUv2")]
)
def test_tpus(detect, monkeypatch, title, model):
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", title)
    topology = detect(logical=["/device:TPU:0", "/device:TPU:1", "/device:TPU_SYSTEM:0"])
    assert topology.names == (f"{TASK}TPU:0", f"{TASK}TPU:1")
    assert topology.devices[1].model == model
    assert topology.link(0, 1) == link_model(device_model(model).peer_link).link


def test_tpu_of_unknown_generation(detect, monkeypatch):
    monkeypatch.delenv("TPU_ACCELERATOR_TYPE", raising=False)
    with pytest.warns(
        UserWarning, match=r"cannot tell the generation of .*TPU:0 .* takes it for a TPUv3; name it, as in"
    ):
        topology = detect(logical=["/device:TPU:0"])
    assert topology.devices[0].model == "TPUv3"


def test_more_logical_cpus_than_cores(detect, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    topology = detect(logical=[f"/device:CPU:{index}" for index in range(4)])
    assert [device.lanes for device in topology.devices] == [1] * 4


def test_lanes_of_a_process_with_many_cores(detect, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(9)))
    logical = [f"/device:CPU:{index}" for index in range(2)]
    assert [device.lanes for device in detect(logical=logical).devices] == [4, 4]
    assert [device.lanes for device in detect(logical=logical, threads=3).devices] == [1, 1]


def test_this_process_may_be_a_member_of_the_cluster(detect):
    here, there = "/job:chief/replica:0/task:0", "/job:chief/replica:0/task:1"
    files = {there: {"/proc/cpuinfo": cpuinfo(1), "/proc/sys/kernel/random/boot_id": "elsewhere"}}
    topology = detect(
        logical=[f"{here}/device:CPU:0", f"{there}/device:CPU:0"], here=f"{here}/device:CPU:0", files=files
    )
    assert topology.names == (f"{here}/device:CPU:0", f"{there}/device:CPU:0")
    assert topology.link(0, 1) == link_model("Ethernet10G").link


def worker(detect, cpu, **files):
    """The CPU of a worker whose machine has these files; `meminfo`, `status`, `cpu_max`, `memory_max`."""
    paths = {
        "/proc/cpuinfo": cpu,
        "/proc/meminfo": files.get("meminfo", MEMINFO.format(1000)),
        "/proc/self/status": files.get("status", ""),
        "/sys/fs/cgroup/cpu.max": files.get("cpu_max", "max 100000\n"),
        "/sys/fs/cgroup/memory.max": files.get("memory_max", "max\n"),
        "/proc/sys/kernel/random/boot_id": "abc\n",
    }
    name = WORKER.format(0) + "CPU:0"
    return detect(logical=[name], files={name.partition("/device:")[0]: paths}).devices[0]


AMD = {"vendor_id": "AuthenticAMD"}


@pytest.mark.parametrize(
    ("cpu", "flops"),
    [
        (cpuinfo(1, flags="sse2 avx avx2 fma"), 2.5e9 * 32),
        (cpuinfo(1, flags="sse2 avx avx2 fma avx512f"), 2.5e9 * 64),
        (cpuinfo(1, flags="avx2 fma avx512f", **AMD, **{"cpu family": 25}), 2.5e9 * 32),
        (cpuinfo(1, flags="avx2 fma avx512f", **AMD, **{"cpu family": 26}), 2.5e9 * 64),
        (cpuinfo(1, flags="sse2 avx"), 2.5e9 * 16),
        (cpuinfo(1, flags="sse2"), 2.5e9 * 8),
        (cpuinfo(4, flags="avx2 fma"), 4 * 2.5e9 * 32),
        # Two threads a core: half as many FMA units as logical cores.
        (cpuinfo(4, flags="avx2 fma", siblings=4, **{"cpu cores": 2}), 2 * 2.5e9 * 32),
        (cpuinfo(2, flags="avx2 fma", bogomips=None), 2 * 1.2e9 * 32),
        # aarch64: no frequency, no model name.
        ("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n", 2.5e9 * 16),
    ],
)
def test_flops_of_a_machine(detect, cpu, flops):
    assert worker(detect, cpu).flops == pytest.approx(flops)


def test_model_of_a_machine(detect):
    assert worker(detect, cpuinfo(1, flags="avx2 fma")).model == "Some Xeon (1 core, 80 GFLOP/s)"
    assert worker(detect, "processor: 0\n\nprocessor: 1\n").model == "CPU (2 cores, 80 GFLOP/s)"


def test_models_tell_how_fast_a_device_is(detect):
    """Costs are kept per model."""
    processes = [f"/job:worker/replica:0/task:{task}" for task in range(2)]
    files = {process: {"/proc/cpuinfo": cpuinfo(task + 1)} for task, process in enumerate(processes)}
    topology = detect(logical=[f"{process}/device:CPU:0" for process in processes], files=files)
    one, two = topology.devices
    assert one.model != two.model
    assert 2 * one.flops == two.flops


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_a_busy_worker_is_asked_again(detect, failures):
    process = "/job:worker/replica:0/task:0"
    files = {process: {"/proc/cpuinfo": cpuinfo(4)}}
    topology = detect(logical=[f"{process}/device:CPU:0"], files=files, failures=failures)
    assert topology.devices[0].lanes == 4


def test_affinity_of_a_worker(detect):
    device = worker(detect, cpuinfo(8, flags="avx2 fma"), status="Name:\tpython\nCpus_allowed_list:\t0-1,5\n")
    assert device.lanes == 3
    assert device.flops == pytest.approx(3 * 2.5e9 * 32)


def test_limits_of_a_container(detect):
    device = worker(
        detect,
        cpuinfo(8, flags="avx2 fma"),
        cpu_max="150000 100000\n",
        memory_max="500000\n",
        meminfo=MEMINFO.format(10**6),
    )
    assert device.flops == pytest.approx(1.5 * 2.5e9 * 32)
    assert device.memory == 500_000
    assert worker(detect, cpuinfo(1), meminfo=MEMINFO.format(10)).memory == 10 * 1024
    assert worker(detect, cpuinfo(1), meminfo="").memory is None


def test_memory_bandwidth_has_a_ceiling(detect):
    assert worker(detect, cpuinfo(256)).bandwidth == 204.8e9
    assert worker(detect, cpuinfo(2)).bandwidth == 24e9


def test_worker_that_tells_nothing(detect):
    with pytest.warns(
        UserWarning, match=r"cannot read what machine /job:worker/replica:0/task:0 runs on, and takes it for"
    ):
        topology = detect(logical=["/device:CPU:0", WORKER.format(0) + "CPU:0"])
    assert topology.devices[1].flops == topology.devices[0].flops
    assert topology.link(0, 1) == link_model("Ethernet10G").link


def test_gpus_of_a_worker(detect):
    information = {"/proc/driver/nvidia/gpus/0000:00:04.0/information": "Model: \t\t Tesla V100-SXM2-16GB\nIRQ: 33\n"}
    process = "/job:worker/replica:0/task:0"
    files = {process: {"/proc/cpuinfo": cpuinfo(1)} | information}
    topology = detect(logical=[f"{process}/device:GPU:{index}" for index in range(2)], files=files)
    assert [device.model for device in topology.devices] == ["V100-16GB"] * 2
    assert topology.link(0, 1) == link_model("NVLink2").link


def test_gpu_of_a_worker_without_driver_files(detect):
    process = "/job:worker/replica:0/task:0"
    with pytest.warns(UserWarning, match=r"GPU:0 \(model not known\) and takes it for a T4"):
        detect(logical=[f"{process}/device:GPU:0"], files={process: {"/proc/cpuinfo": cpuinfo(1)}})


def test_too_many_devices(detect):
    with pytest.raises(TopologyError, match=r"^devices has 65 entries: give 1 to 64 devices"):
        detect(logical=[f"/device:CPU:{index}" for index in range(65)])


def test_without_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(
        TopologyError, match=r"^topology='local' needs TensorFlow, which cannot be imported here: install"
    ):
        Topology.parse("local")

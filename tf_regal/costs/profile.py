"""What TensorFlow's profiler says about the ops of a function, in this process and in the workers that it is connected to."""

import collections
import dataclasses
import pathlib
import tempfile
import threading
import time

import tensorflow as tf

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal.devices import detection

_EVERY_OP = 3  # of the profiler's host levels: short ops too
_NS_PER_PS = 1e-3
_BEGAN = "profile_start_time"  # ns since 1970
_WORKERS_BEGIN_S = 0.2
_CLOCK_TRIES = 5
_ALLOCATION, _TEMPORARY, _OUTPUT = "MemoryAllocation", "temp", "output"


@dataclasses.dataclass
class OpSamples:
    """What was seen of one op in one process: durations of its runs in ns, and per allocation kind the bytes of all runs together."""

    durations: list = dataclasses.field(default_factory=list)
    temporary: int = 0
    output: int = 0


class Profiler:
    """Records what runs between `start` and `stop`, on the hosts of all processes that hold one of the devices.

    Ops on GPUs and TPUs run on after their host thread has launched them, which is what is seen here: their costs stay analytic.
    """

    def __init__(self, cores):
        """cores: {process, "/job:worker/replica:0/task:0": how many ops its cores run at once}."""
        local = detection.local_process()
        self._cores, processes = cores, set(cores)
        self._with_local = local in processes
        self._workers = {process: address for process, address in tfp.process_addresses().items() if process in processes - {local}}
        missing = processes - {local} - set(self._workers)
        if missing:
            raise errors.InvalidArgumentError(
                f"devices: nothing is known of how to reach {', '.join(sorted(missing))}. Connect to them with tf.config.experimental_connect_to_cluster first."
            )
        self._directory = tempfile.TemporaryDirectory(prefix="tf_regal_profile_")
        self._thread = self._failure = None

    def start(self, seconds):
        """Begins; workers stop by themselves after `seconds`."""
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=_EVERY_OP, python_tracer_level=0, device_tracer_level=0)
        if self._workers:
            self._thread = threading.Thread(target=self._trace_workers, args=(seconds, options), name="tf_regal profiling", daemon=True)
            self._thread.start()
        if self._with_local:
            try:
                tf.profiler.experimental.start(self._directory.name, options=options)
            except BaseException:  # another profiler is active
                self._directory.cleanup()
                raise
        self._until = time.monotonic() + seconds

    def _trace_workers(self, seconds, options):
        try:
            addresses = ",".join(f"grpc://{address}" for address in self._workers.values())
            tf.profiler.experimental.client.trace(addresses, self._directory.name, int(seconds * 1000), options=options)
        except Exception as error:  # handed to the thread that waits
            self._failure = error

    @property
    def is_recording(self):
        """Whether calls are still being recorded."""
        return time.monotonic() < self._until and (self._thread is None or self._thread.is_alive())

    def stop(self, names):
        """Ends, and returns {process: {op name: OpSamples}} of the ops `names`."""
        return {process: op_samples(space, self._cores[process], frozenset(names)) for process, space in self._end()}

    def stop_events(self, names):
        """Ends, and returns {process: [(op name, start, end)]} of the ops `names`, ns of this process's clock (`time.time_ns`)."""
        found = {process: op_events(space, frozenset(names)) for process, space in self._end()}
        for process in found.keys() & self._workers.keys():
            ahead = clock_offset(f"{process}/device:CPU:0")
            found[process] = [(op, start - ahead, end - ahead) for op, start, end in found[process]]
        return found

    def wait_until_recording(self):
        """Workers begin a little later than this process."""
        if self._thread is not None:
            time.sleep(_WORKERS_BEGIN_S)

    def _end(self):
        if self._with_local:
            tf.profiler.experimental.stop()
        if self._thread is not None:
            self._thread.join()
        try:
            if self._failure is not None:
                raise errors.TfRegalError(f"the workers could not be profiled: {self._failure}") from self._failure
            return list(self._read())
        finally:
            self._directory.cleanup()

    def _read(self):
        """(process, XSpace) of each process."""
        of_address = {address.replace(":", "_"): process for process, address in self._workers.items()}
        for path in pathlib.Path(self._directory.name).rglob("*.xplane.pb"):
            process = of_address.get(path.name.removesuffix(".xplane.pb"), detection.local_process())
            yield process, tfp.xplane_pb2.XSpace.FromString(path.read_bytes())


def clock_offset(device):
    """How far the clock of a device's process is ahead of this one's, int ns; 0 where that is less than what asking for it takes.

    As in the network time protocol: the clock there is read half way between asking and the answer, of several tries the quickest counts.
    """
    tries = []
    for _ in range(_CLOCK_TRIES):
        asked = time.time_ns()
        with tf.init_scope(), tf.device(device):
            there = float(tf.timestamp().numpy())
        took = time.time_ns() - asked
        tries.append((took, round(there * 1e9) - asked - took // 2))
    took, ahead = min(tries)
    return ahead if abs(ahead) > took / 2 else 0


def op_samples(space, cores, names):
    """{op name: OpSamples} of an XSpace, of the ops `names`. Ops that shared the cores with others are charged for their share of the time."""
    found = collections.defaultdict(OpSamples)
    ops, starts, ends = [], [], []
    for name, event, stat_names, start in _events(space):
        if name == _ALLOCATION:
            _add_allocation(found, event, stat_names)
            continue
        op = name.rpartition(":")[0]  # of "name:Type"
        if op in names:
            ops.append(op)
            starts.append(start)
            ends.append(start + event.duration_ps * _NS_PER_PS)
    for op, duration in zip(ops, own_time(starts, ends, cores), strict=True):
        found[op].durations.append(duration)
    return dict(found)


def op_events(space, names):
    """[(op name, start, end)] of the ops `names`, ns since 1970."""
    began = 0  # event times count from the beginning of the recording
    for plane in space.planes:
        stat_names = {key: entry.name for key, entry in plane.stat_metadata.items()}
        began = next((stat.uint64_value for stat in plane.stats if stat_names[stat.metadata_id] == _BEGAN), began)
    found = []
    for name, event, _, start in _events(space):
        op = name.rpartition(":")[0]
        if op in names:
            found.append((op, began + int(start), began + int(start + event.duration_ps * _NS_PER_PS)))
    return found


def _events(space):
    """(name, event, names of its statistics, start in ns) of each event."""
    for plane in space.planes:
        event_names = {key: entry.name for key, entry in plane.event_metadata.items()}
        stat_names = {key: entry.name for key, entry in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                yield event_names[event.metadata_id], event, stat_names, line.timestamp_ns + event.offset_ps * _NS_PER_PS


def own_time(starts, ends, cores):
    """How long each of some intervals would take alone, where at most `cores` of those that overlap make progress at a time, all alike.

    starts, ends: ns, float [n]. Returns ns, list of n floats.
    """
    # What an op that is active all the time has got up to each moment is the same for all.
    moments = sorted([(t, 1, i) for i, t in enumerate(starts)] + [(t, 0, i) for i, t in enumerate(ends)])
    begun, took = [0.0] * len(starts), [0.0] * len(starts)
    got, active, before = 0.0, set(), 0.0
    for moment, is_start, i in moments:
        if active:
            got += (moment - before) * min(1.0, cores / len(active))
        before = moment
        if is_start:
            active.add(i)
            begun[i] = got
        elif i in active:
            active.remove(i)
            took[i] = got - begun[i]
    return took


def _add_allocation(found, event, stat_names):
    stats = {stat_names[stat.metadata_id]: stat for stat in event.stats}
    if "tf_op" not in stats or "region_type" not in stats:
        return

    def text(stat):
        return stat.str_value or stat_names.get(stat.ref_value, "")

    samples, region = found[text(stats["tf_op"])], text(stats["region_type"])
    size = stats["requested_bytes"].int64_value or stats["requested_bytes"].uint64_value
    if region == _TEMPORARY:
        samples.temporary += size
    elif region == _OUTPUT:
        samples.output += size

"""TensorFlow worker processes on this machine, one core each: real separate devices for benchmarks, tests and examples."""

import json
import os
import pathlib
import socket
import subprocess
import sys

from tf_regal import errors

THREADS = 8
"""For ops, per worker: more than ops that are ready at once, so that a tensor is sent as soon as it is there, not when an op of long duration has ended."""

# A worker ends with the process that started it: it waits for the end of its standard input.
_WORKER = """
import json, os, sys
core, job, task, cluster = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {core})
import tensorflow as tf
config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=int(sys.argv[5]))
server = tf.distribute.Server(cluster, job_name=job, task_index=task, protocol="grpc", config=config)
print("ready", flush=True)
for line in sys.stdin:
    if line == "reset\\n":
        tf.config.experimental.reset_memory_stats("CPU:0")
    print(tf.config.experimental.get_memory_info("CPU:0")["peak"], flush=True)
os._exit(0)
"""


class Workers:
    """`count` processes that run tf.distribute.Servers on localhost, each on one core; a context manager.

    Inside, TensorFlow of this process is connected to them; it must not have been used before.

    Attributes:
        devices: their full device names, list of str. pids: of the processes. memory_limit: as given.
    """

    def __init__(self, count=2, memory_limit=None, job="worker"):
        """memory_limit: bytes that the allocator of each hands out at most, as a device's memory would; None: no limit."""
        self._count, self.memory_limit, self._job = count, memory_limit, job
        self._processes = []
        self.devices = [f"/job:{job}/replica:0/task:{task}/device:CPU:0" for task in range(count)]

    @property
    def pids(self):
        return [process.pid for process in self._processes]

    def __enter__(self):
        # All sockets are open at once, so that the ports differ.
        sockets = [socket.socket() for _ in range(self._count)]
        for one in sockets:
            one.bind(("localhost", 0))
        cluster = {self._job: [f"localhost:{one.getsockname()[1]}" for one in sockets]}
        for one in sockets:
            one.close()
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        if self.memory_limit is not None:
            # Of TensorFlow's own allocators, without and with oneDNN: what does not fit is a ResourceExhaustedError, as on a GPU.
            megabytes = str(max(1, self.memory_limit >> 20))
            environment |= {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": megabytes, "TF_MKL_ALLOC_MAX_BYTES": str(self.memory_limit)}
        try:
            for task in range(self._count):
                arguments = [cores[task % len(cores)], self._job, task, json.dumps(cluster), THREADS]
                command = [sys.executable, "-c", _WORKER, *map(str, arguments)]
                self._processes.append(
                    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True)
                )
            self._wait()
            self._connect(cluster)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait(self):
        for task, process in enumerate(self._processes):
            if process.stdout.readline().strip() != "ready":
                raise errors.TfRegalError(f"worker {task} ended before it was ready (exit status {process.wait()}): does {sys.executable} have TensorFlow?")

    def _connect(self, cluster):
        import tensorflow as tf

        # This process's setting holds for its functions on the workers too.
        if tf.config.threading.get_inter_op_parallelism_threads() == 0:
            tf.config.threading.set_inter_op_parallelism_threads(THREADS)
        tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(cluster))

    def kill(self, task):
        """Ends one worker at once, as a crash would."""
        self._processes[task].kill()
        self._processes[task].wait()

    def allocator_peak(self, task, reset=False):
        """The most that a worker's allocator had given out, bytes, since it was last reset; only with a memory_limit does it keep an account of all.

        reset: counts from now on.
        """
        process = self._processes[task]
        process.stdin.write("reset\n" if reset else "peak\n")
        process.stdin.flush()
        if not (answer := process.stdout.readline()):
            raise errors.TfRegalError(f"worker {task} has ended (exit status {process.wait()})")
        return int(answer)

    def resident_bytes(self, task):
        """What a worker has in memory now."""
        pages = pathlib.Path(f"/proc/{self._processes[task].pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def reset_peak(self, task):
        """`peak_bytes` counts from now on."""
        pathlib.Path(f"/proc/{self._processes[task].pid}/clear_refs").write_text("5", encoding="ascii")

    def peak_bytes(self, task):
        """The most that a worker has had in memory since it started, or `reset_peak`."""
        for line in pathlib.Path(f"/proc/{self._processes[task].pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise errors.TfRegalError("this system does not tell the peak of a process")

    def __exit__(self, *exc):
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                stream.close()

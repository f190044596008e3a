"""What TensorFlow's own strategies make of a model's training step, for the table of `real_devices.py`: processes that step when they are told.

MirroredStrategy takes no devices of other processes in TensorFlow 2, so that data parallelism over workers is MultiWorkerMirroredStrategy: each worker takes
half of the batch. ParameterServerStrategy: both workers take whole batches, without waiting for one another, so that results are not those of one worker;
a parameter server and a coordinator come on top, on both cores.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

LABELS = {"multi-worker mirrored": "mirrored", "parameter server": "parameters"}


class StrategyProcesses:
    """`step()` makes one step and returns seconds per step; `losses` what it gave. A context manager."""

    def __init__(self, label, model):
        self._kind = LABELS[label]
        jobs = ["worker", "worker"] if self._kind == "mirrored" else ["worker", "worker", "ps", "chief"]
        cluster = {}
        with contextlib.ExitStack() as stack:
            for job in jobs:
                one = stack.enter_context(contextlib.closing(socket.socket()))
                one.bind(("localhost", 0))
                cluster.setdefault(job, []).append(f"localhost:{one.getsockname()[1]}")
        cores = sorted(os.sched_getaffinity(0))
        self._processes, self.losses, self.seconds = [], [], []
        for number, job in enumerate(jobs):
            task = number if job == "worker" else 0
            config = {"cluster": cluster, "task": {"type": job, "index": task}}
            pinned = [cores[task % len(cores)]] if job == "worker" else cores
            arguments = [sys.executable, __file__, self._kind, model, json.dumps(pinned)]
            environment = {**os.environ, "TF_CONFIG": json.dumps(config), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
            self._processes.append(
                subprocess.Popen(arguments, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            )
        # Those that step: both workers, or the coordinator.
        self._stepping = self._processes if self._kind == "mirrored" else self._processes[-1:]
        try:
            self._answers()
        except BaseException:
            self.__exit__()
            raise

    def _answers(self):
        answers = [process.stdout.readline() for process in self._stepping]
        if not all(answers):
            raise RuntimeError(f"a process of {self._kind!r} ended: run it by hand to see why")
        return [json.loads(answer) for answer in answers]

    def step(self):
        for process in self._stepping:
            process.stdin.write("step\n")
            process.stdin.flush()
        answers = self._answers()
        self.losses.append(answers[0]["loss"])
        return max(answer["seconds"] for answer in answers)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for process in self._processes:
            process.kill()
            process.communicate()


def _steps(step):
    """Says that it is ready, and then makes a step per line of the standard input. step: () → (loss, steps that were made)."""
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        loss, count = step()
        print(json.dumps({"seconds": (time.perf_counter() - began) / count, "loss": loss}), flush=True)


def _train(model, optimizer, share, tensors):
    import tensorflow as tf
    from real_models import nowhere

    *inputs, target = tensors
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model.forward(inputs, nowhere) - target)) * share
    optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables, strict=True))
    return loss


def _make(name):
    import tensorflow as tf
    from real_models import MODELS

    model = MODELS[name]()
    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(model.variables)
    return model, optimizer


def mirrored(name):
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    with strategy.scope():
        model, optimizer = _make(name)
    # Half of the batch each; the mean over halves is the sum of halves of their means.
    tensors = [tf.split(tensor, 2)[task] for tensor in (*model.inputs, model.target)]

    @tf.function
    def step():
        return strategy.reduce("SUM", strategy.run(lambda: _train(model, optimizer, 0.5, tensors)), axis=None)

    _steps(lambda: (float(step()), 1))


def parameters(name):
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type != "chief":
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=8)
        _ = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc", config=config)
        sys.stdin.read()  # until the process that started this one ends
        os._exit(0)
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model, optimizer = _make(name)
    values = [tensor.numpy() for tensor in (*model.inputs, model.target)]

    @tf.function
    def step(iterator):
        return strategy.run(lambda tensors: _train(model, optimizer, 1.0, tensors), args=(next(iterator),))

    iterator = iter(coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.from_tensors(tuple(values)).cache().repeat()))

    def steps():
        results = [coordinator.schedule(step, args=(iterator,)) for _ in range(4)]
        coordinator.join()
        return float(results[-1].fetch()), len(results)

    _steps(steps)


def main():
    kind, model, cores = sys.argv[1:]
    os.sched_setaffinity(0, json.loads(cores))
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(8)  # as of `bench.workers`
    {"mirrored": mirrored, "parameters": parameters}[kind](model)


if __name__ == "__main__":
    main()

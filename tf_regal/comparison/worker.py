"""One run of one method on one graph, and the processes that do runs at the same time."""

import collections
import dataclasses
import multiprocessing
import multiprocessing.connection
import os
import signal
import time
import traceback

import numpy as np

from tf_regal import errors, problem
from tf_regal.comparison import methods
from tf_regal.devices import Topology
from tf_regal.graph import task_graphs
from tf_regal.plans import planner
from tf_regal.search import METHODS, Budget, Task
from tf_regal.search import proposal as proposal_lib
from tf_regal.search.task import replay

_KEPT = 4  # graphs that a process keeps: its runs come graph by graph


@dataclasses.dataclass(frozen=True)
class Job:
    """A run: method and budget (`methods.Spec`), seed, and where.

    path: a JSON file with costs for the topology (see `task_graphs.load`). proposal: path of a proposal file, or None.
    """

    path: str
    topology: Topology
    objective: str
    max_slowdown: float
    spec: methods.Spec
    seed: int
    proposal: str | None = None


@dataclasses.dataclass(frozen=True)
class Failure:
    """A run that gave no result. message: one line; detail: the traceback, or ""."""

    message: str
    detail: str = ""


class WatchedTask(Task):
    """A Task that knows whether its seed was asked for: the result of a method that never did holds for every seed."""

    seed_was_read = False

    @property
    def seed(self):
        self.seed_was_read = True
        return self._seed

    @seed.setter
    def seed(self, value):
        self._seed = value


class Runs:
    """Does runs in this process, and keeps the last graphs."""

    def __init__(self):
        self._prepared = collections.OrderedDict()

    def run(self, job, progress=None):
        """Job → dict: what is simulated (makespan, peak, excess, late) and how it was found.

        excess: bytes above the devices' memory, all devices together; late: ns above the makespan limit. Both 0: feasible.
        The method's candidate is simulated again: its own figures do not count.
        """
        built, default_device, default_makespan = self._problem(job)
        limit = planner.makespan_limit(job.max_slowdown, default_makespan) if job.objective == "peak_memory" else None
        task = WatchedTask(built, job.objective, default_device, makespan_limit=limit, seed=job.seed, progress=progress)
        task.seed_was_read = False
        if job.proposal is not None:
            task.proposal = proposal_lib.load(job.proposal)
        method = methods.resolve(job.spec.method)
        began = time.perf_counter()
        solution = method(task, Budget(job.spec.evaluations, job.spec.seconds, threads=1))
        seconds = time.perf_counter() - began
        run = replay(task, solution, timeline=False)
        if (run.makespan, run.peak.tolist()) != (solution.run.makespan, solution.run.peak.tolist()):
            raise errors.TfRegalError(
                f"method {job.spec.method!r} reports makespan {solution.run.makespan} and peaks {solution.run.peak.tolist()}, but its candidate "
                f"simulates to {run.makespan} and {run.peak.tolist()}; please report this"
            )
        proof = getattr(solution, "proof", None)
        return {
            "makespan": int(run.makespan),
            "peak": int(run.peak.max()),
            "excess": int(np.maximum(run.peak - built.capacity, 0).sum()),
            "late": 0 if limit is None else max(0, int(run.makespan) - limit),
            "seeded": bool(task.seed_was_read),
            "evaluations_made": int(solution.evaluations),
            "time_s": round(seconds, 6),
            "proof": None if proof is None else {name: getattr(value, "item", lambda v=value: v)() for name, value in vars(proof).items()},
        }

    def _problem(self, job):
        key = job.path, job.topology
        if key not in self._prepared:
            built, _ = problem.build(task_graphs.load(job.path), job.topology)
            device = planner.default_placement(built)
            default = METHODS["default"](Task(built, "runtime", device), Budget(1, threads=1))
            self._prepared[key] = built, device, default.run.makespan
            while len(self._prepared) > _KEPT:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(key)
        return self._prepared[key]


def outcomes(n_processes, take):
    """Does jobs in other processes and yields (job, dict or Failure) as they end.

    A process that dies is one failure, and a new one takes its place. All processes have ended when the generator has.

    Args:
        n_processes: how many jobs run at once.
        take: a function that gives the next job, or None where there is none at the moment; asked again after every yield.
    """
    context = multiprocessing.get_context("spawn")  # fork would copy the locks of TensorFlow's threads
    idle, busy = [], {}
    try:
        while True:
            while len(busy) < n_processes and (job := take()) is not None:
                worker = idle.pop() if idle else _Worker(context)
                if not worker.send(job):
                    worker.end()
                    worker = _Worker(context)
                    worker.send(job)
                busy[worker.pipe] = worker, job
            if not busy:
                return
            for pipe in multiprocessing.connection.wait(list(busy)):
                worker, job = busy.pop(pipe)
                try:
                    outcome = pipe.recv()
                    idle.append(worker)
                except (EOFError, OSError):
                    outcome = Failure(f"the process died (exit code {worker.end()}); is there enough memory?")
                yield job, outcome
    finally:
        for worker in [*idle, *(worker for worker, _ in busy.values())]:
            worker.end(at_once=True)


class _Worker:
    def __init__(self, context):
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def send(self, job):
        """Whether the process is still there to take it."""
        try:
            self.pipe.send(job)
        except OSError:
            return False
        return True

    def end(self, at_once=False):
        """Returns the exit code."""
        if at_once:
            self._process.terminate()
        self._process.join()
        code = self._process.exitcode
        self._process.close()
        self.pipe.close()
        return code


def _serve(pipe):
    # Ctrl-C goes to every process of the terminal: the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent, runs = os.getppid(), Runs()

    def progress(evaluations):
        if os.getppid() != parent:  # it was killed: nobody waits for the result
            os._exit(1)

    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        try:
            outcome = runs.run(job, progress)
        except Exception as error:
            outcome = Failure(f"{type(error).__name__}: {error}", "" if isinstance(error, errors.TfRegalError) else traceback.format_exc())
        pipe.send(outcome)

"""What every search method takes and returns."""

import dataclasses
import functools
import os
import time

import numpy as np

from tf_regal import errors, ops
from tf_regal.search import edges
from tf_regal.search.control_edges import NONE, with_edges

OBJECTIVES = ("runtime", "peak_memory")


@dataclasses.dataclass
class Budget:
    """How long a method may search: evaluations (calls of the simulator), seconds, or both, whichever ends first."""

    evaluations: int = 5000
    seconds: float | None = None
    threads: int | None = None

    def __post_init__(self):
        if not isinstance(self.evaluations, int) or isinstance(self.evaluations, bool) or self.evaluations < 1:
            raise errors.InvalidArgumentError(f"evaluations={self.evaluations!r} is not valid; expected a whole number, 1 or more (5000 is usual)")
        if self.seconds is not None and (not isinstance(self.seconds, (int, float)) or isinstance(self.seconds, bool) or not self.seconds > 0):
            raise errors.InvalidArgumentError(f"seconds={self.seconds!r} is not valid; expected a number above 0, or None for no limit")
        if self.threads is None:
            self.threads = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
        self._began = time.monotonic()

    @property
    def elapsed(self):
        return time.monotonic() - self._began

    @property
    def expired(self):
        return self.seconds is not None and self.elapsed >= self.seconds


@dataclasses.dataclass
class Task:
    """A Problem and what to improve.

    objective: "runtime" (makespan, within the devices' memory) or "peak_memory" (largest peak, makespan ≤ makespan_limit ns).
    default_device: int32 [ops]; where TensorFlow would put each op by itself.
    seed: of everything random. proposal: a `proposal.Proposal` for the keys of genetic searches, or None: uniform.
    progress: called with the number of evaluations made since the last call. trace: a `trace.Trace` to fill, or None.
    may_hold: whether a Solution may hold ops back (`Solution.held`): no where no order will be enforced.
    """

    problem: object
    objective: str
    default_device: np.ndarray
    makespan_limit: int | None = None
    seed: int = 0
    progress: object = None
    proposal: object = None
    trace: object = None
    may_hold: bool = True

    def __post_init__(self):
        if self.objective not in OBJECTIVES:
            raise errors.InvalidArgumentError(f"objective={self.objective!r} is not known; expected one of {', '.join(map(repr, OBJECTIVES))}")

    @functools.cached_property
    def simulator(self):
        return make_simulator(self.problem)

    @functools.cached_property
    def edges(self):
        """The problem's edges as lists."""
        return edges.Edges(self.problem)

    def evaluate(self, device, priority, transfer_priority=None, discipline="priority"):
        """Simulates one candidate → Solution whose priorities repeat the schedule (ranks of the starts)."""
        run = self.simulator.run(device, priority, transfer_priority, discipline=discipline, timeline=True)
        ranks, transfer_ranks = schedule_priorities(self.problem, run)
        return Solution(np.asarray(device, np.int32), ranks, transfer_ranks, run)

    def key(self, run):
        """Sort key of a simulated candidate: smaller is better; infeasible ones come last, by how far they exceed the limits."""
        excess = int(np.maximum(run.peak - self.problem.capacity, 0).sum())
        peak = int(run.peak.max())
        if self.objective == "runtime":
            return excess, 0, run.makespan, peak
        late = max(0, run.makespan - self.makespan_limit) if self.makespan_limit is not None else 0
        return excess, late, peak, run.makespan

    def best(self, solutions):
        return min(solutions, key=lambda s: self.key(s.run))


@dataclasses.dataclass
class Solution:
    """A candidate and its simulated run (with timeline).

    device int32 [ops]; priority float32 [ops], higher first; transfer_priority float32 [tensors, devices] or None;
    held: int32 [k, 2], control edges (before, after) that are part of the candidate: a device may wait, to save memory, although an op is ready.
    run: what `Simulator.run(timeline=True)` gave; evaluations made; history float64 [generations, 2] (best, mean) or None.
    alternatives: other good solutions, best first, for where this one does not hold under the orders that TensorFlow may take.
    """

    device: np.ndarray
    priority: np.ndarray
    transfer_priority: np.ndarray | None
    run: object
    evaluations: int = 1
    history: np.ndarray | None = None
    held: np.ndarray = dataclasses.field(default_factory=NONE.copy)
    alternatives: list = dataclasses.field(default_factory=list)


def replay(task, solution, timeline=True):
    """Simulates a Solution again, on the task's problem."""
    simulator = make_simulator(with_edges(task.problem, solution.held)) if len(solution.held) else task.simulator
    return simulator.run(solution.device, solution.priority, solution.transfer_priority, timeline=timeline)


def make_simulator(problem):
    """The native simulator; InvalidProblemError where the arrays do not fit together."""
    try:
        return ops.Simulator(problem)
    except ValueError as error:
        raise errors.InvalidProblemError(f"the problem is not valid: {error}") from error


def schedule_priorities(problem, run):
    """Priorities under which the simulator repeats a timeline: the earlier an op or transfer started, the higher."""
    priority = np.empty(problem.n_ops, np.float32)
    priority[run.start_order] = np.arange(problem.n_ops, 0, -1, dtype=np.float32)
    transfer_priority = None
    if problem.n_devices > 1:
        transfer_priority = np.zeros((problem.n_tensors, problem.n_devices), np.float32)
        k = len(run.transfers)
        transfer_priority[run.transfers[:, 0], run.transfers[:, 2]] = np.arange(k, 0, -1, dtype=np.float32)
    return priority, transfer_priority

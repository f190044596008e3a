"""The best candidate of a method that simulates its candidates one by one."""

import numpy as np

from tf_regal.search.task import Solution
from tf_regal.search.trace import figure

_TELL_EVERY = 100


class Incumbent:
    """Simulates candidates within a budget, counts them and keeps the best.

    The last simulation, which repeats the best candidate with its timeline, is not counted: it is no new candidate.
    """

    def __init__(self, task, budget):
        self.task, self.budget = task, budget
        self.evaluations, self.key = 0, None
        self._best, self._told = None, 0

    @property
    def done(self):
        """Whether the budget is used up; never before the first candidate, so that there is a solution."""
        return self.evaluations >= self.budget.evaluations or (self.evaluations > 0 and self.budget.expired)

    def offer(self, device, priority, transfer_priority=None):
        """Simulates a candidate (arrays as `Simulator.run` takes them, not changed afterwards) and returns its key; smaller is better."""
        run = self.task.simulator.run(device, priority, transfer_priority)
        return self._count(run, (device, priority, transfer_priority))

    def schedule(self, device, discipline):
        """The same for a placement without priorities, under a discipline of the ready queue → (Solution, key)."""
        solution = self.task.evaluate(device, np.zeros(self.task.problem.n_ops, np.float32), discipline=discipline)
        return solution, self._count(solution.run, (solution.device, solution.priority, solution.transfer_priority))

    def solution(self):
        """The best candidate with its timeline."""
        self._tell()
        return Solution(*self._best, self.task.simulator.run(*self._best, timeline=True), evaluations=self.evaluations)

    def _count(self, run, candidate):
        self.evaluations += 1
        key = self.task.key(run)
        if self.key is None or key < self.key:
            self.key, self._best = key, candidate
            if self.task.trace is not None:
                self.task.trace.point("search", self.evaluations, figure(self.task, run))
        if self.evaluations - self._told >= _TELL_EVERY or self.done:
            self._tell()
        return key

    def _tell(self):
        if self.task.progress is not None and self.evaluations > self._told:
            self.task.progress(self.evaluations - self._told)
        self._told = self.evaluations

"""What a policy is trained and validated on: graphs of files, on topologies, with noise; and the reward of a proposal for one of them."""

import collections
import dataclasses
import threading

import numpy as np

from tf_regal import problem as problem_lib
from tf_regal.devices import Topology
from tf_regal.graph import task_graphs
from tf_regal.plans import planner
from tf_regal.policy import features
from tf_regal.search import Budget, brkga

MAX_SLOWDOWN = 1.5
_NOISE = 0.25  # standard deviation of the logarithms of noise factors
_PENALTY = 10.0
_KEPT = 4096   # instances in memory


@dataclasses.dataclass(frozen=True)
class Instance:
    """One problem. path: a graph file with costs; topology: as for `Topology.parse`; variant: 0, or the seed of noise on durations and sizes."""

    path: str
    topology: str
    objective: str
    variant: int = 0

    @property
    def name(self):
        return f"{self.path}|{self.topology}|{self.variant}"


class Prepared:
    """An instance's Task and features, made once."""

    def __init__(self, instance):
        built, _ = problem_lib.build(task_graphs.load(instance.path), Topology.parse(instance.topology))
        if instance.variant:
            built = noisy(built, instance.variant)
        self.task = planner.comparison_task(built, instance.objective, MAX_SLOWDOWN)
        _ = self.task.simulator  # before threads ask for it at the same time
        self._features, self._lock = None, threading.Lock()

    @property
    def features(self):
        with self._lock:
            if self._features is None:
                self._features = features.extract(self.task)
            return self._features

    def search(self, proposal, seed, evaluations):
        """Plain BRKGA with a Proposal (None: uniform) on one thread → its value (see `value`)."""
        task = dataclasses.replace(self.task, seed=seed, proposal=proposal)
        task.simulator = self.task.simulator
        return self.value(brkga.run(task, Budget(evaluations, threads=1)).run)

    def value(self, run):
        """The objective (ns or bytes), and more where the run breaks a limit: ten times the share by which it does."""
        p = self.task.problem
        over = (np.maximum(run.peak - p.capacity, 0) / p.capacity).sum()
        if self.task.makespan_limit is not None:
            over += max(0.0, run.makespan / self.task.makespan_limit - 1)
        value = run.makespan if self.task.objective == "runtime" else run.peak.max()
        return float(value) * (1 + _PENALTY * float(over))


_prepared = collections.OrderedDict()
_lock = threading.Lock()


def prepared(instance):
    """The Prepared of an instance; the last few thousand are kept. Safe in threads."""
    with _lock:
        if instance not in _prepared:
            _prepared[instance] = Prepared(instance)
            while len(_prepared) > _KEPT:
                _prepared.popitem(last=False)
        _prepared.move_to_end(instance)
        return _prepared[instance]


def noisy(problem, seed):
    """A copy with noise on durations and sizes.

    Tensors of one size keep one size, since buffers are only reused where they fit. Odd seeds also keep ops together that took equally long; with
    even ones each op has a factor of its own.
    """
    rng = np.random.default_rng(seed)
    allowed = problem.duration >= 0
    factor = np.exp(rng.normal(0, _NOISE, problem.n_ops))
    if seed % 2:
        _, kind = np.unique(problem.duration, axis=0, return_inverse=True)
        factor = factor[kind.reshape(-1)]
    duration = np.where(allowed, np.rint(problem.duration * factor[:, None]), problem.duration).astype(np.int64)
    _, kind = np.unique(problem.size, return_inverse=True)
    scale = np.exp(rng.normal(0, _NOISE, problem.n_tensors))[kind.reshape(-1)]
    return problem.replace(duration=duration, size=np.rint(problem.size * scale).astype(np.int64))

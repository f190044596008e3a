"""How a search went, for people to look at: the best figure after so many evaluations, what the seeds gave, what a policy's proposal is worth."""

import dataclasses

import numpy as np

from tf_regal.search.proposal import table

_SAMPLES = 32
SAMPLED_EVALUATIONS = 2 * _SAMPLES


@dataclasses.dataclass
class Trace:
    """Figures of the objective: ns for "runtime", bytes for "peak_memory", also of candidates that do not fit.

    points: rows of (phase, evaluations so far, best, mean or None: of the candidates of a generation). seeds: rows of (what it is, makespan ns, largest
    peak bytes, whether it fits). samples: {"proposed", "uniform": figures of that many candidates}, empty without a proposal.
    """

    points: list = dataclasses.field(default_factory=list)
    seeds: list = dataclasses.field(default_factory=list)
    samples: dict = dataclasses.field(default_factory=dict)

    def point(self, phase, evaluations, best, mean=None):
        self.points.append((phase, int(evaluations), float(best), None if mean is None else float(mean)))

    def generations(self, phase, population, new, before, made, history):
        """history float64 [generations, 2] of a genetic search that has begun after `before` evaluations and has made `made`: best and mean. The first
        generation has `population` of them, each other one `new`, the last perhaps fewer."""
        for i, (best, mean) in enumerate(history.tolist()):
            self.point(phase, before + min(population + i * new, made), best, mean)

    def seed(self, label, run):
        self.seeds.append((label, int(run.makespan), int(run.peak.max()), bool(run.feasible)))

    def to_json(self):
        """A dict of JSON values."""
        return dataclasses.asdict(self)


def figure(task, run):
    """What the objective counts of a run: ns or bytes."""
    return int(run.makespan if task.objective == "runtime" else max(run.peak))


def sample_proposal(task):
    """{"proposed", "uniform": figures of candidates drawn from the task's proposal, and uniformly}; not among the search's evaluations."""
    rng = np.random.default_rng(task.seed)
    problem = task.problem
    found = {"proposed": [], "uniform": []}
    for _ in range(_SAMPLES):
        affinity, priority = (rng.random(shape, np.float32) for shape in ((problem.n_groups, problem.n_devices), problem.n_ops))
        keys = {"uniform": (affinity, priority)}
        keys["proposed"] = _drawn(affinity, task.proposal.of_groups(problem)), _drawn(priority, task.proposal.priority)
        for name, (of_groups, of_ops) in keys.items():
            device = np.where(problem.allowed, of_groups, -1).argmax(axis=1)[problem.group].astype(np.int32)
            found[name].append(figure(task, task.simulator.run(device, of_ops)))
    return found


def _drawn(uniform, choice):
    """Samples of the distributions `choice` (as of `Proposal`) by their inverse distribution functions."""
    inverse = table()
    at = uniform * (inverse.shape[1] - 1)
    low = np.minimum(at.astype(np.int64), inverse.shape[1] - 2)
    share = at - low
    return ((1 - share) * inverse[choice, low] + share * inverse[choice, low + 1]).astype(np.float32)

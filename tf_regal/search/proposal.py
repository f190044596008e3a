"""Proposals: from which Beta distributions a search draws its keys, instead of uniformly. What a policy gives, and what heuristics can give by hand.

A key of the chromosome (an op's affinity for a device, or its priority) gets one of CHOICES: the uniform distribution, or a Beta with a mean out
of MEANS and a concentration out of CONCENTRATIONS. For a mean μ and a concentration ν the Beta has α = μν and β = (1 − μ)ν, and its variance is
μ(1 − μ) / (ν + 1). As in REGAL (arXiv 1905.02494) both are quantised, and its exact uniform, which no such pair gives, is a choice of its own.
"""

import dataclasses
import functools
import math

import numpy as np

from tf_regal import errors

MEANS = tuple((i + 0.5) / 32 for i in range(32))
CONCENTRATIONS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0)
UNIFORM = len(MEANS) * len(CONCENTRATIONS)
CHOICES = UNIFORM + 1

_POINTS = 257       # of the inverse distribution functions
_GRID = 4001        # of the integration
_GRID_END = 60.0    # in logits; what is beyond rounds to 0 and 1


def choice(mean, level):
    """The nearest choices. mean: float array, 0 to 1; level: float array, 0 (uniform), 1 (the first of CONCENTRATIONS), 2, … → uint16, same shape."""
    mean, level = np.asarray(mean, float), np.asarray(level, float)
    return encode(np.clip(np.floor(mean * len(MEANS)), 0, len(MEANS) - 1), np.clip(np.rint(level), 0, len(CONCENTRATIONS)))


def encode(at, level):
    """Choices from indices into MEANS and levels as of `choice`, whole numbers → uint16."""
    return np.where(level == 0, UNIFORM, (level - 1) * len(MEANS) + at).astype(np.uint16)


@functools.cache
def table():
    """The inverse distribution functions of all choices at equally spaced probabilities, float32 [CHOICES, 257]."""
    nu, mu = (x.reshape(-1, 1) for x in np.meshgrid(CONCENTRATIONS, MEANS, indexing="ij"))
    a, b = mu * nu, (1 - mu) * nu
    # Over the logit t of x the density is x^a (1 − x)^b / B(a, b): smooth, and without the poles that a Beta below 1 has at its ends.
    t = np.linspace(-_GRID_END, _GRID_END, _GRID)
    log_beta = np.vectorize(math.lgamma)(a) + np.vectorize(math.lgamma)(b) - np.vectorize(math.lgamma)(nu)
    density = np.exp(-a * np.logaddexp(0, -t) - b * np.logaddexp(0, t) - log_beta)
    below = np.exp(-a * _GRID_END - log_beta) / a  # left of the grid, where the density is e^(at) / B
    mass = np.concatenate([below, below + np.cumsum((density[:, 1:] + density[:, :-1]) / 2 * (t[1] - t[0]), axis=1)], axis=1)
    mass /= mass[:, -1:] + np.exp(-b * _GRID_END - log_beta) / b
    x = 1 / (1 + np.exp(-t))
    uniform = np.linspace(0, 1, _POINTS)
    # The true ends are 0 and 1 whatever the shape, where a narrow Beta never gets: they are taken at a 64th of a step from there.
    wanted = np.clip(uniform, uniform[1] / 64, 1 - uniform[1] / 64)
    result = np.array([*(np.interp(wanted, row, x) for row in mass), uniform], np.float32)
    return np.clip(result, 0, 1)


@dataclasses.dataclass(frozen=True)
class Proposal:
    """Distributions for the keys of one problem.

    affinity: uint16 [ops, devices], priority: uint16 [ops]; choices, see the module. Of an affinity only that of a colocation group's largest op counts.
    name: where it comes from, such as "runtime" (a shipped policy) or a path.
    """

    affinity: np.ndarray
    priority: np.ndarray
    name: str = ""

    def __post_init__(self):
        affinity, priority = np.asarray(self.affinity), np.asarray(self.priority)
        for label, value, dims in (("affinity", affinity, 2), ("priority", priority, 1)):
            if value.ndim != dims or value.dtype.kind not in "iu" or (value.size and (value.min() < 0 or value.max() >= CHOICES)):
                raise errors.InvalidArgumentError(
                    f"{label} of a proposal: expected {dims} dimensions of whole numbers from 0 to {CHOICES - 1}, got {value.dtype} {value.shape}"
                )
        object.__setattr__(self, "affinity", affinity.astype(np.uint16))
        object.__setattr__(self, "priority", priority.astype(np.uint16))

    def of_groups(self, problem):
        """The choices for the groups' affinities, uint16 [groups, devices]."""
        return self.affinity[deciders(problem)]

    def keys(self, problem):
        """What `ops.Brkga` takes: (choices of the groups' affinities and the ops' priorities, the table)."""
        if self.affinity.shape != (problem.n_ops, problem.n_devices) or self.priority.shape != (problem.n_ops,):
            raise errors.InvalidArgumentError(
                f"the proposal is for {self.affinity.shape[0]} ops on {self.affinity.shape[1]} devices; the problem has {problem.n_ops} on {problem.n_devices}"
            )
        if problem.n_devices == 1:
            return self.priority, table()
        return np.concatenate([self.of_groups(problem).reshape(-1), self.priority]), table()

    def centre(self, problem):
        """The candidate in the middle of the distributions: (device int32 [ops], priority float32 [ops])."""
        means = np.append(np.tile(MEANS, len(CONCENTRATIONS)), 0.5)
        affinity = np.where(problem.allowed, means[self.of_groups(problem)], -1.0)
        return affinity.argmax(axis=1)[problem.group].astype(np.int32), means[self.priority].astype(np.float32)


def save(proposal, path):
    """Writes a Proposal to a file (.npz)."""
    np.savez(path, affinity=proposal.affinity, priority=proposal.priority, name=np.array(proposal.name))


def load(path):
    """The Proposal that `save` wrote."""
    with np.load(path) as saved:
        return Proposal(saved["affinity"], saved["priority"], str(saved["name"]))


def deciders(problem):
    """The op of each colocation group that decides where it goes: the one with the largest outputs and state, then the longest. int32 [groups]."""
    held = problem.persistent.astype(float)
    np.add.at(held, problem.producer, problem.size)
    order = np.lexsort([-np.arange(problem.n_ops), problem.duration.max(axis=1), held, problem.group])
    result = np.zeros(problem.n_groups, np.int32)  # a number without ops has no keys that count
    result[problem.group[order]] = order  # the last one of each group stays
    return result

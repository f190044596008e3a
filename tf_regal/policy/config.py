"""What decides a training: settings with their defaults, and the names of what can be chosen. Needs no TensorFlow, so that the command line can show them."""

import dataclasses

ALGORITHMS = {
    "pgpe": "exploration in the weights",
    "reinforce": "the REGAL paper's, a draw per choice",
    "imitation": "of the full search's solutions",
}
NETWORKS = {
    "graph": "messages along the edges in both directions",
    "pairs": "likewise, with a state per op and device: what is known of the neighbours' devices travels, too",
    "sequence": "the ops in topological order, read by a recurrent network: GAS of the REGAL paper",
    "constant": "the same distributions for every graph, by the device's position alone: a control",
}


@dataclasses.dataclass(frozen=True)
class Config:
    """Kept beside the checkpoint; a training only goes on with the same one (steps and patience apart).

    graphs, validation: paths. topologies: one that is there twice is drawn twice as often. batch: graphs per step. samples: pairs of draws per step and
    graph (pgpe), or half the samples per graph (reinforce). evaluations: of every rollout. rate: Adam's, None: the algorithm's own.
    start: a training directory whose best weights are the first ones; without it `primed` says whether the network begins with what a person would
    propose (`network.prime`).
    """

    graphs: tuple
    validation: tuple
    objective: str = "runtime"
    algorithm: str = "pgpe"
    topologies: tuple = ("paper", "2xA100-40GB", "4xV100-16GB")
    network: str = "graph"
    width: int = 16
    rounds: int = 4
    steps: int = 1000
    batch: int = 4
    samples: int = 8
    evaluations: int = 500
    variants: int = 4
    max_ops: int = 2500
    rate: float | None = None
    clip: float = 10.0
    entropy: float = 0.0
    seed: int = 0
    start: str | None = None
    primed: bool = True
    validate_every: int = 25
    validation_size: int = 24
    validation_evaluations: int = 1000
    patience: int = 20


MAY_CHANGE = ("steps", "patience")
"""What a training that goes on may have another value of."""


def default(name):
    """The default of a setting."""
    return next(field.default for field in dataclasses.fields(Config) if field.name == name)

"""The native core: the simulator (docs/simulator.md), list heuristics, BRKGA and local search over it.

Wrong input raises ValueError with the name of the array or option; see `_core.pyi` for the signatures.
"""

from tf_regal.ops._core import (
    Brkga,
    LocalSearch,
    Simulator,
    depth_first_order,
    downward_rank,
    earliest_finish_placement,
    earliest_start_schedule,
    estimate_schedule,
    memory_greedy_order,
    partition,
    upward_rank,
)

__all__ = [
    "Brkga",
    "LocalSearch",
    "Simulator",
    "depth_first_order",
    "downward_rank",
    "earliest_finish_placement",
    "earliest_start_schedule",
    "estimate_schedule",
    "memory_greedy_order",
    "partition",
    "upward_rank",
]

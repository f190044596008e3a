from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

class Simulator:
    """Scores candidates on one problem. `problem`: any object with the arrays of docs/simulator.md as attributes."""

    def __init__(self, problem: Any) -> None: ...
    def run(
        self,
        device: NDArray[np.int32],
        priority: NDArray[np.float32],
        transfer_priority: NDArray[np.float32] | None = None,
        discipline: Literal["priority", "fifo", "lifo"] = "priority",
        timeline: bool = False,
    ) -> SimpleNamespace:
        """makespan (ns), peak int64 [devices] (bytes), transfer_bytes, feasible; with `timeline` also device, start, end int64 [ops] (ns),
        start_order int32 [ops], transfers int64 [k, 5] (tensor, source, destination, start, end), memory: per device int64 [k, 2],
        allocations int64 [k, 4] (ns, device, buffer, bytes; negative: freed), persistent memory apart."""
    def bounds(self) -> tuple[int, int]:
        """Lower bounds of the makespan (ns) and of the largest per-device peak (bytes)."""
    @property
    def allowed(self) -> NDArray[np.uint64]:
        """Mask of the devices where every op of the group may run, [groups]."""
    @property
    def topological_order(self) -> NDArray[np.int32]: ...

def upward_rank(simulator: Simulator, transfer_weight: float = 1.0) -> NDArray[np.float64]:
    """Longest path from the start of each op to the end, ns, [ops]."""

def downward_rank(simulator: Simulator, transfer_weight: float = 1.0) -> NDArray[np.float64]:
    """Longest path from the beginning to the start of each op, ns, [ops]."""

def earliest_finish_placement(simulator: Simulator, rank: NDArray[np.float64]) -> NDArray[np.int32]:
    """HEFT's placement, [ops]: ops by falling rank, each group where its first op ends first."""

def earliest_start_schedule(simulator: Simulator, rank: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(device [ops], order [ops]): of all pairs of a ready op and a device the one that starts first is next, ties to the higher rank."""

def memory_greedy_order(simulator: Simulator, rank: NDArray[np.float64], noise: NDArray[np.float64] | None = None) -> NDArray[np.int32]:
    """Always the ready op that adds least memory (times its noise) next, [ops]."""

def depth_first_order(simulator: Simulator, noise: NDArray[np.float64] | None = None) -> NDArray[np.int32]:
    """Post-order from the results, the largest tree (times its op's noise) first, [ops]."""

def partition(
    ptr: NDArray[np.int32],
    target: NDArray[np.int32],
    edge_weight: NDArray[np.float64],
    vertex_weight: NDArray[np.float64],
    shares: Sequence[float],
    imbalance: float,
    seed: int = 0,
) -> NDArray[np.int32]:
    """The part of every vertex, [vertices]: few and light edges between parts that have their shares of the weight, ± imbalance of the whole.

    ptr [vertices + 1], target and edge_weight [2 × edges]: an undirected graph as CSR. shares: positive, with sum 1, one per part.
    """

def estimate_schedule(simulator: Simulator, order: NDArray[np.int32], device: NDArray[np.int32], hold: int = 0) -> tuple[int, int]:
    """(makespan in ns, largest peak in bytes) as the local search estimates them in one pass over the ops in a topological order.

    Exact on one device with one lane; makespans of simulated orders are exact where transfers take no time.
    """

class LocalSearch:
    """Late-acceptance hill climbing in several chains; deterministic for a seed and the numbers of evaluations, on any number of threads."""

    def __init__(
        self,
        simulator: Simulator,
        *,
        objective: Literal["runtime", "peak_memory"],
        makespan_limit: int | None = None,
        chains: int = 4,
        memory: int = 10,
        slack: float = 0.0,
        horizon: int = 5000,
        proposals: int = 1,
        hold: bool = False,
        seed: int = 0,
        threads: int = 1,
        starts: Iterable[tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32] | None]],
    ) -> None:
        """slack: a candidate worse than the best by less than this share is taken too; the share falls to 0 at `horizon` evaluations.

        proposals: of so many changes of a schedule the one with the best estimate is simulated (in three steps of four).
        hold: for "peak_memory" with more than one device, whether ops may be held back (see `best`).
        """
    def improve(self, evaluations: int) -> None:
        """Goes on until this many candidates have been simulated in total. Releases the GIL."""
    @property
    def evaluations(self) -> int: ...
    @property
    def best(self) -> SimpleNamespace:
        """As of Brkga, and hold (int): the op at place i starts after that at place i − hold has ended, as if an edge joined them; 0: not so."""

class Brkga:
    """BRKGA with REGAL's chromosome; deterministic for a seed and a number of evaluations, on any number of threads."""

    def __init__(
        self,
        simulator: Simulator,
        *,
        objective: Literal["runtime", "peak_memory"],
        makespan_limit: int | None = None,
        population: int = 100,
        elites: int = 20,
        mutants: int = 15,
        rho: float = 0.7,
        seed: int = 0,
        threads: int = 1,
        seeds: Iterable[tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32] | None]] = (),
        proposal: tuple[NDArray[np.uint16], NDArray[np.float32]] | None = None,
        proposal_share: float = 1.0,
    ) -> None:
        """proposal: (choice, table): for every affinity ([groups * devices], none with one device) and then every op's priority ([ops]) a row
        of the table, float32 [choices, points]: the inverse of a distribution function at equally spaced probabilities from 0 to 1.
        proposal_share: of the candidates that are drawn, 0 to 1; the others are drawn uniformly."""
    def evolve(self, evaluations: int) -> None:
        """Goes on until this many candidates have been simulated in total. Releases the GIL."""
    @property
    def evaluations(self) -> int: ...
    @property
    def best(self) -> SimpleNamespace:
        """device, priority, transfer_priority (or None), makespan, peak, transfer_bytes, feasible."""
    @property
    def history(self) -> NDArray[np.float64]:
        """Best and mean value of the objective per generation, [generations, 2]."""

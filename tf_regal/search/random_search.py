"""Random search: candidates with uniform random keys, as in BRKGA's first population; the best of them."""

import dataclasses

from tf_regal.search import brkga


def run(task, budget):
    """Affinities, priorities and transfer priorities all uniform and independent."""
    return run_proposed(dataclasses.replace(task, proposal=None), budget)


def run_proposed(task, budget):
    """IDRS, the instance-dependent random search of the REGAL paper (arXiv 1905.02494): as `run`, but drawn from the task's proposal; no generation follows."""
    # One elite, the best so far, and nothing but mutants: every generation is drawn anew, and memory is that of one generation.
    return brkga.run(task, budget, population=100, elites=1, mutants=99, proposal_share=1.0)

"""Random search: candidates with uniform random keys, as in BRKGA's first population; the best of them."""

from tf_regal.search import brkga


def run(task, budget):
    """Affinities, priorities and transfer priorities all uniform and independent."""
    # One elite, the best so far, and nothing but mutants: every generation is drawn anew, and memory is that of one generation.
    return brkga.run(task, budget, population=100, elites=1, mutants=99)

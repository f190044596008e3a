"""BRKGA with tuned parameters: a baseline of the REGAL paper (arXiv 1905.02494), which tunes them for each graph; here they are tuned once."""

from tf_regal.search import brkga

# What `python -m benchmarks.tune_brkga` found on training graphs only (benchmarks/results/tune_brkga.json).
PARAMETERS = {
    "runtime": {"population": 70, "elites": 22, "mutants": 1, "rho": 0.65},
    "peak_memory": {"population": 50, "elites": 4, "mutants": 7, "rho": 0.8},
}


def run(task, budget):
    """Plain BRKGA with the population, elites, mutants and share of elite keys that were best on the training graphs for the objective."""
    return brkga.run(task, budget, **PARAMETERS[task.objective])

"""Comparisons in this process: generated graphs in files, and runs without other processes."""

from tf_regal.bench import graphs
from tf_regal.comparison import worker


def write_graphs(folder, sizes=(24, 30), batches=(1, 2)):
    """Writes small graphs "m24-training-b1.json" and so on; returns the folder."""
    for size in sizes:
        for batch in batches:
            graphs.layered(size, seed=batch).save(str(folder / f"m{size}-training-b{batch}.json"))
    return folder


def outcomes(n_processes, take):
    """`worker.outcomes` without processes."""
    runs = worker.Runs()
    while (job := take()) is not None:
        try:
            outcome = runs.run(job)
        except Exception as error:
            outcome = worker.Failure(f"{type(error).__name__}: {error}")
        yield job, outcome

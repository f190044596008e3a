"""Captures the graphs of one model: the child process of `python -m benchmarks.zoo build`."""

import sys
import time

import numpy as np
import tensorflow as tf

from benchmarks import zoo
from benchmarks.zoo import families, steps
from tf_regal.costs import analytic
from tf_regal.devices import Topology
from tf_regal.graph import builder, runnable


def run(name):
    """Builds and stores what is missing of the model `name`; prints one line per graph."""
    model = families.MODELS[name]
    for mode in zoo.MODES:
        for batch in model.batches(mode):
            graph_name = f"{name}-{mode}-b{batch}"
            target = zoo.path(graph_name)
            if target.is_file():
                continue
            began = time.monotonic()
            graph = capture(model, mode, batch)
            # Renamed at the end: a build that was stopped leaves no half of a file.
            partial = target.with_name("partial-" + target.name)
            graph.save(partial)
            partial.rename(target)
            size = target.stat().st_size
            print(f"{graph_name}: {graph.n_ops} ops, {graph.n_tensors} tensors, {size / 1000:.1f} kB, {time.monotonic() - began:.1f} s", flush=True)


def capture(model, mode, batch):
    """The OpGraph of a `registry.Model` with costs for `zoo.TOPOLOGIES` and names that do not depend on the process."""
    # Names of layers and functions are counted per process, and Grappler sorts by name: every graph starts from nothing.
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(1)
    topologies = [Topology.parse(text) for text in zoo.TOPOLOGIES]
    captured = builder.capture(runnable.from_concrete(steps.concrete(model, mode, batch)), default_device=topologies[0].names[0])
    for topology in topologies:
        analytic.add_costs(captured, topology)
    return shortened(captured.graph)


def shortened(graph):
    """Names an op by its type and number within the type, so that what is stored is small and says nothing of the process."""
    counts, names = {}, []
    for op_type in graph.types:
        counts[op_type] = counts.get(op_type, -1) + 1
        names.append(f"{op_type}_{counts[op_type]}")
    graph.names = names
    graph.members = [[name] for name in names]
    graph.outputs = []
    graph.scratch = {model: bytes_ for model, bytes_ in graph.scratch.items() if np.any(bytes_)}
    return graph


if __name__ == "__main__":
    run(sys.argv[1])

"""Scratch memory: what a kernel allocates for itself while it runs.

Measured with TensorFlow's memory profile of training steps (InceptionV3, NASNetMobile; CPU with oneDNN): kernels asked for nothing beyond
their outputs, convolutions and their gradients included, but for max pooling, which keeps one byte per output element (the position of the maximum).
"""

import numpy as np

_BYTES_PER_FLOAT = 4


def estimate(capture, spec):
    """Bytes of scratch per op on a device of this model, int64 [ops]. Known for CPUs only."""
    graph = capture.graph
    result = np.zeros(graph.n_ops, np.int64)
    if spec.kind == "CPU":
        pools = np.array([t == "MaxPool" for t in graph.types], bool)
        of_pools = pools[graph.producer]
        np.add.at(result, graph.producer[of_pools], graph.size[of_pools] // _BYTES_PER_FLOAT)
    return result

"""Generated graphs: layered DAGs of any size that look to the simulator as a training step does."""

import numpy as np

from tf_regal.graph.opgraph import OpGraph
from tf_regal.problem import LIFETIME_NORMAL, LIFETIME_OUTPUT, LIFETIME_PERSISTENT, csr

_WIDTH = 8  # ops per layer
_REACH = 4  # layers that inputs come from
_SKIPS = 0.1  # of the inputs come from anywhere before, as activations do in a backward pass


def layered(n_ops, seed=0):
    """A random layered DAG with costs for every device (model "*").

    Layers of 8 ops; every op has one output of 4 kB to 4 MB, and takes 1 to 3 tensors, nine of ten from the 4 layers before and the others from anywhere
    before. Durations 5 to 500 µs. A tenth of the ops holds a variable, in a group with its first consumer; a tenth of the outputs is a view, a third may
    take an input's buffer over; every twentieth op has scratch memory, and as many wait for another one by a control edge.

    Args:
        n_ops: 1 or more.
        seed: of everything random.

    Returns:
        OpGraph; the same for the same arguments.
    """
    rng = np.random.default_rng([n_ops, seed])
    layer = np.arange(n_ops) // _WIDTH
    is_variable = rng.random(n_ops) < 0.1
    size = (4096 * np.exp2(rng.integers(0, 11, n_ops))).astype(np.int64)
    duration = np.where(is_variable, 0, 5000 * np.exp(rng.random(n_ops) * np.log(100))).astype(np.int64)
    lifetime = np.where(is_variable, LIFETIME_PERSISTENT, LIFETIME_NORMAL).astype(np.uint8)
    view, group = np.full(n_ops, -1, np.int32), np.arange(n_ops)
    inputs, control, reuse = [], [], []
    consumed = np.zeros(n_ops, bool)
    for op in range(n_ops):
        first = max(0, layer[op] - _REACH) * _WIDTH
        last = layer[op] * _WIDTH
        if is_variable[op] or last == 0:
            taken = []
        else:
            near = rng.integers(first, last, rng.integers(1, 4))
            anywhere = rng.integers(0, last, len(near))
            taken = list(dict.fromkeys(np.where(rng.random(len(near)) < _SKIPS, anywhere, near).tolist()))
        for tensor in taken:
            if is_variable[tensor] and not consumed[tensor]:
                group[tensor] = group[op]
            consumed[tensor] = True
        plain = [tensor for tensor in taken if not is_variable[tensor]]
        kind = rng.random()
        reuse.append([])
        if plain and kind < 0.1:
            view[op], size[op] = plain[0], size[plain[0]]
        elif plain and kind < 0.43:
            size[op] = size[plain[0]]
            reuse[-1] = [plain[0]]
        control.append([int(rng.integers(first, last))] if last and rng.random() < 0.05 else [])
        inputs.append(taken)
    lifetime[~consumed & ~is_variable] = LIFETIME_OUTPUT
    _, group = np.unique(group, return_inverse=True)
    pointers = {}
    for name, lists in (("reuse", reuse), ("input", inputs), ("control", control)):
        pointers[f"{name}_ptr"], pointers[f"{name}_idx"] = csr(lists)
    names = [f"op{i}" for i in range(n_ops)]
    return OpGraph(
        names=names, types=["Variable" if v else "Op" for v in is_variable], devices=[""] * n_ops, kinds=[["CPU", "GPU", "TPU"]] * n_ops,
        members=[[name] for name in names], group=group, persistent=np.where(is_variable, size, 0), orderable=~is_variable,
        producer=np.arange(n_ops), size=size, view=view, lifetime=lifetime, fingerprint=f"layered-{n_ops}-{seed}", durations={"*": duration},
        scratch={"*": np.where(rng.random(n_ops) < 0.05, size, 0)}, **pointers,
    )  # fmt: skip

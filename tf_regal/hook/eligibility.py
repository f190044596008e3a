"""Which functions are worth planning, and why others are left alone."""

import tensorflow as tf

from tf_regal import _tf_private as tfp
from tf_regal.graph import semantics


def reason_to_skip(concrete, settings):
    """Why a new ConcreteFunction is not planned, or None. Looked at while it is being traced."""
    if concrete.graph.outer_graph is not None and tfp.ops.inside_function():
        return "it is called by another function that is being traced, and planned as a part of that one"
    attributes = concrete._attrs
    if "_tf_data_function" in attributes:
        return "it belongs to a tf.data pipeline"
    if "_XlaMustCompile" in attributes and attributes["_XlaMustCompile"].b:
        return "it is compiled by XLA (jit_compile=True), which ignores devices and order"
    if tf.distribute.has_strategy():
        return f"it runs under tf.distribute ({type(tf.distribute.get_strategy()).__name__}), which places it"
    n_ops, library = _count_ops(concrete)
    if n_ops < settings.min_ops:
        return f"it has {n_ops} ops, fewer than min_ops={settings.min_ops}"
    types = {node.op for function in library for node in function.node_def} | {op.type for op in concrete.graph.get_operations()}
    collective = sorted(t for t in types if semantics.is_collective(t))
    if collective:
        return f"it holds collective ops ({', '.join(collective[:3])}), which wait for other devices"
    return None


def _count_ops(concrete):
    """Ops of the function and of those that it calls, arguments and constants apart; and the called functions."""
    graph = concrete.graph
    library = [f.cached_definition for f in getattr(graph, "_functions", {}).values()]
    count = sum(op.type not in ("Placeholder", "Const", "NoOp", "Identity") for op in graph.get_operations())
    for function in library:
        count += sum(node.op not in ("Const", "NoOp", "Identity") for node in function.node_def)
    return count, library

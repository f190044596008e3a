"""Which functions are worth planning, and why others are left alone."""

import tensorflow as tf

from tf_regal import _tf_private as tfp
from tf_regal.graph import semantics

_NO_STATE_IN_KERNEL = frozenset(("Assert", "EagerPyFunc", "Print", "PrintV2", "PyFunc", "RestoreV2", "SaveV2", "Timestamp", "VarHandleOp", "WriteFile"))


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


def state_in_kernels(graph):
    """The type of an op that keeps something in its kernel (a seeded random stream, a queue of its own), or None."""
    called = [node for function in _library(graph) for node in function.node_def]
    for op_type, attribute in [*((op.type, op.get_attr) for op in graph.get_operations()), *((n.op, n.attr.__getitem__) for n in called)]:
        op_def = tfp.op_def_registry.get(op_type)
        if op_def is None or not op_def.is_stateful or op_type in _NO_STATE_IN_KERNEL or semantics.calls_functions(op_type):
            continue
        if any(arg.type == tf.resource.as_datatype_enum for arg in op_def.input_arg):
            continue  # the state is the resource
        names = [attr.name for attr in op_def.attr]
        if "seed" in names and "seed2" in names and not any(_number(attribute(name)) for name in ("seed", "seed2")):
            continue  # of another seed in every process: nobody can tell
        return op_type
    return None


def only_reads(graph):
    """Whether a call can be repeated: nothing in the function or those that it calls has a side effect or a state that a call changes."""
    types = {op.type for op in graph.get_operations()} | {node.op for function in _library(graph) for node in function.node_def}
    for op_type in types:
        op_def = tfp.op_def_registry.get(op_type)
        if op_def is None or (op_def.is_stateful and op_type not in semantics.VARIABLE_READS and not semantics.calls_functions(op_type)):
            return False
    return True


def _number(attribute):
    return attribute if isinstance(attribute, int) else attribute.i


def _library(graph):
    return [f.cached_definition for f in getattr(graph, "_functions", {}).values()]


def _count_ops(concrete):
    """Ops of the function and of those that it calls, arguments and constants apart; and the called functions."""
    graph = concrete.graph
    library = _library(graph)
    count = sum(op.type not in ("Placeholder", "Const", "NoOp", "Identity") for op in graph.get_operations())
    for function in library:
        count += sum(node.op not in ("Const", "NoOp", "Identity") for node in function.node_def)
    return count, library

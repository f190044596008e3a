"""What will run: a GraphDef with `_Arg` and `_Retval` nodes, after Grappler, with what is known of its arguments.

Two sources (design facts 2 and 3): TensorFlow's own graph, collected on a first call (exact), and Grappler run on the
traced graph (close; where nothing has been or can be run).
"""

import dataclasses

import tensorflow as tf

from tf_regal import _tf_private as tfp
from tf_regal import errors

_MAX_GRAPPLER_RUNS = 3
_RESOURCE = tf.resource.as_datatype_enum


@dataclasses.dataclass
class Runnable:
    """A graph after Grappler.

    graph_def: `_Arg` nodes (attribute `index`) are the arguments, captures included, `_Retval` nodes the results; called functions are inlined.
    requested: {node name: device} that the user chose with tf.device.
    arg_shapes: per argument a tuple of ints and Nones, or None where even the rank is unknown.
    arg_handles: per argument (dtype enum, tuple) of the variable behind a resource handle, or None.
    source: "runtime" (collected from TensorFlow) or "grappler" (optimised by us).
    variables: {argument: tf.Variable} of the resource handles among the arguments.
    free_results: indices of results that may stay on the device where they are made; the others go where TensorFlow would give them.
    """

    graph_def: object
    requested: dict
    arg_shapes: list
    arg_handles: list
    source: str
    free_results: frozenset = frozenset()
    variables: dict = dataclasses.field(default_factory=dict)


def shape_tuple(shape):
    """A TensorShape or TensorShapeProto → tuple with None for unknown dimensions, or None for an unknown rank."""
    shape = tf.TensorShape(shape)
    return None if shape.rank is None else tuple(shape.as_list())


def argument_facts(graph, args=None):
    """(arg_shapes, arg_handles) of a FuncGraph's inputs, captures included; `args`: the tensors of a call, which know more."""
    shapes, handles = [], []
    for i, placeholder in enumerate(graph.inputs):
        handle = None
        if placeholder.dtype == tf.resource:
            data = tfp.handle_data_util.get_resource_handle_data(placeholder)
            if data is not None and data.is_set and len(data.shape_and_type) == 1:
                item = data.shape_and_type[0]
                handle = (item.dtype, shape_tuple(item.shape))
        shape = shape_tuple(placeholder.shape)
        if args is not None and isinstance(args[i], tf.Tensor) and placeholder.dtype != tf.resource:
            shape = shape_tuple(args[i].shape)
        shapes.append(shape)
        handles.append(handle)
    return shapes, handles


def argument_variables(graph, args):
    """{argument: tf.Variable} of those handles among `args` (the flat arguments of a FuncGraph, captures included) that belong to a variable of its own."""
    by_handle = {id(v.handle): v for v in tfp.live_variables(graph) if tfp.is_plain_variable(v)}
    return {i: by_handle[id(arg)] for i, arg in enumerate(args) if id(arg) in by_handle}


def requested_devices(graph):
    """{name after inlining: device string} of the ops for which the user chose a device, in nested functions too."""
    graph_def = graph.as_graph_def()
    library = {f.signature.name: f for f in graph_def.library.function}
    found = {}

    def visit(nodes, prefix, depth):
        for node in nodes:
            if node.device:
                found[prefix + node.name] = node.device
            if node.op in ("PartitionedCall", "StatefulPartitionedCall") and depth < 16:
                function = library.get(node.attr["f"].func.name)
                if function is not None:
                    visit(function.node_def, f"{prefix}{node.name}/", depth + 1)

    visit(graph_def.node, "", 0)
    return found


def from_runtime(function, function_graphs, args, free_results=frozenset()):
    """The graph that TensorFlow itself makes for an AtomicFunction with `args` (tensors, captures included).

    `function_graphs`: what `_tf_private.instantiate` gave. `free_results`: see `Runnable`. Raises GraphError where none of them belongs to the function.
    """
    signature = function.cached_definition.signature
    names, n_outputs = [arg.name for arg in signature.input_arg], len(signature.output_arg)
    candidates = []
    for collected in function_graphs:
        graph_def = collected.post_optimization_graph
        arguments = [(n.attr["index"].i, n.name) for n in graph_def.node if n.op == "_Arg"]
        results = sorted(n.attr["index"].i for n in graph_def.node if n.op == "_Retval")
        # Arguments that nothing needs may be gone. The names tell this function from others that were instantiated meanwhile.
        is_ours = len({i for i, _ in arguments}) == len(arguments) and all(i < len(names) and names[i] == name for i, name in arguments)
        if is_ours and results == list(range(n_outputs)):
            candidates.append(graph_def)
    if not candidates:
        raise errors.GraphError("TensorFlow made no graph for this function that could be told from others")
    graph_def = max(candidates, key=lambda g: len(g.node))
    shapes, handles = argument_facts(function.graph, args)
    variables = argument_variables(function.graph, args)
    return Runnable(graph_def, requested_devices(function.graph), shapes, handles, "runtime", free_results, variables)


def stand_in_arguments(concrete, shapes, batch_size=1):
    """Zeros for the arguments of a ConcreteFunction, followed by its captures; None where a resource or variant is asked for."""
    captured = list(concrete.captured_inputs)
    args = []
    for placeholder, shape in zip(concrete.graph.inputs[: len(concrete.graph.inputs) - len(captured)], shapes, strict=False):
        if placeholder.dtype in (tf.resource, tf.variant):
            return None
        args.append(tf.zeros([batch_size if d is None else d for d in shape or ()], placeholder.dtype))
    return args + captured


def from_concrete(concrete):
    """The graph of a ConcreteFunction after Grappler, which is run here, once, with the settings of this process."""
    shapes, handles = argument_facts(concrete.graph)
    runnable = optimize(
        concrete.graph.as_graph_def(add_shapes=True),
        [t.op.name for t in concrete.graph.inputs],
        # Taking a gradient adds outputs to the traced graph; the signature has the function's own.
        [t.name for t in concrete.graph.outputs[: len(concrete._inference_function.cached_definition.signature.output_arg)]],
        [op.name for op in concrete.graph.control_outputs],
        shapes,
        handles,
    )
    captured = list(concrete.captured_inputs)
    first = len(concrete.graph.inputs) - len(captured)
    runnable.variables = {first + i: v for i, v in argument_variables(concrete.graph, captured).items()}
    return runnable


def optimize(graph_def, input_names, output_names, control_names=(), arg_shapes=None, arg_handles=None):
    """Runs Grappler on a GraphDef whose arguments are the placeholders `input_names` and whose results are the tensors `output_names`.

    Raises GraphError where a name is not in the graph or Grappler refuses it.
    """
    graph_def = _copy(graph_def)
    nodes = {node.name: node for node in graph_def.node}
    input_names = [name.split(":")[0] for name in input_names]
    for what, names in (("inputs", input_names), ("outputs", output_names)):
        for name in names:
            if name.split(":")[0] not in nodes:
                raise errors.GraphError(f"{what} names {name!r}, which is not in the graph. Nodes: {', '.join(list(nodes)[:8])}, …")
    arg_shapes = list(arg_shapes) if arg_shapes is not None else [_placeholder_shape(nodes[name]) for name in input_names]
    arg_handles = list(arg_handles) if arg_handles is not None else [None] * len(input_names)
    dtypes = []
    for name, shape, handle in zip(input_names, arg_shapes, arg_handles, strict=True):
        dtypes.append(nodes[name].attr["dtype"].type)
        make_source(nodes[name], dtypes[-1], shape, handle)
    outputs = [name if ":" in name else name + ":0" for name in output_names]
    optimized = _run_grappler(graph_def, [*dict.fromkeys(outputs), *control_names], input_names)
    index = {name: i for i, name in enumerate(input_names)}
    for node in optimized.node:
        if node.name in index:
            _make_arg(node, index[node.name], dtypes[index[node.name]])
    taken = {node.name for node in optimized.node}
    output_types = _output_types(optimized)
    for i, name in enumerate(outputs):
        retval = optimized.node.add(op="_Retval", name=_fresh(f"retval_{i}", taken))
        producer, port = name.split(":")
        retval.input.append(name if port != "0" else producer)
        retval.attr["T"].type = output_types(producer, int(port))
        retval.attr["index"].i = i
    requested = {node.name: node.device for node in optimized.node if node.device}
    return Runnable(optimized, requested, arg_shapes, arg_handles, "grappler")


def _run_grappler(graph_def, fetches, input_names):
    """What Grappler makes of a graph, without what cannot be imported again."""
    optimized = _optimized(graph_def, fetches, input_names)
    if any(node.op == "_FusedBatchNormEx" for node in optimized.node) and not _can_be_imported(optimized):
        # On some processors the remapper fuses a normalisation whose number of channels the fused op's own shape function refuses.
        return _optimized(graph_def, fetches, input_names, remapping=False)
    return optimized


def _can_be_imported(graph_def):
    try:
        with tf.Graph().as_default():
            tf.import_graph_def(graph_def, name="")
    except ValueError:
        return False
    return True


def _optimized(graph_def, fetches, input_names, remapping=True):
    """Grappler until nothing changes any more (its own limit is two iterations), so that running it again leaves a plan intact."""
    config = tfp.config_pb2.ConfigProto()
    config.CopyFrom(tfp.context.context().config)
    rewriter = config.graph_options.rewrite_options
    rewriter.min_graph_nodes = -1  # small graphs too: the runtime does not skip them either
    rewriter.fail_on_optimizer_errors = False
    if not remapping:
        rewriter.remapping = tfp.rewriter_config_pb2.RewriterConfig.OFF
    for _ in range(_MAX_GRAPPLER_RUNS):
        # A fetch is never pruned or renamed: the results' producers and the side effects.
        meta = tfp.meta_graph_pb2.MetaGraphDef(graph_def=graph_def)
        meta.collection_def["train_op"].node_list.value.extend([*fetches, *input_names])
        try:
            optimized = tfp.tf_optimizer.OptimizeGraph(config, meta, verbose=False)
        except Exception as error:
            raise errors.GraphError(f"Grappler could not optimize the graph: {error}. Check that every op of the graph is known here.") from error
        _drop_waits_for(optimized, set(input_names))
        while _bypass_inlining(optimized):
            pass
        if len(optimized.node) == len(graph_def.node):
            break
        graph_def = optimized
    return optimized


def _drop_waits_for(graph_def, arguments):
    """Takes out control edges from arguments: they are there before anything runs."""
    for node in graph_def.node:
        kept = [text for text in node.input if not (text.startswith("^") and text[1:] in arguments)]
        if len(kept) < len(node.input):
            del node.input[:]
            node.input.extend(kept)


def _bypass_inlining(graph_def):
    """Takes out Identity and NoOp nodes that inlining puts at a function's border ("Func/…"): the runtime drops them too.

    Returns whether there were any: an Identity that waits for such a NoOp can only go after it.
    """
    data, control = {}, {}
    for node in graph_def.node:
        if not node.name.startswith("Func/"):
            continue
        if node.op == "Identity" and len(node.input) == 1:
            data[node.name] = node.input[0]
        elif node.op == "NoOp":
            control[node.name] = list(node.input)
    if not data and not control:
        return False

    def resolve(text):
        """The inputs that stand for one input."""
        if text.startswith("^"):
            name = text[1:]
            if name in control:
                return [r for source in control[name] for r in resolve(source)]
            return resolve("^" + data[name].split(":")[0]) if name in data else [text]
        name = text.split(":")[0]
        return resolve(data[name]) if name in data else [text]

    kept = []
    for node in graph_def.node:
        if node.name in data or node.name in control:
            continue
        inputs = [r for text in node.input for r in resolve(text)]
        values = [text for text in inputs if not text.startswith("^")]
        waits = dict.fromkeys(text for text in inputs if text.startswith("^"))
        copy = tfp.node_def_pb2.NodeDef()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend([*values, *waits])
        kept.append(copy)
    del graph_def.node[:]
    graph_def.node.extend(kept)
    return True


def _copy(graph_def):
    copy = tfp.graph_pb2.GraphDef()
    copy.CopyFrom(graph_def)
    return copy


def _fresh(name, taken):
    candidate, i = name, 0
    while candidate in taken:
        i += 1
        candidate = f"{name}_{i}"
    taken.add(candidate)
    return candidate


def _placeholder_shape(node):
    return shape_tuple(node.attr["shape"].shape) if node.attr["shape"].HasField("shape") else None


def make_source(node, dtype, shape, handle):
    """Turns a placeholder into one of which shape inference knows all that we know. A resource becomes a VarHandleOp: shape
    inference then sees the variable's shape, which it loses with a placeholder (design fact 4)."""
    device = node.device
    node.ClearField("attr")
    node.ClearField("input")
    node.device = device
    if dtype == _RESOURCE and handle is not None:
        node.op = "VarHandleOp"
        node.attr["dtype"].type = handle[0]
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(handle[1]).as_proto())
        # Distinct names: Grappler merges equal VarHandleOps.
        node.attr["shared_name"].s = node.name.encode()
    elif dtype == _RESOURCE or shape is None:
        node.op = "Placeholder"
        node.attr["dtype"].type = dtype
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())
    else:
        # Grappler takes a Placeholder for a feed, of which it believes no shape. This op has a shape, no input and no value.
        node.op = "ImmutableConst"
        node.attr["dtype"].type = dtype
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())
        node.attr["memory_region_name"].s = node.name.encode()


def _make_arg(node, index, dtype):
    device = node.device
    node.ClearField("attr")
    node.op, node.device = "_Arg", device
    node.attr["T"].type = dtype
    node.attr["index"].i = index


def _output_types(graph_def):
    nodes = {node.name: node for node in graph_def.node}

    def output_type(name, port):
        types = node_output_types(nodes[name])
        if not 0 <= port < len(types):
            raise errors.GraphError(f"outputs names {name}:{port}; node {name!r} has {len(types)} outputs, counted from 0")
        return types[port]

    return output_type


def node_output_types(node):
    """DataType enums of a node's outputs, one per port."""
    if node.op == "_Arg":
        return [node.attr["T"].type]
    op_def = tfp.op_def_registry.get(node.op)
    if op_def is None:
        raise errors.GraphError(f"op type {node.op!r} of node {node.name!r} is not registered in this process. Import the library that defines it.")
    types = []
    for arg in op_def.output_arg:
        if arg.type_list_attr:
            types.extend(node.attr[arg.type_list_attr].list.type)
            continue
        dtype = arg.type or node.attr[arg.type_attr].type
        types.extend([dtype] * (node.attr[arg.number_attr].i if arg.number_attr else 1))
    return types

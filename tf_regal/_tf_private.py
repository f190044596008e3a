"""The only file that imports private TensorFlow modules; the others take them from here.

What is needed of each, so that a change in TensorFlow can be judged (`check()` tests it, tests/test_tf_private.py calls it):

- `transform.CONCRETE_FUNCTION_CALLBACKS`: list of callables that TensorFlow calls with every new ConcreteFunction.
- `atomic_function.from_function_def(function_def, function_type)`: registers a FunctionDef and makes it callable;
  `AtomicFunction.call_preflattened(args)` calls it, `.definition`, `.function_type`, `.name` describe it.
- `ConcreteFunction._inference_function`: the AtomicFunction that runs where no tape watches the arguments.
- `ConcreteFunction._select_forward_and_backward_functions(args, possible_gradient_type, executing_eagerly)`: an object with `_functions` and `forward()`,
  which makes the pair of functions for a call that a tape watches; `_TapeGradientFunctions._forward`, `._backward`, `._num_inference_outputs`,
  `._num_forwardprop_outputs`.
- `polymorphic_function.Function._clone(python_function)`: a tf.function with the same options over another Python function.
- `context.context()`: `function_call_options`, `enable_graph_collection`, `disable_graph_collection`, `export_run_metadata`.
- `cancellation.CancellationManager`, `execute.execute_with_cancellation(…)`: see `instantiate`.
- `context.FunctionCallOptions(executor_type, config_proto)`.
- `op_def_registry.get(op_type)`: the OpDef, with argument names and statefulness.
- `grappler_item.Item(meta_graph)`, `GetOpProperties()`; `grappler_cluster.Cluster(devices)`, `MeasureCosts(item)`, `GetSupportedDevices(item)`.
- `kernels.get_registered_kernels_for_op(op_type)`: device types and attribute constraints of the kernels.
- `tf_decorator.make_decorator(target, decorated)`: what tf.function itself puts around its result, so that it looks like its target.
- `tf_optimizer.OptimizeGraph(config, meta_graph)`.
- `handle_data_util.get_resource_handle_data(tensor)`: dtype and shape of the variable behind a handle.
- `loader_impl.parse_saved_model(path)`: the SavedModel proto.
- `resource_variable_ops.ResourceVariable`: `_handle` (the resource), `_unique_id` (ends in a number that grows with every variable).
- `ConcreteFunction._captured_inputs`, `_first_order_tape_functions`, `_higher_order_tape_functions`; `FuncGraph._function_captures`:
  `_by_val_internal`, `_by_val_external`, `_by_val_tracetype`, dicts whose keys are the ids of the captured tensors.
- `FuncGraph._weak_variables`: weak references to the variables that it uses.
- `context.context()._server_def`: the cluster, or None. `xplane_pb2.XSpace`: what the profiler writes.
- `ops.inside_function()`: true while an outer function is being traced.
"""

import contextlib
import gc
import itertools
import threading
import uuid

import tensorflow as tf
from tensorflow.core.framework import cost_graph_pb2, function_pb2, graph_pb2, node_def_pb2, tensor_shape_pb2, types_pb2
from tensorflow.core.protobuf import config_pb2, device_properties_pb2, meta_graph_pb2, rewriter_config_pb2, saved_model_pb2
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import cancellation, context, execute
from tensorflow.python.eager.polymorphic_function import atomic_function, concrete_function, polymorphic_function, transform
from tensorflow.python.framework import func_graph, kernels, op_def_registry, ops
from tensorflow.python.grappler import cluster as grappler_cluster
from tensorflow.python.grappler import item as grappler_item
from tensorflow.python.grappler import tf_optimizer
from tensorflow.python.ops import handle_data_util, resource_variable_ops
from tensorflow.python.saved_model import loader_impl
from tensorflow.python.util import tf_decorator
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tf_regal import errors

SUPPORTED_VERSIONS = ("2.19", "2.20", "2.21")

__all__ = [
    "Call",
    "atomic_function",
    "call_options",
    "capturing",
    "creation_number",
    "check",
    "concrete_function",
    "config_pb2",
    "context",
    "copy_function",
    "cost_graph_pb2",
    "device_properties_pb2",
    "executing_eagerly",
    "from_here",
    "func_graph",
    "function_pb2",
    "grappler_cluster",
    "grappler_item",
    "graph_pb2",
    "handle_data_util",
    "instantiate",
    "is_local",
    "is_own",
    "is_plain_variable",
    "kernels",
    "live_variables",
    "loader_impl",
    "needs_sync",
    "meta_graph_pb2",
    "no_tape",
    "node_def_pb2",
    "op_def_registry",
    "own_functions",
    "ops",
    "polymorphic_function",
    "planned_call_options",
    "process_addresses",
    "replace_captures",
    "resource_variable_ops",
    "rewriter_config_pb2",
    "saved_model_pb2",
    "set_handle",
    "short_name",
    "tensor_shape_pb2",
    "tf_decorator",
    "tf_optimizer",
    "transform",
    "types_pb2",
    "was_moved",
    "xplane_pb2",
]


def check():
    """Raises UnsupportedVersionError where a private name is missing or TensorFlow's version was not tested."""
    version = ".".join(tf.__version__.split(".")[:2])
    if version not in SUPPORTED_VERSIONS:
        raise errors.UnsupportedVersionError(
            f"tensorflow {tf.__version__} is installed; tf-regal supports {', '.join(SUPPORTED_VERSIONS)}. Install one of these."
        )
    needed = {
        transform: ["CONCRETE_FUNCTION_CALLBACKS"],
        atomic_function: ["from_function_def"],
        atomic_function.AtomicFunction: ["call_preflattened", "definition", "function_type", "name"],
        context.Context: ["function_call_options", "enable_graph_collection", "disable_graph_collection", "export_run_metadata"],
        context: ["FunctionCallOptions"],
        polymorphic_function.Function: ["_clone", "python_function"],
        concrete_function: ["_TapeGradientFunctions"],
        concrete_function.ConcreteFunction: ["_select_forward_and_backward_functions"],
        cancellation: ["CancellationManager"],
        execute: ["execute_with_cancellation"],
        op_def_registry: ["get"],
        grappler_item.Item: ["GetOpProperties"],
        grappler_cluster.Cluster: ["MeasureCosts", "GetSupportedDevices", "Shutdown"],
        kernels: ["get_registered_kernels_for_op"],
        tf_decorator: ["make_decorator"],
        tf_optimizer: ["OptimizeGraph"],
        handle_data_util: ["get_resource_handle_data"],
        resource_variable_ops: ["BaseResourceVariable", "ResourceVariable"],
        loader_impl: ["parse_saved_model"],
        ops: ["inside_function"],
    }
    for owner, names in needed.items():
        for name in names:
            if not hasattr(owner, name):
                raise errors.UnsupportedVersionError(
                    f"tensorflow {tf.__version__} has no {owner.__name__}.{name}, which tf-regal needs. Supported: {', '.join(SUPPORTED_VERSIONS)}."
                )


def instantiate(function, args, options=None, *, copy=True):
    """Makes TensorFlow place, optimize and partition a function, without running any of its ops.

    A call under a token that is cancelled already goes as far as that and stops ("cancelled before it was started"); the graphs are handed
    over at the end of the next call that succeeds. TensorFlow makes the graphs of a definition once: where the function may have been called
    before, a copy of the definition under a name of its own is called; without a copy the next call of the function finds it made.

    Args:
        function: AtomicFunction.
        args: its flat arguments, captures included; only dtypes, devices and shapes matter.
        options: FunctionCallOptions, default: this thread's.

    Returns:
        list of RunMetadata.FunctionGraphs: the function's, and whatever else TensorFlow instantiated meanwhile.

    Raises whatever TensorFlow raises where the function cannot be placed; UnsupportedVersionError where this trick does not hold.
    """
    with _COLLECTING, own_functions(), from_here():
        _check_instantiate()
        return _instantiate(copy_function(function) if copy else function, args, options or context.context().function_call_options)


def copy_function(function):
    """An AtomicFunction with the same definition under another name."""
    definition = function_pb2.FunctionDef()
    definition.CopyFrom(function.definition)
    definition.signature.name = f"{definition.signature.name}_copy_{uuid.uuid4().hex[:12]}"
    copy = atomic_function.from_function_def(definition, function.function_type)
    copy._cached_graph = function._cached_graph  # else one is generated where an error is explained
    copy._children = function.children
    return copy


class Call:
    """The arguments of a call and what else decides about it, kept for another thread."""

    def __init__(self, args):
        ctx = context.context()
        self.args = list(args)
        self._thread, self._device, self._options = threading.get_ident(), ctx.device_name, ctx.function_call_options

    @contextlib.contextmanager
    def context(self):
        """Runs the body as the call would run in its own thread."""
        if threading.get_ident() == self._thread:
            yield
        else:
            with tf.device(self._device or None), call_options(self._options):
                yield


# TensorFlow collects graphs for the whole process at once.
_COLLECTING = threading.RLock()
_probes = {}
_own = threading.local()


@contextlib.contextmanager
def own_functions():
    """Functions traced in the body are tf-regal's own: nobody plans them."""
    before = is_own()
    _own.active = True
    try:
        yield
    finally:
        _own.active = before


def is_own():
    """Whether this thread is tracing a function of tf-regal's own."""
    return getattr(_own, "active", False)


def _instantiate(function, args, options):
    ctx = context.context()
    token = cancellation.CancellationManager()
    token.start_cancel()
    # Once before as well: TensorFlow may make the probe's own graphs anew (another device scope, emptied caches), and would collect them.
    _flush()
    ctx.enable_graph_collection()
    try:
        # Not by cancellation.CancellationManagerContext: it holds for the whole process, and would cancel other threads' calls.
        with contextlib.suppress(tf.errors.CancelledError):
            execute.execute_with_cancellation(
                function.name.decode(), num_outputs=len(function.function_type.flat_outputs), inputs=list(args),
                attrs=tuple(itertools.chain(*options.as_attrs().items())), ctx=ctx, cancellation_manager=token,
            )
        _flush()
    finally:
        metadata = ctx.export_run_metadata()
        ctx.disable_graph_collection()
    return list(metadata.function_graphs) if metadata is not None else []


def _flush():
    """A call that succeeds."""
    with tf.init_scope(), tf.device(None):
        if "flush" not in _probes:
            _probes["flush"] = tf.function(lambda x: x).get_concrete_function(tf.TensorSpec([], tf.float32))
        _probes["flush"](tf.constant(0.0))


def _check_instantiate():
    """Tries `_instantiate` once on a function with a side effect: it must give the graphs and not run."""
    if _probes.get("checked"):
        return
    with tf.init_scope(), tf.device(None), tf.device("CPU:0"):
        variable = tf.Variable(0.0)
        probe = tf.function(lambda: variable.assign_add(1.0)).get_concrete_function()
        graphs = _instantiate(probe._inference_function, list(probe.captured_inputs), context.context().function_call_options)
        if variable.numpy() != 0.0 or not any(any(n.op == "AssignAddVariableOp" for n in g.post_optimization_graph.node) for g in graphs):
            raise errors.UnsupportedVersionError(
                f"tensorflow {tf.__version__} does not make a function's graphs without running it, which tf-regal needs. "
                f"Supported: {', '.join(SUPPORTED_VERSIONS)}."
            )
    _probes["checked"] = True


def from_here():
    """Within it functions are called by this process, which gives their ops to the devices; in the scope of another process's device that one would."""
    ctx = context.context()
    process = (ctx.device_name or "").partition("/device:")[0]
    if process in ("", None, _this_process()) or _this_process() is None:
        return contextlib.nullcontext()
    return tf.device(None)


def _this_process():
    """The job and task of this process in its cluster; None without one."""
    server = context.context()._server_def
    return None if server is None else f"/job:{server.job_name}/replica:0/task:{server.task_index}"


def is_local(device):
    """Whether a full device name is of this process."""
    return device.partition("/device:")[0] in (_this_process(), "/job:localhost/replica:0/task:0")


def short_name(device):
    """"GPU:0" of a full device name."""
    return device.partition("/device:")[2]


def needs_sync():
    """Whether a call can return before it is done: on other processes and on accelerators."""
    return _this_process() is not None or any(d.device_type != "CPU" for d in tf.config.list_logical_devices())


def executing_eagerly():
    """Whether ops run at once; false while a function is traced."""
    return context.context().executing_eagerly()


def planned_call_options():
    """Call options under which TensorFlow does not run Grappler on a function (it ran before the planning already)."""
    options = context.FunctionCallOptions(executor_type="", config_proto=None)
    # None means: the rewriter is disabled (FunctionCallOptions.as_attrs); the constructor replaces None by an empty config.
    options._config_proto_serialized = None
    return options


@contextlib.contextmanager
def call_options(options):
    """Runs the body with these FunctionCallOptions in this thread."""
    ctx = context.context()
    before = ctx.function_call_options
    ctx.function_call_options = options
    try:
        yield
    finally:
        ctx.function_call_options = before


def is_plain_variable(variable):
    """Whether a variable is one resource on one device: those of tf.distribute are several, and those of a graph under construction none yet."""
    return isinstance(variable, resource_variable_ops.BaseResourceVariable) and isinstance(variable.handle, ops.EagerTensor)


def live_variables(graph):
    """The variables of a FuncGraph that still exist; `FuncGraph.variables` raises where one is gone."""
    return [variable for reference in graph._weak_variables if (variable := reference()) is not None]


def creation_number(variable):
    """Grows with every variable that the process makes."""
    digits = variable._unique_id.rpartition("_")[2]
    return int(digits) if digits.isdigit() else -1


def was_moved(variable):
    """Whether `set_handle` was called for the variable."""
    return getattr(variable, "_tf_regal_moved", False)


def set_handle(variable, handle):
    """Makes a variable stand for another resource."""
    variable._handle = handle
    variable._tf_regal_moved = True


def capturing(handles):
    """(ConcreteFunctions, FuncGraphs) of this process that captured one of the handles (EagerTensors)."""
    wanted = {id(handle) for handle in handles}
    functions, graphs = [], []
    for thing in gc.get_objects():
        kind = type(thing)  # not isinstance: it would ask proxies and mocks, which may do anything
        if kind is concrete_function.ConcreteFunction:
            if any(id(tensor) in wanted for tensor in thing._captured_inputs):
                functions.append(thing)
        elif issubclass(kind, func_graph.FuncGraph) and not wanted.isdisjoint(thing._function_captures._by_val_external):
            graphs.append(thing)
    return functions, graphs


def replace_captures(functions, graphs, new):
    """Lets functions and graphs capture other tensors of the same kind. new: {id of the old one: tensor}."""
    for function in functions:
        function._captured_inputs = type(function._captured_inputs)(new.get(id(t), t) for t in function._captured_inputs)
        # Made for calls that a tape watches, of the graph that captured the old ones.
        function._first_order_tape_functions.clear()
        function._higher_order_tape_functions.clear()
    for graph in graphs:
        captures = graph._function_captures
        internal, external, kinds = captures._by_val_internal, captures._by_val_external, captures._by_val_tracetype
        entries = [(key, internal[key], external[key], kinds[key]) for key in external]
        for table in (internal, external, kinds):
            table.clear()
        for key, inside, outside, kind in entries:
            outside = new.get(key, outside)
            key = id(new[key]) if key in new else key
            internal[key], external[key], kinds[key] = inside, outside, kind


def process_addresses():
    """{job and task: "host:port"} of the processes that this one is connected to."""
    server = context.context()._server_def
    jobs = server.cluster.job if server is not None else ()
    return {f"/job:{job.name}/replica:0/task:{task}": address for job in jobs for task, address in job.tasks.items()}


def no_tape():
    """Whether no GradientTape is recording in this thread."""
    return bool(pywrap_tfe.TFE_Py_TapeSetIsEmpty())

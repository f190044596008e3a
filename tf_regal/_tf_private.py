"""The only file that imports private TensorFlow modules; the others take them from here.

What is needed of each, so that a change in TensorFlow can be judged (`check()` tests it, tests/test_tf_private.py calls it):

- `transform.CONCRETE_FUNCTION_CALLBACKS`: list of callables that TensorFlow calls with every new ConcreteFunction.
- `atomic_function.from_function_def(function_def, function_type)`: registers a FunctionDef and makes it callable;
  `AtomicFunction.call_preflattened(args)` calls it, `.definition`, `.function_type`, `.name` describe it.
- `ConcreteFunction._inference_function`: the AtomicFunction that runs where no tape watches the arguments.
- `polymorphic_function.Function._clone(python_function)`: a tf.function with the same options over another Python function.
- `context.context()`: `function_call_options`, `enable_graph_collection`, `disable_graph_collection`, `export_run_metadata`.
- `context.FunctionCallOptions(executor_type, config_proto)`.
- `op_def_registry.get(op_type)`: the OpDef, with argument names and statefulness.
- `grappler_item.Item(meta_graph)`, `GetOpProperties()`; `grappler_cluster.Cluster(devices)`, `MeasureCosts(item)`, `GetSupportedDevices(item)`.
- `tf_optimizer.OptimizeGraph(config, meta_graph)`.
- `handle_data_util.get_resource_handle_data(tensor)`: dtype and shape of the variable behind a handle.
- `loader_impl.parse_saved_model(path)`: the SavedModel proto.
- `ops.inside_function()`: true while an outer function is being traced.
"""

import contextlib

import tensorflow as tf
from tensorflow.core.framework import cost_graph_pb2, function_pb2, graph_pb2, node_def_pb2, tensor_shape_pb2, types_pb2
from tensorflow.core.protobuf import config_pb2, device_properties_pb2, meta_graph_pb2, rewriter_config_pb2, saved_model_pb2
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import atomic_function, concrete_function, polymorphic_function, transform
from tensorflow.python.framework import func_graph, op_def_registry, ops
from tensorflow.python.grappler import cluster as grappler_cluster
from tensorflow.python.grappler import item as grappler_item
from tensorflow.python.grappler import tf_optimizer
from tensorflow.python.ops import handle_data_util
from tensorflow.python.saved_model import loader_impl

from tf_regal import errors

SUPPORTED_VERSIONS = ("2.21",)

__all__ = [
    "atomic_function",
    "call_options",
    "check",
    "collect_graphs",
    "concrete_function",
    "config_pb2",
    "context",
    "cost_graph_pb2",
    "default_call_options",
    "device_properties_pb2",
    "func_graph",
    "function_pb2",
    "grappler_cluster",
    "grappler_item",
    "graph_pb2",
    "handle_data_util",
    "loader_impl",
    "meta_graph_pb2",
    "node_def_pb2",
    "op_def_registry",
    "ops",
    "polymorphic_function",
    "planned_call_options",
    "rewriter_config_pb2",
    "saved_model_pb2",
    "tensor_shape_pb2",
    "tf_optimizer",
    "transform",
    "types_pb2",
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
        op_def_registry: ["get"],
        grappler_item.Item: ["GetOpProperties"],
        grappler_cluster.Cluster: ["MeasureCosts", "GetSupportedDevices", "Shutdown"],
        tf_optimizer: ["OptimizeGraph"],
        handle_data_util: ["get_resource_handle_data"],
        loader_impl: ["parse_saved_model"],
        ops: ["inside_function"],
    }
    for owner, names in needed.items():
        for name in names:
            if not hasattr(owner, name):
                raise errors.UnsupportedVersionError(
                    f"tensorflow {tf.__version__} has no {owner.__name__}.{name}, which tf-regal needs. Supported: {', '.join(SUPPORTED_VERSIONS)}."
                )


@contextlib.contextmanager
def collect_graphs():
    """Yields a list that holds, afterwards, a RunMetadata.FunctionGraphs for each function that TensorFlow instantiated meanwhile."""
    ctx = context.context()
    collected = []
    ctx.enable_graph_collection()
    try:
        yield collected
    finally:
        metadata = ctx.export_run_metadata()
        ctx.disable_graph_collection()
        if metadata is not None:
            collected.extend(metadata.function_graphs)


def planned_call_options():
    """Call options under which TensorFlow does not run Grappler on a function (it ran before the planning already)."""
    options = context.FunctionCallOptions(executor_type="", config_proto=None)
    # None means: the rewriter is disabled (FunctionCallOptions.as_attrs); the constructor replaces None by an empty config.
    options._config_proto_serialized = None
    return options


def default_call_options():
    return context.context().function_call_options


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

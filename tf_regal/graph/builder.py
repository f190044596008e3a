"""`Runnable` → `OpGraph`: nodes become ops, tensors get sizes, what must stay together or in place is found."""

import dataclasses
import functools
import hashlib

import numpy as np
import tensorflow as tf

from tf_regal import _tf_private as tfp
from tf_regal import errors
from tf_regal import problem as problem_lib
from tf_regal.graph import opgraph, regions, semantics, signatures
from tf_regal.graph import runnable as runnable_lib
from tf_regal.graph import shapes as shapes_lib

_HANDLES = (tf.resource.as_datatype_enum, tf.variant.as_datatype_enum)
# What waits for nothing, and a placeholder that is no argument: it is there for a branch that is never taken, and fails where it is waited for.
_UNORDERED = frozenset(("_Arg", "_Retval", "Const", "Placeholder"))
# Stateful, and yet free to move: their state is the variable, whose group they are in, or they have none.
_MOVABLE_STATE = (
    "ReadVariableOp", "Assign", "ResourceApply", "ResourceSparseApply", "ResourceGather", "ResourceScatter", "VarIsInitializedOp",
    "VariableShape",
)


@dataclasses.dataclass
class Capture:
    """What was read of one function: the nodes, their shapes, and the graph that is planned."""

    runnable: runnable_lib.Runnable
    shapes: shapes_lib.Shapes
    graph: opgraph.OpGraph
    movable: list  # of (op, tf.Variable): arguments that are variables and may live on any device


def capture(runnable, batch_size=None, default_device="", move_variables=False):
    """Builds the OpGraph of a Runnable.

    Args:
        batch_size: see `shapes.infer`.
        move_variables: variables may live on any device; True: but those that a plan has moved before; "all": those too.
        default_device: device of arguments, results and stateful ops of which the graph names no device.
    Raises GraphError where there is nothing to plan or the graph has a cycle that is not a loop.
    """
    shapes = shapes_lib.infer(runnable, batch_size)
    builder = _Builder(runnable, shapes, default_device, move_variables)
    graph = builder.build()
    return Capture(runnable, shapes, graph, builder.movable_ops())


class _Builder:
    def __init__(self, runnable, shapes, default_device, move_variables):
        self.nodes = list(runnable.graph_def.node)
        self.runnable = runnable
        self.shapes = shapes
        self.default_device = default_device
        self.movable = {i for i, v in runnable.variables.items() if move_variables == "all" or (move_variables and not tfp.was_moved(v))}
        self.index = {node.name: i for i, node in enumerate(self.nodes)}
        self.sources = [self._parse_inputs(node) for node in self.nodes]  # per node: list of (node, port); port −1: control

    def _parse_inputs(self, node):
        result = []
        for text in node.input:
            name, _, port = text.lstrip("^").partition(":")
            if name not in self.index:
                raise errors.GraphError(f"node {node.name!r} has the input {text!r}, which is not in the graph")
            result.append((self.index[name], -1 if text.startswith("^") else int(port or 0)))
        return result

    def build(self):
        if not any(node.op not in ("_Arg", "_Retval", "Const", "NoOp", "Identity") for node in self.nodes):
            raise errors.GraphError("the function has no op that does any work: there is nothing to plan")
        self._contract()
        self._add_ops()
        self._add_tensors()
        self._add_edges()
        self._add_groups()
        graph = opgraph.OpGraph(
            names=self.names, types=self.types, devices=self.devices, kinds=self._kinds(), members=self.member_names,
            group=self.group, persistent=self.persistent, orderable=self.orderable, producer=self.producer, size=self.size,
            view=self.view, lifetime=self.lifetime, reuse_ptr=self.reuse[0], reuse_idx=self.reuse[1], input_ptr=self.inputs[0],
            input_idx=self.inputs[1], control_ptr=self.control[0], control_idx=self.control[1], fingerprint=self._fingerprint(),
            bindings=self.shapes.bindings, notes=self._notes(), outputs=self._outputs(),
        )
        _check_acyclic(graph)
        return graph

    def _contract(self):
        types = [node.op for node in self.nodes]
        predecessors = [[s for s, _ in sources] for sources in self.sources]
        found = regions.close_cycles(regions.find_regions(types, predecessors), predecessors)
        self.op_of_node = [-1] * len(self.nodes)
        self.members = []
        for region in found:
            for node in region:
                self.op_of_node[node] = len(self.members)
            self.members.append(region)
        self.n_regions = len(found)
        for node in range(len(self.nodes)):
            if self.op_of_node[node] < 0:
                self.op_of_node[node] = len(self.members)
                self.members.append([node])

    def _add_ops(self):
        self.names, self.types, self.devices, self.orderable, self.member_names = [], [], [], [], []
        for op, members in enumerate(self.members):
            first = self.nodes[members[0]]
            is_region = op < self.n_regions
            self.names.append(first.name)
            self.types.append("Region" if is_region else first.op)
            self.member_names.append([self.nodes[m].name for m in members])
            self.devices.append(self._required_device(members, is_region))
            self.orderable.append(
                not is_region and first.op not in _UNORDERED and not semantics.is_collective(first.op) and not self._is_handle(members[0])
            )

    def _is_handle(self, node):
        """Whether the node only says which variable or table is meant: others than the planned ops may need it, and must not wait."""
        outputs = self.shapes.outputs[self.nodes[node].name]
        return bool(outputs) and all(dtype in _HANDLES for dtype, _ in outputs) and not any(port >= 0 for _, port in self.sources[node])

    def _required_device(self, members, is_region):
        """The device where the op must stay, or ""."""
        for member in members:
            requested = self.runnable.requested.get(self.nodes[member].name)
            if requested and not is_region:
                return requested
        node = self.nodes[members[0]]
        if self._is_free_result(node) or self._is_movable(node):
            return ""
        if is_region or node.op in ("_Arg", "_Retval") or self._has_own_state(node):
            # The source "grappler" knows no placement: the default device is where TensorFlow would put it.
            return node.device or self.default_device
        return ""

    def _is_free_result(self, node):
        return node.op == "_Retval" and node.attr["index"].i in self.runnable.free_results

    def _is_movable(self, node):
        return node.op == "_Arg" and node.attr["index"].i in self.movable

    def movable_ops(self):
        """(op, variable) in the order in which the variables were created."""
        found = [
            (self.op_of_node[node], self.runnable.variables[proto.attr["index"].i]) for node, proto in enumerate(self.nodes) if self._is_movable(proto)
        ]
        return sorted(found, key=lambda pair: tfp.creation_number(pair[1]))

    def _has_own_state(self, node):
        op_def = tfp.op_def_registry.get(node.op)
        if op_def is None or not op_def.is_stateful:
            return False
        return not node.op.startswith(_MOVABLE_STATE)

    def _add_tensors(self):
        self.tensor_of = {}  # (node, port) -> tensor
        producer, size, dtypes = [], [], []
        used_outside = set()
        for node, sources in enumerate(self.sources):
            for source, port in sources:
                if port >= 0 and self.op_of_node[source] != self.op_of_node[node]:
                    used_outside.add((source, port))
        for node, proto in enumerate(self.nodes):
            op = self.op_of_node[node]
            if proto.op == "_Retval":
                continue
            for port, (dtype, shape) in enumerate(self.shapes.outputs[proto.name]):
                if op < self.n_regions and (node, port) not in used_outside:
                    continue
                self.tensor_of[node, port] = len(producer)
                producer.append(op)
                size.append(shapes_lib.tensor_bytes(dtype, shape))
                dtypes.append(dtype)
        self.producer, self.size, self.dtypes = np.array(producer, np.int32), np.array(size, np.int64), dtypes
        self._add_memory_rules()

    def _add_memory_rules(self):
        m = len(self.producer)
        self.view = np.full(m, -1, np.int32)
        self.lifetime = np.zeros(m, np.uint8)
        self.persistent = np.zeros(len(self.members), np.int64)
        reuse = [[] for _ in range(m)]
        for (node, port), tensor in self.tensor_of.items():
            op = self.op_of_node[node]
            if op < self.n_regions:
                continue
            proto = self.nodes[node]
            data_inputs = [self.tensor_of[s] for s in self.sources[node] if s[1] >= 0 and s in self.tensor_of]
            if proto.op in semantics.CONSTANTS or proto.op == "_Arg":
                self.lifetime[tensor] = problem_lib.LIFETIME_PERSISTENT
                self.persistent[op] += self._persistent_bytes(proto, self.size[tensor])
            elif proto.op in semantics.VARIABLE_READS:
                self.lifetime[tensor] = problem_lib.LIFETIME_PERSISTENT
            elif proto.op in semantics.VIEWS and data_inputs and port == 0:
                self.view[tensor] = data_inputs[semantics.VIEWS[proto.op]]
            elif proto.op == "IdentityN":
                self.view[tensor] = data_inputs[port]
            elif port == 0 and proto.op in semantics.IN_PLACE_ANY:
                reuse[tensor] = list(dict.fromkeys(data_inputs))
            elif port == 0 and proto.op in semantics.IN_PLACE_FIRST:
                reuse[tensor] = data_inputs[:1]
        self.reuse = problem_lib.csr(reuse)

    def _persistent_bytes(self, proto, tensor_bytes):
        if proto.op == "_Arg":
            handle = self.runnable.arg_handles[proto.attr["index"].i]
            if handle is not None:
                return shapes_lib.tensor_bytes(handle[0], tuple(d or 0 for d in handle[1]) if handle[1] is not None else None)
        return tensor_bytes

    def _add_edges(self):
        inputs = [[] for _ in self.members]
        control = [[] for _ in self.members]
        for node, sources in enumerate(self.sources):
            op = self.op_of_node[node]
            for source in sources:
                source_op = self.op_of_node[source[0]]
                if source_op == op:
                    continue
                if source[1] >= 0:
                    inputs[op].append(self.tensor_of[source])
                else:
                    control[op].append(source_op)
        for node, proto in enumerate(self.nodes):
            if proto.op == "_Retval":
                # Results live to the end, whoever made the buffer.
                for source in self.sources[node]:
                    if source[1] >= 0 and self.lifetime[self.tensor_of[source]] == problem_lib.LIFETIME_NORMAL:
                        self.lifetime[self.tensor_of[source]] = problem_lib.LIFETIME_OUTPUT
        self.inputs = problem_lib.csr([list(dict.fromkeys(x)) for x in inputs])
        self.control = problem_lib.csr([list(dict.fromkeys(x)) for x in control])

    def _add_groups(self):
        parent = list(range(len(self.members)))

        def root(i):
            while parent[i] != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            return i

        def join(a, b):
            a, b = root(a), root(b)
            parent[max(a, b)] = min(a, b)

        for node, sources in enumerate(self.sources):
            op = self.op_of_node[node]
            if self._is_free_result(self.nodes[node]):
                join(op, self.op_of_node[sources[0][0]])
            for source in sources:
                # Whatever touches a resource is on its device (design fact 9); variants (lists, optionals) stay together too.
                if source[1] >= 0 and self._dtype_of(source) in _HANDLES:
                    join(op, self.op_of_node[source[0]])
            for text in self.nodes[node].attr["_class"].list.s if "_class" in self.nodes[node].attr else ():
                target = self.index.get(text.decode(errors="replace").removeprefix("loc:@"))
                if target is not None:
                    join(op, self.op_of_node[target])
        self._join_lone_constants(join)
        numbers = {}
        self.group = np.array([numbers.setdefault(root(op), len(numbers)) for op in range(len(self.members))], np.int32)

    def _join_lone_constants(self, join):
        """A constant with one consumer goes where the consumer goes: a choice of its own could only cost a transfer."""
        consumers = {}
        for node, sources in enumerate(self.sources):
            for source, _ in sources:
                consumers.setdefault(source, set()).add(self.op_of_node[node])
        for node, proto in enumerate(self.nodes):
            ops = consumers.get(node, ())
            if proto.op in semantics.CONSTANTS and len(ops) == 1 and self.op_of_node[node] >= self.n_regions and not self.devices[self.op_of_node[node]]:
                join(self.op_of_node[node], next(iter(ops)))

    def _dtype_of(self, source):
        ports = self.shapes.outputs[self.nodes[source[0]].name]
        return ports[source[1]][0] if source[1] < len(ports) else None

    def _kinds(self):
        """Device kinds with a kernel, by op. TPUs are taken to have one wherever a GPU has (TensorFlow's plain wheel knows no TPU kernels)."""
        found = []
        for op, members in enumerate(self.members):
            gpu = op >= self.n_regions and all(_has_gpu_kernel(self.nodes[m]) for m in members)
            found.append(["CPU", "GPU", "TPU"] if gpu else ["CPU"])
        return found

    def _outputs(self):
        texts = [[] for _ in self.members]
        for node, port in self.tensor_of:
            texts[self.op_of_node[node]].append(shapes_lib.text(*self.shapes.outputs[self.nodes[node].name][port]))
        return ["; ".join(found) for found in texts]

    def _fingerprint(self):
        """Hash of the content in node order. Names do not enter: they change from process to process."""
        library = {f.signature.name: f for f in self.runnable.graph_def.library.function}
        digest = hashlib.sha256()
        for node, proto in enumerate(self.nodes):
            digest.update(proto.op.encode())
            # Grappler sorts the operands of commutative ops, and control inputs, by name; and names do not count.
            data = [source for source in self.sources[node] if source[1] >= 0]
            control = [source for source in self.sources[node] if source[1] < 0]
            digest.update(repr((sorted(data) if proto.op in semantics.COMMUTATIVE else data, sorted(control))).encode())
            digest.update(self.devices[self.op_of_node[node]].encode())
            for key in sorted(proto.attr):
                if not key.startswith("_") and key not in signatures.IGNORED_ATTRIBUTES:
                    digest.update(key.encode())
                    digest.update(signatures.attribute_content(proto.attr[key], library))
            digest.update(repr(self.shapes.outputs[proto.name]).encode())
        digest.update(self.group.tobytes())
        return digest.hexdigest()

    def _notes(self):
        notes = []
        if self.n_regions:
            notes.append(f"{self.n_regions} loops or branches are planned as one op each, where TensorFlow put them")
        opaque = sum(semantics.calls_functions(t) for t in self.types)
        if opaque:
            notes.append(f"{opaque} ops run functions of their own; their bodies are not planned and their cost is estimated")
        return notes


def _has_gpu_kernel(node):
    """Whether TensorFlow has a kernel for GPUs that takes the node's types. Nodes of ours (_Arg, _Retval) go anywhere."""
    if node.op in ("_Arg", "_Retval"):
        return True
    types = {key: node.attr[key].type for key in node.attr if node.attr[key].WhichOneof("value") == "type"}
    return _gpu_kernel_for(node.op, tuple(sorted(types.items())))


@functools.lru_cache(maxsize=4096)
def _gpu_kernel_for(op_type, types):
    types = dict(types)
    for kernel in tfp.kernels.get_registered_kernels_for_op(op_type).kernel:
        if kernel.device_type in ("GPU", "DEFAULT") and all(
            c.name not in types or not c.allowed_values.list.type or types[c.name] in c.allowed_values.list.type for c in kernel.constraint
        ):
            return True
    return False


def _check_acyclic(graph):
    pending = np.diff(graph.input_ptr) + np.diff(graph.control_ptr)
    consumers = [[] for _ in range(graph.n_ops)]
    for op in range(graph.n_ops):
        for tensor in graph.inputs(op):
            consumers[graph.producer[tensor]].append(op)
        for source in graph.control_inputs(op):
            consumers[source].append(op)
    pending = pending.tolist()
    queue = [op for op in range(graph.n_ops) if pending[op] == 0]
    done = 0
    while queue:
        op = queue.pop()
        done += 1
        for consumer in consumers[op]:
            pending[consumer] -= 1
            if pending[consumer] == 0:
                queue.append(consumer)
    if done != graph.n_ops:
        raise errors.GraphError("the graph's loops and branches could not be contracted into ops without a cycle; the function is left as it is")

"""What op types do with memory, state and order: tables that the readers of graphs use. Knows nothing of TensorFlow's Python.

Sources: TensorFlow's kernels (which outputs alias or may take over an input) as of 2.21; each family is checked against the
allocator in tests/graph/test_semantics.py or by the measured peaks in docs/memory.md.
"""

# The output is the input's buffer. Value: which input.
VIEWS = dict.fromkeys(
    (
        "Identity", "Reshape", "ExpandDims", "Squeeze", "StopGradient", "PreventGradient", "Bitcast", "Snapshot", "EnsureShape",
        "CheckNumerics", "CheckNumericsV2", "RefIdentity", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "LoopCond",
        "PlaceholderWithDefault", "_Retval",
    ),
    0,
)

# Element-wise kernels write into an input that nobody else needs (OpKernelContext::forward_input_or_allocate_output). All inputs.
IN_PLACE_ANY = frozenset(
    (
        "Abs", "Acos", "Acosh", "Add", "AddN", "AddV2", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Ceil", "ClipByValue", "Cos",
        "Cosh", "Div", "DivNoNan", "Elu", "EluGrad", "Erf", "Erfc", "Exp", "Expm1", "Floor", "FloorDiv", "FloorMod", "InvGrad",
        "LeakyRelu", "LeakyReluGrad", "Lgamma", "Log", "Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mul",
        "MulNoNan", "Neg", "Pow", "RealDiv", "Reciprocal", "ReciprocalGrad", "Relu", "Relu6", "Relu6Grad", "ReluGrad", "Rint", "Round",
        "Rsqrt", "RsqrtGrad", "Selu", "SeluGrad", "Sigmoid", "SigmoidGrad", "Sign", "Sin", "Sinh", "Softplus", "SoftplusGrad", "Softsign",
        "SoftsignGrad", "Sqrt", "SqrtGrad", "Square", "SquaredDifference", "Sub", "Tan", "Tanh", "TanhGrad", "TruncateDiv", "Xdivy",
        "Xlogy", "Zeta",
    )
)

# Others take over their first input only.
IN_PLACE_FIRST = frozenset(
    (
        "BiasAdd", "Softmax", "LogSoftmax", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "TensorScatterUpdate",
        "TensorScatterAdd", "TensorScatterSub", "InplaceUpdate", "InplaceAdd",
    )
)

COMMUTATIVE = frozenset(("Add", "AddV2", "AddN", "Mul", "Maximum", "Minimum", "LogicalAnd", "LogicalOr"))

# The value lives in the kernel or in the variable: the output costs nothing, the op pays once.
CONSTANTS = frozenset(("Const", "ImmutableConst"))
VARIABLE_READS = frozenset(("ReadVariableOp", "_ReadVariablesOp"))

# Take no time of their own: nothing is launched for them.
FREE = frozenset(
    (
        "_Arg", "_Retval", "Const", "Placeholder", "VarHandleOp", "Identity", "IdentityN", "StopGradient", "PreventGradient", "NoOp",
        "ReadVariableOp", "Reshape", "Squeeze", "ExpandDims", "Shape", "ShapeN", "Rank", "Size",
    )
)

_COLLECTIVE_PREFIXES = ("Collective", "Nccl", "_Nccl", "_ScopedAllocator")
_LOOP_OR_BRANCH = frozenset(
    (
        "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond", "Switch", "RefSwitch", "Merge", "RefMerge",
        "_SwitchN",
    )
)
_CALLS = frozenset(
    (
        "While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase", "PartitionedCall", "StatefulPartitionedCall", "For",
        "MapDefun", "RemoteCall", "SymbolicGradient", "XlaLaunch", "_XlaRun", "_XlaCompile",
    )
)


def is_collective(op_type):
    """Whether the op waits for partners: order edges between such ops hang (design fact 12)."""
    return op_type.startswith(_COLLECTIVE_PREFIXES)


def is_control_flow(op_type):
    """Whether the op belongs to a lowered loop or branch."""
    return op_type in _LOOP_OR_BRANCH


def calls_functions(op_type):
    """Whether the op runs a function of its own: an opaque op with an estimated cost."""
    return op_type in _CALLS


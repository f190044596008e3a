"""Where a ConcreteFunction is planned: its plain calls, and the forward and backward functions that TensorFlow makes for calls that a tape watches."""

import threading
import weakref

from tf_regal import _tf_private as tfp
from tf_regal.hook.first_call import FirstCall


def attach(concrete, settings, reports, name=None):
    """Plans `concrete` on its first call; on its first call under a tape the forward function of that, and the backward function when it is called.

    What the forward function keeps for the backward function stays on the device where it is made, and counts as memory that lives to the
    forward function's end and throughout the backward function.
    """
    name = name or concrete.graph.name
    FirstCall(concrete, "_inference_function", name, settings, reports)
    owner = weakref.ref(concrete)

    def select(args, possible_gradient_type, executing_eagerly):
        of = owner()
        call = type(of)._select_forward_and_backward_functions(of, args, possible_gradient_type, executing_eagerly)
        if executing_eagerly:
            _attach_pair(call, name, settings, reports)
        return call

    concrete._select_forward_and_backward_functions = select


_pairs = threading.RLock()  # held while TensorFlow makes a pair: two threads would make two, and plan both


def _attach_pair(call, name, settings, reports):
    functions = call._functions
    if not isinstance(functions, tfp.concrete_function._TapeGradientFunctions) or functions._forward is not None:
        return
    with _pairs:
        if functions._forward is not None:
            return
        call.forward()  # makes the pair, as the caller is about to do
        if functions._num_forwardprop_outputs:
            return  # with tangents among its results: for tf.autodiff.ForwardAccumulator, left alone
        kept = range(functions._num_inference_outputs, len(functions._forward.cached_definition.signature.output_arg))
        FirstCall(functions, "_forward", f"{name} (forward)", settings, reports, frozenset(kept))
        attach(functions._backward, settings, reports, f"{name} (backward)")

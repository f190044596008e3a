"""Proposals from a policy's SavedModel. Loads neither Spektral nor a Keras, and TensorFlow only when a policy is used."""

import contextlib
import threading

import numpy as np
from absl import logging

from tf_regal import errors
from tf_regal.policy import cards, features
from tf_regal.search.proposal import Proposal

_warned = set()
_lock = threading.Lock()


class Policy:
    """A policy from a directory. name: what plans call it; card: its card.json as a dict.

    Raises PolicyError where it is missing, damaged, or of another version or objective.
    """

    def __init__(self, path, objective=None, name=None):
        self.card = cards.read(path, objective)
        self.name = str(path) if name is None else name
        import tensorflow as tf

        try:
            with _aside():
                self._model = tf.saved_model.load(str(path))
            self._propose = self._model.propose
        except Exception as error:  # whatever TensorFlow raises for a SavedModel that is whole but not a policy
            raise errors.PolicyError(f"policy={str(path)!r} cannot be loaded: {error}") from error

    def propose(self, task):
        """A `search.Task` → its Proposal. One pass of the network, linear in the graph."""
        import tensorflow as tf

        found = features.extract(task)
        with _aside():
            affinity, priority = self._propose(**{name: tf.constant(value) for name, value in vars(found).items()})
            affinity, priority = np.asarray(affinity), np.asarray(priority)
        return Proposal(affinity, priority, self.name)


@contextlib.contextmanager
def _aside():
    """Outside of whatever graph, device scope or hook the user's program is in."""
    import tensorflow as tf

    from tf_regal import _tf_private as tfp

    with tfp.own_functions(), tfp.context.eager_mode(), tf.device("/CPU:0"):
        yield


def proposer(settings):
    """A function Task → Proposal for `settings.used_policy`, or None: uniform.

    "auto": the shipped policy; where it cannot be used, one warning and None. A path: PolicyError where it cannot be used.

    Every call loads the policy again, and whoever drops the function frees it: what stays in TensorFlow's CPU allocator makes its chunks, and so the
    peak memory of the user's own functions, larger.
    """
    policy, objective = settings.used_policy, settings.objective
    if policy is None:
        return None
    path = cards.directory(policy, objective)
    try:
        return Policy(path, objective, objective if policy == "auto" else None).propose
    except errors.PolicyError as error:
        if policy != "auto":
            raise
        with _lock:
            new = objective not in _warned
            _warned.add(objective)
        if new:
            logging.warning("tf_regal: the shipped policy is not used, the search draws uniformly: %s", error)
        return None

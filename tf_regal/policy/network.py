"""The policy's network: Spektral layers on tf_keras. Only training needs it; what is shipped is a plain SavedModel (`export`, `inference`).

Set TF_USE_LEGACY_KERAS=1 before TensorFlow is imported: Spektral 1.3 does not work with Keras 3.
"""

import math

import numpy as np
import spektral
import tensorflow as tf
import tf_keras

from tf_regal import errors
from tf_regal.policy.config import NETWORKS
from tf_regal.policy.features import DEVICE_FEATURES, OP_FEATURES
from tf_regal.search import proposal

LEVELS = len(proposal.CONCENTRATIONS)
_SPREAD = (2.0, 0.7)  # standard deviations, in steps, of means and concentrations around the outputs, where choices are sampled; before training

_START_LEVEL = 3.0  # of all concentrations, before training


class Network(tf_keras.Model):
    """Features of one graph → distributions for every key. kind: one of `config.NETWORKS`.

    The op states come from an encoder and `rounds` rounds of one recurrent block. A head scores (op, device) pairs, so that the same weights
    serve any number of devices; what is learned about devices is in their features, not in their numbers. Both heads also see the features
    directly: a heuristic that is right by itself need not find its way through the layers between.

    Called with a dict of the tensors of `features.Features`; returns a dict, float32:
        affinity [n, d, 2], priority [n, 2]: the mean, 0 to 1, and the concentration's level, 0 (uniform) to LEVELS;
        value [1]: the baseline, what reward is expected.
    `log_spread` [2 (affinity, priority), 2 (mean, concentration)]: how far sampled choices lie from the outputs (`reinforce`).
    """

    def __init__(self, kind="graph", width=16, rounds=4):
        super().__init__(name=f"policy_{kind}")
        if kind not in NETWORKS:
            raise errors.InvalidArgumentError(f"network={kind!r} is not known; expected one of {', '.join(map(repr, NETWORKS))}")
        self.kind, self.width, self.rounds = kind, width, rounds
        layers = tf_keras.layers
        if kind != "constant":
            self.encoder = layers.Dense(width, "tanh", name="encoder")
            self.op_hidden = layers.Dense(width, "tanh", name="op_hidden")
            self.device_hidden = layers.Dense(width, "tanh", name="device_hidden")
        if kind == "pairs":
            self.mix = layers.Dense(width, name="mix")
        if kind in ("graph", "pairs"):
            # Both kernels of a layer would be drawn from one initializer, and so be the same: `build` draws them.
            self.inward = spektral.layers.GCSConv(width, kernel_initializer="zeros", name="inward")
            self.outward = spektral.layers.GCSConv(width, kernel_initializer="zeros", name="outward")
        elif kind == "sequence":
            self.recurrent = layers.Bidirectional(layers.GRU(width // 2, return_sequences=True), name="recurrent")
        self.op_out, self.device_out = _head("op_out"), _head("device_out")
        self.op_direct = layers.Dense(2, use_bias=False, kernel_initializer="zeros", name="op_direct")
        self.device_direct = layers.Dense(2, use_bias=False, kernel_initializer="zeros", name="device_direct")
        self.log_spread = self.add_weight(
            name="log_spread", shape=[2, 2], initializer=tf_keras.initializers.Constant([[math.log(s) for s in _SPREAD]] * 2)
        )
        self.value = layers.Dense(1, kernel_initializer="zeros", bias_initializer=tf_keras.initializers.Constant(-1.0), name="value")

    def call(self, inputs):
        op, device = inputs["op"], inputs["device"]
        n, d = tf.shape(device)[0], tf.shape(device)[1]
        if self.kind == "constant":
            at = DEVICE_FEATURES.index("position")
            state = tf.zeros_like(op[:, : self.width])
            op, device = tf.zeros_like(op), device * tf.one_hot(at, len(DEVICE_FEATURES))
            op_hidden, device_hidden = state, tf.zeros([n, d, self.width])
        else:
            if self.kind == "pairs":
                pairs = self._pair_states(inputs)
                state = tf.reduce_mean(pairs, 1)
            else:
                state = self._states(inputs)
                pairs = tf.repeat(state[:, None], d, 1)
            op_hidden = self.op_hidden(tf.concat([state, op], 1))
            device_hidden = self.device_hidden(tf.concat([pairs, device], 2))
        return {
            "affinity": _bounded(self.device_out(device_hidden) + self.device_direct(device)),
            "priority": _bounded(self.op_out(op_hidden) + self.op_direct(op)),
            "value": self.value(tf.reduce_mean(state, 0, keepdims=True))[0],
        }

    def _states(self, inputs):
        op = inputs["op"]
        state = self.encoder(op)
        if self.kind == "sequence":
            order = inputs["order"]
            read = self.recurrent(tf.gather(state, order)[None])[0]
            return state + tf.scatter_nd(order[:, None], read, tf.shape(read))
        inward, outward = _adjacencies(inputs)
        for _ in range(self.rounds):
            state = tf.tanh(state + self.inward([state, inward]) + self.outward([state, outward]))
        return state

    def _pair_states(self, inputs):
        """[n, d, width]; devices are the batch of what Spektral calls mixed mode: many signals on one graph."""
        op, device = inputs["op"], inputs["device"]
        d = tf.shape(device)[1]
        both = tf.concat([tf.repeat(op[:, None], d, 1), device], 2)
        state = tf.transpose(self.encoder(both), [1, 0, 2])
        inward, outward = _adjacencies(inputs)
        for _ in range(self.rounds):
            around = self.mix(tf.reduce_mean(state, 0, keepdims=True))
            state = tf.tanh(state + around + self.inward([state, inward]) + self.outward([state, outward]))
        return tf.transpose(state, [1, 0, 2])


def build(kind="graph", width=16, rounds=4, seed=0):
    """A Network with its weights made, the same every time for a seed."""
    tf_keras.utils.set_random_seed(seed)
    network = Network(kind, width, rounds)
    network({name: tf.zeros([2 if size is None else size for size in spec.shape], spec.dtype) for name, spec in signature().items()})
    rng = np.random.default_rng(seed)
    for layer in (network.inward, network.outward) if kind in ("graph", "pairs") else ():
        limit = math.sqrt(6 / (2 * width))
        layer.set_weights([rng.uniform(-limit, limit, w.shape).astype(np.float32) if w.ndim == 2 else w for w in layer.get_weights()])
    return network


def prime(network, objective):
    """Sets the direct weights so that the untrained network proposes what a person would: a start that training need not find.

    runtime: priorities along the upward rank, devices of the earliest start; peak_memory: priorities along the memory-greedy and the
    depth-first order, and wide distributions. A constant network stays as it is: it sees no heuristics.
    """
    if network.kind == "constant":
        return
    orders = {"upward rank": 3.0} if objective == "runtime" else {"place in memory-greedy order": -1.5, "place in depth-first order": -1.5}
    level = 3.0 if objective == "runtime" else 1.0
    op = np.zeros([len(OP_FEATURES), 2], np.float32)
    for name, weight in orders.items():
        op[OP_FEATURES.index(name), 0] = weight
    device = np.zeros([len(DEVICE_FEATURES), 2], np.float32)
    device[[0, 1], 0] = (0.0, 2.2) if objective == "runtime" else (1.0, 1.0)  # HEFT, ETF
    network.op_direct.set_weights([op])
    network.device_direct.set_weights([device])
    concentration = math.log(level / (LEVELS - level))
    for head, mean in ((network.op_out, -sum(orders.values()) / 2), (network.device_out, -1.1)):
        kernel, _ = head.get_weights()
        head.set_weights([kernel, np.array([mean, concentration], np.float32)])


def signature():
    """TensorSpecs of the network's inputs; a dict as `features.Features` names them."""
    f, i = tf.float32, tf.int32
    return {
        "op": tf.TensorSpec([None, len(OP_FEATURES)], f), "device": tf.TensorSpec([None, None, len(DEVICE_FEATURES)], f),
        "source": tf.TensorSpec([None], i), "target": tf.TensorSpec([None], i), "forward": tf.TensorSpec([None], f),
        "backward": tf.TensorSpec([None], f), "order": tf.TensorSpec([None], i),
    }  # fmt: skip


def choices(output):
    """Outputs [..., 2] → int32 [...], the nearest choices; the same as `search.proposal.choice`."""
    means = len(proposal.MEANS)
    at = tf.cast(tf.clip_by_value(tf.floor(output[..., 0] * means), 0, means - 1), tf.int32)
    level = tf.cast(tf.clip_by_value(tf.round(output[..., 1]), 0, LEVELS), tf.int32)
    return tf.where(level == 0, proposal.UNIFORM, (level - 1) * means + at)


def _adjacencies(inputs):
    """Two SparseTensors [n, n]: what each op takes from its inputs, and from its consumers."""
    n = tf.shape(inputs["op"], out_type=tf.int64)[0]
    source, target = tf.cast(inputs["source"], tf.int64), tf.cast(inputs["target"], tf.int64)
    inward = tf.SparseTensor(tf.stack([target, source], 1), inputs["forward"], tf.stack([n, n]))
    outward = tf.SparseTensor(tf.stack([source, target], 1), inputs["backward"], tf.stack([n, n]))
    return inward, outward


def _head(name):
    start = _START_LEVEL / LEVELS
    bias = tf_keras.initializers.Constant([0.0, math.log(start / (1 - start))])
    return tf_keras.layers.Dense(2, kernel_initializer="zeros", bias_initializer=bias, name=name)


def _bounded(raw):
    return tf.sigmoid(raw) * tf.constant([1.0, float(LEVELS)])

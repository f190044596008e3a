"""How a network learns: one class per algorithm, all with `step(number) → dict of figures`, `state() → dict of arrays` and
`load(state)`, which are about the algorithm: the network's weights are kept by `train`.
"""

import numpy as np
import tensorflow as tf
import tf_keras

from tf_regal.policy import network as network_lib
from tf_regal.policy.instances import prepared
from tf_regal.policy.pgpe import Pgpe
from tf_regal.policy.rollouts import Rollout
from tf_regal.search import proposal

_LEVELS = network_lib.LEVELS


def tensors(features):
    """Features → what the network takes."""
    return {name: tf.constant(value) for name, value in vars(features).items()}


def flat(weights):
    """List of arrays → float64 [all of them]."""
    return np.concatenate([np.asarray(w, float).reshape(-1) for w in weights])


def shaped(vector, like):
    """The inverse of `flat`. like: a list of arrays of the right shapes."""
    ends = np.cumsum([w.size for w in like])
    return [part.reshape(w.shape).astype(np.float32) for part, w in zip(np.split(vector, ends[:-1]), like, strict=True)]


class Proposer:
    """The network's greedy choices; compiled once."""

    def __init__(self, network):
        self._network = network

        @tf.function(input_signature=[network_lib.signature()])
        def outputs(inputs):
            found = network(inputs)
            return network_lib.choices(found["affinity"]), network_lib.choices(found["priority"])

        self._outputs = outputs

    def rollout(self, instance, seed, evaluations):
        """A Rollout of what the network proposes now."""
        affinity, priority = self._outputs(tensors(prepared(instance).features))
        return Rollout(instance, affinity.numpy().astype(np.uint16), priority.numpy().astype(np.uint16), seed, evaluations)


class ParameterExploration:
    """`pgpe`: see the module of that name."""

    def __init__(self, network, training_set, config):
        self._network, self._set, self._config = network, training_set, config
        self._proposer = Proposer(network)
        self._pgpe = Pgpe(flat(network.get_weights()), config.rate or 0.02, config.seed, config.samples)

    def step(self, number):
        c, like = self._config, self._network.get_weights()
        batch = self._set.draw(c.batch, [c.seed, number, 1])
        rollouts = []
        for weights in self._pgpe.draws():
            self._network.set_weights(shaped(weights, like))
            rollouts += [self._proposer.rollout(instance, 7919 * number + i, c.evaluations) for i, instance in enumerate(batch)]
        rewards = self._set.rewards(rollouts).reshape(-1, len(batch))
        self._pgpe.update(rewards)
        self._network.set_weights(shaped(self._pgpe.state["centre"], like))
        return {"reward": rewards.mean(), "spread": rewards.std(axis=0).mean(), "sigma": self._pgpe.state["sigma"].mean()}

    def state(self):
        return dict(self._pgpe.state)

    def load(self, state):
        self._pgpe.state.update(state)


class _Gradient:
    """What the algorithms that go by TensorFlow's gradients have in common: Adam, clipping, and their state."""

    def __init__(self, network, training_set, config, rate):
        self._network, self._set, self._config = network, training_set, config
        self._adam = tf_keras.optimizers.Adam(config.rate or rate, global_clipnorm=config.clip)
        self._adam.build(network.trainable_variables)

    def _apply(self, tape, loss):
        variables = self._network.trainable_variables
        gradients = tape.gradient(loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        self._adam.apply_gradients(zip(gradients, variables, strict=True))
        return tf.linalg.global_norm(gradients)

    def state(self):
        return {f"adam_{i}": v.numpy() for i, v in enumerate(self._adam.variables)}

    def load(self, state):
        for i, variable in enumerate(self._adam.variables):
            variable.assign(state[f"adam_{i}"])


class Reinforce(_Gradient):
    """`reinforce`: the paper's algorithm. Every choice is drawn around the network's output, independently of the others given the op states.

    The categorical distributions are discretised normal ones, so that neighbouring means and concentrations share what is learned; their deviations are
    learned, too. Advantages are relative to the mean of a graph's other samples, or, with one sample, to the learned baseline.
    """

    def __init__(self, network, training_set, config):
        super().__init__(network, training_set, config, 1e-3)
        specs = network_lib.signature()
        drawn = {"affinity": tf.TensorSpec([None, None, None, 2], tf.int32), "priority": tf.TensorSpec([None, None, 2], tf.int32)}
        self._sample = tf.function(self._sample_eagerly, input_signature=[specs, tf.TensorSpec([2], tf.int32)])
        self._learn = tf.function(self._learn_eagerly, input_signature=[specs, drawn, tf.TensorSpec([None], tf.float32)])

    def step(self, number):
        c = self._config
        batch = self._set.draw(c.batch, [c.seed, number, 1])
        drawn, rollouts = [], []
        for i, instance in enumerate(batch):
            indices = {k: v.numpy() for k, v in self._sample(tensors(prepared(instance).features), [c.seed, 7919 * number + i]).items()}
            drawn.append(indices)
            for s in range(2 * c.samples):
                affinity, priority = (proposal.encode(indices[k][s][..., 0], indices[k][s][..., 1]) for k in ("affinity", "priority"))
                rollouts.append(Rollout(instance, affinity, priority, 7919 * number + i, c.evaluations))
        rewards = self._set.rewards(rollouts).reshape(len(batch), -1)
        with tf.GradientTape() as tape:
            losses, values, entropies = zip(
                *(
                    self._learn(tensors(prepared(instance).features), indices, reward.astype(np.float32))
                    for instance, indices, reward in zip(batch, drawn, rewards, strict=True)
                ),
                strict=True,
            )
            loss = tf.add_n(losses) / len(batch)
        norm = self._apply(tape, loss)
        return {
            "reward": rewards.mean(), "spread": rewards.std(axis=1).mean(), "baseline": float(tf.reduce_mean(values)),
            "entropy": float(tf.reduce_mean(entropies)), "gradient_norm": float(norm),
        }  # fmt: skip

    def _logits(self, found, key):
        """[..., bins] for means and for concentrations."""
        spread = tf.exp(self._network.log_spread[0 if key == "affinity" else 1])
        at = found[key] * tf.constant([float(len(proposal.MEANS)), 1.0]) - tf.constant([0.5, 0.0])
        for i, bins in enumerate((len(proposal.MEANS), _LEVELS + 1)):
            yield -0.5 * ((tf.range(bins, dtype=tf.float32) - at[..., i, None]) / spread[i]) ** 2

    def _sample_eagerly(self, inputs, seed):
        """int32 affinity [samples, n, d, 2], priority [samples, n, 2]: indices of means and levels of concentrations."""
        found, result = self._network(inputs), {}
        count = 2 * self._config.samples
        for k, key in enumerate(("affinity", "priority")):
            indices = []
            for i, logits in enumerate(self._logits(found, key)):
                flat_logits = tf.reshape(logits, [-1, logits.shape[-1]])
                drawn = tf.random.stateless_categorical(flat_logits, count, seed + [0, 15485863 * (2 * k + i + 1)], dtype=tf.int32)
                indices.append(tf.reshape(tf.transpose(drawn), tf.concat([[count], tf.shape(logits)[:-1]], 0)))
            result[key] = tf.stack(indices, -1)
        return result

    def _learn_eagerly(self, inputs, drawn, rewards):
        found = self._network(inputs)
        log_p, entropy, ops = 0.0, 0.0, tf.cast(tf.shape(inputs["op"])[0], tf.float32)
        for key in ("affinity", "priority"):
            for i, logits in enumerate(self._logits(found, key)):
                log = tf.nn.log_softmax(logits)
                of_all = tf.broadcast_to(log, tf.concat([tf.shape(rewards), tf.shape(log)], 0))
                chosen = tf.gather(of_all, drawn[key][..., i], axis=-1, batch_dims=len(log.shape))
                log_p += tf.reduce_sum(tf.reshape(chosen, [tf.shape(rewards)[0], -1]), 1)
                entropy -= tf.reduce_sum(tf.exp(log) * log) / ops
        value = found["value"][0]
        count = tf.cast(tf.shape(rewards)[0], tf.float32)
        others = (tf.reduce_sum(rewards) - rewards) / tf.maximum(count - 1, 1)
        advantage = rewards - (others if rewards.shape[0] != 1 else tf.stop_gradient(value))
        advantage /= tf.maximum(tf.math.reduce_std(rewards), 0.002)
        loss = -tf.reduce_mean(tf.stop_gradient(advantage) * log_p) / tf.sqrt(ops)
        loss += 0.5 * tf.reduce_mean((rewards - value) ** 2) - self._config.entropy * entropy
        return loss, value, entropy


class Imitation(_Gradient):
    """`imitation`: the keys of the full search's solutions become likely: a start for the others, which it brings near good proposals in minutes."""

    def __init__(self, network, training_set, config):
        super().__init__(network, training_set, config, 3e-3)
        self._targets = {}
        specs = network_lib.signature()
        keys = {"affinity": tf.TensorSpec([None, None], tf.float32), "priority": tf.TensorSpec([None], tf.float32)}
        self._loss = tf.function(self._loss_eagerly, input_signature=[specs, keys, tf.TensorSpec([None], tf.float32)])

    def step(self, number):
        batch = self._set.draw(self._config.batch, [self._config.seed, number, 1])
        with tf.GradientTape() as tape:
            loss = tf.add_n([self._loss(tensors(prepared(i).features), *self._target(i)) for i in batch]) / len(batch)
        norm = self._apply(tape, loss)
        return {"loss": float(loss), "gradient_norm": float(norm)}

    def _target(self, instance):
        if instance not in self._targets:
            device, start = self._set.solution(instance)
            n, d = prepared(instance).task.problem.n_ops, prepared(instance).task.problem.n_devices
            priority = np.empty(n, np.float32)
            priority[np.argsort(start, kind="stable")] = 1 - (np.arange(n) + 0.5) / n
            affinity = np.where(device[:, None] == np.arange(d), 0.75, 0.25).astype(np.float32)  # as seeds are encoded
            decides = np.zeros(n, np.float32)
            decides[proposal.deciders(prepared(instance).task.problem)] = 1
            decides *= prepared(instance).features.device[:, :, network_lib.DEVICE_FEATURES.index("allowed")].sum(axis=1) > 1
            self._targets[instance] = {"affinity": affinity, "priority": priority}, decides
        return self._targets[instance]

    def _loss_eagerly(self, inputs, keys, decides):
        found = self._network(inputs)
        priority = tf.reduce_mean(_surprise(found["priority"], keys["priority"]))
        affinity = tf.reduce_sum(_surprise(found["affinity"], keys["affinity"]), 1) * decides
        return priority + tf.reduce_sum(affinity) / tf.maximum(tf.reduce_sum(decides), 1.0)


def _surprise(output, key):
    """−log of the Beta density of keys; the concentration runs on between its levels, which are powers of two."""
    mean = tf.clip_by_value(output[..., 0], 0.01, 0.99)
    nu = 2.0 ** tf.clip_by_value(output[..., 1], 0.5, _LEVELS - 1.0)
    a, b = mean * nu, (1 - mean) * nu
    key = tf.clip_by_value(key, 0.01, 0.99)
    return tf.math.lgamma(a) + tf.math.lgamma(b) - tf.math.lgamma(nu) - (a - 1) * tf.math.log(key) - (b - 1) * tf.math.log(1 - key)


CLASSES = {"pgpe": ParameterExploration, "reinforce": Reinforce, "imitation": Imitation}

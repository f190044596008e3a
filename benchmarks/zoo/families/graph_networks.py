"""Graph networks from Spektral (an extra: pip install spektral), which works with tf_keras only."""

import tensorflow as tf

from benchmarks.zoo.registry import LABEL, Input, Model, class_loss

_NODES, _FEATURES = 64, 32


def _network(layer, depth):
    """Graphs of equal size in a batch: features [batch, nodes, features] and a dense adjacency [batch, nodes, nodes] → classes."""
    from spektral.layers import GlobalAttentionPool

    features, adjacency = tf.keras.Input((_NODES, _FEATURES)), tf.keras.Input((_NODES, _NODES))
    x, seen = features, []
    for _ in range(depth):
        x = layer()([x, adjacency])
        seen.append(x)
    x = tf.keras.layers.Concatenate()(seen)  # what every layer saw is pooled (jumping knowledge)
    x = tf.keras.layers.Dense(128, activation="relu")(GlobalAttentionPool(128)(x))
    return tf.keras.Model([features, adjacency], tf.keras.layers.Dense(10)(x))


def _gcn():
    from spektral.layers import GCNConv

    return _network(lambda: GCNConv(64, activation="relu"), 4)


def _gat():
    from spektral.layers import GATConv

    return _network(lambda: GATConv(16, attn_heads=4, dropout_rate=0.0, activation="elu"), 3)


_INPUTS = (Input((_NODES, _FEATURES)), Input((_NODES, _NODES)))

MODELS = {
    "graphnet": (
        Model("gcn", _gcn, _INPUTS, "4 layers, width 64, graphs of 64 nodes", "Kipf and Welling, ICLR 2017; Spektral", LABEL, class_loss, training=(32, 128),
              legacy_keras=True),
        Model("gat", _gat, _INPUTS, "3 layers of 4 heads of 16, graphs of 64 nodes", "Velickovic et al., ICLR 2018; Spektral", LABEL, class_loss,
              training=(32, 128), legacy_keras=True),
    ),
}

"""Recommenders: two towers, DLRM-like, and multi-gate mixtures for several tasks."""

import tensorflow as tf

from benchmarks.zoo.registry import Input, Model, click_loss

layers = tf.keras.layers
_ROWS = 20000


def _embeddings(ids, width, rows=_ROWS):
    """ids [batch, features] → list of [batch, width], each from a table of its own."""
    return [layers.Embedding(rows, width)(ids[:, i]) for i in range(ids.shape[1])]


def _mlp(x, *widths):
    for width in widths:
        x = layers.Dense(width, activation="relu")(x)
    return x


def _two_tower(features=(6, 4)):
    inputs, towers = [tf.keras.Input((n,), dtype="int32") for n in features], []
    for ids in inputs:
        x = _mlp(layers.Concatenate()(_embeddings(ids, 32)), 512, 256)
        towers.append(layers.UnitNormalization()(layers.Dense(128)(x)))
    return tf.keras.Model(inputs, towers)


def _two_tower_attention(length=20, width=64):
    """The user's tower weighs the items seen by their likeness to the user's features."""
    user, history, item = (tf.keras.Input((n,), dtype="int32") for n in (4, length, 4))
    profile = _mlp(layers.Concatenate()(_embeddings(user, width)), 256, width)
    seen = layers.Embedding(_ROWS, width)(history)
    pair = layers.Concatenate()([seen, layers.RepeatVector(length)(profile), seen * layers.RepeatVector(length)(profile)])
    weights = layers.Softmax(axis=1)(layers.Dense(1)(_mlp(pair, 80, 40)))
    interest = layers.Dot(1)([weights, seen])
    towers = [layers.Concatenate()([profile, layers.Flatten()(interest)]), layers.Concatenate()(_embeddings(item, width))]
    return tf.keras.Model([user, history, item], [layers.UnitNormalization()(layers.Dense(128)(_mlp(x, 256))) for x in towers])


def _in_batch_loss(towers):
    """Each user's item against the other items of the batch (Yi et al., RecSys 2019)."""
    users, items = towers
    scores = tf.matmul(users, items, transpose_b=True) * 20.0
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.range(users.shape[0]), logits=scores))


def _dlrm(tables=16, width=64):
    numbers, ids = tf.keras.Input((13,)), tf.keras.Input((tables,), dtype="int32")
    bottom = _mlp(numbers, 512, 256, width)
    vectors = layers.Reshape((tables + 1, width))(layers.Concatenate()([bottom, *_embeddings(ids, width)]))
    products = layers.Flatten()(layers.Dot(2)([vectors, vectors]))
    return tf.keras.Model([numbers, ids], layers.Dense(1)(_mlp(layers.Concatenate()([bottom, products]), 512, 256)))


def _dcn(tables=12, width=32, depth=3):
    numbers, ids = tf.keras.Input((13,)), tf.keras.Input((tables,), dtype="int32")
    start = x = layers.Concatenate()([numbers, *_embeddings(ids, width)])
    for _ in range(depth):
        x = start * layers.Dense(x.shape[-1])(x) + x
    return tf.keras.Model([numbers, ids], layers.Dense(1)(layers.Concatenate()([x, _mlp(start, 512, 256, 128)])))


def _mmoe(tables=8, width=32, experts=6, tasks=3):
    ids = tf.keras.Input((tables,), dtype="int32")
    x = layers.Concatenate()(_embeddings(ids, width))
    answers = [_mlp(x, 256, 128) for _ in range(experts)]
    stacked = layers.Reshape((experts, 128))(layers.Concatenate()(answers))
    outputs = []
    for _ in range(tasks):
        gate = layers.Dense(experts, activation="softmax")(x)
        outputs.append(layers.Dense(1)(_mlp(layers.Dot(1)([gate, stacked]), 64)))
    return tf.keras.Model(ids, outputs)


def _tasks_loss(outputs, clicks):
    """clicks [batch, tasks]"""
    return tf.add_n([click_loss(logits, clicks[:, i : i + 1]) for i, logits in enumerate(outputs)])


_CLICK = (Input((1,)),)
_BATCHES = {"inference": (64, 1024), "training": (256, 4096)}

MODELS = {
    "twotower": (
        Model("twotower", _two_tower, (Input((6,), tf.int32), Input((4,), tf.int32)), "10 tables of 20,000 × 32, towers of 512, 256 and 128",
              "Yi et al., RecSys 2019", (), _in_batch_loss, **_BATCHES),
        Model("twotower-attention", _two_tower_attention, (Input((4,), tf.int32), Input((20,), tf.int32), Input((4,), tf.int32)),
              "9 tables of 20,000 × 64, attention over 20 items seen; Keras's Adam", "Zhou et al., KDD 2018", (), _in_batch_loss, adam="keras", **_BATCHES),
    ),
    "dlrm": (
        Model("dlrm", _dlrm, (Input((13,)), Input((16,), tf.int32)), "16 tables of 20,000 × 64, products of all pairs", "Naumov et al., 2019", _CLICK,
              click_loss, **_BATCHES),
        Model("dcn-v2", _dcn, (Input((13,)), Input((12,), tf.int32)), "12 tables of 20,000 × 32, 3 cross layers beside 3 dense ones; Keras's Adam",
              "Wang et al., WWW 2021", _CLICK, click_loss, adam="keras", **_BATCHES),
    ),
    "multitask": (
        Model("mmoe", _mmoe, (Input((8,), tf.int32),), "8 tables of 20,000 × 32, 6 experts, 3 tasks", "Ma et al., KDD 2018", (Input((3,)),), _tasks_loss,
              **_BATCHES),
    ),
}

"""Recurrent networks, unrolled: every step's ops are in the graph."""

import tensorflow as tf

from benchmarks.zoo.registry import Input, Model, class_loss, tokens

layers = tf.keras.layers
_VOCABULARY = 8000


class _LSTM(tf.Module):
    """One LSTM layer (Hochreiter and Schmidhuber, 1997): list of [batch, features] → list of [batch, width]."""

    def __init__(self, features, width):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((features, 4 * width), stddev=features**-0.5))
        self.u = tf.Variable(tf.random.normal((width, 4 * width), stddev=width**-0.5))
        self.b = tf.Variable(tf.zeros(4 * width))
        self.width = width

    def __call__(self, steps):
        c = h = tf.zeros((steps[0].shape[0], self.width))
        outputs = []
        for x in steps:
            i, f, g, o = tf.split(tf.matmul(x, self.w) + tf.matmul(h, self.u) + self.b, 4, -1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            outputs.append(h)
        return outputs


class _GRU(tf.Module):
    """One GRU cell (Cho et al., EMNLP 2014): ([batch, features], [batch, width]) → [batch, width]."""

    def __init__(self, features, width):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((features, 3 * width), stddev=features**-0.5))
        self.u = tf.Variable(tf.random.normal((width, 3 * width), stddev=width**-0.5))
        self.b = tf.Variable(tf.zeros(3 * width))

    def __call__(self, x, h):
        xz, xr, xn = tf.split(tf.matmul(x, self.w) + self.b, 3, -1)
        hz, hr, hn = tf.split(tf.matmul(h, self.u), 3, -1)
        z = tf.sigmoid(xz + hz)
        return z * h + (1 - z) * tf.tanh(xn + tf.sigmoid(xr + hr) * hn)


class _Dense(tf.Module):
    def __init__(self, features, width):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((features, width), stddev=features**-0.5))
        self.b = tf.Variable(tf.zeros(width))

    def __call__(self, x):
        return tf.matmul(x, self.w) + self.b


class _Words(tf.Module):
    """ids [batch, length] → list of [batch, width]"""

    def __init__(self, width):
        super().__init__()
        self.table = tf.Variable(tf.random.normal((_VOCABULARY, width), stddev=0.05))

    def __call__(self, ids):
        return tf.unstack(tf.nn.embedding_lookup(self.table, ids), axis=1)


class _LanguageModel(tf.Module):
    """Stacked LSTMs and a softmax at every step; with `residual`, a layer adds its input from the second on."""

    def __init__(self, depth, width, residual):
        super().__init__()
        self.words = _Words(width)
        self.stack = [_LSTM(width, width) for _ in range(depth)]
        self.head = _Dense(width, _VOCABULARY)
        self.residual = residual

    def __call__(self, ids, training=False):
        steps = self.words(ids)
        for i, layer in enumerate(self.stack):
            outputs = layer(steps)
            steps = [a + b for a, b in zip(steps, outputs, strict=True)] if self.residual and i else outputs
        return tf.stack([self.head(h) for h in steps], 1)


class _Seq2Seq(tf.Module):
    """GRU encoder and decoder with additive attention at every step."""

    def __init__(self, width=256):
        super().__init__()
        self.source, self.target = _Words(width), _Words(width)
        self.forward, self.backward = _GRU(width, width), _GRU(width, width)
        self.decoder = _GRU(3 * width, width)
        self.key, self.query, self.score = _Dense(2 * width, width), _Dense(width, width), _Dense(width, 1)
        self.head = _Dense(4 * width, _VOCABULARY)
        self.width = width

    def _run(self, cell, steps):
        h, outputs = tf.zeros((steps[0].shape[0], self.width)), []
        for x in steps:
            h = cell(x, h)
            outputs.append(h)
        return outputs

    def __call__(self, source, target, training=False):
        steps = self.source(source)
        forward = self._run(self.forward, steps)
        backward = self._run(self.backward, steps[::-1])[::-1]
        memory = [tf.concat(pair, -1) for pair in zip(forward, backward, strict=True)]
        keys = tf.stack([self.key(m) for m in memory], 1)
        memory = tf.stack(memory, 1)
        h, logits = forward[-1], []
        for x in self.target(target):
            hidden = tf.tanh(keys + self.query(h)[:, None])
            weights = tf.nn.softmax(tf.reshape(self.score(tf.reshape(hidden, (-1, self.width))), (hidden.shape[0], -1)))
            context = tf.reduce_sum(weights[:, :, None] * memory, 1)
            h = self.decoder(tf.concat([x, context], -1), h)
            logits.append(self.head(tf.concat([h, x, context], -1)))
        return tf.stack(logits, 1)


def _bilstm(length=16, width=128, tags=20):
    ids = tf.keras.Input((length,), dtype="int32")
    x = layers.Embedding(_VOCABULARY, width)(ids)
    x = layers.Bidirectional(layers.LSTM(width, return_sequences=True, unroll=True))(x)
    return tf.keras.Model(ids, layers.Dense(tags)(layers.Dropout(0.3)(x)))


def _bigru(length=12, width=128, tags=20, letters=8):
    """Words by their letters (a convolution and a maximum), two bidirectional GRU layers."""
    ids, spelled = tf.keras.Input((length,), dtype="int32"), tf.keras.Input((length, letters), dtype="int32")
    characters = layers.Conv2D(64, (1, 3), padding="same", activation="relu")(layers.Embedding(100, 32)(spelled))
    characters = layers.Reshape((length, 64))(layers.MaxPooling2D((1, letters))(characters))
    x = layers.Concatenate()([layers.Embedding(_VOCABULARY, width)(ids), characters])
    for _ in range(2):
        x = layers.Bidirectional(layers.GRU(width, return_sequences=True, unroll=True))(x)
    return tf.keras.Model([ids, spelled], layers.Dense(tags)(x))


def _targets(length):
    return (Input((length,), tf.int32),)


MODELS = {
    "tagger": (
        Model("bilstm-tagger", _bilstm, (tokens(16),), "one bidirectional LSTM layer, width 128, 16 steps, Keras layers unrolled", "Huang et al., 2015",
              _targets(16), class_loss, training=(32, 256)),
        Model("bigru-tagger", _bigru, (tokens(12), Input((12, 8), tf.int32)), "letters by a convolution; two bidirectional GRU layers, width 128, 12 steps",
              "Lample et al., NAACL 2016", _targets(12), class_loss, training=(32, 256)),
    ),
    "lstm": (
        Model("lstm-lm", lambda: _LanguageModel(3, 512, False), (tokens(12),), "3 layers, width 512, 12 steps, vocabulary 8,000", "Zaremba et al., 2014",
              _targets(12), class_loss, training=(32, 128)),
        Model("lstm-residual", lambda: _LanguageModel(6, 384, True), (tokens(6),), "6 layers, width 384, residual from the second on, 6 steps",
              "Wu et al., 2016", _targets(6), class_loss, training=(32, 128)),
    ),
    "seq2seq": (
        Model("gru-attention", _Seq2Seq, (tokens(10), tokens(8)), "bidirectional encoder of 10 steps, decoder of 8 with additive attention, width 256",
              "Bahdanau et al., ICLR 2015", _targets(8), class_loss, training=(32, 128)),
    ),
}

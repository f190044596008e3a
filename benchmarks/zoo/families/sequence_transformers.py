"""Decoder-only and encoder–decoder transformers, and mixtures of experts in them."""

import tensorflow as tf

from benchmarks.zoo.registry import Input, Model, class_loss, tokens

layers = tf.keras.layers
_VOCABULARY = 8000


class RMSNorm(layers.Layer):
    """x / rms(x) × scale (Zhang and Sennrich, NeurIPS 2019)."""

    def build(self, shape):
        self.scale = self.add_weight(shape=shape[-1:], initializer="ones", name="scale")

    def call(self, x):
        return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * self.scale


class Attention(layers.Layer):
    """Multi-head attention of `x` over `memory`; fewer key heads than heads: grouped queries (Ainslie et al., EMNLP 2023)."""

    def __init__(self, width, heads, key_heads=None, bias=True, causal=False, rotary=False, dropout=0.0):
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads or heads, width // heads
        self.causal, self.rotary = causal, rotary
        self.q, self.k, self.v, self.out = (
            layers.Dense(n * self.size, use_bias=bias) for n in (heads, self.key_heads, self.key_heads, heads)
        )
        self.dropout = layers.Dropout(dropout) if dropout else None

    def _heads(self, x, count):
        return tf.transpose(tf.reshape(x, (-1, x.shape[1], count, self.size)), (0, 2, 1, 3))

    def _rotate(self, x):
        """Rotary position embedding (Su et al., 2021)."""
        half = self.size // 2
        angle = tf.range(x.shape[2], dtype=tf.float32)[:, None] * 10000.0 ** (-tf.range(half, dtype=tf.float32) / half)
        a, b = x[..., :half], x[..., half:]
        return tf.concat([a * tf.cos(angle) - b * tf.sin(angle), a * tf.sin(angle) + b * tf.cos(angle)], -1)

    def call(self, x, memory, bias=None, training=False):
        q = self._heads(self.q(x), self.heads)
        k, v = (self._heads(f(memory), self.key_heads) for f in (self.k, self.v))
        if self.rotary:
            q, k = self._rotate(q), self._rotate(k)
        if self.key_heads < self.heads:
            k, v = (tf.repeat(t, self.heads // self.key_heads, axis=1) for t in (k, v))
        scores = tf.matmul(q, k, transpose_b=True) * self.size**-0.5
        if bias is not None:
            scores = scores + bias
        if self.causal:
            scores = scores + (1.0 - tf.linalg.band_part(tf.ones(scores.shape[-2:]), -1, 0)) * -1e9
        weights = tf.nn.softmax(scores)
        if self.dropout is not None:
            weights = self.dropout(weights, training=training)
        y = tf.transpose(tf.matmul(weights, v), (0, 2, 1, 3))
        return self.out(tf.reshape(y, (-1, x.shape[1], self.heads * self.size)))


class Feed(layers.Layer):
    """kind: "relu", "gelu", or the gated "swiglu" and "geglu" (Shazeer, 2020)."""

    def __init__(self, width, hidden, kind, bias=True, dropout=0.0):
        super().__init__()
        self.gated = kind.endswith("glu")
        activation = {"swiglu": "silu", "geglu": "gelu"}.get(kind, kind)
        self.up, self.down = layers.Dense(hidden, activation=activation, use_bias=bias), layers.Dense(width, use_bias=bias)
        self.gate = layers.Dense(hidden, use_bias=bias) if self.gated else None
        self.dropout = layers.Dropout(dropout) if dropout else None

    def call(self, x, training=False):
        y = self.up(x) * self.gate(x) if self.gated else self.up(x)
        y = self.down(y)
        return self.dropout(y, training=training) if self.dropout is not None else y


class Block(layers.Layer):
    """Self-attention, attention over `memory` if `cross`, and `feed`; each with its norm before (prenorm) or after."""

    def __init__(self, feed, norm, prenorm, cross, width, heads, **attention):
        super().__init__()
        self.prenorm, self.feed = prenorm, feed
        self.self_attention = Attention(width, heads, **attention)
        self.cross_attention = None
        if cross:
            self.cross_attention = Attention(width, heads, **{**attention, "causal": False})
        self.norms = [norm() for _ in range(3 if cross else 2)]

    def call(self, x, memory=None, bias=None, training=False):
        parts = [lambda y: self.self_attention(y, y, bias, training=training)]
        if self.cross_attention is not None:
            parts.append(lambda y: self.cross_attention(y, memory, training=training))
        parts.append(lambda y: self.feed(y, training=training))
        for part, norm in zip(parts, self.norms, strict=True):
            x = x + part(norm(x)) if self.prenorm else norm(x + part(x))
        return x


class GPT(tf.keras.Model):
    def __init__(self, depth=4, width=384, heads=6, length=128):
        super().__init__()
        self.embed, self.position = layers.Embedding(_VOCABULARY, width), layers.Embedding(length, width)
        self.blocks = [
            Block(Feed(width, 4 * width, "gelu"), layers.LayerNormalization, True, False, width, heads, causal=True) for _ in range(depth)
        ]
        self.norm, self.head = layers.LayerNormalization(), layers.Dense(_VOCABULARY, use_bias=False)

    def call(self, ids, training=False):
        x = self.embed(ids) + self.position(tf.range(ids.shape[1]))
        for block in self.blocks:
            x = block(x, training=training)
        return self.head(self.norm(x))


class Llama(tf.keras.Model):
    def __init__(self, depth=3, width=512, heads=8):
        super().__init__()
        self.embed = layers.Embedding(_VOCABULARY, width)
        self.blocks = [
            Block(Feed(width, 1408, "swiglu", bias=False), RMSNorm, True, False, width, heads, key_heads=2, bias=False, causal=True, rotary=True)
            for _ in range(depth)
        ]
        self.norm, self.head = RMSNorm(), layers.Dense(_VOCABULARY, use_bias=False)

    def call(self, ids, training=False):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, training=training)
        return self.head(self.norm(x))


class Transformer(tf.keras.Model):
    def __init__(self, depth=2, width=512, heads=8, length=64):
        super().__init__()
        self.embed, self.position = layers.Embedding(_VOCABULARY, width), layers.Embedding(length, width)

        def block(cross):
            feed = Feed(width, 4 * width, "relu", dropout=0.1)
            return Block(feed, layers.LayerNormalization, False, cross, width, heads, causal=cross, dropout=0.1)

        self.encoder, self.decoder = [block(False) for _ in range(depth)], [block(True) for _ in range(depth)]
        self.head = layers.Dense(_VOCABULARY)

    def call(self, inputs, training=False):
        source, target = (self.embed(ids) + self.position(tf.range(ids.shape[1])) for ids in inputs)
        for block in self.encoder:
            source = block(source, training=training)
        for block in self.decoder:
            target = block(target, memory=source, training=training)
        return self.head(target)


class RelativeBias(layers.Layer):
    """T5's bias per head and bucket of the distance between two positions."""

    def __init__(self, heads, bidirectional, buckets=32, farthest=128):
        super().__init__()
        self.bidirectional, self.buckets, self.farthest = bidirectional, buckets, farthest
        self.table = layers.Embedding(buckets, heads)

    def call(self, ids):
        length = ids.shape[1]
        distance = tf.range(length)[:, None] - tf.range(length)
        buckets, offset = self.buckets, 0
        if self.bidirectional:
            buckets //= 2
            offset = tf.where(distance < 0, buckets, 0)
        distance = tf.abs(distance) if self.bidirectional else tf.maximum(distance, 0)
        exact = buckets // 2
        log = tf.math.log(tf.maximum(tf.cast(distance, tf.float32), 1.0) / exact) / tf.math.log(self.farthest / exact) * (buckets - exact)
        far = tf.minimum(exact + tf.cast(log, tf.int32), buckets - 1)
        return tf.transpose(self.table(tf.where(distance < exact, distance, far) + offset), (2, 0, 1))


class T5(tf.keras.Model):
    def __init__(self, depth=2, width=256, heads=4):
        super().__init__()
        self.embed = layers.Embedding(_VOCABULARY, width)

        def block(cross):
            return Block(Feed(width, 640, "geglu", bias=False), RMSNorm, True, cross, width, heads, bias=False, causal=cross)

        self.encoder, self.decoder = [block(False) for _ in range(depth)], [block(True) for _ in range(depth)]
        self.biases = [RelativeBias(heads, True), RelativeBias(heads, False)]
        self.norms = [RMSNorm(), RMSNorm()]
        self.head = layers.Dense(_VOCABULARY, use_bias=False)

    def call(self, inputs, training=False):
        source, target = (self.embed(ids) for ids in inputs)
        encoder_bias, decoder_bias = (bias(ids) for bias, ids in zip(self.biases, inputs, strict=True))
        for block in self.encoder:
            source = block(source, bias=encoder_bias, training=training)
        source = self.norms[0](source)
        for block in self.decoder:
            target = block(target, memory=source, bias=decoder_bias, training=training)
        return self.head(self.norms[1](target))


class Switch(layers.Layer):
    """One expert per token, `capacity` tokens per expert; the rest is dropped (Fedus et al., JMLR 2022)."""

    def __init__(self, width, hidden, experts):
        super().__init__()
        self.router = layers.Dense(experts, use_bias=False)
        self.experts = [Feed(width, hidden, "relu") for _ in range(experts)]

    def call(self, x, training=False):
        flat = tf.reshape(x, (-1, x.shape[-1]))
        n_experts = len(self.experts)
        capacity = max(1, (x.shape[0] or 1) * x.shape[1] * 5 // (4 * n_experts))
        gates = tf.nn.softmax(self.router(flat))
        chosen = tf.one_hot(tf.argmax(gates, -1), n_experts)
        position = tf.cumsum(chosen, exclusive=True) * chosen
        place = tf.one_hot(tf.cast(tf.reduce_sum(position, -1), tf.int32), capacity)
        dispatch = chosen[:, :, None] * place[:, None]  # [tokens, experts, capacity]
        combine = dispatch * tf.reduce_max(gates, -1)[:, None, None]
        queues = tf.unstack(tf.einsum("tec,td->ecd", dispatch, flat))
        results = [expert(queue, training=training) for expert, queue in zip(self.experts, queues, strict=True)]
        return tf.reshape(tf.einsum("tec,ecd->td", combine, tf.stack(results)), (-1, x.shape[1], x.shape[2]))


class ExpertChoice(layers.Layer):
    """Every expert takes the tokens that suit it best (Zhou et al., NeurIPS 2022)."""

    def __init__(self, width, hidden, experts):
        super().__init__()
        self.router = layers.Dense(experts, use_bias=False)
        self.experts = [Feed(width, hidden, "swiglu", bias=False) for _ in range(experts)]

    def call(self, x, training=False):
        flat = tf.reshape(x, (-1, x.shape[-1]))
        capacity = max(1, 2 * (x.shape[0] or 1) * x.shape[1] // len(self.experts))
        gates = tf.unstack(tf.transpose(tf.nn.softmax(self.router(flat))))
        sums = []
        for gate, expert in zip(gates, self.experts, strict=True):
            weight, rows = tf.math.top_k(gate, capacity)
            y = expert(tf.gather(flat, rows), training=training) * weight[:, None]
            sums.append(tf.scatter_nd(rows[:, None], y, tf.shape(flat, tf.int32)))
        return tf.reshape(tf.add_n(sums), (-1, x.shape[1], x.shape[2]))


class Experts(tf.keras.Model):
    """A decoder-only transformer with experts in every other block (every: in each)."""

    def __init__(self, kind, experts, depth, width, hidden, heads=8, every=False):
        super().__init__()
        self.embed = layers.Embedding(_VOCABULARY, width)
        self.blocks = []
        for i in range(depth):
            feed = kind(width, hidden, experts) if every or i % 2 else Feed(width, hidden, "relu")
            self.blocks.append(Block(feed, RMSNorm if every else layers.LayerNormalization, True, False, width, heads, causal=True, rotary=every))
        self.norm, self.head = layers.LayerNormalization(), layers.Dense(_VOCABULARY, use_bias=False)

    def call(self, ids, training=False):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, training=training)
        return self.head(self.norm(x))


def _words(length):
    return (Input((length,), tf.int32),)


MODELS = {
    "decoder": (
        Model("gpt-mini", GPT, (tokens(128),), "4 layers, width 384, 6 heads, 128 tokens, vocabulary 8,000", "Radford et al., 2019", _words(128), class_loss),
        Model("llama-mini", Llama, (tokens(256),), "3 layers, width 512, 8 heads on 2 key heads, 256 tokens, vocabulary 8,000", "Touvron et al., 2023",
              _words(256), class_loss, training=(4, 16)),
    ),
    "encdec": (
        Model("transformer-mini", Transformer, (tokens(64), tokens(64)), "2 + 2 layers, width 512, 8 heads, 64 tokens, vocabulary 8,000, dropout 0.1",
              "Vaswani et al., NeurIPS 2017", _words(64), class_loss),
        Model("t5-mini", T5, (tokens(128), tokens(32)), "2 + 2 layers, width 256, 4 heads, 128 and 32 tokens, vocabulary 8,000", "Raffel et al., JMLR 2020",
              _words(32), class_loss),
    ),
    "moe": (
        Model("switch-mini", lambda: Experts(Switch, 8, 4, 256, 1024), (tokens(128),), "4 layers, 8 experts in every other, width 256, 128 tokens",
              "Fedus et al., JMLR 2022", _words(128), class_loss, training=(8, 32)),
        Model("expert-choice-mini", lambda: Experts(ExpertChoice, 6, 2, 384, 1024, every=True), (tokens(128),), "2 layers of 6 experts, width 384, 128 tokens",
              "Zhou et al., NeurIPS 2022", _words(128), class_loss, training=(8, 32)),
    ),
}

"""Transformer encoders (text, images), and MLPs in their place."""

import tensorflow as tf

from benchmarks.zoo.registry import LABEL, Input, Model, class_loss, images, tokens

layers = tf.keras.layers
_VOCABULARY = 8000


def _embedded(ids, length, width):
    """Token plus learned position embeddings."""
    return layers.Embedding(_VOCABULARY, width)(ids) + layers.Embedding(length, width)(tf.range(length))


def _block(x, heads, hidden, prenorm, dropout):
    width = x.shape[-1]
    attention = layers.MultiHeadAttention(heads, width // heads, dropout=dropout)

    def feed(y):
        return layers.Dropout(dropout)(layers.Dense(width)(layers.Dense(hidden, activation="gelu")(y)))

    if prenorm:
        y = layers.LayerNormalization()(x)
        x = x + attention(y, y)
        return x + feed(layers.LayerNormalization()(x))
    x = layers.LayerNormalization()(x + attention(x, x))
    return layers.LayerNormalization()(x + feed(x))


def _bert(depth=3, width=256, heads=4, length=128):
    ids, segments = tf.keras.Input((length,), dtype="int32"), tf.keras.Input((length,), dtype="int32")
    x = layers.LayerNormalization()(_embedded(ids, length, width) + layers.Embedding(2, width)(segments))
    for _ in range(depth):
        x = _block(x, heads, 4 * width, False, 0.1)
    return tf.keras.Model([ids, segments], layers.Dense(_VOCABULARY)(layers.LayerNormalization()(layers.Dense(width, activation="gelu")(x))))


def _prenorm(depth=3, width=512, heads=8, length=256):
    ids = tf.keras.Input((length,), dtype="int32")
    x = _embedded(ids, length, width)
    for _ in range(depth):
        x = _block(x, heads, 4 * width, True, 0.0)
    return tf.keras.Model(ids, layers.Dense(2)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))))


def _patches(image, patch, width):
    """[batch, patches, width]"""
    x = layers.Conv2D(width, patch, patch)(image)
    return layers.Reshape((-1, width))(x)


def _vit(depth=4, width=192, heads=3):
    image = tf.keras.Input((224, 224, 3))
    x = _patches(image, 16, width)
    x = x + layers.Embedding(x.shape[1], width)(tf.range(x.shape[1]))
    for _ in range(depth):
        x = _block(x, heads, 4 * width, True, 0.1)
    return tf.keras.Model(image, layers.Dense(100)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))))


class WindowAttention(layers.Layer):
    """Attention within windows of `window` × `window` patches, shifted by half a window in every other block, with a learned bias."""

    def __init__(self, side, width, heads, window, shift):
        super().__init__()
        self.side, self.heads, self.window, self.shift = side, heads, window, shift
        self.qkv, self.out = layers.Dense(3 * width), layers.Dense(width)
        self.bias = self.add_weight(shape=(heads, window**2, window**2), initializer="zeros", name="bias")
        self.masks = None
        if shift:
            regions = tf.reshape(tf.range(side) // window + tf.cast(tf.range(side) >= side - shift, tf.int32), (1, side, 1))
            grid = tf.transpose(regions * 100, (1, 0, 2)) + tf.transpose(regions, (0, 1, 2))
            flat = self._windows(tf.cast(tf.reshape(grid, (1, side, side, 1)), tf.float32))[..., 0]
            self.masks = tf.where(flat[:, None] == flat[:, :, None], 0.0, -1e9).numpy()[:, None]

    def _windows(self, x):
        """[batch, side, side, c] → [batch × windows, window², c]"""
        n, w, c = self.side // self.window, self.window, x.shape[-1]
        x = tf.transpose(tf.reshape(x, (-1, n, w, n, w, c)), (0, 1, 3, 2, 4, 5))
        return tf.reshape(x, (-1, w * w, c))

    def call(self, x):
        n, w, c = self.side // self.window, self.window, x.shape[-1]
        x = tf.reshape(x, (-1, self.side, self.side, c))
        if self.shift:
            x = tf.roll(x, (-self.shift, -self.shift), (1, 2))
        qkv = tf.reshape(self.qkv(self._windows(x)), (-1, w * w, 3, self.heads, c // self.heads))
        q, k, v = tf.unstack(tf.transpose(qkv, (2, 0, 3, 1, 4)), axis=0)
        scores = tf.matmul(q, k, transpose_b=True) * (c // self.heads) ** -0.5 + self.bias
        if self.masks is not None:
            scores = tf.reshape(scores, (-1, n * n, self.heads, w * w, w * w)) + self.masks
            scores = tf.reshape(scores, (-1, self.heads, w * w, w * w))
        y = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), (0, 2, 1, 3))
        y = tf.transpose(tf.reshape(self.out(tf.reshape(y, (-1, w * w, c))), (-1, n, n, w, w, c)), (0, 1, 3, 2, 4, 5))
        y = tf.reshape(y, (-1, self.side, self.side, c))
        if self.shift:
            y = tf.roll(y, (self.shift, self.shift), (1, 2))
        return tf.reshape(y, (-1, self.side**2, c))


class Merge(layers.Layer):
    """Four neighbouring patches become one of twice the width."""

    def __init__(self, side, width):
        super().__init__()
        self.side, self.norm, self.dense = side, layers.LayerNormalization(), layers.Dense(2 * width, use_bias=False)

    def call(self, x):
        x = tf.reshape(x, (-1, self.side, self.side, x.shape[-1]))
        x = tf.concat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.dense(self.norm(tf.reshape(x, (-1, self.side**2 // 4, x.shape[-1]))))


def _swin(width=96, window=7):
    image = tf.keras.Input((224, 224, 3))
    x, side = layers.LayerNormalization()(_patches(image, 8, width)), 28
    for stage in range(2):
        for shift in (0, window // 2):
            y = layers.LayerNormalization()(x)
            x = x + WindowAttention(side, width, width // 32, window, shift)(y)
            x = x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(x)))
        if stage == 0:
            x, side, width = Merge(side, width)(x), side // 2, 2 * width
    return tf.keras.Model(image, layers.Dense(100)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))))


def _mixer(depth=4, width=512):
    image = tf.keras.Input((224, 224, 3))
    x = _patches(image, 16, width)
    n = x.shape[1]
    for _ in range(depth):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(n)(layers.Dense(256, activation="gelu")(y))
        x = x + layers.Permute((2, 1))(y)
        x = x + layers.Dense(width)(layers.Dense(2048, activation="gelu")(layers.LayerNormalization()(x)))
    return tf.keras.Model(image, layers.Dense(100)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))))


def _gmlp(depth=4, width=256, length=128):
    ids = tf.keras.Input((length,), dtype="int32")
    x = layers.Embedding(_VOCABULARY, width)(ids)
    for _ in range(depth):
        y = layers.Dense(6 * width, activation="gelu")(layers.LayerNormalization()(x))
        gate, value = y[..., : 3 * width], y[..., 3 * width :]
        gate = layers.Permute((2, 1))(layers.LayerNormalization()(gate))
        gate = layers.Permute((2, 1))(layers.Dense(length, bias_initializer="ones")(gate))
        x = x + layers.Dense(width)(gate * value)
    return tf.keras.Model(ids, layers.Dense(_VOCABULARY)(layers.LayerNormalization()(x)))


MODELS = {
    "encoder": (
        Model("bert-mini", _bert, (tokens(128), tokens(128)), "3 layers, width 256, 4 heads, 128 tokens, vocabulary 8,000, dropout 0.1; masked words",
              "Devlin et al., NAACL 2019", (Input((128,), tf.int32),), class_loss),
        Model("prenorm-encoder", _prenorm, (tokens(256),), "3 layers, width 512, 8 heads, 256 tokens, norm first; 2 classes; Keras's Adam",
              "Xiong et al., ICML 2020", LABEL, class_loss, training=(8, 32), adam="keras"),
    ),
    "vit": (
        Model("vit-mini", _vit, images(224), "4 layers, width 192, 3 heads, 16 × 16 patches, mean pooling, dropout 0.1; 224 × 224",
              "Dosovitskiy et al., ICLR 2021", LABEL, class_loss),
        Model("swin-mini", _swin, images(224), "2 stages of 2 blocks, widths 96 and 192, 8 × 8 patches, windows of 7; 224 × 224", "Liu et al., ICCV 2021",
              LABEL, class_loss),
    ),
    "mixer": (
        Model("mlp-mixer", _mixer, images(224), "S/16 with 4 layers; 224 × 224", "Tolstikhin et al., NeurIPS 2021", LABEL, class_loss),
        Model("gmlp", _gmlp, (tokens(128),), "4 layers, width 256, 128 tokens, vocabulary 8,000; masked words", "Liu et al., NeurIPS 2021",
              (Input((128,), tf.int32),), class_loss),
    ),
}

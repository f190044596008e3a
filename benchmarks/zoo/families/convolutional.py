"""Convolutional networks beyond classifiers of images: sequences, pairs of images, segmentation, detection, autoencoders."""

import tensorflow as tf

from benchmarks.zoo.registry import LABEL, Input, Model, class_loss, images, square_loss, tokens

layers = tf.keras.layers


def _conv(x, width, size=3, stride=1, activation="relu"):
    return layers.Conv2D(width, size, stride, padding="same", activation=activation)(x)


def _tcn(length=256, width=64, depth=6):
    """Residual blocks of two causal convolutions, dilated by 1, 2, 4, …"""
    signal = tf.keras.Input((length, 16))
    x = layers.Dense(width)(signal)
    for i in range(depth):
        y = x
        for _ in range(2):
            y = layers.SpatialDropout1D(0.1)(layers.Conv1D(width, 3, padding="causal", dilation_rate=2**i, activation="relu")(y))
        x = layers.ReLU()(x + y)
    return tf.keras.Model(signal, layers.Dense(16)(x))


def _wavenet(length=512, width=64, depth=8, levels=256):
    """Gated dilated convolutions; the skips of all layers are added up."""
    signal = tf.keras.Input((length,), dtype="int32")
    x = layers.Embedding(levels, width)(signal)
    skips = []
    for i in range(depth):
        tanh, gate = (layers.Conv1D(width, 2, padding="causal", dilation_rate=2**i, activation=a)(x) for a in ("tanh", "sigmoid"))
        y = tanh * gate
        skips.append(layers.Dense(width)(y))
        x = x + layers.Dense(width)(y)
    x = layers.ReLU()(layers.Dense(width, activation="relu")(layers.ReLU()(layers.Add()(skips))))
    return tf.keras.Model(signal, layers.Dense(levels)(x))


def _shared(size, widths, embedding):
    image = tf.keras.Input((size, size, 3))
    x = image
    for width in widths:
        x = layers.MaxPooling2D()(_conv(_conv(x, width), width))
    return tf.keras.Model(image, layers.Dense(embedding)(layers.Flatten()(x)))


def _siamese(size=96):
    """One network for both images; the distance decides."""
    pair = [tf.keras.Input((size, size, 3)) for _ in range(2)]
    network = _shared(size, (32, 64, 128, 128), 256)
    a, b = (layers.Activation("sigmoid")(network(x)) for x in pair)
    difference = layers.Subtract()([a, b])
    return tf.keras.Model(pair, layers.Dense(1)(layers.Maximum()([difference, layers.Rescaling(-1.0)(difference)])))


def _pair_loss(logits, same):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=same, logits=logits))


def _triplet(size=96):
    three = [tf.keras.Input((size, size, 3)) for _ in range(3)]
    network = _shared(size, (32, 64, 128), 128)
    return tf.keras.Model(three, [layers.UnitNormalization()(network(x)) for x in three])


def _triplet_loss(embeddings):
    anchor, positive, negative = embeddings
    near, far = (tf.reduce_sum(tf.math.squared_difference(anchor, x), -1) for x in (positive, negative))
    return tf.reduce_mean(tf.maximum(near - far + 0.2, 0.0))


class ConvVAE(tf.keras.Model):
    """Images of 64 × 64; outputs the image, the mean and the logarithm of the variance of the code."""

    def __init__(self, code=64):
        super().__init__()
        self.down = [layers.Conv2D(w, 3, 2, padding="same", activation="relu") for w in (32, 64, 128)]
        self.flat, self.mean, self.log_variance = layers.Flatten(), layers.Dense(code), layers.Dense(code)
        self.expand = layers.Dense(8 * 8 * 128, activation="relu")
        self.up = [layers.Conv2DTranspose(w, 3, 2, padding="same", activation="relu") for w in (128, 64, 32)]
        self.out = layers.Conv2D(3, 3, padding="same")

    def call(self, x, training=False):
        for layer in self.down:
            x = layer(x)
        x = self.flat(x)
        mean, log_variance = self.mean(x), self.log_variance(x)
        noise = tf.random.normal(tf.shape(mean)) if training else 0.0
        x = tf.reshape(self.expand(mean + tf.exp(0.5 * log_variance) * noise), (-1, 8, 8, 128))
        for layer in self.up:
            x = layer(x)
        return self.out(x), mean, log_variance


def _vae_loss(outputs, images_):
    image, mean, log_variance = outputs
    divergence = -0.5 * tf.reduce_sum(1 + log_variance - tf.square(mean) - tf.exp(log_variance), -1)
    return tf.reduce_sum(tf.math.squared_difference(image, images_)) / image.shape[0] + tf.reduce_mean(divergence)


def _denoising(width=784):
    x = noisy = tf.keras.Input((width,))
    for hidden in (512, 256, 64, 256, 512):
        x = layers.Dense(hidden, activation="relu")(layers.Dropout(0.2)(x))
    return tf.keras.Model(noisy, layers.Dense(width)(x))


def _double(x, width):
    return _conv(_conv(x, width), width)


def _unet(size=256, widths=(32, 64, 128, 256), bottom=512, attention=False):
    image = tf.keras.Input((size, size, 3))
    x, skips = image, []
    for width in widths:
        x = _double(x, width)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = _double(x, bottom)
    for width, skip in zip(widths[::-1], skips[::-1], strict=True):
        up = layers.Conv2DTranspose(width, 2, 2)(x)
        if attention:
            gate = layers.ReLU()(_conv(up, width // 2, 1, activation=None) + _conv(skip, width // 2, 1, activation=None))
            skip = skip * _conv(gate, 1, 1, activation="sigmoid")
        x = _double(layers.Concatenate()([skip, up]), width)
    return tf.keras.Model(image, _conv(x, 8, 1, activation=None))


def _unet_plusplus(size=256, widths=(32, 64, 128, 256)):
    """Every node takes all nodes of its level before it and the next level's; every node of the top level is an output."""
    image = tf.keras.Input((size, size, 3))
    columns, x = [[]], image
    for width in widths:
        x = _double(x if not columns[0] else layers.MaxPooling2D()(x), width)
        columns[0].append(x)
    for j in range(1, len(widths)):
        column = []
        for i in range(len(widths) - j):
            up = layers.Conv2DTranspose(widths[i], 2, 2)(columns[j - 1][i + 1])
            column.append(_double(layers.Concatenate()([*(c[i] for c in columns), up]), widths[i]))
        columns.append(column)
    return tf.keras.Model(image, [_conv(c[0], 8, 1, activation=None) for c in columns[1:]])


def _deep_loss(outputs, labels):
    return tf.add_n([class_loss(logits, labels) for logits in outputs])


def _retinanet(size=256, width=128, anchors=9, classes=20):
    """A small backbone, a pyramid of five levels, and heads for class and box shared by them."""
    image = tf.keras.Input((size, size, 3))
    x = _conv(image, 32, 7, 2)
    levels = []
    for w in (64, 128, 256, 512):
        x = _conv(x, w, 3, 2)
        y = _conv(_conv(x, w), w, activation=None)
        x = layers.ReLU()(x + y)
        levels.append(x)
    lateral = [_conv(level, width, 1, activation=None) for level in levels[1:]]
    for i in (1, 0):
        lateral[i] = lateral[i] + layers.UpSampling2D()(lateral[i + 1])
    pyramid = [_conv(level, width, activation=None) for level in lateral]
    pyramid.append(_conv(levels[-1], width, 3, 2, None))
    pyramid.append(_conv(layers.ReLU()(pyramid[-1]), width, 3, 2, None))
    outputs = []
    for per_anchor in (classes, 4):
        head = [layers.Conv2D(width, 3, padding="same", activation="relu") for _ in range(2)]
        head.append(layers.Conv2D(anchors * per_anchor, 3, padding="same"))
        flat = []
        for level in pyramid:
            for layer in head:
                level = layer(level)
            flat.append(layers.Reshape((-1, per_anchor))(level))
        outputs.append(layers.Concatenate(axis=1)(flat))
    return tf.keras.Model(image, outputs)


_ANCHORS = 9 * sum((256 // stride) ** 2 for stride in (8, 16, 32, 64, 128))


def _detection_loss(outputs, labels, boxes):
    """Focal loss (gamma 2) of the classes and a smooth L1 loss of the boxes; labels [batch, anchors, classes], boxes [batch, anchors, 4]."""
    logits, offsets = outputs
    p = tf.sigmoid(logits)
    right = labels * p + (1 - labels) * (1 - p)
    focal = tf.square(1 - right) * tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    difference = tf.abs(offsets - boxes)
    smooth = tf.where(difference < 1, 0.5 * tf.square(difference), difference - 0.5)
    return tf.reduce_mean(focal) + tf.reduce_mean(smooth)


def _residual(x, width):
    return layers.ReLU()(x + _conv(_conv(x, width), width, activation=None))


def _hrnet(size=224, width=32, stages=3):
    """Branches of falling resolution side by side, each summed into all others at the end of a stage."""
    image = tf.keras.Input((size, size, 3))
    branches = [_conv(_conv(image, 64, 3, 2), width, 3, 2)]
    for _ in range(stages):
        branches = [_residual(_residual(x, width * 2**i), width * 2**i) for i, x in enumerate(branches)]
        fused = []
        for i in range(len(branches) + 1):
            parts = []
            for j, x in enumerate(branches):
                if j > i:
                    parts.append(layers.UpSampling2D(2 ** (j - i))(_conv(x, width * 2**i, 1, activation=None)))
                else:
                    for k in range(j, i):
                        x = _conv(x, width * 2 ** (k + 1), 3, 2, activation="relu" if k + 1 < i else None)
                    parts.append(x)
            fused.append(layers.ReLU()(layers.Add()(parts) if len(parts) > 1 else parts[0]))
        branches = fused
    pooled = [layers.GlobalAveragePooling2D()(x) for x in branches]
    return tf.keras.Model(image, layers.Dense(100)(layers.Concatenate()(pooled)))


class CrossStitch(layers.Layer):
    """Learned mixing of the activations of all tasks (Misra et al., CVPR 2016)."""

    def build(self, shapes):
        n = len(shapes)
        self.mix = self.add_weight(shape=(n, n), initializer="identity", name="mix")

    def call(self, tasks):
        return [tf.add_n([self.mix[i, j] * x for j, x in enumerate(tasks)]) for i in range(len(tasks))]


def _cross_stitch(size=128, tasks=3):
    image = tf.keras.Input((size, size, 3))
    streams = [image] * tasks
    for width in (32, 64, 128):
        streams = [layers.MaxPooling2D()(_double(x, width)) for x in streams]
        streams = CrossStitch()(streams)
    return tf.keras.Model(image, [layers.Dense(10)(layers.GlobalAveragePooling2D()(x)) for x in streams])


def _stitch_loss(outputs, labels):
    return tf.add_n([class_loss(logits, labels[:, i]) for i, logits in enumerate(outputs)])


_MASK = (Input((256, 256), tf.int32),)
_SEGMENT = {"inference": (1, 8), "training": (4, 16)}

MODELS = {
    "dilated": (
        Model("tcn", _tcn, (Input((256, 16)),), "6 residual blocks, width 64, 256 steps, dropout 0.1", "Bai et al., 2018", (Input((256, 16)),), square_loss),
        Model("wavenet", _wavenet, (tokens(512),), "8 layers, width 64, 256 levels, 512 samples", "van den Oord et al., 2016",
              (Input((512,), tf.int32),), class_loss),
    ),
    "siamese": (
        Model("siamese-conv", _siamese, images(96) * 2, "4 stages of 2 convolutions, 96 × 96", "Koch et al., 2015", (Input((1,)),), _pair_loss),
        Model("triplet", _triplet, images(96) * 3, "3 stages of 2 convolutions, 96 × 96; Keras's Adam", "Schroff et al., CVPR 2015", (), _triplet_loss,
              adam="keras"),
    ),
    "autoencoder": (
        Model("conv-vae", ConvVAE, images(64), "3 + 3 convolutions, code of 64; 64 × 64", "Kingma and Welling, ICLR 2014", images(64), _vae_loss),
        Model("denoising-mlp", _denoising, (Input((784,)),), "784-512-256-64-256-512-784, dropout 0.2; Keras's Adam", "Vincent et al., ICML 2008",
              (Input((784,)),), square_loss, adam="keras", training=(128, 1024)),
    ),
    "unet": (
        Model("unet", _unet, images(256), "4 levels, widths 32 to 512, 256 × 256; Keras's Adam", "Ronneberger et al., MICCAI 2015", _MASK, class_loss,
              adam="keras", **_SEGMENT),
        Model("attention-unet", lambda: _unet(attention=True), images(256), "4 levels, widths 32 to 512, gates on the skips; 256 × 256",
              "Oktay et al., MIDL 2018", _MASK, class_loss, **_SEGMENT),
        Model("unet-plusplus", _unet_plusplus, images(256), "4 levels, widths 32 to 256, an output per column; 256 × 256", "Zhou et al., DLMIA 2018", _MASK,
              _deep_loss, **_SEGMENT),
    ),
    "detection": (
        Model("retinanet", _retinanet, images(256), "backbone of 4 residual stages, pyramid of 5 levels, heads of 2 layers; targets matched outside; 256 × 256",
              "Lin et al., ICCV 2017", (Input((_ANCHORS, 20)), Input((_ANCHORS, 4))), _detection_loss, **_SEGMENT),
        Model("hrnet", _hrnet, images(224), "3 stages, 1 to 4 branches, widths 32 to 256, no batch normalization; 224 × 224", "Wang et al., TPAMI 2020", LABEL,
              class_loss),
    ),
    "multitask": (
        Model("cross-stitch", _cross_stitch, images(128), "3 networks of 3 stages, 3 classifications; 128 × 128", "Misra et al., CVPR 2016",
              (Input((3,), tf.int32),), _stitch_loss),
    ),
}

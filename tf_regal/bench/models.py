"""Models whose graphs are measured: Keras applications with random weights. Needs TensorFlow."""

SIZE, BATCH = 160, 8
"""Pixels of a side, and images of a step."""


def make_function(tf, name, mode):
    """(ConcreteFunction, arguments) of a model: mode "inference" or "training" (a step with SGD).

    name: of `tf.keras.applications`, or "small" for two convolutions and a dense layer.
    """
    tf.keras.utils.set_random_seed(1)
    if name == "small":
        layers = tf.keras.layers
        model = tf.keras.Sequential(
            [layers.Input((SIZE, SIZE, 3)), layers.Conv2D(4, 3), layers.ReLU(), layers.Conv2D(4, 3), layers.GlobalMaxPool2D(), layers.Dense(10)]
        )
    else:
        model = getattr(tf.keras.applications, name)(input_shape=(SIZE, SIZE, 3), weights=None, classes=10)
    images = tf.random.stateless_uniform((BATCH, SIZE, SIZE, 3), (1, 2))
    if mode == "inference":
        return tf.function(lambda x: model(x, training=False)).get_concrete_function(images), [images]
    labels = tf.random.stateless_uniform((BATCH,), (3, 4), maxval=10, dtype=tf.int32)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy()
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step.get_concrete_function(images, labels), [images, labels]

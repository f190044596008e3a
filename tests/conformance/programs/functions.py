"""Plain functions: gradients, control flow, structures, types, state."""

import pathlib
import tempfile

import numpy as np
import tensorflow as tf

from .registry import Instance, of_function, program, tape_gradients, values, weights

SPEC = tf.TensorSpec([None, 8], tf.float32)


def two_branches(x, w):
    a, b = tf.tanh(x @ w), tf.sin(x @ w)
    for _ in range(2):
        a, b = tf.tanh(a @ w) + b, tf.cos(b @ w)
    return a, b


def one(i):
    return (values(i, 4, 8),)


@program("plain function")
def plain():
    w = weights(8, 8)
    return of_function(lambda x: two_branches(x, w), one, [w], serve=[SPEC])


@program("tf.Module with a training step", stateless=False)
def module():
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b, self.steps = weights(8, 8), weights(8), tf.Variable(0)

        @tf.function(input_signature=[SPEC])
        def serve(self, x):
            return two_branches(x, self.w)[0] + self.b

        @tf.function
        def train(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.serve(x) - 1.0) ** 2)
            for v, g in zip((self.w, self.b), tape.gradient(loss, (self.w, self.b)), strict=True):
                v.assign_sub(0.1 * g)
            self.steps.assign_add(1)
            return loss

    net = Net()
    return Instance(
        step=lambda i: (net.train(*one(i)), net.serve(*one(i))), state=lambda: [v.numpy() for v in net.variables], functions=[net.train, net.serve],
        module=net, serve_args=one(0), model=net,
    )


@program("gradient tape inside")
def tape_inside():
    w = weights(8, 8)

    def body(x):
        with tf.GradientTape() as outer, tf.GradientTape() as tape:
            loss = tf.reduce_sum(two_branches(x, w)[0] ** 2)
            first = tape.gradient(loss, w)
        return loss, first, outer.gradient(first, w)

    return of_function(body, one)


@program("custom_gradient")
def custom_gradient():
    w = weights(8, 8)

    @tf.custom_gradient
    def clipped(x):
        def grad(dy):
            return tf.clip_by_value(dy, -0.5, 0.5)

        return tf.identity(x), grad

    return of_function(lambda x: clipped(tf.tanh(clipped(x @ w)) @ w) + tf.sin(x), one, [w])


@program("recompute_grad")
def recompute_grad():
    w = weights(8, 8)
    block = tf.recompute_grad(lambda x: tf.tanh(tf.tanh(x @ w) @ w))
    instance = of_function(lambda x: block(block(x)) + tf.sin(x), one, [w])
    instance.second = None  # TensorFlow itself has none
    return instance


@program("map_fn, scan, vectorized_map")
def maps():
    w = weights(8)

    def body(x):
        return (
            tf.map_fn(lambda row: tf.tanh(row * w), x), tf.scan(lambda a, row: a * 0.5 + row * w, x, tf.zeros([8])),
            tf.vectorized_map(lambda row: tf.reduce_sum(row * w), x),
        )

    return of_function(body, one, [w], serve=[SPEC])


@program("while loop with TensorArrays")
def while_loop():
    w = weights(8, 8)

    def body(x):
        rows = tf.TensorArray(tf.float32, size=3)
        for step in tf.range(3):
            x = tf.tanh(x @ w)
            rows = rows.write(step, x)
        return rows.stack(), x + tf.sin(x)

    return of_function(body, one, [w], serve=[SPEC])


@program("conds and cases")
def conds():
    w = weights(8, 8)

    def body(x):
        y = tf.tanh(x @ w) if tf.reduce_sum(x) > 0 else tf.sin(x) @ w
        z = tf.switch_case(tf.cast(tf.reduce_sum(x) > 1, tf.int32), [lambda: y + 1.0, lambda: y * 2.0])
        return y, z @ w

    return of_function(body, one, [w], serve=[SPEC])


@program("called functions that are not inlined")
def not_inlined():
    w = weights(8, 8)

    @tf.function(experimental_attributes={"_noinline": True})
    def inner(x):
        return tf.tanh(x @ w) @ w

    return of_function(lambda x: inner(tf.sin(x)) + inner(tf.cos(x)), one, [w])


@program("ragged inputs and outputs")
def ragged():
    w = weights(8)

    def body(r):
        return tf.ragged.map_flat_values(lambda v: tf.tanh(v) * 2.0, r), tf.reduce_sum(r, axis=1) * w[0] + tf.sin(w[1])

    return of_function(
        body, lambda i: (tf.RaggedTensor.from_row_lengths(values(i, 6), [2, 0, 4]),), [w],
        options={"input_signature": [tf.RaggedTensorSpec([None, None], tf.float32)]},
    )


@program("sparse inputs and outputs")
def sparse():
    w = weights(5, 3)

    def body(s):
        return tf.sparse.map_values(tf.sin, s), tf.tanh(tf.sparse.sparse_dense_matmul(s, w))

    return of_function(body, lambda i: (tf.SparseTensor([[0, 1], [2, 3]], values(i, 2), [4, 5]),), [w])


@program("nested structures, None, untouched inputs")
def structures():
    def body(a, pair, flag=None):
        out = {"a": (tf.sin(a) @ a, None), "same": pair[1], "flag": flag, "none": None}
        return out, [pair[0] * 2.0, tf.cos(a)]

    fn = tf.function(body)
    return Instance(
        step=lambda i: fn(values(i, 4, 4), (values(i, 3), tf.constant("text")), flag=None if i % 2 else tf.constant(True)), functions=[fn]
    )


@program("variable created on the first call", stateless=False)
def first_call_variable():
    kept = []

    def body(x):
        if not kept:
            kept.append(weights(8, 8))
        kept[0].assign_add(0.1 * tf.ones([8, 8]))
        return two_branches(x, kept[0])

    fn = tf.function(body)
    return Instance(step=lambda i: fn(*one(i)), state=lambda: [v.numpy() for v in kept], functions=[fn])


@program("captured iterator", stateless=False)
def captured_iterator():
    w, iterator = weights(8, 8), iter(tf.data.Dataset.from_tensor_slices(values(0, 40, 4, 8)).repeat())
    fn = tf.function(lambda: two_branches(next(iterator), w))
    return Instance(step=lambda i: fn(), functions=[fn])


@program("dataset loop inside", stateless=False)
def dataset_loop():
    w, data = weights(8, 8), tf.data.Dataset.from_tensor_slices(values(0, 3, 4, 8))

    def body(x):
        total = tf.zeros([4, 8])
        for batch in data:
            total += tf.tanh(batch @ w) + x
        return total, tf.sin(total) @ w

    return of_function(body, one, [w], gradients=False)


@program("input_signature with unknown dimensions")
def unknown_dimensions():
    w = weights(8, 8)
    options = {"input_signature": [tf.TensorSpec(None, tf.float32), tf.TensorSpec([None], tf.int32)]}
    arguments = lambda i: (values(i, 2 + i % 3, 8), tf.constant([3, i]))  # noqa: E731
    return of_function(lambda x, n: (*two_branches(x, w), tf.reshape(x, [-1])[: n[0]]), arguments, [w], options=options)


@program("string, bool, int, complex, quantised types")
def types():
    def body(x, text, n):
        z = tf.complex(x, tf.transpose(x))
        q = tf.quantization.quantize(x, -4.0, 4.0, tf.quint8, mode="MIN_FIRST")
        back = tf.quantization.dequantize(q.output, q.output_min, q.output_max, mode="MIN_FIRST")
        return {
            "strings": tf.strings.join([tf.strings.upper(text), tf.strings.as_string(n)]), "bools": tf.reduce_any(x > 0, 0), "ints": n // 3 * 2,
            "complex": tf.abs(tf.signal.fft(z)), "back": back, "half": tf.cast(x, tf.float16) * 2, "brain": tf.cast(x, tf.bfloat16) + 1,
        }

    return of_function(body, lambda i: (values(i, 4, 4), tf.constant(["a", "é"]), tf.constant([i, 7])))


@program("lookup tables and assets", stateless=False)
def tables():
    path = tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False)  # noqa: SIM115
    path.write("red\ngreen\nblue\n")
    path.close()
    net = tf.Module()
    net.asset = tf.saved_model.Asset(path.name)
    index = tf.lookup.TextFileIndex
    net.fixed = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(net.asset, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER), -1)
    counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    net.serve = tf.function(lambda words: net.fixed.lookup(words) * 2 + 1, input_signature=[tf.TensorSpec([None], tf.string)])

    def body(words):
        counts.insert(words, counts.lookup(words) + 1)
        return net.fixed.lookup(words) + 1, counts.lookup(words), tf.strings.length(words)

    fn = tf.function(body)
    words = tf.constant(["red", "none", "blue"])
    return Instance(
        step=lambda i: fn(words), state=lambda: sorted(zip(*(t.numpy().tolist() for t in counts.export()), strict=True)), functions=[fn], module=net,
        serve_args=(words,),
    )


@program("constants of 64 MB and odd names", heavy=True)
def large_constants():
    big = np.arange(17_000_000, dtype=np.float32).reshape(8, -1) / 17e6

    def body(x):
        with tf.name_scope("a.b-c/D_9.x>y"):
            y = tf.sin(x, name="1st")
        with tf.name_scope("Func"):
            z = tf.cos(y, name="_Retval")
        return tf.reduce_sum(tf.add(y, z, name="Func") @ tf.constant(big), 1)

    return of_function(body, one)


@program("pinned devices")
def pinned():
    with tf.device("CPU:1"):
        v = weights(8, 8)
    w = weights(8, 8)

    def body(x):
        with tf.device("CPU:1"):
            a = tf.tanh(x @ v)
        with tf.device("CPU:0"):
            b = tf.sin(a @ w)
        return a, b + tf.cos(a)

    return of_function(body, one, [v, w])


@program("side effects in order", stateless=False)
def effects():
    log, total = [], tf.Variable(0.0)
    printed = tempfile.NamedTemporaryFile("r", suffix=".txt")  # noqa: SIM115

    def note(x):
        log.append(float(x))
        return x

    def body(x):
        total.assign_add(tf.reduce_sum(x))
        y = tf.py_function(note, [total.read_value()], tf.float32)
        total.assign(total * 0.5 + tf.sin(y))
        tf.debugging.assert_less(total, 1e6)
        z = tf.py_function(note, [total.read_value()], tf.float32)
        tf.print("total", total, output_stream=f"file://{printed.name}")
        return y + z, tf.tanh(x)

    fn = tf.function(body)
    return Instance(step=lambda i: fn(*one(i)), state=lambda: [list(log), total.numpy(), pathlib.Path(printed.name).read_text()], functions=[fn])


@program("assertion or op that fails")
def failing():
    w = weights(8, 8)

    def body(x):
        tf.debugging.assert_all_finite(x, "not finite here")
        y = tf.tanh(x @ w)
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_sum(x) < 1e6, ["too large", tf.reduce_sum(x)])]):
            return tf.linalg.inv(y @ tf.transpose(y) + tf.eye(tf.shape(x)[0]), name="the_inverse"), tf.gather(y, tf.constant([0, 1]), name="the_gather")

    return of_function(body, one, [w], fail=(tf.fill([4, 8], np.float32(1e6)),), gradients=False)


@program("random streams", stateless=False)
def random_streams():
    tf.random.set_seed(7)
    generator = tf.random.Generator.from_seed(3)

    def body(x):
        return tf.random.normal([4, 8], seed=1) + x, generator.normal([4]), tf.random.stateless_uniform([3], [1, 2]), tf.nn.dropout(x, 0.5, seed=5)

    fn = tf.function(body)
    return Instance(step=lambda i: fn(*one(i)), functions=[fn])


@program("summaries", stateless=False)
def summaries():
    folder = tempfile.mkdtemp()
    writer = tf.summary.create_file_writer(folder)

    def body(x, step):
        with writer.as_default(step=step):
            tf.summary.scalar("mean", tf.reduce_mean(x))
        return tf.sin(x) @ tf.transpose(x)

    def written():
        writer.flush()
        found = []
        for path in sorted(tf.io.gfile.glob(folder + "/*")):
            for event in tf.compat.v1.train.summary_iterator(path):
                found += [(event.step, v.tag, float(tf.make_ndarray(v.tensor))) for v in event.summary.value]
        return found

    fn = tf.function(body)
    return Instance(step=lambda i: fn(*one(i), tf.constant(i, tf.int64)), state=written, functions=[fn])


@program("queue inside", stateless=False)
def queues():
    queue = tf.queue.FIFOQueue(10, [tf.float32], shapes=[[4, 8]])

    def body(x):
        queue.enqueue(tf.sin(x))
        queue.enqueue(tf.cos(x))
        return queue.dequeue() * 2.0, queue.dequeue() + 1.0, queue.size()

    fn = tf.function(body)
    return Instance(step=lambda i: fn(*one(i)), functions=[fn])


@program("unrolled graph of 10,000 ops", heavy=True)
def unrolled():
    w = weights(8, 8)

    def body(x):
        for _ in range(2500):
            x = tf.tanh(x @ w) + tf.sin(x)
        return x

    return of_function(body, one)


@program("called from an eager loop, under tapes and without", stateless=False)
def eager_loop():
    w = weights(8, 8)
    fn = tf.function(lambda x: two_branches(x, w)[0])
    first, second = tape_gradients(fn, one, [w])

    def step(i):
        result = fn(*one(i))
        if i % 2:
            w.assign_sub(0.01 * tf.clip_by_value(first(i)[0], -1, 1))
        return result

    return Instance(step=step, state=lambda: [w.numpy()], functions=[fn], gradient=first, second=second)

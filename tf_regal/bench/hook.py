"""What the hook costs: a function that keeps its default, and the planning of a training step. Needs TensorFlow."""

import tempfile

from tf_regal.bench import models, timing

SIZE, LAYERS = 64, 100
_WARMING = 2  # Keras numbers the layers of a process, and TensorFlow sorts by name: only from the second model on is the graph the same


def kept_default(pairs=60, calls=20):
    """Step time hooked / plain of a function without parallelism, whose default plan is kept.

    Returns:
        (sorted list of the ratios of `pairs` interleaved pairs of `calls` calls each, the function's Report).
    """
    import tensorflow as tf

    import tf_regal.hook

    x = tf.random.stateless_normal((SIZE, SIZE), (1, 2)) / 8

    def chain(x):
        for _ in range(LAYERS):
            x = tf.tanh(x @ x)
        return x

    plain = tf.function(chain)
    hooked = tf_regal.hook.optimize(chain, topology="local", cache_dir=False)

    def steps(function):
        return timing.seconds(lambda: [function(x).numpy() for _ in range(calls)])

    for function in (plain, hooked):
        steps(function)
    found = timing.interleaved({"plain": lambda: steps(plain), "hooked": lambda: steps(hooked)}, pairs)
    ratios = [a / b for a, b in zip(found["hooked"], found["plain"], strict=True)]
    return sorted(ratios), tf_regal.hook.reports()[-1]


def planning(model="InceptionV3", evaluations=5000):
    """(Report of the model's training step, planned for peak_memory on this machine, number of traced ops)."""
    import tensorflow as tf

    import tf_regal.hook

    concrete, args = models.make_function(tf, model, "training")
    planned = tf_regal.hook.optimize(concrete, objective="peak_memory", topology="local", evaluations=evaluations, cache_dir=False, on_error="raise")
    planned(*args)
    return tf_regal.hook.reports()[-1], len(concrete.graph.get_operations())


def first_call(model="InceptionV3", evaluations=5000, pairs=3):
    """How long tracing and the first call of a model's training step take with its plan in the cache, over how long they take without the hook.

    Returns:
        Sample of the ratios of `pairs` interleaved pairs.
    """
    import tensorflow as tf

    import tf_regal.hook

    def traced_and_called():
        def run():
            concrete, args = models.make_function(tf, model, "training")
            tf.nest.map_structure(lambda t: t.numpy(), concrete(*args))

        return timing.seconds(run)

    with tempfile.TemporaryDirectory() as cache:

        def hooked():
            with tf_regal.hook.enable(objective="peak_memory", topology="local", evaluations=evaluations, cache_dir=cache, on_error="raise"):
                return traced_and_called()

        traced_and_called()
        for _ in range(_WARMING):
            hooked()
        found = timing.interleaved({"plain": traced_and_called, "hooked": hooked}, pairs)
    return timing.ratio(found["hooked"], found["plain"])


def small_functions(pairs=20, functions=30):
    """How long tracing and calling functions below min_ops takes under enable(), over how long it takes without → Sample of the ratios."""
    import tensorflow as tf

    import tf_regal.hook

    x = tf.ones((8, 8))

    def traced_and_called():
        return timing.seconds(lambda: [tf.function(lambda x, i=i: tf.tanh(x @ x) + tf.sin(x) * i)(x).numpy() for i in range(functions)])

    def hooked():
        with tf_regal.hook.enable(topology="local", cache_dir=False):
            return traced_and_called()

    hooked()
    found = timing.interleaved({"plain": traced_and_called, "hooked": hooked}, pairs)
    return timing.ratio(found["hooked"], found["plain"])


def figures(ratios, kept, report, traced, model, calls, first, small):
    """What was measured (see above), as a dict."""
    search = report.plan.search
    return {
        "first_call": {"model": model, "ratio": first}, "small_functions": {"ratio": small},
        "kept_default": {"status": kept.status, "layers": LAYERS, "calls": calls, "ratio": timing.Sample.of(ratios), "middle_half": _middle_half(ratios)},
        "planning": {
            "model": model, "traced_ops": traced, "ops": len(report.plan.ops), "evaluations": search.evaluations,
            "seconds": sum(report.seconds.values()), "search_seconds": search.seconds, "phases": dict(report.seconds),
        },
    }  # fmt: skip


def text(found):
    """The figures in words, as Markdown."""
    kept, planned = found["kept_default"], found["planning"]
    low, high = kept["middle_half"]
    phases = ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in planned["phases"].items())
    return (
        f"- A function that keeps its default ({kept['status'].replace('_', ' ')}; {kept['layers']} layers, one after the other): step time hooked / plain, "
        f"median of {kept['ratio'].repeats} interleaved pairs of {kept['calls']} calls: {kept['ratio'].median:.3f} (middle half {low:.3f} to {high:.3f}).\n"
        f"- Planning {planned['model']}'s training step ({planned['traced_ops']} traced ops, {planned['ops']} that run) with {planned['evaluations']} "
        f"evaluations: {planned['seconds']:.1f} s, of which the search {planned['search_seconds']:.1f} s ({phases}; capture includes TensorFlow's own "
        "optimizers, which the first call needs anyway).\n"
        f"- Tracing that step and its first call, with its plan in the cache, over the same without the hook: {_sample(found['first_call']['ratio'])}.\n"
        f"- Tracing and calling functions below `min_ops` under `enable()`, over the same without: {_sample(found['small_functions']['ratio'])}.\n"
    )


def _sample(ratio):
    return f"{ratio.median:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] ({ratio.repeats} interleaved pairs)"


def _middle_half(ratios):
    quarter = len(ratios) // 4
    return ratios[quarter], ratios[len(ratios) - quarter - 1]

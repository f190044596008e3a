"""What the hook costs: a function that keeps its default, and the planning of a training step. Needs TensorFlow."""

from tf_regal.bench import models, timing

SIZE, LAYERS = 64, 100


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


def figures(ratios, kept, report, traced, model, calls):
    """What was measured (see above), as a dict."""
    search = report.plan.search
    return {
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
    )


def _middle_half(ratios):
    quarter = len(ratios) // 4
    return ratios[quarter], ratios[len(ratios) - quarter - 1]

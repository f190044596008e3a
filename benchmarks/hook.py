"""What the hook costs: a function that keeps its default, and the planning of a large training step.

    python benchmarks/hook.py          # about 2 minutes on two cores; writes docs/hook.md
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pathlib
import statistics
import time

import tensorflow as tf
from memory import make_function

import tf_regal

PAIRS, CALLS = 60, 20
DOC = pathlib.Path(__file__).parent.parent / "docs" / "hook.md"


def chain(x):
    """No parallelism: its default plan is kept."""
    for _ in range(100):
        x = tf.tanh(x @ x)
    return x


def seconds_of(fn, x):
    began = time.perf_counter()
    for _ in range(CALLS):
        fn(x).numpy()
    return time.perf_counter() - began


def kept_default():
    """(sorted ratios hooked / plain of interleaved pairs, report)."""
    x = tf.random.stateless_normal((64, 64), (1, 2)) / 8
    plain = tf.function(chain)
    hooked = tf_regal.optimize(chain, topology="local", cache_dir=False)
    for fn in (plain, hooked):
        seconds_of(fn, x)
    ratios = []
    for pair in range(PAIRS):
        # Who goes first changes from pair to pair: the machine's speed drifts.
        first, second = (plain, hooked) if pair % 2 else (hooked, plain)
        times = {first: seconds_of(first, x), second: seconds_of(second, x)}
        ratios.append(times[hooked] / times[plain])
    return sorted(ratios), tf_regal.reports()[-1]


def planning():
    """The report of InceptionV3's training step, planned with 5,000 evaluations, and the number of traced ops."""
    concrete, args = make_function(tf, "InceptionV3", "training")
    planned = tf_regal.optimize(concrete, objective="peak_memory", topology="local", evaluations=5000, cache_dir=False, on_error="raise")
    planned(*args)
    return tf_regal.reports()[-1], len(concrete.graph.get_operations())


def main():
    ratios, report = kept_default()
    median, quarter = statistics.median(ratios), len(ratios) // 4
    text = (
        "# What the hook costs\n\nMade by `python benchmarks/hook.py`.\n\n"
        f"- A function that keeps its default ({report.status.replace('_', ' ')}; 100 layers, one after the other): step time hooked / plain, median of "
        f"{PAIRS} interleaved pairs of {CALLS} calls: {median:.3f} (middle half {ratios[quarter]:.3f} to {ratios[-quarter - 1]:.3f}).\n"
    )
    report, traced = planning()
    search, total = report.plan.search, sum(report.seconds.values())
    text += (
        f"- Planning InceptionV3's training step ({traced} traced ops, {len(report.plan.ops)} that run) with {search.evaluations} evaluations: "
        f"{total:.1f} s, of which the search {search.seconds:.1f} s ({', '.join(f'{k} {v:.1f} s' for k, v in report.seconds.items())}; "
        "capture includes TensorFlow's own optimizers, which the first call needs anyway).\n"
    )
    DOC.write_text(text)
    print(text)


if __name__ == "__main__":
    main()

"""Predicted against measured, on one TensorFlow worker of one core: in total and op by op.

    python benchmarks/prediction.py      → docs/prediction.md

A copy of each model is profiled; a plan from these costs predicts the step. Another copy then runs, and its median step is measured without a profiler; what
a call to a worker costs (an empty function there) is part of the step and is added to the prediction. Op by op: the costs against those of a second profile.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import numpy as np
import tensorflow as tf
from real_devices import Variant, make_function
from real_models import MODELS, nowhere

import tf_regal
from tf_regal.bench.workers import Workers

DOC = pathlib.Path(__file__).resolve().parents[1] / "docs" / "prediction.md"
STEPS = 15


def measure(name, training, device, call_seconds):
    """A dict of one model's figures."""
    with tempfile.TemporaryDirectory() as directory:
        profiles = []
        for i in range(2):
            function, inputs, _ = make_function(name, training, nowhere, device)
            with tf.device(device):
                profiles.append(tf_regal.profile(function, *inputs, topology=device, costs=f"{directory}/{i}.json"))
        plan = tf_regal.plan(function.get_concrete_function(*inputs), topology=device, costs=f"{directory}/0.json", cache_dir=False)
    function, inputs, _ = make_function(name, training, nowhere, device)
    variant = Variant(function, inputs, device)
    for _ in range(3):
        variant.step()
    seconds = statistics.median(variant.step() for _ in range(STEPS))
    predicted = plan.default.makespan_s + call_seconds
    (first,), (second,) = (p.entries.values() for p in profiles)
    both = [(first[kind].ns, second[kind].ns) for kind in first.keys() & second.keys() if first[kind].ns > 0 and second[kind].ns > 0]
    errors = np.array([abs(a / b - 1) for a, b in both])
    weights = np.array([b for _, b in both], float)
    order = np.argsort(errors)
    half = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    return {
        "model": f"{name}, {'training' if training else 'inference'}", "predicted": predicted, "measured": seconds, "error": predicted / seconds - 1,
        "kinds": len(both), "op_error": float(errors[order][half]),
    }  # fmt: skip


def empty_call(device):
    """Median seconds of a call that does nothing on the worker."""
    function = tf.function(lambda x: x + 1.0)
    with tf.device(device):
        variant = Variant(function, [tf.constant(0.0)], device)
    for _ in range(5):
        variant.step()
    return statistics.median(variant.step() for _ in range(30))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default=DOC, help="(default: %(default)s)")
    args = parser.parse_args()
    with Workers(1) as workers:
        (device,) = workers.devices
        call_seconds = empty_call(device)
        results = []
        for name in MODELS:
            for training in (False, True):
                results.append(measure(name, training, device, call_seconds))
                print(results[-1], flush=True)
    middle = statistics.median(abs(r["error"]) for r in results)
    lines = [
        "# Predicted against measured\n",
        f"`python benchmarks/prediction.py`, {time.strftime('%Y-%m-%d')}: one TensorFlow worker of one core. The step as predicted from a profile of another",
        f"copy of the model, plus {call_seconds * 1e3:.1f} ms for the call, against the median of {STEPS} steps. Op by op: kinds of ops that two profiles saw,",
        f"and the error below which half of their time is. **Median error of the step: {middle:.1%}.** Predicted and measured peaks of memory:",
        "[memory.md](memory.md).\n",
        "| model | predicted, ms | measured, ms | error | kinds of ops | error op by op |\n|---|---|---|---|---|---|",
        *(
            f"| {r['model']} | {r['predicted'] * 1e3:.1f} | {r['measured'] * 1e3:.1f} | {r['error']:+.1%} | {r['kinds']} | {r['op_error']:.1%} |"
            for r in results
        ),
    ]
    pathlib.Path(args.output).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Training that repeats itself to the bit: order="full" against stock TensorFlow, both under enable_op_determinism().

    python benchmarks/repeatability.py          # about 8 minutes on two cores

Three InceptionV3 training steps from fixed weights, three times in each of three fresh processes; counts the different sets of weights.
Stock TensorFlow sums gradients in an order that it leaves to chance; one planned order for every op leaves nothing. Writes docs/repeatability.md.
"""

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys

PROCESSES, RUNS, STEPS = 3, 3, 3
SIZE, BATCH = 160, 8
DOC = pathlib.Path(__file__).parent.parent / "docs" / "repeatability.md"


def run_child(mode):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import numpy as np
    import tensorflow as tf

    import tf_regal

    tf.config.experimental.enable_op_determinism()
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.applications.InceptionV3(input_shape=(SIZE, SIZE, 3), weights=None, classes=10)
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy()

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))
        return loss

    if mode == "stock":
        step = tf.function(step)
    else:
        step = tf_regal.optimize(step, topology="local", order="full", apply="always", evaluations=500, on_error="raise", cache_dir=False)
    variables = [*model.variables, *optimizer.variables]
    start = [v.numpy() for v in variables]
    rng = np.random.default_rng(7)
    batches = [
        (tf.constant(rng.random((BATCH, SIZE, SIZE, 3), np.float32)), tf.constant(rng.integers(0, 10, BATCH).astype(np.int32))) for _ in range(STEPS)
    ]
    digests = []
    for _ in range(RUNS):
        for variable, value in zip(variables, start, strict=True):
            variable.assign(value)
        for x, y in batches:
            step(x, y)
        digests.append(hashlib.sha256(b"".join(np.ascontiguousarray(v).tobytes() for v in model.get_weights())).hexdigest()[:12])
    edges = [r.applied.control_edges for r in tf_regal.reports() if r.status == "planned"]
    print(json.dumps({"digests": digests, "edges": edges}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", choices=["stock", "full"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run_child(args.run)
        return 0
    lines, sets = [], {}
    for mode in ("stock", "full"):
        digests = []
        for _ in range(PROCESSES):
            output = subprocess.run([sys.executable, __file__, "--run", mode], stdout=subprocess.PIPE, text=True, check=True).stdout
            digests += json.loads(output.splitlines()[-1])["digests"]
        sets[mode] = len(set(digests))
        what = "TensorFlow, as it is" if mode == "stock" else 'tf-regal, `order="full"`'
        lines.append(f"| {what} | {len(digests)} | {sets[mode]} | {' '.join(digests)} |")
        print(lines[-1], flush=True)
    DOC.write_text(
        "# Training that repeats itself to the bit\n\n"
        f"Made by `python benchmarks/repeatability.py`: InceptionV3, {SIZE} × {SIZE}, batch {BATCH}, SGD with momentum, {STEPS} steps from fixed weights, "
        f"{RUNS} runs in each of {PROCESSES} fresh processes, under `tf.config.experimental.enable_op_determinism()`.\n\n"
        "| | runs | different sets of weights | hashes of the weights |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )
    return 0 if sets["full"] == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())

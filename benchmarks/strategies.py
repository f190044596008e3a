"""What tf.distribute makes of two workers, beside `real_devices.py`: data parallelism over the batch.

    python benchmarks/strategies.py

The two-tower MLP's training step under MirroredStrategy over the devices of both workers, half of the batch each (which does not give the losses of one
worker), against one worker.
"""

import argparse
import statistics
import subprocess
import sys
import time

ROUNDS = 12
CASES = ("one worker", "MirroredStrategy")


def make_step(tf, model, optimizer):
    def step(inputs, target):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model.forward(inputs, lambda part: tf.name_scope("part")) - target))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables, strict=True))
        return loss

    return step


def build(tf):
    from real_models import two_towers

    model = two_towers()
    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(model.variables)
    return model, optimizer


def median_seconds(step):
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return statistics.median(times[3:])


def run(case):
    """Prints batches per second, or why it does not apply."""
    from tf_regal.bench.workers import Workers

    with Workers(2) as workers:
        import tensorflow as tf

        if case == "one worker":
            with tf.device(workers.devices[0]):
                model, optimizer = build(tf)
                step = tf.function(make_step(tf, model, optimizer))
                print(1 / median_seconds(lambda: float(step(model.inputs, model.target))))
        else:
            strategy = tf.distribute.MirroredStrategy(workers.devices, cross_device_ops=tf.distribute.ReductionToOneDevice())
            with strategy.scope():
                model, optimizer = build(tf)
            halves = [[tf.split(x, 2)[i] for x in (*model.inputs, model.target)] for i in range(2)]
            values = [strategy.experimental_distribute_values_from_function(lambda c, k=k: halves[c.replica_id_in_sync_group][k]) for k in range(3)]
            step = tf.function(lambda a, b, y: strategy.run(make_step(tf, model, optimizer), args=([a, b], y)))
            print(1 / median_seconds(lambda: [float(x) for x in strategy.experimental_local_results(step(*values))]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        run(args.case)
        return
    for case in CASES:
        done = subprocess.run([sys.executable, __file__, "--case", case], capture_output=True, text=True, timeout=300, check=False)
        lines = done.stdout.split()
        text = f"{float(lines[-1]):.2f} batches per second" if done.returncode == 0 else f"does not apply: {done.stderr.strip().splitlines()[-1][:300]}"
        print(f"{case}: {text}", flush=True)


if __name__ == "__main__":
    main()

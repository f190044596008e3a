"""A model whose training state exceeds one worker's memory: on one worker it fails, on two it trains.

    python benchmarks/real_memory.py      → docs/real_memory.md

Peaks are the workers' resident memory (VmHWM) above what they have when TensorFlow is ready, and, with a limit, what their allocators
had given out in a step. With a limit the workers' allocators give no more than that (`bench.workers`). The variables are made in this process and moved
to where the plan wants them. Each case runs in a process of its own.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np

DOC = pathlib.Path(__file__).resolve().parents[1] / "docs" / "real_memory.md"
WIDTH, DEPTH, BATCH, STEPS = 3000, 3, 32, 3
_TIMEOUT = 100
CASES = ("one worker", "two workers", "one worker, limited", "two workers, limited", "planned for one limited worker")


def build(tf):
    """(step, owners of its variables, inputs): two towers with Adam."""
    rng = np.random.default_rng(0)
    towers = [[tf.Variable(rng.normal(0, 0.02, (WIDTH, WIDTH)).astype(np.float32)) for _ in range(DEPTH)] for _ in range(2)]
    variables = [v for tower in towers for v in tower]
    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(variables)

    @tf.function
    def step(a, b):
        with tf.GradientTape() as tape:
            outputs = []
            for x, tower in zip((a, b), towers, strict=True):
                for weights in tower:
                    x = tf.nn.relu(x @ weights)
                outputs.append(x)
            loss = tf.reduce_mean(tf.square(outputs[0] - outputs[1] - 1.0))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step, (variables, optimizer), [tf.constant(rng.normal(size=(BATCH, WIDTH)).astype(np.float32)) for _ in range(2)]


def run(case, limit):
    """A dict: losses and peaks (bytes above the start, per worker), or error."""
    from tf_regal.bench.workers import Workers

    with Workers(2, memory_limit=limit if "limited" in case else None) as workers:
        import tensorflow as tf

        import tf_regal
        from tf_regal.devices import Topology

        start = [workers.resident_bytes(task) for task in range(2)]
        try:
            if case in ("one worker", "one worker, limited"):
                with tf.device(workers.devices[0]):
                    step, _, inputs = build(tf)
                    losses = [float(step(*inputs).numpy()) for _ in range(STEPS)]
            else:
                step, owners, inputs = build(tf)
                name = workers.devices[0] if "one" in case else "/job:worker"
                topology = Topology.parse(name).with_memory(limit)
                concrete = step.get_concrete_function(*inputs)
                plan = tf_regal.plan(concrete, topology=topology, objective="peak_memory", move_variables=True, cache_dir=False)
                tf_regal.move_variables(plan, *owners)
                planned = tf_regal.apply(plan, concrete)
                losses = [float(planned(*inputs).numpy()) for _ in range(STEPS)]
                if workers.memory_limit is not None:
                    for task in range(2):
                        workers.allocator_peak(task, reset=True)
                    planned(*inputs).numpy()
        except Exception as error:
            return {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:400]}"}
        peaks = [workers.peak_bytes(task) - start[task] for task in range(2)]
        result = {"losses": losses, "peaks": peaks}
        if "two" in case:
            result["predicted"] = list(plan.predicted.peak_bytes.values())
            result["predicted_allocator"] = list(plan.predicted.allocator_bytes.values())
            if workers.memory_limit is not None:
                result["allocator"] = [workers.allocator_peak(task) for task in range(2)]
        return result


def cell(result):
    if "error" in result:
        return f"fails: {result['error']}", ""
    return "trains", ", ".join(f"{peak / 1e6:.0f}" for peak in result["peaks"] if peak > 50e6)


def _megabytes(values):
    return ", ".join(f"{value / 1e6:.0f}" for value in values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=720, help="of each worker, MB (default: %(default)s)")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", default=DOC, help="(default: %(default)s)")
    args = parser.parse_args()
    limit = int(args.limit * 1e6)
    if args.case:
        print(json.dumps(run(args.case, limit)))
        return
    results = {}
    for case in CASES:
        command = [sys.executable, __file__, "--case", case, "--limit", str(args.limit)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            results[case] = json.loads(lines[-1]) if lines else {"error": f"the process ended with status {done.returncode}: {done.stderr.strip()[-200:]}"}
        except subprocess.TimeoutExpired:
            results[case] = {"error": f"no answer in {_TIMEOUT} s: TensorFlow waits for a worker that could not allocate"}
        print(case, results[case], flush=True)
    one, two, limited = results["one worker"], results["two workers"], results["two workers, limited"]
    ratio = max(two["peaks"]) / max(one["peaks"])
    lines = [
        "# A training that does not fit on one worker\n",
        f"`python benchmarks/real_memory.py`: two towers of {DEPTH} layers of {WIDTH} × {WIDTH} with Adam, workers' allocators limited to",
        f"{args.limit:.0f} MB. Peaks: resident memory above the start, MB per worker.\n",
        "| case | result | peak |\n|---|---|---|",
        *(f"| {case} | {' | '.join(cell(result))} |" for case, result in results.items()),
        f"\nThe largest peak on two workers is {ratio:.2f} of that on one; losses {'equal to the bit' if one['losses'] == two['losses'] else 'differ'}. "
        f"Predicted for two: {_megabytes(two['predicted'])} MB, {_megabytes(two['predicted_allocator'])} by the allocator's account; "
        f"measured by that account {_megabytes(limited['allocator'])} MB.",
    ]
    pathlib.Path(args.output).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

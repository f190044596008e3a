"""Plans by the clock: models on two TensorFlow workers of one core each, against one worker and what a user would do by hand.

    python benchmarks/real_devices.py                     → docs/real_devices.md
    python benchmarks/real_devices.py --models "two-tower MLP" --rounds 5 --keep   → that model's rows only are measured anew

Every variant has its own copy of the model with the same weights. Rounds are interleaved: in each, every variant makes one step, so that what the machine
does besides meets all alike; ratios are taken within a round. What tf-regal does is its default: costs from a profile of the function, variables moved on
request, and the plan verified on the first steps, kept or rolled back. TensorFlow's strategies run in processes of
their own (`real_strategies.py`). Losses of the first 20 training steps are compared bit by
bit with one worker's.
"""

import argparse
import contextlib
import json
import pathlib
import random
import statistics
import tempfile
import time

import numpy as np
import tensorflow as tf
from real_models import MODELS, nowhere
from real_strategies import LABELS, StrategyProcesses

import tf_regal
from tf_regal.bench.workers import Workers
from tf_regal.devices import host

DOC = pathlib.Path(__file__).resolve().parents[1] / "docs" / "real_devices.md"
RESULTS = pathlib.Path(__file__).resolve().parent / "results" / "real_devices.json"
LOSSES = 20
TRIAL_STEPS = 80  # a trial takes no more
TOPOLOGY = "/job:worker"


def make_function(name, training, place, device):
    """A tf.function of no arguments for one variant; its model's variables are on `device`."""
    with tf.device(device):
        model = MODELS[name]()
        optimizer = tf.keras.optimizers.Adam(1e-3)
        optimizer.build(model.variables)

    def infer(*inputs):
        return tf.reduce_sum(model.forward(inputs, place))

    def train(*inputs):
        *inputs, target = inputs
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model.forward(inputs, place) - target))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables, strict=True))
        return loss

    function = tf.function(train if training else infer)
    return function, [*model.inputs, model.target] if training else model.inputs, model


class Variant:
    """One way to run a model: `step()` makes one step and returns seconds; `losses` what it gave."""

    def __init__(self, function, inputs, device):
        self.function, self._inputs, self._device = function, inputs, device
        self.losses, self.seconds = [], []

    def step(self):
        began = time.perf_counter()
        with tf.device(self._device) if self._device else contextlib.nullcontext():
            result = self.function(*self._inputs)
        self.losses.append(float(result.numpy()))
        return time.perf_counter() - began


def variants(name, training, devices, costs):
    """{label: Variant}; the first is one worker."""
    function, inputs, model = make_function(name, training, nowhere, devices[0])
    found = {"one worker": Variant(function, inputs, devices[0])}
    # A copy of its own is profiled: the steps train it.
    profiled, inputs, _ = make_function(name, training, nowhere, devices[0])
    with tf.device(devices[0]):
        tf_regal.profile(profiled, *inputs, topology=TOPOLOGY, costs=costs)
    if model.has_branches:
        function, inputs, _ = make_function(name, training, lambda part: tf.device(devices[part % 2]), devices[0])
        found["by hand"] = Variant(function, inputs, None)
    settings = {"topology": TOPOLOGY, "costs": costs, "move_variables": True, "min_ops": 0, "cache_dir": False, "on_error": "raise"}
    for label, method in (("tf-regal", "regal"), ("m-ETF", "m_etf"), ("GP+DFS", "gp_dfs")):
        function, inputs, _ = make_function(name, training, nowhere, devices[0])
        more = {} if method == "regal" else {"apply": "always", "method": method}
        found[label] = Variant(tf_regal.optimize(function, **settings, **more), inputs, devices[0])
        found[label].step()  # plans it
        found[label].report = tf_regal.reports()[-1]
    return found


def measure(name, training, devices, rounds):
    """A dict of the figures of one model."""
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        found = variants(name, training, devices, f"{directory}/costs.json")
        if training:
            found |= {label: stack.enter_context(StrategyProcesses(label, name)) for label in LABELS}
        return _measure(name, training, found, rounds)


def _measure(name, training, found, rounds):
    report = found["tf-regal"].report
    for variant in found.values():
        while len(variant.losses) < LOSSES:
            variant.step()
    while report.status == "planned" and report.measured is None and len(found["tf-regal"].losses) < TRIAL_STEPS:
        found["tf-regal"].step()
    shuffle = random.Random(0)
    for _ in range(rounds):
        # In another order each time: what ran before leaves caches and cores warmer for some than for others.
        for variant in shuffle.sample(list(found.values()), len(found)):
            variant.seconds.append(variant.step())
    one = found["one worker"]
    result = {"model": name, "training": training, "rounds": rounds, "status": report.status, "measured": report.measured, "predicted": {}, "ratios": {}}
    for label, variant in found.items():
        ratios = [a / b for a, b in zip(one.seconds, variant.seconds, strict=True)]
        equal = variant.losses[:LOSSES] == one.losses[:LOSSES]
        result["ratios"][label] = (statistics.median(variant.seconds), *np.percentile(ratios, [50, 25, 75]), equal)
    result["predicted"] = (report.plan.default.makespan_s, report.plan.predicted.makespan_s)
    return result


def row(result):
    kind = "training" if result["training"] else "inference"
    cells = [f"{result['model']}, {kind}", f"{result['ratios']['one worker'][0] * 1e3:.0f} ms"]
    for label in ("tf-regal", "by hand", "m-ETF", "GP+DFS", *LABELS):
        if label not in result["ratios"]:
            cells.append("–")
            continue
        _, middle, low, high, equal = result["ratios"][label]
        cells.append(f"{middle:.2f}× [{low:.2f}, {high:.2f}]{'' if equal else ', results differ'}")
    cells.append(result["status"].replace("_", " "))
    one = result["ratios"]["one worker"][0]
    default, planned = result["predicted"]
    text = f"{(default / one - 1) * 100:+.0f} %"
    cells.append(text + (f", {(planned / result['ratios']['tf-regal'][0] - 1) * 100:+.0f} %" if result["status"] == "planned" else ""))
    return "| " + " | ".join(cells) + " |"


HEAD = """# Plans by the clock

`python benchmarks/real_devices.py`: two TensorFlow worker processes (`tf.distribute.Server`, gRPC), one core each, on this machine ({date}, {cpu}).
Speed-up over one worker: median of interleaved rounds, the middle half in brackets; results of the first {losses} steps equal to one worker's to the bit
unless it says otherwise. "By hand": the forward ops of parallel parts under `tf.device`, as a user would. m-ETF and GP+DFS: their plans from the same costs,
applied whatever they predict. "Multi-worker mirrored", "parameter server": TensorFlow's strategies, the former with half of the batch on each worker, the
latter with whole batches on each, steps counted together; `MirroredStrategy` refuses devices of several processes in TensorFlow 2. "Prediction": of one
worker's step and of the planned one, from the profile of the function.

| model | one worker | tf-regal | by hand | m-ETF | GP+DFS | multi-worker mirrored | parameter server | tf-regal's plan | prediction |
|---|---|---|---|---|---|---|---|---|---|
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS), metavar="MODEL", help=f"of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--modes", nargs="*", default=["inference", "training"], choices=["inference", "training"], help="(default: both)")
    parser.add_argument("--rounds", type=int, default=21, help="of steps that are compared (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help=f"put the rows into {RESULTS.name} and {DOC.name} (always where everything is measured)")
    args = parser.parse_args()
    rows = {}
    with Workers(2) as workers:
        for name in args.models:
            for mode in args.modes:
                rows[f"{name}, {mode}"] = row(measure(name, mode == "training", workers.devices, args.rounds))
                print(rows[f"{name}, {mode}"], flush=True)
    if args.keep or (args.models == list(MODELS) and len(args.modes) == 2):
        kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        kept.update(rows)
        RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        head = HEAD.format(date=time.strftime("%Y-%m-%d"), cpu=host.local_host().model, losses=LOSSES)
        order = [f"{name}, {mode}" for name in MODELS for mode in ("inference", "training")]
        DOC.write_text(head + "\n".join(kept[key] for key in order if key in kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

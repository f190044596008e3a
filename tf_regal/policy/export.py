"""A training's best weights → a policy directory: a plain SavedModel and its card."""

import json
import pathlib
import shutil
import tempfile

import tensorflow as tf

from tf_regal import errors
from tf_regal.policy import cards, network, train
from tf_regal.policy import config as config_lib


class _Exported(tf.Module):
    """What is saved: the weights and one function. The Keras object itself would be retraced, and brought back as one, where it is loaded."""

    def __init__(self, net):
        super().__init__()
        self.weights = net.weights

        def propose(op, device, source, target, forward, backward, order):
            found = net({"op": op, "device": device, "source": source, "target": target, "forward": forward, "backward": backward, "order": order})
            return network.choices(found["affinity"]), network.choices(found["priority"])

        self.propose = tf.function(propose, input_signature=list(network.signature().values()))


def export(training, output):
    """Args: training: directory of `train`; output: the policy's directory, written whole or not at all.

    Raises InvalidArgumentError where there is no training with the best weights.
    """
    training, output = pathlib.Path(training), pathlib.Path(output)
    config = _config(training)
    net = network.build(config["network"], config["width"], config["rounds"])
    train.load_weights(net, training / train.BEST)
    curve = [json.loads(line) for line in (training / train.CURVE).read_text().splitlines()]
    validated = [point for point in curve if "validation" in point]
    best = max(validated, key=lambda point: point["validation"])
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=output.name, dir=output.parent) as folder:
        made = pathlib.Path(folder) / "policy"
        tf.saved_model.save(_Exported(net), str(made))
        results = {"steps": curve[-1]["step"], "best_step": best["step"], "validation_reward": best["validation"], "uniform": -1.0}
        command = _command(config)
        cards.write(
            made, {"objective": config["objective"], "command": command, "training": _provenance(config), "results": results}
        )
        if output.exists():
            shutil.rmtree(output)
        made.rename(output)


def _command(config):
    """The command line that makes such a training, with what differs from its defaults."""
    words = ["tf-regal train GRAPH... --validation GRAPH... --objective " + config["objective"]]
    words.append("--topology " + ",".join(config["topologies"]))
    for name, value in config.items():
        if name in ("graphs", "validation", "objective", "topologies", "feature_version", "start", "primed") or value == config_lib.default(name):
            continue
        words.append(f"--{name.replace('_', '-')} {value}")
    words += ["--start OTHER"] * (config["start"] is not None) + ["--no-prime"] * (not config["primed"])
    return " ".join(words)


def _provenance(config):
    """What a policy was trained on and how, without paths; with that of the training that it started from."""
    kept = {k: v for k, v in config.items() if k not in ("graphs", "validation", "feature_version", "start")}
    for name in ("graphs", "validation"):
        kept[name] = sorted(pathlib.Path(path).name.split(".")[0] for path in config[name])
    if config["start"] is not None:
        first = _config(pathlib.Path(config["start"]))
        kept["start"] = {k: v for k, v in _provenance(first).items() if k == "start" or kept.get(k) != v}
    return kept


def _config(training):
    try:
        return json.loads((training / train.CONFIG).read_text())
    except (OSError, ValueError) as error:
        raise errors.InvalidArgumentError(
            f"training={str(training)!r} is not a training directory: {error}. Give the one that `tf-regal train` made."
        ) from error

"""Trains a policy: draws instances, lets an algorithm learn, validates, keeps checkpoints and the best weights."""

import dataclasses
import io
import json
import pathlib
import signal
import time
import types

import numpy as np
import tensorflow as tf

from tf_regal import errors
from tf_regal.policy import algorithms, features, network, rollouts, training_set
from tf_regal.policy.config import MAY_CHANGE
from tf_regal.search import Budget
from tf_regal.storage import write_atomically

CHECKPOINT, CONFIG, CURVE, BEST = "checkpoint.npz", "config.json", "curve.jsonl", "best.npz"


class Training:
    """A training in a directory; made again with the same Config it goes on from its checkpoint, with the same curve as if it had never stopped."""

    def __init__(self, config, directory, runner, progress=None):
        """Args:
            config: a `config.Config`. runner: `rollouts.Threads` or `rollouts.Ray`. progress: called with a line of text, now and then.

        Raises InvalidArgumentError where the directory holds a training with another Config.
        """
        self.config, self._say = config, progress or (lambda text: None)
        self._directory = pathlib.Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        config_json = self._check_config()
        self.network = network.build(config.network, config.width, config.rounds, config.seed)
        if config.start is not None:
            load_weights(self.network, pathlib.Path(config.start) / BEST)
        elif config.primed:
            network.prime(self.network, config.objective)

        def instances(name, paths, evaluations, variants):
            return training_set.TrainingSet(
                paths, config.topologies, config.objective, evaluations=evaluations, variants=variants, max_ops=config.max_ops, rollouts=runner,
                cache=self._directory / f"{name}.json", name=name, progress=self._say,
            )  # fmt: skip

        self._train_set = instances("graphs", config.graphs, config.evaluations, config.variants)
        self._validation_set = instances("validation", config.validation, config.validation_evaluations, 1)
        write_atomically(self._directory / CONFIG, json.dumps(config_json, indent=1) + "\n")  # now it is a training
        self._validated = self._validation_set.draw(config.validation_size, [config.seed, 2])
        self._algorithm = algorithms.CLASSES[config.algorithm](self.network, self._train_set, config)
        self._proposer = algorithms.Proposer(self.network)
        self.step, self.curve, self.best = 0, [], -np.inf
        self._load()

    def run(self):
        """Until `steps`, or until validation has not improved `patience` times. A kill at any moment loses what is newer than the checkpoint only."""
        began, first = time.monotonic(), self.step
        writer = tf.summary.create_file_writer(str(self._directory / "curves"))
        with writer.as_default(), _Stop() as stop:
            if not self.curve:
                self._validate({})
            while self.step < self.config.steps and not stop.asked:
                if self._since_best() >= self.config.patience:
                    self._say(f"stopped: validation has not improved {self.config.patience} times")
                    break
                figures = self._algorithm.step(self.step)
                self.step += 1
                if self.step % self.config.validate_every == 0 or self.step == self.config.steps:
                    self._validate(figures)
                else:
                    self._note(figures)
                each = (time.monotonic() - began) / (self.step - first)
                left = each * (self.config.steps - self.step) / 60
                self._say(f"step {self.step} of {self.config.steps}, {each:.1f} s each, {left:.0f} min left; {_text(self.curve)}")
        writer.close()
        self._save()

    def _validate(self, figures):
        found = self._validation_set.rewards([self._proposer.rollout(i, 31, self.config.validation_evaluations) for i in self._validated])
        figures = {**figures, "validation": found.mean()}
        if found.mean() > self.best:
            self.best = float(found.mean())
            _write_npz(self._directory / BEST, {f"w_{i}": w for i, w in enumerate(self.network.get_weights())})
        self._note(figures)
        self._save()

    def _note(self, figures):
        self.curve.append({"step": self.step, **{name: round(float(value), 6) for name, value in figures.items()}})
        for name, value in figures.items():
            tf.summary.scalar(f"{self.config.algorithm}/{name}", float(value), self.step)

    def _since_best(self):
        """Validations since the best one."""
        values = [point["validation"] for point in self.curve if "validation" in point]
        return len(values) - 1 - int(np.argmax(values))

    def _check_config(self):
        """The Config as JSON; InvalidArgumentError where the directory holds a training with another one."""
        path, mine = self._directory / CONFIG, json.loads(json.dumps(dataclasses.asdict(self.config) | {"feature_version": features.VERSION}))
        if path.exists():
            theirs = json.loads(path.read_text())
            different = [k for k in mine if k not in MAY_CHANGE and mine[k] != theirs.get(k)]
            if different:
                what = ", ".join(f"{k}={mine[k]!r} (there: {theirs.get(k)!r})" for k in different[:3])
                raise errors.InvalidArgumentError(
                    f"output={str(self._directory)!r} holds a training with other settings: {what}. Give another directory, or the same settings."
                )
        return mine

    def _save(self):
        self._train_set.save()
        self._validation_set.save()
        write_atomically(self._directory / CURVE, "".join(json.dumps(point) + "\n" for point in self.curve))
        state = {f"algorithm_{name}": value for name, value in self._algorithm.state().items()}
        weights = {f"weight_{i}": w for i, w in enumerate(self.network.get_weights())}
        rest = {"step": np.array(self.step), "best": np.array(self.best), "curve": np.array(json.dumps(self.curve))}
        _write_npz(self._directory / CHECKPOINT, {**state, **weights, **rest})

    def _load(self):
        path = self._directory / CHECKPOINT
        if not path.exists():
            return
        with np.load(path) as saved:
            self.step, self.best, self.curve = int(saved["step"]), float(saved["best"]), json.loads(str(saved["curve"]))
            self.network.set_weights([saved[f"weight_{i}"] for i in range(len(self.network.get_weights()))])
            prefix = "algorithm_"
            self._algorithm.load({name[len(prefix):]: saved[name] for name in saved.files if name.startswith(prefix)})
        self._say(f"going on from step {self.step}")


def run(config, directory, *, threads=None, ray=None, progress=None):
    """Trains; returns figures: steps made and the best validation reward.

    Args:
        threads: rollouts at the same time; None: as many as there are cores. ray: address of a Ray cluster that makes them instead.
    """
    runner = rollouts.Ray(ray) if ray else rollouts.Threads(Budget(threads=threads).threads)
    try:
        training = Training(config, directory, runner, progress)
        training.run()
        return types.SimpleNamespace(steps=training.step, best=training.best)
    finally:
        runner.close()


def load_weights(net, path):
    """Sets a network's weights from a training's best.npz."""
    try:
        with np.load(path) as saved:
            net.set_weights([saved[f"w_{i}"] for i in range(len(net.get_weights()))])
    except (OSError, KeyError, ValueError) as error:
        raise errors.InvalidArgumentError(f"start={str(path)!r} cannot be used: {error}. Give the directory of a training of the same network.") from error


class _Stop:
    """Ctrl-C and SIGTERM end a training after the step that is going on."""

    asked = False

    def __enter__(self):
        self._old = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _ask(self, *_):
        self.asked = True

    def __exit__(self, *exc):
        for number, handler in self._old.items():
            signal.signal(number, handler)


def _write_npz(path, arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    write_atomically(path, content.getvalue())


def _text(curve):
    shown = {}
    for point in curve[-60:]:
        shown.update(point)
    return ", ".join(f"{name} {value:.4g}" for name, value in shown.items() if name != "step")

"""Whether a plan stays is decided by the clock: a bad one goes, whatever was predicted, and noise decides nothing."""

import random
import types

import numpy as np
import pytest
import tensorflow as tf
from tf_setup import CPU0, CPU1

import tf_regal
from tf_regal import errors
from tf_regal.devices import DeviceSpec, Link, Topology
from tf_regal.hook import trial
from tf_regal.plans import Report

TWO = Topology.from_links(
    "two", [DeviceSpec(name, "slow", "CPU", 1e6, 1e9, memory=2**40, launch_overhead_ns=10**7) for name in (CPU0, CPU1)], lambda i, j: Link(0, 1e12)
)
SETTINGS = {"topology": TWO, "min_ops": 0, "cache_dir": False, "on_error": "raise", "evaluations": 300}


class Machine:
    """Functions that take simulated time, on a clock of its own."""

    def __init__(self, default, planned, noise, seed):
        self.now, self.calls = 0.0, []
        self._noise, self._random = noise, random.Random(seed)
        self.default, self.planned = self._function("default", default), self._function("planned", planned)

    def _function(self, name, seconds):
        def call(args):
            # Seldom and much, as other programs disturb.
            slow = self._random.choice([0, 0, 0, 1]) * self._random.expovariate(1.0)
            self.now += seconds * (1 + self._noise * (abs(self._random.gauss(0, 1)) + 3 * slow))
            self.calls.append(name)
            return name

        return types.SimpleNamespace(call_preflattened=call)

    def run(self):
        plan = types.SimpleNamespace(objective="runtime", topology=TWO, device=np.array([0, 1]))
        report, chosen = Report("f", "planned", "predicted"), []
        one = trial.Trial(self.default, self.planned, plan, report, chosen.append, clock=lambda: self.now)
        while not chosen:
            one.call_preflattened([])
        return report, chosen[0] is self.planned


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
def test_what_is_better_stays_and_what_is_worse_goes(noise):
    kept = [Machine(1.0, 0.6, noise, seed).run()[1] for seed in range(40)]
    assert sum(kept) >= (40 if noise <= 0.1 else 30)
    assert not any(Machine(0.6, 1.0, noise, seed).run()[1] for seed in range(40))


def test_noise_alone_keeps_nothing():
    kept = [Machine(1.0, 1.0, 0.5, seed).run() for seed in range(200)]
    assert sum(was_kept for _, was_kept in kept) <= 200 * (1 - trial.CONFIDENCE) + 6  # 5 % expected at most, and some luck
    assert all(report.status == "rolled_back" for report, was_kept in kept if not was_kept)
    assert max(report.measured.steps for report, _ in kept) <= 54


def test_steps_run_once_and_take_turns():
    machine = Machine(1.0, 0.5, 0.0, 0)
    report, kept = machine.run()
    assert kept
    assert len(machine.calls) == report.measured.steps == 14
    assert machine.calls.count("default") == machine.calls.count("planned") == 7
    assert report.measured.ratio == pytest.approx(0.5)
    assert report.measured.confidence == 0.95
    assert "better in 6 of 6 pairs: kept" in report.reason


def test_sign_test():
    assert trial.sign_test(6, 6) == 1 / 64
    assert trial.sign_test(0, 6) == 1.0
    assert trial.sign_test(9, 10) == pytest.approx(11 / 1024)


def chains(x, y):
    for _ in range(30):
        x, y = tf.sin(x), tf.cos(y)
    return x + y


def test_a_bad_cost_model_is_rolled_back_and_side_effects_happen_once():
    """Each op counts as 10 ms and transfers as nothing: ops are spread over both devices, and every transfer really costs more than its op."""
    count = tf.Variable(0)

    def step(x, y):
        count.assign_add(1)
        a, b = x, y
        for _ in range(30):
            a, b = tf.sin(a) + b[0], tf.cos(b) + a[0]
        return a + b

    x, y = tf.constant([0.1, 0.2]), tf.constant([0.3, 0.4])
    expected = tf.function(step)(x, y).numpy()
    count.assign(0)
    planned = tf_regal.optimize(step, verify=True, **SETTINGS)
    calls = 0
    while calls == 0 or tf_regal.reports()[-1].measured is None:
        assert (planned(x, y).numpy() == expected).all()
        calls += 1
        assert calls <= 54
    report = tf_regal.reports()[-1]
    assert report.plan.pays and report.status == "rolled_back"
    assert "rolled back" in report.reason
    assert (planned(x, y).numpy() == expected).all()
    assert count.numpy() == calls + 1


def test_by_default_logical_devices_of_one_cpu_are_not_tried():
    planned = tf_regal.optimize(chains, **SETTINGS)
    planned(tf.constant([0.1]), tf.constant([0.2]))
    report = tf_regal.reports()[-1]
    assert report.status == "planned" and report.measured is None
    for _ in range(3):
        planned(tf.constant([0.1]), tf.constant([0.2]))
    assert report.measured is None


def test_a_trial_moves_variables_to_and_fro():
    def make():
        left, right = (tf.Variable(np.full((16, 16), 0.1, np.float32)) for _ in range(2))

        def step(x):
            a = b = x
            for _ in range(8):
                a, b = tf.tanh(a @ left), tf.tanh(b @ right)
            left.assign_add(tf.matmul(a, a, transpose_a=True) * 0.01)
            right.assign_sub(tf.matmul(b, b, transpose_a=True) * 0.01)
            return tf.reduce_sum(a - b)

        return step, left, right

    x = tf.ones([4, 16])
    step, left, right = make()
    plain = tf.function(step)
    expected = [float(plain(x)) for _ in range(80)]
    step, left, right = make()
    planned = tf_regal.optimize(step, verify=True, move_variables=True, **SETTINGS)
    assert [float(planned(x)) for _ in range(80)] == expected
    report = tf_regal.reports()[-1]
    assert report.measured is not None
    assert ({left.device, right.device} == {CPU0, CPU1}) == (report.status == "planned")


def test_random_streams_are_not_shared_out():
    planned = tf_regal.optimize(lambda x: chains(x, x) + tf.random.normal([1], seed=3), verify=True, apply="if_better", **SETTINGS)
    planned(tf.constant([0.1]))
    report = tf_regal.reports()[-1]
    if report.status == "planned":
        assert report.measured is None and "not verified" in report.reason


def test_bad_value():
    with pytest.raises(errors.InvalidArgumentError, match="verify='yes'"):
        tf_regal.enable(verify="yes")

"""Deciding by the clock or the allocator whether a plan stays: the first calls alternate between the traced and the planned function.

Every step runs once, as one of the two, so that side effects happen once; both compute the same. What is compared are pairs of steps that follow one
another, by a sign test, which neither outliers nor a machine that gets slower spoil.
"""

import contextlib
import dataclasses
import math
import random
import statistics
import threading
import time

import tensorflow as tf
from absl import logging

from tf_regal import _tf_private as tfp
from tf_regal.hook import variables

CONFIDENCE = 0.95
_LOOKS = (6, 12, 24)  # numbers of pairs after which it is decided, if it can be; the error is shared out between them
_LOOKS_MOVING = (6, 12)  # where variables go to and fro with each block of steps
_BLOCK_MOVING = 3  # steps of a block there; the first is not counted


@dataclasses.dataclass(frozen=True)
class Measured:
    """What a trial has found.

    default_s, planned_s: median seconds per step. ratio: median of planned to default time, pair by pair. default_peak_bytes, planned_peak_bytes: medians of
    the largest peak of a local device, None where no allocator tells. pairs: how many; better: in how many the plan was better by the objective.
    steps: of the program that the trial took. confidence: of the decision, 0.95, or None where it could not be decided.
    """

    default_s: float
    planned_s: float
    ratio: float
    default_peak_bytes: int | None
    planned_peak_bytes: int | None
    pairs: int
    better: int
    steps: int
    confidence: float | None


def is_wanted(settings, plan):
    """Whether a plan is tried before it is kept: verify=True, or by default where it uses several real devices. Not where the default does not even fit."""
    fits = all(spec.memory is None or plan.default.peak_bytes[spec.name] <= spec.memory for spec in plan.topology.devices)
    if settings.apply == "always" or not fits:
        return False
    if settings.verify is not None:
        return settings.verify
    names = {plan.topology.names[q] for q in set(plan.device.tolist())}
    # Logical CPU devices of a process share its cores: what is measured there says nothing about devices of their own.
    return len({name.partition("/device:CPU")[0] if "/device:CPU" in name else name for name in names}) > 1


def sign_test(better, pairs):
    """The probability that so many pairs or more are better where neither side is (one-sided)."""
    return sum(math.comb(pairs, k) for k in range(better, pairs + 1)) / 2**pairs


class Trial:
    """Stands for an AtomicFunction while it is tried; `finish(keep)` is called once it is decided."""

    def __init__(self, original, planned, plan, report, finish, moves=(), before=(), max_slowdown=1.5, again=None, clock=time.perf_counter):
        """moves, before: [(variable, device)], where the plan has put variables, which are there now, and where they were."""
        self._again, self._is_moving = again, False
        self._sides = {"default": original, "planned": planned}
        self._original = original
        self._plan, self._report, self._finish, self._max_slowdown, self._clock = plan, report, finish, max_slowdown, clock
        self._by_memory = plan.objective == "peak_memory"
        self._homes = {"planned": list(moves), "default": list(before)}
        self._looks = _LOOKS_MOVING if moves else _LOOKS
        self._block = _BLOCK_MOVING if moves else 1
        self._side = "planned"  # where the variables are
        self._warm = set()  # sides that have run
        self._random = random.Random(0)
        self._round, self._seen = [], {}
        self._pairs = []  # ((default s, bytes), (planned s, bytes))
        self._steps = 0
        self._lock = threading.Lock()

    def __getattr__(self, name):
        return getattr(self._original, name)

    @property
    def traced(self):
        """The function as it was traced."""
        return self._original

    def plan_again(self, owner):
        """As of `PlannedFunction`; not where the trial itself moves its variables."""
        if not self._is_moving:
            owner._inference_function = self._original
            if self._again is not None:
                self._again(owner)

    def call_preflattened(self, args):
        return self._step(lambda function, a: function.call_preflattened(a), args)

    def call_flat(self, *args):
        if not tfp.executing_eagerly():
            return self._original.call_flat(*args)
        return self._step(lambda function, a: function.call_flat(*a), args)

    def _step(self, call, args):
        # A step beside one that is being measured would spoil it; it is planned meanwhile, which is as good as traced.
        if not self._lock.acquire(blocking=False):
            return call(self._sides[self._side], args)
        try:
            if not self._round:
                order = ["default", "planned"]
                self._random.shuffle(order)
                self._round = [side for side in order for _ in range(self._block)]
            side = self._round.pop(0)
            args = self._switch(side, args)
            result, figure = self._measure(lambda: call(self._sides[side], args))
            self._steps += 1
            self._note(side, figure)
            return result
        finally:
            self._lock.release()

    def _switch(self, side, args):
        if side == self._side or not self._homes["planned"]:
            self._side = side
            return args
        replaced = self._move(side)
        self._side = side
        self._warm.discard(side)  # the first step after a move finds no warm cache
        return type(args)(variables.current(args, replaced))

    def _move(self, side):
        self._is_moving = True
        try:
            return variables.move(self._homes[side])
        finally:
            self._is_moving = False

    def _measure(self, run):
        devices = [name for name in self._plan.topology.names if tfp.is_local(name)] if self._by_memory else []
        for name in devices:
            _reset_peak(name)
        sync = tfp.needs_sync()
        if sync:
            tf.test.experimental.sync_devices()
        began = self._clock()
        result = run()
        if sync:
            tf.test.experimental.sync_devices()
        seconds = self._clock() - began
        peaks = [peak for name in devices if (peak := _peak(name)) is not None]
        return result, (seconds, max(peaks) if peaks else None)

    def _note(self, side, figure):
        if side not in self._warm:  # TensorFlow made the function ready meanwhile
            self._warm.add(side)
        else:
            self._seen.setdefault(side, []).append(figure)
        if self._round:
            return
        seen, self._seen = self._seen, {}
        if len(seen) < 2:
            return
        self._pairs.append(tuple(_median_figure(seen[side]) for side in ("default", "planned")))
        if len(self._pairs) in self._looks:
            self._look()

    def _look(self):
        pairs = len(self._pairs)
        better = sum(self._is_better(default, planned) for default, planned in self._pairs)
        worse = sum(self._is_better(planned, default) for default, planned in self._pairs)
        ratio = statistics.median(planned[0] / default[0] for default, planned in self._pairs)
        error = (1 - CONFIDENCE) / len(self._looks)
        keep = sign_test(better, pairs) <= error and (not self._by_memory or ratio <= self._max_slowdown)
        certain = keep or sign_test(worse, pairs) <= error or (self._by_memory and sign_test(better, pairs) <= error)
        if not certain and pairs < self._looks[-1]:
            return
        default_s, planned_s = (statistics.median(pair[i][0] for pair in self._pairs) for i in (0, 1))
        peaks = [[pair[i][1] for pair in self._pairs if pair[i][1] is not None] for i in (0, 1)]
        default_peak, planned_peak = (int(statistics.median(p)) if p else None for p in peaks)
        measured = Measured(default_s, planned_s, ratio, default_peak, planned_peak, pairs, better, self._steps, CONFIDENCE if certain else None)
        self._conclude(keep, measured)

    def _is_better(self, one, other):
        """Whether `other` is better than `one` by the objective; by the clock where no allocator tells."""
        by_memory = self._by_memory and one[1] is not None and other[1] is not None
        return other[1] < one[1] if by_memory else other[0] < one[0]

    def _conclude(self, keep, measured):
        report = self._report
        report.measured = measured
        text = f"measured {measured.planned_s * 1e3:.3f} ms against {measured.default_s * 1e3:.3f} ms per step"
        if measured.planned_peak_bytes is not None:
            text += f", {measured.planned_peak_bytes / 1e6:.2f} MB against {measured.default_peak_bytes / 1e6:.2f} MB"
        text += f", better in {measured.better} of {measured.pairs} pairs"
        if measured.confidence is None:
            text += f", too few for a confidence of {CONFIDENCE:.0%}"
        report.reason = f"{report.reason}; {text}: {'kept' if keep else 'rolled back'}"
        if not keep:
            report.status = "rolled_back"
        chosen = "planned" if keep else "default"
        if self._side != chosen:
            self._move(chosen)
        self._side = chosen
        logging.info("tf_regal: %s", report)
        self._finish(self._sides[self._side])


def _median_figure(figures):
    peaks = [peak for _, peak in figures if peak is not None]
    return statistics.median(seconds for seconds, _ in figures), max(peaks) if peaks else None


def _reset_peak(name):
    with contextlib.suppress(ValueError, RuntimeError, tf.errors.OpError):  # this allocator keeps no account
        tf.config.experimental.reset_memory_stats(tfp.short_name(name))


def _peak(name):
    try:
        return tf.config.experimental.get_memory_info(tfp.short_name(name))["peak"] or None
    except (ValueError, RuntimeError, tf.errors.OpError):
        return None

"""The settings of planning: the same keywords in `enable`, `function`, `optimize`, `plan` and the command line."""

import dataclasses
import difflib
import os

import numpy as np

from tf_regal import errors

APPLY_MODES = ("if_better", "always", "never")
ON_ERROR_MODES = ("warn", "raise")
COSTS = ("analytic", "measured")
MODES = ("first_call", "background", "record")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What to improve, for which devices, how hard to search, and what to do with the result.

    topology: "local", "/job:worker" (devices that TensorFlow sees, by a full or partial name), "2xA100-40GB", "4xTPUv4", "2xCPU", "paper", a path to a
        .json, or a Topology.
    objective: "runtime" (seconds per call, within the devices' memory) or "peak_memory" (largest peak of a device, in bytes).
    max_slowdown: for "peak_memory": how many times the default plan's predicted time the plan may take.
    method: a name of `tf_regal.search.METHODS`, or "regal-without-" and an ingredient (`tf_regal.search.regal.INGREDIENTS`).
    policy: what genetic searches draw from: "auto" (the shipped one for the objective; the full search, "regal", does without), a path of one of your
        own (`tf-regal train`), or None (uniform).
    evaluations, seconds: budget of the search. seed: of everything random.
    robustness: how far durations may be off (0.2: by a factor of about 1.2, links by twice as much); of what the search has found the plan is taken that is
        best on average over such problems, for some hundred more evaluations. 0: the best for the costs as they are.
    costs: "analytic" (TensorFlow's cost model); "measured": profiles the first calls of a function, plans after them, and keeps what ops took for other
        functions and runs (`tf_regal.profile` does it apart); or the path of a cost file. What never ran is modelled.
    batch_size: value of unknown batch dimensions.
    min_ops: functions with fewer ops are left alone. apply: "if_better" than the default plan, "always" or "never".
    order: control edges "needed" for the objective, "full" (every op in one order) or "none".
    mode: when functions are planned: "first_call" (before it runs), "background" (in a thread; the first calls run as traced, and the planned function
        takes over between two calls) or "record" (on the first call, and only to write the plan to cache_dir, for a later run to find).
    move_variables: variables, and an optimizer's, may be moved to other devices: by the plan of the first function that uses them, once.
    verify: the first calls alternate between the traced and the planned function, and the plan is kept only if it is better by the clock (by the allocator for
        "peak_memory"), with 95 % confidence, after 14 to 74 calls; None: where a plan uses several real devices.
    on_error: "warn" (run the function as it is) or "raise". cache_dir: directory of saved plans; None: the user's cache; False: none.
    logdir: directory for TensorBoard: plans, what became of each function, and one recorded call of planned functions on CPUs; None: nothing is written.
    """

    topology: object = "local"
    objective: str = "runtime"
    max_slowdown: float = 1.5
    method: str = "regal"
    policy: object = "auto"
    evaluations: int = 5000
    seconds: float | None = None
    seed: int = 0
    robustness: float = 0.0
    costs: str = "analytic"
    batch_size: int | None = None
    min_ops: int = 50
    apply: str = "if_better"
    order: str = "needed"
    mode: str = "first_call"
    move_variables: bool = False
    verify: bool | None = None
    on_error: str = "warn"
    cache_dir: object = None
    logdir: object = None

    def __post_init__(self):
        from tf_regal.search import OBJECTIVES, Budget, method, order

        _one_of("objective", self.objective, OBJECTIVES)
        method(self.method)
        if not (self.policy is None or (isinstance(self.policy, (str, os.PathLike)) and os.fspath(self.policy))):
            raise errors.InvalidArgumentError(f"policy={self.policy!r} is not valid; expected 'auto', the directory of a policy, or None")
        if self.policy not in ("auto", None):
            from tf_regal.policy import cards

            cards.read(self.policy, self.objective)
        if not (isinstance(self.costs, (str, os.PathLike)) and os.fspath(self.costs)):
            raise errors.InvalidArgumentError(f"costs={self.costs!r} is not valid; expected one of {', '.join(map(repr, COSTS))}, or the path of a cost file")
        if self.costs not in COSTS and not os.path.exists(self.costs):
            raise errors.InvalidArgumentError(
                f"costs={self.costs!r} is not known and no file; expected one of {', '.join(map(repr, COSTS))}, or the path of a cost file, which "
                "tf_regal.profile(function, …, costs=…) writes"
            )
        if self.costs not in COSTS:
            from tf_regal.costs import measured

            measured.Costs.load(self.costs)
        _one_of("apply", self.apply, APPLY_MODES)
        _one_of("order", self.order, order.MODES)
        _one_of("mode", self.mode, MODES)
        _one_of("on_error", self.on_error, ON_ERROR_MODES)
        for name in ("max_slowdown", "evaluations", "seconds", "seed", "batch_size", "min_ops"):
            value = getattr(self, name)
            if isinstance(value, np.generic):  # `batch_size=x.shape[0]`, or a loop over np.arange
                object.__setattr__(self, name, value.item())
        Budget(self.evaluations, self.seconds)
        _number("max_slowdown", self.max_slowdown, 1.0, (int, float), "1.0 or more, such as 1.1 for at most 10 % slower")
        _number("robustness", self.robustness, 0, (int, float), "0 (off) to 2, such as 0.2")
        if self.robustness > 2:
            raise errors.InvalidArgumentError(f"robustness={self.robustness!r} is not valid; expected 0 (off) to 2, such as 0.2.")
        _number("seed", self.seed, 0, int, "a whole number, 0 or more")
        _number("min_ops", self.min_ops, 0, int, "a whole number, 0 or more")
        if self.batch_size is not None:
            _number("batch_size", self.batch_size, 1, int, "a whole number, 1 or more, or None")

        if not (self.cache_dir is None or self.cache_dir is False or isinstance(self.cache_dir, (str, os.PathLike))):
            raise errors.InvalidArgumentError(
                f"cache_dir={self.cache_dir!r} is not valid; expected a directory, None for the user's cache, or False for none"
            )
        if not (self.logdir is None or (isinstance(self.logdir, (str, os.PathLike)) and os.fspath(self.logdir))):
            raise errors.InvalidArgumentError(f"logdir={self.logdir!r} is not valid; expected a directory, or None")
        _one_of("move_variables", self.move_variables, (True, False))
        _one_of("verify", self.verify, (None, True, False))
        if self.move_variables and self.mode == "background":
            raise errors.InvalidArgumentError(
                "move_variables=True with mode='background' is not valid: variables are moved before the first step; use mode='first_call', or leave them"
            )
        if self.costs == "measured" and self.cache_dir is False:
            raise errors.InvalidArgumentError(
                "costs='measured' keeps what it measures in cache_dir, which is False; give a directory, None for the user's cache, or the path of a cost file"
            )
        if self.mode == "record" and self.cache_dir is False:
            raise errors.InvalidArgumentError("mode='record' writes plans to cache_dir, which is False; give a directory, or None for the user's cache")

    @classmethod
    def make(cls, settings):
        """From keywords; InvalidArgumentError for a name that is not one."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in settings:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise errors.InvalidArgumentError(f"{name!r} is not a setting.{hint} Valid: {', '.join(known)}.")
        return cls(**settings)

    @property
    def used_policy(self):
        """`policy`, or None where the method draws nothing from one; "auto" is not for the full search, which gains nothing from it (docs/policy.md)."""
        from tf_regal.search import uses_proposals

        if not uses_proposals(self.method) or (self.policy == "auto" and self.method.startswith("regal")):
            return None
        return self.policy

    def key(self):
        """What of the settings decides the plan, as a dict of plain values (the topology apart)."""
        from tf_regal.policy import cards

        names = ("objective", "max_slowdown", "method", "evaluations", "seconds", "seed", "order", "move_variables", "robustness")
        known = self.measured_costs()
        return {name: getattr(self, name) for name in names} | {
            "policy": cards.identity(self.used_policy, self.objective),
            "costs": None if known is None else known.digest,
        }

    def measured_costs(self):
        """The `costs.measured.Costs` that `costs` stands for, as they are now; None for "analytic"."""
        if self.costs == "analytic":
            return None
        from tf_regal.costs import measured

        if self.costs != "measured":
            return measured.Costs.load(self.costs)
        return measured.kept(self.cache_dir)


def _one_of(name, value, valid):
    if not (value is None or isinstance(value, (str, bool))) or value not in valid:
        close = difflib.get_close_matches(str(value), [str(v) for v in valid], 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise errors.InvalidArgumentError(f"{name}={value!r} is not known; expected one of {', '.join(map(repr, valid))}.{hint}")


def _number(name, value, least, types, valid):
    if not isinstance(value, types) or isinstance(value, bool) or not value >= least:
        raise errors.InvalidArgumentError(f"{name}={value!r} is not valid; expected {valid}.")

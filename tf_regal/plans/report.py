"""`Report`: what became of one function."""

import dataclasses

from tf_regal.plans.plan import Plan


@dataclasses.dataclass(frozen=True)
class Applied:
    """What was really applied, read back from the graphs that TensorFlow runs.

    ops_on_planned_device of ops_planned; ops_missing: names of planned ops that TensorFlow's graphs do not hold;
    control_edges: how many of the plan's control edges are there, of control_edges_planned.
    """

    ops_on_planned_device: int
    ops_planned: int
    control_edges: int
    control_edges_planned: int
    ops_missing: tuple = ()


@dataclasses.dataclass
class Report:
    """One per function that was seen.

    function: its name. status: "planned", "default_kept", "skipped", "rolled_back" (it was measured, and not better) or "failed". measured: what was
    (`hook.trial.Measured`), or None. reason: why, in words. plan: the Plan, or None. applied: Applied, or None.
    seconds: {stage: seconds} of the planning. entry: under which it was written to logdir, or None.
    """

    function: str
    status: str
    reason: str
    plan: Plan | None = None
    applied: Applied | None = None
    seconds: dict = dataclasses.field(default_factory=dict)
    measured: object = None
    entry: str | None = None

    def __str__(self):
        text = f"{self.function}: {self.status}: {self.reason}"
        if self.applied is not None:
            a = self.applied
            text += f"; {a.ops_on_planned_device} of {a.ops_planned} ops on their planned device, {a.control_edges} of {a.control_edges_planned} control edges"
        return text

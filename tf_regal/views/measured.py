"""A recorded call of a planned function, beside what was predicted."""

import dataclasses

import numpy as np

from tf_regal.devices.spec import process_of
from tf_regal.plans.details import Schedule


@dataclasses.dataclass(eq=False)
class Measured:
    """start_ns, end_ns: int64 [ops], from the call's beginning, 0 for ops that were not seen. device: int32 [ops]. step_ns: how long the call took."""

    device: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    step_ns: int

    def schedule(self, plan):
        """As of `plans.details.Schedule`; transfers and memory are not recorded."""
        n_devices = plan.topology.n_devices
        return Schedule(self.device, self.start_ns, self.end_ns, [], np.empty(0, np.int64), [[] for _ in range(n_devices)], [[] for _ in range(n_devices)])

    def to_json(self, plan):
        """The figures, and rows of (op, predicted ns, measured ns)."""
        seen = np.flatnonzero(self.end_ns > self.start_ns)
        predicted, took = (plan.end_ns - plan.start_ns)[seen], (self.end_ns - self.start_ns)[seen]
        error = predicted / np.maximum(took, 1) - 1
        order = np.argsort(error, kind="stable")
        middle = {"median_error": None, "weighted_error": None}
        if len(seen):
            middle["median_error"] = float(np.median(np.abs(error)))
            share = np.cumsum(took[order]) / took.sum()
            middle["weighted_error"] = float(error[order][np.searchsorted(share, 0.5)])
        return {
            "step_ns": int(self.step_ns), "predicted_ns": int(plan.predicted.makespan_s * 1e9),
            "ops": np.stack([seen, predicted, took], axis=1).tolist(), **middle,
        }  # fmt: skip


def from_events(plan, events, began_ns, step_ns):
    """events: {process: [(op name, start ns, end ns)]}, on the clock of began_ns. Of an op that ran several times its first run counts."""
    n = len(plan.ops)
    number = {name: op for op, name in enumerate(plan.ops)}
    found = Measured(np.array(plan.device, np.int32), np.zeros(n, np.int64), np.zeros(n, np.int64), step_ns)
    processes = [process_of(name) for name in plan.topology.names]
    for process, rows in events.items():
        here = [q for q, other in enumerate(processes) if other == process]
        for name, start, end in sorted(rows, key=lambda row: row[1]):
            op = number.get(name)
            if op is None or found.end_ns[op] or not began_ns <= start <= began_ns + step_ns:
                continue
            if here and processes[plan.device[op]] != process:
                found.device[op] = here[0]
            found.start_ns[op], found.end_ns[op] = start - began_ns, max(end - began_ns, start - began_ns + 1)
    return found

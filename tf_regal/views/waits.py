"""Why an op of a schedule started when it did, and what its device waited for."""

import dataclasses

import numpy as np

from tf_regal.plans.lanes import lanes

START, INPUT, TRANSFER, CONTROL, LANE = range(5)
"""What an op waited for last: nothing, an op on its own device, a transfer, a control edge, or a free lane of its device."""

REASONS = ("start", "input", "transfer", "control", "lane")


@dataclasses.dataclass(frozen=True, eq=False)
class Waits:
    """lane int32 [ops]: of its device, from 0. ready_ns int64 [ops]: when its inputs were there. reason uint8 [ops]: see above. cause int32 [ops]: the op
    waited for (of LANE: the one that ran on its lane before), −1: none. idle_ns int64 [ops]: how long its lane stood idle before it."""

    lane: np.ndarray
    ready_ns: np.ndarray
    reason: np.ndarray
    cause: np.ndarray
    idle_ns: np.ndarray


def explain(details, schedule, latency_ns, edges=()):
    """The `Waits` of a schedule.

    Args:
        details, schedule: `plans.details.Details`, and one of its schedules.
        latency_ns: [devices, devices], of the links.
        edges: [k, 2], control edges (before, after) that the schedule has besides the graph's own: the plan's.
    """
    n = len(schedule.device)
    n_devices = len(schedule.memory)
    device = schedule.device.astype(np.int64)
    arrivals, reasons, ops, causes = [], [], [], []
    consumer = np.repeat(np.arange(n), np.diff(details.input_ptr))
    tensor = details.input_idx.astype(np.int64)
    if len(consumer):
        producer = details.producer[tensor]
        remote = device[producer] != device[consumer]
        arrival = schedule.end_ns[producer].copy()
        if len(schedule.transfers):
            rows = np.array(schedule.transfers, np.int64)
            keys = schedule.transfer_tensors * n_devices + rows[:, 2]
            order = np.argsort(keys, kind="stable")
            wanted = tensor * n_devices + device[consumer]
            at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
            known = remote & (keys[order][at] == wanted)
            arrival[known] = rows[order][at[known], 4]
        arrivals.append(arrival)
        reasons.append(np.where(remote, TRANSFER, INPUT))
        ops.append(consumer)
        causes.append(producer)
    added = np.asarray(edges, np.int64).reshape(-1, 2)
    after = np.concatenate([np.repeat(np.arange(n), np.diff(details.control_ptr)), added[:, 1]])
    if len(after):
        first = np.concatenate([details.control_idx.astype(np.int64), added[:, 0]])
        arrivals.append(schedule.end_ns[first] + np.asarray(latency_ns, np.int64)[device[first], device[after]])
        reasons.append(np.full(len(after), CONTROL))
        ops.append(after)
        causes.append(first)
    ready, reason, cause = np.zeros(n, np.int64), np.full(n, START, np.uint8), np.full(n, -1, np.int32)
    if arrivals:
        arrival, why, op, by = (np.concatenate(parts) for parts in (arrivals, reasons, ops, causes))
        order = np.lexsort([-why, arrival])  # the last one of an op stays; a plain input where several come at once
        ready[op[order]], reason[op[order]], cause[op[order]] = arrival[order], why[order], by[order]
    lane, before = lanes(schedule.device, schedule.start_ns, schedule.end_ns, n_devices)
    idle = schedule.start_ns - np.where(before >= 0, schedule.end_ns[before], 0)
    queued = schedule.start_ns > ready
    reason[queued], cause[queued] = LANE, before[queued]
    return Waits(lane, ready, reason, cause, idle)

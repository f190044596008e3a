"""A plan's schedule as Chrome trace events."""

from tf_regal.plans import lanes


def events(plan):
    """A dict in Chrome's JSON trace format: one process per device with a lane per running op, one for each link, and memory counters."""
    result = []
    names = plan.topology.names
    for q, name in enumerate(names):
        result.append({"ph": "M", "pid": q, "tid": 0, "name": "process_name", "args": {"name": name}})
    lane, _ = lanes.lanes(plan.device, plan.start_ns, plan.end_ns, len(names))
    for op in plan.start_order:
        q = int(plan.device[op])
        start, end = int(plan.start_ns[op]), int(plan.end_ns[op])
        result.append({"ph": "X", "pid": q, "tid": int(lane[op]), "name": plan.ops[op], "ts": start / 1e3, "dur": (end - start) / 1e3})
    for op, source, destination, start, end, size in plan.transfers:
        link = 1000 + source * len(names) + destination
        result.append(
            {"ph": "X", "pid": len(names), "tid": link, "name": plan.ops[op], "ts": start / 1e3, "dur": (end - start) / 1e3,
             "args": {"from": names[source], "to": names[destination], "bytes": size}}
        )
    if plan.transfers:
        result.append({"ph": "M", "pid": len(names), "tid": 0, "name": "process_name", "args": {"name": "transfers"}})
    for q, steps in enumerate(plan.memory):
        result.extend({"ph": "C", "pid": q, "name": "memory", "ts": t / 1e3, "args": {"bytes": b}} for t, b in steps)
    return {"traceEvents": result, "displayTimeUnit": "ns"}

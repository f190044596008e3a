"""A plan's figures: as a dict of JSON values, and from that dict as text. Knows nothing of TensorFlow."""

import dataclasses

from tf_regal.cli.output import byte_text, percent_text, table, time_text
from tf_regal.devices.spec import short_names
from tf_regal.plans.details import BUFFERS
from tf_regal.views import waits

_LONGEST = 5


def figures(plan, path):
    """What `show --json` prints: seconds, bytes, device names in full; changes and gaps as shares (0.1 is 10 %)."""
    peak, default_peak = (max(f.peak_bytes.values()) for f in (plan.predicted, plan.default))
    return {
        "file": str(path),
        "objective": plan.objective,
        "pays": plan.pays,
        "feasible": plan.feasible,
        "default_fits": all(
            device.memory is None or plan.default.peak_bytes[device.name] <= device.memory
            for device in plan.topology.devices
        ),
        "predicted": dataclasses.asdict(plan.predicted),
        "default": dataclasses.asdict(plan.default),
        "bounds": dataclasses.asdict(plan.bounds),
        "change": {
            "makespan": _change(plan.predicted.makespan_s, plan.default.makespan_s),
            "peak": _change(peak, default_peak),
        },
        "gap": {
            "makespan": _change(plan.predicted.makespan_s, plan.bounds.makespan_s),
            "peak": _change(peak, plan.bounds.peak_bytes),
        },
        "topology": plan.topology.name,
        "devices": [_device(plan, q) for q in range(plan.topology.n_devices)],
        "transfers": _transfers(plan),
        "longest_waits": _longest_waits(plan),
        "peak_owners": _peak_owners(plan),
        "search": dataclasses.asdict(plan.search),
        "order": plan.order_mode,
        "control_edges": len(plan.edges),
        "ops": len(plan.ops),
        "fingerprint": plan.fingerprint,
        "notes": list(plan.notes),
    }


def short_text(found):
    """The verdict, the figures, and what each device does."""
    return "\n\n".join([_verdict(found), _comparison(found), _devices(found), *_notes(found)])


def full_text(found):
    """Everything that `figures` holds."""
    parts = [
        _verdict(found),
        _comparison(found),
        _devices(found),
        *_transfer_table(found),
        *_waits(found),
        *_owners(found),
        _provenance(found),
        *_notes(found),
        _longest(found),
    ]
    return "\n\n".join(parts)


def _change(new, old):
    """new against old as a share; None where there is nothing to compare with."""
    return new / old - 1 if old else None


def _device(plan, q):
    spec = plan.topology.devices[q]
    ops = [op for op in plan.start_order if plan.device[op] == q]
    seconds = {op: int(plan.end_ns[op] - plan.start_ns[op]) / 1e9 for op in ops}
    longest = sorted(ops, key=lambda op: -seconds[op])[:_LONGEST]
    peak_ns, _ = max(plan.memory[q], key=lambda step: step[1], default=(0, 0))
    return {
        "name": spec.name,
        "model": spec.model,
        "ops": len(ops),
        "op_seconds": sum(seconds.values()),
        "peak_bytes": plan.predicted.peak_bytes[spec.name],
        "default_peak_bytes": plan.default.peak_bytes[spec.name],
        "capacity_bytes": spec.memory,
        "peak_at_s": peak_ns / 1e9,
        "longest_ops": [
            {"op": plan.ops[op], "start_s": int(plan.start_ns[op]) / 1e9, "seconds": seconds[op]} for op in longest
        ],
    }


def _transfers(plan):
    """Per pair of devices that exchange tensors: how many, bytes, and the time that the link is busy."""
    names, links = plan.topology.names, {}
    for _, source, destination, start, end, size in plan.transfers:
        link = links.setdefault((source, destination), {"count": 0, "bytes": 0, "seconds": 0.0})
        link["count"] += 1
        link["bytes"] += size
        link["seconds"] += (end - start) / 1e9
    return [{"source": names[a], "destination": names[b], **link} for (a, b), link in sorted(links.items())]


def _longest_waits(plan):
    """The longest times that a lane of a device stands idle before an op, and why; [] for plans of older versions."""
    if plan.details is None:
        return []
    names = plan.topology.names
    found = waits.explain(plan.details, plan.details.planned, plan.topology.arrays()["latency"], plan.edges)
    order = sorted((op for op in range(len(plan.ops)) if found.idle_ns[op] > 0), key=lambda op: -found.idle_ns[op])[:_LONGEST]
    return [
        {
            "device": names[plan.device[op]], "op": plan.ops[op], "seconds": int(found.idle_ns[op]) / 1e9, "until_s": int(plan.start_ns[op]) / 1e9,
            "for": waits.REASONS[found.reason[op]], "from": plan.ops[found.cause[op]] if found.cause[op] >= 0 else None,
        }
        for op in order
    ]  # fmt: skip


def _peak_owners(plan):
    """The largest buffers alive at the largest peak of a device; None for plans of older versions."""
    if plan.details is None:
        return None
    peaks = plan.predicted.peak_bytes
    name = max(peaks, key=lambda device: peaks[device])
    q = plan.topology.names.index(name)
    persistent = int(plan.persistent_bytes[plan.device == q].sum())
    held = [
        {"op": plan.ops[op], "bytes": size, "kept_by": plan.ops[keeper] if keeper >= 0 else None, "is": BUFFERS[kind]}
        for op, size, _, _, keeper, kind in plan.details.planned.held[q][:_LONGEST]
    ]
    return {"device": name, "peak_bytes": peaks[name], "persistent_bytes": persistent, "buffers": held}


def _verdict(found):
    runtime = found["objective"] == "runtime"
    if runtime:
        new, old, change = found["predicted"]["makespan_s"], found["default"]["makespan_s"], found["change"]["makespan"]
    else:
        new, old, change = (
            *(max(found[which]["peak_bytes"].values()) for which in ("predicted", "default")),
            found["change"]["peak"],
        )
    text = time_text if runtime else byte_text
    worth = "worth applying" if found["pays"] else "not worth applying (too little to be gained)"
    if not found["default_fits"]:
        worth += " (the default plan does not fit the devices' memory)"
    figures_text = f"predicted {found['objective']} {text(new)}, default {text(old)} ({percent_text(change)})"
    return f"{found['file']}: {worth}: {figures_text}"


def _comparison(found):
    default, predicted, bounds = found["default"], found["predicted"], found["bounds"]
    peaks = [max(which["peak_bytes"].values()) for which in (default, predicted)]
    moved = [which["transfer_bytes"] for which in (default, predicted)]
    rows = [
        ("predicted", "default", "planned", "change", "lower bound", "above it"),
        (
            "runtime per call",
            time_text(default["makespan_s"]),
            time_text(predicted["makespan_s"]),
            percent_text(found["change"]["makespan"]),
            time_text(bounds["makespan_s"]),
            _above(found["gap"]["makespan"]),
        ),
        (
            "largest peak of a device",
            *map(byte_text, peaks),
            percent_text(found["change"]["peak"]),
            byte_text(bounds["peak_bytes"]),
            _above(found["gap"]["peak"]),
        ),
        ("moved between devices", *map(byte_text, moved), percent_text(_change(moved[1], moved[0])), "", ""),
    ]
    return table(rows)


def _above(gap):
    return "0: the optimum" if gap == 0 else percent_text(gap)


def _devices(found):
    called = short_names([device["name"] for device in found["devices"]])
    rows = [("device", "model", "ops", "time in ops", "default peak", "planned peak", "peak at", "capacity")]
    for device in found["devices"]:
        rows.append(
            (
                called[device["name"]],
                device["model"],
                str(device["ops"]),
                time_text(device["op_seconds"]),
                byte_text(device["default_peak_bytes"]),
                byte_text(device["peak_bytes"]),
                time_text(device["peak_at_s"]),
                byte_text(device["capacity_bytes"]),
            )
        )
    return table(rows, left=2)


def _transfer_table(found):
    if not found["transfers"]:
        return []
    called = short_names([device["name"] for device in found["devices"]])
    rows = [("transfers", "count", "bytes", "time on the link")]
    for link in found["transfers"]:
        way = f"{called[link['source']]} -> {called[link['destination']]}"
        rows.append((way, str(link["count"]), byte_text(link["bytes"]), time_text(link["seconds"])))
    return [table(rows)]


_FOR = {"start": "the start", "input": "its input from", "transfer": "the transfer from", "control": "control edge from", "lane": "a lane, after"}


def _waits(found):
    if not found["longest_waits"]:
        return []
    called = short_names([device["name"] for device in found["devices"]])
    rows = [("longest idle times", "idle", "until", "before", "waits for")]
    for wait in found["longest_waits"]:
        cause = f"{_FOR[wait['for']]} {wait['from'] or ''}".strip()
        rows.append((called[wait["device"]], time_text(wait["seconds"]), time_text(wait["until_s"]), wait["op"], cause))
    return [table(rows)]


def _owners(found):
    owners = found["peak_owners"]
    if owners is None or not owners["buffers"]:
        return []
    called = short_names([device["name"] for device in found["devices"]])
    rows = [(f"peak of {called[owners['device']]}", "bytes", "of the peak", "kept by")]
    rows.append(("variables, constants, arguments", byte_text(owners["persistent_bytes"]), _share(owners["persistent_bytes"], owners["peak_bytes"]), "-"))
    for buffer in owners["buffers"]:
        label = buffer["op"] + {"output": "", "copy": " (a copy)", "scratch": " (scratch)"}[buffer["is"]]
        rows.append((label, byte_text(buffer["bytes"]), _share(buffer["bytes"], owners["peak_bytes"]), buffer["kept_by"] or "it is a result"))
    return [table(rows)]


def _share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _provenance(found):
    search = found["search"]
    policy = search["policy"] or "none (uniform)"
    return "\n".join(
        [
            f"  search    {search['method']}, {search['evaluations']} evaluations in {search['seconds']:.3g} s, "
            f"policy {policy}, seed {search['seed']}",
            f"  order     {found['order']}: {found['control_edges']} control edges",
            f"  topology  {found['topology']}",
            f"  graph     {found['ops']} ops, fingerprint {found['fingerprint'][:12]}",
        ]
    )


def _notes(found):
    return ["\n".join("  note: " + note for note in found["notes"])] if found["notes"] else []


def _longest(found):
    called = short_names([device["name"] for device in found["devices"]])
    runtime = found["predicted"]["makespan_s"]
    parts = []
    for device in found["devices"]:
        if not device["longest_ops"]:
            continue
        rows = [(f"longest ops on {called[device['name']]}", "takes", "of runtime", "starts at")]
        for op in device["longest_ops"]:
            share = f"{100 * op['seconds'] / runtime:.1f} %" if runtime else "-"
            rows.append((op["op"], time_text(op["seconds"]), share, time_text(op["start_s"])))
        parts.append(table(rows))
    return "\n\n".join(parts)

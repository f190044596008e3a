"""A static picture of a plan (PNG, SVG, PDF by the file's ending), drawn with matplotlib."""

import io
import os

from tf_regal import errors, storage
from tf_regal.devices.spec import short_names
from tf_regal.plans.lanes import lanes

_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99")
_OTHER = "#bbbbbb"
_FORMATS = ("png", "svg", "pdf")


def save(plan, path):
    """Draws the planned schedule, the default below it, and memory over time.

    Raises InvalidArgumentError where matplotlib is missing or the file's ending is another.
    """
    ending = os.path.splitext(os.fspath(path))[1][1:].lower() or "png"
    if ending not in _FORMATS:
        raise errors.InvalidArgumentError(f"path={os.fspath(path)!r}: pictures cannot be written as .{ending}. Use .png, .svg or .pdf.")
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise errors.InvalidArgumentError("pictures need matplotlib, which is not installed: pip install 'tf-regal[compare]'") from error
    schedules = {"planned": plan.details.planned, "default": plan.details.default} if plan.details else {"planned": plan}
    names = list(short_names(plan.topology.names).values())
    time_ns, unit = _unit(max(int(s.end_ns.max(initial=1)) for s in schedules.values()))
    end = max(int(s.end_ns.max(initial=1)) for s in schedules.values()) / time_ns
    rows = {key: _rows(schedule, len(names)) for key, schedule in schedules.items()}
    heights = [max(1.0, 0.28 * len(rows[key][0]) + 0.3) for key in schedules] + [1.1] * len(names)
    with matplotlib.rc_context({"font.size": 8, "axes.titlesize": 9, "svg.fonttype": "none"}):
        figure = Figure(figsize=(12, sum(heights) + 1.2), layout="constrained")
        axes = figure.subplots(len(heights), 1, sharex=True, gridspec_kw={"height_ratios": heights})
        axes = list(axes) if len(heights) > 1 else [axes]
        colors = _type_colors(plan)
        of_op = [colors.get(name, _OTHER) for name in plan.details.types] if plan.details else [_OTHER] * len(plan.ops)
        for axis, (key, schedule) in zip(axes, schedules.items(), strict=False):
            _draw_rows(axis, schedule, rows[key], names, time_ns, of_op, f"{key}: {schedule.end_ns.max(initial=0) / time_ns:.4g} {unit}")
        for q, axis in enumerate(axes[len(schedules):]):
            _draw_memory(axis, q, names[q], schedules, plan.topology.devices[q].memory, time_ns)
        axes[-1].set_xlabel(unit)
        axes[-1].set_xlim(0, end * 1.001)
        if colors:
            handles = [matplotlib.patches.Patch(color=color, label=name) for name, color in colors.items()]
            axes[0].legend(handles=handles, ncols=len(handles), loc="lower left", bbox_to_anchor=(0, 1.12), frameon=False, fontsize=7)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=ending, dpi=150)
    storage.write_atomically(path, buffer.getvalue())


def _unit(ns):
    return next((size, name) for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")) if ns >= size)


def _rows(schedule, n_devices):
    """(labels, row per op, {link: row}, how many rows are lanes)."""
    lane, _ = lanes(schedule.device, schedule.start_ns, schedule.end_ns, n_devices)
    labels, first = [], []
    for q in range(n_devices):
        first.append(len(labels))
        labels += [(q, i) for i in range(int(lane[schedule.device == q].max(initial=0)) + 1)]
    links = sorted({(t[1], t[2]) for t in schedule.transfers})
    of_link = {link: len(labels) + i for i, link in enumerate(links)}
    return labels + links, [first[q] + i for q, i in zip(schedule.device.tolist(), lane.tolist(), strict=True)], of_link, len(labels)


def _type_colors(plan):
    """{op type: colour} of the types that take most time."""
    if not plan.details:
        return {}
    total = {}
    for name, length in zip(plan.details.types, (plan.end_ns - plan.start_ns).tolist(), strict=True):
        total[name] = total.get(name, 0) + length
    most = [name for name in sorted(total, key=lambda name: -total[name])[:len(_COLORS)] if total[name] > 0]
    return dict(zip(most, _COLORS, strict=False))


def _draw_rows(axis, schedule, rows, names, time_ns, color_of_op, title):
    labels, row_of_op, of_link, n_lanes = rows
    bars = {}
    for op, (row, start, end) in enumerate(zip(row_of_op, schedule.start_ns.tolist(), schedule.end_ns.tolist(), strict=True)):
        if end > start:
            bars.setdefault(row, []).append((start / time_ns, (end - start) / time_ns, color_of_op[op]))
    for row, found in bars.items():
        axis.broken_barh([(start, width) for start, width, _ in found], (row - 0.4, 0.8), facecolors=[color for *_, color in found])
    for link, row in of_link.items():
        moved = [(t[3] / time_ns, max(t[4] - t[3], 1) / time_ns) for t in schedule.transfers if t[1:3] == link]
        axis.broken_barh(moved, (row - 0.3, 0.6), facecolors="#555555")
    texts = [f"{names[a]}" if b == 0 else "" for a, b in labels[:n_lanes]] + [f"{names[a]} → {names[b]}" for a, b in labels[n_lanes:]]
    axis.set_yticks(range(len(labels)), texts)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_title(title, loc="left")


def _draw_memory(axis, q, name, schedules, capacity, time_ns):
    top = 0
    for (key, schedule), style in zip(schedules.items(), (("#1a5fb4", "-"), ("#b3541e", "--")), strict=False):
        steps = schedule.memory[q]
        if steps:
            axis.step([t / time_ns for t, _ in steps], [b / 1e6 for _, b in steps], where="post", color=style[0], linestyle=style[1], label=key)
            top = max(top, max(b for _, b in steps) / 1e6)
    if capacity is not None and capacity / 1e6 <= 1.6 * top:
        axis.axhline(capacity / 1e6, color="#c5221f", linestyle=":", label="capacity")
    axis.set_ylabel(f"{name}\nMB")
    axis.set_ylim(0, None)
    axis.legend(loc="upper right", fontsize=7)

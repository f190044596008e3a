"""A plan as the front end takes it: an overview to draw at once, and columns that come later. Nothing here depends on how they get there.

The pieces of a plan, `chunks`:

    overview.json       figures, devices, op types, the search; per schedule its rows (lanes and links), a binned picture, and what holds the peak
    names.json          {"names", "outputs"} of the ops
    graph.bin           edges, and sizes of tensors
    <schedule>.bin      bars of a schedule and its memory curves; a schedule is "planned", "default" or "measured"

A .bin is a uint32 with the length of a JSON text, that text {"arrays": [[name, dtype, length, offset from the end of the text]]}, and the arrays, little
endian, each at a multiple of 8 bytes from the file's beginning.
"""

import dataclasses
import json
import struct

import numpy as np

from tf_regal.plans.details import BUFFERS, Schedule
from tf_regal.views import waits

VERSION = 2
BINS = 1000
_DTYPES = {"<f8": "f64", "<f4": "f32", "<i4": "i32", "<u2": "u16", "|u1": "u8"}


def pack(arrays):
    """{name: array} → bytes."""
    header, data, offset = [], [], 0
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        raw = array.tobytes()
        header.append([name, _DTYPES[array.dtype.str], array.size, offset])
        data.append(raw + b"\0" * (-len(raw) % 8))
        offset += len(data[-1])
    text = json.dumps({"arrays": header}).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return struct.pack("<I", len(text)) + text + b"".join(data)


def unpack(content):
    """The {name: array} that `pack` packed."""
    (length,) = struct.unpack_from("<I", content)
    dtypes = {short: np.dtype(long) for long, short in _DTYPES.items()}
    begin = 4 + length
    return {
        name: np.frombuffer(content, dtypes[dtype], count, begin + offset) for name, dtype, count, offset in json.loads(content[4:begin])["arrays"]
    }


def chunks(plan, measured=None):
    """{name of a piece: bytes} of a plan. measured: a `views.measured.Measured` of it, or None."""
    view = _View(plan, measured)
    result = {"overview.json": _json(view.overview()), "names.json": _json(view.names()), "graph.bin": view.graph()}
    for name in view.schedules:
        result[f"{name}.bin"] = view.columns(name)
    return result


def _json(value):
    return json.dumps(value, separators=(",", ":")).encode()


@dataclasses.dataclass
class _Rows:
    """Where bars are drawn: the rows, the first row of each device, and the row of each link."""

    rows: list
    first: list
    of_link: dict


class _View:
    def __init__(self, plan, measured):
        self.plan, self.details = plan, plan.details
        self.latency = plan.topology.arrays()["latency"]
        self.types = self.details.types if self.details else ["op"] * len(plan.ops)
        self.type_names = sorted(set(self.types))
        number = {name: i for i, name in enumerate(self.type_names)}
        self.type_of = np.array([number[name] for name in self.types], np.int32)
        self.schedules = {"planned": self._of_plan()}
        if self.details:
            self.schedules["default"] = self.details.default
        self.measured = measured
        if measured is not None:
            self.schedules["measured"] = measured.schedule(plan)
        self.waits = {name: self._explained(name, schedule) for name, schedule in self.schedules.items()}
        self.rows = {name: self._make_rows(name, schedule) for name, schedule in self.schedules.items()}
        self.bars = {name: self._make_bars(name) for name in self.schedules}

    def _of_plan(self):
        if self.details:
            return self.details.planned
        plan = self.plan
        return Schedule(plan.device, plan.start_ns, plan.end_ns, plan.transfers, np.full(len(plan.transfers), -1), plan.memory, [[] for _ in plan.memory])

    def _explained(self, name, schedule):
        if self.details and name != "measured":
            return waits.explain(self.details, schedule, self.latency, self.plan.edges if name == "planned" else ())
        lane, before = waits.lanes(schedule.device, schedule.start_ns, schedule.end_ns, self.plan.topology.n_devices)
        n = len(lane)
        idle = schedule.start_ns - np.where(before >= 0, schedule.end_ns[before], 0)
        return waits.Waits(lane, schedule.start_ns, np.zeros(n, np.uint8), np.full(n, -1, np.int32), np.maximum(idle, 0))

    def _make_rows(self, name, schedule):
        """A row per device and lane in use (at least one), then one per link in use."""
        rows, first = [], []
        lane = self.waits[name].lane
        seen = schedule.end_ns > schedule.start_ns if name == "measured" else np.ones(len(lane), bool)
        for q in range(self.plan.topology.n_devices):
            mine = lane[(schedule.device == q) & seen]
            first.append(len(rows))
            rows += [{"kind": "device", "device": q, "lane": i} for i in range(int(mine.max(initial=0)) + 1)]
        links = sorted({(t[1], t[2]) for t in schedule.transfers})
        of_link = {link: len(rows) + i for i, link in enumerate(links)}
        rows += [{"kind": "link", "source": a, "destination": b} for a, b in links]
        return _Rows(rows, first, of_link)

    def _make_bars(self, name):
        """Arrays of one entry per bar, by row and start: row, op, start, end (ns), bytes, transfer (whether it is one), tensor (that it moves, else −1)."""
        schedule, rows = self.schedules[name], self.rows[name]
        ops = np.flatnonzero(schedule.end_ns > schedule.start_ns) if name == "measured" else np.arange(len(schedule.device))
        first = np.array(rows.first, np.int64)
        row = first[schedule.device[ops]] + self.waits[name].lane[ops]
        transfers = np.array(schedule.transfers, np.int64).reshape(-1, 6)
        of_link = np.array([rows.of_link[a, b] for a, b in transfers[:, 1:3].tolist()], np.int64)
        columns = {
            "row": np.concatenate([row, of_link]), "op": np.concatenate([ops, transfers[:, 0]]),
            "start": np.concatenate([schedule.start_ns[ops], transfers[:, 3]]), "end": np.concatenate([schedule.end_ns[ops], transfers[:, 4]]),
            "bytes": np.concatenate([np.zeros(len(ops)), transfers[:, 5]]), "transfer": np.concatenate([np.zeros(len(ops)), np.ones(len(transfers))]),
            "tensor": np.concatenate([np.full(len(ops), -1), schedule.transfer_tensors]),
        }  # fmt: skip
        order = np.lexsort([columns["end"], columns["start"], columns["row"]])
        return {key: column[order] for key, column in columns.items()}

    def columns(self, name):
        schedule, found, why = self.schedules[name], self.bars[name], self.waits[name]
        n_rows = len(self.rows[name].rows)
        arrays = {
            "row_ptr": np.searchsorted(found["row"], np.arange(n_rows + 1)).astype(np.int32), "op": found["op"].astype(np.int32),
            "start": found["start"].astype(np.float64), "end": found["end"].astype(np.float64), "bytes": found["bytes"].astype(np.float64),
            "transfer": found["transfer"].astype(np.uint8), "tensor": found["tensor"].astype(np.int32),
            "device": schedule.device.astype(np.int32), "op_start": schedule.start_ns.astype(np.float64),
            "op_end": schedule.end_ns.astype(np.float64), "ready": why.ready_ns.astype(np.float64), "reason": why.reason.astype(np.uint8),
            "cause": why.cause.astype(np.int32), "idle": why.idle_ns.astype(np.float64),
        }  # fmt: skip
        steps = [np.array(curve, np.float64).reshape(-1, 2) for curve in schedule.memory]
        arrays["memory_ptr"] = np.cumsum([0, *map(len, steps)]).astype(np.int32)
        joined = np.concatenate(steps) if steps else np.empty((0, 2))
        arrays["memory_ns"], arrays["memory_bytes"] = joined[:, 0], joined[:, 1]
        return pack(arrays)

    def graph(self):
        arrays = {"type": self.type_of}
        if self.details:
            d = self.details
            arrays |= {name: getattr(d, name).astype(np.int32) for name in ("producer", "input_ptr", "input_idx", "control_ptr", "control_idx")}
            arrays["size"] = d.size.astype(np.float64)
        edges = np.asarray(self.plan.edges).reshape(-1, 2)
        arrays["added_before"], arrays["added_after"] = edges[:, 0].astype(np.int32), edges[:, 1].astype(np.int32)
        arrays["persistent"] = self.plan.persistent_bytes.astype(np.float64)
        return pack(arrays)

    def names(self):
        return {"names": self.plan.ops, "outputs": self.details.outputs if self.details else []}

    def overview(self):
        plan, topology = self.plan, self.plan.topology
        return {
            "version": VERSION, "objective": plan.objective, "order": plan.order_mode, "topology": topology.name, "fingerprint": plan.fingerprint,
            "ops": len(plan.ops), "control_edges": len(plan.edges), "pays": plan.pays, "notes": plan.notes,
            "devices": [{"name": d.name, "kind": d.kind, "model": d.model, "memory": d.memory, "lanes": d.lanes} for d in topology.devices],
            "figures": {which: dataclasses.asdict(getattr(plan, which)) for which in ("predicted", "default")},
            "bounds": dataclasses.asdict(plan.bounds), "search": dataclasses.asdict(plan.search), "trace": self.details.search if self.details else None,
            "types": self.type_names, "reasons": waits.REASONS, "buffers": BUFFERS, "has_details": self.details is not None,
            "schedules": {name: self._outline(name) for name in self.schedules},
            "measured": self.measured.to_json(plan) if self.measured is not None else None,
        }  # fmt: skip

    def _outline(self, name):
        """What is drawn before the columns are there."""
        schedule = self.schedules[name]
        ends = [int(schedule.end_ns.max(initial=0)), *(t[4] for t in schedule.transfers)]
        end = max(ends)
        return {
            "end_ns": end, "rows": self.rows[name].rows, "bins": self._binned(name, max(end, 1)),
            "memory": [_binned_steps(curve, max(end, 1)) for curve in schedule.memory],
            "peaks": [max(((b, t) for t, b in curve), default=(0, 0)) for curve in schedule.memory],
            "held": [[list(row) for row in rows] for rows in schedule.held],
            "persistent": [int(self.plan.persistent_bytes[schedule.device == q].sum()) for q in range(self.plan.topology.n_devices)],
        }  # fmt: skip

    def _binned(self, name, end):
        """Per row: [first bin, last bin, op] of runs of bins that a bar covers; of several bars in a bin the longest counts."""
        found = self.bars[name]
        first = np.minimum(found["start"] * BINS // end, BINS - 1).astype(np.int64)
        last = np.minimum(np.maximum(found["end"] - 1, found["start"]) * BINS // end, BINS - 1).astype(np.int64)
        rows = [[] for _ in self.rows[name].rows]
        longest = {}
        for row, op, a, b, length in zip(*(x.tolist() for x in (found["row"], found["op"], first, last, found["end"] - found["start"])), strict=True):
            runs = rows[row]
            if runs and runs[-1][1] >= a:  # shares a bin with the bar before
                if length > longest[row]:
                    runs[-1][2], longest[row] = op, length
                runs[-1][1] = max(runs[-1][1], b)
            else:
                runs.append([a, b, op])
                longest[row] = length
        return rows


def _binned_steps(curve, end):
    """The largest value in each of BINS bins, of a list of (ns, bytes)."""
    if not curve:
        return []
    steps = np.array(curve, np.float64)
    at = np.minimum(steps[:, 0] * BINS // end, BINS - 1).astype(np.int64)
    largest = np.full(BINS, -1.0)
    np.maximum.at(largest, at, steps[:, 1])
    # A bin also has what is held at its beginning.
    final = np.full(BINS, -1.0)
    final[at] = steps[:, 1]  # the last of a bin stays
    held, result = 0.0, []
    for i in range(BINS):
        result.append(max(held, largest[i]))
        if final[i] >= 0:
            held = final[i]
    return result

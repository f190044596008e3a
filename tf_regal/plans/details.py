"""What a plan is looked at with: the graph's edges, the default schedule, what holds the memory at its peak, and how the search went.

None of it is needed to apply a plan, and plans without it can be read.
"""

import dataclasses

import numpy as np

from tf_regal.plans import columns

OUTPUT, COPY, SCRATCH = 0, 1, 2
"""What a buffer is: an op's output, a copy that a transfer made, or scratch memory of an op."""

BUFFERS = ("output", "copy", "scratch")

_OWN = ("transfer_tensors", "held")  # of a schedule, and not of a plan

_MAX_HELD = 200  # buffers per device, the largest
_MAX_ALIASES = 1000


@dataclasses.dataclass(eq=False)
class Schedule:
    """A timeline, as of `Plan`: device int32 [ops], start_ns, end_ns int64 [ops], transfers, memory.

    transfer_tensors: int64 [transfers], which tensor each transfer moves.
    held: per device the largest buffers that are alive at its peak, rows of (op that made it, bytes, from ns, until ns, the op that keeps it, what it is);
        until and keeper are −1 where it lives to the end: it is a result. A transfer that keeps it is told by the op that made the tensor.
    """

    device: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    transfers: list
    transfer_tensors: np.ndarray
    memory: list
    held: list


@dataclasses.dataclass(eq=False)
class Details:
    """types, outputs: list of str per op ("MatMul", "float32[32, 10]"). The rest is as of `Problem`: producer int32 [tensors], size int64 [tensors], inputs as
    CSR (op → tensors), control as CSR (op → ops that go first). planned, default: `Schedule`. search: `search.trace.Trace` as a dict, or None."""

    types: list
    outputs: list
    producer: np.ndarray
    size: np.ndarray
    input_ptr: np.ndarray
    input_idx: np.ndarray
    control_ptr: np.ndarray
    control_idx: np.ndarray
    planned: Schedule
    default: Schedule
    search: dict | None = None

    def to_json(self):
        """A dict of JSON values; of the planned schedule only what the plan does not have itself."""
        data = {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
        data["planned"] = {name: data["planned"][name] for name in _OWN}
        return data

    @classmethod
    def from_json(cls, data, plan):
        """Of a plan that is read but for its details. Raises ValueError (or KeyError, TypeError) where the parts do not fit together."""
        n_ops, n_devices = len(plan.ops), plan.topology.n_devices
        arrays = {name: columns.whole(name, data[name]) for name in ("producer", "size", "input_ptr", "input_idx", "control_ptr", "control_idx")}
        m = len(arrays["producer"])
        if len(data["types"]) != n_ops or len(data["outputs"]) not in (0, n_ops) or len(arrays["size"]) != m:
            raise ValueError("details: their columns have different lengths")
        for name, high in (("producer", n_ops), ("input_idx", m), ("control_idx", n_ops)):
            columns.in_range(name, arrays[name], high)
        for name in ("input", "control"):
            ptr = arrays[f"{name}_ptr"]
            if len(ptr) != n_ops + 1 or ptr[0] != 0 or np.any(np.diff(ptr) < 0) or ptr[-1] != len(arrays[f"{name}_idx"]):
                raise ValueError(f"details: {name}_ptr does not fit")
        types, outputs = ([str(text) for text in data[name]] for name in ("types", "outputs"))
        shared = {name: getattr(plan, name) for name in ("device", "start_ns", "end_ns", "transfers", "memory")}
        planned = _checked(Schedule(**shared, **_own(data["planned"])), n_ops, n_devices, m)
        return cls(types, outputs, **arrays, planned=planned, default=_schedule(data["default"], n_ops, n_devices, m), search=data.get("search"))


def details(graph, problem, run, default_run, search=None):
    """The `Details` of a plan: OpGraph, Problem, and the two runs with timelines."""
    consumers = _Consumers(problem)
    return Details(
        list(graph.types), list(graph.outputs), problem.producer, problem.size, problem.input_ptr, problem.input_idx, problem.control_ptr, problem.control_idx,
        *(_from_run(problem, one, consumers) for one in (run, default_run)), search,
    )


def transfers(problem, run):
    """Rows of (op that made the tensor, source, destination, start ns, end ns, bytes), as of `Plan`."""
    return [(int(problem.producer[t]), int(a), int(b), int(s), int(e), int(problem.size[t])) for t, a, b, s, e in run.transfers]


def memory(run):
    """Per device list of (ns, bytes), as of `Plan`."""
    return [[(int(t), int(b)) for t, b in steps] for steps in run.memory]


def _from_run(problem, run, consumers):
    return Schedule(
        np.asarray(run.device), np.asarray(run.start), np.asarray(run.end), transfers(problem, run), np.asarray(run.transfers)[:, 0].astype(np.int64),
        memory(run), [_held(problem, run, q, consumers) for q in range(problem.n_devices)],
    )


def _held(problem, run, q, consumers):
    """The rows of `Schedule.held` for one device."""
    rows = run.allocations[run.allocations[:, 1] == q]
    if not len(rows):
        return []
    at_peak = int(np.argmax(np.cumsum(rows[:, 3])))
    live = {}
    for i, (ns, _, buffer, size) in enumerate(rows.tolist()):
        if i > at_peak and not live:
            break
        if i <= at_peak:
            if size > 0:
                live[buffer] = [ns, size, -1]
            else:
                live.pop(buffer, None)
        elif size < 0 and buffer in live and live[buffer][2] < 0:
            live[buffer][2] = ns
    chosen = sorted(live, key=lambda buffer: (-live[buffer][1], buffer))[:_MAX_HELD]
    allocated = set(rows[:, 2].tolist())
    result = []
    for buffer in chosen:
        began, size, until = live[buffer]
        if buffer >= problem.n_tensors * problem.n_devices:
            op = buffer - problem.n_tensors * problem.n_devices
            result.append((op, size, began, until, op, SCRATCH))
            continue
        tensor = buffer // problem.n_devices
        op = int(problem.producer[tensor])
        keeper = -1 if until < 0 else _keeper(problem, run, consumers, tensor, q, until, allocated)
        result.append((op, size, began, until, keeper, OUTPUT if run.device[op] == q else COPY))
    return result


class _Consumers:
    """tensor → ops that take it, and op → tensors that it makes."""

    def __init__(self, problem):
        ops = np.repeat(np.arange(problem.n_ops), np.diff(problem.input_ptr))
        order = np.argsort(problem.input_idx, kind="stable")
        self._ops = ops[order]
        self._ptr = np.searchsorted(problem.input_idx[order], np.arange(problem.n_tensors + 1))
        self.outputs = np.argsort(problem.producer, kind="stable")
        self.output_ptr = np.searchsorted(problem.producer[self.outputs], np.arange(problem.n_ops + 1))

    def __getitem__(self, tensor):
        return self._ops[self._ptr[tensor]:self._ptr[tensor + 1]].tolist()

    def of_op(self, op):
        return self.outputs[self.output_ptr[op]:self.output_ptr[op + 1]].tolist()


def _keeper(problem, run, consumers, tensor, q, until, allocated):
    """The op whose end frees a buffer on device q: it takes the tensor, or one that shares its buffer (a view, or an output in place of it)."""
    seen, queue = {tensor}, [tensor]
    sent = {int(t) for t, source, _, _, end in run.transfers.tolist() if source == q and end == until}
    while queue and len(seen) < _MAX_ALIASES:
        alias = queue.pop()
        if alias in sent:
            return int(problem.producer[alias])
        for op in consumers[alias]:
            if run.device[op] != q:
                continue
            if run.end[op] == until:
                return op
            for output in consumers.of_op(op):
                reused = problem.reuse_idx[problem.reuse_ptr[output]:problem.reuse_ptr[output + 1]]
                shares = problem.view[output] == alias or (alias in reused and output * problem.n_devices + q not in allocated)
                if shares and output not in seen:
                    seen.add(output)
                    queue.append(output)
    # Nothing takes it.
    return int(problem.producer[tensor])


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Schedule):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def _own(data):
    """The parts of `_OWN` as arguments of Schedule."""
    held = [columns.rows("details: held", rows, 6) for rows in data["held"]]
    return {"transfer_tensors": columns.whole("details: transfer_tensors", data["transfer_tensors"]), "held": held}


def _schedule(data, n_ops, n_devices, n_tensors):
    schedule = Schedule(
        columns.whole("details: device", data["device"]).astype(np.int32), columns.whole("details: start_ns", data["start_ns"]),
        columns.whole("details: end_ns", data["end_ns"]), columns.rows("details: transfers", data["transfers"], 6),
        memory=[columns.rows("details: memory", steps, 2) for steps in data["memory"]], **_own(data),
    )  # fmt: skip
    return _checked(schedule, n_ops, n_devices, n_tensors)


def _checked(schedule, n_ops, n_devices, n_tensors):
    if not len(schedule.device) == len(schedule.start_ns) == len(schedule.end_ns) == n_ops:
        raise ValueError("details: a schedule's columns have different lengths")
    if len(schedule.memory) != n_devices or len(schedule.held) != n_devices or len(schedule.transfers) != len(schedule.transfer_tensors):
        raise ValueError("details: a schedule does not fit the plan's devices")
    if any(step[0] < 0 or step[1] < 0 for steps in schedule.memory for step in steps):
        raise ValueError("details: a memory curve has a time or bytes below 0")
    columns.in_range("details: device", schedule.device, n_devices)
    columns.in_range("details: transfer_tensors", schedule.transfer_tensors, n_tensors)
    if n_ops and (schedule.start_ns.min() < 0 or np.any(schedule.end_ns < schedule.start_ns)):
        raise ValueError("details: an op starts before 0 or ends before it starts")
    if any(not (0 <= t[0] < n_ops and max(t[1:3]) < n_devices and min(t) >= 0 and t[4] >= t[3]) for t in schedule.transfers):
        raise ValueError("details: a transfer names an op or device that it does not have")
    if any(not (0 <= row[0] < n_ops and -1 <= row[4] < n_ops and 0 <= row[5] < len(BUFFERS)) for rows in schedule.held for row in rows):
        raise ValueError("details: a buffer names an op that it does not have")
    return schedule

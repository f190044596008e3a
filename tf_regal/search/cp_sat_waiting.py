"""Nobody waits of his own will: what a list schedule adds to `cp_sat_model`, on devices with one lane and on links.

A line (device or link) is never idle while something is ready for it. So where a line is idle just before j, all that comes after j on that
line became ready no earlier than j started. This is compared by times without steps; the order within a time is left free.
"""


def add(plan):
    """Adds it to a `cp_sat_model.Model`. n² literals per line: for small problems."""
    before = _ancestors(plan)
    single = [q for q, lanes in enumerate(plan.problem.lanes.tolist()) if lanes == 1]
    ops = [_Item(activity, {q: x for q, x in plan.placed[plan.group[op]].items() if q in single}, None) for op, activity in enumerate(plan.ops)]
    ready = [_ready(plan, op) for op in range(len(ops))]
    _line(plan.model, ops, ready, lambda i, j: i in before[j], "op")
    for q in range(plan.d):
        tensors = [tensor for tensor, destination in plan.transfers if destination == q]
        items = [_Item(plan.transfers[t, q], plan.sources[t, q], plan.present[t, q]) for t in tensors]
        starts = [plan.ops[plan.edges.producer[t]].end for t in tensors]
        # A tensor that was there earlier need not be sent earlier.
        _line(plan.model, items, starts, lambda i, j: False, f"to{q}")


class _Item:
    """Something that takes a line: {line: literal}; and the literal of taking one at all, where there is one for it."""

    def __init__(self, activity, lines, present):
        self.activity, self.lines, self.present = activity, lines, present


def _line(model, items, ready, ancestor, name):
    n = len(items)
    gaps = [model.new_bool_var(f"{name}{i}.gap") for i in range(n)]
    follows = [[gap] for gap in gaps]
    for i in range(n):
        for j in range(i + 1, n):
            shared = items[i].lines.keys() & items[j].lines.keys()
            if not shared:
                continue
            same = _same(model, items[i], items[j], shared, f"{name}{i}&{j}")
            pairs = {}
            for a, b in ((i, j), (j, i)):
                if not ancestor(b, a):
                    pairs[a, b] = model.new_bool_var(f"{name}{a}<{b}")
            model.add(sum(pairs.values()) == same)
            for (a, b), literal in pairs.items():
                first, second = items[a].activity, items[b].activity
                model.add(second.start >= first.finish).only_enforce_if(literal)
                model.add(ready[b] >= first.t).only_enforce_if([literal, gaps[a]])
                at_once = model.new_bool_var(f"{name}{a}|{b}")
                model.add_implication(at_once, literal)
                model.add(second.t <= first.end).only_enforce_if(at_once)
                follows[b].append(at_once)
    for item, gap, start, options in zip(items, gaps, ready, follows, strict=True):
        for taken in item.lines.values() if item.present is None else [item.present]:
            model.add(item.activity.t <= start).only_enforce_if([gap, taken])
            model.add_bool_or([*options, ~taken])


def _same(model, a, b, shared, name):
    """A literal that is true if and only if both take the same line."""
    same = model.new_bool_var(name)
    both = []
    for line in shared:
        if a.lines[line] is b.lines[line]:
            both.append(a.lines[line])
            continue
        here = model.new_bool_var(f"{name}@{line}")
        model.add_bool_and([a.lines[line], b.lines[line]]).only_enforce_if(here)
        model.add_bool_or([here, ~a.lines[line], ~b.lines[line]])
        both.append(here)
    model.add(sum(both) == same)
    return same


def _ready(plan, op):
    """A variable that is no later than when the op became ready, in units."""
    model = plan.model
    ready = model.new_int_var(0, plan.horizon, f"op{op}.ready")
    witnesses = []

    def witness(time, conditions=()):
        literal = model.new_bool_var(f"op{op}.ready{len(witnesses)}")
        witnesses.append(literal)
        for condition in conditions:
            model.add_implication(literal, condition)
        model.add(ready <= time).only_enforce_if(literal)

    witness(0)
    for tensor in plan.edges.inputs[op]:
        witness(plan.ops[plan.edges.producer[tensor]].end)
        for q, literal in plan.placed[plan.group[op]].items():
            if (tensor, q) in plan.transfers:
                witness(plan.transfers[tensor, q].end, [literal, plan.present[tensor, q]])
    for source in plan.edges.control[op]:
        witness(plan.ops[source].end)
        for p, q, latency in plan.delays(source, op):
            witness(plan.ops[source].end + latency, [plan.at(source, p), plan.at(op, q)])
    model.add_bool_or(witnesses)
    return ready


def _ancestors(plan):
    """Per op the set of ops that must have ended before it."""
    result = [set() for _ in plan.ops]
    for op in plan.task.simulator.topological_order.tolist():
        for source in [plan.edges.producer[t] for t in plan.edges.inputs[op]] + plan.edges.control[op]:
            result[op] |= {source} | result[source]
    return result

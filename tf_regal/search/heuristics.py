"""List heuristics: priorities and placements that are computed once, in O(n log n) or near it. Each is a method and a seed of `regal`."""

import heapq

import numpy as np

from tf_regal.problem import LIFETIME_PERSISTENT


class Edges:
    """The edges of a Problem as Python lists: what the loops below walk over."""

    def __init__(self, problem):
        p = problem
        self.inputs = [p.input_idx[a:b] for a, b in zip(p.input_ptr[:-1].tolist(), p.input_ptr[1:].tolist(), strict=True)]
        self.inputs = [x.tolist() for x in self.inputs]
        self.control = [p.control_idx[a:b].tolist() for a, b in zip(p.control_ptr[:-1].tolist(), p.control_ptr[1:].tolist(), strict=True)]
        self.producer = p.producer.tolist()
        self.consumers = [[] for _ in range(p.n_tensors)]
        self.outputs = [[] for _ in range(p.n_ops)]
        self.control_successors = [[] for _ in range(p.n_ops)]
        for tensor, op in enumerate(self.producer):
            self.outputs[op].append(tensor)
        for op in range(p.n_ops):
            for tensor in self.inputs[op]:
                self.consumers[tensor].append(op)
            for source in self.control[op]:
                self.control_successors[source].append(op)

    def n_predecessors(self):
        return [len(i) + len(c) for i, c in zip(self.inputs, self.control, strict=True)]

    def successors(self, op):
        """Consumers of the op's outputs and its control successors, once per edge."""
        for tensor in self.outputs[op]:
            yield from self.consumers[tensor]
        yield from self.control_successors[op]


def constrained(task, device):
    """The nearest allowed placement: every group goes where its first op is asked to go if it may, else to its default device."""
    problem, allowed = task.problem, task.simulator.allowed
    _, first = np.unique(problem.group, return_index=True)
    asked = np.asarray(device, np.int64)[first]
    may = (allowed >> asked.astype(np.uint64)) & np.uint64(1)
    chosen = np.where(may == 1, asked, np.asarray(task.default_device)[first])
    return chosen[problem.group].astype(np.int32)


def order_to_priority(order, n):
    """A list of ops, first to run first → float32 [n], higher first."""
    priority = np.empty(n, np.float32)
    priority[np.asarray(order)] = np.arange(n, 0, -1, dtype=np.float32)
    return priority


def _mean_costs(problem):
    """Mean duration per op over the devices where it may run, and mean transfer time per tensor; ns, float64."""
    allowed = problem.duration >= 0
    duration = np.where(allowed, problem.duration, 0).sum(axis=1) / np.maximum(allowed.sum(axis=1), 1)
    d = problem.n_devices
    if d == 1:
        return duration, np.zeros(problem.n_tensors)
    off = ~np.eye(d, dtype=bool)
    # Half of the placements of two ops, or more, need no transfer: d − 1 of d random pairs do.
    share = (d - 1) / d
    transfer = share * (problem.latency[off].mean() + problem.size * problem.ns_per_byte[off].mean())
    return duration, transfer


def upward_rank(task):
    """Longest path from the start of each op to the end, with mean durations and transfers, ns (Topcuoglu et al. 2002, HEFT)."""
    duration, transfer = _mean_costs(task.problem)
    duration, transfer = duration.tolist(), transfer.tolist()
    edges, rank = task.edges, [0.0] * task.problem.n_ops
    for op in reversed(task.simulator.topological_order.tolist()):
        longest = 0.0
        for tensor in edges.outputs[op]:
            for consumer in edges.consumers[tensor]:
                longest = max(longest, transfer[tensor] + rank[consumer])
        for successor in edges.control_successors[op]:
            longest = max(longest, rank[successor])
        rank[op] = duration[op] + longest
    return np.array(rank)


def heft_placement(task, rank):
    """HEFT's placement: ops by falling rank, each group on the device where the op ends first. int32 [ops].

    A group is placed by its first op; what is already there (lanes, and tensors that were transferred before) counts.
    """
    problem, edges, d = task.problem, task.edges, task.problem.n_devices
    duration, latency, rate = problem.duration.tolist(), problem.latency.tolist(), problem.ns_per_byte.tolist()
    size, group, lanes = problem.size.tolist(), problem.group.tolist(), problem.lanes.tolist()
    allowed = task.simulator.allowed.tolist()
    free = [[0.0] * lanes[q] for q in range(d)]
    device_of_group = [-1] * problem.n_groups
    device, end = [0] * problem.n_ops, [0.0] * problem.n_ops
    arrived = {}  # (tensor, device) -> ns
    position = np.empty(problem.n_ops, np.int64)
    position[task.simulator.topological_order] = np.arange(problem.n_ops)
    for op in np.lexsort((position, -rank)).tolist():
        g = group[op]
        choices = [device_of_group[g]] if device_of_group[g] >= 0 else [q for q in range(d) if allowed[g] >> q & 1]
        best = None
        for q in choices:
            ready = 0.0
            for tensor in edges.inputs[op]:
                source = edges.producer[tensor]
                at = end[source]
                if device[source] != q:
                    at = arrived.get((tensor, q), at + latency[device[source]][q] + size[tensor] * rate[device[source]][q])
                ready = max(ready, at)
            for source in edges.control[op]:
                ready = max(ready, end[source] + (latency[device[source]][q] if device[source] != q else 0))
            finish = max(ready, free[q][0]) + duration[op][q]
            if best is None or finish < best[0]:
                best = (finish, q)
        finish, q = best
        for tensor in edges.inputs[op]:
            source = edges.producer[tensor]
            if device[source] != q:
                arrived.setdefault((tensor, q), end[source] + latency[device[source]][q] + size[tensor] * rate[device[source]][q])
        heapq.heapreplace(free[q], finish)
        device_of_group[g], device[op], end[op] = q, q, finish
    return np.array(device, np.int32)


def memory_greedy_order(task):
    """Always the ready op that adds least memory next (allocates minus frees), for one device; ties to the longest path. List of ops."""
    problem, edges = task.problem, task.edges
    buffer_of, uses, size = _buffers(problem, edges)
    rank = upward_rank(task)
    scratch = problem.scratch.max(axis=1).tolist()
    reuse = [problem.reuse_idx[a:b].tolist() for a, b in zip(problem.reuse_ptr[:-1].tolist(), problem.reuse_ptr[1:].tolist(), strict=True)]
    tensor_size = problem.size.tolist()

    def added(op):
        total, taken = 0, set()
        for tensor in edges.outputs[op]:
            if buffer_of[tensor] != tensor:
                continue
            reused = next((r for r in reuse[tensor] if buffer_of[r] >= 0 and uses[buffer_of[r]] == 1 and tensor_size[r] == tensor_size[tensor]), None)
            if reused is None:
                total += size[tensor] if uses[tensor] > 0 else 0
            else:
                taken.add(buffer_of[reused])
        for buffer in {buffer_of[t] for t in edges.inputs[op]}:
            if buffer >= 0 and buffer not in taken and uses[buffer] == 1:
                total -= size[buffer]
        return total

    users = [[] for _ in range(problem.n_tensors)]  # per buffer: the ops that use it
    for op in range(problem.n_ops):
        for buffer in {buffer_of[t] for t in edges.inputs[op]}:
            if buffer >= 0:
                users[buffer].append(op)
    pending, done = edges.n_predecessors(), [False] * problem.n_ops
    version = [0] * problem.n_ops
    heap = [(added(op), scratch[op], -rank[op], op, 0) for op in range(problem.n_ops) if pending[op] == 0]
    heapq.heapify(heap)
    order = []
    while heap:
        _, _, _, op, stamp = heapq.heappop(heap)
        if done[op] or stamp != version[op]:
            continue
        done[op] = True
        order.append(op)
        for buffer in {buffer_of[t] for t in edges.inputs[op]}:
            if buffer >= 0:
                uses[buffer] -= 1
                if uses[buffer] == 1:  # the last user now frees it: its score changes
                    for user in users[buffer]:
                        if not done[user] and pending[user] == 0:
                            version[user] += 1
                            heapq.heappush(heap, (added(user), scratch[user], -rank[user], user, version[user]))
        for successor in edges.successors(op):
            pending[successor] -= 1
            if pending[successor] == 0:
                heapq.heappush(heap, (added(successor), scratch[successor], -rank[successor], successor, version[successor]))
    return order


def _buffers(problem, edges):
    """Per tensor the tensor whose buffer it lives in (−1: persistent); per buffer the number of ops that use it, and its bytes."""
    view, lifetime = problem.view.tolist(), problem.lifetime.tolist()
    buffer_of = [0] * problem.n_tensors
    for tensor in range(problem.n_tensors):
        root = tensor
        while lifetime[root] != LIFETIME_PERSISTENT and view[root] >= 0:
            root = view[root]
        buffer_of[tensor] = -1 if lifetime[root] == LIFETIME_PERSISTENT else root
    uses = [0] * problem.n_tensors
    for op in range(problem.n_ops):
        for buffer in {buffer_of[t] for t in edges.inputs[op]}:
            if buffer >= 0:
                uses[buffer] += 1
    for tensor, kind in enumerate(lifetime):
        if kind == 1 and buffer_of[tensor] >= 0:
            uses[buffer_of[tensor]] += 1
    return buffer_of, uses, problem.size.tolist()


def depth_first_order(task):
    """Post-order from the results: an op's inputs, the one with the largest tree first, then the op. List of ops."""
    problem, edges = task.problem, task.edges
    tree = [0] * problem.n_ops  # bytes made below the op, counted once per path: a rough size of its subtree
    size = problem.size.tolist()
    for op in task.simulator.topological_order.tolist():
        sources = {edges.producer[t] for t in edges.inputs[op]}
        tree[op] = min(sum(size[t] for t in edges.outputs[op]) + sum(tree[s] for s in sources), 1 << 62)
    ordered = [
        sorted({edges.producer[t] for t in edges.inputs[op]} | set(edges.control[op]), key=lambda s: (-tree[s], s)) for op in range(problem.n_ops)
    ]
    done, order = [False] * problem.n_ops, []
    has_successor = [False] * problem.n_ops
    for sources in ordered:
        for source in sources:
            has_successor[source] = True
    roots = sorted((op for op in range(problem.n_ops) if not has_successor[op]), key=lambda op: (-tree[op], op))
    for result in roots:
        stack = [(result, 0)]
        while stack:
            op, position = stack.pop()
            if done[op]:
                continue
            if position < len(ordered[op]):
                stack.append((op, position + 1))
                if not done[ordered[op][position]]:
                    stack.append((ordered[op][position], 0))
                continue
            done[op] = True
            order.append(op)
    return order


def chunk_placement(task, order, weight):
    """Cuts an order into one run per device, of about equal weight (float [ops]). int32 [ops]."""
    d = task.problem.n_devices
    total = np.cumsum(np.asarray(weight, float)[order])
    bounds = total[-1] * np.arange(1, d) / d if len(total) else []
    device = np.empty(task.problem.n_ops, np.int32)
    device[order] = np.searchsorted(bounds, total, side="left") if d > 1 else 0
    return constrained(task, device)


def balance_weights(problem):
    """Weights for `chunk_placement`: mean duration (ns), and bytes (persistent and outputs) per op."""
    duration, _ = _mean_costs(problem)
    held = problem.persistent.astype(float)
    np.add.at(held, problem.producer, problem.size * (problem.lifetime != LIFETIME_PERSISTENT))
    return duration, held


def run_heft(task, budget):
    """HEFT: upward ranks, each op where it ends first."""
    rank = upward_rank(task)
    return task.evaluate(heft_placement(task, rank), rank.astype(np.float32))


def run_critical_path(task, budget):
    """Default placement, longest path first."""
    return task.evaluate(task.default_device, upward_rank(task).astype(np.float32))


def run_memory_greedy(task, budget):
    """Default placement, the op that adds least memory next."""
    return task.evaluate(task.default_device, order_to_priority(memory_greedy_order(task), task.problem.n_ops))


def run_depth_first(task, budget):
    """Default placement, post-order from the results."""
    return task.evaluate(task.default_device, order_to_priority(depth_first_order(task), task.problem.n_ops))


def run_topological(task, budget):
    """m-TOPO: a topological order cut into one run per device, balanced by work for "runtime" and by bytes for "peak_memory"."""
    order = depth_first_order(task)
    work, held = balance_weights(task.problem)
    device = chunk_placement(task, order, work if task.objective == "runtime" else held)
    return task.evaluate(device, order_to_priority(order, task.problem.n_ops))

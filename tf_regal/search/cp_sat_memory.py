"""The memory of docs/simulator.md as constraints over `cp_sat_model`: buffers, views, and buffers taken over in place."""

import numpy as np

from tf_regal.problem import LIFETIME_OUTPUT, LIFETIME_PERSISTENT

_LARGEST_SUM = 1 << 61


class Memory:
    """peak: per device the variable that bounds the memory in use, in units of `unit` bytes; rounded: whether sizes were cut to fit the solver."""

    def __init__(self, plan):
        self._plan, self._model, problem = plan, plan.model, plan.problem
        self._size, self._view, self._lifetime = problem.size.tolist(), problem.view.tolist(), problem.lifetime.tolist()
        self._reuse = [problem.reuse_idx[a:b].tolist() for a, b in zip(problem.reuse_ptr[:-1].tolist(), problem.reuse_ptr[1:].tolist(), strict=True)]
        self._producer, self._consumers = plan.edges.producer, plan.edges.consumers
        self.unit, self.rounded = _unit(problem, plan.horizon_tau)
        self._death = {}
        for tensor in range(problem.n_tensors):
            for q in range(plan.d):
                if self._home(tensor, q) is not None or (tensor, q) in plan.present:
                    self._death[tensor, q] = self._model.new_int_var(0, plan.horizon_tau, f"tensor{tensor}@{q}.freed")
        self._uses()
        self._taken = self._take_over()
        self.peak = [self._device(q) for q in range(plan.d)]

    def _home(self, tensor, q):
        """The literal of the tensor's producer being on q, or None."""
        return self._plan.at(self._producer[tensor], q)

    def _is_view(self, tensor):
        return self._view[tensor] >= 0 and self._lifetime[tensor] != LIFETIME_PERSISTENT

    def _uses(self):
        """A buffer lives as long as anything uses one of the tensors in it. What is not resident is left free."""
        plan, model = self._plan, self._model
        for (tensor, q), death in self._death.items():
            home = self._home(tensor, q)
            for op in self._consumers[tensor]:
                if plan.at(op, q) is not None:
                    model.add(death >= plan.ops[op].finish).only_enforce_if(plan.at(op, q))
            if home is None:
                continue
            model.add(death >= plan.ops[self._producer[tensor]].finish).only_enforce_if(home)
            for p in range(plan.d):
                if p != q and (tensor, p) in plan.present:
                    model.add(death >= plan.transfers[tensor, p].finish).only_enforce_if([home, plan.present[tensor, p]])
            if self._lifetime[tensor] == LIFETIME_OUTPUT:
                model.add(death == plan.horizon_tau).only_enforce_if(home)
            if self._is_view(tensor):
                model.add(self._death[self._view[tensor], q] >= death).only_enforce_if(home)

    def _take_over(self):
        """Literals per (tensor, device): the tensor takes over a buffer of its producer's inputs there.

        Only where the simulator would; where it has the choice among buffers it takes the first, which differs from another of the same size in nothing.
        """
        taken, by_op = {}, {}
        for tensor, options in enumerate(self._reuse):
            if self._view[tensor] >= 0 or self._lifetime[tensor] == LIFETIME_PERSISTENT:
                continue
            op = self._producer[tensor]
            viewed = {self._view[t] for t in self._plan.edges.outputs[op]}
            for place, source in enumerate(dict.fromkeys(options)):
                if source in viewed:
                    continue
                for q in range(self._plan.d):
                    if self._home(tensor, q) is None:
                        continue
                    for literal in self._take(op, tensor, source, q):
                        taken.setdefault((tensor, q), []).append(literal)
                        by_op.setdefault((op, q), []).append((tensor, source, place, literal))
        for (_, q), takes in by_op.items():
            self._one_each(takes, q, taken)
        return taken

    def _one_each(self, takes, q, taken):
        """Outputs of one op: each takes one buffer, no buffer is taken twice, and the first output has the first choice."""
        model, first_choice = self._model, {}
        for tensor in {t for t, *_ in takes}:
            model.add_at_most_one(taken[tensor, q])
        for source in {s for _, s, *_ in takes}:
            model.add_at_most_one([literal for _, s, _, literal in takes if s == source])
        for tensor, source, place, literal in takes:
            first_choice.setdefault((tensor, source), (place, []))[1].append(literal)
        for later, source, _, literal in takes:
            for (earlier, wanted), (place, _) in first_choice.items():
                if wanted == source and earlier < later and self._size[earlier] == self._size[later]:
                    # The earlier output would have taken it, had it not taken one that it prefers.
                    preferred = [x for t, _, other, x in takes if t == earlier and other < place]
                    model.add_bool_or([~literal, *preferred])

    def _take(self, op, tensor, source, q):
        """A literal for each buffer on q in which `source` may live and that `tensor` may take over."""
        plan, model, links, root = self._plan, self._model, [], source
        while True:
            home = self._home(root, q)
            copied = (root, q) in plan.present
            cases = []
            if copied:
                cases.append([plan.present[root, q]])
            if home is not None and not self._is_view(root) and self._lifetime[root] != LIFETIME_PERSISTENT:
                cases.append([home])
            for case in cases:
                if self._size[root] == self._size[tensor]:
                    literal = model.new_bool_var(f"tensor{tensor}@{q}<{source}")
                    model.add_bool_and([self._home(tensor, q), *links, *case]).only_enforce_if(literal)
                    model.add(self._death[source, q] >= self._death[tensor, q]).only_enforce_if(literal)
                    if self._last_use(op, source, root, q, literal):
                        yield literal
                    else:
                        model.add(literal == 0)
            if home is None or not self._is_view(root):
                return
            links.append(home)
            root = self._view[root]

    def _last_use(self, op, source, root, q, literal):
        """All uses of the buffer of `root` on q but the op's own have ended when it starts. False where that can never be."""
        plan, model, start = self._plan, self._model, self._plan.ops[op].start
        for tensor, links in self._family(root, q):
            if op in self._consumers[tensor] and tensor != source:
                if not links:
                    return False
                model.add_bool_or([~literal, *(~x for x in links)])
            for other in self._consumers[tensor]:
                if other != op and plan.at(other, q) is not None:
                    model.add(start >= plan.ops[other].finish).only_enforce_if([literal, *links, plan.at(other, q)])
            home = self._home(tensor, q)
            if home is None:
                continue
            if self._lifetime[tensor] == LIFETIME_OUTPUT:
                model.add_bool_or([~literal, ~home, *(~x for x in links)])
            for p in range(plan.d):
                if p != q and (tensor, p) in plan.present:
                    model.add(start >= plan.transfers[tensor, p].finish).only_enforce_if([literal, *links, home, plan.present[tensor, p]])
        return True

    def _family(self, root, q):
        """(tensor, literals under which it lives in the buffer of `root` on q): root and its views, and theirs."""
        result, position = [(root, [])], 0
        while position < len(result):
            tensor, links = result[position]
            position += 1
            for op in self._consumers[tensor]:
                for view in self._plan.edges.outputs[op]:
                    if self._view[view] == tensor and self._is_view(view) and self._home(view, q) is not None:
                        result.append((view, [*links, self._home(view, q)]))
        return result

    def _device(self, q):
        """All that lives on q, and the variable that bounds it."""
        plan, model, problem = self._plan, self._model, self._plan.problem
        intervals, bytes_of = [], []

        def lives(start, finish, literal, size, name):
            if size // self.unit > 0:
                intervals.append(plan.interval(start, finish, literal, name))
                bytes_of.append(size // self.unit)

        for (tensor, p), death in self._death.items():
            if p != q:
                continue
            home = self._home(tensor, q)
            if home is not None and self._view[tensor] < 0 and self._lifetime[tensor] != LIFETIME_PERSISTENT:
                own = home
                if (tensor, q) in self._taken:
                    own = model.new_bool_var(f"tensor{tensor}@{q}.own")
                    model.add(sum(self._taken[tensor, q]) + own == home)
                lives(plan.ops[self._producer[tensor]].start, death, own, self._size[tensor], f"tensor{tensor}@{q}")
            if (tensor, q) in plan.present:
                lives(plan.transfers[tensor, q].start, death, plan.present[tensor, q], self._size[tensor], f"copy{tensor}@{q}")
        for op, activity in enumerate(plan.ops):
            if plan.at(op, q) is not None:
                lives(activity.start, activity.finish, plan.at(op, q), int(problem.scratch[op, q]), f"scratch{op}@{q}")
        persistent = np.bincount(problem.group, weights=problem.persistent, minlength=problem.n_groups).astype(np.int64) // self.unit
        held = sum(int(persistent[g]) * choice[q] for g, choice in enumerate(plan.placed) if q in choice)
        most = min(int(problem.capacity[q]) // self.unit, int(persistent.sum()) + sum(bytes_of))
        peak = model.new_int_var(0, most, f"peak@{q}")
        room = model.new_int_var(0, most, f"room@{q}")
        model.add(room == peak - held)
        if intervals:
            model.add_cumulative(intervals, bytes_of, room)
        return peak


def may_not_fit(problem):
    """Whether any plan at all could need more than some device has."""
    every = int(problem.persistent.sum()) + int(problem.size.sum()) + int(problem.scratch.max(axis=1, initial=0).sum())
    return bool(np.any(problem.capacity < every))


def _unit(problem, horizon):
    """(bytes per unit, whether that cuts): what divides all sizes, or more where the solver could not hold bytes × time."""
    sizes = np.concatenate([problem.size, problem.persistent, problem.scratch.ravel()])
    unit = int(np.gcd.reduce(sizes, initial=0)) or 1
    total = int(problem.size.sum()) * 2 + int(problem.persistent.sum()) + int(problem.scratch.max(axis=1, initial=0).sum())
    while total // unit * horizon > _LARGEST_SUM:
        unit *= 2
    return unit, bool(np.any(sizes % unit))

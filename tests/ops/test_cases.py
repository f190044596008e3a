"""Tests of the test tools: random problems use every switch of docs/simulator.md, and candidates are valid."""

import collections

import numpy as np

from . import cases, reference


def _features(case):
    """Names of what the case exercises."""
    problem, (device, priority, transfer_priority), discipline = case
    simulation = reference._Run(problem, device, priority, transfer_priority, discipline)
    result = simulation.run()
    tensors = range(problem.n_tensors)
    remote_control = any(device[p] != device[op] for op in range(problem.n_ops) for p in problem.control_inputs(op))
    shares = collections.defaultdict(set)
    for (tensor, _), buffer in simulation.buffers.items():
        shares[id(buffer)].add(tensor)
    taken_over = any(problem.view[t] < 0 for group in shares.values() for t in sorted(group)[1:])
    flags = {
        "lanes": problem.lanes.max() > 1, "forbidden": (problem.duration < 0).any(),
        "groups": problem.n_groups < problem.n_ops, "zero duration": (problem.duration == 0).any(),
        "zero size": (problem.size == 0).any(), "scratch": problem.scratch.any(),
        "persistent": problem.persistent.any(), "view": (problem.view >= 0).any(),
        "view of view": any(problem.view[t] >= 0 and problem.view[problem.view[t]] >= 0 for t in tensors),
        "normal": (problem.lifetime == 0).any(), "kept": (problem.lifetime == 1).any(),
        "persistent tensor": (problem.lifetime == 2).any(), "reuse": problem.reuse_idx.size > 0,
        "taken over": taken_over,
        "control": problem.control_idx.size > 0, "remote control": remote_control,
        "no latency": not problem.latency.any(), "latency": problem.latency.any(),
        "free bytes": not problem.ns_per_byte.any(), "slow bytes": problem.ns_per_byte.any(),
        "blocking": problem.blocking_transfers and result.transfers,
        "unlimited": (problem.capacity == cases.UNLIMITED).all(),
        "feasible": (problem.capacity < cases.UNLIMITED).any() and result.feasible, "infeasible": not result.feasible,
        "no outputs": set(range(problem.n_ops)) - set(problem.producer.tolist()),
        "three outputs": max(collections.Counter(problem.producer.tolist()).values(), default=0) == 3,
        "shuffled": any(problem.producer[t] > op for op in range(problem.n_ops) for t in problem.inputs(op)),
        "ties": len(set(priority.tolist())) < problem.n_ops, "no ties": len(set(priority.tolist())) == problem.n_ops,
        "transfer priority": transfer_priority is not None, "default transfer priority": transfer_priority is None,
        "queued transfer": any(t[3] > result.end[problem.producer[t[0]]] for t in result.transfers),
        "instant transfer": any(t[3] == t[4] for t in result.transfers),
    }
    return [name for name, flag in flags.items() if flag], list(flags)


def test_random_problems_use_every_switch():
    counts, names = collections.Counter(), []
    for seed in range(400):
        found, names = _features(cases.Case(seed, n_ops=2 + seed % 10, n_devices=1 + seed % 4))
        counts.update(found)
    assert {name: counts[name] for name in names if counts[name] < 12} == {}


def test_random_problems_and_candidates_are_valid():
    for seed in range(200):
        problem, (device, priority, transfer_priority), _ = cases.Case(seed, n_ops=seed % 12, n_devices=1 + seed % 4)
        ops = np.arange(problem.n_ops)
        assert (problem.duration[ops, device] >= 0).all()
        assert sorted(set(problem.group.tolist())) == list(range(problem.n_groups))
        for group in range(problem.n_groups):
            assert len(set(device[problem.group == group].tolist())) == 1
        for tensor in range(problem.n_tensors):
            inputs = set(problem.inputs(problem.producer[tensor]).tolist())
            reuse = problem.reuse_idx[problem.reuse_ptr[tensor]:problem.reuse_ptr[tensor + 1]].tolist()
            assert set(reuse) <= inputs and (problem.view[tensor] in inputs or problem.view[tensor] == -1)
            assert len(set(reuse)) == len(reuse)
        assert not np.isnan(priority).any() and (transfer_priority is None or not np.isnan(transfer_priority).any())


def test_case_is_determined_by_its_numbers():
    first, second = (cases.Case(5, n_ops=9, n_devices=3) for _ in range(2))
    assert repr(first) == repr(second)
    assert reference.simulate(first.problem, *first.candidate) == reference.simulate(second.problem, *second.candidate)

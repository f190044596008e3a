"""Feeds damaged input to every reader and to the entry points of the native core, and reports what is neither a result nor an error of ours.

    python benchmarks/fuzz.py --seconds 600                 # every target in turn
    python benchmarks/fuzz.py --targets simulator,brkga     # only these
    python benchmarks/fuzz.py --case simulator:123          # one case again, with its traceback

A case is determined by its target and a number. Cases run in a process of their own; one that ends it (a crash) or hangs for 2 minutes is a finding, too,
and the rest go on in a new process. Allowed are a result and a `TfRegalError`, and from the core (`tf_regal.ops`) ValueError, TypeError or
OverflowError where no array of the right type can be made, and RuntimeError where a call comes too early; numpy's warnings count as findings outside
the core. Exit code 1 where there is a finding.
"""

import argparse
import contextlib
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
import types
import warnings

import numpy as np

from tf_regal import errors, ops, storage
from tf_regal import problem as problem_lib
from tf_regal.devices import Topology
from tf_regal.graph import task_graphs
from tf_regal.plans import chrome_trace, planner
from tf_regal.plans import plan as plan_lib
from tf_regal.search import control_edges
from tf_regal.settings import Settings

HANG_S, LOADING_S = 120, 600
LOADING = "loading TensorFlow\n"
CORE_ERRORS = (ValueError, TypeError, OverflowError)  # the last two from numpy, where an array of the right type cannot be made
NASTY = [
    None, True, False, -1, 0, 1, 2, 63, 65, 255, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**61, 2**62, 2**63 - 1, 2**63, -(2**63), 10**400, 0.5, -0.0, -1.5,
    1e-300, 1e18, 1e19, 1e308, float("nan"), float("inf"), -float("inf"), "", "x", "CPU", "0", "\ud800", "\0", [], {}, [[]], [0], [None], {"": 0},
]


# Valid inputs.


def random_problem(rng, max_ops=14, max_devices=4):
    """A valid `Problem`: a random DAG with views, in-place outputs, groups and forbidden devices."""
    n, d = int(rng.integers(1, max_ops + 1)), int(rng.integers(1, max_devices + 1))
    inputs, control, producer, size, view, reuse, lifetime = [], [], [], [], [], [], []
    for op in range(n):
        m = len(producer)
        inputs.append(rng.permutation(m)[: rng.integers(0, 4)].tolist())
        control.append(rng.permutation(op)[: rng.integers(0, 3)].tolist())
        for _ in range(rng.integers(0, 3)):
            producer.append(op)
            size.append(int(rng.choice([0, 4, 8, 8, 100])))
            view.append(int(rng.choice(inputs[op])) if inputs[op] and rng.random() < 0.2 else -1)
            reuse.append(inputs[op][:2] if rng.random() < 0.3 else [])
            lifetime.append(int(rng.choice([0, 0, 0, 1, 2])))
    duration = rng.choice([0, 1, 2, 5], (n, d))
    duration[rng.random((n, d)) < 0.2] = -1
    duration[:, 0] = np.abs(duration[:, 0])
    pointers = {}
    for name, lists in (("input", inputs), ("control", control), ("reuse", reuse)):
        pointers[f"{name}_ptr"], pointers[f"{name}_idx"] = problem_lib.csr(lists)
    _, group = np.unique(rng.integers(0, max(1, n - rng.integers(0, 3)), n), return_inverse=True)
    return problem_lib.Problem(
        duration=duration, scratch=rng.choice([0, 3], (n, d)), persistent=rng.choice([0, 7], n), group=group, producer=np.array(producer, np.int32),
        size=np.array(size, np.int64), view=np.array(view, np.int32), lifetime=np.array(lifetime, np.uint8), lanes=rng.integers(1, 3, d),
        capacity=rng.choice([50, problem_lib.UNLIMITED], d), latency=rng.choice([0, 1, 4], (d, d)), ns_per_byte=rng.choice([0, 0.5, 1], (d, d)),
        blocking_transfers=bool(rng.random() < 0.3), **pointers,
    )


def valid_dnn(rng):
    n = int(rng.integers(1, 9))
    nodes = [
        {"id": 3 * i + 1, "name": f"n{i}", "supportedOnFpga": 1, "cpuLatency": 10.0, "fpgaLatency": float(rng.integers(0, 3)), "colorClass": int(i // 2),
         "isBackwardNode": int(i > n // 2), "size": 1000.0} for i in range(n)
    ]
    pairs = [(a, b) for b in range(n) for a in range(b) if rng.random() < 0.4]
    edges = [{"sourceId": 3 * a + 1, "destId": 3 * b + 1, "cost": 0.5, "size": 500.0} for a, b in pairs]
    return {"maxSizePerFPGA": 1e6, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges}


def valid_dag(rng):
    n = int(rng.integers(1, 9))
    pairs = [(a, b) for b in range(n) for a in range(b) if rng.random() < 0.4]
    names = ["p", "q", "r"]
    return {
        "name": "g",
        "task_graph": {
            "tasks": [{"name": f"t{i}", "cost": float(rng.random())} for i in range(n)],
            "dependencies": [{"source": f"t{a}", "target": f"t{b}", "size": float(rng.integers(0, 9)) / 2} for a, b in pairs],
        },
        "network": {
            "nodes": [{"name": name, "speed": float(i + 1)} for i, name in enumerate(names)],
            "edges": [{"source": a, "target": b, "speed": 10.0} for i, a in enumerate(names) for b in names[i:]],
        },
    }


def valid_plan(rng):
    document = valid_dag(rng)
    return planner.make_plan(task_graphs.read(document), task_graphs.topology(document), Settings.make({"evaluations": 2, "cache_dir": False}))


def valid_cost_graph(rng):
    lines = []
    for i in range(int(rng.integers(1, 7))):
        inputs = "".join(f" input_info {{ preceding_node: {a} preceding_port: 0 }}" for a in range(i) if rng.random() < 0.5)
        lines.append(f'node {{ name: "n{i}" id: {i} compute_cost: {i} output_info {{ size: {4 * i} alias_input_port: -1 }}{inputs} control_input: [] }}')
    return "\n".join(lines)


# Damage.


def places(value, path=()):
    """Every path into a JSON document."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in entries:
        yield from places(child, (*path, key))


def damaged_json(rng, document):
    """The document with one to three values replaced, removed, repeated or moved."""
    document = json.loads(json.dumps(document))
    for _ in range(rng.integers(1, 4)):
        paths = [path for path in places(document) if path]
        if not paths:
            break
        by_depth = {}
        for path in paths:
            by_depth.setdefault(len(path), []).append(path)
        paths = by_depth[int(rng.choice(list(by_depth)))]
        *parents, last = paths[rng.integers(len(paths))]
        target = document
        for key in parents:
            target = target[key]
        action = rng.integers(5)
        if action == 0:
            del target[last]
        elif action == 1 and isinstance(target, list):
            target.append(copy.deepcopy(target[rng.integers(len(target))]))
        elif action == 2:
            other = list(target) if isinstance(target, dict) else range(len(target))
            swap = other[rng.integers(len(other))]
            target[last], target[swap] = target[swap], target[last]
        elif action == 3 and isinstance(target[last], (int, float)):
            target[last] = target[last] + int(rng.choice([-1, 1, 3]))
        else:
            target[last] = copy.deepcopy(NASTY[rng.integers(len(NASTY))])  # else later damage would change the list of values itself
    return document


def damaged_bytes(rng, content):
    content = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at, action = int(rng.integers(len(content) + 1)), rng.integers(4)
        if action == 0:
            content[at:at] = bytes(rng.integers(0, 256, rng.integers(1, 5), np.uint8))
        elif action == 1:
            del content[at : at + int(rng.integers(1, 20))]
        elif action == 2 and at < len(content):
            content[at] ^= 1 << int(rng.integers(8))
        else:
            begin = int(rng.integers(len(content) + 1))
            content[at:at] = content[begin : begin + int(rng.integers(1, 20))]
    return bytes(content)


def damaged_text(rng, text):
    return damaged_bytes(rng, text.encode(errors="replace")).decode(errors="replace")


def damaged_array(rng, array):
    """An array that may have another length, dtype or number of axes, and values out of range."""
    array = np.array(array)
    action = rng.integers(8)
    if action == 0:
        return array[:-1] if array.ndim else array
    if action == 1:
        return np.concatenate([array, array[-1:]]) if array.size else np.zeros(1, array.dtype)
    if action == 2:
        return array.astype(rng.choice(["float64", "float32", "int8", "uint64", "bool", "complex64", "U5", "O", "datetime64[ns]"]), casting="unsafe")
    if action == 3:
        return array.reshape(-1, 1) if array.ndim == 1 else array.ravel()
    if action == 4:
        return np.asfortranarray(array) if rng.random() < 0.5 else array[::-1]
    kind = array.dtype.kind
    if array.size and kind in "iuf":
        values = [0, 1, -1, 2, 5, 64, 2**31 - 1, -(2**31), 2**31, 2**60, 2**61, 2**62, 2**63 - 1, -(2**63)]
        if kind == "f":
            values = [0.0, -1.0, 1e-300, 1e308, np.nan, np.inf, -np.inf, 1e18]
        elif kind in "iu":
            values = [v for v in values if np.iinfo(array.dtype).min <= v <= np.iinfo(array.dtype).max]
        for _ in range(rng.integers(1, 4)):
            array.flat[rng.integers(array.size)] = values[rng.integers(len(values))]
    return array


# Targets: function(rng); an exception that is not allowed is a finding.


def plan_of(graph, topology, rng):
    objective = str(rng.choice(["runtime", "peak_memory"]))
    planner.make_plan(graph, topology, Settings.make({"evaluations": int(rng.integers(1, 30)), "objective": objective, "cache_dir": False}))


def op_graph(rng):
    graph = task_graphs.read(valid_dag(rng)).to_json()
    if rng.random() < 0.7:
        problem = random_problem(rng)
        n = problem.n_ops
        graph |= {name: getattr(problem, name).tolist() for name in (
            "group", "persistent", "producer", "size", "view", "lifetime", "reuse_ptr", "reuse_idx", "input_ptr", "input_idx", "control_ptr", "control_idx")}
        graph |= {"names": [f"op{i}" for i in range(n)], "types": ["T"] * n, "devices": [""] * n, "kinds": [["CPU", "GPU"]] * n, "members": [[]] * n}
        graph |= {"orderable": [True] * n, "durations": {"*": np.abs(problem.duration[:, 0]).tolist()}, "scratch": {}}
    plan_of(task_graphs.read(damaged_json(rng, graph)), Topology.parse("1xCPU+2xT4"), rng)


def task_graph(rng):
    document = damaged_json(rng, valid_dnn(rng) if rng.random() < 0.5 else valid_dag(rng))
    topology = Topology.parse("2xT4")
    with contextlib.suppress(errors.GraphError):
        topology = task_graphs.topology(document, cpus=[0, 1, None, 70][rng.integers(4)])
    plan_of(task_graphs.read(document), topology, rng)


def json_file(rng):
    valid = [valid_dnn, valid_dag, lambda r: task_graphs.read(valid_dag(r)).to_json(), lambda r: Topology.parse("2xT4").to_json()][rng.integers(4)](rng)
    content = damaged_bytes(rng, json.dumps(valid).encode())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "m.json")
        path.write_bytes(content)
        for read in (task_graphs.load, task_graphs.load_topology, Topology.load, plan_lib.load_plan):
            with contextlib.suppress(errors.TfRegalError):
                read(path)
        path = pathlib.Path(folder, "m.json.xz")
        path.write_bytes(content)
        task_graphs.load(path)


def plan_file(rng):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "p.json")
        storage.write_checked_json(path, damaged_json(rng, valid_plan(rng).to_json()))
        if rng.random() < 0.2:
            path.write_bytes(damaged_bytes(rng, path.read_bytes()))
        plan = plan_lib.load_plan(path)
        json.dumps(chrome_trace.events(plan))
        assert set(plan.placement) == set(plan.ops) and sum(map(len, plan.order.values())) == len(plan.ops) and len(plan.control_edges) == len(plan.edges)
        plan.save(path)
        from tf_regal.cli import summary

        summary.short_text(summary.figures(plan, str(path)))
        json.dumps(summary.figures(plan, str(path)))


def topology_json(rng):
    topology = Topology.from_json(damaged_json(rng, Topology.parse(str(rng.choice(["2xT4", "paper", "1xCPU+2xA100"]))).to_json()))
    topology.arrays()
    topology.to_json()
    hash(topology)


def notation(rng):
    pieces = ["2", "A100", "-40GB", "@", "PCIe4", "+", "T4", "CPU", "paper", " ", "", "0", "64", "65", "99999999999999999999", "²", "x", ".json", "/", "\0",
              "\n", "\u0130", "-", "×", "٣", "LOCAL ", "\ud800"]
    text = "".join(pieces[i] for i in rng.integers(len(pieces), size=rng.integers(0, 9)))
    if text.strip().lower() != "local":  # which is what TensorFlow sees
        Topology.parse(text)


def as_object(problem):
    """The arrays as the core takes them, without the conversions of `Problem`."""
    return types.SimpleNamespace(**{name: getattr(problem, name) for name in problem.__dataclass_fields__})


def random_candidate(rng, problem):
    device = np.zeros(problem.n_ops, np.int32) if rng.random() < 0.5 else rng.integers(0, problem.n_devices, problem.n_groups)[problem.group].astype(np.int32)
    transfer = rng.standard_normal((problem.n_tensors, problem.n_devices)).astype(np.float32) if rng.random() < 0.6 else None
    return [device, rng.standard_normal(problem.n_ops).astype(np.float32), transfer]


def simulator(rng):
    problem = random_problem(rng)
    damaged = as_object(problem)
    fields = [name for name in problem.__dataclass_fields__ if name != "blocking_transfers"]
    for name in rng.choice(fields, rng.integers(1, 3)):
        setattr(damaged, name, damaged_array(rng, getattr(problem, name)))
    if rng.random() < 0.02:
        delattr(damaged, str(rng.choice(fields)))
    try:
        built = ops.Simulator(damaged)
    except (*CORE_ERRORS, AttributeError):
        return
    built.bounds()
    for discipline in ("priority", "fifo", "lifo"):
        with contextlib.suppress(*CORE_ERRORS):
            run = built.run(*random_candidate(rng, problem), discipline=discipline, timeline=bool(rng.integers(2)))
            assert run.makespan >= built.bounds()[0] and run.peak.min() >= 0


def candidate(rng):
    problem = random_problem(rng)
    given = random_candidate(rng, problem)
    which = int(rng.integers(3))
    given[which] = damaged_array(rng, given[which]) if given[which] is not None else NASTY[rng.integers(len(NASTY))]
    built = ops.Simulator(problem)
    discipline = "priority" if rng.random() < 0.9 else NASTY[rng.integers(len(NASTY))]
    with contextlib.suppress(*CORE_ERRORS):
        built.run(*given, discipline=discipline, timeline=True)


def damaged_seed(rng, seed):
    seed, part = list(seed), int(rng.integers(3))
    seed[part] = damaged_array(rng, seed[part]) if seed[part] is not None else NASTY[rng.integers(len(NASTY))]
    return tuple(seed)[: rng.integers(2, 4)]


def check_best(problem, best):
    hold = getattr(best, "hold", 0)
    if hold:
        order = np.argsort(-best.priority, kind="stable")
        problem = control_edges.with_edges(problem, np.stack([order[:-hold], order[hold:]], 1))
    run = ops.Simulator(problem).run(best.device, best.priority, best.transfer_priority)
    assert (run.makespan, run.peak.tolist()) == (best.makespan, best.peak.tolist())


def brkga(rng):
    problem = random_problem(rng)
    options = {"objective": str(rng.choice(["runtime", "peak_memory"])), "seed": int(rng.integers(100)), "threads": int(rng.integers(1, 4))}
    valid = {"population": 10, "elites": 3, "mutants": 2}
    wrong = {
        "objective": ["", "speed", None], "makespan_limit": [-1, 0, 2**63 - 1, 2**63, 1.5], "population": [0, 1, 2, -1, 2**31 - 1, 2**31, 1.5],
        "elites": [0, 1, 10, 11, -1, 2**31 - 1], "mutants": [0, 7, 8, 10, -1, 2**31 - 1], "rho": [-1.0, 0.0, 1.0, 2.0, float("nan"), float("inf")],
        "seed": [-1, 2**63, 2**64 - 1, 2**64], "threads": [0, -1, 1000, 2**31 - 1],
    }
    options |= valid
    for name in rng.choice(list(wrong), rng.integers(0, 3), replace=False):
        options[str(name)] = wrong[name][rng.integers(len(wrong[name]))]
    seeds = [tuple(random_candidate(rng, problem)) for _ in range(rng.integers(0, 13))]
    if seeds and rng.random() < 0.6:
        at = int(rng.integers(len(seeds)))
        seeds[at] = damaged_seed(rng, seeds[at])
    try:
        search = ops.Brkga(ops.Simulator(problem), seeds=seeds, **options)
    except CORE_ERRORS:
        return
    for _ in range(rng.integers(1, 3)):
        with contextlib.suppress(*CORE_ERRORS, RuntimeError):
            search.evolve(int(rng.choice([-1, 0, 1, 2, 9, 10, 11, 60])))
        with contextlib.suppress(RuntimeError):  # before the first evaluation
            check_best(problem, search.best)
    assert search.evaluations >= 0 and search.history.ndim == 2


def ranking(rng):
    """The heuristics of the core; what they give for valid input is an order or a placement."""
    problem = random_problem(rng)
    built = ops.Simulator(problem)
    rank = ops.upward_rank(built)
    assert rank.shape == (problem.n_ops,) and np.all(rank >= 0)
    given = damaged_array(rng, rank) if rng.random() < 0.7 else rank
    noise = None if rng.random() < 0.5 else damaged_array(rng, rng.standard_normal(problem.n_ops))
    with contextlib.suppress(*CORE_ERRORS):
        device = ops.earliest_finish_placement(built, given)
        built.run(device, np.zeros(problem.n_ops, np.float32))
    with contextlib.suppress(*CORE_ERRORS):
        device, order = ops.earliest_start_schedule(built, given)
        assert sorted(order) == list(range(problem.n_ops))
        built.run(device, np.zeros(problem.n_ops, np.float32))
    with contextlib.suppress(*CORE_ERRORS):
        assert sorted(ops.memory_greedy_order(built, given, noise)) == list(range(problem.n_ops))
    with contextlib.suppress(*CORE_ERRORS):
        assert sorted(ops.depth_first_order(built, noise)) == list(range(problem.n_ops))
    with contextlib.suppress(*CORE_ERRORS):
        ops.upward_rank(built, NASTY[rng.integers(len(NASTY))])


def local_search(rng):
    problem = random_problem(rng)
    wrong = {
        "objective": ["", None], "makespan_limit": [-1, 0, 2**63 - 1, 2**63, 1.5], "chains": [0, -1, 1, 2**31 - 1, 1.5], "memory": [0, -1, 2**31 - 1],
        "seed": [-1, 2**64 - 1, 2**64], "threads": [0, -1, 1000],
    }
    options = {
        "objective": str(rng.choice(["runtime", "peak_memory"])), "seed": int(rng.integers(100)), "threads": int(rng.integers(1, 4)),
        "hold": bool(rng.integers(2)),
    }  # fmt: skip
    for name in rng.choice(list(wrong), rng.integers(0, 2), replace=False):
        options[str(name)] = wrong[name][rng.integers(len(wrong[name]))]
    starts = [tuple(random_candidate(rng, problem)) for _ in range(rng.integers(0, 5))]
    if starts and rng.random() < 0.6:
        starts[0] = damaged_seed(rng, starts[0])
    try:
        search = ops.LocalSearch(ops.Simulator(problem), starts=starts, **options)
    except CORE_ERRORS:
        return
    with contextlib.suppress(*CORE_ERRORS, RuntimeError):
        search.improve(int(rng.choice([-1, 0, 1, 2, 9, 60])))
    with contextlib.suppress(RuntimeError):  # before the first evaluation
        check_best(problem, search.best)


def problem_arrays(rng):
    """Through the Python layer: nothing but a TfRegalError may come out."""
    problem = random_problem(rng)
    name = str(rng.choice([name for name in problem.__dataclass_fields__ if name != "blocking_transfers"]))
    from tf_regal.search import task

    task.make_simulator(problem.replace(**{name: damaged_array(rng, getattr(problem, name))}))


def cost_graph(rng):
    from tf_regal.graph import models

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "g.pbtxt")
        text = valid_cost_graph(rng)
        for _ in range(rng.integers(1, 3)):
            number = str(NASTY[rng.integers(len(NASTY))])
            text = text.replace(f": {rng.integers(6)}", f": {number}", 1) if rng.random() < 0.6 else damaged_text(rng, text)
        path.write_text(text, encoding="utf-8", errors="replace")
        plan_of(models.read(path).graph, Topology.parse("2xT4"), rng)


def graph_def(rng):
    import tensorflow as tf

    from tf_regal import _tf_private as tfp
    from tf_regal.graph import models

    graph = tf.Graph()
    with graph.as_default():
        x = tf.raw_ops.Placeholder(dtype=tf.float32, shape=[4, 4], name="x")
        y = tf.nn.relu(tf.linalg.matmul(x, tf.constant(np.eye(4, dtype=np.float32))))
        tf.concat([y, tf.tanh(x) + 1.0], 0, name="z")
    content = graph.as_graph_def().SerializeToString()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "g.pb")
        if rng.random() < 0.5:
            path.write_bytes(damaged_bytes(rng, content))
        else:
            proto = tfp.graph_pb2.GraphDef.FromString(content)
            node = proto.node[rng.integers(len(proto.node))]
            action = rng.integers(6)
            if action == 0:
                node.name = str(rng.choice(["", "x", "z", "a/b/", "^x", "x:0", "é"]))
            elif action == 1:
                node.op = str(rng.choice(["", "Nonsense", "Add", "MatMul", "While", "Placeholder"]))
            elif action == 2:
                node.device = str(rng.choice(["", "x", "/device:GPU:99", "/job:w/task:3", "CPU:0", "/device:"]))
            elif action == 3:
                node.input.append(str(rng.choice(["x", "z", "nothing", "^x", "x:7", "x:-1", "x:99999999999", "", "^", ":0"])))
            elif action == 4 and node.input:
                del node.input[0]
            elif node.attr:
                del node.attr[sorted(node.attr)[rng.integers(len(node.attr))]]
            path.write_bytes(proto.SerializeToString())
        models.read(path)


TARGETS = {target.__name__: target for target in (
    op_graph, task_graph, json_file, plan_file, topology_json, notation, simulator, candidate, brkga, ranking, local_search, problem_arrays,
    cost_graph, graph_def,
)}
CORE = ("simulator", "candidate", "brkga", "ranking", "local_search")


# Running them.


def run_case(name, number):
    """None, or the traceback of a finding."""
    rng = np.random.default_rng([list(TARGETS).index(name), number])
    try:
        with warnings.catch_warnings():
            # The core takes what numpy makes of an array: converting is numpy's, and so are its warnings.
            warnings.simplefilter("ignore" if name in CORE else "error", RuntimeWarning)
            TARGETS[name](rng)
    except errors.TfRegalError as error:
        return None if len(str(error)) > 10 else f"an error without a message: {error!r}"
    except Exception:  # whatever it is, it is what is looked for
        return traceback.format_exc()
    return None


def work(names, first, seconds, journal, cases):
    """The child: one case of every target after the other; a line before each and one per finding."""
    if set(names) & {"cost_graph", "graph_def"}:
        journal.write(LOADING)
        journal.flush()
        import tensorflow  # noqa: F401  (slow, and no part of a case)
    end = time.monotonic() + seconds
    number = first
    while time.monotonic() < end and (cases is None or number < cases):
        for name in names:
            journal.write(f"case {name}:{number}\n")
            journal.flush()
            found = run_case(name, number)
            if found is not None:
                journal.write("finding " + json.dumps([name, number, found]) + "\n")
        number += 1
    journal.write("done\n")
    journal.flush()


def supervise(names, first, seconds, cases):
    """Runs children until the time is over. Returns (cases run, {what happened: [(case, text)]})."""
    end, found, count = time.monotonic() + seconds, {}, 0
    while time.monotonic() < end and (cases is None or first < cases):
        with tempfile.NamedTemporaryFile("r", prefix="fuzz", suffix=".journal") as journal, tempfile.TemporaryFile() as log:
            arguments = ["--targets", ",".join(names), "--first", str(first), "--seconds", str(end - time.monotonic()), "--journal", journal.name]
            child = subprocess.Popen([sys.executable, __file__, *arguments, *([] if cases is None else ["--cases", str(cases)])], stderr=log)
            size, since, hung = 0, time.monotonic(), False
            while child.poll() is None:
                time.sleep(0.2)
                now = os.path.getsize(journal.name)
                if now != size:
                    size, since = now, time.monotonic()
                elif time.monotonic() - since > (HANG_S if size > len(LOADING) else LOADING_S):
                    child.kill()
                    hung = True
                    break
            child.wait()
            lines = journal.read().splitlines()
            log.seek(0)
            stderr = log.read().decode(errors="replace")
        tried = [line.removeprefix("case ") for line in lines if line.startswith("case ")]
        count += len(tried)
        for line in lines:
            if line.startswith("finding "):
                name, number, text = json.loads(line.removeprefix("finding "))
                place = [part.strip() for part in text.splitlines() if part.startswith("  File") and "fuzz.py" not in part][-1:]
                found.setdefault((name, text.splitlines()[-1].split(":")[0], *place), []).append((f"{name}:{number}", text))
        if lines and lines[-1] == "done":
            break
        last = tried[-1] if tried else f"{names[0]}:{first}"
        what = "hang" if hung else f"the process ended with {child.returncode}"
        found.setdefault((last.split(":")[0], what), []).append((last, stderr[-4000:]))
        if not tried:
            break
        first = int(last.split(":")[1]) + 1
    return count, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", default=",".join(TARGETS), help="names with commas between them (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--cases", type=int, help="number of the last case of every target (default: as many as the time allows)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", help="run one case, TARGET:NUMBER, and show what happens")
    parser.add_argument("--journal", help=argparse.SUPPRESS)
    args = parser.parse_args()
    names = args.targets.split(",")
    if unknown := sorted(set(names) - set(TARGETS)):
        parser.error(f"--targets: {', '.join(unknown)} is unknown; there are {', '.join(TARGETS)}")
    if args.case:
        name, _, number = args.case.partition(":")
        found = run_case(name, int(number))
        print(found or "no finding")
        return 1 if found else 0
    if args.journal:
        with open(args.journal, "w", encoding="utf-8") as journal:
            work(names, args.first, args.seconds, journal, args.cases)
        return 0
    count, found = supervise(names, args.first, args.seconds, args.cases)
    for key, cases in sorted(found.items(), key=str):
        print(f"{len(cases)} x {' | '.join(key)}: {', '.join(case for case, _ in cases[:3])}\n{cases[0][1]}\n")
    print(f"{count} cases, {len(found)} kinds of findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""The task graph formats: what becomes of every field, what is refused, and the public files themselves."""

import copy
import json
import math

import numpy as np
import pytest
import shared_data

from tf_regal import errors, ops
from tf_regal import problem as problem_lib
from tf_regal.cli import main
from tf_regal.graph import models, task_graphs
from tf_regal.plans import planner
from tf_regal.problem import LIFETIME_NORMAL, LIFETIME_PERSISTENT
from tf_regal.settings import Settings

DNN, DAG = "msr-fiddle__dnn-partitioning", "ANRGUSC__dagbench"
DNN_FILES = shared_data.files(DNN, "*-inputs/*/*.json")
DAG_FILES = shared_data.files(DAG, "*/*/graph.json")


def node(number, latency=1.0, **changes):
    return {
        "id": number, "name": f"n{number}", "supportedOnFpga": 1, "cpuLatency": 10 * latency, "fpgaLatency": latency, "isBackwardNode": 0,
        "colorClass": number, "size": 1000.0, **changes,
    }


def edge(source, target, cost=0.5, size=500.0):
    return {"sourceId": source, "destId": target, "cost": cost, "size": size}


def dnn(nodes, edges, **changes):
    return {"maxSizePerFPGA": 4096.0, "maxFPGAs": 2, "maxCPUs": 3, "nodes": nodes, "edges": edges, **changes}


def dag():
    return {
        "name": "small",
        "task_graph": {
            "tasks": [{"name": "a", "cost": 4.0}, {"name": "b", "cost": 2.0}, {"name": "c", "cost": 6}],
            "dependencies": [{"source": "a", "target": "b", "size": 100}, {"source": "a", "target": "c", "size": 300.0}],
        },
        "network": {
            "nodes": [{"name": "slow", "speed": 1.0}, {"name": "fast", "speed": 4.0}],
            "edges": [{"source": "slow", "target": "slow", "speed": 1e9}, {"source": "slow", "target": "fast", "speed": 100.0}],
        },
    }


def network_of(count):
    names = [f"n{i}" for i in range(count)]
    links = [{"source": a, "target": b, "speed": 1} for i, a in enumerate(names) for b in names[i:]]
    return {"nodes": [{"name": name, "speed": 1} for name in names], "edges": links}


def simulator_of(document, topology=None):
    problem, notes = problem_lib.build(task_graphs.read(document), topology or task_graphs.topology(document))
    assert notes == []
    return problem, ops.Simulator(problem)


# DNN-partitioning.


def test_nodes():
    graph = task_graphs.read(dnn([node(1, 1.5), node(7, 0.0, size=2.5), node(3, supportedOnFpga=0, cpuLatency=2.0)], [edge(1, 7), edge(7, 3)]))
    assert graph.names == ["n1", "n7", "n3"]
    assert graph.durations["accelerator"].tolist() == graph.durations["*"].tolist() == [1_500_000, 0, 2_000_000]
    assert graph.durations["CPU"].tolist() == [15_000_000, 0, 2_000_000]
    assert graph.persistent.tolist() == [1000, 3, 1000]
    assert [("GPU" in kinds, "CPU" in kinds) for kinds in graph.kinds] == [(True, True), (True, True), (False, True)]
    assert graph.group.tolist() == [0, 1, 2]


def test_outputs_are_sent_once_and_live_in_the_static_memory():
    document = dnn([node(i) for i in range(4)], [edge(0, 1), edge(0, 2), edge(0, 3, 1.0, 1000.0), edge(1, 3)])
    graph = task_graphs.read(document)
    assert list(zip(graph.producer.tolist(), graph.size.tolist(), strict=True)) == [(0, 500), (0, 1000), (1, 500)]
    assert [graph.inputs(op).tolist() for op in range(4)] == [[], [0], [0], [1, 2]]
    assert set(graph.lifetime.tolist()) == {LIFETIME_PERSISTENT}


def test_colour_classes_are_groups():
    nodes = [node(0, colorClass=9), node(1, colorClass=4), node(2, colorClass=9), node(3), node(4)]
    del nodes[3]["colorClass"], nodes[4]["colorClass"]
    assert task_graphs.read(dnn(nodes, [])).group.tolist() == [0, 1, 0, 2, 3]


def test_transfer_goes_out_to_host_memory_and_in_again():
    document = dnn([node(0), node(1)], [edge(0, 1, cost=0.25, size=1000.0)])
    _, simulator = simulator_of(document)
    none = np.zeros(2, np.float32)
    assert simulator.run(np.array([0, 0]), none).makespan == 2_000_000
    apart = simulator.run(np.array([0, 1]), none)
    assert (apart.makespan, apart.transfer_bytes) == (2_000_000 + 2 * 250_000, 1000)
    assert apart.peak.tolist() == [1000, 1000 + 1000]  # the copy counts where it goes to
    _, simulator = simulator_of(document, task_graphs.topology(document, cpus=2))
    assert simulator.run(np.array([0, 2]), none).makespan == 1_000_000 + 250_000 + 10_000_000
    assert simulator.run(np.array([2, 3]), none).makespan == 20_000_000


def test_devices():
    document = dnn([node(0), node(1)], [edge(0, 1)])
    topology = task_graphs.topology(document)
    assert (topology.kinds, topology.devices[0].memory) == (("GPU", "GPU"), 4096)
    topology = task_graphs.topology(document, cpus=None)
    assert (topology.kinds, topology.devices[4].memory) == (("GPU", "GPU", "CPU", "CPU", "CPU"), None)
    assert all(math.isinf(x) for row in task_graphs.topology(dnn([node(0)], [])).bandwidth for x in row)


def test_backward_nodes_wait_for_the_forward_ones():
    nodes = [node(0), node(1), node(2, isBackwardNode=1, colorClass=1), node(3, isBackwardNode=True, colorClass=0)]
    graph = task_graphs.read(dnn(nodes, [edge(0, 1), edge(2, 3)]))
    assert [graph.control_inputs(op).tolist() for op in range(4)] == [[], [], [1], []]
    assert any("first backward nodes" in note for note in graph.notes)
    graph = task_graphs.read(dnn(nodes, [edge(0, 1), edge(2, 3), edge(1, 2)]))
    assert graph.control_idx.size == 0 and len(graph.notes) == 1


def test_cost_counts_where_size_does_not_fit_it():
    graph = task_graphs.read(dnn([node(i) for i in range(4)], [edge(0, 1), edge(1, 2), edge(2, 3, cost=2.0, size=7.0)]))
    assert graph.size.tolist() == [500, 500, 2000]
    assert "1 edges have a cost that does not fit" in graph.notes[1]


def test_equal_names_are_told_apart():
    assert task_graphs.read(dnn([node(5, name="x"), node(6, name="x"), node(7, name="")], [])).names == ["x#5", "x#6", "node_7"]


# DAGBench.


def test_tasks_and_dependencies():
    graph = task_graphs.read(dag())
    assert graph.names == ["a", "b", "c"]
    assert graph.durations["*"].tolist() == graph.durations["speed 1"].tolist() == [4_000_000, 2_000_000, 6_000_000]
    assert graph.durations["speed 4"].tolist() == [1_000_000, 500_000, 1_500_000]
    assert (graph.producer.tolist(), graph.size.tolist(), graph.lifetime.tolist()) == ([0, 0], [100, 300], [LIFETIME_NORMAL] * 2)


@pytest.mark.parametrize("scale", [1, 0.5])  # whole sizes are bytes, others units of 10^6: times are the same
def test_network_sets_times(scale):
    document = dag()
    for entry in (*document["task_graph"]["dependencies"], document["network"]["edges"][1]):
        key = "size" if "size" in entry else "speed"
        entry[key] = entry[key] * scale + (0 if scale == 1 else 0.25 * scale * (key == "size"))
    _, simulator = simulator_of(document)
    none = np.zeros(3, np.float32)
    ms = 100.25 / 100 if scale != 1 else 1.0
    assert simulator.run(np.array([0, 0, 0]), none).makespan == 12_000_000
    assert simulator.run(np.array([1, 1, 1]), none).makespan == 3_000_000
    forth = simulator.run(np.array([0, 1, 0]), none).makespan
    back = simulator.run(np.array([1, 0, 1]), none).makespan  # the link is stated in the other direction
    assert forth == 10_000_000 and back == round(1_000_000 + ms * 1_000_000 + 2_000_000)


def test_task_graph_without_a_network():
    document = dag()
    del document["network"]
    assert set(task_graphs.read(document).durations) == {"*"}
    with pytest.raises(errors.GraphError, match=r"network\.nodes is empty or missing"):
        task_graphs.topology(document)


# What holds for both.


def test_fingerprint_is_of_the_content():
    base = dnn([node(0), node(1)], [edge(0, 1)])
    same, renamed, slower = copy.deepcopy(base), copy.deepcopy(base), copy.deepcopy(base)
    renamed["nodes"][0]["name"] = "other"
    slower["nodes"][0]["fpgaLatency"] = 2.0
    digest = task_graphs.read(base).fingerprint
    assert digest == task_graphs.read(same).fingerprint == task_graphs.read(renamed).fingerprint != task_graphs.read(slower).fingerprint


DAMAGE = {
    "dnn": [
        (("nodes",), {}, "nodes must be a list of objects"), (("nodes",), [], "nodes is empty"), (("nodes",), [3], "nodes must be a list"),
        (("edges",), None, "edges must be a list"), (("nodes", 0, "id"), 1.5, r"nodes\[0\]\.id is 1\.5; expected a whole number"),
        (("nodes", 1, "id"), 1, r"nodes\[1\]\.id is 1, which nodes\[0\] has"), (("nodes", 0, "name"), 3, r"nodes\[0\]\.name is 3"),
        (("nodes", 0, "cpuLatency"), "1", r"nodes\[0\]\.cpuLatency is '1'; expected a number"),
        (("nodes", 0, "fpgaLatency"), -1.0, r"nodes\[0\]\.fpgaLatency is -1\.0; expected a finite number ≥ 0"),
        (("nodes", 0, "fpgaLatency"), math.nan, "fpgaLatency is nan"), (("nodes", 0, "fpgaLatency"), math.inf, "fpgaLatency is inf"),
        (("nodes", 0, "fpgaLatency"), 1e300, "fpgaLatency is 1e.300: too large"), (("nodes", 0, "fpgaLatency"), True, "fpgaLatency is True"),
        (("nodes", 0, "size"), -3, r"nodes\[0\]\.size is -3"), (("nodes", 0, "size"), 10**400, "too large"),
        (("nodes", 0, "colorClass"), "red", r"nodes\[0\]\.colorClass is 'red'"),
        (("edges", 0, "sourceId"), 9, r"edges\[0\]\.sourceId is 9, which is the id of no node"),
        (("edges", 0, "destId"), None, r"edges\[0\]\.destId is None"), (("edges", 0, "destId"), 1, "cycle.*'n1'"),
        (("edges", 1), edge(2, 1), "the edges form a cycle: 2 nodes"), (("edges", 1), edge(1, 2), r"edges\[1\] goes from node 1 to node 2, as edges\[0\] does"),
        (("edges", 0, "cost"), -0.5, r"edges\[0\]\.cost is -0\.5"), (("edges", 0, "size"), "big", r"edges\[0\]\.size is 'big'"),
        (("edges", 0, "cost"), 1e13, r"edges\[0\]\.cost is 1e13|edges\[0\]\.cost is 10000000000000\.0: too large"),
    ],
    "dag": [
        (("task_graph",), 3, "task_graph.tasks must be a list"), (("task_graph", "tasks"), [], "tasks is empty"),
        (("task_graph", "tasks", 0, "cost"), -1, r"tasks\[0\]\.cost is -1"), (("task_graph", "tasks", 0, "name"), 3, r"tasks\[0\]\.name is 3; expected a name"),
        (("task_graph", "tasks", 1, "name"), "a", r"tasks\[1\]\.name is 'a', which tasks\[0\] has"),
        (("task_graph", "dependencies", 0, "source"), "z", r"dependencies\[0\]\.source is 'z', which is the name of no task"),
        (("task_graph", "dependencies", 0, "target"), "a", "cycle"), (("task_graph", "dependencies", 0, "size"), math.nan, "size is nan"),
        (("task_graph", "dependencies", 1, "target"), "b", r"dependencies\[1\] goes from 'a' to 'b', as"),
        (("network", "nodes"), 3, "network.nodes must be a list"), (("network", "nodes", 0, "speed"), 0, "expected a finite number above 0"),
        (("network", "nodes", 0, "speed"), 1e-300, "takes too long at speed 1e-300"), (("network", "nodes", 1, "name"), "slow", "which another node has"),
    ],
}


def damaged(document, path, value):
    *parents, last = path
    target = document
    for key in parents:
        target = target[key]
    target[last] = value
    return document


@pytest.mark.parametrize(
    ("kind", "path", "value", "match"), [(kind, *case) for kind, cases in DAMAGE.items() for case in cases], ids=lambda x: str(x)[:40]
)
def test_damaged_graph(kind, path, value, match):
    document = dnn([node(1), node(2)], [edge(1, 2), edge(1, 2)]) if kind == "dnn" else dag()
    if kind == "dnn" and path[:2] != ("edges", 1):
        del document["edges"][1]
    with pytest.raises(errors.GraphError, match=f"from test: .*({match})"):
        task_graphs.read(damaged(document, path, value), "from test")


@pytest.mark.parametrize(
    ("document", "match"),
    [
        (dnn([node(0)], [], maxFPGAs=65), "maxFPGAs=65"), (dnn([node(0)], [], maxFPGAs=0), "devices has 0 entries"),
        (dnn([node(0)], [], maxFPGAs="two"), "maxFPGAs is 'two'"), (dnn([node(0)], [], maxSizePerFPGA=0.5), "maxSizePerFPGA is below 1"),
        (dnn([node(0)], [], maxSizePerFPGA=-1), "maxSizePerFPGA is -1"), ({}, "describes no devices"), ([], "describes no devices"),
        (damaged(dag(), ("network", "edges"), []), "no link between 'slow' and 'fast'"),
        (damaged(dag(), ("network", "edges", 1, "source"), "x"), r"edges\[1\] names 'x'"),
        (damaged(dag(), ("network", "edges", 1, "speed"), 0), r"edges\[1\]\.speed is 0"),
        (dag() | {"network": network_of(65)}, "65 entries"),
    ],
    ids=range(11),
)
def test_damaged_devices(document, match):
    with pytest.raises(errors.GraphError, match=match):
        task_graphs.topology(document)


def test_files(tmp_path):
    (tmp_path / "g.json").write_text(json.dumps(dag()))
    assert task_graphs.load(tmp_path / "g.json").names == ["a", "b", "c"]
    assert task_graphs.load_topology(tmp_path / "g.json").name == "network of small"
    assert models.read(tmp_path / "g.json").graph.names == ["a", "b", "c"]
    for name in ("o.json", "o.json.xz"):  # exported, they are read back as any OpGraph
        task_graphs.load(tmp_path / "g.json").save(tmp_path / name)
        assert task_graphs.load(tmp_path / name).fingerprint == task_graphs.read(dag()).fingerprint
    (tmp_path / "bad.json").write_bytes(b"[" * 100_000)
    with pytest.raises(errors.GraphError, match=r"bad\.json' is not JSON"):
        task_graphs.load(tmp_path / "bad.json")


def test_command_line(tmp_path, capsys):
    (tmp_path / "g.json").write_text(json.dumps(dag()))
    task_graphs.load_topology(tmp_path / "g.json").save(tmp_path / "net.json")
    arguments = ["plan", str(tmp_path / "g.json"), "--topology", str(tmp_path / "net.json"), "--evaluations", "50", "--json", "-o", str(tmp_path / "p.json")]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["predicted"]["makespan_s"] == pytest.approx(3e-3)


# The public files. The figures that they are held against were computed from the JSON by other means.


@pytest.mark.parametrize("path", DNN_FILES)
def test_dnn_partitioning_file(path):
    folder = shared_data.folder(DNN)
    known = json.loads((folder / "REFERENCE_NUMBERS.json").read_text())[path]
    graph, topology = task_graphs.load(folder / path), task_graphs.load_topology(folder / path)
    assert (graph.n_ops, topology.n_devices, topology.devices[0].memory) == (known["nodes"], known["k"], known["mem_per_dev"])
    assert graph.durations["*"].sum() / 1e6 == pytest.approx(known["sum_accel"], abs=2e-3)
    assert graph.persistent.sum() == pytest.approx(known["total_size"], abs=graph.n_ops)
    problem, notes = problem_lib.build(graph, topology)
    bound, _ = ops.Simulator(problem).bounds()
    assert notes == []
    if "first backward nodes" in " ".join(graph.notes):
        # The file's two halves are not joined; joined, the path is at least as long, and no longer than everything in a row.
        assert known["critical_path_accel_zero_comm"] <= bound / 1e6 <= known["sum_accel"] + 1e-3
    else:
        assert bound / 1e6 == pytest.approx(max(known["critical_path_accel_zero_comm"], known["sum_accel_over_k"]), abs=1e-3)


@pytest.mark.parametrize("path", DAG_FILES)
def test_dagbench_file(path):
    folder = shared_data.folder(DAG)
    document = json.loads((folder / path).read_text())
    problem, simulator = simulator_of(document)
    network, tasks = document["network"], document["task_graph"]["tasks"]
    assert problem.n_devices == len(network["nodes"])
    run = simulator.run(np.zeros(problem.n_ops, np.int32), np.zeros(problem.n_ops, np.float32))
    assert run.makespan == pytest.approx(sum(task["cost"] for task in tasks) / network["nodes"][0]["speed"] * 1e6, abs=problem.n_ops)


@pytest.mark.slow
@pytest.mark.parametrize("source, path", [*((DNN, path) for path in DNN_FILES), *((DAG, path) for path in DAG_FILES)])
def test_public_file_is_planned(source, path):
    path = shared_data.folder(source) / path
    graph, topology = task_graphs.load(path), task_graphs.load_topology(path)
    plan = planner.make_plan(graph, topology.with_memory(None), Settings.make({"evaluations": 200, "cache_dir": False}))
    assert plan.bounds.makespan_s <= plan.predicted.makespan_s <= plan.default.makespan_s
    assert set(plan.placement) == set(graph.names)


def test_public_files_are_all_there():
    for source, found, count in ((DNN, DNN_FILES, 24), (DAG, DAG_FILES, 37)):
        shared_data.folder(source)
        assert len(found) == count

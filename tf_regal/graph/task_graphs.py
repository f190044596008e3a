"""Task graphs of scheduling benchmarks → OpGraph and Topology: the DNN-partitioning and the DAGBench JSON formats.

Both state costs and edges only, so that what comes out can be planned but not run. TensorFlow is not needed.

DNN-partitioning (Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020): nodes with a latency on an
accelerator and on a CPU core (ms), static memory (bytes) and a colour class; edges with the bytes and the cost (ms) of one way between device and
host memory; the number of accelerators, their memory, and the number of cores.

DAGBench: tasks with a cost, dependencies with a size, and a network of nodes and links with speeds; a task takes cost / speed, a transfer size / speed.
"""

import collections
import hashlib
import json
import math
import os

import numpy as np

from tf_regal import errors
from tf_regal import problem as problem_lib
from tf_regal.devices import DeviceSpec, Link, Topology
from tf_regal.devices.spec import FREE_LINK, device_name
from tf_regal.graph import opgraph

ACCELERATOR, CPU_CORE = "accelerator", "CPU"
"""Device models of the DNN-partitioning format; the second is also the catalogue's, so that "1xCPU+2xT4" finds the file's CPU latencies."""

_ANY_MODEL = "*"
_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000
_LIMIT = 1 << 61  # ns or bytes; the simulator's own limit of a whole graph
_FIGURE = 1e12  # FLOP/s and bytes/s of a device whose file gives times only; nothing is computed from them


def load(path):
    """The OpGraph in a JSON file of any format that can be read without TensorFlow: an exported OpGraph (.json, .json.xz) or one of this module.

    Raises GraphError where the file is none of them or is damaged, OSError where it cannot be read.
    """
    if os.fspath(path).endswith(".xz"):
        return opgraph.OpGraph.load(path)
    return read(_read_json(path), os.fspath(path))


def load_topology(path, cpus=0):
    """The devices that a task graph's file describes; see `topology`."""
    return topology(_read_json(path), os.fspath(path), cpus)


def read(document, origin="the document"):
    """The OpGraph in a parsed JSON document (see `load`); `origin` names it in errors.

    Costs become int64 ns, sizes int64 bytes; what had to be assumed is in `notes`.
    """
    if _is_dnn_partitioning(document):
        return _Dnn(document, origin).graph()
    if _is_dagbench(document):
        return _Dag(document, origin).graph()
    return opgraph.OpGraph.from_json(document)


def topology(document, origin="the document", cpus=0):
    """The devices of a parsed task graph.

    DNN-partitioning: its accelerators (memory as stated) and `cpus` CPU cores (None: as many as stated; unlimited memory). Between two accelerators a
    byte costs twice the stated way, since it goes out to host memory and in again; between an accelerator and a core once; between cores nothing.
    Latencies are 0. DAGBench: its network, one CPU of one lane per node, in the order of the file; a link that is stated in one direction holds in both.

    Raises GraphError where the document is neither, or describes no valid set of devices.
    """
    if _is_dnn_partitioning(document):
        return _Dnn(document, origin).topology(cpus)
    if _is_dagbench(document):
        return _Dag(document, origin).topology()
    raise errors.GraphError(f"{origin} describes no devices: expected a DNN-partitioning ('nodes', 'edges') or DAGBench ('task_graph', 'network') document")


def _is_dnn_partitioning(document):
    return isinstance(document, dict) and "nodes" in document and "edges" in document


def _is_dagbench(document):
    return isinstance(document, dict) and "task_graph" in document


def _read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested too deeply
        raise errors.GraphError(f"path={os.fspath(path)!r} is not JSON: {error}.") from error


class _Reader:
    """What the two formats share: checked values, and the columns of an OpGraph from tasks and edges."""

    def __init__(self, document, origin):
        self.document, self.origin = document, origin

    def fail(self, text):
        raise errors.GraphError(f"{self.origin}: {text}")

    def entries(self, parent, key, where):
        """The list of objects parent[key]."""
        found = parent.get(key) if isinstance(parent, dict) else None
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            self.fail(f"{where}{key} must be a list of objects")
        return found

    def number(self, entry, key, where, scale=1, positive=False):
        """entry[key] as a finite float ≥ 0 (> 0 where `positive`), times scale below 2^61."""
        value = entry.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(f"{where}.{key} is {value!r}; expected a number")
        if not 0 <= value < math.inf or (positive and value == 0):
            self.fail(f"{where}.{key} is {value!r}; expected a finite number {'above 0' if positive else '≥ 0'}")
        if value > _LIMIT / scale:
            self.fail(f"{where}.{key} is {value!r}: too large; the whole graph may take 2^61 ns and bytes")
        return float(value) * scale

    def key_of(self, entry, key, where, types):
        value = entry.get(key)
        if isinstance(value, bool) or not isinstance(value, types) or value == "":
            self.fail(f"{where}.{key} is {value!r}; expected {'a whole number' if types is int else 'a name'}")
        return value

    def check_acyclic(self, names, edges):
        """edges: (source, target) pairs of indices."""
        pending, successors = [0] * len(names), [[] for _ in names]
        for source, target in edges:
            pending[target] += 1
            successors[source].append(target)
        ready = [i for i, count in enumerate(pending) if count == 0]
        for op in ready:  # grows while it is walked over
            for successor in successors[op]:
                pending[successor] -= 1
                if pending[successor] == 0:
                    ready.append(successor)
        if len(ready) < len(names):
            stuck = [names[i] for i, count in enumerate(pending) if count > 0]
            self.fail(f"the edges form a cycle: {len(stuck)} nodes wait for each other, such as {', '.join(map(repr, stuck[:3]))}")

    def columns(self, names, tensors, control, **given):
        """An OpGraph. tensors: (producer, bytes, lifetime, consumers) each; control: (source, target) pairs."""
        n, m = len(names), len(tensors)
        inputs, predecessors = [[] for _ in names], [[] for _ in names]
        for tensor, (_, _, _, consumers) in enumerate(tensors):
            for op in consumers:
                inputs[op].append(tensor)
        for source, target in control:
            predecessors[target].append(source)
        input_ptr, input_idx = problem_lib.csr(inputs)
        control_ptr, control_idx = problem_lib.csr(predecessors)
        columns = {
            "group": np.arange(n), "persistent": np.zeros(n, np.int64), "producer": np.array([t[0] for t in tensors], np.int32),
            "size": np.array([t[1] for t in tensors], np.int64), "lifetime": np.array([t[2] for t in tensors], np.uint8),
            "input_ptr": input_ptr, "input_idx": input_idx, "control_ptr": control_ptr, "control_idx": control_idx, **given,
        }
        digest = hashlib.sha256()
        for key in sorted(columns):
            value = columns[key]
            if key == "durations":
                value = sorted((model, array.tolist()) for model, array in value.items())
            if key != "notes":
                digest.update(repr((key, value.tolist() if isinstance(value, np.ndarray) else value)).encode())
        return opgraph.OpGraph(
            names=names, types=["Task"] * n, devices=[""] * n, members=[[name] for name in names], orderable=np.ones(n, bool), view=np.full(m, -1),
            reuse_ptr=np.zeros(m + 1), reuse_idx=np.zeros(0), fingerprint=digest.hexdigest(),
            **{"kinds": [["CPU", "GPU", "TPU"] for _ in names], **columns},
        )

    def checked_topology(self, name, devices, link):
        try:
            return Topology.from_links(name, devices, link)
        except errors.TopologyError as error:
            raise errors.GraphError(f"{self.origin}: its devices cannot be used: {error}") from error


class _Dnn(_Reader):
    """The DNN-partitioning format."""

    def graph(self):
        nodes = self.entries(self.document, "nodes", "")
        if not nodes:
            self.fail("nodes is empty: there is nothing to plan")
        index, names = {}, []
        for i, node in enumerate(nodes):
            number = self.key_of(node, "id", f"nodes[{i}]", int)
            if number in index:
                self.fail(f"nodes[{i}].id is {number}, which nodes[{index[number]}] has, too")
            index[number] = i
            name = node.get("name", "")
            if not isinstance(name, str):
                self.fail(f"nodes[{i}].name is {name!r}; expected a name")
            names.append(name or f"node_{number}")
        shared = {name for name, count in collections.Counter(names).items() if count > 1}
        names = [f"{name}#{node['id']}" if name in shared else name for name, node in zip(names, nodes, strict=True)]
        tensors, edges, notes = self._tensors(index)
        backward = [bool(node.get("isBackwardNode", False)) for node in nodes]
        control = _loss_edges(backward, edges)
        if control:
            notes.append("no edge leads from the forward to the backward nodes: the first backward nodes were made to wait for the last forward ones")
        self.check_acyclic(names, [*edges, *control])
        accelerator, core, kinds, size, colours, group = [], [], [], [], {}, []
        for i, node in enumerate(nodes):
            where = f"nodes[{i}]"
            supported = bool(node.get("supportedOnFpga", True))
            kinds.append(["CPU", "GPU", "TPU"] if supported else ["CPU"])
            core.append(round(self.number(node, "cpuLatency", where, _NS_PER_MS)))
            accelerator.append(round(self.number(node, "fpgaLatency", where, _NS_PER_MS)) if supported else core[-1])
            size.append(math.ceil(self.number(node, "size", where)))
            colour = node.get("colorClass")
            key = ("own", i) if colour is None else ("class", self.key_of(node, "colorClass", where, int))
            group.append(colours.setdefault(key, len(colours)))
        return self.columns(
            names, tensors, control, group=np.array(group), kinds=kinds, persistent=np.array(size, np.int64),
            durations={
                _ANY_MODEL: np.array(accelerator, np.int64), ACCELERATOR: np.array(accelerator, np.int64), CPU_CORE: np.array(core, np.int64),
            },
            notes=[f"costs are the file's own: CPU latencies for devices of model {CPU_CORE!r}, accelerator latencies for all others", *notes],
        )

    def _tensors(self, index):
        """Tensors (see `columns`), (source, target) pairs, notes. A node's static memory holds its outputs; only copies elsewhere need more."""
        rate = self._bytes_per_ms()
        by_output, edges, odd = {}, {}, 0
        for i, edge in enumerate(self.entries(self.document, "edges", "")):
            where = f"edges[{i}]"
            ends = []
            for key in ("sourceId", "destId"):
                number = self.key_of(edge, key, where, int)
                if number not in index:
                    self.fail(f"{where}.{key} is {number}, which is the id of no node")
                ends.append(index[number])
            if tuple(ends) in edges:
                self.fail(f"{where} goes from node {edge['sourceId']} to node {edge['destId']}, as {edges[tuple(ends)]} does")
            edges[tuple(ends)] = where
            cost, size = self.number(edge, "cost", where, _NS_PER_MS) / _NS_PER_MS, self.number(edge, "size", where)
            if not math.isclose(cost * rate, size, rel_tol=1e-5):
                odd, size = odd + 1, cost * rate  # the cost is what was planned with
                if size > _LIMIT:
                    self.fail(f"{where}.cost is {cost!r}: too large; the whole graph may take 2^61 ns and bytes")
            by_output.setdefault((ends[0], math.ceil(size)), []).append(ends[1])
        notes = [f"{odd} edges have a cost that does not fit their size: the cost counts, at the other edges' {rate:.6g} bytes per ms"] if odd else []
        return [(source, size, problem_lib.LIFETIME_PERSISTENT, targets) for (source, size), targets in by_output.items()], list(edges), notes

    def _bytes_per_ms(self):
        """The ratio of size to cost that most edges have; 0 where transfers cost nothing."""
        ratios = collections.Counter()
        for i, edge in enumerate(self.entries(self.document, "edges", "")):
            cost, size = self.number(edge, "cost", f"edges[{i}]"), self.number(edge, "size", f"edges[{i}]")
            if cost > 0 and 0 < size / cost < math.inf:
                ratios[float(f"{size / cost:.6g}")] += 1
        rounded = max(ratios, key=lambda ratio: (ratios[ratio], ratio), default=0.0)
        for edge in self.document["edges"]:
            if edge["cost"] > 0 and edge["size"] > 0 and math.isclose(edge["size"] / edge["cost"], rounded, rel_tol=1e-5):
                return edge["size"] / edge["cost"]
        return rounded

    def topology(self, cpus=0):
        count = self.key_of(self.document, "maxFPGAs", "document", int)
        if cpus is None:
            cpus = self.key_of(self.document, "maxCPUs", "document", int)
        if not (0 <= count <= 64 and 0 <= cpus <= 64):
            self.fail(f"maxFPGAs={count!r} and {cpus!r} CPUs: give 0 to 64 of each")
        memory = int(self.number(self.document, "maxSizePerFPGA", "document"))
        if count and memory < 1:
            self.fail("document.maxSizePerFPGA is below 1 byte")
        rate = self._bytes_per_ms()
        one_way = Link(0, rate * 1000) if rate else FREE_LINK
        two_ways = Link(0, rate * 500) if rate else FREE_LINK
        devices = [DeviceSpec(device_name("GPU", i), ACCELERATOR, "GPU", _FIGURE, _FIGURE, memory=memory) for i in range(count)]
        devices += [DeviceSpec(device_name("CPU", i), CPU_CORE, "CPU", _FIGURE, _FIGURE) for i in range(cpus)]

        def link(source, target):
            cores = (source >= count) + (target >= count)
            return (two_ways, one_way, FREE_LINK)[cores]

        return self.checked_topology(f"{count} accelerators" + (f" + {cpus} CPU cores" if cpus else ""), devices, link)


def _loss_edges(backward, edges):
    """(last forward node, first backward node) pairs where the graph has both and nothing leads from the one to the other."""
    if not any(backward) or all(backward) or any(not backward[source] and backward[target] for source, target in edges):
        return []
    sources, targets = {source for source, _ in edges}, {target for _, target in edges}
    last = [i for i, is_backward in enumerate(backward) if not is_backward and i not in sources]
    first = [i for i, is_backward in enumerate(backward) if is_backward and i not in targets]
    return [(a, b) for a in last for b in first]


class _Dag(_Reader):
    """The DAGBench format. Every dependency is a tensor of its own."""

    def graph(self):
        part = self.document["task_graph"]
        tasks = self.entries(part, "tasks", "task_graph.")
        if not tasks:
            self.fail("task_graph.tasks is empty: there is nothing to plan")
        index, costs = {}, []
        for i, task in enumerate(tasks):
            where = f"task_graph.tasks[{i}]"
            name = self.key_of(task, "name", where, str)
            if name in index:
                self.fail(f"{where}.name is {name!r}, which tasks[{index[name]}] has, too")
            index[name] = i
            costs.append(self.number(task, "cost", where, _NS_PER_MS))
        unit, edges, tensors = self._unit(), {}, []
        for i, dependency in enumerate(self.entries(part, "dependencies", "task_graph.")):
            where = f"task_graph.dependencies[{i}]"
            ends = []
            for key in ("source", "target"):
                name = self.key_of(dependency, key, where, str)
                if name not in index:
                    self.fail(f"{where}.{key} is {name!r}, which is the name of no task")
                ends.append(index[name])
            if tuple(ends) in edges:
                self.fail(f"{where} goes from {dependency['source']!r} to {dependency['target']!r}, as {edges[tuple(ends)]} does")
            edges[tuple(ends)] = where
            size = round(self.number(dependency, "size", where, unit))
            tensors.append((ends[0], size, problem_lib.LIFETIME_NORMAL, [ends[1]]))
        names = list(index)
        self.check_acyclic(names, list(edges))
        durations = {_ANY_MODEL: _int64(costs)}
        for speed in sorted(set(self._nodes().values())):
            slowest = max(costs) / speed
            if slowest > _LIMIT:
                self.fail(f"a task of cost {max(costs) / _NS_PER_MS!r} takes too long at speed {speed!r}; the whole graph may take 2^61 ns")
            durations[_speed_model(speed)] = _int64([cost / speed for cost in costs])
        return self.columns(
            names, tensors, [], durations=durations,
            notes=[f"a unit of cost is taken as 1 ms at speed 1, a unit of size as {unit} byte{'s' if unit > 1 else ''}"],
        )

    def _unit(self):
        """Bytes per unit of size: 1 where all sizes are whole, else 10^6, so that rounding changes nothing that matters."""
        part = self.document["task_graph"]
        sizes = [self.number(d, "size", f"task_graph.dependencies[{i}]") for i, d in enumerate(self.entries(part, "dependencies", "task_graph."))]
        return 1 if all(size.is_integer() for size in sizes) else 10**6

    def _nodes(self):
        """{name: speed} of the network; {} where the file has none."""
        network = self.document.get("network")
        if network is None:
            return {}
        found = {}
        for i, node in enumerate(self.entries(network, "nodes", "network.")):
            where = f"network.nodes[{i}]"
            name = self.key_of(node, "name", where, str)
            if name in found:
                self.fail(f"{where}.name is {name!r}, which another node has, too")
            found[name] = self.number(node, "speed", where, positive=True)
        return found

    def topology(self):
        nodes, unit, speed = self._nodes(), self._unit(), {}
        if not nodes:
            self.fail("network.nodes is empty or missing: there are no devices")
        for i, edge in enumerate(self.entries(self.document["network"], "edges", "network.")):
            where = f"network.edges[{i}]"
            ends = tuple(self.key_of(edge, key, where, str) for key in ("source", "target"))
            for name in ends:
                if name not in nodes:
                    self.fail(f"{where} names {name!r}, which is the name of no node")
            speed[ends] = self.number(edge, "speed", where, positive=True)
        names = list(nodes)
        devices = [
            DeviceSpec(device_name("CPU", i), _speed_model(nodes[name]), "CPU", _FIGURE, _FIGURE) for i, name in enumerate(names)
        ]

        def link(source, target):
            ends = names[source], names[target]
            found = speed.get(ends, speed.get(ends[::-1]))
            if found is None:
                self.fail(f"network.edges has no link between {ends[0]!r} and {ends[1]!r}; every pair of devices needs one")
            return Link(0, found * unit * 1000)

        name = self.document.get("name")
        return self.checked_topology(f"network of {name}" if isinstance(name, str) and name else "network", devices, link)


def _speed_model(speed):
    return f"speed {speed:.12g}"


def _int64(values):
    return np.array([round(value) for value in values], np.int64)

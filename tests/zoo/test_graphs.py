"""The stored graphs: what the set promises, read without TensorFlow."""

import hashlib
import json
import statistics
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import zoo
from tf_regal import errors, ops, problem
from tf_regal.devices import Topology

from . import conftest

# The split is fixed: results that were reported on one cannot be compared with those on another.
SPLIT_SHA256 = "aea3b76df543400b10875e69d649672bfa6c15c182d5109ee9f9a945d60ce3b4"

WIDE = {"inception", "dlrm", "multitask", "unet", "detection"}
KINDS_IN_TEST = {"encdec", "vit", "lstm", "seq2seq", "moe", "gan", *WIDE}


@pytest.fixture(scope="module")
def graphs():
    """{name: OpGraph}"""
    return {name: zoo.load(name) for name in zoo.names()}


def structure(graph):
    """Digest of all but sizes and costs."""
    digest = hashlib.sha256(" ".join(graph.types).encode())
    for array in (graph.producer, graph.input_ptr, graph.input_idx, graph.control_ptr, graph.control_idx, graph.view, graph.lifetime, graph.group):
        digest.update(array.tobytes())
    return digest.hexdigest()


def test_split_is_as_it_was():
    assert hashlib.sha256(zoo.SPLIT.read_bytes()).hexdigest() == SPLIT_SHA256


def test_every_model_is_in_one_split():
    table = zoo.split_table()
    assert set(json.loads(zoo.SPLIT.read_text(encoding="utf-8"))) == set(zoo.SPLITS)
    families = [family for families in table.values() for family in families]
    models = [model for families in table.values() for listed in families.values() for model in listed]
    assert len(families) == len(set(families))
    assert len(models) == len(set(models))


def test_every_model_is_stored_in_both_modes_and_two_batch_sizes():
    found = zoo.topologies()
    wanted = {f"{model}-{mode}" for families in zoo.split_table().values() for listed in families.values() for model in listed for mode in zoo.MODES}
    assert set(found) == wanted
    assert {topology: len(names) for topology, names in found.items() if len(names) < 2} == {}


def test_numbers_of_topologies():
    assert len(zoo.topologies()) >= 80
    assert len(zoo.topologies("test")) >= 25
    assert len(zoo.topologies("validation")) >= 10
    assert sum(len(zoo.topologies(split)) for split in zoo.SPLITS) == len(zoo.topologies())


def test_kinds_of_the_test_split():
    assert set(zoo.split_table()["test"]) >= KINDS_IN_TEST


def test_test_split_is_affordable(graphs):
    counts = [graphs[name].n_ops for name in zoo.names("test")]
    assert statistics.median(counts) <= 900
    assert max(counts) <= 3500


def test_stored_size():
    assert sum(p.stat().st_size for p in zoo.GRAPHS.iterdir()) <= 15e6


def test_topologies_differ_in_more_than_sizes(graphs):
    seen = {}
    for name, graph in graphs.items():
        seen.setdefault(structure(graph), set()).add(zoo.info(name).topology)
    assert [names for names in seen.values() if len(names) > 1] == []
    assert len({graph.fingerprint for graph in graphs.values()}) == len(graphs)


def test_training_steps_update_variables(graphs):
    for name, graph in graphs.items():
        updates = sum(t.startswith(("ResourceApply", "Assign")) for t in graph.types)
        assert (updates > 0) == (zoo.info(name).mode == "training"), name


def test_nothing_was_assumed(graphs):
    """Every shape is known: no figure depends on a default."""
    assert {name: graph.bindings for name, graph in graphs.items() if graph.bindings} == {}


@pytest.mark.parametrize("topology", zoo.TOPOLOGIES)
def test_simulator_takes_every_graph(graphs, topology):
    topology = Topology.parse(topology)
    for name, graph in graphs.items():
        arrays, _ = problem.build(graph, topology)
        assert (arrays.duration.max(axis=1) > 0).mean() > 0.1, name
        assert arrays.size.min() >= 0
        makespan, peak = ops.Simulator(arrays).bounds()
        assert makespan > 0, name
        assert peak > 0, name


def test_batch_sizes_change_sizes(graphs):
    for topology, names in zoo.topologies().items():
        small, large = (graphs[name] for name in names[:2])
        assert small.size.sum() < large.size.sum(), topology
        assert small.durations["CPU"].sum() < large.durations["CPU"].sum(), topology


def test_names_are_short_and_unique(graphs):
    for graph in graphs.values():
        assert len(set(graph.names)) == graph.n_ops
        assert all(name.rpartition("_")[0] == op_type for name, op_type in zip(graph.names, graph.types, strict=True))


def test_info():
    found = zoo.info("vgg16-training-b16")
    assert (found.topology, found.model, found.mode, found.batch, found.family, found.split) == ("vgg16-training", "vgg16", "training", 16, "vgg", "train")


@pytest.mark.parametrize("name", ["vgg16", "vgg16-training", "vgg99-training-b16", "vgg16-testing-b16", "vgg16-training-bx", ""])
def test_name_that_is_none(name):
    with pytest.raises(errors.InvalidArgumentError, match=r"name='.*' is no graph of the zoo; expected MODEL-MODE-bBATCH"):
        zoo.load(name)


def test_graph_that_is_not_built():
    with pytest.raises(errors.InvalidArgumentError, match=r"name='vgg16-training-b3' is not stored; build it with `python -m benchmarks.zoo build vgg16`"):
        zoo.load("vgg16-training-b3")


def test_unknown_split():
    with pytest.raises(errors.InvalidArgumentError, match=r"split='dev' is not known; expected one of 'train', 'validation', 'test', or None"):
        zoo.names("dev")


def test_loading_and_listing_need_no_tensorflow(tmp_path):
    from benchmarks.zoo import listing, synthetic  # noqa: F401, so that Bazel brings what the program below imports

    code = f"""
import sys, types
package = types.ModuleType("benchmarks"); package.__path__ = [{str(conftest.BENCHMARKS)!r}]; sys.modules["benchmarks"] = package
from benchmarks import zoo
from benchmarks.zoo import listing, synthetic
from benchmarks.zoo.__main__ import main
assert zoo.load(zoo.names("test")[0]).n_ops > 10
assert main(["list", "--split", "validation"]) == 0
assert main(["list", "--split", "validation", "--markdown"]) == 0
print(sorted({{"tensorflow", "keras", "tf_keras"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "[]"
    assert sum(line.startswith(tuple(zoo.names("validation"))) for line in lines) == len(zoo.names("validation"))
    assert any(line.startswith("validation: ") and f"{len(zoo.names('validation'))} graphs" in line for line in lines)
    assert sum(line.startswith("| ") and ("-inference |" in line or "-training |" in line) for line in lines) == len(zoo.topologies("validation"))


def test_costs_of_a_faster_device_are_lower(graphs):
    for name, graph in graphs.items():
        slow, fast = (int(np.sum(graph.durations[model])) for model in ("V100-16GB", "A100-40GB"))
        assert fast < slow, name
        assert int(np.sum(graph.durations["paper"])) < fast, name  # no launch overhead

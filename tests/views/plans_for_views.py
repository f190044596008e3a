"""Plans of a zoo graph, made without TensorFlow, for the tests of what people look at."""

import dataclasses
import functools
import pathlib

from tf_regal.devices import Topology
from tf_regal.graph.opgraph import OpGraph
from tf_regal.plans import planner
from tf_regal.settings import Settings

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTILE = ('<img src=x onerror="document.title=1">', "</script><script>document.title=2</script>", "javascript:alert(1)", "&lt;b&gt;", "a'b\"c`${1}")
"""Op names that must stay text wherever they are shown."""


@functools.cache
def graph(name="siamese-conv-training-b16", hostile=False):
    found = OpGraph.load(ROOT / "benchmarks" / "zoo" / "graphs" / f"{name}.json.xz")
    outputs = [f"float32[{i}, 3]" for i in range(found.n_ops)]
    names = [*HOSTILE, *found.names[len(HOSTILE):]] if hostile else found.names
    return dataclasses.replace(found, outputs=outputs, names=names)


@functools.cache
def plan_of(topology="2xA100-40GB", hostile=False, **settings):
    chosen = Settings.make({"topology": topology, "evaluations": 300, **settings})
    return planner.make_plan(graph(hostile=hostile), Topology.parse(topology), chosen)

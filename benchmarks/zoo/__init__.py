"""The benchmark set: real TensorFlow graphs with costs, stored, and split by family into train, validation and test.

`names`, `load` and `info` read what is stored and need no TensorFlow; `python -m benchmarks.zoo build` makes it. See README.md.
"""

import dataclasses
import functools
import json
import pathlib

from tf_regal import errors
from tf_regal.graph import OpGraph

GRAPHS = pathlib.Path(__file__).parent / "graphs"
SPLIT = pathlib.Path(__file__).parent / "split.json"
SPLITS = ("train", "validation", "test")
MODES = ("inference", "training")
TOPOLOGIES = ("2xA100-40GB", "4xV100-16GB", "2xCPU", "paper")
"""Device topologies for which the stored graphs have costs."""

_SUFFIX = ".json.xz"

__all__ = ["GRAPHS", "MODES", "SPLIT", "SPLITS", "TOPOLOGIES", "Info", "info", "load", "names", "path", "split_table", "topologies"]


@dataclasses.dataclass(frozen=True)
class Info:
    """What a graph is. topology: model and mode, "resnet50-training"; its batch sizes are variants of it. batch: examples per step."""

    name: str
    topology: str
    model: str
    mode: str
    batch: int
    family: str
    split: str


@functools.cache
def split_table():
    """{split: {family: [models]}}, as in split.json."""
    table = json.loads(SPLIT.read_text(encoding="utf-8"))
    return {split: table[split] for split in SPLITS}


@functools.cache
def _home():
    """{model: (family, split)}."""
    return {model: (family, split) for split, families in split_table().items() for family, models in families.items() for model in models}


def info(name):
    """The `Info` of a graph, from its name. Raises InvalidArgumentError where it is not one of the set."""
    model, _, rest = name.rpartition("-b")
    model, _, mode = model.rpartition("-")
    if model not in _home() or mode not in MODES or not rest.isdigit():
        raise errors.InvalidArgumentError(f"name={name!r} is no graph of the zoo; expected MODEL-MODE-bBATCH, one of benchmarks.zoo.names()")
    family, split = _home()[model]
    return Info(name, f"{model}-{mode}", model, mode, int(rest), family, split)


def names(split=None):
    """Names of the stored graphs of a split (all without one): sorted by family, model, mode and batch size.

    Raises InvalidArgumentError where there is no such split.
    """
    if split is not None and split not in SPLITS:
        raise errors.InvalidArgumentError(f"split={split!r} is not known; expected one of {', '.join(map(repr, SPLITS))}, or None for all")
    found = [info(p.name.removesuffix(_SUFFIX)) for p in GRAPHS.glob("*" + _SUFFIX)]
    found.sort(key=lambda i: (SPLITS.index(i.split), i.family, i.model, i.mode, i.batch))
    return [i.name for i in found if split in (None, i.split)]


def topologies(split=None):
    """{topology: [names of its graphs, by batch size]}; see `names`."""
    grouped = {}
    for name in names(split):
        grouped.setdefault(info(name).topology, []).append(name)
    return grouped


def path(name):
    """Where the graph is stored, a pathlib.Path. Raises InvalidArgumentError where `name` is none."""
    return GRAPHS / (info(name).name + _SUFFIX)


def load(name):
    """The graph with its costs, an `OpGraph`.

    Op names are made up (type and number within the type). Raises InvalidArgumentError where there is no such graph, or it is not built yet.
    """
    where = path(name)
    if not where.is_file():
        raise errors.InvalidArgumentError(f"name={name!r} is not stored; build it with `python -m benchmarks.zoo build {info(name).model}`")
    return OpGraph.load(where)

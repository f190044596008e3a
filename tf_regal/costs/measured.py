"""Measured costs: what ops of the same kind took when they ran, and for those that never ran TensorFlow's cost model, put right by those that did."""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib

import numpy as np
from absl import logging

from tf_regal import errors, storage
from tf_regal.graph import semantics, signatures

_KIND, _SCHEMA = "tf_regal.Costs", 1
_MIN_RATIO, _MAX_RATIO = 1 / 50, 50.0  # of measured to modelled time: beyond that it is the sample that is odd


@dataclasses.dataclass(frozen=True)
class OpCost:
    """op_type; ns: the median of the durations seen; runs: how many; scratch: bytes that the kernel allocates for itself while it runs; modelled: ns by the
    analytic model."""

    op_type: str
    ns: int
    runs: int
    scratch: int
    modelled: int


class Costs:
    """{device model: {kind of op: OpCost}}; a kind is an op type with its attributes and the shapes of its inputs and outputs (`graph.signatures`)."""

    def __init__(self, entries=None):
        self.entries = entries if entries is not None else {}

    def __len__(self):
        return sum(len(kinds) for kinds in self.entries.values())

    @property
    def digest(self):
        """Of the content: plans made with other costs are other plans."""
        return hashlib.sha256(json.dumps(self._to_json(), sort_keys=True).encode()).hexdigest()[:16]

    def merge(self, other):
        """Takes over what `other` has; where both have a kind, the newer, `other`'s."""
        for model, kinds in other.entries.items():
            self.entries.setdefault(model, {}).update(kinds)

    def scaled(self, factor):
        """Costs with all durations times `factor`."""
        return Costs(
            {m: {kind: dataclasses.replace(cost, ns=round(cost.ns * factor)) for kind, cost in kinds.items()} for m, kinds in self.entries.items()}
        )

    def save(self, path):
        """Writes a cost file, atomically."""
        storage.write_checked_json(path, self._to_json())

    @classmethod
    def load(cls, path):
        """Raises CostFileError where there is no such file or it is none of costs."""
        path = os.fspath(path)
        try:
            stat = os.stat(path)
        except OSError as error:
            raise errors.CostFileError(f"costs={path!r} cannot be read: {error}. Make one with tf_regal.profile(function, …, costs={path!r}).") from error
        # Every plan asks for it several times, for its costs and for what it is called in the cache.
        entries = _entries(path, stat.st_mtime_ns, stat.st_size, stat.st_ino)
        return cls({model: dict(kinds) for model, kinds in entries.items()})

    def _to_json(self):
        costs = {model: {kind: list(dataclasses.astuple(cost)) for kind, cost in kinds.items()} for model, kinds in self.entries.items()}
        return {"schema": _SCHEMA, "kind": _KIND, "costs": costs}


@functools.lru_cache(maxsize=4)
def _entries(path, *_stamp):
    """`Costs.entries` in a file; _stamp: what changes when the file does."""
    try:
        data = storage.read_checked_json(path)
        if data.get("kind") != _KIND or data.get("schema") != _SCHEMA:
            raise errors.PlanFileError(f"path={path!r} has kind {data.get('kind')!r}, schema {data.get('schema')!r}")
        return {model: {kind: OpCost(str(t), *map(int, figures)) for kind, (t, *figures) in kinds.items()} for model, kinds in data["costs"].items()}
    except (errors.PlanFileError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise errors.CostFileError(
            f"costs={path!r} cannot be read as a cost file: {error} Make one with tf_regal.profile(function, …, costs={path!r})."
        ) from error


def default_path(cache_dir=None):
    """Where costs="measured" keeps what it has measured; None without a cache."""
    directory = storage.cache_directory(cache_dir)
    return None if directory is None else pathlib.Path(directory) / "costs.json"


def kept(cache_dir=None):
    """What costs="measured" has measured so far."""
    path = default_path(cache_dir)
    if path is None or not path.exists():
        return Costs()
    try:
        return Costs.load(path)
    except errors.CostFileError as error:
        logging.warning("tf_regal: costs are measured anew: %s", error)
        return Costs()


def keep(costs, cache_dir=None):
    """Adds to what `kept` gives; a directory that cannot be written is one warning."""
    path = default_path(cache_dir)
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        known = kept(cache_dir)
        known.merge(costs)
        known.save(path)
    except OSError as error:
        logging.warning("tf_regal: measured costs could not be kept in %s (%s); set cache_dir to a directory that can be written", path.parent, error)


def coverage(capture, topology, costs):
    """The share of the modelled time for which there are measured costs, on the device of which least is known."""
    kinds, shares = signatures.of_ops(capture), []
    for spec in topology.devices:
        modelled, known = capture.graph.durations[spec.model], costs.entries.get(spec.model, {})
        seen = np.array([kind in known for kind in kinds], bool)
        shares.append(modelled[seen].sum() / modelled.sum() if modelled.sum() else 1.0)
    return float(min(shares))


def from_profile(capture, samples, models):
    """Costs of what a profile saw of a function.

    Args:
        capture: of the function, with modelled durations.
        samples: {process: {op name: OpSamples}} (`profile.Profiler.stop`).
        models: {process: device model of its CPU}.

    Ops on other devices than CPUs are not taken: their host thread only launches them.
    """
    graph = capture.graph
    kinds = signatures.of_ops(capture)
    outputs = np.zeros(graph.n_ops, np.int64)
    np.add.at(outputs, graph.producer, graph.size)
    costs = Costs()
    for process, model in models.items():
        seen = samples.get(process, {})
        gathered = {}
        steps = _steps(graph, seen)
        for op, members in enumerate(graph.members):
            runs = [seen[name] for name in members if name in seen and seen[name].durations]
            if not runs:
                continue
            if graph.types[op] == "Region":  # its nodes run as often as the loop goes round
                values = [sum(sum(r.durations) for r in runs) / steps]
                scratch = 0
            else:
                values = runs[0].durations
                count = len(values)
                scratch = runs[0].temporary // count + max(0, runs[0].output // count - int(outputs[op]))
            entry = gathered.setdefault(kinds[op], (graph.types[op], [], [], int(graph.durations[model][op])))
            entry[1].extend(values)
            entry[2].append(scratch)
        costs.entries.setdefault(model, {}).update(
            {
                kind: OpCost(op_type, int(np.median(values)), len(values), int(np.median(scratch)), modelled)
                for kind, (op_type, values, scratch, modelled) in gathered.items()
            }
        )
    return costs


def _steps(graph, seen):
    """How often the function ran while it was recorded: as often as most of its ops."""
    counts = [len(seen[graph.names[op]].durations) for op in range(graph.n_ops) if graph.types[op] != "Region" and graph.names[op] in seen]
    return max(1, int(np.median([c for c in counts if c] or [1])))


def add_costs(capture, topology, costs):
    """Replaces modelled durations (ns) and scratch (bytes) of `capture.graph`, which must be there, by measured ones.

    What was not measured keeps the model's figure, times what ops of its type that were measured took more than the model says; of types never
    seen, what all took.

    Returns:
        a note on how much of the modelled time was measured, for the plan.
    """
    graph = capture.graph
    kinds = signatures.of_ops(capture)
    shares = {}
    for model in dict.fromkeys(spec.model for spec in topology.devices):
        known = costs.entries.get(model)
        if not known:
            continue
        modelled = graph.durations[model]
        measured = np.array([known[kind].ns if kind in known else -1 for kind in kinds], np.int64)
        free = np.array([t in semantics.FREE for t in graph.types])
        seen = measured >= 0
        ratio = _ratios(graph.types, known.values())
        duration = np.where(seen, measured, np.round(modelled * ratio).astype(np.int64))
        graph.durations[model] = np.where(free & ~seen, modelled, duration)
        scratch = np.array([known[kind].scratch if kind in known else -1 for kind in kinds], np.int64)
        graph.scratch[model] = np.where(scratch >= 0, scratch, graph.scratch[model])
        total = graph.durations[model].sum()
        shares[model] = graph.durations[model][seen].sum() / total if total else 1.0
    missing = [spec.model for spec in topology.devices if spec.model not in shares]
    text = ", ".join(f"{share:.0%} of the time on {model}" for model, share in shares.items()) or "nothing"
    return f"costs: measured for {text}" + (f"; modelled on {', '.join(dict.fromkeys(missing))}" if missing else "")


def _ratios(types, costs):
    """Per op of these types: measured ÷ modelled time of all `costs` of its type, or of all together."""
    usable = [cost for cost in costs if cost.modelled > 0 and cost.op_type not in semantics.FREE]

    def ratio(some):
        return float(np.clip(sum(c.ns for c in some) / sum(c.modelled for c in some), _MIN_RATIO, _MAX_RATIO)) if some else 1.0

    by_type = {t: ratio([cost for cost in usable if cost.op_type == t]) for t in {cost.op_type for cost in usable}}
    whole = ratio(usable)
    return np.array([by_type.get(t, whole) for t in types])

"""Which instances a policy is trained on, drawn at random for every step; and what uniform searches reach on them.

Graphs where uniform searches leave no room are among them: a policy must not do harm there. (One that had never seen any did.)
"""

import dataclasses
import json
import os
import pathlib

import numpy as np

from tf_regal import errors
from tf_regal.graph import task_graphs
from tf_regal.policy.instances import Instance, prepared
from tf_regal.policy.rollouts import Rollout
from tf_regal.search import METHODS, Budget
from tf_regal.storage import write_atomically

_SOLUTION_EVALUATIONS = 2000
_SEEDS = (1001, 1002)  # of the denominators


class TrainingSet:
    """Instances, and the values that their rewards are relative to, which are kept in a file."""

    def __init__(self, paths, topologies, objective, *, evaluations, variants, max_ops, rollouts, cache, name, progress=None):
        """Args:
            paths: of graphs with costs. topologies: texts; one that is there twice is drawn twice as often.
            variants: noise variants of each graph, the graph itself included.
            evaluations: of rollouts. max_ops: larger graphs are left out. rollouts: a `rollouts.Threads` or `rollouts.Ray`.
            cache: JSON file of what is known so far. name: of the argument that the paths come from. progress: called with a line of text, now and then.

        Raises GraphError where no graph is small enough.
        """
        self._rollouts, self._evaluations, self._variants, self._topologies = rollouts, evaluations, variants, topologies
        self._cache = pathlib.Path(cache)
        self._known = {"evaluations": evaluations, "objective": objective, "ops": {}, "value": {}}
        if self._cache.exists():
            known = json.loads(self._cache.read_text())
            if all(known.get(key) == self._known[key] for key in ("evaluations", "objective")):
                self._known = known
        self.instances = []
        for done, path in enumerate(map(os.fspath, paths)):
            if progress is not None:
                progress(f"reading graphs: {done} of {len(paths)}")
            if path not in self._known["ops"]:
                self._known["ops"][path] = task_graphs.load(path).n_ops
            if self._known["ops"][path] <= max_ops:
                self.instances += [Instance(path, topology, objective) for topology in dict.fromkeys(topologies)]
        self.save()
        if not self.instances:
            raise errors.GraphError(f"{name}: none of {len(paths)} graphs has at most max_ops={max_ops} ops; give smaller ones, or a larger max_ops")

    def draw(self, count, key):
        """Instances for a step, list of Instance: of each topology as many, and none twice. key: ints that decide the draw."""
        rng = np.random.default_rng(key)
        by_topology = {topology: [i for i in self.instances if i.topology == topology] for topology in self._topologies}
        left = {topology: list(rng.permutation(len(found))) for topology, found in by_topology.items()}
        wheel, chosen = list(rng.permutation(len(self._topologies))), []
        while len(chosen) < count and any(left.values()):
            topology = self._topologies[wheel[0]]
            wheel = wheel[1:] + wheel[:1]
            if left[topology]:
                instance = by_topology[topology][left[topology].pop()]
                chosen.append(dataclasses.replace(instance, variant=int(rng.integers(self._variants))))
        return chosen

    def rewards(self, rollouts):
        """−value / value of uniform BRKGA with as many evaluations, float64 [rollouts]."""
        self._find([r.instance for r in rollouts])
        values = self._rollouts.values(rollouts)
        return np.array([-v / self._known["value"][r.instance.name] for v, r in zip(values, rollouts, strict=True)])

    def solution(self, instance):
        """The best that the full search finds: (device int32 [ops], start int64 [ops] in ns)."""
        task = prepared(instance).task
        found = METHODS["regal"](task, Budget(_SOLUTION_EVALUATIONS, threads=1))
        return found.device, found.run.start

    def save(self):
        """Writes what is known, whole or not at all."""
        write_atomically(self._cache, json.dumps(self._known))

    def _find(self, instances):
        missing = {i.name: i for i in instances if i.name not in self._known["value"]}
        uniform = [Rollout(i, None, None, seed, self._evaluations) for i in missing.values() for seed in _SEEDS]
        values = self._rollouts.values(uniform).reshape(-1, len(_SEEDS)).mean(axis=1)
        self._known["value"].update(zip(missing, values.tolist(), strict=True))

"""Proposals by name, for comparisons: a policy's or one made by hand, written to files that the processes of a comparison read without TensorFlow."""

import hashlib
import os

from tf_regal import errors, problem
from tf_regal.cli import startup
from tf_regal.graph import task_graphs
from tf_regal.plans import planner
from tf_regal.policy import cards, handmade
from tf_regal.search import OBJECTIVES
from tf_regal.search import proposal as proposal_lib

KINDS = "auto (the shipped policies), a policy's directory, or by-hand-ORDER-PLACEMENT-LEVEL, such as by-hand-rank-etf-3"

_BY_HAND = "by-hand-"


def identify(name, objectives):
    """A digest of what a proposal's name means now.

    InvalidArgumentError where it means nothing, PolicyError where it is a policy that cannot be used for one of the objectives.
    """
    if name.startswith(_BY_HAND):
        if name.removeprefix(_BY_HAND) not in handmade.names():
            raise errors.InvalidArgumentError(
                f"proposal={name!r} is not known; by hand there are {_BY_HAND} and one of {', '.join(handmade.names())}"
            )
        return name
    cards_there = [cards.identity(name, objective) for objective in OBJECTIVES]
    if not any(cards_there):
        raise errors.InvalidArgumentError(f"proposal={name!r} is not a policy; give {KINDS}")
    for objective in objectives:
        cards.read(cards.directory(name, objective), objective)
    return hashlib.sha256(" ".join(cards_there).encode()).hexdigest()[:16]


class Proposals:
    """Called with (`comparison.runner.Case`, Spec): the file of that proposal. folder: where the files are kept."""

    def __init__(self, folder):
        self._folder, self._policies, self._task, self._case = folder, {}, None, None

    def __call__(self, case, spec):
        path = os.path.join(self._folder, hashlib.sha256(f"{case.problem} {case.setting.objective} {spec.proposal}".encode()).hexdigest()[:24] + ".npz")
        if not os.path.exists(path):
            proposal_lib.save(self._propose(spec.proposal, self._task_of(case)), path)
        return path

    def _propose(self, name, task):
        if name.startswith(_BY_HAND):
            return handmade.propose(task, name.removeprefix(_BY_HAND))
        if (name, task.objective) not in self._policies:
            startup.load_tensorflow()
            from tf_regal.policy import inference

            self._policies[name, task.objective] = inference.Policy(cards.directory(name, task.objective), task.objective, name)
        return self._policies[name, task.objective].propose(task)

    def _task_of(self, case):
        if self._case != case:
            setting = case.setting
            built, _ = problem.build(task_graphs.load(case.path), setting.topology)
            self._task, self._case = planner.comparison_task(built, setting.objective, setting.max_slowdown), case
        return self._task

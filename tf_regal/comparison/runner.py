"""Runs methods × graphs × seeds with the same budget; what is in the results file already is not run again."""

import collections
import dataclasses
import hashlib

from tf_regal import errors, ops, problem
from tf_regal.comparison import methods, results, worker
from tf_regal.devices import Topology
from tf_regal.graph import task_graphs

# Part of a problem's digest. Raise it when the simulator gives another figure than before for the same candidate: then no older result counts.
_SEMANTICS = 1


@dataclasses.dataclass(frozen=True)
class Setting:
    """For which devices, and what is improved. max_slowdown: for "peak_memory", see `tf_regal.settings.Settings`."""

    topology: Topology
    objective: str
    max_slowdown: float = 1.5


@dataclasses.dataclass(frozen=True)
class Case:
    """A graph under a setting.

    name: of the graph. group: graphs of one group (the same model in several batch sizes) count as one when resampling.
    path: the file (see `task_graphs.load`). problem: digest of all that is simulated. bound: lower bound of the objective, ns or bytes.
    """

    name: str
    group: str
    path: str
    setting: Setting
    fingerprint: str
    problem: str
    ops: int
    bound: int


def prepare(name, group, path, settings):
    """Reads a graph with costs (see `task_graphs.load`) once → list of Case, one per setting. Raises GraphError with the name of the file."""
    try:
        graph = task_graphs.load(path)
        cases, built = [], {}
        for setting in settings:
            if setting.topology not in built:
                arrays, _ = problem.build(graph, setting.topology)
                built[setting.topology] = digest(arrays), ops.Simulator(arrays).bounds()
            found, bounds = built[setting.topology]
            bound = bounds[0] if setting.objective == "runtime" else bounds[1]
            cases.append(Case(name, group, path, setting, graph.fingerprint, found, graph.n_ops, int(bound)))
    except (errors.GraphError, ValueError) as error:
        raise errors.GraphError(f"{name}: {error}") from error
    return cases


def digest(built):
    """Hex digest of everything in a Problem."""
    found = hashlib.sha256(b"%d" % _SEMANTICS)
    for field in dataclasses.fields(built):
        value = getattr(built, field.name)
        content = value.tobytes() if hasattr(value, "tobytes") else repr(value).encode()
        found.update(f"{field.name} {getattr(value, 'shape', '')} ".encode() + content)
    return found.hexdigest()[:32]


def execute(cases, specs, n_seeds, found, *, n_processes=1, once=(), any_version=False, proposals=None, progress=None):
    """Runs what is missing.

    Args:
        cases: list of Case.
        specs: list of `methods.Spec`; run with the seeds 0 … n_seeds − 1 (a method that never asks for its seed: once).
        found: a `ResultsFile`; every result is appended to it as soon as it is there.
        n_processes: how many runs at the same time, each in a process and on a thread of its own.
        once: more Specs, that are run with seed 0 only.
        proposals: a function (Case, Spec) → path of the proposal (`search.proposal.save`); needed where a Spec has one.
        any_version: results of other versions of the code are not run again.
        progress: called with (runs done, runs in total as far as is known now).

    Returns:
        list of (Case, Spec, seed, `worker.Failure`): the runs that gave no result.
    """
    work = _Work(cases, specs, n_seeds, found, once, any_version, proposals)
    failures = []
    _report(progress, work)
    for job, outcome in worker.outcomes(n_processes, work.take):
        case, spec, seed = work.running.pop(job)
        work.done += 1
        if isinstance(outcome, worker.Failure):
            failures.append((case, spec, seed, outcome))
        else:
            found.append(record_of(case, spec, seed, outcome))
            if outcome["seeded"] and seed == 0:
                work.add(case, spec, first=True)
        _report(progress, work)
    return failures


def _report(progress, work):
    if progress is not None:
        progress(work.done, work.done + len(work.running) + len(work.queue))


class _Work:
    """What is still to be run."""

    def __init__(self, cases, specs, n_seeds, found, once, any_version, proposals):
        self._n_seeds, self._any_version, self._proposals = n_seeds, any_version, proposals
        self._seeds = collections.defaultdict(dict)  # key -> {seed: whether the method asked for it}
        for record in found.records:
            self._seeds[results.key(record, any_version)][record["seed"]] = record["seeded"]
        self._specs, self._queued = set(specs), set()
        self.queue, self.running, self.done = collections.deque(), {}, 0
        for case in cases:
            for spec in [*specs, *once]:
                self.add(case, spec)

    def add(self, case, spec, first=False):
        """Queues the runs of a method on a graph that are not there: seed 0, and the others once it is known that they differ."""
        key = results.key(record_of(case, spec, 0, {}), self._any_version)
        known = self._seeds[key]
        if first:
            known = {**known, 0: True}
        n_seeds = self._n_seeds if spec in self._specs else 1
        if any(not seeded for seeded in known.values()):
            return
        wanted = range(n_seeds) if known else range(1)
        jobs = []
        for seed in wanted:
            job = worker.Job(case.path, case.setting.topology, case.setting.objective, case.setting.max_slowdown, spec, seed)
            if seed not in known and (key, seed) not in self._queued:
                self._queued.add((key, seed))
                jobs.append((job, (case, spec, seed)))
        # The graph is still in the processes' memory: its other seeds come next.
        self.queue.extendleft(reversed(jobs)) if first else self.queue.extend(jobs)

    def take(self):
        if not self.queue:
            return None
        job, what = self.queue.popleft()
        if job.spec.proposal is not None:  # made when it is needed: what was run before needs none
            job = dataclasses.replace(job, proposal=self._proposals(what[0], job.spec))
        self.running[job] = what
        return job


def record_of(case, spec, seed, outcome):
    """The line of the results file."""
    return {
        "graph": case.name, "fingerprint": case.fingerprint, "problem": case.problem, "ops": case.ops, "topology": case.setting.topology.name,
        "objective": case.setting.objective, "max_slowdown": case.setting.max_slowdown, "method": spec.full_method, "evaluations": spec.evaluations,
        "seconds": spec.seconds, "seed": seed, "code": methods.code_version(spec.method),
        **({} if spec.proposal is None else {"proposal": spec.proposal_version}), **outcome,
    }  # fmt: skip

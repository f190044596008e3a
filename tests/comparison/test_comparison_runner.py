"""Runs: what is simulated, what is run again and what is not, and processes that die."""

import dataclasses
import multiprocessing
import os

import numpy as np
import pytest

from tests.comparison import inline
from tf_regal import errors, search
from tf_regal.comparison import ResultsFile, Setting, Spec, execute, methods, prepare, runner, statistics, worker
from tf_regal.devices import Topology
from tf_regal.graph.opgraph import OpGraph
from tf_regal.plans import planner

PAPER = Setting(Topology.parse("paper"), "runtime")
PEAK = Setting(Topology.parse("2xA100-40GB"), "peak_memory", 1.2)


@pytest.fixture
def cases(tmp_path):
    folder = inline.write_graphs(tmp_path, sizes=(24,), batches=(1, 2))
    return [case for path in sorted(folder.iterdir()) for case in prepare(path.stem, "m24", str(path), [PAPER, PEAK])]


@pytest.fixture
def count(monkeypatch):
    """Runs that were made, as (graph's path, label, seed, objective); they are made in this process."""
    made = []

    def outcomes(n_processes, take):
        for job, outcome in inline.outcomes(n_processes, take):
            made.append((os.path.basename(job.path), job.spec.label, job.seed, job.objective))
            yield job, outcome

    monkeypatch.setattr(worker, "outcomes", outcomes)
    return made


def spec(text, evaluations=150):
    return Spec.parse(text, evaluations)


def job_of(case, method, seed=0):
    return worker.Job(case.path, case.setting.topology, case.setting.objective, case.setting.max_slowdown, spec(method), seed)


def test_prepare(cases):
    assert [(case.name, case.setting) for case in cases] == [(f"m24-training-b{b}", s) for b in (1, 2) for s in (PAPER, PEAK)]
    assert len({case.problem for case in cases}) == 4
    assert len({case.fingerprint for case in cases}) == 2
    assert all(case.bound > 0 for case in cases)


def test_prepare_names_the_graph(tmp_path):
    path = str(tmp_path / "g.json")
    graph = OpGraph.load(inline.write_graphs(tmp_path, (24,), (1,)) / "m24-training-b1.json")
    graph.durations = {"T4": graph.durations["*"]}
    graph.save(path)
    with pytest.raises(errors.GraphError, match=r"^g: graph: no costs for device 'A100-40GB'"):
        prepare("g", "g", path, [PEAK])
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(errors.GraphError, match=r"^bad: .*is not JSON"):
        prepare("bad", "bad", str(tmp_path / "bad.json"), [PEAK])


def test_digest_is_of_everything(cases):
    graph = OpGraph.load(cases[0].path)
    built, _ = runner.problem.build(graph, PAPER.topology)
    first = runner.digest(built)
    assert first == cases[0].problem
    for name in ("duration", "size", "capacity", "latency"):
        changed = getattr(built, name).copy()
        changed.flat[-1] += 1
        assert runner.digest(built.replace(**{name: changed})) != first
    assert runner.digest(built.replace(blocking_transfers=not built.blocking_transfers)) != first


def test_a_run_is_what_the_simulator_says(cases):
    runs = worker.Runs()
    for case in cases:
        found = runs.run(job_of(case, "brkga"))
        assert found["evaluations_made"] == 150
        assert found["seeded"] is True
        assert found == {**runs.run(job_of(case, "brkga")), "time_s": found["time_s"]}
        value = found["makespan" if case.setting is PAPER else "peak"]
        assert value >= case.bound
    assert runs.run(job_of(cases[0], "heft"))["seeded"] is False


def test_a_late_run_is_infeasible(cases, monkeypatch):
    def slow(task, budget):
        """Every other group on the other device: many transfers."""
        return task.evaluate((task.problem.group % 2).astype(np.int32), np.zeros(task.problem.n_ops, np.float32))

    links = dataclasses.replace(PEAK.topology, latency_ns=((0, 10**7), (10**7, 0)))
    case = dataclasses.replace(cases[1], setting=dataclasses.replace(PEAK, topology=links))
    default = worker.Runs().run(job_of(case, "default"))
    monkeypatch.setattr(methods, "resolve", lambda name: slow)
    found = worker.Runs().run(job_of(case, "heft"))
    assert (default["late"], default["excess"], found["excess"]) == (0, 0, 0)
    assert found["late"] == found["makespan"] - planner.makespan_limit(PEAK.max_slowdown, default["makespan"]) > 0
    assert not statistics.Outcome(found["excess"], found["late"], found["peak"]).feasible


def test_memory_counts(tmp_path):
    path = inline.write_graphs(tmp_path, (24,), (1,)) / "m24-training-b1.json"
    tight = Setting(PAPER.topology.with_memory(100_000), "runtime")
    (case,) = prepare("g", "g", str(path), [tight])
    found = worker.Runs().run(job_of(case, "default"))
    assert found["excess"] == found["peak"] - 100_000  # the default plan is on one device


def test_a_method_that_claims_more_is_found_out(cases, monkeypatch):
    def liar(task, budget):
        solution = search.METHODS["default"](task, budget)
        solution.run.makespan -= 1
        return solution

    monkeypatch.setattr(methods, "resolve", lambda name: liar)
    with pytest.raises(errors.TfRegalError, match="method 'default' reports makespan"):
        worker.Runs().run(job_of(cases[0], "default"))


def test_every_seed_is_run_once_and_methods_without_chance_once(cases, count):
    found, steps = ResultsFile(), []
    specs = [spec("brkga"), spec("heft")]
    assert execute(cases, specs, 3, found, once=[spec("brkga:300")], progress=lambda *a: steps.append(a)) == []
    graphs = ("m24-training-b1.json", "m24-training-b2.json")
    expected = [
        (graph, label, seed, setting.objective)
        for graph in graphs
        for setting in (PAPER, PEAK)
        for label, seed in (("brkga", 0), ("brkga", 1), ("brkga", 2), ("heft", 0), ("brkga:300", 0))
    ]
    assert sorted(count) == sorted(expected)
    assert steps[-1] == (20, 20)
    assert len(found.records) == 20


def test_nothing_is_run_again(cases, count, tmp_path):
    path = str(tmp_path / "results.jsonl")
    specs = [spec("brkga"), spec("heft")]
    with ResultsFile(path) as found:
        execute(cases, specs, 2, found)
    made = len(count)
    with ResultsFile(path) as found:
        execute(cases, specs, 2, found)
        assert len(count) == made
        execute(cases, specs, 3, found)  # one more seed
        assert {c[1:3] for c in count[made:]} == {("brkga", 2)}
        made = len(count)
        execute(cases, [spec("brkga", 160)], 1, found)  # another budget
        assert len(count) == made + len(cases)


def test_the_same_run_under_two_names_is_made_once(cases, count):
    execute(cases[:1], [spec("brkga"), spec("brkga:150")], 2, ResultsFile())
    assert len(count) == 2


def test_a_comparison_that_was_stopped_goes_on(cases, count):
    found = ResultsFile()
    execute(cases, [spec("brkga")], 3, found)
    whole = sorted((r["problem"], r["seed"], r["makespan"], r["peak"]) for r in found.records)
    for kept in (1, 5):
        again = ResultsFile()
        again.records = list(found.records[:kept])
        count.clear()
        execute(cases, [spec("brkga")], 3, again)
        assert len(count) == len(whole) - kept
        assert sorted((r["problem"], r["seed"], r["makespan"], r["peak"]) for r in again.records) == whole


def test_results_of_another_version_of_the_code(cases, count, monkeypatch):
    found, labels = ResultsFile(), [spec("brkga"), spec("heft")]
    default = spec("default")
    execute(cases, [*labels, default], 2, found)
    made = len(count)
    old = statistics.collect(cases[:1], labels, default, found.records, 2)
    monkeypatch.setattr(methods, "code_version", lambda name: "2+new")
    execute(cases, labels, 2, found, any_version=True)
    assert len(count) == made
    (graph,) = statistics.collect(cases[:1], labels, default, found.records, 2)
    assert graph.outcomes == {}  # of this version there is nothing yet ...
    assert graph.best_known == old[0].best_known  # ... but what is known is known
    assert statistics.collect(cases[:1], labels, default, found.records, 2, any_version=True) == old
    # Seeds that only the new version ran stand beside those of the old one.
    execute(cases, labels, 3, found, any_version=True)
    (graph,) = statistics.collect(cases[:1], labels, default, found.records, 3, any_version=True)
    assert set(graph.outcomes["brkga"]) == {0, 1, 2}
    assert set(statistics.collect(cases[:1], labels, default, found.records, 3)[0].outcomes["brkga"]) == {2}
    found.records = [record for record in found.records if record["seed"] < 2]
    count.clear()
    execute(cases, labels, 2, found)
    assert len(count) == made - len(cases)


def test_best_known_is_the_best_of_everything(cases):
    default, labels = spec("default"), [spec("brkga")]
    runtime, peak = cases[0], cases[1]

    def record(case, method="brkga", **changes):
        figures = {"makespan": 100, "peak": 50, "excess": 0, "late": 0, "seeded": True, "evaluations_made": 1, "time_s": 0.1, "proof": None}
        return runner.record_of(case, spec(method), 0, {**figures, **changes})

    def best(case, *records):
        return statistics.collect([case], labels, default, list(records), 1)[0].best_known

    assert best(runtime, record(runtime)) == 100
    assert best(runtime, record(runtime), {**record(runtime, makespan=90), "evaluations": 7}) == 90
    assert best(runtime, record(runtime), {**record(runtime, makespan=90), "objective": "peak_memory"}) == 90
    assert best(runtime, record(runtime), record(runtime, makespan=90, excess=1)) == 100
    assert best(runtime, record(runtime), record(peak, makespan=90)) == 100  # another problem
    assert best(runtime, record(runtime, excess=1)) is None
    plan = record(peak, "default", makespan=100)
    assert best(peak, plan, record(peak, peak=40, makespan=120)) == 40
    assert best(peak, plan, record(peak, peak=40, makespan=121)) == 50  # more than 1.2 times the default's
    assert best(peak, plan, {**record(peak, peak=40, makespan=110), "objective": "runtime"}) == 40


def test_only_the_seeds_asked_for_are_shown(cases, count):
    found, label, default = ResultsFile(), spec("brkga"), spec("default")
    execute(cases[:1], [label, default], 4, found)
    (graph,) = statistics.collect(cases[:1], [label], default, found.records, 2)
    assert list(graph.outcomes["brkga"]) == [0, 1]
    assert list(graph.outcomes["default"]) == [None]
    assert graph.default == graph.outcomes["default"][None]


class Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (3,)


def test_processes(cases):
    """Three jobs, one of which kills its process and one of which fails: the others do not suffer."""
    good, bad = job_of(cases[0], "brkga"), job_of(dataclasses.replace(cases[0], path="/nowhere.json"), "brkga")
    jobs = [Deadly(), bad, good]
    found = {type(job).__name__ if job is not bad else "bad": outcome for job, outcome in worker.outcomes(2, lambda: jobs.pop(0) if jobs else None)}
    assert found["Deadly"] == worker.Failure("the process died (exit code 3); is there enough memory?")
    assert found["bad"].message.startswith("FileNotFoundError")
    assert "Traceback" in found["bad"].detail
    here = worker.Runs().run(good)
    assert found["Job"] == {**here, "time_s": found["Job"]["time_s"]}
    assert not multiprocessing.active_children()


def test_processes_end_when_nobody_waits_for_them(cases):
    endless = dataclasses.replace(job_of(cases[0], "brkga"), spec=Spec("brkga", "brkga", methods.UNLIMITED))
    jobs = [endless, job_of(cases[0], "heft")]
    running = worker.outcomes(2, lambda: jobs.pop(0) if jobs else None)
    assert next(running)[0].spec.method == "heft"
    assert multiprocessing.active_children()
    running.close()
    assert not multiprocessing.active_children()


def test_failures_are_told_and_not_kept(cases, monkeypatch):
    def failing(task, budget):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(worker, "outcomes", inline.outcomes)
    found = ResultsFile()
    real = methods.resolve
    monkeypatch.setattr(methods, "resolve", lambda name: failing if name == "heft" else real(name))
    failures = execute(cases[:1], [spec("heft"), spec("default")], 2, found)
    assert [(case, s.label, seed, failure.message) for case, s, seed, failure in failures] == [(cases[0], "heft", 0, "ZeroDivisionError: a bug")]
    assert [r["method"] for r in found.records] == ["default"]


def test_a_task_knows_whether_its_seed_was_read():
    task = worker.WatchedTask(None, "runtime", np.zeros(1), seed=4)
    assert not task.seed_was_read
    assert task.seed == 4
    assert task.seed_was_read

"""`tf-regal bench`: what is measured, not how fast it is."""

import builtins
import re
import sys

import pytest

from tf_regal.bench import graphs

SMALL = ("--ops", "20,40", "--devices", "1,2", "--seconds", "0.001", "--repeats", "2")


@pytest.fixture(autouse=True)
def _short_search(monkeypatch):
    from tf_regal.bench import simulator

    monkeypatch.setattr(simulator, "SEARCH", {"ops": 20, "devices": 2, "evaluations": 150})


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.json"
    graphs.layered(60).save(str(path))
    return str(path)


def assert_sample(sample, repeats=2):
    assert 0 < sample["low"] <= sample["median"] <= sample["high"] < float("inf")
    assert sample["repeats"] == repeats


def test_simulator(run, graph):
    result = run("bench", "simulator", graph, *SMALL, "--against", "none", "--topology", "paper", "--json")
    assert result.code == 0
    found = result.json
    assert [(p["graph"], p["ops"], p["devices"]) for p in found["points"]] == [
        ("layered-20-0", 20, 1), ("layered-20-0", 20, 2), ("layered-40-0", 40, 1), ("layered-40-0", 40, 2), ("graph", 60, 2),
    ]  # fmt: skip
    for point in found["points"]:
        assert (point["transfers"] > 0) == (point["devices"] > 1)
        assert_sample(point["loop"])
        assert_sample(point["alone"])
    assert [(g["devices"], g["from"], g["to"]) for g in found["growth"]] == [(1, 20, 40), (2, 20, 40)]
    assert_sample(found["growth"][0]["loop"])
    assert (found["search"]["ops"], found["search"]["evaluations"]) == (20, 150)
    assert found["search"]["threads"] >= 1
    assert_sample(found["search"]["seconds"]["regal"])
    assert "against" not in found


def test_simulator_in_words(run):
    result = run("bench", "simulator", *SMALL, "--against", "none")
    assert result.code == 0
    number = r"[\d.]+ [kMG]?"
    assert len(re.findall(rf"^  (?:20|40) +[12] +\d+ +{number} ?\[{number}, {number}\] ", result.out, re.MULTILINE)) == 4
    assert "at 40 ops / at 20" in result.out
    assert "search: 20 ops, 2 devices, 150 evaluations, " in result.out
    assert "bench: a generated graph of 20 ops ..." in result.err


def test_against_pymoo(run, monkeypatch):
    pytest.importorskip("pymoo")
    from tf_regal.bench import against

    monkeypatch.setattr(against.measure, "__kwdefaults__", None)
    monkeypatch.setattr(against.measure, "__defaults__", (0.001, 30, None))  # a graph of 30 ops
    found = run("bench", "simulator", *SMALL, "--against", "pymoo", "--json").json["against"]
    assert (found["graph"], found["ops"], found["devices"]) == ("layered-30-0", 30, 2)
    assert list(found["seconds"]) == ["simulator", "loop", "pymoo"]
    assert list(found["ratios"]) == ["pymoo"]
    assert found["ratios"]["pymoo"]["median"] > 1
    assert_sample(found["seconds"]["pymoo"])


def test_what_is_needed_is_looked_for_before_the_long_work(run, monkeypatch):
    from tf_regal.bench import simulator

    monkeypatch.setattr(simulator, "measure", lambda *args: pytest.fail("it is measured already"))
    assert "model='nets' is not known" in run("bench", "simulator", "--model", "nets").err


def test_against_needs_pymoo(run, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "pymoo":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.partition(".")[0] == "pymoo"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    result = run("bench", "simulator", *SMALL, "--against", "pymoo", "--json")
    assert result.code == 1
    assert "install it with: pip install 'tf-regal[compare]'" in result.json["error"]["message"]


def test_a_python_simulator_that_is_wrong_is_not_compared(run, monkeypatch):
    pytest.importorskip("pymoo")
    from tf_regal.bench import python_simulator

    monkeypatch.setattr(python_simulator.PythonSimulator, "run", lambda *args: (0, [0, 0]))
    result = run("bench", "simulator", *SMALL, "--against", "pymoo")
    assert result.code == 1
    assert "the Python simulator gives (0, [0, 0]), the core" in result.err


def test_against_grappler(run):
    result = run("bench", "simulator", *SMALL, "--against", "grappler", "--model", "small", "--json")
    assert result.code == 0
    found = result.json["against"]
    assert (found["graph"], found["devices"]) == ("training step of small", 2)
    assert found["ops"] > 50
    assert list(found["seconds"]) == ["simulator", "loop", "grappler"]
    assert_sample(found["ratios"]["grappler"])
    assert found["ratios"]["grappler"]["median"] > 10
    text = run("bench", "simulator", *SMALL, "--against", "grappler", "--model", "small").out
    assert "Grappler's virtual cluster (MeasureCosts)" in text
    assert "times the simulator's" in text


def test_search(run, graph):
    arguments = ("bench", "search", graph, "--topology", "paper", "--evaluations", "130", "--repeats", "2", "--methods", "brkga,heft")
    found = run(*arguments, "--objective", "peak_memory", "--json").json
    assert (found["ops"], found["devices"]) == (60, 2)
    assert list(found["phases"]) == ["read", "problem", "default", "seeds", "search", "edges", "plan"]
    for sample in found["phases"].values():
        assert_sample(sample)
    assert {name: figures["evaluations"] for name, figures in found["methods"].items()} == {"brkga": 130, "heft": 1}
    assert_sample(found["methods"]["brkga"]["per_second"])
    text = run(*arguments).out
    assert re.search(r"^  edges +[\d.]+ [mun]?s \[", text, re.MULTILINE)
    assert re.search(r"^  brkga +130 ", text, re.MULTILINE)


@pytest.mark.slow
def test_hook(run):
    arguments = ("bench", "hook", "--model", "small", "--evaluations", "150", "--pairs", "2", "--calls", "1")
    found = run(*arguments, "--json").json
    assert found["kept_default"]["status"] == "default_kept"
    assert_sample(found["kept_default"]["ratio"])
    planned = found["planning"]
    assert (planned["model"], planned["evaluations"]) == ("small", 150)
    assert planned["traced_ops"] >= planned["ops"] > 50
    assert_sample(found["first_call"]["ratio"], repeats=3)
    assert_sample(found["small_functions"]["ratio"], repeats=20)
    assert planned["seconds"] >= planned["search_seconds"] > 0
    assert "step time hooked / plain, median of 2 interleaved pairs of 1 calls" in run(*arguments).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: WHAT"),
        (["simulater"], r"did you mean 'simulator'\?"),
        (["simulator", "--ops", "0"], "argument --ops: '0' is not valid: give whole numbers with commas between them, 1 to 1000000"),
        (["simulator", "--ops", "10,x"], "argument --ops: '10,x' is not valid"),
        (["simulator", "--devices", "65"], "argument --devices: '65' is not valid: .* 1 to 64"),
        (["simulator", "--seconds", "0"], "argument --seconds: '0' is not valid: give seconds, above 0"),
        (["simulator", "--seconds", "inf"], "argument --seconds: 'inf' is not valid"),
        (["simulator", "--repeats", "0"], "argument --repeats: '0' is not valid: give a whole number, 1 to"),
        (["simulator", "--repeats", "1,2"], "argument --repeats: '1,2' is not valid: give a whole number"),
        (["simulator", "--against", "grapler"], "argument --against: against='grapler' is not known"),
        (["simulator", "--model", "Inception", *SMALL], "argument --model: model='Inception' is not known"),
        (["simulator", "--opss=3"], r"--opss=3; did you mean '--ops'\?"),
        (["search"], "the following arguments are required: GRAPH"),
        (["search", "g.json", "--methods", "brkgaa"], r"Did you mean 'brkga'\?"),
        (["search", "g.json", "--method", "regall"], r"argument --method: .*Did you mean 'regal'\?"),
        (["search", "g.json", "--objective", "memory"], "argument --objective: "),
        (["search", "g.json", "--evaluations", "0"], "argument --evaluations: evaluations=0 is not valid"),
        (["hook", "--evaluations", "0"], "argument --evaluations: evaluations=0 is not valid"),
        (["hook", "--pairs", "-1"], "argument --pairs: '-1' is not valid"),
        (["hook", "--model", "nets"], "argument --model: model='nets' is not known"),
    ],
)
def test_usage_errors(run, arguments, message):
    result = run("bench", *arguments)
    assert result.code == 2
    assert re.search(message, result.err.splitlines()[-1]), result.err


@pytest.mark.parametrize("what", ["simulator", "search"])
def test_a_graph_that_is_not_there(run, what):
    result = run("bench", what, "nothing.json", "--json")
    assert result.code == 1
    assert "there is no such file or directory" in result.json["error"]["message"]


@pytest.mark.parametrize("what", ["simulator", "search", "hook"])
def test_help(run, what):
    result = run("bench", what, "--help")
    assert result.code == 0
    assert f"usage: tf-regal bench {what} " in result.out

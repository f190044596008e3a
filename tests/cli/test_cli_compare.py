"""`tf-regal compare`."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.comparison import inline
from tf_regal.comparison import worker

METHODS = ("--methods", "brkga,heft,default", "--evaluations", "120", "--seeds", "2", "--topology", "paper")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return inline.write_graphs(tmp_path_factory.mktemp("graphs"))


@pytest.fixture
def here(monkeypatch):
    """Runs are made in this process."""
    monkeypatch.setattr(worker, "outcomes", inline.outcomes)


def normal(document):
    """A report without times."""
    return json.loads(re.sub(r'"(seconds|time_s)": [0-9.e-]+', r'"\1": 0', json.dumps(document)))


def sorted_runs(document):
    """Without times, and without the order in which runs ended."""
    document = normal(document)
    for report in document["reports"]:
        for graph in report["graphs"]:
            graph["runs"] = {label: sorted(runs, key=str) for label, runs in graph["runs"].items()}
    return document


def test_text(run, folder, here):
    result = run("compare", folder, *METHODS)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("runtime on paper: 120 evaluations, 2 seeds, baseline brkga\n\nAll graphs: 4 graphs of 2 models\n")
    rows = re.findall(r"^  (brkga|heft|default) +([+-]\d+\.\d %) +(\[.*?\]|-) +4/4 ", result.out, re.MULTILINE)
    assert [row[0] for row in rows[:3]] == ["brkga", "heft", "default"]
    assert rows[0][1:] == ("+0.0 %", "[+0.0, +0.0]")
    assert rows[2][1].startswith("-")  # everything on one device is worse
    assert "Graphs with room: " in result.out
    assert "95 % interval" in result.out
    assert "Per graph" not in result.out


def test_json(run, folder, here):
    found = run("compare", folder, *METHODS, "--objective", "runtime,peak_memory", "--max-slowdown", "1.3", "--json").json
    assert [(r["objective"], r["topology"], r["max_slowdown"]) for r in found["reports"]] == [("runtime", "paper", 1.3), ("peak_memory", "paper", 1.3)]
    report = found["reports"][0]
    assert [row["label"] for row in report["all"]["rows"]] == ["brkga", "heft", "default"]
    assert [row["runs"] for row in report["all"]["rows"]] == [8, 4, 4]
    graph = report["graphs"][0]
    assert (graph["name"], graph["group"], graph["ops"]) == ("m24-training-b1", "m24-training", 24)
    values = [run["value"] for runs in graph["runs"].values() for run in runs]
    assert graph["best_known"] == min(values) >= graph["bound"]
    assert graph["default"]["value"] == graph["runs"]["default"][0]["value"]
    assert [run["seed"] for run in graph["runs"]["brkga"]] == [0, 1]
    assert [run["seed"] for run in graph["runs"]["heft"]] == [None]
    assert (found["notes"], found["failures"]) == ([], [])


def test_baseline_and_default_are_run_in_any_case(run, folder, here):
    found = run("compare", folder, "--methods", "heft", "--evaluations", "110", "--seeds", "1", "--topology", "paper", "--json").json
    assert [(row["label"], row["runs"]) for row in found["reports"][0]["all"]["rows"]] == [("heft", 4), ("brkga", 4)]
    assert all(graph["default"] for graph in found["reports"][0]["graphs"])
    found = run("compare", folder, *METHODS, "--baseline", "heft", "--json").json
    assert found["reports"][0]["all"]["rows"][1]["improvement"] == 0


def test_references_count_for_the_best_known_only(run, folder, here):
    plain = run("compare", folder, *METHODS, "--json").json["reports"][0]
    found = run("compare", folder, *METHODS, "--reference", "brkga:3000", "--reference", "regal:200,m_etf", "--json").json["reports"][0]
    assert [row["label"] for row in found["all"]["rows"]] == ["brkga", "heft", "default"]
    pairs = [(a["best_known"], b["best_known"]) for a, b in zip(plain["graphs"], found["graphs"], strict=True)]
    assert all(a >= b for a, b in pairs)
    assert any(a > b for a, b in pairs)


def test_budgets_of_their_own(run, folder, here):
    found = run("compare", folder, "--methods", "brkga:110,brkga:0.01s,brkga", "--evaluations", "130", "--seeds", "1", "--topology", "paper", "--json").json
    graph = found["reports"][0]["graphs"][0]
    assert graph["runs"]["brkga:110"][0]["evaluations"] == 110
    assert graph["runs"]["brkga"][0]["evaluations"] == 130
    assert 100 <= graph["runs"]["brkga:0.01s"][0]["evaluations"] < 10**9


def test_results_are_kept_and_taken_over(run, folder, here, tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    first = run("compare", folder, *METHODS, "--results", path, "--json").json
    lines = path.read_text().splitlines()
    assert len(lines) == 16
    monkeypatch.setattr(worker, "outcomes", lambda n, take: iter([]) if take() is None else pytest.fail("something is run again"))
    assert run("compare", folder, *METHODS, "--results", path, "--json").json == first


def test_per_graph_and_markdown(run, folder, here, tmp_path):
    path = tmp_path / "table.md"
    result = run("compare", folder, *METHODS, "--per-graph", "--markdown", path)
    assert len(re.findall(r"^ .* m(24|30)-training-b[12] ", result.out, re.MULTILINE)) == 4
    assert re.search(r"^  room +graph +ops +bound +best known +default +brkga +heft$", result.out, re.MULTILINE)
    text = path.read_text()
    assert text.startswith("## runtime on paper: 120 evaluations, 2 seeds, baseline brkga\n\nAll graphs: 4 graphs of 2 models\n\n| method |")
    assert len(re.findall(r"^\| .* \| m(24|30)-training-b[12] \|", text, re.MULTILINE)) == 4
    assert re.search(r"^\| heft \| [+-]\d", text, re.MULTILINE)


def test_memory_limit(run, folder, here):
    """Graphs whose default plan does not fit, and those for which nothing does, are counted."""
    found = run("compare", folder, *METHODS, "--memory-limit", "1kB", "--json").json["reports"][0]
    assert (found["all"]["default_infeasible"], found["all"]["unsolved"], found["all"]["baseline_infeasible"]) == (4, 4, 4)
    assert [row["compared"] for row in found["all"]["rows"]] == [0, 0, 0]
    result = run("compare", folder, *METHODS, "--memory-limit", "1kB", "--per-graph")
    assert (
        "4 graphs of 2 models; 4 whose default plan does not fit; 4 where the baseline found nothing feasible; 4 without any feasible result" in result.out
    )
    assert " infeasible " in result.out
    assert "Graphs with room: 0 graphs of 0 models" in result.out


def test_the_same_problem_is_counted_once(run, folder, here, tmp_path):
    (tmp_path / "copy.json").write_bytes((folder / "m24-training-b1.json").read_bytes())
    result = run("compare", folder / "m24-training-b1.json", tmp_path / "copy.json", *METHODS)
    assert "tf-regal: note: copy is the same problem as m24-training-b1 on paper: counted once" in result.err
    assert "All graphs: 1 graph of 1 model\n" in result.out


def test_a_method_that_fails(run, folder, here, monkeypatch):
    from tf_regal.comparison import methods

    real = methods.resolve

    def failing(task, budget):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(methods, "resolve", lambda name: failing if name == "heft" else real(name))
    result = run("compare", folder, *METHODS)
    assert result.code == 1
    assert "4 runs gave no result; run it again to try these again. The first: m24-training-b1, heft, seed 0: ZeroDivisionError: a bug" in result.err
    assert "heft has no result for 4" in result.out
    assert len(run("compare", folder, *METHODS, "--json").json["failures"]) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "brkgaa"], r"argument --methods: .*'brkgaa' is not known.*Did you mean 'brkga'\?"),
        (["--methods", "brkga:x"], "argument --methods: .*the budget 'x' is not valid"),
        (["--methods", ","], "argument --methods: ',' names nothing"),
        (["--baseline", "hefft"], r"argument --baseline: .*Did you mean 'heft'\?"),
        (["--reference", "brkga:-1"], "argument --reference: .*the budget '-1' is not valid"),
        (["--seeds", "0"], "argument --seeds: '0' is not valid: give a whole number, 1 or more"),
        (["--seeds", "two"], "argument --seeds: 'two' is not valid"),
        (["--jobs", "0"], "argument --jobs: '0' is not valid"),
        (["--evaluations", "0"], "argument --evaluations: evaluations=0 is not valid"),
        (["--seconds", "-1"], "argument --seconds: seconds=-1.0 is not valid"),
        (["--max-slowdown", "0.5"], "argument --max-slowdown: max_slowdown=0.5 is not valid"),
        (["--objective", "runtime,memory"], r"argument --objective: .*Did you mean 'peak_memory'\?"),
        (["--topology", "paper,2xA100-41GB"], "did you mean 'A100-40GB'"),
        (["--memory-limit", "lots"], "argument --memory-limit: 'lots' is not a size"),
        (["--results", "no_such_directory/r.jsonl"], "argument --results: .* does not exist"),
        (["--markdown", "."], r"argument --markdown: '\.' is a directory"),
    ],
)
def test_usage_errors(run, folder, arguments, message):
    result = run("compare", folder, *arguments)
    assert result.code == 2
    assert re.search(message, result.err.splitlines()[-1]), result.err


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ("nothing.json", "there is no such file or directory"),
        ("empty", "the directory has no graph in it"),
        ("bad.json", "bad: .*is not JSON"),
        ("split.json:tset", "there is no such split; it has 'test'"),
    ],
)
def test_graphs_that_are_none(run, tmp_path, graph, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "split.json").write_text('{"test": {}}')
    result = run("compare", tmp_path / graph, "--json")
    assert result.code == 1
    assert re.search(message, result.json["error"]["message"])


def test_damaged_results(run, folder, tmp_path):
    (tmp_path / "results.jsonl").write_text("nonsense\n")
    result = run("compare", folder, "--results", tmp_path / "results.jsonl")
    assert result.code == 1
    assert "line 1 is no result" in result.err
    (tmp_path / "results.jsonl").write_text('{"schema": 7}\n')
    assert "line 1 is of schema 7, and this version reads 1" in run("compare", folder, "--results", tmp_path / "results.jsonl").err


def test_results_of_another_version_of_the_code(run, folder, here, tmp_path):
    path = tmp_path / "results.jsonl"
    arguments = ("compare", folder, *METHODS, "--results", path)
    first = run(*arguments, "--json").json
    path.write_text(re.sub(r'"code": "[^"]*"', '"code": "0.0.1+old"', path.read_text()))
    again = run(*arguments, "--any-version", "--json").json
    assert again == first
    assert len(path.read_text().splitlines()) == 16
    assert normal(run(*arguments, "--json").json) == normal(first)
    assert len(path.read_text().splitlines()) == 32


def test_a_saved_model(run, files, here):
    arguments = ("--methods", "heft", "--evaluations", "110", "--seeds", "1")
    result = run("compare", files.saved_model, files.graph_def, *arguments, "--topology", "2xCPU,paper", "--json")
    assert result.code == 0
    for report in result.json["reports"]:
        assert [graph["name"] for graph in report["graphs"]] == ["saved_model", "graph"]
    bounds = [report["graphs"][0]["bound"] for report in result.json["reports"]]
    assert bounds[0] != bounds[1]  # costs are those of the topology


def test_in_processes_and_without_tensorflow(process, run, folder, here):
    """What other processes find is what this one finds; TensorFlow is not imported for JSON."""
    code = (
        "import sys; from tf_regal.cli import main; code = main(sys.argv[1:]); "
        "assert not {'tensorflow', 'keras'} & set(sys.modules); sys.exit(code)"
    )
    arguments = ("compare", folder, *METHODS, "--json")
    result = process(*arguments, "--jobs", "2", program=(sys.executable, "-c", code))
    assert result.code == 0, result.err
    assert sorted_runs(result.json) == sorted_runs(run(*arguments).json)


def test_a_killed_comparison_goes_on(folder, tmp_path):
    """SIGKILL in the middle: what was found stays, the other processes end, and the rest is run."""
    path = tmp_path / "results.jsonl"
    arguments = ["compare", str(folder), *METHODS, "--results", str(path)]
    endless = ["--reference", "brkga:300s"]
    started = subprocess.Popen([sys.executable, "-m", "tf_regal", *arguments, *endless], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while (not path.exists() or path.read_bytes().count(b"\n") < 4) and time.monotonic() < until:
        time.sleep(0.02)
    started.send_signal(signal.SIGKILL)
    started.communicate(timeout=60)  # ends when the last process that holds its stderr has
    assert started.returncode == -signal.SIGKILL
    before = path.read_bytes().rpartition(b"\n")[0].splitlines()
    assert 4 <= len(before) < 16
    done = subprocess.run([sys.executable, "-m", "tf_regal", *arguments], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    after = path.read_bytes().splitlines()
    assert after[: len(before)] == before
    assert len(after) == 16

"""The results file: nothing is lost, nothing damaged is taken."""

import json
import re

import pytest

from tf_regal import errors
from tf_regal.comparison import results
from tf_regal.comparison.results import ResultsFile

RECORD = {
    "graph": "g", "fingerprint": "f", "problem": "p", "topology": "paper", "objective": "runtime", "method": "brkga", "code": "1+a", "ops": 3,
    "evaluations": 5, "seconds": None, "seed": 0, "makespan": 7, "peak": 9, "excess": 0, "late": 0, "evaluations_made": 5, "time_s": 0.5,
    "max_slowdown": 1.5, "seeded": True, "proof": None,
}  # fmt: skip


def record(**changes):
    return {**RECORD, **changes}


def line(**changes):
    return json.dumps({"schema": 1, **record(**changes)})


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "results.jsonl")


def load(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    with ResultsFile(path) as found:
        return [r["seed"] for r in found.records]


def test_what_is_appended_is_read_again(path):
    with ResultsFile(path) as found:
        found.append(record(seed=0))
        with open(path, encoding="utf-8") as file:
            assert json.loads(file.read())["seed"] == 0  # at once, not when it is closed
        found.append(record(seed=1))
    with ResultsFile(path) as found:
        assert found.records == [{"schema": 1, **record(seed=0)}, {"schema": 1, **record(seed=1)}]
        found.append(record(seed=2))
    with ResultsFile(path) as found:
        assert [r["seed"] for r in found.records] == [0, 1, 2]


def test_without_a_path_nothing_is_written():
    with ResultsFile() as found:
        found.append(record())
        assert len(found.records) == 1


def test_a_line_that_was_cut_off_is_dropped(path):
    text = line(seed=0) + "\n" + line(seed=1)[:-20]
    assert load(path, text) == [0]
    with ResultsFile(path) as found:
        found.append(record(seed=3))
    with ResultsFile(path) as found:
        assert [r["seed"] for r in found.records] == [0, 3]


@pytest.mark.parametrize("before", ["", line(seed=0) + "\n"])
def test_a_whole_last_line_without_its_end_counts(path, before):
    assert load(path, before + line(seed=1)) == [0, 1][0 if before else 1 :]
    with ResultsFile(path) as found:
        found.append(record(seed=2))
    with ResultsFile(path) as found:
        assert [r["seed"] for r in found.records][-2:] == [1, 2]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("nonsense", "line 2 is no result"),
        ("[1]", "line 2 is no result"),
        (line()[:-9], "line 2 is no result"),
        ('{"schema": 2}', "line 2 is of schema 2, and this version reads 1"),
        ("{}", "line 2 is of schema None"),
        (line(makespan="7"), "line 2 is damaged: makespan is '7'"),
        (line(makespan=True), "line 2 is damaged: makespan is True"),
        (line(seeded=1), "line 2 is damaged: seeded is 1"),
        (line(seconds="1"), "line 2 is damaged: seconds is '1'"),
        (json.dumps({"schema": 1, "graph": "g"}), "line 2 is damaged: fingerprint is None"),
    ],
)
def test_damaged_lines(path, bad, message):
    with pytest.raises(errors.InvalidArgumentError, match=f"{re.escape(message)}.*choose another file"):
        load(path, f"{line()}\n{bad}\n{line(seed=1)}\n")
    with open(path, encoding="utf-8") as file:
        assert len(file.readlines()) == 3  # it was left as it is


def test_empty_lines_do_not_matter(path):
    assert load(path, f"\n{line(seed=4)}\n\n") == [4]


def test_one_comparison_at_a_time(path):
    with ResultsFile(path), pytest.raises(errors.InvalidArgumentError, match="is in use by another comparison"):
        ResultsFile(path)
    ResultsFile(path).close()


@pytest.mark.parametrize("change", [{"problem": "q"}, {"objective": "peak_memory"}, {"method": "heft"}, {"evaluations": 6}, {"seconds": 1.0}, {"code": "1+b"}])
def test_key(change):
    assert results.key(record(**change)) != results.key(record())
    assert (results.key(record(**change), True) == results.key(record(), True)) is ("code" in change)


def test_key_leaves_out_what_does_not_count():
    assert results.key(record(seed=3, graph="other", max_slowdown=2.0)) == results.key(record())
    assert results.key(record(objective="peak_memory", max_slowdown=2.0)) != results.key(record(objective="peak_memory"))

"""`tf-regal evaluate`, and proposals in `tf-regal compare`."""

import pytest

from tests.comparison import inline
from tests.policy.conftest import graph_files, trained
from tf_regal.comparison import worker

__all__ = ["graph_files", "trained"]

# bazel: manual (trains a policy, which needs TensorFlow and Spektral)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return inline.write_graphs(tmp_path_factory.mktemp("graphs"))


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(worker, "outcomes", inline.outcomes)


def test_rows(run, folder, trained, here):
    policies = ("--policy", trained.policy, "--also", trained.policy)
    found = run("evaluate", folder, *policies, "--evaluations", "100", "--seeds", "1", "--topology", "paper", "--json")
    assert found.code == 0, found.err
    (report,) = found.json["reports"]  # the policy is for one objective
    assert report["objective"] == "runtime"
    assert [row["label"] for row in report["all"]["rows"]] == [
        "brkga", "tuned_brkga", "brkga@by-hand-depth-etf-1:92", f"idrs@{trained.policy}:92", f"brkga@{trained.policy}:92", "regal", f"regal@{trained.policy}",
    ]  # fmt: skip
    assert all(row["runs"] for row in report["all"]["rows"])


def test_a_policy_that_was_trained_again_is_another_method(run, folder, here, tmp_path):
    """Results of proposals by hand are found again; those of another name are not."""
    results = tmp_path / "r.jsonl"
    for methods in ("brkga@by-hand-rank-heft-1", "brkga@by-hand-rank-heft-1,brkga@by-hand-rank-heft-3"):
        run("compare", folder, "--methods", methods, "--evaluations", "50", "--seeds", "1", "--topology", "paper", "--results", results)
    lines = results.read_text().splitlines()
    assert sum("by-hand-rank-heft-1" in line for line in lines) == sum("by-hand-rank-heft-3" in line for line in lines) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "GRAPHS", "--policy", "nothing"), "policy='nothing' is not a"),
        (("compare", "GRAPHS", "--methods", "brkga@nothing"), "proposal='nothing' is not a policy"),
        (("compare", "GRAPHS", "--methods", "brkga@by-hand-luck"), "by hand there are"),
        (("compare", "GRAPHS", "--methods", "heft@auto"), "heft draws nothing from a proposal"),
        (("evaluate", "GRAPHS", "--objective", "speed"), "'speed' is not known"),
        (("compare", "GRAPHS", "--methods", "brkga@POLICY", "--objective", "runtime,peak_memory"), "is for the objective 'runtime', not for 'peak_memory'"),
    ],
)
def test_bad_input(run, folder, trained, arguments, message):
    found = run(*[word.replace("GRAPHS", str(folder)).replace("POLICY", str(trained.policy)) for word in arguments])
    assert found.code == 2
    assert message in found.err

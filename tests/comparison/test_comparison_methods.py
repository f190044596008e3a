"""Methods with budgets, and the version of their code."""

import functools
import types

import pytest

from tf_regal import errors, search
from tf_regal.comparison import methods
from tf_regal.comparison.methods import Spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("brkga", Spec("brkga", "brkga", 70, 2.0)),
        ("brkga:500000", Spec("brkga:500000", "brkga", 500_000, None)),
        ("brkga:60s", Spec("brkga:60s", "brkga", methods.UNLIMITED, 60.0)),
        ("heft:0.5s", Spec("heft:0.5s", "heft", methods.UNLIMITED, 0.5)),
    ],
)
def test_parse(text, expected):
    assert Spec.parse(text, 70, 2.0) == expected


@pytest.mark.parametrize("text", ["brkga:", "brkga:0", "brkga:-5", "brkga:1e5", "brkga:0s", "brkga:s", "brkga:5:6", "brkga:5 s"])
def test_budgets_that_are_none(text):
    with pytest.raises(errors.InvalidArgumentError, match=r"the budget .* is not valid; give evaluations, as in brkga:500000, or seconds"):
        Spec.parse(text, 70)


def test_unknown_methods():
    with pytest.raises(errors.InvalidArgumentError, match=r"'brkg' is not known; .*Did you mean 'brkga'\?"):
        Spec.parse("brkg:5", 70)


def test_every_method_is_resolved():
    assert {name: methods.resolve(name) for name in search.METHODS} == search.METHODS


def test_versions_of_methods_are_of_what_they_import():
    names = {path.name for path in methods._imported("tf_regal.search.regal")}
    assert {"regal.py", "task.py"} <= names
    assert not {"errors.py", "planner.py", "worker.py"} & names
    assert methods.code_version("regal") != methods.code_version("random")
    assert methods.code_version("heft") == methods.code_version("critical_path")  # one module


@pytest.fixture
def version(tmp_path, monkeypatch):
    """version(sources): the version of a method in search/one.py of a package with these files."""
    run = types.SimpleNamespace(__module__="tf_regal.search.one")
    monkeypatch.setattr(methods, "_ROOT", tmp_path)
    monkeypatch.setattr(methods, "_core", lambda: b"core")
    monkeypatch.setattr(methods, "resolve", lambda name: functools.partial(lambda: 0) if name == "partial" else run)

    def clear():
        for cached in (methods.code_version, methods._file, methods._tree):
            cached.cache_clear()

    def call(sources):
        clear()
        (tmp_path / "search").mkdir(exist_ok=True)
        for name, text in sources.items():
            (tmp_path / "search" / name).write_text(text)
        return methods.code_version("one")

    yield call
    clear()


def test_versions_change_with_the_code(version, monkeypatch):
    sources = {"one.py": "from tf_regal.search import two\nx = 1\n", "two.py": "y = 1\n", "three.py": "z = 1\n"}
    first = version(sources)
    assert version({"one.py": "# a comment\nfrom tf_regal.search import two\n\nx  =  1\n"}) == first
    assert version({"three.py": "z = 2\n"}) == first  # imported by nothing
    changed = version({"two.py": "y = 2\n"})
    assert changed != first
    assert version({"two.py": "y = 1\n", "one.py": "from tf_regal.search import two\nx = 2\n"}) not in (first, changed)
    monkeypatch.setattr(methods, "_core", lambda: b"another core")
    assert version(sources) != first


def test_imports_inside_functions_count(version):
    sources = {"one.py": "def run():\n    import tf_regal.search.two\n", "two.py": "y = 1\n"}
    assert version(sources) != version({"two.py": "y = 2\n"})


def test_proposals():
    identify = {"mine": "abc"}.__getitem__
    spec = Spec.parse("brkga@mine:4600", 70, 2.0, identify)
    assert spec == Spec("brkga@mine:4600", "brkga", 4600, None, "mine", "abc")
    assert spec.full_method == "brkga@mine"
    assert Spec.parse("regal@mine", 70, None, identify) == Spec("regal@mine", "regal", 70, None, "mine", "abc")


@pytest.mark.parametrize(
    ("text", "message"),
    [("heft@mine", "heft draws nothing from a proposal"), ("brkg@mine", "'brkg' is not known"), ("brkga@mine:5x", "the budget '5x' is not valid")],
)
def test_proposals_that_do_not_go(text, message):
    with pytest.raises(errors.InvalidArgumentError, match=message):
        Spec.parse(text, 70, None, lambda name: "abc")

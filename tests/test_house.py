"""Who may import whom, and what importing costs (docs: the design's house rules), read from the sources of every module."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))

import import_graph

# bazel: manual (reads the whole tree)

PUBLIC = [
    "Plan",
    "Report",
    "Topology",
    "apply",
    "disable",
    "enable",
    "errors",
    "function",
    "is_enabled",
    "load_plan",
    "move_variables",
    "optimize",
    "plan",
    "profile",
    "reports",
    "write_plan",
]

MAX_LINES = 400

# Import names that are TensorFlow or bring it.
TENSORFLOW = {"tensorflow", "keras", "tf_keras", "spektral"}

# Rooms whose modules may import TensorFlow when they are imported, and modules in them that may not: what the command line,
# the search and other programs use of them must cost no TensorFlow.
WITH_TENSORFLOW = {"graph", "costs", "rewrite", "hook", "policy", "api", "_tf_private"}
WITHOUT_TENSORFLOW = {
    "tf_regal.graph.opgraph", "tf_regal.graph.semantics", "tf_regal.graph.regions", "tf_regal.graph.task_graphs",
    "tf_regal.policy", "tf_regal.policy.cards", "tf_regal.policy.config", "tf_regal.policy.features", "tf_regal.policy.handmade", "tf_regal.policy.inference",
    "tf_regal.policy.instances", "tf_regal.policy.pgpe", "tf_regal.policy.rollouts", "tf_regal.policy.training_set",
}  # fmt: skip

# Rooms that never import TensorFlow, not even inside functions, nor a module that does so when it is imported.
NEVER = {"ops", "problem", "search", "plans", "views", "errors", "comparison"}

MODULES = import_graph.read(ROOT, ["tf_regal"])


def room(module):
    """The part of the package that a module belongs to: search for tf_regal.search.brkga, problem for tf_regal.problem."""
    return (module.split(".") + [""])[1]


def is_tensorflow(name):
    return name.partition(".")[0] in TENSORFLOW


def brings_tensorflow(name):
    return any(is_tensorflow(n) for n in import_graph.loaded(MODULES, name))


def where(module, item):
    return f"{module.path}:{item.line} imports {item.module}{'.' + item.attribute if item.attribute else ''}"


def broken(rule):
    """Every import for which rule(module, item) is true, as text."""
    return [where(m, item) for m in MODULES.values() for item in m.imports if rule(m, item)]


def test_modules_were_found():
    assert {"tf_regal", "tf_regal.ops", "tf_regal.problem", "tf_regal.search", "tf_regal.hook", *WITHOUT_TENSORFLOW} <= set(MODULES)
    assert brings_tensorflow("tf_regal._tf_private")  # else the tests below test nothing
    assert brings_tensorflow("tf_regal.graph.builder")


def test_ops_imports_nothing_of_the_package():
    assert not broken(lambda m, i: room(m.name) == "ops" and i.module.startswith("tf_regal") and room(i.module) != "ops")


# Makes variables where a plan wants them, which only a TensorFlow that is there already can do.
LATE = {"tf_regal.plans.variables"}


def test_rooms_without_tensorflow_never_import_it():
    assert not broken(lambda m, i: room(m.name) in NEVER and not (m.name in LATE and i.late) and (is_tensorflow(i.module) or brings_tensorflow(i.module)))


# Rooms for measuring, which nothing but the command line may depend on, and what of the package they may import (late imports of bench apart).
MEASURING = {"comparison", "bench"}
MEASURED = {"", "ops", "problem", "search", "plans", "devices", "graph", "settings", "errors"}


def test_measuring_is_apart():
    assert {room(name) for name in MODULES} >= MEASURING
    assert not broken(lambda m, i: room(m.name) not in MEASURING | {"cli"} and room(i.module) in MEASURING)
    assert not broken(
        lambda m, i: room(m.name) in MEASURING
        and i.module.startswith("tf_regal")
        and room(i.module) not in MEASURED | {room(m.name)}
        and not (i.late and room(m.name) == "bench")
    )


@pytest.mark.parametrize("name", sorted(n for n in MODULES if room(n) not in WITH_TENSORFLOW or n in WITHOUT_TENSORFLOW))
def test_importing_costs_no_tensorflow(name):
    bringing = [where(MODULES[name], i) for i in MODULES[name].imports if not i.late and brings_tensorflow(i.module)]
    assert not bringing
    around = [n for n in import_graph.with_parents(name)[:-1] if brings_tensorflow(n)]
    assert not around, f"{around} import TensorFlow, and Python imports them with {name}"


def test_private_tensorflow_is_imported_in_one_file():
    def private(name):
        return name.startswith(("tensorflow.python", "tensorflow.core", "tensorflow.compiler"))

    assert not broken(
        lambda m, i: m.name != "tf_regal._tf_private"
        and (private(i.module) or (i.module == "tensorflow" and i.attribute in ("python", "core", "compiler")))
    )


def test_modules_take_names_from_where_they_are_defined():
    """The lazy names of the package itself are for users: inside they would hide who imports whom."""
    assert not broken(lambda m, i: i.module == "tf_regal" and i.attribute not in (None, "__version__"))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_module_is_not_too_long(name):
    lines = MODULES[name].text.count("\n")
    assert lines <= MAX_LINES, f"{MODULES[name].path} has {lines} lines, more than {MAX_LINES}: split it"


def test_public_names():
    import tf_regal

    assert tf_regal.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(tf_regal))


def test_version_is_the_same_everywhere():
    import tf_regal

    assert importlib.metadata.version("tf-regal") == tf_regal.__version__


def test_unknown_name_is_an_attribute_error():
    import tf_regal

    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'; it has Plan, Report"):
        _ = tf_regal.nonsense


# What follows is tried out, in another process, which starts without TensorFlow.

REPORT = "\nimport sys; print(sorted({'tensorflow', 'keras', 'tf_keras', 'spektral'} & set(sys.modules)))"


def run(code, tmp_path):
    done = subprocess.run([sys.executable, "-c", code + REPORT], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_importing_the_package_imports_no_tensorflow(tmp_path):
    assert run("import tf_regal; dir(tf_regal); tf_regal.Plan, tf_regal.Topology, tf_regal.errors", tmp_path) == ["[]"]


def test_importing_the_rooms_without_tensorflow_imports_none(tmp_path):
    names = sorted(n for n in MODULES if (room(n) not in WITH_TENSORFLOW | {"tensorboard", "__main__"}) or n in WITHOUT_TENSORFLOW)
    assert run(f"import importlib\nfor name in {names}: importlib.import_module(name)", tmp_path) == ["[]"]


def test_help_of_the_command_line_imports_no_tensorflow(tmp_path):
    code = """
from tf_regal import cli
try:
    status = cli.main(["--help"])
except SystemExit as done:
    status = done.code
assert not status, status
"""
    lines = run(code, tmp_path)
    assert lines[0].startswith("usage: tf-regal")
    assert lines[-1] == "[]"


# The wheel.

installed = pytest.mark.skipif("TF_REGAL_TEST_INSTALLED" not in os.environ, reason="`make test` runs this: it is about the installed wheel")


@installed
def test_what_is_installed_is_what_is_tested():
    import tf_regal
    from tf_regal import ops

    for module in (tf_regal, ops, ops._core):
        path = pathlib.Path(module.__file__)
        assert "site-packages" in path.parts
        assert not path.is_relative_to(ROOT / "tf_regal")
    assert str(ROOT) not in sys.path


@installed
def test_wheel_holds_every_module():
    files = {str(f) for f in importlib.metadata.files("tf-regal")}
    assert {m.path.as_posix() for m in MODULES.values()} == {f for f in files if f.startswith("tf_regal/") and f.endswith(".py")}
    assert {"tf_regal/py.typed", "tf_regal/ops/_core.pyi"} <= files
    assert not [f for f in files if f.startswith(("tests", "tools", "examples", "benchmarks")) or f.endswith("BUILD")]

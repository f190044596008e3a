"""The BUILD files are in step with the tree. `make build-files` brings them there."""

import ast
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))

import update_build_files as tool

# bazel: manual (reads the whole tree)

HINT = "; run `make build-files`"


def build_files():
    ignored = (".", "bazel-", "build", "dist", "out")
    folders = [p for p in sorted(ROOT.iterdir()) if p.is_dir() and not p.name.startswith(ignored)]
    return [ROOT / "BUILD", *(p for folder in folders for p in sorted(folder.rglob("BUILD")))]


def rules(path):
    """(name of the rule, {attribute: value}) of a BUILD file, which is Python to read. Values are lists of their strings."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node.value.func.id, {k.arg: strings(k.value) for k in node.value.keywords}


def strings(node):
    """The strings in a value, without those in the patterns of a glob."""
    if isinstance(node, ast.Call):
        return []
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    return [s for child in ast.iter_child_nodes(node) for s in strings(child)]


def sources(folder, rule=None):
    path = folder / "BUILD"
    found = [attributes.get("srcs", []) for name, attributes in rules(path) if rule in (None, name)] if path.is_file() else []
    return {s for srcs in found for s in srcs}


def python_files(*folders):
    return sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py") if "__pycache__" not in p.parts)


def test_running_the_tool_changes_nothing():
    wanted = tool.build_files()
    found = {p: (ROOT / p).read_text(encoding="utf-8") for p in wanted if (ROOT / p).is_file()}
    different = [str(p) for p in wanted if found.get(p) != wanted[p]]
    assert not different, f"out of step: {different}{HINT}"
    assert not list(tool.stale()), HINT


# What follows reads the BUILD files by itself: it holds whatever the tool does.


def test_every_module_is_in_a_build_file():
    missing = [str(p.relative_to(ROOT)) for p in python_files("tf_regal") if p.name not in sources(p.parent, "py_library")]
    assert not missing, f"in no py_library: {missing}{HINT}"


def test_every_test_is_in_a_build_file():
    tests = [p for p in python_files("tests") if p.name.startswith("test_")]
    assert len(tests) > 10
    missing = [str(p.relative_to(ROOT)) for p in tests if p.name not in sources(p.parent, "py_test")]
    assert not missing, f"in no py_test: {missing}{HINT}"


def test_every_helper_of_the_tests_is_in_a_build_file():
    missing = [str(p.relative_to(ROOT)) for p in python_files("tests") if p.name not in sources(p.parent)]
    assert not missing, f"in no BUILD file: {missing}{HINT}"


def test_all_of_the_core_is_in_a_build_file():
    for folder, suffixes in (("tf_regal/ops", (".cc", ".h")), ("tests/ops", (".cc",))):
        named = {s for _, attributes in rules(ROOT / folder / "BUILD") for s in attributes.get("srcs", []) + attributes.get("hdrs", [])}
        assert {p.name for p in (ROOT / folder).iterdir() if p.suffix in suffixes} <= named


@pytest.mark.parametrize("path", build_files(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_named_files_and_targets_exist(path):
    local = {attributes["name"][0] for _, attributes in rules(path) if "name" in attributes}
    for rule, attributes in rules(path):
        for value in attributes.get("srcs", []) + attributes.get("hdrs", []) + attributes.get("data", []):
            assert (path.parent / value).is_file() or value.removeprefix(":") in local, f"{rule} names {value}, which is not there{HINT}"
        for dep in attributes.get("deps", []):
            assert target_exists(path, local, dep), f"{rule} {attributes['name']} depends on {dep}, which is not there{HINT}"


def target_exists(path, local, dep):
    if dep.startswith(":"):
        return dep[1:] in local
    if dep.startswith("@local_python//:"):
        name = dep.rpartition(":")[2]
        return f'name = "{name}"' in (ROOT / "tools/bazel/python_configure.bzl").read_text(encoding="utf-8")
    folder, _, name = dep.removeprefix("//").partition(":")
    other = ROOT / folder / "BUILD"
    return other.is_file() and [name or folder.rpartition("/")[2]] in [attributes.get("name") for _, attributes in rules(other)]


# The tool itself, on small trees.


class Tree:
    def __init__(self, root):
        self.root = root

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def build(self, folder):
        """Lets the tool write; {target: {attribute: value}} of this folder."""
        for path, text in tool.build_files(self.root).items():
            self.write({path: text})
        return {attributes["name"][0]: attributes for _, attributes in rules(self.root / folder / "BUILD") if "name" in attributes}


@pytest.fixture
def tree(tmp_path):
    tree = Tree(tmp_path)
    tree.write({"tf_regal/__init__.py": "", "tests/conftest.py": "import pytest\n", "tests/__init__.py": ""})
    return tree


def test_deps_follow_the_imports(tree):
    tree.write(
        {
            "tf_regal/errors.py": "import os\n",
            "tf_regal/a/__init__.py": "from tf_regal.a.one import f\n",
            "tf_regal/a/one.py": "import numpy as np\nfrom tf_regal import errors\n",
            "tf_regal/b/__init__.py": "",
            "tf_regal/b/two.py": "def f():\n    from tf_regal.a import one\n",
            "tests/b/test_two.py": "from tf_regal.b import two\n",
        }
    )
    assert tree.build("tf_regal/a")["one"]["deps"] == ["//tf_regal:errors", "//tf_regal:init", "//tools/bazel/pip:numpy"]
    assert tree.build("tf_regal/a")["a"]["deps"] == [":one", "//tf_regal:init"]
    assert tree.build("tf_regal/b")["two"]["deps"] == ["//tf_regal:init", "//tf_regal/a"]
    assert tree.build("tf_regal")["tf_regal"]["deps"] == [":errors", ":init", "//tf_regal/a", "//tf_regal/b"]
    assert tree.build("tests/b")["test_two"]["deps"] == ["//tests:conftest", "//tests:init", "//tf_regal/b"]


def test_a_cycle_is_cut_and_made_good_in_the_tests(tree):
    tree.write(
        {
            "tf_regal/a/__init__.py": "import tf_regal.b\n",
            "tf_regal/b/__init__.py": "def f():\n    import tf_regal.a\n",
            "tests/test_b.py": "import tf_regal.b\n",
        }
    )
    assert tree.build("tf_regal/a")["a"]["deps"] == ["//tf_regal:init", "//tf_regal/b"]
    assert tree.build("tf_regal/b")["b"]["deps"] == ["//tf_regal:init"]
    assert {"//tf_regal/a", "//tf_regal/b"} <= set(tree.build("tests")["test_b"]["deps"])


@pytest.mark.parametrize(
    ("files", "tags"),
    [
        ({"tests/x/test_x.py": "import numpy\n"}, []),
        ({"tests/x/test_x.py": "import tensorflow as tf\n"}, ["requires-tensorflow"]),
        ({"tests/x/test_x.py": "def test():\n    import keras\n"}, ["requires-tensorflow"]),
        ({"tests/x/test_x.py": "import pytest\npytest.importorskip('tensorflow')\n"}, ["requires-tensorflow"]),
        ({"tests/x/test_x.py": "CODE = 'import tensorflow as tf'\n"}, ["requires-tensorflow"]),
        ({"tests/x/test_x.py": "from tf_regal import heavy\n", "tf_regal/heavy.py": "import tensorflow\n"}, ["requires-tensorflow"]),
        ({"tests/x/test_x.py": "from tf_regal import lazy\n", "tf_regal/lazy.py": "def f():\n    import tensorflow\n"}, []),
        (
            {"tests/x/test_x.py": "", "tests/x/conftest.py": "import tf_setup\n", "tests/tf_setup.py": "import tensorflow\n"},
            ["requires-tensorflow"],
        ),
        ({"tests/x/test_x.py": "# bazel: large manual (why)\n"}, ["manual"]),
    ],
)
def test_tags(tree, files, tags):
    tree.write(files)
    attributes = tree.build("tests/x")["test_x"]
    assert attributes.get("tags", []) == tags
    assert attributes["size"] == (["large"] if "manual" in tags else ["medium"])


def test_what_is_written_by_hand_is_kept(tree):
    by_hand = '# By hand: begin\n\n# Why.\ncc_binary(\n    name = "_core.so",\n    linkshared = True,\n)\n\n# By hand: end\n'
    tree.write({"tf_regal/ops/__init__.py": "from tf_regal.ops._core import Simulator\n", "tf_regal/ops/BUILD": by_hand})
    built = tree.build("tf_regal/ops")
    assert built["ops"]["data"] == [":_core.so"]
    assert built["ops"]["deps"] == ["//tf_regal:init"]
    assert tree.build("tf_regal/ops") == built


def test_data_files_go_with_the_package(tree):
    files = ("__init__.py", "table.json", "static/page.html", "__pycache__/x.pyc")
    tree.write({f"tf_regal/a/{name}": "" for name in files})
    assert tree.build("tf_regal/a")["a"]["data"] == ["table.json"]
    assert '["table.json"] + glob(["static/**"])' in (tree.root / "tf_regal/a/BUILD").read_text(encoding="utf-8")

"""Writes the BUILD files from the tree and its imports: update_build_files.py [--check | --list].

Every folder with sources gets one. A module is a py_library, a test a py_test, a script of examples/ and benchmarks/ a
py_binary; what they depend on follows from what they import. What stands between the two marks of a BUILD file (C++) is
written by hand and kept. Run it after adding, moving or deleting a file or an import; tests/test_build_files.py fails
until then.

Python imports a package's __init__.py with any of its modules, so from outside a package is one target, its `__init__.py`
with all its modules; the modules are targets for the others of the same folder only. Bazel allows no cycles, Python does
(where one of the imports is inside a function, or goes past the other package's __init__.py): such an import is left out of
the library's deps and added to those of the tests that get there.

A comment in a test, `# bazel: WORD ... (why)`, sets its size (small, medium, large, enormous) or adds a tag, such as manual.
requires-tensorflow needs no comment where the test, or what it imports, imports TensorFlow at once.
"""

# ruff: noqa: T201 (a script: it prints)

import argparse
import ast
import collections
import pathlib
import re
import sys

import import_graph
from import_graph import ROOT

BEGIN, END = "# By hand: begin", "# By hand: end"
HEADER = "# Written by tools/update_build_files.py; only what is between the marks `By hand`, if there are any, is kept.\n"
RULES = {
    **{rule: f"@rules_cc//cc:{rule}.bzl" for rule in ("cc_binary", "cc_library", "cc_test")},
    **{rule: f"@rules_python//python:{rule}.bzl" for rule in ("py_binary", "py_library")},
    "py_test": "//tools/bazel:pytest.bzl",
}
PIP = "tools/bazel/pip"
SIZES = ("small", "medium", "large", "enormous")
PIP_NAMES = {"absl": "absl-py", "google": "protobuf"}  # where it is not the name that is imported
TENSORFLOW = ("tensorflow", "keras", "tf_keras", "spektral")
# tomllib came with 3.11; the lists of the supported versions differ in nothing else that is used here.
STANDARD = sys.stdlib_module_names | {"tomllib"}
NOT_DATA = (".py", ".pyc", ".pyo", ".so", ".cc", ".h")


class Target:
    """One rule. Its deps are labels; `loads` and `late` are those that it needs before cycles are cut."""

    def __init__(self, rule, folder, name, srcs=(), **attributes):
        self.rule, self.folder, self.name, self.srcs, self.attributes = rule, folder, name, list(srcs), attributes
        self.loads, self.late, self.deps = set(), set(), set()

    @property
    def label(self):
        return label(self.folder, self.name)


def label(folder, name):
    folder = folder.as_posix()
    return f"//{folder}" if folder.rpartition("/")[2] == name else f"//{folder}:{name}"


def build_files(root=ROOT):
    """{path below the root: content} of every BUILD file that this script writes."""
    modules = import_graph.read(root)
    targets = {t.label: t for t in _targets(root, modules)}
    _cut_cycles(targets)
    _complete(targets)
    by_folder = collections.defaultdict(list)
    for target in targets.values():
        by_folder[target.folder].append(target)
    files = {folder / "BUILD": _render(root, folder, members) for folder, members in by_folder.items()}
    pip = sorted({d.rpartition(":")[2] for t in targets.values() for d in t.deps if d.startswith(f"//{PIP}:")})
    files[pathlib.Path(PIP, "BUILD")] = _render_pip(pip)
    return dict(sorted(files.items()))


def _targets(root, modules):
    by_folder = collections.defaultdict(dict)
    for module in modules.values():
        by_folder[module.folder][module.name] = module
    split = {f for f in by_folder for other in by_folder if other.parent == f and f.parts[0] == "tf_regal"}
    for folder, members in by_folder.items():
        data = _data(root, folder)
        made = []
        for module in members.values():
            target = _target(root, module, modules, split, data)
            for item in module.imports:
                needed = _labels(item, module, modules, split)
                (target.late if item.late else target.loads).update(needed)
            target.loads |= _surroundings(module, modules)
            target.loads.discard(target.label)
            made.append(target)
        if folder.parts[0] == "tf_regal":
            made += _package(folder, made, by_folder, split)
        yield from made


def _target(root, module, modules, split, data):
    folder, stem = module.folder, module.path.stem
    kind = folder.parts[0]
    if kind in ("examples", "benchmarks") and 'if __name__ == "__main__"' in module.text:
        return Target("py_binary", folder, stem, [module.path.name], tags=_tensorflow_tag(module, modules))
    if kind == "tests":
        if stem.startswith("test_"):
            sizes, tags = _words(module)
            tags = sorted({*tags, *_tensorflow_tag(module, modules)})
            return Target("py_test", folder, stem, [module.path.name], size=(sizes or ["medium"])[0], data=data, tags=tags)
        return Target("py_library", folder, "init" if module.is_package else stem, [module.path.name], testonly=True)
    if not module.is_package:
        return Target("py_library", folder, stem, [module.path.name])
    name = "init" if folder in split or kind != "tf_regal" else folder.name
    return Target("py_library", folder, name, [module.path.name], data=data)


def _package(folder, made, by_folder, split):
    """The package as others see it. Where it has packages inside, its __init__.py is a target of its own, for them."""
    if folder not in split:
        init = next(t for t in made if t.name == folder.name)
        init.loads |= {t.label for t in made} - {init.label}
        return []
    everything = Target("py_library", folder, folder.name)
    everything.loads = {t.label for t in made} | {label(f, f.name) for f in by_folder if f.parent == folder}
    return [everything]


def _labels(item, module, modules, split):
    """What must be there for this import."""
    if item.module not in modules:
        top = item.module.partition(".")[0]
        return set() if top in STANDARD or top in import_graph.FOLDERS else {f"//{PIP}:{PIP_NAMES.get(top, top)}"}
    other = modules[item.module]
    if other.folder == module.folder:
        same = "init" if other.is_package and (module.folder in split or module.folder.parts[0] != "tf_regal") else other.path.stem
        return set() if same == "__init__" else {label(other.folder, same)}
    if other.folder.parts[0] == "tf_regal":
        if other.is_package or other.folder not in split:
            return {label(other.folder, other.folder.name)}
        return {label(other.folder, other.path.stem)}
    return {label(other.folder, "init" if other.is_package else other.path.stem), *_surroundings(other, modules)}


def _surroundings(module, modules):
    """What Python or pytest loads with a module unasked: the packages around it, and for tests every conftest.py above."""
    packages = [modules[n].folder for n in import_graph.with_parents(module.name)[:-1] if n in modules]
    if module.folder.parts[0] == "tf_regal":
        return {label(f, "init") for f in packages if f != module.folder or f.name == module.folder.parts[0]}
    return {label(f, "init") for f in packages} | {label(modules[n].folder, "conftest") for n in _conftests(module, modules)}


def _conftests(module, modules):
    if module.path.stem != "conftest" and not module.path.stem.startswith("test_"):
        return []
    names = [f"{n}.conftest" for n in import_graph.with_parents(module.name)[:-1]]
    return [n for n in names if n in modules and n != module.name]


def _tensorflow_tag(module, modules):
    """['requires-tensorflow'] where the file loads it, imports it later on, or writes a program that does."""
    starts = [module.name, *_conftests(module, modules), *(item.module for item in module.imports)]
    names = {name for start in starts for name in import_graph.loaded(modules, start)}
    programs = [n.value for n in ast.walk(module.tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    needed = any(n.partition(".")[0] in TENSORFLOW for n in names) or any(re.search(r"\bimport tensorflow\b", p) for p in programs)
    return ["requires-tensorflow"] if needed else []


def _words(module):
    sizes, tags = [], []
    for comment in re.findall(r"^# bazel: ([\w -]+)", module.text, re.MULTILINE):
        for word in comment.split():
            (sizes if word in SIZES else tags).append(word)
    return sizes, tags


def _data(root, folder):
    """(files of the folder, its subfolders without Python in them) that are no sources."""
    files, folders = [], []
    for path in sorted((root / folder).iterdir()):
        if path.name.startswith((".", "__pycache__")) or path.name == "BUILD" or path.suffix in NOT_DATA:
            continue
        if path.is_file():
            files.append(path.name)
        elif any(path.rglob("*")) and not any(path.rglob("*.py")):
            folders.append(path.name)
    return files, folders


def _reach(targets, start, field):
    found, todo = set(), [start]
    while todo:
        at = todo.pop()
        if at in found:
            continue
        found.add(at)
        if at in targets:
            todo.extend(getattr(targets[at], field))
    return found


def _cut_cycles(targets):
    for field in ("loads", "late"):
        for target in targets.values():
            for dep in sorted(getattr(target, field) - {target.label}):
                if target.label not in _reach(targets, dep, "deps"):
                    target.deps.add(dep)


def _complete(targets):
    """Tests and programs also get what they need of the imports that were cut."""
    for target in targets.values():
        target.needed = target.loads | target.late
    for target in targets.values():
        if target.rule in ("py_test", "py_binary"):
            for missing in sorted(_reach(targets, target.label, "needed")):
                if missing not in _reach(targets, target.label, "deps"):
                    target.deps.add(missing)


# Text. The layout is buildifier's.


def _render(root, folder, members):
    path = root / folder / "BUILD"
    by_hand = ""
    if path.exists():
        match = re.search(f"^{BEGIN}\n(.*)^{END}\n", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        by_hand = match.group(1).strip() if match else ""
    members = sorted(members, key=lambda t: (t.name != folder.name, t.rule == "py_test", t.name))
    for shared in re.findall(r'^ *name = "(\w+\.so)"', by_hand, re.MULTILINE):
        next(t for t in members if t.name == folder.name).attributes["data"][0].append(f":{shared}")
    blocks = ["\n".join(_loads({t.rule for t in members} | set(re.findall(r"^(\w+)\(", by_hand, re.MULTILINE))))]
    blocks += ['package(default_visibility = ["//visibility:public"])', 'licenses(["notice"])']
    if by_hand:
        blocks += [BEGIN, by_hand, END]
    blocks += [_rule(t) for t in members]
    return HEADER + "\n" + "\n\n".join(blocks) + "\n"


def _render_pip(names):
    blocks = ["\n".join(_loads({"py_library"})), 'package(default_visibility = ["//visibility:public"])', 'licenses(["notice"])']
    blocks.append("# Packages that must be installed in the Python of @local_python.")
    blocks += [f'py_library(name = "{name}")' for name in names]
    return HEADER + "\n" + "\n\n".join(blocks) + "\n"


def _loads(rules):
    found = sorted((not RULES[r].startswith("@"), RULES[r], r) for r in rules if r in RULES)
    return [f'load("{file}", "{rule}")' for _, file, rule in found]


def _rule(target):
    given = dict(target.attributes)
    lines = [f"    name = {_quoted(target.name)},"]
    if "size" in given:
        lines.append(f"    size = {_quoted(given['size'])},")
    if given.get("testonly"):
        lines.append("    testonly = True,")
    if target.srcs:
        lines.append(f"    srcs = {_list(target.srcs)},")
    files, folders = given.get("data") or ((), ())
    if files or folders:
        parts = [_list(sorted(files, key=_order))] if files else []
        parts += [f"glob({_list([f'{f}/**' for f in folders])})"] if folders else []
        lines.append(f"    data = {' + '.join(parts)},")
    if given.get("tags"):
        lines.append(f"    tags = {_list(given['tags'])},")
    if target.deps:
        own = f"//{target.folder.as_posix()}:"
        deps = [":" + d.removeprefix(own) if d.startswith(own) else d for d in target.deps]
        package = label(target.folder, target.folder.name)
        deps = [f":{target.folder.name}" if d == package else d for d in deps]
        lines.append(f"    deps = {_list(sorted(deps, key=_order))},")
    if len(lines) == 1:
        return f"{target.rule}(name = {_quoted(target.name)})"
    return f"{target.rule}(\n" + "\n".join(lines) + "\n)"


def _order(label_or_file):
    return (label_or_file.startswith("//"), label_or_file.startswith(":"), label_or_file.replace(":", "!"))


def _quoted(text):
    return f'"{text}"'


def _list(items):
    if len(items) == 1:
        return f"[{_quoted(items[0])}]"
    return "[\n" + "".join(f"        {_quoted(i)},\n" for i in items) + "    ]"


def stale(root=ROOT):
    """BUILD files with this script's header for which there is nothing left to say."""
    written = set(build_files(root))
    for folder in (*import_graph.FOLDERS, PIP):
        for path in (root / folder).rglob("BUILD"):
            if path.relative_to(root) not in written and path.read_text(encoding="utf-8").startswith(HEADER):
                yield path.relative_to(root)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where a file would change")
    parser.add_argument("--list", action="store_true", help="only print the names of all BUILD files, also of those written by hand")
    args = parser.parse_args(argv)
    files = build_files()
    if args.list:
        print("\n".join(sorted({*map(str, files), *by_hand_files()})))
        return 0
    changed = [p for p, text in files.items() if not (ROOT / p).exists() or (ROOT / p).read_text(encoding="utf-8") != text]
    gone = list(stale())
    for path in changed + gone:
        print(f"{'would change' if args.check else 'deleted' if path in gone else 'wrote'} {path}")
    if args.check:
        return int(bool(changed + gone))
    for path in changed:
        (ROOT / path).write_text(files[path], encoding="utf-8")
    for path in gone:
        (ROOT / path).unlink()
    return 0


def by_hand_files(root=ROOT):
    return ["BUILD", *(p.relative_to(root).as_posix() for p in (root / "tools").rglob("BUILD") if p.parent != root / PIP)]


if __name__ == "__main__":
    sys.exit(main())

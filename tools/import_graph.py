"""Who imports whom in this repository, read from the sources without running them.

tools/update_build_files.py writes the BUILD files from it, tests/test_house.py checks the directions.
"""

import ast
import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("tf_regal", "tests", "examples", "benchmarks")


@dataclasses.dataclass(frozen=True)
class Import:
    """One import. `module` is a dotted name; `attribute` is what is taken out of it, where that is no module itself."""

    module: str
    attribute: str | None
    late: bool
    """Inside a function: not run when the importing module is imported."""
    line: int


@dataclasses.dataclass(frozen=True)
class Module:
    name: str
    path: pathlib.Path
    """Below the root."""
    tree: ast.Module
    text: str
    imports: tuple[Import, ...]

    @property
    def folder(self):
        return self.path.parent

    @property
    def is_package(self):
        return self.path.name == "__init__.py"


def read(root=ROOT, folders=FOLDERS):
    """{dotted name: Module} of all Python files below these folders."""
    paths = {}
    for folder in folders:
        for path in (root / folder).rglob("*.py"):
            path = path.relative_to(root)
            if not any(part.startswith((".", "__pycache__")) for part in path.parts):
                paths[_dotted(path)] = path
    modules = {}
    for name, path in sorted(paths.items()):
        text = (root / path).read_text(encoding="utf-8")
        tree = ast.parse(text, str(path))
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found = _imports(tree, package, paths)
        if path.parts[0] == "tests":
            found = (_helper(item, paths) for item in found)
        modules[name] = Module(name, path, tree, text, tuple(found))
    return modules


def with_parents(name):
    """A module and the packages around it, which Python imports before it: a.b.c → a, a.b, a.b.c."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def loaded(modules, name, late=False):
    """Dotted names of all that is imported when the module is: of this repository and, as leaves, of other packages.

    late: follow the imports inside functions, too.
    """
    found, todo = set(), with_parents(name)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        if name in modules:
            for item in modules[name].imports:
                if late or not item.late:
                    todo.extend(with_parents(item.module) if item.module in modules else [item.module])
    return found


def _dotted(path):
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree, package, known):
    for node, late in _nodes(tree, False):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, None, late, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                around = package.split(".")
                around = around[: len(around) - node.level + 1]
                base = ".".join(around + ([node.module] if node.module else []))
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Import(inner, None, late, node.lineno) if inner in known else Import(base, alias.name, late, node.lineno)
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "importorskip"):
            yield from (Import(a.value, None, late, node.lineno) for a in node.args[:1] if isinstance(getattr(a, "value", None), str))


def _helper(item, known):
    """tests/conftest.py puts tests/ on the path: `import tf_setup` there is tests.tf_setup."""
    inner = f"tests.{item.module}"
    return dataclasses.replace(item, module=inner) if item.module not in known and inner in known else item


def _called(call):
    return getattr(call.func, "attr", None) or getattr(call.func, "id", None)


def _nodes(node, late):
    """All nodes below, each with whether it is inside a function. What only type checkers see is left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child, late
        yield from _nodes(child, late or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))

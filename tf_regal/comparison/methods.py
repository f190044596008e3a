"""What is compared: a search method with its budget, and the version of the code that it is."""

import ast
import dataclasses
import functools
import hashlib
import pathlib
import re

import tf_regal
from tf_regal import errors, ops, search

UNLIMITED = 10**9
"""Evaluations of a method whose budget is seconds only."""

_BUDGET = re.compile(r"(?P<evaluations>[1-9]\d*)|(?P<seconds>\d+(?:\.\d+)?)s")
_ROOT = pathlib.Path(tf_regal.__file__).parent


@dataclasses.dataclass(frozen=True)
class Spec:
    """A method and its budget. label: what it is called in tables, such as "brkga" or "brkga:500000"; seconds: None for no limit.

    proposal: what its keys are drawn from, as the user named it, or None; proposal_version: a digest of what that name means now.
    """

    label: str
    method: str
    evaluations: int
    seconds: float | None = None
    proposal: str | None = None
    proposal_version: str | None = None

    @property
    def full_method(self):
        """The method with its proposal, "brkga@auto"."""
        return self.method if self.proposal is None else f"{self.method}@{self.proposal}"

    @classmethod
    def parse(cls, text, evaluations, seconds=None, identify=None):
        """"M" (with the budget given), "M:N" (N evaluations) or "M:Ss" (S seconds, any number of evaluations); "M@P" for a method with the proposal P.

        identify: a function P → digest, for proposals; InvalidArgumentError where there is no P.
        Raises InvalidArgumentError where the method or its budget is not known.
        """
        name, at, proposal = text.partition("@")
        if at:
            proposal, _, budget = proposal.rpartition(":") if ":" in proposal else (proposal, "", "")
            return cls._with_proposal(text, name, proposal, budget, evaluations, seconds, identify)
        name, colon, budget = text.partition(":")
        resolve(name)
        if not colon:
            return cls(text, name, evaluations, seconds)
        match = _BUDGET.fullmatch(budget)
        if not match or (match["seconds"] and float(match["seconds"]) == 0):
            raise errors.InvalidArgumentError(
                f"methods={text!r}: the budget {budget!r} is not valid; give evaluations, as in {name}:500000, or seconds, as in {name}:60s"
            )
        if match["seconds"]:
            return cls(text, name, UNLIMITED, float(match["seconds"]))
        return cls(text, name, int(match["evaluations"]))

    @classmethod
    def _with_proposal(cls, text, name, proposal, budget, evaluations, seconds, identify):
        resolve(name)
        if not search.uses_proposals(name) or identify is None:
            raise errors.InvalidArgumentError(f"methods={text!r}: {name} draws nothing from a proposal; leave out '@{proposal}', or give brkga, idrs or regal")
        plain = cls.parse(f"{name}:{budget}" if budget else name, evaluations, seconds)
        return dataclasses.replace(plain, label=text, proposal=proposal, proposal_version=identify(proposal))


def resolve(name):
    """The function `run(task, budget)` of a method; InvalidArgumentError where there is none of that name."""
    return search.method(name)


@functools.cache
def code_version(name):
    """The version of the code that decides what a method finds, such as "0.1.0+3f0c…".

    A digest of the method's module, of all modules of the package that it imports, and of the compiled core.
    Comments and layout of the modules do not count.
    """
    run = resolve(name)
    while isinstance(run, functools.partial):
        run = run.func
    digest = hashlib.sha256(_core())
    for path in sorted(_imported(run.__module__)):
        digest.update(str(path.relative_to(_ROOT)).encode())
        digest.update(ast.dump(_tree(path)).encode())
    return f"{tf_regal.__version__}+{digest.hexdigest()[:12]}"


@functools.cache
def _core():
    """The compiled core: its sources may be newer than what runs."""
    return pathlib.Path(ops._core.__file__).read_bytes()


def _imported(module):
    """Files of a module of the package and of all that it imports of the package, errors apart."""
    found, pending = set(), [module]
    while pending:
        path = _file(pending.pop())
        if path is None or path in found or path.name == "errors.py":
            continue
        found.add(path)
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Import):
                pending += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                below = [f"{node.module}.{alias.name}" for alias in node.names]
                # A package's __init__ only gathers names, unless a name is its own.
                pending += [name if _file(name) else node.module for name in below]
    return found


@functools.cache
def _file(module):
    top, *parts = module.split(".")
    if top != "tf_regal" or not parts:
        return None
    path = _ROOT.joinpath(*parts)
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@functools.cache
def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))

"""Which graphs are compared: files, directories of them, and splits of a benchmark set."""

import dataclasses
import json
import os
import pathlib
import re

from tf_regal import errors

KINDS = (
    "a file that `tf-regal plan` reads (.json, .json.xz, .pb, .pbtxt, a SavedModel directory), a directory of such files, "
    "or SPLIT.json:NAME of a benchmark set, such as benchmarks/zoo/split.json:test"
)

_EXPORTED = (".json", ".json.xz")
_OTHERS = (".pb", ".pbtxt")
_SPLIT = re.compile(r"(?P<path>.+\.json):(?P<name>[^:/\\]+)")
_BATCH = re.compile(r"-b\d+$")


@dataclasses.dataclass(frozen=True)
class GraphFile:
    """name: unique among those compared. group: the name without a batch size ("-b16"): its variants count as one when resampling."""

    name: str
    group: str
    path: str

    @property
    def is_exported(self):
        """Whether it is JSON: to be read without TensorFlow."""
        return self.path.endswith(_EXPORTED)


def expand(arguments):
    """What the user names (see KINDS) → (list of GraphFile, in that order and each file once; list of str: what is not there).

    Raises GraphError where something does not exist or holds no graph.
    """
    paths, notes = [], []
    for argument in arguments:
        found = _expand_one(os.fspath(argument), notes)
        paths += [path for path in found if path not in paths]
    stems = [_stem(path) for path in paths]
    names = [stem if stems.count(stem) == 1 else path for stem, path in zip(stems, paths, strict=True)]
    return [GraphFile(name, _BATCH.sub("", name), path) for name, path in zip(names, paths, strict=True)], notes


def _expand_one(argument, notes):
    if os.path.isfile(argument) or _is_saved_model(argument):
        return [argument]
    if os.path.isdir(argument):
        found = [str(path) for path in sorted(pathlib.Path(argument).iterdir()) if path.name.endswith(_EXPORTED + _OTHERS) or _is_saved_model(path)]
        if not found:
            raise errors.GraphError(f"graph={argument!r}: the directory has no graph in it. Give {KINDS}.")
        return found
    match = _SPLIT.fullmatch(argument)
    if match and os.path.isfile(match["path"]):
        return _of_split(pathlib.Path(match["path"]), match["name"], notes)
    raise errors.GraphError(f"graph={argument!r}: there is no such file or directory. Give {KINDS}.")


def _of_split(path, name, notes):
    """Graphs of a benchmark set: {split: {family: [models]}} in `path`, MODEL-MODE-bBATCH.json.xz in graphs/ beside it."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        splits = {split: families for split, families in table.items() if isinstance(families, dict)}
    except (ValueError, AttributeError) as error:
        raise errors.GraphError(f"graph={str(path)!r} is not a split of a benchmark set: {error}. Give {KINDS}.") from error
    if name not in splits:
        raise errors.GraphError(f"graph='{path}:{name}': there is no such split; it has {', '.join(map(repr, splits)) or 'none'}")
    folder, found, missing = path.parent / "graphs", [], []
    for models in splits[name].values():
        for model in models:
            files = sorted(folder.glob(f"{model}-*-b*.json.xz"), key=lambda p: [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", p.name)])
            files = [file for file in files if re.fullmatch(rf"{re.escape(model)}-[a-z]+-b\d+\.json\.xz", file.name)]
            found += map(str, files)
            missing += [] if files else [model]
    if not found:
        raise errors.GraphError(f"graph='{path}:{name}': {folder} has none of its graphs; build them first")
    if missing:
        notes.append(f"{len(missing)} models of {path}:{name} have no graph in {folder}: {', '.join(missing)}")
    return found


def _is_saved_model(path):
    return any(os.path.isfile(os.path.join(path, name)) for name in ("saved_model.pb", "saved_model.pbtxt"))


def _stem(path):
    name = os.path.basename(os.path.normpath(path))
    for suffix in (".json.xz", *_EXPORTED, *_OTHERS):
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return name

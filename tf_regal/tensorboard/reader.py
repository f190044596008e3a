"""What a log directory holds: the list of plans, and the pieces of one. Whatever is damaged or too new becomes a message, never an error of TensorBoard."""

import collections
import contextlib
import json
import os
import threading
import zipfile

from tf_regal import errors
from tf_regal.plans import plan as plan_lib
from tf_regal.tensorboard import metadata
from tf_regal.views import archive, chunks, summary

_MAX_PLANS = 2000
_KEPT = 3  # plans whose pieces had to be made are kept


class NotThere(Exception):
    """The text tells the user of the tab what is missing or damaged, and holds no path from outside the log directory."""


class Reader:
    """data_provider: TensorBoard's. logdir: where assets are, "" where TensorBoard was started with --logdir_spec."""

    def __init__(self, data_provider, logdir):
        self._provider, self._logdir = data_provider, logdir
        self._lock = threading.Lock()
        self._made = collections.OrderedDict()  # path and its time → pieces
        self._listed = {}  # path and its time → summary
        self._runs = {}  # id → the directory that its writer was given, below logdir

    def listing(self, ctx, experiment):
        """(summaries, those with plans first, then the newest first; problems: list of str)."""
        problems, found = [], {}
        for run, tags in (self._provider.list_tensors(ctx, experiment_id=experiment, plugin_name=metadata.PLUGIN_NAME) or {}).items():
            wanted = []
            for tag, series in tags.items():
                version = metadata.version_of(series.plugin_content)
                if version is None:
                    problems.append(f"{run}, {tag}: written by something else than tf-regal, or damaged")
                elif version > metadata.VERSION:
                    problems.append(f"{run}, {tag}: written by a newer version of tf-regal (format {version}): update it here")
                else:
                    wanted.append(tag)
            found |= self._summaries(ctx, experiment, run, wanted, problems)
        for identity, path in self._assets().items():
            if identity not in found:
                found[identity] = self._from_asset(identity, path)
        # What there is to look at comes before functions that were left alone.
        summaries = sorted(found.values(), key=lambda s: (bool(s["has_plan"]), s["time"]), reverse=True)
        if len(summaries) > _MAX_PLANS:
            problems.append(f"{len(summaries)} plans were found; the {_MAX_PLANS} newest are shown")
        return summaries[:_MAX_PLANS], problems

    def _summaries(self, ctx, experiment, run, tags, problems):
        if not tags:
            return {}
        from tensorboard.data import provider

        read = self._provider.read_tensors(
            ctx, experiment_id=experiment, plugin_name=metadata.PLUGIN_NAME, downsample=100, run_tag_filter=provider.RunTagFilter(runs=[run], tags=tags)
        )
        found = {}
        for tag, data in read.get(run, {}).items():
            newest = max(data, key=lambda datum: (datum.step, datum.wall_time), default=None)
            try:
                one = _checked_summary(newest.numpy.item())
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                problems.append(f"{run}, {tag}: the summary is damaged ({error})")
                continue
            one["run"] = run
            one["time"] = newest.wall_time
            # "D/tf_regal/<process>" writes its assets to D.
            self._runs[one["id"]] = os.path.dirname(os.path.dirname(run)) or "."
            found[one["id"]] = one
        return found

    def _assets(self):
        """{id: path of the plan} below the log directory."""
        if not self._logdir:
            return {}
        found = {}
        for directory in [self._logdir, *(os.path.join(self._logdir, run) for run in sorted(set(self._runs.values())) if run != ".")]:
            try:
                names = os.listdir(os.path.join(directory, metadata.ASSETS))
            except OSError:
                continue
            for name in names:
                identity = name.removesuffix(archive.PLAN)
                if identity != name and metadata.is_identity(identity):
                    with contextlib.suppress(NotThere):  # a link out of the log directory, or no file
                        found[identity] = self._file(identity, archive.PLAN)
        return found

    def _from_asset(self, identity, path):
        """A plan file without a summary, copied here by hand perhaps."""
        try:
            key = path, os.stat(path).st_mtime_ns
            if key not in self._listed:
                self._listed[key] = summary.of_plan(self._load(path), identity, file=path) | {"time": os.path.getmtime(path)}
            return self._listed[key]
        except (NotThere, OSError) as error:
            return {
                "version": summary.VERSION, "id": identity, "function": f"plan {identity}", "status": "failed", "reason": str(error), "has_plan": False,
                "time": 0.0,
            }  # fmt: skip

    def _file(self, identity, ending):
        """The path of an asset; only ever inside the log directory. Raises NotThere."""
        if not metadata.is_identity(identity):
            raise NotThere("there is no such plan")
        if not self._logdir:
            raise NotThere("TensorBoard was started with --logdir_spec, where plans' files cannot be found; use --logdir")
        base = os.path.realpath(self._logdir)
        for run in (self._runs.get(identity, "."), "."):
            path = os.path.realpath(os.path.join(base, run, metadata.ASSETS, identity + ending))
            if os.path.commonpath([base, path]) == base and os.path.isfile(path):
                return path
        raise NotThere(f"the plan's file {identity}{ending} is not in the log directory: it was removed, or its writer was stopped before it was done")

    def piece(self, identity, name):
        """The bytes of a piece (`archive.PIECES`) of a plan. Raises NotThere."""
        if name not in archive.PIECES:
            raise NotThere(f"a plan has no piece {name!r}")
        try:
            path = self._file(identity, archive.VIEW)
        except NotThere:
            return self._made_here(identity, name)
        try:
            with zipfile.ZipFile(path) as pieces:
                version = archive.version_of(pieces)
                if version > chunks.VERSION:
                    raise NotThere(f"the plan was written by a newer version of tf-regal (format {version}): update it here")
                if version < chunks.VERSION:
                    return self._made_here(identity, name)
                if pieces.getinfo(name).file_size > archive.MAX_PIECE:
                    raise NotThere(f"the plan's {name} is larger than {archive.MAX_PIECE >> 20} MB")
                return pieces.read(name)
        except KeyError as error:
            raise NotThere(f"the plan has no {name}") from error
        except archive.DAMAGED as error:
            raise NotThere(f"the plan's file {os.path.basename(path)} is damaged ({type(error).__name__})") from error

    def _made_here(self, identity, name):
        """A piece of a plan that has no (or an older) view file."""
        path = self._file(identity, archive.PLAN)
        key = path, os.stat(path).st_mtime_ns
        with self._lock:
            if key not in self._made:
                plan = self._load(path)
                try:
                    self._made[key] = chunks.chunks(plan)
                except Exception as error:  # a plan whose parts fit together, and make no picture
                    raise NotThere(f"the plan's file {os.path.basename(path)} cannot be drawn ({type(error).__name__}: {error})") from error
                while len(self._made) > _KEPT:
                    self._made.popitem(last=False)
            pieces = self._made[key]
        if name not in pieces:
            raise NotThere(f"the plan has no {name}")
        return pieces[name]

    def plan(self, identity):
        """The Plan. Raises NotThere."""
        return self._load(self._file(identity, archive.PLAN))

    def _load(self, path):
        try:
            if os.path.getsize(path) > metadata.MAX_PLAN:
                raise NotThere(f"the plan's file {os.path.basename(path)} is larger than {metadata.MAX_PLAN >> 20} MB")
            return plan_lib.load_plan(path)
        except (errors.TfRegalError, OSError) as error:
            text = str(error).replace(os.path.dirname(path) + os.sep, "")
            raise NotThere(f"the plan's file {os.path.basename(path)} cannot be read: {text}") from error


def _checked_summary(raw):
    """The summary of a string tensor's value. ValueError where it is not one."""
    raw = raw.encode() if isinstance(raw, str) else raw
    if len(raw) > metadata.MAX_SUMMARY:
        raise ValueError(f"it has {len(raw)} bytes")
    found = json.loads(raw)
    if not isinstance(found, dict) or not metadata.is_identity(found.get("id")) or not isinstance(found.get("function"), str):
        raise ValueError("it is not what tf-regal writes")
    if found.get("version", 0) > summary.VERSION:
        raise ValueError("it was written by a newer version of tf-regal: update it here")
    if not all(isinstance(found.get(key), str) for key in ("status", "reason")):
        raise ValueError("its status is missing")
    if found.get("has_plan") and not all(_are_figures(found.get(key)) for key in ("predicted", "default")):
        raise ValueError("its figures are missing")
    if found.get("measured") is not None and not isinstance(found["measured"], dict):
        raise ValueError("what was measured is no figures")
    return found if found.get("has_plan") else found | {"predicted": None, "default": None}


def _are_figures(value):
    """Whether it is what the front end takes for `Figures`."""

    def is_number(x):
        return isinstance(x, (int, float)) and not isinstance(x, bool)

    return (
        isinstance(value, dict) and is_number(value.get("makespan_s")) and isinstance(value.get("peak_bytes"), dict)
        and all(is_number(x) for x in value["peak_bytes"].values())
    )  # fmt: skip

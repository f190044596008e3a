"""The file of results: one JSON object a line, one line a run, appended as soon as the run has ended."""

import json
import os

from tf_regal import errors

SCHEMA = 1

_NUMBER, _TEXT = (int, float), (str,)
_FIELDS = {
    "graph": _TEXT, "fingerprint": _TEXT, "problem": _TEXT, "topology": _TEXT, "objective": _TEXT, "method": _TEXT, "code": _TEXT,
    "ops": (int,), "evaluations": (int,), "seed": (int,), "makespan": (int,), "peak": (int,), "excess": (int,), "late": (int,),
    "evaluations_made": (int,), "time_s": _NUMBER, "max_slowdown": _NUMBER, "seeded": (bool,),
}  # fmt: skip


def key(record, any_version=False):
    """What makes a run the same as another one, the seed apart. any_version: whatever the code was."""
    slowdown = record["max_slowdown"] if record["objective"] == "peak_memory" else None
    code = None if any_version else record["code"]
    # A proposal is no code: that of another policy is another method, whatever the version.
    return record["problem"], record["objective"], slowdown, record["method"], record.get("proposal"), record["evaluations"], record["seconds"], code


class ResultsFile:
    """Results of runs, as dicts; kept in a file where there is a path, else in memory only. A context manager.

    A last line that was cut off (the program was killed while it wrote) is dropped. One program at a time: the file is locked while it is open.

    Raises:
        InvalidArgumentError: the file is damaged, is of another schema, or is in use.

    Attributes:
        records: list of dict, oldest first.
    """

    def __init__(self, path=None):
        self.path, self.records, self._file = path, [], None
        if path is None:
            return
        self._file = open(path, "a+b")  # noqa: SIM115 (closed by close)
        try:
            _lock(self._file, path)
            self._file.seek(0)
            content = self._file.read()
            whole, _, rest = content.rpartition(b"\n")
            if rest:
                if _parsed(rest) is None:
                    self._file.truncate(len(content) - len(rest))
                else:
                    self._file.write(b"\n")
                    self._file.flush()
                    whole += b"\n" + rest if whole else rest
            for number, line in enumerate(whole.split(b"\n"), 1):
                if line.strip():
                    self.records.append(_checked(line, path, number))
        except BaseException:
            self._file.close()
            raise

    def append(self, record):
        """Adds a result; it is on the disk when this returns."""
        record = {"schema": SCHEMA, **record}
        self.records.append(record)
        if self._file is not None:
            self._file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self):
        if self._file is not None:
            self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def _lock(file, path):
    try:
        import fcntl
    except ImportError:  # Windows: it is the user's care there
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise errors.InvalidArgumentError(f"results={path!r} is in use by another comparison; wait for it, or choose another file") from error


def _parsed(line):
    try:
        return json.loads(line)
    except ValueError:
        return None


def _checked(line, path, number):
    record, where = _parsed(line), f"results={path!r}: line {number}"
    if not isinstance(record, dict):
        raise errors.InvalidArgumentError(f"{where} is no result ({line[:40]!r}); remove that line, or choose another file")
    if record.get("schema") != SCHEMA:
        raise errors.InvalidArgumentError(f"{where} is of schema {record.get('schema')!r}, and this version reads {SCHEMA}; choose another file")
    for name, types in _FIELDS.items():
        value = record.get(name)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise errors.InvalidArgumentError(f"{where} is damaged: {name} is {value!r}; remove that line, or choose another file")
    if not isinstance(record.get("seconds"), (int, float, type(None))):
        raise errors.InvalidArgumentError(f"{where} is damaged: seconds is {record['seconds']!r}; remove that line, or choose another file")
    return record

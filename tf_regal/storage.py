"""Files that are whole or not there, and the directory for what is kept from run to run."""

import hashlib
import json
import os
import pathlib
import tempfile

from tf_regal import errors


def cache_directory(directory=None):
    """directory: a path; None: $TF_REGAL_CACHE_DIR, else tf_regal below the user's cache directory; False: nothing is kept, None is returned."""
    if directory is False:
        return None
    if directory is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        directory = os.environ.get("TF_REGAL_CACHE_DIR") or os.path.join(base, "tf_regal")
    return pathlib.Path(directory)


def write_atomically(path, content):
    """Writes text or bytes to a temporary file beside `path` and renames it: readers see the old file or the whole new one."""
    path = os.fspath(path)
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise errors.InvalidArgumentError(f"path={path!r}: the directory {directory!r} does not exist. Create it first.")
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=os.path.basename(path) + ".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def checked_json(data):
    """The text {"sha256": …, "data": data}."""
    text = json.dumps(data, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"sha256":"{digest}","data":{text}}}\n'


def write_checked_json(path, data):
    """Writes `checked_json`, atomically."""
    write_atomically(path, checked_json(data))


def read_checked_json(path):
    """What `write_checked_json` wrote. Raises PlanFileError where it is cut short, changed, or something else."""
    try:
        with open(path, encoding="utf-8") as file:
            outer = json.load(file)
    except FileNotFoundError as error:
        raise errors.PlanFileError(f"path={os.fspath(path)!r}: there is no such file. Make one with `tf-regal plan MODEL -o {os.fspath(path)}`.") from error
    except (OSError, ValueError, RecursionError) as error:  # ValueError: not UTF-8, not JSON, or no possible name of a file
        raise errors.PlanFileError(f"path={os.fspath(path)!r} cannot be read as JSON ({error}): the file is truncated or no plan. Plan again.") from error
    if not isinstance(outer, dict) or "sha256" not in outer or "data" not in outer:
        raise errors.PlanFileError(f"path={os.fspath(path)!r} is JSON but no tf-regal file (it has no 'sha256' and 'data'). Make one with `tf-regal plan`.")
    text = json.dumps(outer["data"], separators=(",", ":"))
    if hashlib.sha256(text.encode()).hexdigest() != outer["sha256"]:
        raise errors.PlanFileError(f"path={os.fspath(path)!r}: the checksum does not fit the content: the file was changed or damaged. Plan again.")
    return outer["data"]

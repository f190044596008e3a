"""What the verbs write: stdout for results, stderr for everything else; numbers with units; tables; files."""

import contextlib
import json
import os
import sys
import tempfile

from tf_regal import errors

_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB")


def print_text(text):
    """A result, on stdout."""
    sys.stdout.write(text.rstrip("\n") + "\n")


def print_json(value):
    """The one JSON object of --json, on stdout. Infinities must have become None before: JSON has none."""
    print_text(json.dumps(value, indent=2, allow_nan=False))


def log(text):
    """Anything that is not a result, on stderr."""
    sys.stdout.flush()
    sys.stderr.write(text.rstrip("\n") + "\n")
    sys.stderr.flush()


def error_json(error):
    """What --json prints where a command fails."""
    found = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, errors.InfeasibleError):
        found.update(device=error.device, shortfall_bytes=error.shortfall)
    return {"error": found}


def abandon_stdout():
    """Nobody reads stdout any more: what is still buffered must not raise again when Python exits."""
    with contextlib.suppress(OSError, ValueError):  # a stdout without a file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def byte_text(count):
    """1572864 → "1.573 MB" (decimal units); None → "unlimited"."""
    if count is None:
        return "unlimited"
    if abs(count) < 1000:
        return f"{count:.0f} B"
    value, unit = float(count), 0
    while abs(value) >= 999.5 and unit < len(_DECIMAL) - 1:
        value, unit = value / 1000, unit + 1
    return f"{_digits(value)} {_DECIMAL[unit]}"


def time_text(seconds):
    """0.00293 → "2.930 ms"."""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(seconds) >= 0.9995 * scale:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def rate_text(per_second, unit):
    """1.555e12, "B/s" → "1.555 TB/s"; None (infinite) → "free"."""
    if per_second is None:
        return "free"
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_second >= 0.9995 * scale:
            return f"{_digits(per_second / scale)} {prefix}{unit}"
    return f"{_digits(per_second)} {unit}"


def percent_text(share):
    """-0.2724 → "-27.2 %"; None → "-"."""
    return "-" if share is None else f"{100 * share:+.1f} %"


def _digits(value):
    """Four significant digits, without an exponent."""
    return f"{value:.{max(0, 4 - len(str(int(abs(value)))))}f}"


def table(rows, left=1, indent="  "):
    """Rows of str, the header first → aligned text: the first `left` columns flush left, the others flush right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def check_file(option, path):
    """Raises InvalidArgumentError where a file cannot be written to `path`: before the long work, not after it."""
    directory = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise errors.InvalidArgumentError(f"argument {option}: {path!r} is a directory; give the name of a file in it")
    if not os.path.isdir(directory):
        raise errors.InvalidArgumentError(
            f"argument {option}: {path!r}: the directory {directory!r} does not exist; create it first"
        )
    if not os.access(directory, os.W_OK):
        raise errors.InvalidArgumentError(
            f"argument {option}: {path!r}: the directory {directory!r} cannot be written to; choose another one"
        )


def write_bytes(path, content):
    """Writes a file whole or not at all."""
    handle, temporary = tempfile.mkstemp(
        dir=os.path.dirname(path) or ".", prefix=os.path.basename(path) + ".", suffix=".tmp"
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise

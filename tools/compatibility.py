"""Writes docs/compatibility.md: which property of which kind of program the conformance suite holds, as the suite itself found it.

    python tools/compatibility.py            # runs the suite, about 8 minutes on two cores
    python tools/compatibility.py --fast     # without the kinds that take seconds, to try it
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOC = ROOT / "docs" / "compatibility.md"
PROPERTIES = {
    "outputs": "outputs", "gradients": "gradients", "side_effects": "effects", "retraces": "retraces", "errors": "errors", "saved_model": "SavedModel",
    "memory": "memory", "threads": "threads", "restored": "disable", "eagerly": "eager", "copies": "copies",
}  # fmt: skip
HEAD = """# Compatibility

Made by `python tools/compatibility.py` from `tests/conformance`, with every function planned whether it pays or not (two logical CPUs, ops spread over both,
one order per device), on TensorFlow {version}. Supported are TensorFlow {supported}; `make compat` runs the suite on each of them.

| property | what holds |
|---|---|
| outputs | equal to the bit, call after call |
| gradients | of first and second order, by tapes outside the function, both of whose functions are planned; to the bit where TensorFlow repeats itself |
| effects | variables, prints, python functions, tables, queues, summaries, random streams: the same, in the same order |
| retraces | as many, and as many traces in the cache |
| errors | type, message and op of an op that fails; wrong arguments |
| SavedModel | saved after planning, loaded without tf_regal, on one device |
| memory | no function is left of programs that are gone |
| threads | eight that trace and call at once |
| disable | `disable()`, leaving and nesting `enable()` |
| eager | nothing is planned under `run_functions_eagerly(True)` |
| copies | deep copies and pickles of models |

✓: holds, and the function is planned. (✓): holds, and the function is left alone, with the reason in `tf_regal.reports()`. A dash: does not apply.

"""
TAIL = """
Beside the table:

- Functions with ops pinned to other processes are planned; `ParameterServerStrategy` is left alone (`tests/conformance/test_cluster.py`).
- A loop or a branch is one op in a plan, at a cost estimated for ten trips, and stays where TensorFlow puts it. A function that is not inlined is one op of an
  estimated cost, which a plan may move. The plan's notes say so.
- A strategy that runs inside a function: the function is planned, and ops that the strategy pinned stay where they are.
- `tf.vectorized_map` runs a function of its own as a graph even under `run_functions_eagerly(True)`.
- Under `tf.autodiff.ForwardAccumulator` a function's version with tangents is not planned.
- `mode="background"` leaves functions alone whose kernels have a state of their own (seeded random streams, queues).
- An error of a function on several devices is told once, as on one device. Its function is called `…_tf_regal_…`.
"""


def run_suite(fast):
    """{property: {kind: verdict}}; ends the program where a test fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "tests/conformance", "--deselect", "tests/conformance/test_cases.py"]
        done = subprocess.run(command + (["-m", "not slow"] if fast else []), env={**os.environ, "TF_REGAL_CELLS": folder}, cwd=ROOT, check=False)
        if done.returncode:
            sys.exit("the suite fails: the table is not written")
        cells = collections.defaultdict(dict)
        for path in pathlib.Path(folder).glob("*.json"):
            for name, verdicts in json.loads(path.read_text()).items():
                cells[name].update(verdicts)
    return cells


def table(cells, kinds):
    """The cells as Markdown, one row per kind."""
    lines = ["| kind of program | " + " | ".join(PROPERTIES.values()) + " |", "|---" * (len(PROPERTIES) + 1) + "|"]
    reasons = {}
    for kind in kinds:
        row = []
        for name in PROPERTIES:
            verdict = cells[name].get(kind)
            row.append("–" if verdict is None else "✓" if verdict == "pass" else "(✓)")
            if verdict and verdict != "pass":
                reasons[kind] = verdict.removeprefix("left alone: ")
        lines.append(f"| {kind} | " + " | ".join(row) + " |")
    text = "\n".join(lines) + "\n\nLeft alone, with the reason in the report:\n\n"
    return text + "".join(f"- {kind}: {reason}\n" for kind, reason in reasons.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="only the kinds that are not marked slow; prints instead of writing")
    args = parser.parse_args()
    cells = run_suite(args.fast)
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
    import tensorflow as tf

    from tests.conformance.programs import PROGRAMS
    from tf_regal import _tf_private

    head = HEAD.format(version=tf.__version__, supported=", ".join(_tf_private.SUPPORTED_VERSIONS))
    text = head + table(cells, list(PROGRAMS)) + TAIL
    if args.fast:
        sys.stdout.write(text)
    else:
        DOC.write_text(text)


if __name__ == "__main__":
    main()

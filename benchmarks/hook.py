"""What the hook costs: a function that keeps its default, and the planning of a large training step.

    python benchmarks/hook.py          # about 8 minutes on two cores; writes docs/hook.md

`tf-regal bench hook` measures the same and writes nothing.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pathlib

from tf_regal.bench import hook

MODEL, PAIRS, CALLS = "InceptionV3", 60, 20
DOC = pathlib.Path(__file__).parent.parent / "docs" / "hook.md"


def main():
    ratios, kept = hook.kept_default(PAIRS, CALLS)
    report, traced = hook.planning(MODEL)
    first, small = hook.first_call(MODEL), hook.small_functions()
    found = hook.figures(ratios, kept, report, traced, MODEL, CALLS, first, small)
    text = "# What the hook costs\n\nMade by `python benchmarks/hook.py`.\n\n" + hook.text(found)
    DOC.write_text(text)
    print(text)


if __name__ == "__main__":
    main()

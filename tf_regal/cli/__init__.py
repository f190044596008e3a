"""The command line: `tf-regal VERB`, also `python -m tf_regal VERB`.

One file per verb, with `add_parser(subparsers)` and `run(args) -> int`. Results go to stdout, everything else to
stderr; `--json` prints exactly one JSON object on stdout. Exit codes: 0 done, 1 failed, 2 usage, 130 interrupted,
141 nobody reads stdout any more.

TensorFlow takes seconds to import: a verb that needs it calls `startup.load_tensorflow()` in `run`, and nothing here
imports it at the top.
"""

import sys
import warnings

from tf_regal import errors
from tf_regal.cli import output, parser

# A new verb is one line here and one file beside this one.
VERBS = (
    "plan",
    "apply",
    "show",
    "compare",
    "train",
    "evaluate",
    "bench",
    "devices",
    "demo",
)

DONE, FAILED, USAGE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

__all__ = ["main"]


def main(argv=None):
    """Runs one command. argv: list of str without the program's name; None: the process's. Returns the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _run(argv, wants_json="--json" in argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        output.abandon_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        output.log("tf-regal: interrupted")
        return INTERRUPTED


def _run(argv, wants_json):
    try:
        args = parser.parse(VERBS, argv)
        return DONE if args is None else args.run(args)
    except parser.UsageError as error:
        output.log(f"{error.usage}{error.prog}: error: {error}")
        failure, code = error.__cause__ or error, USAGE
    except errors.TfRegalError as error:
        output.log(f"tf-regal: error: {error}")
        failure, code = error, FAILED
    except BrokenPipeError:
        raise
    except OSError as error:
        # A full disk or a file without permission: the system's own words say it.
        output.log(f"tf-regal: error: {error}")
        failure, code = error, FAILED
    except Exception as error:
        # A bug: its traceback is wanted, and whoever reads JSON still gets an object.
        if wants_json:
            output.print_json(output.error_json(error))
        raise
    if wants_json:
        output.print_json(output.error_json(failure))
    return code


def _show_warning(message, category, filename, lineno, file=None, line=None):
    output.log(f"tf-regal: warning: {message}")

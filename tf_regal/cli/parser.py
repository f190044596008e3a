"""argparse with close-match hints, errors that are raised instead of ending the process, and one subparser per verb."""

import argparse
import difflib
import importlib
import re

import tf_regal

_CHOICE = re.compile(r"invalid choice: '(?P<value>[^']*)' \(choose from (?P<valid>.*)\)")


class UsageError(Exception):
    """The command line is not valid, an option's value included.

    usage: text to show before the message; prog: such as "tf-regal plan".
    """

    def __init__(self, message, usage="", prog="tf-regal"):
        super().__init__(message)
        self.usage, self.prog = usage, prog


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are `UsageError`s with a hint at what may have been meant."""

    def __init__(self, **kwargs):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        # No abbreviations: an option that is added later must not break a script that shortened another one.
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message):
        match = _CHOICE.search(message)
        if match:
            message += _hint(match["value"], [word.strip(" '") for word in match["valid"].split(",")])
        raise UsageError(message, self.format_usage(), self.prog)

    def unknown(self, words):
        """Raises the error for words that no option takes."""
        options = [option for action in self._actions for option in action.option_strings]
        first = next((word for word in words if word.startswith("-")), words[0])
        self.error(f"unrecognized arguments: {' '.join(words)}{_hint(first.split('=')[0], options)}")


def parse(verbs, argv):
    """argv → the namespace, whose `run` is the verb's; None where help or the version was printed."""
    top = Parser(
        prog="tf-regal",
        description="TensorFlow graph optimizer: decides placement and order of every op, for speed or peak memory.",
        epilog="`tf-regal VERB --help` explains a verb; `tf-regal demo` shows what it does, in less than a minute.",
    )
    top.add_argument("--version", action="version", version=f"tf-regal {tf_regal.__version__}")
    subparsers = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    for verb in verbs:
        module = importlib.import_module(f"tf_regal.cli.{verb}")
        added = module.add_parser(subparsers)
        added.set_defaults(run=module.run, parser=added)
    try:
        args, extra = top.parse_known_args(argv)
    except SystemExit:  # --help and --version have printed and are done; errors do not come this way
        return None
    if extra:
        args.parser.unknown(extra)
    return args


def _hint(word, valid):
    close = difflib.get_close_matches(word, valid, 1)
    return f"; did you mean {close[0]!r}?" if close else ""

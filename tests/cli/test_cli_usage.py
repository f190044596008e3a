"""Help, usage errors, exit codes: what holds for every verb. Nothing here needs TensorFlow."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import types
import warnings

import pytest

import tf_regal
from tf_regal import cli, errors
from tf_regal.cli import options, parser
from tf_regal.settings import Settings

VERBS = ("plan", "apply", "show", "compare", "bench", "devices", "demo")
SETTINGS = (
    "topology", "objective", "max_slowdown", "method", "policy", "evaluations", "seconds", "seed", "batch_size",
    "order",
)  # fmt: skip


def stub(monkeypatch, run, name="stub"):
    """Adds a verb whose `run` is the given function, as another file of the package would."""
    module = types.ModuleType(f"tf_regal.cli.{name}")

    def add_parser(subparsers):
        found = subparsers.add_parser(name, help="for a test")
        options.add_output(found)
        return found

    module.add_parser, module.run = add_parser, run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(cli, "VERBS", (*cli.VERBS, name))


def test_help_lists_every_verb(run):
    result = run("--help")
    assert result.code == 0
    assert result.err == ""
    for verb in VERBS:
        assert re.search(rf"^    {verb}  ", result.out, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_has_examples_and_explains_every_option(run, verb):
    result = run(verb, "--help")
    assert result.code == 0
    assert f"  tf-regal {verb}" in result.out[result.out.index("examples:") :]
    top = argparse.ArgumentParser().add_subparsers()
    found = __import__(f"tf_regal.cli.{verb}", fromlist=["add_parser"]).add_parser(top)
    for action in found._actions:
        assert action.help, action.option_strings


@pytest.mark.parametrize("name", SETTINGS)
def test_defaults_are_those_of_settings(name):
    top = argparse.ArgumentParser().add_subparsers()
    from tf_regal.cli import plan

    found = plan.add_parser(top).parse_args(["model", "-o", "plan.json"])
    assert getattr(found, name) == getattr(Settings(), name)
    assert found.cache_dir == Settings().cache_dir


def test_help_shows_defaults(run):
    text = " ".join(run("plan", "--help").out.partition("examples:")[0].split())
    for field in dataclasses.fields(Settings):
        if field.name in SETTINGS and field.default is not None:
            option = text[text.rindex(f" --{field.name.replace('_', '-')} ") :]
            assert re.search(r"\(default: ([^)]*)\)", option)[1] == str(field.default)


def test_version(run):
    assert run("--version").out == f"tf-regal {tf_regal.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: VERB"),
        (["plann"], r"invalid choice: 'plann' .*; did you mean 'plan'\?"),
        (["xyz"], r"invalid choice: 'xyz' \(choose from [^?]*\)$"),
        (["plan", "m"], "the following arguments are required: -o"),
        (["plan", "m", "-o", "p", "--evalutions", "5"], r"--evalutions 5; did you mean '--evaluations'\?"),
        (["plan", "m", "-o", "p", "--topo=2xCPU"], r"unrecognized arguments: --topo=2xCPU"),
        (["plan", "m", "-o", "p", "--seed", "x"], "argument --seed: invalid int value: 'x'"),
        (["plan", "m", "-o", "p", "--no-cache", "--cache-dir", "d"], "not allowed with argument"),
        (["plan", "m", "-o", "p", "--memory-limit", "lots"], "argument --memory-limit: 'lots' is not a size"),
        (["plan", "m", "-o", "p", "--memory-limit", "0"], "argument --memory-limit: '0' is not a size"),
        (["plan", "m", "-o", "p", "--inputs", ","], "argument --inputs: ',' names nothing"),
        (["plan", "m", "-o", "p", "--evaluations", "0"], "argument --evaluations: evaluations=0 is not valid"),
        (["plan", "m", "-o", "p", "--evaluations", "-5"], "argument --evaluations: evaluations=-5 is not valid"),
        (["plan", "m", "-o", "p", "--seconds", "0"], "argument --seconds: seconds=0.0 is not valid"),
        (["plan", "m", "-o", "p", "--seconds", "nan"], "argument --seconds: seconds=nan is not valid"),
        (["plan", "m", "-o", "p", "--max-slowdown", "0.5"], "argument --max-slowdown: max_slowdown=0.5 is not valid"),
        (["plan", "m", "-o", "p", "--seed", "-1"], "argument --seed: seed=-1 is not valid"),
        (["plan", "m", "-o", "p", "--batch-size", "0"], "argument --batch-size: batch_size=0 is not valid"),
        (["plan", "m", "-o", "p", "--method", "regall"], r"argument --method: .* Did you mean 'regal'\?"),
        (["plan", "m", "-o", "p", "--objective", "memory"], "argument --objective: .*Did you mean 'peak_memory'"),
        (["plan", "m", "-o", "p", "--order", "fulll"], "argument --order: .*Did you mean 'full'"),
        (["plan", "m", "-o", "p", "--policy", "mine"], "argument --policy: policy='mine' is not a directory"),
        (["plan", "m", "-o", "no_such_directory/p"], "argument -o: .*'no_such_directory' does not exist"),
        (["plan", "m", "-o", "."], r"argument -o: '\.' is a directory"),
        (["show", "p", "--chrome-trace", "no_such_directory/t"], "argument --chrome-trace: .* does not exist"),
        (["devices", "2xA100-41GB"], "'A100-41GB' is not in the catalogue.*did you mean 'A100-40GB'"),
        (["devices", "no_such.json"], "no_such.json"),
        (["devices", "--memory-limit", "1GB"], "argument --memory-limit: it needs a TOPOLOGY"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_usage_errors(run, arguments, message, as_json):
    result = run(*arguments, *(["--json"] if as_json and arguments else []))
    assert result.code == 2
    assert re.search(message, result.err.splitlines()[-1]), result.err
    assert result.err.splitlines()[-1].startswith("tf-regal")
    if as_json and arguments:
        assert re.search(message, result.json["error"]["message"]) or message.startswith("argument")
    else:
        assert result.out == ""


def test_a_usage_error_in_json_has_the_type(run):
    result = run("plan", "m", "-o", "p", "--evaluations", "0", "--json")
    assert result.json["error"]["type"] == "InvalidArgumentError"
    assert run("plann", "--json").json["error"]["type"] == "UsageError"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1", 1), ("500MB", 500 * 10**6), ("16GiB", 16 * 2**30), ("1.5 GiB", 3 * 2**29), ("3kB", 3000), ("3 kib", 3072),
        ("2TB", 2 * 10**12), ("7B", 7), ("1TiB", 2**40),
    ],
)  # fmt: skip
def test_sizes(text, count):
    assert options.byte_count(text) == count


@pytest.mark.parametrize("text", ["", "GB", "-1", "0MB", "1e9", "4 GBit", "0.0001B", "1,5GB"])
def test_sizes_that_are_none(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a size: give bytes above 0"):
        options.byte_count(text)


def test_a_new_verb_is_one_line(run, monkeypatch):
    stub(monkeypatch, lambda args: 0)
    assert "stub" in run("--help").out
    assert run("stub").code == 0


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        errors.GraphError("the graph is empty"),
        errors.InvalidProblemError("a cycle"),
        errors.InfeasibleError("does not fit", device="GPU:0", shortfall=7),
        PermissionError(13, "Permission denied", "plan.json"),
    ],
)
def test_failures_are_one_line_and_exit_code_1(run, monkeypatch, error, as_json):
    def fail(args):
        raise error

    stub(monkeypatch, fail)
    result = run("stub", *(["--json"] if as_json else []))
    assert result.code == 1
    assert result.err == f"tf-regal: error: {error}\n"
    if as_json:
        expected = {"type": type(error).__name__, "message": str(error)}
        if isinstance(error, errors.InfeasibleError):
            expected |= {"device": "GPU:0", "shortfall_bytes": 7}
        assert result.json == {"error": expected}
    else:
        assert result.out == ""


def test_a_bug_keeps_its_traceback_and_gives_json(monkeypatch, capsys):
    def fail(args):
        raise ZeroDivisionError("a bug")

    stub(monkeypatch, fail)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        cli.main(["stub", "--json"])
    assert json.loads(capsys.readouterr().out) == {"error": {"type": "ZeroDivisionError", "message": "a bug"}}


def test_ctrl_c(run, monkeypatch):
    def interrupt(args):
        raise KeyboardInterrupt

    stub(monkeypatch, interrupt)
    result = run("stub")
    assert (result.code, result.out, result.err) == (130, "", "tf-regal: interrupted\n")


def test_warnings_are_one_line_on_stderr(run, monkeypatch):
    def warn(args):
        warnings.simplefilter("always")
        warnings.warn("a card that has no figures", stacklevel=1)
        return 0

    stub(monkeypatch, warn)
    result = run("stub")
    assert (result.code, result.out, result.err) == (0, "", "tf-regal: warning: a card that has no figures\n")


def test_a_usage_error_says_which_option():
    top = parser.Parser(prog="tf-regal x")
    top.add_argument("--max-slowdown")
    with (
        pytest.raises(parser.UsageError, match="argument --max-slowdown: max_slowdown=0 is bad"),
        options.option_values(top),
    ):
        raise errors.InvalidArgumentError("max_slowdown=0 is bad")
    with pytest.raises(parser.UsageError, match=r"^other=0 is bad"), options.option_values(top):
        raise errors.InvalidArgumentError("other=0 is bad")


def test_broken_pipe():
    """A reader that goes away is no error to shout about."""
    code = "import sys; from tf_regal.cli import main; sys.exit(main(['devices', '2xT4']))"
    environment = dict(os.environ, PYTHONUNBUFFERED="1")
    started = subprocess.Popen(
        [sys.executable, "-c", f"import time; time.sleep(0.5); {code}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    started.stdout.close()
    assert started.stderr.read() == b""
    started.stderr.close()
    assert started.wait(60) == cli.BROKEN_PIPE


def test_ctrl_c_in_a_process():
    """A real signal, in the middle of a verb."""
    code = (
        "import sys, time, types, tf_regal.cli as cli\n"
        "module = types.ModuleType('tf_regal.cli.wait')\n"
        "module.add_parser = lambda subparsers: subparsers.add_parser('wait')\n"
        "def run(args):\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "module.run = run\n"
        "sys.modules[module.__name__] = module\n"
        "cli.VERBS = ('wait',)\n"
        "sys.exit(cli.main(['wait']))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout.readline() == b"ready\n"
        time.sleep(0.1)
        started.send_signal(signal.SIGINT)
        assert started.stderr.read() == b"tf-regal: interrupted\n"
        assert started.wait(60) == 130


def test_no_tensorflow_without_need(process, plan_file):
    """Help, usage errors and `show` in a process where importing TensorFlow is an error."""
    code = f"""
import sys
sys.modules["tensorflow"] = None
from tf_regal.cli import main
for verb in {VERBS!r}:
    assert main([verb, "--help"]) == 0
assert main(["--help"]) == 0
assert main(["plann"]) == 2
assert main(["plan", "m", "-o", "p", "--evaluations", "0"]) == 2
assert main(["plan", "m", "-o", "no_such_directory/p"]) == 2
assert main(["plan", "no_such_model", "-o", "p"]) == 1
assert main(["apply", "no_such_model", "plan.json", "-o", "out"]) == 1
assert main(["devices", "2xA100-40GB"]) == 0
assert main(["show", {plan_file!r}]) == 0
assert main(["show", {plan_file!r}, "--json"]) == 0
assert main(["devices"]) == 1
"""
    result = process(program=(sys.executable, "-c", code))
    assert result.code == 0, result.err
    assert "TensorFlow cannot be imported" in result.err.splitlines()[-1]


@pytest.mark.parametrize("program", ["module", "script"])
def test_entry_points(process, program):
    script = pathlib.Path(sys.executable).with_name("tf-regal")
    if program == "script" and not script.exists():
        pytest.skip("tf-regal is not installed")
    command = {"module": (sys.executable, "-m", "tf_regal"), "script": (str(script),)}[program]
    result = process("--version", program=command)
    assert (result.code, result.out) == (0, f"tf-regal {tf_regal.__version__}\n")
    result = process("plann", program=command)
    assert result.code == 2
    assert "did you mean 'plan'?" in result.err

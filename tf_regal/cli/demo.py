"""`tf-regal demo`: the main job on two small models, default and planned side by side."""

import dataclasses
import os

import numpy as np

from tf_regal import errors
from tf_regal.cli import options, output, startup, summary
from tf_regal.cli.output import byte_text, percent_text, time_text
from tf_regal.devices import spec

_CALLS = 8  # measured calls of the inference
_DEVICE = "CPU:0"
_EPILOG = """\
examples:
  tf-regal demo
  tf-regal demo --json

Takes half a minute or so on two cores. Logical CPU devices share the machine's cores: the demo shows that plans are
applied and change no result, and what they are predicted to give; peak memory is also measured.
"""
_NEXT = """\
Your own training:  with tf_regal.enable(topology="local", objective="runtime"): model.fit(...)
Your own model:     tf-regal plan SAVED_MODEL --topology 2xA100-40GB --objective peak_memory -o plan.json"""


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "demo",
        help="plan two small models and show what it gives",
        description="Plans a Keras training step for speed on two logical CPU devices, and an inference for peak "
        "memory on one, runs both with and without a plan, and shows predicted, measured and applied figures.",
        epilog=_EPILOG,
    )
    options.add_output(parser)
    return parser


def run(args):
    # oneDNN fuses a convolution's two gradients where both are on one device and nothing waits in between, which
    # decides their last bit: without it the results can be compared bit by bit.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    # TensorFlow's other allocator for CPUs counts what it gives out.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
    startup.load_tensorflow()
    import tensorflow as tf

    _two_devices(tf)
    found = {
        "tensorflow": tf.__version__,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    # The inference comes first: in memory that the training has cut up, the allocator gives out more than was asked
    # for, and counts it.
    output.log("demo: an inference within less memory ...")
    inference = _inference(tf)
    output.log("demo: a Keras training step on two devices ...")
    found.update(training=_training(), inference=inference)
    if args.json:
        output.print_json(found)
    else:
        head = f"TensorFlow {found['tensorflow']}, two logical CPU devices on {found['cores']} cores"
        output.print_text("\n\n".join([head, _training_text(found["training"]), _inference_text(inference), _NEXT]))
    good = all(
        found[part]["status"] == "planned" and found[part]["bitwise_equal"] for part in ("training", "inference")
    )
    return 0 if good else 1


def _two_devices(tf):
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    except RuntimeError as error:
        raise errors.TfRegalError(
            "the demo needs two logical CPU devices, but TensorFlow is set up already in this process; "
            "run `tf-regal demo` in a new one"
        ) from error


def _training():
    import tf_regal
    from tf_regal.cli import demo_models

    program = demo_models.Training()
    plain, again = program.fit(), program.fit()
    known = len(tf_regal.reports())
    with tf_regal.enable(topology="local", objective="runtime", cache_dir=False):
        planned = program.fit()
    report = _report(tf_regal.reports()[known:])
    return {
        **_planning(report),
        "steps": demo_models.STEPS,
        "weights": len(plain[1]),
        "bitwise_equal": _same(plain, planned),
        "tensorflow_repeats_itself": _same(plain, again),
    }


def _inference(tf):
    import tf_regal
    from tf_regal.cli import demo_models

    here = tf_regal.Topology.detect().devices
    # One of the two devices, with the cores of both: they share them.
    device = dataclasses.replace(here[0], lanes=sum(other.lanes for other in here))
    topology = tf_regal.Topology(_DEVICE, (device,), [[0]], [[1.0]])
    before = _memory(tf)
    program = demo_models.Cells()
    plain, plain_peaks = _measure(tf, tf.function(program.__call__), program.image, before)
    known = len(tf_regal.reports())
    planned_function = tf_regal.optimize(program.__call__, topology=topology, objective="peak_memory", cache_dir=False)
    planned, planned_peaks = _measure(tf, planned_function, program.image, before)
    return {
        **_planning(_report(tf_regal.reports()[known:])),
        "bitwise_equal": bool(np.array_equal(plain, planned)),
        "calls": _CALLS,
        "measured_peak_bytes": {"default": plain_peaks, "planned": planned_peaks} if before is not None else None,
    }


def _measure(tf, function, image, before):
    """Calls a function: (its result, sorted peak bytes per call above what was in use `before`).

    Two calls come first: they trace, plan and verify.
    """
    result, peaks = function(image).numpy(), []
    function(image)
    for _ in range(_CALLS):
        if before is not None:
            tf.config.experimental.reset_memory_stats(_DEVICE)
        result = function(image).numpy()
        if before is not None:
            peaks.append(tf.config.experimental.get_memory_info(_DEVICE)["peak"] - before)
    return result, sorted(peaks)


def _memory(tf):
    """Bytes in use; None where the allocator does not count."""
    try:
        return tf.config.experimental.get_memory_info(_DEVICE)["current"]
    except ValueError:
        return None


def _report(reports):
    """The report of the function that was worth planning: the others are helpers of Keras and tf.data."""
    found = [report for report in reports if report.status != "skipped"]
    if not found:
        raise errors.TfRegalError(
            "the demo's function was not seen by tf-regal; please report this, with your TensorFlow version"
        )
    return found[-1]


def _planning(report):
    plan = report.plan
    if plan is None:
        raise errors.TfRegalError(f"the demo's function was not planned: {report.reason}")
    found = summary.figures(plan, "")
    kept = {key: found[key] for key in ("predicted", "default", "bounds", "change", "search", "control_edges")}
    return {
        "function": report.function,
        "status": report.status,
        "reason": report.reason,
        **kept,
        "ops": {device: len(ops) for device, ops in plan.order.items()},
        "applied": dataclasses.asdict(report.applied) if report.applied else None,
        "seconds": report.seconds,
    }


def _same(a, b):
    return a[0] == b[0] and all(np.array_equal(x, y) for x, y in zip(a[1], b[1], strict=True))


def _training_text(found):
    default, planned, called = found["default"], found["predicted"], spec.short_names(list(found["ops"]))
    rows = [
        ("", "default", "planned", "change"),
        _times("predicted time per step", default["makespan_s"], planned["makespan_s"]),
    ]
    for device, name in called.items():
        rows.append(
            _bytes(f"predicted peak memory, {name}", default["peak_bytes"][device], planned["peak_bytes"][device])
        )
    rows.append(_bytes("moved between the devices", default["transfer_bytes"], planned["transfer_bytes"]))
    placed = ", ".join(f"{found['ops'][device]} on {name}" for device, name in called.items())
    repeats = "" if found["tensorflow_repeats_itself"] else " (nor is TensorFlow to itself here)"
    lines = [
        "1. A Keras training step, planned for runtime on both devices",
        output.table(rows),
        f"  ops      {placed}",
        _applied(found),
        f"  results  {found['steps']} losses and {found['weights']} weights bitwise equal to the default's: "
        f"{_yes(found['bitwise_equal'])}{repeats}",
        "  The two devices are the same cores here: the clock cannot show the prediction. On two real devices it can.",
    ]
    return "\n".join(lines)


def _inference_text(found):
    default, planned, measured = found["default"], found["predicted"], found["measured_peak_bytes"]
    rows = [
        ("", "default", "planned", "change"),
        _bytes("predicted peak memory", *(max(f["peak_bytes"].values()) for f in (default, planned))),
    ]
    if measured:
        low_high = [(measured[key][0], measured[key][-1]) for key in ("default", "planned")]
        change = percent_text(low_high[1][1] / low_high[0][1] - 1)
        rows.append(
            (f"measured peak memory, lowest of {found['calls']} calls", *(byte_text(low) for low, _ in low_high), "")
        )
        rows.append(
            (
                f"measured peak memory, highest of {found['calls']} calls",
                *(byte_text(high) for _, high in low_high),
                change,
            )
        )
    rows.append(_times("predicted time per call", default["makespan_s"], planned["makespan_s"]))
    lines = [
        "2. An inference of NASNet-like cells, planned for peak memory on one device",
        output.table(rows),
        f"  bound    no plan can have a lower peak than {byte_text(found['bounds']['peak_bytes'])}",
        _applied(found),
        f"  results  bitwise equal to the default's: {_yes(found['bitwise_equal'])}",
    ]
    if not measured:
        lines.append("  This TensorFlow does not count a CPU's memory: predicted figures only.")
    return "\n".join(lines)


def _applied(found):
    applied = found["applied"]
    if applied is None:
        return f"  applied  nothing ({found['status']}: {found['reason']})"
    return (
        f"  applied  {applied['ops_on_planned_device']} of {applied['ops_planned']} ops on their planned device, "
        f"{applied['control_edges']} of {applied['control_edges_planned']} control edges"
    )


def _yes(value):
    return "yes" if value else "no"


def _times(label, default, planned):
    return label, time_text(default), time_text(planned), percent_text(planned / default - 1 if default else None)


def _bytes(label, default, planned):
    return label, byte_text(default), byte_text(planned), percent_text(planned / default - 1 if default else None)

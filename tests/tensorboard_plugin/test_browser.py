"""The tab in TensorBoard, in a real browser, over the log directory of a real training; with both of TensorBoard's data loaders."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import pytest

import tf_regal
from tf_regal import cli
from tf_regal.plans import Report
from tf_regal.tensorboard import writer
from tf_regal.views import measured

from ..views.plans_for_views import HOSTILE, plan_of

# bazel: manual (starts TensorBoard and a browser)

pytestmark = [pytest.mark.slow, pytest.mark.browser]

HERE = pathlib.Path(__file__).resolve().parent
MODULES = pathlib.Path(sys.prefix) / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCREENSHOTS = os.environ.get("TF_REGAL_SCREENSHOTS")

needs_browser = pytest.mark.skipif(
    not (shutil.which("node") and CHROMIUM and (MODULES / "node_modules" / "playwright-core").is_dir()),
    reason="needs chromium, node and playwright-core: on Debian apt-get install chromium nodejs npm, then make browser-tools",
)

TRAINING = """
import sys
import numpy as np
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import tf_regal
tf_regal.enable(logdir=sys.argv[1], cache_dir=False, evaluations=500, apply="always", on_error="raise")
tf.keras.utils.set_random_seed(0)
inputs = tf.keras.Input((16, 16, 3))
branches = []
for _ in range(3):
    x = inputs
    for _ in range(2):
        x = tf.keras.layers.Conv2D(8, 3, padding="same", activation="relu")(x)
    branches.append(tf.keras.layers.GlobalAveragePooling2D()(x))
model = tf.keras.Model(inputs, tf.keras.layers.Dense(10)(tf.keras.layers.Concatenate()(branches)))
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
rng = np.random.default_rng(0)
model.fit(rng.random((64, 16, 16, 3), np.float32), rng.integers(0, 10, 64), batch_size=8, epochs=1, verbose=0)
"""


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    """What a training wrote, a plan for other devices, and one with hostile names."""
    directory = tmp_path_factory.mktemp("log")
    done = subprocess.run([sys.executable, "-c", TRAINING, str(directory)], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    tf_regal.write_plan(plan_of(), directory)
    writer.write_report(Report(HOSTILE[0], "planned", HOSTILE[1], plan=plan_of(hostile=True)), directory)
    return directory


class TensorBoard:
    def __init__(self, logdir, *options):
        command = [str(pathlib.Path(sys.executable).parent / "tensorboard"), "--logdir", str(logdir), "--port", "0", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.url, lines = None, []
        for line in self._process.stderr:
            lines.append(line)
            if found := re.search(r"http://[^\s]+", line):
                self.url = found.group().replace("localhost", "127.0.0.1")
                break
        assert self.url, "".join(lines)
        # It must never wait for someone to read what it writes.
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()


def expectations(logdir):
    """What the tab must show, from the plan files, as views.mjs wants it."""
    import zipfile

    plans = {path.name.removesuffix(".plan.json"): tf_regal.load_plan(path) for path in logdir.glob("plugins/tf_regal/*.plan.json")}
    identity, plan = max(((i, p) for i, p in plans.items() if p.topology.name == "local"), key=lambda pair: len(pair[1].ops))
    with zipfile.ZipFile(logdir / "plugins" / "tf_regal" / f"{identity}.view.zip") as archive:
        overview = json.loads(archive.read("overview.json"))
    length = plan.end_ns - plan.start_ns
    op = int(length.argmax())
    d = plan.details
    inputs = {plan.ops[d.producer[t]] for t in d.input_idx[d.input_ptr[op]:d.input_ptr[op + 1]]}
    inputs |= {plan.ops[o] for o in d.control_idx[d.control_ptr[op]:d.control_ptr[op + 1]]}
    consumers = {plan.ops[o] for o in range(len(plan.ops)) if any(d.producer[t] == op for t in d.input_idx[d.input_ptr[o]:d.input_ptr[o + 1]])}
    consumers |= {plan.ops[o] for o in range(len(plan.ops)) if op in d.control_idx[d.control_ptr[o]:d.control_ptr[o + 1]]}
    edges = {plan.ops[a] for a, b in plan.edges.tolist() if b == op} | {plan.ops[b] for a, b in plan.edges.tolist() if a == op}
    # Rows are 24 pixels apart below the axis and a title; the op's is the first of its device and lane.
    from tf_regal.views import waits

    lane, _ = waits.lanes(plan.device, plan.start_ns, plan.end_ns, plan.topology.n_devices)
    before = sum(int(lane[plan.device == q].max(initial=0)) + 1 for q in range(plan.device[op]))
    moving = plan_of()
    largest = max(moving.transfers, key=lambda transfer: transfer[5])
    found = [o for o in range(len(plan.ops)) if "conv2d" in plan.ops[o].lower() or "conv2d" in d.types[o].lower()]
    return {
        "functions": [{"name": "multi_step_on_iterator", "status": "planned"}, {"name": HOSTILE[0], "status": "planned"}],
        "moving": {
            "name": f"plan {moving.fingerprint[:8]}", "transfers": len(moving.transfers), "maker": moving.ops[largest[0]], "bytes": largest[5],
            "took_ns": largest[4] - largest[3], "from": f"GPU:{largest[1]}", "to": f"GPU:{largest[2]}",
        },
        "plan": {
            "name": "multi_step_on_iterator", "makespan_ns": plan.predicted.makespan_s * 1e9, "default_makespan_ns": plan.default.makespan_s * 1e9,
            "peak_bytes": max(plan.predicted.peak_bytes.values()), "default_peak_bytes": max(plan.default.peak_bytes.values()),
            "bound_ns": plan.bounds.makespan_s * 1e9, "fingerprint": plan.fingerprint, "method": plan.search.method,
            "seeds": len(d.search["seeds"]), "first_peak_bytes": max(b for _, b in plan.memory[0]),
            "measured_ns": overview["measured"] and overview["measured"]["step_ns"],
            "longest": {
                "name": plan.ops[op], "start_ns": int(plan.start_ns[op]), "end_ns": int(plan.end_ns[op]),
                "neighbours": sorted(inputs | consumers | edges), "row_y": 26 + 26 + 24 * (before + int(lane[op])) + 10,
            },
            "outputs": d.outputs[op], "topology": plan.topology.name, "memory_steps": len(plan.memory[0]),
            "search": {"text": "conv2d", "count": len(found), "first": plan.ops[min(found, key=lambda o: (plan.start_ns[o], o))]},
        },
    }  # fmt: skip


def drive(script, tmp_path, **arguments):
    """Runs a script of browser/ with arguments for it."""
    screenshots = pathlib.Path(SCREENSHOTS or tmp_path / "screenshots")
    screenshots.mkdir(parents=True, exist_ok=True)
    arguments |= {"chromium": CHROMIUM, "modules": str(MODULES), "screenshots": str(screenshots)}
    (tmp_path / "arguments.json").write_text(json.dumps(arguments), encoding="utf-8")
    command = ["node", str(HERE / "browser" / script), str(tmp_path / "arguments.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n")


@needs_browser
def test_html_file(tmp_path):
    path = tmp_path / "plan.json"
    plan_of(hostile=True).save(path)
    assert cli.main(["show", str(path), "--html", str(tmp_path / "plan.html")]) == 0
    drive("page.mjs", tmp_path, url=(tmp_path / "plan.html").as_uri(), makespan=f"{plan_of(hostile=True).predicted.makespan_s * 1e3:.3f}".rstrip("0"))


@needs_browser
def test_html_file_of_a_log_directory(tmp_path):
    plan = plan_of(hostile=True)
    events = {plan.topology.names[0].partition("/device")[0]: [(name, 1000 * i, 1000 * i + 500) for i, name in enumerate(plan.ops)]}
    writer.write_report(Report("f", "planned", "", plan=plan), tmp_path, measured=measured.from_events(plan, events, began_ns=0, step_ns=1_000_000))
    (path,) = tmp_path.glob("plugins/tf_regal/*.plan.json")
    assert cli.main(["show", str(path), "--html", str(tmp_path / "plan.html")]) == 0
    url = (tmp_path / "plan.html").as_uri()
    drive("page.mjs", tmp_path, url=url, makespan=f"{plan.predicted.makespan_s * 1e3:.3f}".rstrip("0"), measured=True)


@needs_browser
@pytest.mark.parametrize("options", [["--load_fast=true"], ["--load_fast=false", "--path_prefix", "/behind/a/proxy"]], ids=["fast", "prefix"])
def test_tab(logdir, tmp_path, options):
    with TensorBoard(logdir, *options) as tensorboard:
        drive("views.mjs", tmp_path, url=tensorboard.url, expected=expectations(logdir))


def fetch(url):
    import urllib.request

    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read()


@pytest.mark.parametrize("loader", ["true", "false"])
def test_routes_of_a_running_tensorboard(logdir, loader):
    """What `pip install tf-regal[tensorboard]` makes of `tensorboard --logdir`: the plugin is found, is active, and serves; with each data loader."""
    import time

    with TensorBoard(logdir, f"--load_fast={loader}") as tensorboard:
        base = tensorboard.url.rstrip("/")
        for _ in range(120):  # it loads in the background
            listing = json.loads(fetch(f"{base}/data/plugins_listing"))
            plans = json.loads(fetch(f"{base}/data/plugin/tf_regal/plans"))["plans"]
            if listing["tf_regal"]["enabled"] and any(p["status"] == "skipped" for p in plans):
                break
            time.sleep(0.5)
        assert listing["tf_regal"]["enabled"]
        assert listing["tf_regal"]["tab_name"] == "REGAL"
        assert {p["status"] for p in plans} >= {"planned", "skipped", "saved"}
        for plan in plans:
            if plan["has_plan"]:
                found = json.loads(fetch(f"{base}/data/plugin/tf_regal/piece?id={plan['id']}&name=overview.json"))
                assert found["fingerprint"] == plan["fingerprint"]
        assert b"export async function render" in fetch(f"{base}/data/plugin/tf_regal/static/main.js")

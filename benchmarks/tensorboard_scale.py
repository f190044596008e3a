"""How fast TensorBoard's tab is with a large plan: a made-up graph of 100,000 ops on four devices, opened in headless Chromium.

    make browser-tools; python benchmarks/tensorboard_scale.py     → docs/tensorboard_scale.md

"Opens": from the beginning of the navigation to the tab's own page (its modules, the list, the plan) to the first picture, and to the picture with every
bar. Frames: the view is moved once per animation frame, for two seconds,
over half of the step and at a hundredth of it.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

from tf_regal import problem as problem_lib
from tf_regal.devices import Topology
from tf_regal.graph.opgraph import OpGraph
from tf_regal.plans import planner
from tf_regal.settings import Settings

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOC = ROOT / "docs" / "tensorboard_scale.md"
TYPES = ("MatMul", "Relu", "Conv2D", "AddV2", "Mul", "BiasAdd", "Transpose", "Softmax")


def make_graph(n_ops, seed=0):
    """A graph of layers, eight branches side by side: every op takes one to three of the ops shortly before it."""
    rng = np.random.default_rng(seed)
    inputs = [sorted({max(0, i - int(x)) for x in rng.integers(1, 40, rng.integers(1, 4))}) if i else [] for i in range(n_ops)]
    ptr, idx = problem_lib.csr(inputs)
    empty = problem_lib.csr([[]] * n_ops)
    types = [TYPES[i % len(TYPES)] for i in range(n_ops)]
    names = [f"model/layer_{i // 400}/branch_{i % 8}/{types[i]}_{i}" for i in range(n_ops)]
    return OpGraph(
        names=names, types=types, devices=[""] * n_ops, kinds=[["CPU", "GPU"]] * n_ops, members=[[name] for name in names], group=np.arange(n_ops),
        persistent=np.zeros(n_ops), orderable=np.ones(n_ops, bool), producer=np.arange(n_ops), size=rng.integers(1_000, 4_000_000, n_ops),
        view=np.full(n_ops, -1), lifetime=np.zeros(n_ops), reuse_ptr=empty[0], reuse_idx=empty[1], input_ptr=ptr, input_idx=idx, control_ptr=empty[0],
        control_idx=empty[1], fingerprint="0" * 64, durations={"*": rng.integers(2_000, 60_000, n_ops)}, outputs=["float32[64, 64]"] * n_ops,
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="openings (default: %(default)s)")
    parser.add_argument("-o", "--output", default=DOC, help="(default: %(default)s)")
    args = parser.parse_args()
    from tf_regal.tensorboard import writer

    chromium, modules = shutil.which("chromium"), pathlib.Path(sys.prefix) / "browser"
    if not chromium or not (modules / "node_modules").is_dir():
        sys.exit("needs chromium, node and playwright-core: on Debian apt-get install chromium nodejs npm, then make browser-tools")
    settings = Settings.make({"topology": "4xA100-40GB", "method": "heft", "order": "none"})
    plan = planner.make_plan(make_graph(args.ops), Topology.parse(settings.topology), settings)
    with tempfile.TemporaryDirectory() as logdir:
        began = time.perf_counter()
        path = pathlib.Path(writer.write_plan(plan, logdir))
        writing = time.perf_counter() - began
        sizes = {name: path.with_name(path.name.replace("plan.json", name)).stat().st_size / 1e6 for name in ("plan.json", "view.zip")}
        command = [str(pathlib.Path(sys.executable).parent / "tensorboard"), "--logdir", logdir, "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            url = next(line for line in server.stderr if "http://" in line)
            url = "http://" + url.split("http://")[1].split()[0].replace("localhost", "127.0.0.1")
            script = ROOT / "benchmarks" / "tensorboard_scale.mjs"
            node = ["node", str(script), url, chromium, str(modules), str(args.repeats)]
            done = subprocess.run(node, capture_output=True, text=True, check=False, timeout=400)
        finally:
            server.kill()
            server.communicate()
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    found = json.loads(done.stdout)

    def spread(values):
        return f"{np.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    lines = [
        "# The TensorBoard tab with a large plan\n",
        f"`python benchmarks/tensorboard_scale.py`, {time.strftime('%Y-%m-%d')}: {args.ops:,} ops on four devices, {len(plan.transfers):,} transfers,",
        f"planned and default schedule, headless Chromium and TensorBoard on the same two cores; median and range of {args.repeats} openings.\n",
        "| | |\n|---|---|",
        f"| opens: first picture, s | {spread(found['first'])} |",
        f"| opens: every bar, s | {spread(found['all'])} |",
        f"| names and edges too, s | {spread(found['names'])} |",
        f"| frames per second, panning at a hundredth of the step | {spread(found['near'])} |",
        f"| frames per second, panning over half of the step | {spread(found['far'])} |",
        f"| drawing a frame of the whole step, ms | {spread(found['paint'])} |",
        f"| written in, s; plan and view, MB | {writing:.1f}; {sizes['plan.json']:.1f}, {sizes['view.zip']:.1f} |",
    ]
    print("\n".join(lines))
    pathlib.Path(args.output).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

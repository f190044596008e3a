"""Command line of the benchmark set.

    python -m benchmarks.zoo build [NAMES…] [--jobs N]     captures what is missing (needs TensorFlow; about a minute per model)
    python -m benchmarks.zoo list [--split S] [--markdown] what is stored

NAMES are models or families. Every model is captured in a process of its own. For the graph networks: pip install spektral (it needs tf_keras).
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

from benchmarks import zoo

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    build = verbs.add_parser("build", help="capture the graphs that are missing")
    build.add_argument("names", nargs="*", metavar="NAME", help="models or families; default: all")
    build.add_argument("--jobs", type=int, default=1, help="models that are captured at the same time")
    listing = verbs.add_parser("list", help="what is stored, with the default plan's figures on 2xA100-40GB")
    listing.add_argument("--split", choices=zoo.SPLITS)
    listing.add_argument("--markdown", action="store_true", help="the table of README.md: one row per model")
    args = parser.parse_args(argv)
    if args.verb == "build":
        return run_build(args.names, args.jobs)
    from benchmarks.zoo import listing as listing_lib

    return listing_lib.run(args.split, args.markdown)


def run_build(names, jobs):
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
    from benchmarks.zoo import families

    unknown = [n for n in names if n not in families.MODELS and n not in families.FAMILIES]
    if unknown or jobs < 1:
        what = f"--jobs={jobs}: expected 1 or more" if jobs < 1 else f"{unknown[0]!r} is no model or family; there are {', '.join(families.FAMILIES)}"
        print(what, file=sys.stderr)
        return 2
    chosen = [m for f, models in families.FAMILIES.items() for m in models if not names or f in names or m.name in names]
    missing = [m for m in chosen if not all(zoo.path(f"{m.name}-{mode}-b{b}").is_file() for mode in zoo.MODES for b in m.batches(mode))]
    print(f"{len(chosen) - len(missing)} of {len(chosen)} models are there", flush=True)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        done = {pool.submit(_capture, model): model for model in missing}
        for count, future in enumerate(concurrent.futures.as_completed(done), 1):
            model = done[future].name
            if future.result() != 0:
                failed.append(model)
            print(f"[{count}/{len(missing)}] {model}{': FAILED' if model in failed else ''}", flush=True)
    return 1 if failed else 0


def _capture(model):
    """The child's exit status. What could change a graph from one machine or process to the next is fixed in its environment."""
    environment = {
        **os.environ, "PYTHONHASHSEED": "0", "TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1",
        "TF_USE_LEGACY_KERAS": "1" if model.legacy_keras else "0",
    }
    return subprocess.run([sys.executable, "-m", "benchmarks.zoo.capture", model.name], env=environment, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

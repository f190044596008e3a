"""How long a policy takes to propose, features included, beside the search that it is for. From the repository's root:

    python -m benchmarks.policy_speed [--ops 1000,10000] [--repeats 5]

Generated graphs on two and eight A100; medians of calls after the first one (which also traces), and of searches with 5,000 evaluations, in turn.
"""

import argparse
import time

from tf_regal.bench import graphs, timing
from tf_regal.devices import Topology
from tf_regal.plans.planner import default_placement
from tf_regal.policy import cards, features, inference
from tf_regal.problem import build
from tf_regal.search import METHODS, OBJECTIVES, Budget, Task


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", default="1000,10000", help="sizes of the graphs (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="default: %(default)s")
    arguments = parser.parse_args(argv)
    print("| objective | ops | devices | features | proposal | first call | search | share |\n|---|---|---|---|---|---|---|---|")
    for objective in OBJECTIVES:
        policy = inference.Policy(cards.shipped(objective), objective)
        for size in map(int, arguments.ops.split(",")):
            for devices in (2, 8):
                problem = build(graphs.layered(size), Topology.parse(f"{devices}xA100-40GB"))[0]
                task = Task(problem, objective, default_placement(problem), makespan_limit=2**62)
                began = time.perf_counter()
                policy.propose(task)
                first = time.perf_counter() - began
                calls = {
                    "features": lambda task=task: features.extract(task), "proposal": lambda task=task, policy=policy: policy.propose(task),
                    "search": lambda task=task: METHODS["regal"](task, Budget(5000)),
                }  # fmt: skip
                found = timing.interleaved({name: lambda call=call: timing.seconds(call) for name, call in calls.items()}, arguments.repeats)
                median = {name: timing.Sample.of(values).median for name, values in found.items()}
                times = " | ".join(f"{seconds * 1e3:.0f} ms" for seconds in (median["features"], median["proposal"], first, median["search"]))
                print(f"| {objective} | {size} | {devices} | {times} | {median['proposal'] / median['search']:.1%} |", flush=True)


if __name__ == "__main__":
    main()

"""How long a graph of 100,000 ops takes to plan, with how much memory, and what is gained over the heuristics.

The graph is a real one, stacked: copies of a graph of the zoo one after the other, the results of one copy ordered before the next. Prints Markdown; run
from the root of the repository: python -m benchmarks.scale [--graph NAME] [--ops N] [--seconds S]
"""

import argparse
import resource
import time

import numpy as np

from benchmarks import zoo
from tf_regal import problem as problem_lib
from tf_regal.devices import Topology
from tf_regal.plans.planner import default_placement
from tf_regal.search import Budget, Task, method, regal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="resnet50-training-b16", help="graph of the zoo (default: %(default)s)")
    parser.add_argument("--ops", type=int, default=100_000, help="size of the stacked graph (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=45.0, help="budget of each search (default: %(default)s)")
    parser.add_argument("--topology", default="2xA100-40GB", help="devices (default: %(default)s)")
    args = parser.parse_args()
    problem, _ = problem_lib.build(zoo.load(args.graph), Topology.parse(args.topology))
    problem = stack(problem, -(-args.ops // problem.n_ops))
    print(f"{args.graph} stacked to {problem.n_ops} ops, {problem.n_tensors} tensors, {args.topology}; {args.seconds:g} s of search.\n")
    print("| objective | seconds in all | evaluations | default | best seed | found | below the best seed | lower bound | memory of the process so far, GB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for objective in ("runtime", "peak_memory"):
        print(_row(problem, objective, args.seconds), flush=True)


def _row(problem, objective, seconds):
    task = Task(problem, objective, default_placement(problem))
    default = method("default")(task, None)
    if objective == "peak_memory":
        task.makespan_limit = int(1.5 * default.run.makespan)
    seed = min(task.key(s.run) for s in regal.seeds(task))[2]
    began = time.monotonic()
    solution = method("regal")(task, Budget(5000, seconds))
    took = time.monotonic() - began
    found, bound = task.key(solution.run)[2], task.simulator.bounds()[objective == "peak_memory"]
    unit, scale = ("ms", 1e6) if objective == "runtime" else ("MB", 1e6)
    cells = [f"{x / scale:.1f} {unit}" for x in (task.key(default.run)[2], seed, found)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    share = f"{100 * (1 - found / seed):.2f} %"
    return f"| {objective} | {took:.1f} | {solution.evaluations} | {' | '.join(cells)} | {share} | {bound / scale:.1f} {unit} | {memory:.2f} |"


def stack(problem, copies):
    """The problem `copies` times; what nothing waits for in one copy runs before what waits for nothing in the next."""
    p, n, m, g = problem, problem.n_ops, problem.n_tensors, problem.n_groups
    has_predecessor = (np.diff(p.input_ptr) + np.diff(p.control_ptr)) > 0
    has_successor = np.zeros(n, bool)
    has_successor[p.producer[p.input_idx]] = True
    has_successor[p.control_idx] = True
    # Through one op of the copy, so that the edges do not multiply: its first source waits for all last ops, the other sources for it.
    first, *others = np.flatnonzero(~has_predecessor).tolist()
    last = np.flatnonzero(~has_successor & (np.arange(n) != first)).tolist()
    control = []
    for k in range(copies):
        rows = [(p.control_inputs(op) + k * n).tolist() for op in range(n)]
        if k > 0:
            rows[first] = [(k - 1) * n + op for op in last]
        for op in others:
            rows[op] = [k * n + first]
        control += rows
    control_ptr, control_idx = problem_lib.csr(control)

    def shifted(values, step):
        return np.concatenate([np.where(values >= 0, values + k * step, values) for k in range(copies)])

    def pointers(ptr):
        return np.concatenate([[0], *(ptr[1:] + k * ptr[-1] for k in range(copies))])

    return p.replace(
        duration=np.tile(p.duration, (copies, 1)), scratch=np.tile(p.scratch, (copies, 1)), persistent=np.tile(p.persistent, copies),
        group=shifted(p.group, g), producer=shifted(p.producer, n), size=np.tile(p.size, copies), view=shifted(p.view, m),
        lifetime=np.tile(p.lifetime, copies), reuse_ptr=pointers(p.reuse_ptr), reuse_idx=shifted(p.reuse_idx, m),
        input_ptr=pointers(p.input_ptr), input_idx=shifted(p.input_idx, m), control_ptr=control_ptr, control_idx=control_idx,
    )


if __name__ == "__main__":
    main()

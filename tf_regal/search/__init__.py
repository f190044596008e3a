"""Search methods: one file each; `run(task, budget)` → `Solution`. Knows nothing of TensorFlow.

`METHODS` names them all. A method gets a `Task` (a Problem and what to improve) and a `Budget`.
"""

from tf_regal.search import brkga, default, heuristics, regal
from tf_regal.search.task import OBJECTIVES, Budget, Solution, Task

METHODS = {
    "regal": regal.run,
    "brkga": brkga.run,
    "default": default.run,
    "single_device": default.run_single_device,
    "heft": heuristics.run_heft,
    "critical_path": heuristics.run_critical_path,
    "memory_greedy": heuristics.run_memory_greedy,
    "depth_first": heuristics.run_depth_first,
    "topological": heuristics.run_topological,
}

__all__ = ["METHODS", "OBJECTIVES", "Budget", "Solution", "Task"]

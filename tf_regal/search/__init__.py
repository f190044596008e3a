"""Search methods: one file each; `run(task, budget)` → `Solution`. Knows nothing of TensorFlow.

`METHODS` names them all. A method gets a `Task` (a Problem and what to improve) and a `Budget`.
"""

import difflib
import functools

from tf_regal import errors
from tf_regal.search import brkga, cp_sat, default, gp_dfs, heuristics, local_search, m_etf, m_topo, one_shot, random_search, regal, tuned_brkga
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
    "random": random_search.run,
    "idrs": random_search.run_proposed,
    "local_search": local_search.run,
    "gp_dfs": gp_dfs.run,
    "m_etf": m_etf.run,
    "m_topo": m_topo.run,
    "one_shot": one_shot.run,
    "tuned_brkga": tuned_brkga.run,
    "cp_sat": cp_sat.run,
}

_DRAWING = {"brkga", "tuned_brkga", "idrs"}  # besides regal


def uses_proposals(name):
    """Whether a method draws keys from the task's proposal."""
    return name in _DRAWING or name.partition("-without-")[0] == "regal"


def method(name):
    """The method of a name: of METHODS, or "regal-without-INGREDIENT" (`regal.INGREDIENTS`; several with "+" between them).

    Raises InvalidArgumentError where there is none.
    """
    text = name if isinstance(name, str) else ""
    if text in METHODS:
        return METHODS[text]
    base, _, left_out = text.partition("-without-")
    without = frozenset(left_out.split("+"))
    if base == "regal" and without <= regal.INGREDIENTS.keys():
        return functools.partial(regal.run, without=without)
    close = difflib.get_close_matches(text, METHODS, 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise errors.InvalidArgumentError(
        f"method={name!r} is not known; expected one of {', '.join(map(repr, METHODS))}, or 'regal-without-' and one of {', '.join(regal.INGREDIENTS)}.{hint}"
    )


__all__ = ["METHODS", "OBJECTIVES", "Budget", "Solution", "Task", "method", "uses_proposals"]

"""Records what the shipped policies propose for one graph, for tests/policy/test_inference.py. Run it only after new policies were put into saved_policies/.

    python tools/record_golden.py
"""

import pathlib

import numpy as np

from tf_regal.bench import graphs
from tf_regal.devices import Topology
from tf_regal.plans.planner import default_placement
from tf_regal.policy import cards, inference
from tf_regal.problem import build
from tf_regal.search import OBJECTIVES, Task

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "tests" / "policy"

for objective in OBJECTIVES:
    problem = build(graphs.layered(200), Topology.parse("2xA100-40GB"))[0]
    made = inference.Policy(cards.shipped(objective), objective).propose(Task(problem, objective, default_placement(problem)))
    np.savez_compressed(FOLDER / f"golden_{objective}.npz", affinity=made.affinity, priority=made.priority)

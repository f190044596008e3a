import pytest

from . import core, reference


@pytest.fixture(params=[reference, core], ids=["twin", "core"])
def simulator(request):
    """Each implementation of docs/simulator.md: the hand-made cases must hold for both."""
    return request.param


@pytest.fixture
def run(simulator):
    """run(graph, device, priority, …) → Result. By default all ops are on device 0 and have the same priority."""
    def run(graph, device=None, priority=None, **options):
        n = len(graph.ops)
        return simulator.simulate(graph.problem(), device or [0] * n, priority or [0.0] * n, **options)
    return run

"""The native core with the interface of its twin (reference.py), so that one test can run on both."""

import numpy as np

from . import reference


def simulate(problem, device, priority, transfer_priority=None, discipline="priority"):
    # Imported late: the tests of the twin also run where the core is not built.
    from tf_regal import ops
    run = ops.Simulator(problem).run(*arrays(device, priority, transfer_priority), discipline=discipline, timeline=True)
    return as_result(run)


def bounds(problem):
    from tf_regal import ops
    return tuple(ops.Simulator(problem).bounds())


def arrays(device, priority, transfer_priority=None):
    """A candidate as arrays of the dtypes that the page names."""
    if transfer_priority is not None:
        transfer_priority = np.asarray(transfer_priority, np.float32)
    return np.asarray(device, np.int32), np.asarray(priority, np.float32), transfer_priority


def as_result(run):
    return reference.Result(
        makespan=run.makespan, peak=run.peak.tolist(), transfer_bytes=run.transfer_bytes, feasible=run.feasible,
        start=run.start.tolist(), end=run.end.tolist(), start_order=run.start_order.tolist(),
        transfers=[tuple(row) for row in run.transfers.tolist()],
        memory=[[tuple(row) for row in curve.tolist()] for curve in run.memory])

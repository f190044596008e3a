"""Files with graphs, for verbs that need costs but no model that can run."""

from tf_regal.cli import startup
from tf_regal.graph import task_graphs

JSON = (".json", ".json.xz")


def read(path, *topologies):
    """OpGraph with costs for the topologies (those of a JSON file are its own). Loads TensorFlow for what is not JSON.

    Raises GraphError where it cannot be read.
    """
    if path.endswith(JSON):
        return task_graphs.load(path)
    startup.load_tensorflow()
    from tf_regal.costs import analytic
    from tf_regal.graph import models

    # Costs, and the devices of arguments, are those of the topology.
    found = models.read(path, default_device=topologies[0].names[0])
    if found.capture is not None:
        for topology in topologies:
            analytic.add_costs(found.capture, topology)
    return found.graph

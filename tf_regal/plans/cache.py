"""Plans on disk, keyed by what decides them: the graph's content, the topology, the settings and this version."""

import hashlib
import json

from absl import logging

from tf_regal import errors, storage
from tf_regal.plans import plan as plan_lib

_VERSION = 4
"""Raised whenever the same input would give another plan."""


class PlanCache:
    """A directory of plan files. A damaged entry is one warning and a miss; a directory that cannot be written is one warning and no cache."""

    def __init__(self, directory):
        """directory: see `storage.cache_directory`."""
        self.directory = storage.cache_directory(directory)

    def path(self, graph, topology, settings):
        """Where the plan for this input is or would be; None without a cache."""
        if self.directory is None:
            return None
        key = json.dumps([_VERSION, plan_lib.SCHEMA, graph.fingerprint, topology.to_json(), settings.key()], sort_keys=True)
        return self.directory / f"{hashlib.sha256(key.encode()).hexdigest()}.json"

    def load(self, graph, topology, settings):
        """The saved plan with the graph's own op names, or None."""
        path = self.path(graph, topology, settings)
        if path is None or not path.exists():
            return None
        try:
            plan = plan_lib.load_plan(path)
            if plan.fingerprint != graph.fingerprint:
                raise errors.PlanFileError(f"{path} holds a plan for another graph")
            return plan.renamed(graph.names)
        except errors.TfRegalError as error:
            logging.warning("tf_regal: the saved plan is not used, the function is planned again: %s", error)
            return None

    def save(self, graph, topology, settings, plan):
        path = self.path(graph, topology, settings)
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            plan.save(path)
        except OSError as error:
            logging.warning("tf_regal: the plan could not be saved to %s (%s); set cache_dir to a directory that can be written", path.parent, error)

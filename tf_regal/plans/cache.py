"""Plans on disk, keyed by what decides them: the graph's content, the topology, the settings and this version."""

import hashlib
import json
import os
import pathlib

from absl import logging

from tf_regal import errors
from tf_regal.plans import plan as plan_lib

_VERSION = 3
"""Raised whenever the same input would give another plan."""


class PlanCache:
    """A directory of plan files. A damaged entry is one warning and a miss; a directory that cannot be written is one warning and no cache."""

    def __init__(self, directory):
        """directory: a path; None: $TF_REGAL_CACHE_DIR, else tf_regal below the user's cache directory; False: nothing is kept."""
        if directory is None:
            base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
            directory = os.environ.get("TF_REGAL_CACHE_DIR") or os.path.join(base, "tf_regal")
        self.directory = pathlib.Path(directory) if directory is not False else None

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

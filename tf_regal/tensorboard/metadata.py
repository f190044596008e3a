"""Names and formats that the writer and the plugin share. Imports neither TensorFlow nor TensorBoard.

In a log directory, for each plan (or function without one) that a program writes:

    tf_regal/<process>/events.out.tfevents.…      a run of its own per process: a value per plan, tag "<function>/<id>", of PLUGIN_NAME: `views.summary` as JSON
    plugins/tf_regal/<id>.plan.json               the Plan, as `Plan.save` writes it
    plugins/tf_regal/<id>.view.zip                its pieces for the front end (`views.chunks`)
"""

import json
import re

PLUGIN_NAME = "tf_regal"
VERSION = 1
ASSETS = "plugins/tf_regal"
RUNS = "tf_regal"
_IDENTITY = re.compile(r"[A-Za-z0-9_-]{1,64}")

MAX_SUMMARY = 1 << 20
MAX_PLAN = 512 << 20
"""Bytes; what is larger is not read."""


def content():
    """What goes with every summary value: which version wrote it."""
    return json.dumps({"version": VERSION}).encode()


def version_of(data):
    """The version in such bytes, or None where they are not ours."""
    try:
        version = json.loads(data)["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return version if isinstance(version, int) else None


def is_identity(text):
    """Whether a text can be a plan's id: it becomes a part of a file's name."""
    return isinstance(text, str) and _IDENTITY.fullmatch(text) is not None

"""tf-regal: a TensorFlow graph optimizer. Decides placement and order of every op, for speed or for peak memory.

Names are loaded when they are first used, so that `import tf_regal` and `tf-regal --help` do not import TensorFlow.
"""

import importlib

__version__ = "0.1.0"

_HOME = {
    "Plan": "tf_regal.plans",
    "Report": "tf_regal.plans",
    "Topology": "tf_regal.devices",
    "apply": "tf_regal.api",
    "disable": "tf_regal.hook",
    "enable": "tf_regal.hook",
    "errors": None,
    "function": "tf_regal.hook",
    "is_enabled": "tf_regal.hook",
    "load_plan": "tf_regal.plans",
    "move_variables": "tf_regal.hook",
    "optimize": "tf_regal.hook",
    "plan": "tf_regal.api",
    "profile": "tf_regal.hook",
    "reports": "tf_regal.hook",
    "write_plan": "tf_regal.tensorboard.writer",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'tf_regal' has no attribute {name!r}; it has {', '.join(__all__)}")
    home = _HOME[name]
    return importlib.import_module("tf_regal." + name) if home is None else getattr(importlib.import_module(home), name)


def __dir__():
    return [*__all__, "__version__"]

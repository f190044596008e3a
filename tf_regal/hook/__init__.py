"""`enable`, `disable`, `function`, `optimize`: which functions are planned, when, and what happens when it fails."""

from tf_regal.hook.session import disable, enable, function, is_enabled, optimize, reports

__all__ = ["disable", "enable", "function", "is_enabled", "optimize", "reports"]

"""`enable`, `disable`, `function`, `optimize`: which functions are planned, when, and what happens when it fails."""

from tf_regal.hook.measuring import profile_function as profile
from tf_regal.hook.session import disable, enable, function, is_enabled, optimize, reports
from tf_regal.hook.variables import move_variables

__all__ = ["disable", "enable", "function", "is_enabled", "move_variables", "optimize", "profile", "reports"]

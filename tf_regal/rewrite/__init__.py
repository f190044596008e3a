"""Plan → new function, and reading back what was really applied."""

from tf_regal.rewrite.functiondef import planned_function_def
from tf_regal.rewrite.graphdef import planned_graph_def

__all__ = ["planned_function_def", "planned_graph_def"]

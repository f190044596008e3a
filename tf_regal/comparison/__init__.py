"""Search methods side by side: every method on every graph with the same budget, and what that shows. Knows nothing of TensorFlow."""

from tf_regal.comparison.methods import Spec
from tf_regal.comparison.results import ResultsFile
from tf_regal.comparison.runner import Setting, execute, prepare
from tf_regal.comparison.statistics import summarize

__all__ = ["ResultsFile", "Setting", "Spec", "execute", "prepare", "summarize"]

"""ConcreteFunction, GraphDef, SavedModel and exchange formats → `OpGraph`: the graph of what will run."""

from tf_regal.graph.opgraph import OpGraph

__all__ = ["OpGraph"]

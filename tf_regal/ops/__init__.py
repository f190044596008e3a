"""The native core: the simulator (docs/simulator.md) and BRKGA over it.

Wrong input raises ValueError with the name of the array or option; see `_core.pyi` for the signatures.
"""

from tf_regal.ops._core import Brkga, Simulator

__all__ = ["Brkga", "Simulator"]

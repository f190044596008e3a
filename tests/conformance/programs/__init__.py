"""The program kinds of the conformance suite, by name."""

from . import elsewhere, functions, legacy, models  # noqa: F401
from .registry import PROGRAMS, Instance, Program

__all__ = ["PROGRAMS", "Instance", "Program"]

"""Checks that the constructors of this package share; every failure is a `TopologyError` that names the argument."""

import difflib
import math
import numbers
import operator
import reprlib

from tf_regal.errors import TopologyError

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 120
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = 6

# Everything is int64 nanoseconds or bytes in the simulator.
MAX_INT64 = 2**63 - 1


def shown(value):
    """`repr` of a value that came from outside, cut to a length that fits into a message."""
    return _SHORT.repr(value)


def whole(name, value, minimum, unit):
    """`value` as an int in [minimum, 2**63), or a TopologyError. A float is taken if it is integral (JSON's 5e3)."""
    try:
        if isinstance(value, bool):
            raise TypeError
        integral = not isinstance(value, int) and isinstance(value, numbers.Real) and math.isfinite(value) and value == math.floor(value)
        number = int(value) if integral else operator.index(value)
    except (TypeError, ValueError):
        raise TopologyError(
            f"{name}={shown(value)} is not a whole number: give {unit} as an int >= {minimum}"
        ) from None
    if not minimum <= number <= MAX_INT64:
        raise TopologyError(f"{name}={shown(value)} is out of range: give {unit}, {minimum} to 2**63 - 1")
    return number


def positive(name, value, unit, infinite=False):
    """`value` as a float > 0 (finite, unless `infinite`), or a TopologyError."""
    allowed = f"{unit}, a number > 0" + (" (math.inf: free)" if infinite else " and finite")
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TopologyError(f"{name}={shown(value)} is not a number: give {allowed}")
    try:
        number = float(value)
    except OverflowError:  # an int that no float holds
        number = math.nan
    if not number > 0 or (math.isinf(number) and not infinite):
        raise TopologyError(f"{name}={shown(value)} is out of range: give {allowed}")
    return number


def text(name, value):
    """`value` if it is a str that is not empty, or a TopologyError."""
    if not isinstance(value, str) or not value.strip():
        raise TopologyError(f"{name}={shown(value)} must be a str that is not empty")
    return value


def closest(word, words):
    """A hint ("; did you mean 'A100-40GB'") or "" when nothing is near. Letter case does not count."""
    by_lower = {known.lower(): known for known in words}
    near = difflib.get_close_matches(word.lower(), by_lower, n=3, cutoff=0.5)
    if not near:
        return ""
    return "; did you mean " + " or ".join(repr(by_lower[match]) for match in near)

"""Columns of numbers that were read from a file: whole, and within bounds, or a ValueError that says which are not."""

import numpy as np


def whole(name, values, columns=None):
    """int64 [k] or [k, columns] from a list of whole numbers (ValueError otherwise: nothing is cut or rounded silently)."""
    array = np.array(values)
    if array.size == 0 and isinstance(values, list) and not any(values):
        return np.empty((0,) if columns is None else (0, columns), np.int64)
    if array.dtype != np.int64 or array.ndim != (1 if columns is None else 2) or (columns is not None and array.shape[1] != columns):
        raise ValueError(f"{name} must hold {'whole numbers' if columns is None else f'rows of {columns} whole numbers'}")
    return array


def in_range(name, values, high):
    """ValueError where one of the indices is not from 0 to high − 1."""
    if values.size and (values.min() < 0 or values.max() >= high):
        raise ValueError(f"{name} names what is not there")


def rows(name, values, columns):
    """The same as `whole` with columns, as a list of tuples."""
    return [tuple(row) for row in whole(name, values, columns).tolist()]

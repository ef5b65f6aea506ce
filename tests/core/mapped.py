"""Whether the content of an array stands in memory, or in a file."""

import mmap

import numpy as np


def is_mapped(array: np.ndarray) -> bool:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)

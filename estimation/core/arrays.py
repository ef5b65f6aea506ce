"""Array types of the core, and the checks that its public functions share."""

import hashlib
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Int32Array: TypeAlias = NDArray[np.int32]
BoolArray: TypeAlias = NDArray[np.bool_]
BytesArray: TypeAlias = NDArray[np.bytes_]
SparseMatrix: TypeAlias = Any  # scipy.sparse.csr_array; SciPy ships no type information


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous array that cannot be written to, for fields of frozen dataclasses."""
    result = np.ascontiguousarray(array)
    if result is array and array.flags.writeable:
        result = array.copy()
    result.flags.writeable = False
    return result


def index_array(values: ArrayLike, *, below: int, name: str) -> IntArray:
    """Check a vector of indices in 0..below-1 and return it as int64."""
    result = np.asarray(values)
    if result.ndim != 1 or (result.size and not np.issubdtype(result.dtype, np.integer)):
        raise ValueError(f"{name} must be a vector of integers")
    if result.size and (result.min() < 0 or result.max() >= below):
        raise ValueError(f"{name} must lie between 0 and {below - 1}")
    return result.astype(np.int64)


def check_fraction(value: float, *, name: str) -> None:
    """Raise ValueError unless 0 <= value <= 1."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, not {value!r}")


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless 0 < confidence < 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1, not {confidence!r}")


def column_sums(columns: NDArray[Any], values: FloatArray, *, number: int) -> FloatArray:
    """Add up `values` by column, from first to last: the same bits on every call."""
    sums = np.bincount(columns, weights=values, minlength=number)
    return np.asarray(sums, dtype=np.float64)


def content_digest(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 (hex) of byte strings, each preceded by its length."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.hexdigest()


def portable_bytes(array: NDArray[Any]) -> bytes:
    """Return dtype, shape and content of an array as bytes that do not depend on the machine."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return f"{little.dtype.str}{little.shape}".encode() + little.tobytes()

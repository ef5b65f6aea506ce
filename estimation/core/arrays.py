"""Array types of the core, and the checks that its public functions share."""

from __future__ import annotations

import difflib
import hashlib
import math
import weakref
from collections import deque
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Int32Array: TypeAlias = NDArray[np.int32]
BoolArray: TypeAlias = NDArray[np.bool_]
BytesArray: TypeAlias = NDArray[np.bytes_]
Indices: TypeAlias = NDArray[np.integer[Any]]  # as narrow as suffices
SparseMatrix: TypeAlias = Any  # scipy.sparse.csr_array; SciPy ships no type information
Digests: TypeAlias = tuple[tuple[FloatArray, bytes], ...]

# How like a name must be to be meant, and how like if it begins with another letter.
ALIKE, VERY_ALIKE = 0.7, 0.8


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous array that cannot be written to, for fields of frozen dataclasses."""
    result = np.ascontiguousarray(array)
    if result is array and array.flags.writeable:
        result = array.copy()
    result.flags.writeable = False
    return result


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same contiguous array, which nobody else has: from now on as if `frozen`."""
    array.flags.writeable = False
    return array


def shown(value: object) -> str:
    """Return a value as messages show it: NumPy's numbers as Python's."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def refuse(
    wrong: BoolArray,
    values: NDArray[Any],
    *,
    name: str,
    rule: str,
    error: type[ValueError] = ValueError,
) -> None:
    """Raise an error that names the first of the values that are wrong, if any is."""
    if wrong.any():
        at = int(np.argmax(wrong))
        raise error(f"{name} must {rule}, not {shown(values.ravel()[at])} (item {at})")


def index_array(
    values: ArrayLike, *, below: int, name: str, error: type[ValueError] = ValueError
) -> IntArray:
    """Check a vector of indices in 0..below-1 and return it as int64."""
    result = np.asarray(values)
    check_integers(result, name=name, error=error)
    if result.size and (result.min() < 0 or result.max() >= below):
        wrong = (result < 0) | (result >= below)
        refuse(wrong, result, name=name, rule=f"lie between 0 and {below - 1}", error=error)
    return result.astype(np.int64)


def check_integers(
    values: NDArray[Any], *, name: str, error: type[ValueError] = ValueError
) -> None:
    """Raise an error unless it is a vector of integers; an empty one may be of any type."""
    if values.ndim != 1:
        raise error(f"{name} must be a vector, not an array of the shape {values.shape}")
    if values.size and not np.issubdtype(values.dtype, np.integer):
        wrong = np.ones(len(values), dtype=bool)
        if np.issubdtype(values.dtype, np.floating) and np.any(values != np.floor(values)):
            wrong = values != np.floor(values)
        refuse(wrong, values, name=name, rule="be a vector of integers", error=error)


def is_number(value: object) -> bool:
    """Whether a value is a real number; truth values are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_whole(
    value: object,
    *,
    name: str,
    least: int = 1,
    most: int | None = None,
    of: str = "",
    error: type[ValueError] = ValueError,
) -> None:
    """Raise an error unless a value is a whole number in a range; `of` says what `most` counts."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    highest = math.inf if most is None else most
    if not (whole and least <= cast("int", value) <= highest):
        upper = f"the {most} {of}" if of else most
        allowed = f"of at least {least}" if most is None else f"between {least} and {upper}"
        raise error(f"{name} must be a whole number {allowed}, not {shown(value)}")


def check_number(
    value: object,
    *,
    name: str,
    least: float | None = None,
    error: type[ValueError] = ValueError,
) -> None:
    """Raise an error unless a value is a finite number of at least `least`, by default above 0."""
    number = cast("float", value) if is_number(value) else math.nan
    if not (math.isfinite(number) and (number > 0.0 if least is None else number >= least)):
        allowed = "above 0" if least is None else f"of at least {least:g}"
        raise error(f"{name} must be a finite number {allowed}, not {shown(value)}")


def check_fraction(value: float, *, name: str, error: type[ValueError] = ValueError) -> None:
    """Raise an error unless 0 <= value <= 1."""
    if not (is_number(value) and 0.0 <= value <= 1.0):
        raise error(f"{name} must lie between 0 and 1, not {shown(value)}")


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless 0 < confidence < 1."""
    if not (is_number(confidence) and 0.0 < confidence < 1.0):
        raise ValueError(f"confidence must lie strictly between 0 and 1, not {shown(confidence)}")


def check_seed(seed: object) -> None:
    """Raise ValueError unless a seed is a text."""
    if not isinstance(seed, str):
        raise ValueError(f"seed must be a text, not {shown(seed)}")


def listed(names: Iterable[str], *, most: int = 10) -> str:
    """Return the first names with commas between them, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def pieces(number: int, size: int = 1 << 14) -> Iterator[slice]:
    """Slices of so many numbers, of which a processor's cache holds several arrays.

    What is worked out number by number in many steps takes half the time, and has the same bits.
    """
    return (slice(start, start + size) for start in range(0, number, size))


ONES: FloatArray = frozen(np.ones(1 << 14))


def at_most_one(values: FloatArray) -> FloatArray:
    """Lower numbers above 1 to 1 in place, and NaN too; return them.

    NumPy takes a third of the time with an array of ones that it takes with the number.
    """
    for piece in pieces(len(values), len(ONES)):
        part = values[piece]
        np.fmin(part, ONES[: len(part)], out=part)
    return values


def column_sums(columns: NDArray[Any], values: FloatArray, *, number: int) -> FloatArray:
    """Add up `values` by column, from first to last: the same bits on every call."""
    sums = np.bincount(columns, weights=values, minlength=number)
    return np.asarray(sums, dtype=np.float64)


def added(gain: FloatArray, reach: FloatArray) -> FloatArray:
    """sum_g gain_g reach_gi, level by level: a product of BLAS could have other bits."""
    total = np.zeros(reach.shape[1])
    for each, share in zip(gain, reach, strict=True):
        total += each * share
    return total


def divided(part: FloatArray, of: FloatArray, where: BoolArray) -> FloatArray:
    """Return part / of where it is meant, and 0 elsewhere; NumPy's own mask takes twice as long."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(where, part / of, 0.0)


def share_of(part: FloatArray, *, of: FloatArray) -> FloatArray:
    """Return parts of what they are parts of; 0 where that is nothing."""
    return divided(part, of, of > 0.0)


def nearest(name: object, known: Iterable[str]) -> str:
    """Return " (did you mean ...?)" with the known names that are most like a wrong one, if any."""
    by_case, wrong = {each.lower(): each for each in known}, str(name).lower()
    swapped = [each for each in by_case if each != wrong and sorted(each) == sorted(wrong)]
    found = swapped[:2] or [
        each
        for each in difflib.get_close_matches(wrong, by_case, n=2, cutoff=ALIKE)
        if each[:1] == wrong[:1] or difflib.SequenceMatcher(None, each, wrong).ratio() >= VERY_ALIKE
    ]
    meant = " or ".join(repr(by_case[each]) for each in found[: 1 if wrong in found else 2])
    return f" (did you mean {meant}?)" if meant else ""


def kind_of(value: object) -> str:
    """Return the class of a value with its article, as a sentence has it."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def no_run(tag: str, runs: Iterable[str], *, named: str = "") -> str:
    """Return the sentence for a run that no pool has; `named` says where it is named."""
    tags = list(runs)
    return f"the pool has no run {tag!r}{nearest(tag, tags)}{named}; its runs are {listed(tags)}"


def spread_rows(rows: SparseMatrix, places: BoolArray) -> SparseMatrix:
    """Put rows where `places` is true, and empty rows between them."""
    lengths = np.zeros(len(places) + 1, dtype=rows.indptr.dtype)
    lengths[1:][places] = np.diff(rows.indptr)
    indptr = np.cumsum(lengths, dtype=lengths.dtype)
    shape = len(places), rows.shape[1]
    return type(rows)((rows.data, rows.indices, indptr), shape=shape)  # spares the web SciPy


@dataclass(frozen=True, eq=False)
class Pieces:
    """A vector that nobody holds whole: it is there piece by piece, as often as it is asked for.

    Attributes
    ----------
    dtype : numpy.dtype
        Of every piece.
    size : int
        Numbers of all pieces together.
    parts : callable
        Returns an iterator of the pieces, contiguous vectors, in their order.
    """

    dtype: np.dtype[Any]
    size: int
    parts: Callable[[], Iterator[NDArray[Any]]]

    def checked(self) -> Iterator[NDArray[Any]]:
        """Yield each piece; ValueError if they are not what was announced."""
        left = self.size
        for part in self.parts():
            left -= len(part)
            if left < 0:
                raise ValueError(f"the pieces have more than {self.size} numbers")
            if part.dtype != self.dtype:
                raise ValueError(f"a piece is of {part.dtype}, not of {self.dtype}")
            yield part
        if left:
            raise ValueError(f"the pieces lack {left} of {self.size} numbers")


def content_digest(parts: Iterable[bytes | NDArray[Any] | Pieces]) -> str:
    """Return the SHA-256 (hex) of byte strings and arrays, each preceded by its length.

    An array counts as its dtype, shape and content, which do not depend on the machine; `Pieces`
    count as the array that they make.
    """
    state = hashlib.sha256()
    for part in parts:
        for piece in [_length_of(part).to_bytes(8, "big"), *_heads(part)]:
            state.update(piece)
        for content in _contents(part):
            state.update(content)
    return state.hexdigest()


def _length_of(part: bytes | NDArray[Any] | Pieces) -> int:
    if isinstance(part, bytes):
        return len(part)
    return part.size * part.dtype.itemsize + sum(map(len, _heads(part)))


def _heads(part: bytes | NDArray[Any] | Pieces) -> list[bytes]:
    if isinstance(part, bytes):
        return []
    shape = (part.size,) if isinstance(part, Pieces) else part.shape
    return [f"{part.dtype.newbyteorder('<').str}{shape}".encode()]


def _contents(part: bytes | NDArray[Any] | Pieces) -> Iterable[bytes | memoryview]:
    if isinstance(part, bytes):
        return [part]
    return map(_portable, part.checked() if isinstance(part, Pieces) else [part])


def _portable(array: NDArray[Any]) -> memoryview:
    little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    return little.reshape(-1).view(np.uint8).data  # which copies nothing


_LAST_DIGESTS: deque[tuple[weakref.ref[NDArray[Any]], bytes]] = deque(maxlen=8)


def array_digest(array: NDArray[Any], known: Digests = ()) -> bytes:
    """Return the SHA-256 of an array as this machine has it, which is not copied for that.

    `known` are digests of frozen arrays: that of one of these very arrays is not worked out again,
    nor that of one of the last ones that were asked for.
    """
    for each, digest in known:
        if each is array:
            return digest
    for told, digest in tuple(_LAST_DIGESTS):
        if told() is array:
            return digest
    state = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    state.update(np.ascontiguousarray(array).data)
    digest = state.digest()
    if not array.flags.writeable:
        _LAST_DIGESTS.append((weakref.ref(array), digest))
    return digest


def order_of(*keys: IntArray) -> IntArray:
    """Return ``np.lexsort(keys)`` of numbers from 0 on, by one sort where all fit into 64 bits."""
    sizes = [int(key.max(initial=0)).bit_length() for key in keys]
    own = len(keys[0]).bit_length()
    if sum(sizes) + own > 63:
        return np.lexsort(keys)
    packed = np.zeros(len(keys[0]), dtype=np.int64)
    for key, size in zip(reversed(keys), reversed(sizes), strict=True):
        packed <<= size
        packed |= key
    packed <<= own
    packed |= np.arange(len(packed))
    packed.sort()
    packed &= (1 << own) - 1
    return packed


def float_ranks(single: NDArray[np.float32]) -> IntArray:
    """Return whole numbers from 0 on in the order of finite or infinite floats of 32 bits."""
    bits = (single + np.float32(0.0)).view(np.int32).astype(np.int64)  # -0 is 0
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits) + 0x7F800000


def mixed_bits(numbers: IntArray) -> NDArray[np.uint64]:
    """Return 64 well-mixed bits of each number (SplitMix64; Steele, Lea and Flood 2014).

    The same on every machine. For choices that need no secret: drawing a sample is not one.
    """
    state = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def in_proportion(sizes: IntArray, total: int) -> IntArray:
    """Share a whole number out in proportion to sizes, shape (n,): by largest remainders."""
    whole, rest = np.divmod(sizes * total, int(sizes.sum()))
    largest = np.argsort(-rest, kind="stable")[: total - int(whole.sum())]
    whole[largest] += 1
    return whole.astype(np.int64)

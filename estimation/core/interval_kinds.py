"""Which kinds of intervals there are, and which go with a way of sampling.

``student``             nearly right, if enough pairs carry the estimate; narrow
``hoeffding``           guaranteed; from the largest gain of a draw alone, very wide
``hoeffding-paper``     the same, but at least what Schnabel et al. print: with a further factor 2
``empirical-bernstein`` guaranteed; shrinks with the spread of the draws
``bernstein``           guaranteed; from the design alone, before any label
``chernoff``            guaranteed; from the largest term of the design and the estimate
"""

from typing import Literal, TypeAlias, TypeGuard, get_args

IntervalKind: TypeAlias = Literal[
    "student", "hoeffding", "hoeffding-paper", "empirical-bernstein", "bernstein", "chernoff"
]
INTERVAL_KINDS: tuple[IntervalKind, ...] = get_args(IntervalKind)
_OF_METHOD: dict[str, tuple[IntervalKind, ...]] = {
    "iid": ("student", "hoeffding", "hoeffding-paper", "empirical-bernstein"),
    "poisson": ("student", "bernstein", "chernoff"),
}


def interval_kinds(method: str) -> tuple[IntervalKind, ...]:
    """Return the kinds that a sampling method allows, the usual one first.

    Parameters
    ----------
    method : str
        Any; those without a guaranteed kind have ``student`` alone.
    """
    return _OF_METHOD.get(method, ("student",))


def check_interval(kind: object, *, method: str) -> None:
    """Raise ValueError unless the kind exists and the sampling method allows it."""
    if not _is_kind(kind):
        raise ValueError(f"interval must be one of {', '.join(INTERVAL_KINDS)}, not {kind!r}")
    allowed = interval_kinds(method)
    if kind not in allowed:
        listed = ", ".join(allowed)
        raise ValueError(f"interval must be one of {listed} for the method {method}, not {kind!r}")


def _is_kind(kind: object) -> TypeGuard[IntervalKind]:
    return isinstance(kind, str) and kind in INTERVAL_KINDS

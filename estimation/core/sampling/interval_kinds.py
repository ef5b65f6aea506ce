"""Which kinds of intervals there are, what they are called, and which ways of sampling have them.

``student``             nearly right, if enough pairs carry the estimate; narrow
``hoeffding``           guaranteed; from the largest gain of a draw alone, very wide
``hoeffding-paper``     the same, but at least what Schnabel et al. print: with a further factor 2
``empirical-bernstein`` guaranteed; shrinks with the spread of the draws
``bernstein``           guaranteed; from the design alone, before any label
``chernoff``            guaranteed; from the largest term of the design and the estimate
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

IntervalKind: TypeAlias = Literal[
    "student", "hoeffding", "hoeffding-paper", "empirical-bernstein", "bernstein", "chernoff"
]


@dataclass(frozen=True)
class IntervalOffer:
    """What a kind of interval is, in a few words, and the ways of sampling that have it, or all."""

    label: str
    methods: tuple[str, ...] | None = None

    def is_for(self, method: str) -> bool:
        """Return whether a way of sampling has it."""
        return self.methods is None or method in self.methods


INTERVALS: Mapping[IntervalKind, IntervalOffer] = {
    "student": IntervalOffer("Student t: about right, narrow"),
    "hoeffding": IntervalOffer("Hoeffding: guaranteed, widest", ("iid",)),
    "hoeffding-paper": IntervalOffer("Hoeffding as published: wider still", ("iid",)),
    "empirical-bernstein": IntervalOffer("Empirical Bernstein: guaranteed, wide", ("iid",)),
    "bernstein": IntervalOffer("Bernstein: guaranteed, widest", ("poisson",)),
    "chernoff": IntervalOffer("Chernoff: guaranteed, wide", ("poisson",)),
}
"""In the order in which forms offer them; `inference.guarantees` has their bounds."""
INTERVAL_KINDS: tuple[IntervalKind, ...] = tuple(INTERVALS)

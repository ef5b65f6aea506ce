"""Which kinds of intervals there are; `methods` says which go with a way of sampling.

``student``             nearly right, if enough pairs carry the estimate; narrow
``hoeffding``           guaranteed; from the largest gain of a draw alone, very wide
``hoeffding-paper``     the same, but at least what Schnabel et al. print: with a further factor 2
``empirical-bernstein`` guaranteed; shrinks with the spread of the draws
``bernstein``           guaranteed; from the design alone, before any label
``chernoff``            guaranteed; from the largest term of the design and the estimate
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

IntervalKind: TypeAlias = Literal[
    "student", "hoeffding", "hoeffding-paper", "empirical-bernstein", "bernstein", "chernoff"
]
INTERVAL_LABELS: Mapping[IntervalKind, str] = {
    "student": "Student t: about right, narrow",
    "hoeffding": "Hoeffding: guaranteed, widest",
    "hoeffding-paper": "Hoeffding as published: wider still",
    "empirical-bernstein": "Empirical Bernstein: guaranteed, wide",
    "bernstein": "Bernstein: guaranteed, widest",
    "chernoff": "Chernoff: guaranteed, wide",
}
"""What they are in a few words, in the order in which forms offer them."""
INTERVAL_KINDS: tuple[IntervalKind, ...] = tuple(INTERVAL_LABELS)

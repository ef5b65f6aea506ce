"""Which kinds of intervals there are; `methods` says which go with a way of sampling.

``student``             nearly right, if enough pairs carry the estimate; narrow
``hoeffding``           guaranteed; from the largest gain of a draw alone, very wide
``hoeffding-paper``     the same, but at least what Schnabel et al. print: with a further factor 2
``empirical-bernstein`` guaranteed; shrinks with the spread of the draws
``bernstein``           guaranteed; from the design alone, before any label
``chernoff``            guaranteed; from the largest term of the design and the estimate
"""

from typing import Literal, TypeAlias, get_args

IntervalKind: TypeAlias = Literal[
    "student", "hoeffding", "hoeffding-paper", "empirical-bernstein", "bernstein", "chernoff"
]
INTERVAL_KINDS: tuple[IntervalKind, ...] = get_args(IntervalKind)

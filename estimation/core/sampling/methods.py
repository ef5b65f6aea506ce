"""The ways of sampling: the one table of what each of them can do.

Forms, the REST interface, the services behind them, messages, `simulate`, judged collections and
the core itself ask it. Where a method draws, and how, is in its own module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..arrays import nearest
from ..measures.kinds import KINDS, Family
from .interval_kinds import INTERVAL_KINDS, INTERVALS, IntervalKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..measures.table import Measure

Drawn: TypeAlias = Literal["pairs", "topics", "batches"]
Option: TypeAlias = Literal[
    "rule", "costs", "floor", "eps", "predictions", "difference", "with_earlier", "top_up",
    "topic_minimum", "further", "keeps_hours",
]  # fmt: skip
MOST_TOGETHER = 1000  # pairs of a topic
MOST_FURTHER = 4
"""Labels of a pair beyond those that every pair gets; people must be there to give them."""
LEAST_SHARE = 0.05
"""Of pairs that get a second label by chance, where one is what every pair gets, and some get
further ones where they pay."""


@dataclass(frozen=True)
class SamplingMethod:
    """What a way of sampling can do.

    Attributes
    ----------
    name : str
        As designs, forms and the REST interface write it.
    short, label, sentence : str
        What it is, in a word or two, and in a few; and what was done, in a report (no full stop).
    draws : {"pairs", "topics", "batches"}
        Single pairs of a topic and a document, whole topics, or batches planned one by one.
    families : tuple of Family
        Measures that it estimates.
    unless : frozenset of str
        Names of measures of these families that it does not estimate.
    options : frozenset of Option
        What an organizer can choose: ``rule`` of sizes, ``costs`` of pairs or topics, ``floor``
        under sizes, ``eps`` added to them, ``predictions`` that its model learns from, the
        estimator ``difference`` that has them as control variate, to estimate ``with_earlier``
        rounds (adaptive ones where they top up), to ``top_up`` what is judged, pairs of a topic
        together (``topic_minimum``), ``further`` labels where they pay, and to keep to hours by
        the measured pace (``keeps_hours``).
    again : bool
        Whether it draws with replacement.
    by_topic : bool
        Whether it draws as often in every topic.
    independent : bool
        Whether every pair is drawn by itself, so that variances of topics add up.
    for_goal : bool
        Whether it draws for a goal, and not for the values of all runs whatever is chosen.
    for_all_runs : float
        Share of the floor that serves the values of all runs where the goal leaves some out. The
        rest is even.
    foretold : bool
        Whether what further batches bring is foretold, of sums of gains.
    not_together : frozenset of str
        Families of measures and kinds of intervals that several rounds together do not have.
    """

    name: str
    short: str
    label: str
    sentence: str
    draws: Drawn
    families: tuple[Family, ...]
    unless: frozenset[str] = frozenset()
    options: frozenset[Option] = frozenset()
    again: bool = False
    by_topic: bool = False
    independent: bool = False
    for_goal: bool = True
    for_all_runs: float = 0.0
    foretold: bool = True
    not_together: frozenset[str] = frozenset()

    def estimates(self, measure: str) -> bool:
        """Return whether it estimates measures of this name."""
        return KINDS[measure].family in self.families and measure not in self.unless

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures that it estimates."""
        return tuple(filter(self.estimates, KINDS))

    @property
    def intervals(self) -> tuple[IntervalKind, ...]:
        """Kinds of intervals, the usual one first."""
        return tuple(kind for kind, offer in INTERVALS.items() if offer.is_for(self.name))

    @property
    def intervals_together(self) -> tuple[IntervalKind, ...]:
        """Kinds of intervals of several rounds together."""
        return tuple(kind for kind in self.intervals if kind not in self.not_together)

    def refused_together(self, measures: Iterable[Measure]) -> list[str]:
        """Return those measures that several rounds together do not have."""
        return [str(measure) for measure in measures if measure.family in self.not_together]


_OF_PAIRS: tuple[Family, ...] = ("gain", "ratio", "prediction", "preference")


def _table(*methods: SamplingMethod) -> Mapping[str, SamplingMethod]:
    return {method.name: method for method in methods}


SAMPLING_METHODS = _table(
    SamplingMethod(
        "adaptive",
        short="adaptive",
        label="Adaptive: a model learns from every batch",
        sentence="Pairs entered each batch independently of each other, with known probabilities "
        "that a model of grades planned from the judgments of the batches before it (adaptive "
        "sampling)",
        draws="batches",
        families=_OF_PAIRS,
        options=frozenset(
            {
                *("rule", "costs", "floor", "predictions", "topic_minimum", "further"),
                *("with_earlier", "top_up", "keeps_hours"),
            }
        ),
        for_all_runs=0.8,
    ),
    SamplingMethod(
        "poisson",
        short="Poisson",
        label="Poisson, permanent random numbers",
        sentence="Pairs entered the sample independently of each other, each with a known "
        "probability (Poisson sampling with permanent random numbers)",
        draws="pairs",
        families=_OF_PAIRS,
        independent=True,
        options=frozenset(
            {"rule", "costs", "floor", "difference", "with_earlier", "top_up", "further"}
        ),
    ),
    SamplingMethod(
        "priority",
        short="priority",
        label="Priority, exactly as many pairs as the budget says",
        sentence="As many pairs as the budget says were drawn, each with a known probability "
        "(priority sampling)",
        draws="pairs",
        families=_OF_PAIRS,
        options=frozenset({"rule", "floor"}),
    ),
    SamplingMethod(
        "iid",
        short="independent draws",
        label="Independent draws with replacement",
        sentence="Pairs were drawn independently with replacement, with known probabilities",
        draws="pairs",
        families=_OF_PAIRS,
        options=frozenset({"rule", "costs", "eps", "with_earlier"}),
        again=True,
        not_together=frozenset({"ratio", "empirical-bernstein"}),
    ),
    SamplingMethod(
        "per-query",
        short="draws in every topic",
        label="As many independent draws in every topic",
        sentence="In every topic as many pairs were drawn independently with replacement, with "
        "known probabilities",
        draws="pairs",
        families=_OF_PAIRS,
        options=frozenset({"rule", "eps"}),
        again=True,
        by_topic=True,
    ),
    SamplingMethod(
        "query",
        short="whole topics",
        label="Whole topics, by what they tell and cost",
        sentence="Whole topics were drawn with replacement, with known probabilities, and all "
        "their documents judged",
        draws="topics",
        families=("gain", "ratio", "query"),
        options=frozenset({"costs"}),
        foretold=False,
    ),
    SamplingMethod(
        "active",
        short="active sampling",
        label="Active: every batch is planned from the judgments before",
        sentence="Each batch was drawn with known probabilities that were planned from the "
        "judgments of the batches before it (active sampling)",
        draws="batches",
        families=("gain", "ratio"),
        unless=frozenset({"nDCG"}),
        for_goal=False,
        foretold=False,
    ),
)
"""By name, in the order in which forms offer them."""
OF_PAIRS = tuple(name for name, method in SAMPLING_METHODS.items() if method.draws == "pairs")
"""Those whose draws are single pairs, all of them before anything is judged."""


def with_option(option: Option) -> tuple[str, ...]:
    """Return the names of the methods that have an option."""
    return tuple(name for name, method in SAMPLING_METHODS.items() if option in method.options)


def of_pairs_with(option: Option) -> tuple[str, ...]:
    """Return those of them whose draws are single pairs, all of them before anything is judged."""
    return tuple(name for name in with_option(option) if name in OF_PAIRS)


def draws_again(method: str) -> bool:
    """Return whether a method draws with replacement; of what is not in the table False."""
    return method in SAMPLING_METHODS and SAMPLING_METHODS[method].again


def estimating(measure: str) -> tuple[str, ...]:
    """Return the names of the methods that estimate measures of this name."""
    return tuple(name for name, method in SAMPLING_METHODS.items() if method.estimates(measure))


def interval_kinds(method: str) -> tuple[IntervalKind, ...]:
    """Return the kinds of intervals that a method allows, the usual one first.

    What is not in the table, a baseline for one, has ``student`` alone.
    """
    found = SAMPLING_METHODS.get(method)
    return ("student",) if found is None else found.intervals


def check_interval(kind: object, *, method: str) -> None:
    """Raise ValueError unless the kind exists and the method allows it."""
    if not (isinstance(kind, str) and kind in INTERVAL_KINDS):
        meant = nearest(kind, INTERVAL_KINDS)
        listed = ", ".join(INTERVAL_KINDS)
        raise ValueError(f"interval must be one of {listed}, not {kind!r}{meant}")
    allowed = interval_kinds(method)
    if kind not in allowed:
        listed = ", ".join(allowed)
        raise ValueError(f"interval must be one of {listed} for the method {method}, not {kind!r}")

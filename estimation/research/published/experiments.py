"""The collections of the published experiments, with everything about them known.

Variances are computed, not simulated: `planning.expected_half_widths` is given the true moments of
the utilities as its prior.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from scipy import sparse, special

from estimation.core.arrays import FloatArray, IntArray, column_sums
from estimation.core.data.labels import LabelRows, PairLabels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.estimators import importance_sampling
from estimation.core.inference.intervals import Intervals, degrees_of_freedom, student_intervals
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.planning import expected_half_widths
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import priors
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.priors import Prior, make_prior
from estimation.research.published import synthetic
from estimation.research.published.numbers import CollectionName

CONFIDENCE = 0.95
# Inferred from the printed Hoeffding widths, 367.79 and 7.71, which depend on nothing else that is
# unknown. The eight normal widths of the same table, which were not used, confirm both.
SYNTH_EPS = 0.0163
TREC8_EPS = 0.0214
TREC8_RUNS = ("mds08a3", "nttd8ale", "weaver2")
QUANTILE = float(special.ndtri(0.5 + CONFIDENCE / 2.0))
# Of intervals from which a variance is read off: so narrow that none is cut at the largest value.
NARROW = 0.001
NARROW_QUANTILE = float(special.ndtri(0.5 + NARROW / 2.0))

Lists: TypeAlias = Mapping[str, RankedLists]


class ReproductionError(ValueError):
    """Data or arguments from which the tables cannot be computed; the message is a sentence."""


@dataclass(frozen=True, eq=False)
class Trials:
    """What simulated draws of one run gave: three arrays of shape (trials,)."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class Collection:
    """A completely judged collection and the constants of the published experiments on it.

    Build one with `synth` or `trec8`.

    Attributes
    ----------
    name : {"SYNTH", "TREC-8"}
    lists : mapping of str to RankedLists
        The systems.
    measure : Measure
    moments : callable
        Pool to mean and mean square of the utility of its pairs.
    prior : callable
        Pool and goal to the papers' prior.
    believed : callable
        Ranks to the utility that the papers expect there.
    input_values : callable
        Run to its value on each of the |X| inputs (users or topics).
    play : callable
        Run, design of its own pool, number of trials and seed to `Trials`.
    inputs : int
        |X|.
    budget : int
        Number of draws where a single run is estimated.
    deep : int
        Inputs that the method DEEP judges completely in [A], Table 2, as printed.
    max_utility : float
    eps : float
        Constant on the scale of p * lambda with which the published intervals were made.
    eps_in_sd : float
        The same for the standard deviations of [A], Table 3.
    singles : tuple of str
        The runs that are estimated on their own.
    """

    name: CollectionName
    lists: Lists
    measure: Measure
    moments: Callable[[Pool], tuple[FloatArray, FloatArray]]
    prior: Callable[[Pool, Goal], Prior]
    believed: Callable[[FloatArray], FloatArray]
    input_values: Callable[[str], FloatArray]
    play: Callable[[str, Design, int, int], Trials]
    inputs: int
    budget: int
    deep: int
    max_utility: float
    eps: float
    eps_in_sd: float
    singles: tuple[str, ...]

    @cached_property
    def everything(self) -> "Experiment":
        """All systems together."""
        return Experiment(self, tuple(self.lists))

    @cached_property
    def alone(self) -> "dict[str, Experiment]":
        """Each of `singles` by itself."""
        return {tag: Experiment(self, (tag,)) for tag in self.singles}


@dataclass(frozen=True, eq=False)
class Experiment:
    """Some systems of a collection, pooled."""

    collection: Collection
    tags: tuple[str, ...]

    @cached_property
    def pool(self) -> Pool:
        """The pool of the systems."""
        lists = {tag: self.collection.lists[tag] for tag in self.tags}
        first = lists[self.tags[0]]
        return build_pool(first.topics, lists, depth=int(np.diff(first.indptr).max()))

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and mean square of the utility of every pair."""
        return self.collection.moments(self.pool)

    @cached_property
    def truth(self) -> Prior:
        """The same as a prior, in which no moment may be 0."""
        mean, square = (np.maximum(moment, synthetic.TINY) for moment in self.moments)
        return Prior("truth", mean, square)

    @cached_property
    def known(self) -> Prior:
        """What is true of utilities whose expectations are known: Q may follow each one of them.

        With Q proportional to u itself inside a place of many users, E[u^2 / Q] takes E[u]^2 for
        E[u^2]. Where a pair has one utility the two are the same.
        """
        expected = self.truth.expected
        return Prior("true u", expected, expected**2)

    @cached_property
    def values(self) -> FloatArray:
        """The true values of the runs of the pool."""
        return np.asarray(self.pool.weights(self.collection.measure).T @ self.moments[0])

    def ordered(self) -> tuple[str, ...]:
        """The tags, best first."""
        return tuple(self.pool.runs[place] for place in np.argsort(-self.values))

    def prior(self, goal: Goal) -> Prior:
        """The papers' prior."""
        return self.collection.prior(self.pool, goal)

    def design(self, goal: Goal, belief: Prior, *, draws: int, eps: float = 0.0) -> Design:
        """The papers' Q*, without eps unless it is given."""
        return make_design(
            self.pool,
            goal=goal,
            measure=self.collection.measure,
            prior=belief,
            budget=draws,
            batch_size=draws,
            method="iid",
            rule="first",
            eps=eps,
        )

    def mixture(self, goal: Goal, tags: Sequence[str], belief: Prior | None) -> Design:
        """The baseline of the papers: a mixture of the distributions of the runs `tags`.

        Q is proportional to sum_j p_j P_j, each run with its own expectation; with a `belief`
        about the pairs, to p sum_j P_j.
        """
        pool, measure = self.pool, self.collection.measure
        wanted = np.isin(pool.run, [pool.run_index(tag) for tag in tags])
        pair, weight = pool.entry_pair[wanted], pool.entry_weights(measure)[wanted]
        if belief is None:
            weight = weight * self.collection.believed(pool.rank[wanted].astype(np.float64))
        size = column_sums(pair, weight, number=len(pool))
        if belief is not None:
            size = size * belief.expected
        plan = self.design(goal, self.prior(goal), draws=self.collection.inputs)
        return replace(plan, size=size / size.sum())

    def variances(
        self, design: Design, truth: Prior | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """True variances of the values, shape (k,), and of their differences, shape (k, k)."""
        found = expected_half_widths(
            self.pool,
            design,
            measure=self.collection.measure,
            prior=truth or self.truth,
            confidence=NARROW,
        )
        single, difference = found.half_width, found.difference_half_width
        return (single / NARROW_QUANTILE) ** 2, (difference / NARROW_QUANTILE) ** 2

    def sd(self, design: Design) -> float:
        """True standard deviation, in a setting of one run."""
        return float(np.sqrt(self.variances(design)[0][0]))

    def top(self, depth: int) -> FloatArray:
        """What the runs of the pool gain in their first ranks."""
        gained = self.pool.entry_weights(self.collection.measure)
        gained = gained * self.moments[0][self.pool.entry_pair] * (self.pool.rank <= depth)
        return column_sums(self.pool.run, gained, number=len(self.pool.runs))


# ------------------------------------------------------------------------------ the collections


def synth(
    *,
    systems: Mapping[str, synthetic.System] = synthetic.SYSTEMS,
    users: int = synthetic.USERS,
    items: int = synthetic.ITEMS,
    eps: float = SYNTH_EPS,
    seed: int = 2016,
) -> Collection:
    """Generate SYNTH: one topic, whose documents are the places, stands for all users."""
    population = synthetic.generate(np.random.default_rng(seed), users=users, items=items)
    measure = parse_measure(f"DCG(dcg='ln')@{items}")
    mean, square = population.moments()

    def moments(pool: Pool) -> tuple[FloatArray, FloatArray]:
        places = pool.docno.astype(np.int64)
        return mean[places], square[places]

    def input_values(tag: str) -> FloatArray:
        return population.user_values(measure.weights(systems[tag].ranks(items)))

    return Collection(
        name="SYNTH",
        lists={tag: synthetic.ranked_lists(system, items=items) for tag, system in systems.items()},
        measure=measure,
        moments=moments,
        prior=synthetic.make_prior,
        believed=partial(synthetic.expected_grade, items=items),
        input_values=input_values,
        play=partial(_play_synth, population, systems, measure),
        inputs=users,
        budget=5 * users,
        deep=max(1, 5 * users // items),
        max_utility=float(synthetic.MAX_GRADE),
        eps=eps,
        eps_in_sd=eps,
        singles=tuple(systems),
    )


def trec8(
    runs: Lists, grades: Mapping[tuple[str, str], int], *, depth: int = 100, eps: float = TREC8_EPS
) -> Collection:
    """Prepare TREC-8 from all its runs and qrels.

    Parameters
    ----------
    runs : mapping of str to RankedLists
        Run tag to ranked lists.
    grades : mapping of (topic, docno) to int
        Grades 0 and 1; a grade below 0 counts as 0.

    Raises
    ------
    ReproductionError
        If one of the published runs is missing or not judged down to the depth.
    """
    topics = tuple(sorted({topic for topic, _ in grades}))
    lists = fully_judged(runs, grades, topics=topics, depth=depth)
    for tag in TREC8_RUNS:
        if tag not in lists:
            raise ReproductionError(f"The run {tag} is missing, or its top {depth} is not judged.")
    measure = parse_measure(f"DCG(dcg='ln')@{depth}")
    judged = _Judged(lists, grades, measure, topics, depth)
    return Collection(
        name="TREC-8",
        lists=lists,
        measure=measure,
        moments=judged.moments,
        prior=partial(_rank_prior, measure),
        believed=priors.rank_relevance,
        input_values=judged.topic_values,
        play=judged.play,
        inputs=len(topics),
        budget=5 * len(topics),
        deep=1,
        max_utility=1.0,
        eps=eps,
        eps_in_sd=0.0,
        singles=TREC8_RUNS,
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """Runs and the grades of all that they return."""

    lists: Lists
    listed: Mapping[tuple[str, str], int]
    measure: Measure
    topics: tuple[str, ...]
    depth: int

    def grades(self, pool: Pool) -> IntArray:
        docnos = np.char.decode(pool.docno, "utf-8").tolist()
        keys = zip((pool.topics[place] for place in pool.topic), docnos, strict=True)
        return np.maximum(np.array([self.listed[key] for key in keys], dtype=np.int64), 0)

    def moments(self, pool: Pool) -> tuple[FloatArray, FloatArray]:
        utility = self.measure.utilities(self.grades(pool))
        return utility, utility**2

    def topic_values(self, tag: str) -> FloatArray:
        pool = self._alone(tag)
        gained = self.measure.weights(pool.rank) * self.moments(pool)[0]
        return column_sums(pool.topic, gained, number=len(self.topics))

    def play(self, tag: str, design: Design, trials: int, seed: int) -> Trials:
        """Draw and judge; the papers' intervals go by the spread of the draws alone."""
        pool = self._alone(tag)
        grades, found = self.grades(pool), []
        for number in range(trials):
            sample = draw(pool, design, seed=f"{seed}-{number}")
            labels = LabelRows(sample.pair, grades[sample.pair])
            evaluation = evaluate(
                pool, PairRound(design, sample), labels=labels, measures=[self.measure], max_grade=1
            )
            estimate = evaluation.results[0].estimators["is"]
            freedom = np.full(1, len(sample.draws) - 1.0)
            variance = np.diag(estimate.covariance)
            found.append(student_intervals(estimate.value, variance=variance, df=freedom))
        return _trials(found)

    def _alone(self, tag: str) -> Pool:
        return build_pool(self.topics, {tag: self.lists[tag]}, depth=self.depth)


def fully_judged(
    runs: Lists, grades: Mapping[tuple[str, str], int], *, topics: Sequence[str], depth: int
) -> dict[str, RankedLists]:
    """Return the runs with `depth` documents for every topic, all of them judged, cut there."""
    judged = {topic: set[bytes]() for topic in topics}
    for topic, docno in grades:
        judged[topic].add(docno.encode())
    found = {tag: _top(run, topics, depth) for tag, run in sorted(runs.items())}
    return {
        tag: lists
        for tag, lists in found.items()
        if lists is not None
        and all(
            judged[topic].issuperset(lists.docnos[place * depth : (place + 1) * depth].tolist())
            for place, topic in enumerate(topics)
        )
    }


def _top(run: RankedLists, topics: Sequence[str], depth: int) -> RankedLists | None:
    """The top of a run for the given topics; None if a topic has fewer documents."""
    places = {topic: place for place, topic in enumerate(run.topics)}
    parts = []
    for topic in topics:
        place = places.get(topic)
        if place is None or run.indptr[place + 1] - run.indptr[place] < depth:
            return None
        parts.append(run.docnos[run.indptr[place] : run.indptr[place] + depth])
    return RankedLists(tuple(topics), np.arange(len(topics) + 1) * depth, np.concatenate(parts))


def _rank_prior(measure: Measure, pool: Pool, goal: Goal) -> Prior:
    return make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=1)


# -------------------------------------------------------------------------- simulated campaigns


def _play_synth(
    population: synthetic.Population,
    systems: Mapping[str, synthetic.System],
    measure: Measure,
    tag: str,
    design: Design,
    trials: int,
    seed: int,
) -> Trials:
    """Draw users and places, look up the grade of each and estimate by importance sampling."""
    rng = np.random.default_rng([seed, *tag.encode()])
    users, draws = len(population.at_least), int(design.steps[-1])
    weight = measure.weights(systems[tag].ranks(population.items)) / users
    cumulated = np.cumsum(design.size)
    found = []
    for _ in range(trials):
        place = np.searchsorted(cumulated / cumulated[-1], rng.random(draws), side="right")
        grade = population.grades(rng.integers(users, size=draws), place)
        estimate = importance_sampling(
            sparse.csr_array(weight[place][:, None]),
            _one_judgment(measure.utilities(grade)),
            probability=design.size[place] / users,
            counts=np.ones(draws, dtype=np.int64),
        )
        df = degrees_of_freedom(np.diag(estimate.contributions), draws=draws)
        found.append(
            student_intervals(
                estimate.value, variance=np.diag(estimate.covariance), df=df, confidence=CONFIDENCE
            )
        )
    return _trials(found)


def _trials(found: Sequence[Intervals]) -> Trials:
    low, high = (np.array([getattr(each, end)[0] for each in found]) for end in ("low", "high"))
    return Trials((low + high) / 2.0, low, high)


def _one_judgment(utility: FloatArray) -> PairLabels:
    ones = np.ones(len(utility), dtype=np.int64)
    return PairLabels(utility, ones, np.zeros(len(utility)), False)

"""A round of active sampling: its plan, and the batches that were planned so far.

Unlike every other round it is not drawn at once. Each batch is planned from the judgments of the
batches before it (Li and Kanoulas 2017), until the budget of every topic is spent.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...archives import ArchiveFile, read_archive, write_archive
from ...arrays import FloatArray, IntArray, check_whole, column_sums, frozen, in_proportion
from ...data.labels import LabelRows, judged_of
from ...estimates.estimators import effective_sample_size
from ...measures.table import Measure, check_measures, parse_measure
from ...sampling.samples import Served
from ...tables import FactSheet
from ..comparison import Comparison
from ..results import Asked, DrawnRound, Evaluation, MeasureResult
from .estimates import ActiveEstimate, estimate
from .limits import too_few_found, with_intervals, withheld
from .lists import ActiveError, ActiveFrame, make_frame
from .sampling import ActiveState, plan_batch, start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...data.pool import Pool
    from ...data.scope import Scope
    from .values import Form

PLAN_FORMAT = "evalsite-active-plan-1"
UNIFORM_SHARE = 0.1
FORMS: dict[str, Form] = {"sq": "sequential", "co": "corrected", "pa": "paper"}
"""Short names of the estimators; the first is unbiased and the one to show."""


@dataclass(frozen=True, eq=False, repr=False)
class ActivePlan(FactSheet):
    """What is fixed before anything is judged.

    Build one with `make_plan`.

    Attributes
    ----------
    limits : ndarray of int64, shape (T,)
        Documents of each topic that will be judged in all.
    per_batch : int
        New documents of each topic per batch.
    relevant_from : int
        Grades from this one on count as relevant.
    pool_digest : str
    """

    limits: IntArray
    per_batch: int
    relevant_from: int
    pool_digest: str
    FACTS: ClassVar = ("budget", "batches", "per_batch", "relevant_from")

    @property
    def batches(self) -> int:
        """Number of batches that will be planned."""
        return int(-(-self.limits.max(initial=0) // self.per_batch))

    @property
    def budget(self) -> int:
        """Number of pairs that will be judged."""
        return int(self.limits.sum())

    def save(self, file: ArchiveFile) -> None:
        """Write the plan to a path or a binary file."""
        facts = {name: value for name, value in asdict(self).items() if name != "limits"}
        write_archive(file, PLAN_FORMAT, facts, {"limits": self.limits})

    @classmethod
    def load(cls, file: ArchiveFile) -> ActivePlan:
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        facts, arrays = read_archive(file, PLAN_FORMAT, ["limits"])
        return cls(limits=frozen(arrays["limits"]), **facts)


def make_plan(
    pool: Pool, *, measures: Sequence[Measure], budget: int, batch_size: int
) -> ActivePlan:
    """Share a budget out over the topics, in proportion to their pools.

    Parameters
    ----------
    pool : Pool
        Of documents.
    measures : sequence of Measure
        The first says from which grade on a document is relevant (1, unless it has `rel`).
    budget : int
        Pairs to judge in all; at most the pool.
    batch_size : int
        Pairs per batch, of all topics together; every topic gets at least one.

    Raises
    ------
    ActiveError
        If a measure has no estimator, or a number is out of range: the budget must allow for a
        pair of every topic. A topic without any would count as if nothing in it were relevant.
    """
    if not measures:
        raise ActiveError("there must be a measure to estimate; measures holds none")
    check_measures(measures, name="measures")
    for measure in measures:
        whole = measure.name in ("AP", "Rprec") and measure.cutoff is None
        if not whole and measure.family != "gain":
            raise ActiveError(
                f"Active sampling estimates AP, Rprec, P, DCG, Gain and RBP, not {measure}."
            )
    limits = _limits(pool, budget)
    check_whole(batch_size, name="batch_size", error=ActiveError)
    relevant = dict(measures[0].params).get("rel", 1)
    return ActivePlan(
        limits=frozen(limits),
        per_batch=max(1, round(batch_size / len(pool.topics))),
        relevant_from=int(relevant),
        pool_digest=pool.digest,
    )


def _limits(pool: Pool, budget: int) -> IntArray:
    """One pair of every topic, and the rest in proportion to what is left of the pools."""
    sizes = np.bincount(pool.topic, minlength=len(pool.topics)).astype(np.int64)
    one = np.minimum(sizes, 1)
    check_whole(budget, name="budget", most=len(pool), of="pairs of the pool", error=ActiveError)
    rest = budget - int(one.sum())
    if rest < 0:
        raise ActiveError(f"budget must be at least {one.sum()}, a pair a topic, not {budget}")
    return one + in_proportion(sizes - one, rest) if rest else one


def log_absent(frame: ActiveFrame, state: ActiveState) -> FloatArray:
    """Return log(1 - pi_i) of every pair, shape (N,), from the rounds of a state."""
    total = np.zeros(len(frame.pool))
    for topic, draws, chances in zip(
        state.round_topic.tolist(), state.round_draws.tolist(), state.run_probability, strict=True
    ):
        lists = frame.lists(topic)
        with np.errstate(divide="ignore"):
            added = draws * np.log1p(-lists.document_probability(chances))
        total[lists.start : lists.start + len(lists)] += added
    return total


@dataclass(frozen=True, eq=False, repr=False)
class ActiveRound(DrawnRound):
    """A plan, and the batches planned from the judgments so far."""

    design: ActivePlan
    sample: ActiveState

    @classmethod
    def begin(cls, pool: Pool, plan: ActivePlan, *, seed: str) -> ActiveRound:
        """Plan the first batch, for which all runs are alike."""
        if plan.pool_digest != pool.digest:
            raise ActiveError("the plan belongs to another pool")
        state = start(
            make_frame(pool),
            seed=seed,
            batch_size=plan.per_batch,
            relevant_from=plan.relevant_from,
            uniform_share=UNIFORM_SHARE,
        )
        nothing = LabelRows(np.array([], dtype=np.int64), np.array([], dtype=np.int64))
        return cls(plan, state).extended(pool, labels=nothing)

    method = "active"

    @property
    def batches(self) -> int:
        """Number of batches, the ones that are not planned yet included."""
        return max(self.design.batches, self.sample.batches)

    @property
    def planned(self) -> int:
        """Number of batches that were planned."""
        return self.sample.batches

    def extended(self, pool: Pool, *, labels: LabelRows) -> ActiveRound:
        """Plan one more batch from the judgments of all pairs so far.

        The same labels give the same batch. Returns the round itself when the budget is spent.

        Raises
        ------
        LabelError
            If a sampled pair has no label.

        Examples
        --------
        >>> pool = pool_runs(read_runs("demo/collection/runs"), depth=10)
        >>> design = make_design(pool, measure="AP", budget=400, method="active", batch_size=200)
        >>> drawn = draw_round(pool, design, seed="a seed")
        >>> truth = read_qrels("demo/collection/qrels.txt.gz")
        >>> labels = truth.labels(pool, drawn.pairs(pool), unlisted=0)
        >>> drawn.extended(pool, labels=labels).planned
        2
        """
        state = plan_batch(make_frame(pool), self.sample, labels=labels, limits=self.design.limits)
        return self if state is self.sample else replace(self, sample=state)

    def served(self, pool: Pool) -> Served:
        """Return what is to be judged in the batches that are planned.

        `Served.probability` is the product formula of `active.sampling` over the rounds so far: it
        grows with every batch and depends on the judgments. The estimators ``co`` and ``pa`` use
        it; ``sq`` does not. For the state before a later batch, take `prefix`.
        """
        order = np.argsort(self.sample.pair)
        pair = self.sample.pair[order]
        batch = self.sample.round_batch[self.sample.pair_round][order]
        once = np.ones(len(pair), dtype=np.int64)
        return Served(pair, batch, self.sample.inclusion(pair), once, pool)

    def pairs(self, pool: Pool) -> IntArray:
        """Return the pairs of the planned batches, ascending."""
        return np.sort(self.sample.pair)

    def prefix(self, pool: Pool, batches: int) -> ActiveRound:
        """Return the round as it was when so many batches were planned."""
        check_whole(batches, name="batches", most=self.sample.batches)
        if batches == self.sample.batches:
            return self
        state, frame = self.sample, make_frame(pool)
        rounds = int(np.searchsorted(state.round_batch, batches, side="right"))
        pairs = state.pair_round < rounds
        shorter = replace(
            state,
            pair=frozen(state.pair[pairs]),
            pair_round=frozen(state.pair_round[pairs]),
            round_topic=frozen(state.round_topic[:rounds]),
            round_batch=frozen(state.round_batch[:rounds]),
            round_draws=frozen(state.round_draws[:rounds]),
            run_probability=frozen(state.run_probability[:rounds]),
        )
        absent = frozen(log_absent(frame, shorter))
        return replace(self, sample=replace(shorter, log_absent=absent))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measure that it was planned for: AP of the relevant grades."""
        return (parse_measure(f"AP(rel={self.design.relevant_from})"),)

    def answer(self, scope: Scope, asked: Asked) -> Evaluation:
        """Estimate the runs of a scope from the first batches; see `evaluation.evaluate`.

        The form ``sq`` (`active.estimates`, sequential) is unbiased and ranks the runs; ``co`` and
        ``pa`` are the published ones. Disagreement between assessors is in the errors as soon as
        some pairs have two judgments.

        Every document of the sampled pool is within reach. What was planned, and how likely every
        document was, is a matter of its runs alone. The weights of judged documents are right for
        the total of any numbers that do not depend on the sample, however it was steered
        (`active.weights.sequential_weights`): for the ranks of other runs as for those of its own.
        Under AP and Rprec, R is the number of relevant documents of the sampled pool.
        """
        if scope.sampled is None:
            raise ActiveError("active rounds can only be estimated from with their pool")
        state, frame = self.sample, make_frame(scope.sampled)
        over = frame if scope.is_sampled else make_frame(scope.pool)
        kept = np.isin(asked.labels.pair, state.pair)
        rows = LabelRows(asked.labels.pair[kept], asked.labels.grade[kept])
        names = [str(measure) for measure in asked.measures]
        found = {
            code: estimate(
                frame, state, labels=rows, measures=names, form=form, over=over, place=scope.place
            )
            for code, form in FORMS.items()
        }
        judged, told = judged_of(rows, state.pair)
        comparison = Comparison.of(
            scope, asked, ~scope.added, judged=scope.place[judged], rows=told
        )
        documents = np.bincount(scope.sampled.topic, minlength=len(scope.sampled.topics))
        results = (
            _result(
                comparison, state, measure, {code: found[code][at] for code in FORMS}, documents
            )
            for at, measure in enumerate(asked.measures)
        )
        return Evaluation(
            batches=state.batches,
            judged_pairs=len(state.pair),
            judgments=len(rows.pair),
            draws=None,
            confidence=asked.confidence,
            results=tuple(results),
            look=asked.look,
        )


def _result(
    comparison: Comparison,
    state: ActiveState,
    measure: Measure,
    found: dict[str, ActiveEstimate],
    documents: IntArray,
) -> MeasureResult:
    scope, asked, pairs = comparison.scope, comparison.asked, np.sort(state.pair)
    pool = scope.pool
    largest = _largest_values(pool, measure, asked.max_grade)
    is_census = len(pairs) == len(scope.place)
    estimators = {
        code: with_intervals(
            each,
            largest,
            asked.at_this_look,
            is_census=is_census,
            is_ratio=measure.family == "ratio",
        )
        for code, each in found.items()
    }
    primary = next(iter(FORMS))
    if too_few_found(measure, found[primary], documents):
        estimators = {code: withheld(each) for code, each in estimators.items()}
    return comparison.result(
        measure,
        pool.runs,
        estimators,
        primary,
        effective_sample_size=effective_sample_size(
            pool.weights(measure, scope.place[pairs]), probability=state.inclusion(pairs)
        ),
        label_noise_measured=found[primary].noise_measured,
        by_topic=found[primary].topic_value / len(pool.topics),
        relevant_found=None if measure.is_linear else found[primary].found,
    )


def _largest_values(pool: Pool, measure: Measure, max_grade: int) -> FloatArray:
    """The value of each run if everything were perfect."""
    if not measure.is_linear:
        return np.ones(len(pool.runs))
    weights = column_sums(pool.run, pool.entry_weights(measure), number=len(pool.runs))
    return weights * measure.max_utility(max_grade)

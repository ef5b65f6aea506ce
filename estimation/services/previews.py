"""What a drafted round would buy, worked out by the worker before anything is drawn."""

import math
from functools import partial
from itertools import islice
from typing import Any, cast

import numpy as np
from django.db import transaction

from estimation import scales
from estimation.core.arrays import FloatArray
from estimation.core.data.blocks import let_go
from estimation.core.data.pool import Pool
from estimation.core.measures.table import Measure
from estimation.core.planning.guaranteed_planning import guaranteed_half_widths
from estimation.core.planning.learning import learns
from estimation.core.planning.planning import (
    expected_half_widths,
    half_width_curve,
    largest_effect,
    largest_values,
)
from estimation.core.planning.prospects import reached_by_budget
from estimation.core.planning.splits import USUAL_SHARE, best_split, expected_variance
from estimation.core.planning.topic_planning import expected_query_half_widths
from estimation.core.rounds.active.rounds import ActivePlan
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.adaptive.top_ups import unlearned
from estimation.core.rounds.overlap import plan_of_design
from estimation.core.rounds.rounds import AnyDesign
from estimation.core.rounds.topics.designs import QueryDesign, labeled_pairs
from estimation.core.sampling.designs import Design
from estimation.core.sampling.interval_kinds import IntervalKind
from estimation.core.sampling.priors import Prior
from estimation.core.sampling.probabilities import drawn_probabilities
from estimation.core.sampling.top_up import Union
from estimation.models import Round
from estimation.plans import NAMED
from estimation.services import choices, designing, expected_widths, finite, together, topping
from estimation.services.costs import costs_of
from estimation.services.reaching import hours_each
from estimation.services.sittings import as_judged, hours_of, sittings_of, whole_topics
from judging.errors import UserError
from judging.selectors import documents
from judging.services import jobs

WORTH_SAYING = 0.95
"""Of the error now: the most that another split of the labels must have to be told."""

DOCNOS = 10_000  # of documents that are looked at together


def preview(job: jobs.Running) -> None:
    """The job: fills in the round's preview; a design that cannot be made says why."""
    named = ("campaign", *NAMED)
    row = Round.objects.select_related(*named).filter(pk=job.target).first()
    if row is None or row.is_drawn:
        return
    design = choices.digest_of(row)
    try:
        if gone := choices.withdrawn_choice(row):
            raise UserError("run_withdrawn", gone, status=409, field="run")
        found = _preview(row, job) | {"design": design}
        finite.check_plain(found)
    except UserError as error:
        found = {"error": error.message, "design": design}
    with transaction.atomic():
        job.fence()
        Round.objects.filter(pk=row.pk, state__in=Round.NOT_DRAWN).update(preview=found)


def _preview(row: Round, job: jobs.Running) -> dict[str, Any]:
    _, pool = designing.pool_for(row, job)
    costs, adds_to = costs_of(row, pool), choices.topped_up(row)
    design, labels = designing.design_at(row, pool, costs), topping.labels_of(row, pool)
    choices.require_topped_up(row, adds_to)
    plan = design if isinstance(design, AdaptivePlan) else None
    design = unlearned(design) if isinstance(design, AdaptivePlan) else design
    if isinstance(design, QueryDesign):
        promised = _of_topics(row, pool, design, costs)
    elif isinstance(design, ActivePlan):
        promised = _of_active(row, pool, design)
    elif plan is None or not learns(plan):
        promised = _of_pairs(row, pool, design, costs)
        if plan is not None:
            promised["largest"] = None
    else:
        played = expected_widths.of_learning(row, pool, plan, labels)
        promised = _drawn(row, pool, design, costs) | played
    labels = promised["expected_pairs"] * row.labels_each
    sittings = promised.pop("sittings")
    return {
        "error": None,
        "topics": len(pool.topics),
        "runs": len(pool.runs),
        "pool_pairs": len(pool),
        "expected_labels": labels,
        "hours": _hours(row, promised) + hours_of(row, sittings),
        "sittings": sittings,
        "batches": design.batches,
        "scale_end": _scale_end(row, pool),
        "is_census": _is_census(pool, design),
        "without_text": _without_text(row, pool),
        "earlier": together.told(row, pool),
        "top_up": _topped_up(row, pool, design),
        "of_all": isinstance(design, Union),
        "split": _split(row, pool, design, labels),
        **promised,
    }


def _split(row: Round, pool: Pool, design: AnyDesign, work: float) -> dict[str, Any] | None:
    """How as many labels would be spent better, if by much; None where that is not known.

    It rests on the design alone, and on how far crowds usually differ; no draw depends on it. In
    adaptive rounds, whose model takes a part of the other error away, more pairs gain less.
    """
    able = "further" in row.sampling.options and row.sampling.draws == "pairs"
    if not able or not isinstance(design, Design):
        return None
    alone = not (row.top_up or row.with_earlier) and row.costs == Round.Costs.EQUAL
    if not alone or design.measure.family != "gain":
        return None
    pairs = design.expected_pairs
    if not work > pairs * (1.0 + USUAL_SHARE):  # there are no labels to spend otherwise
        return None
    plan = plan_of_design(
        pool, design, labels=row.labels, share=row.extra_share, further=row.further
    )
    now = expected_variance(design, plan)
    found = best_split(pool, design, work=work)
    if found.variance > WORTH_SAYING**2 * now:
        return None
    told = {"pairs": found.pairs, "further": found.further, "share": USUAL_SHARE}
    return told | {"narrower": 1.0 - math.sqrt(found.variance / now)}


def _scale_end(row: Round, pool: Pool) -> float | None:
    """The largest value that a run can have under the measure of the round."""
    measure, best = designing.measures_of(row)[0], row.campaign.max_grade
    of_gain = measure.family == "gain"
    most = largest_values(pool, measure, best=measure.max_utility(best) if of_gain else best)
    return scales.finite(float(most.max()))


def _hours(row: Round, promised: dict[str, Any]) -> float:
    """Documents of average length take the seconds of the round; costs that were uploaded may be no
    times, so that every pair is taken for one of these."""
    by_length = row.costs == Round.Costs.LENGTH
    documents = promised["expected_cost"] if by_length else promised["expected_pairs"]
    return float(documents * hours_each(row))


def _is_census(pool: Pool, design: AnyDesign) -> bool:
    """Whether everything that can be sampled will be judged."""
    return design.budget >= len(pool) if isinstance(design, ActivePlan) else design.is_census


def _drawn(row: Round, pool: Pool, design: Design, costs: FloatArray | None) -> dict[str, Any]:
    """What is drawn and what it takes, by the design."""
    inclusion = design.new_after(design.step())
    return {
        "sittings": sittings_of(row, pool, inclusion, batches=design.batches),
        "eligible_pairs": int(design.eligible.sum()),
        "expected_pairs": float(inclusion.sum()),
        "judged_already": _judged_already(row, pool, inclusion),
        "expected_cost": None if costs is None else float(np.sum(inclusion * costs)),
        "pairs_per_topic": _per_topic(pool, inclusion),
    }


def _of_pairs(row: Round, pool: Pool, design: Design, costs: FloatArray | None) -> dict[str, Any]:
    prior = designing.prior_of(row, pool)
    return _drawn(row, pool, design, costs) | {
        "measures": [_measure(row, pool, design, prior, m) for m in designing.measures_of(row)],
        "curve": _curve(row, pool, design, prior, costs),
        "reached": _reached(row, pool, design, prior, costs),
        "guaranteed": _guaranteed(row, pool, design, prior),
        "largest": _largest(row, pool, design),
    }


def _of_topics(
    row: Round, pool: Pool, design: QueryDesign, costs: FloatArray | None
) -> dict[str, Any]:
    draws = design.planned_draws()
    inclusion = drawn_probabilities(design.probability, draws=draws)
    if design.is_census:
        inclusion = design.eligible.astype(np.float64)
    needed = labeled_pairs(pool, runs=design.runs, depth=design.depth)
    predict = partial(
        expected_query_half_widths, pool, design, model=designing.grade_model_of(row, pool)
    )
    judged = np.where(needed, inclusion[pool.topic], 0.0)
    budgets = expected_widths.budgets(row, float(design.cost.sum()))
    curve = predict(measure=design.measure, budgets=budgets)
    return {
        "sittings": whole_topics(row, inclusion),
        "eligible_pairs": int(needed.sum()),
        "expected_pairs": float(judged.sum()),
        "judged_already": _judged_already(row, pool, judged),
        "expected_cost": None if costs is None else float(np.sum(inclusion * design.cost)),
        "pairs_per_topic": _per_topic(pool, judged),
        "measures": [
            expected_widths.widths(
                measure, design.runs, predict(measure=measure, budgets=[row.budget])[0]
            )
            for measure in designing.measures_of(row)
        ],
        "curve": expected_widths.points(budgets, curve),
        "largest": None,
    }


def _of_active(row: Round, pool: Pool, plan: ActivePlan) -> dict[str, Any]:
    """Which pairs come up, and so the precision, depends on what will be found."""
    share = plan.limits / np.maximum(np.bincount(pool.topic, minlength=len(pool.topics)), 1)
    return {
        "sittings": sittings_of(row, pool, share[pool.topic], batches=plan.batches),
        "eligible_pairs": len(pool),
        "expected_pairs": float(plan.budget),
        "judged_already": 0.0,
        "expected_cost": None,
        "pairs_per_topic": _per_topic(pool, share[pool.topic]),
        "measures": [],
        "curve": [],
        "largest": None,
    }


def _topped_up(row: Round, pool: Pool, design: AnyDesign) -> dict[str, Any] | None:
    """What a top-up adds to: the rounds with their complete batches, and how many pairs are in
    that sample, as expected, or judged; None of other rounds.

    Where an adaptive round goes on, `Union.earlier` also has the chances of pairs that earlier
    batches did not draw: these are not judged.
    """
    if not (row.top_up and isinstance(design, Union)):
        return None
    batches = topping.added_to(row, pool)
    held = design.earlier if row.is_of_a_union else topping.judged_in(row.campaign, pool)
    return {
        "batches": {str(each): batches[each] for each in sorted(batches)},
        "pairs": float(held.sum()),
        "kept": len(choices.kept_pairs(row.campaign)) if choices.takes_kept(row) else 0,
    }


def _judged_already(row: Round, pool: Pool, chance: FloatArray) -> float:
    """How many of the drawn pairs are expected to be judged already, for other rounds: the labels
    that they have count here too, and nobody is asked for these again."""
    if not choices.complete(row.campaign):
        return 0.0
    return float(chance[topping.judged_in(row.campaign, pool)].sum())


def _without_text(row: Round, pool: Pool) -> int:
    """How many documents of the pool have no text, so that assessors would see a docno only."""
    shown = np.sort(pool.docno, kind="stable")  # which finds that those of a topic are in order
    if pool.other is not None:
        shown = np.sort(np.concatenate([shown, pool.other]), kind="stable")
    first = np.ones(len(shown), dtype=np.bool_)
    first[1:] = shown[1:] != shown[:-1]
    shown = shown if first.all() else shown[first]
    let_go(pool.docno)
    names = documents(row.campaign).values_list("docno", flat=True).iterator(DOCNOS)
    missing, width = len(shown), shown.dtype.itemsize
    while some := [name.encode() for name in islice(names, DOCNOS)]:  # each is there once
        known = np.array([name for name in some if len(name) <= width], dtype=shown.dtype)
        place = np.minimum(np.searchsorted(shown, known), len(shown) - 1)
        missing -= int(np.count_nonzero(shown[place] == known))
    return missing


def _per_topic(pool: Pool, inclusion: np.ndarray) -> list[dict[str, Any]]:
    expected = np.bincount(pool.topic, weights=inclusion, minlength=len(pool.topics))
    pooled = np.bincount(pool.topic, minlength=len(pool.topics))
    return [
        {"topic": topic, "expected": drawn, "pool": size}
        for topic, drawn, size in zip(pool.topics, expected.tolist(), pooled.tolist(), strict=True)
    ]


def _measure(
    row: Round, pool: Pool, design: Design, prior: Prior, measure: Measure
) -> dict[str, Any]:
    """Expected half widths of all runs; None where the sample cannot support a value."""
    precision = expected_half_widths(
        pool,
        design,
        measure=measure,
        prior=prior,
        max_grade=row.campaign.max_grade,
    )
    differences = precision.difference_half_width[np.triu_indices(len(pool.runs), 1)]
    median = float(np.median(differences)) if len(differences) else np.inf
    return expected_widths.widths(measure, precision.runs, precision.half_width, difference=median)


def _curve(
    row: Round, pool: Pool, design: Design, prior: Prior, costs: FloatArray | None
) -> list[dict[str, Any]]:
    """Mean expected half width of the runs against the budget, around the chosen one."""
    most = np.inf
    if not design.with_replacement:
        most = float(np.sum(design.payable if costs is None else design.payable * costs))
    budgets = expected_widths.budgets(row, most)
    widths = half_width_curve(
        pool,
        design,
        measure=design.measure,
        prior=prior,
        budgets=budgets,
        costs=costs,
        max_grade=row.campaign.max_grade,
    )
    return expected_widths.points(budgets, widths)


def _reached(
    row: Round, pool: Pool, design: Design, prior: Prior, costs: FloatArray | None
) -> list[dict[str, float | None]]:
    """What any budget reaches, for both directions: see `services.reaching`.

    Work is in distinct pairs, or in documents of average length where these are what pairs cost.
    """
    found = reached_by_budget(
        pool,
        design,
        measure=design.measure,
        prior=prior,
        max_grade=row.campaign.max_grade,
        costs=costs,
        work=costs if row.costs == Round.Costs.LENGTH else None,
        besides=partial(as_judged, row, pool),
    )
    return found.facts()


def _guaranteed(row: Round, pool: Pool, design: Design, prior: Prior) -> float | None:
    """The middle run's half width by the kind of interval chosen; None for Student's."""
    if row.interval == Round.Interval.STUDENT:
        return None
    widths = guaranteed_half_widths(
        pool,
        design,
        kind=cast(IntervalKind, row.interval),
        measure=design.measure,
        prior=prior,
        max_grade=row.campaign.max_grade,
    )
    return scales.finite(float(np.median(widths)))


def _largest(row: Round, pool: Pool, design: Design) -> dict[str, Any] | None:
    """The pair whose judgment could move a run's value most: w M / pi of one that may be missed.

    For draws with replacement n Q stands for pi. None in a census, where nothing is weighted up,
    and for measures that are no sums of gains.
    """
    if design.measure.family != "gain":
        return None
    draws = design.draws()
    expected = design.inclusion() if draws is None else design.size * draws
    effect, pair, entry = largest_effect(pool, design.measure, expected)
    best = design.measure.max_utility(row.campaign.max_grade)
    if effect <= 0.0:
        return None
    return {
        "effect": effect * best,
        "run": pool.runs[pool.run[entry]],
        "rank": int(pool.rank[entry]),
        "topic": pool.topics[pool.topic[pair]],
        "docno": pool.docno[pair].decode(),
        "probability": float(expected[pair] if draws is None else design.inclusion()[pair]),
    }

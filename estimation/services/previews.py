"""What a drafted round would buy, worked out by the worker before anything is drawn."""

from typing import Any

import numpy as np
from django.db import transaction

from estimation.core.designs import Design
from estimation.core.measures import Measure
from estimation.core.planning import expected_half_widths, half_width_curve
from estimation.core.pool import Pool
from estimation.models import Round
from estimation.services import designing, pools
from judging.errors import UserError
from judging.selectors import documents
from judging.services import jobs

SECONDS_PER_LABEL = 30
CURVE_POINTS = 12


def preview(job: jobs.Running) -> None:
    """The job: fills in the round's preview; a design that cannot be made says why."""
    row = Round.objects.select_related("campaign", "run", "baseline").filter(pk=job.target).first()
    if row is None or row.state != Round.State.DRAFTED:
        return
    try:
        found = _preview(row)
    except UserError as error:
        found = {"error": error.message}
    with transaction.atomic():
        job.fence()
        Round.objects.filter(pk=row.pk, state=Round.State.DRAFTED).update(preview=found)


def _preview(row: Round) -> dict[str, Any]:
    _, pool = pools.ensure(row.campaign)
    design = designing.design_of(row, pool)
    inclusion = design.inclusion()
    expected = float(inclusion.sum())
    labels = expected * (row.labels + row.extra_share)
    return {
        "error": None,
        "topics": len(pool.topics),
        "runs": len(pool.runs),
        "pool_pairs": len(pool),
        "eligible_pairs": int(design.eligible.sum()),
        "expected_pairs": expected,
        "expected_labels": labels,
        "hours": labels * SECONDS_PER_LABEL / 3600,
        "batches": design.batches,
        "without_text": _without_text(row, pool),
        "pairs_per_topic": _per_topic(pool, inclusion),
        "measures": [_measure(row, pool, design, m) for m in designing.measures_of(row)],
        "curve": _curve(row, pool, design),
        "largest": _largest(row, pool, design),
    }


def _without_text(row: Round, pool: Pool) -> int:
    """How many documents of the pool have no text, so that assessors would see a docno only."""
    known = {docno.encode() for docno in documents(row.campaign).values_list("docno", flat=True)}
    return len(set(pool.docno.tolist()) - known)


def _per_topic(pool: Pool, inclusion: np.ndarray) -> list[dict[str, Any]]:
    expected = np.bincount(pool.topic, weights=inclusion, minlength=len(pool.topics))
    pooled = np.bincount(pool.topic, minlength=len(pool.topics))
    return [
        {"topic": topic, "expected": drawn, "pool": size}
        for topic, drawn, size in zip(pool.topics, expected.tolist(), pooled.tolist(), strict=True)
    ]


def _measure(row: Round, pool: Pool, design: Design, measure: Measure) -> dict[str, Any]:
    """Expected half widths of all runs; None where the sample cannot support a value."""
    precision = expected_half_widths(
        pool, design, measure=measure, prior=designing.prior_of(row, pool)
    )
    median = (
        np.median(precision.difference_half_width[np.triu_indices(len(pool.runs), 1)])
        if (len(pool.runs) > 1)
        else np.inf
    )
    return {
        "measure": str(measure),
        "half_widths": [
            {"run": tag, "half_width": _finite(width)}
            for tag, width in zip(precision.runs, precision.half_width.tolist(), strict=True)
        ],
        "difference": _finite(float(median)),
    }


def _curve(row: Round, pool: Pool, design: Design) -> list[dict[str, Any]]:
    """Mean expected half width of the runs against the budget, around the chosen one."""
    most = min(row.budget * 4, int(design.eligible.sum()) if row.method == "poisson" else 10**9)
    least = max(1, min(row.budget // 8, most))
    points = np.unique(np.geomspace(least, most, CURVE_POINTS).astype(int)).tolist()
    budgets = sorted({*points, min(row.budget, most)})
    widths = half_width_curve(
        pool,
        design,
        measure=design.measure,
        prior=designing.prior_of(row, pool),
        budgets=budgets,
    )
    return [
        {"budget": budget, "half_width": _finite(float(np.mean(line)))}
        for budget, line in zip(budgets, widths, strict=True)
    ]


def _largest(row: Round, pool: Pool, design: Design) -> dict[str, Any] | None:
    """The pair whose judgment could move a run's value most: w M / pi of one that may be missed.

    For independent draws n Q stands for pi. None in a census, where nothing is weighted up.
    """
    expected = design.size * row.budget if row.method == Round.Method.IID else design.inclusion()
    open_pairs = (expected > 0.0) & (expected < 1.0)
    steps = np.divide(1.0, expected, out=np.zeros(len(pool)), where=open_pairs)
    effects = pool.entry_weights(design.measure) * steps[pool.entry_pair]
    entry = int(np.argmax(effects))
    pair = int(pool.entry_pair[entry])
    best = design.measure.max_utility(row.campaign.max_grade)
    if effects[entry] <= 0.0:
        return None
    return {
        "effect": float(effects[entry] * best),
        "run": pool.runs[pool.run[entry]],
        "rank": int(pool.rank[entry]),
        "topic": pool.topics[pool.topic[pair]],
        "docno": pool.docno[pair].decode(),
        "probability": float(design.inclusion()[pair]),
    }


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None

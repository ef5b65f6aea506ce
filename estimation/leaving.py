"""What it changes that a run is withdrawn, told before anybody does so; for page and programs."""

from dataclasses import dataclass

import numpy as np

from estimation import selectors
from estimation.models import Round, Run
from estimation.numbers import EstimateLine
from estimation.run_facts import CurrentEstimate, current_estimate
from estimation.selectors import Pairwise, pairwise
from estimation.services import withdrawals
from estimation.standing import JudgedSoFar, RoundsAsJudged, ranking_of


@dataclass(frozen=True)
class Leaving:
    """``estimate``: what is told of the run now, in a ranking of ``ranked`` runs.

    ``decided`` of its differences to others are, and are told no more. ``may_be_best``: no run is
    surely better than it; ``rivals``: of how many others that is so. ``foretold``: a forecast is
    shown, which is told no more while a run is withdrawn. ``standings``: what is drawn and judged
    of it in every drawn round, which stays. ``drafts`` name it and cannot be drawn without another
    choice. ``refused``: why it cannot be withdrawn; empty if it can.
    """

    estimate: CurrentEstimate | None
    ranked: int
    decided: int
    may_be_best: bool
    rivals: int
    foretold: bool
    standings: list[JudgedSoFar]
    drafts: list[int]
    refused: str

    @property
    def line(self) -> EstimateLine | None:
        return self.estimate.line if self.estimate else None


def leaving(run: Run) -> Leaving:
    """In a number of queries that hangs neither on runs nor on rounds."""
    found = current_estimate(run)
    pairs = pairwise(found.estimate_set, found.line.measure) if found else None
    there = pairs is not None and run.tag in pairs.runs
    best, decided = _best(pairs), 0
    if pairs is not None and there:
        decided = int(np.count_nonzero(pairs.verdicts[pairs.runs.index(run.tag)]))
    return Leaving(
        estimate=found,
        ranked=len(pairs.runs) if pairs else 0,
        decided=decided,
        may_be_best=run.tag in best,
        rivals=len(best - {run.tag}),
        foretold=pairs is not None and pairs.forecast is not None,
        standings=RoundsAsJudged(run.campaign).of(ranking_of(run)),
        drafts=_drafts(run),
        refused=withdrawals.why_not(run),
    )


def _best(pairs: Pairwise | None) -> set[str]:
    """Runs than which none is surely better."""
    if pairs is None:
        return set()
    beaten = (pairs.verdicts == -1).any(axis=1)
    return {tag for tag, lost in zip(pairs.runs, beaten.tolist(), strict=True) if not lost}


def _drafts(run: Run) -> list[int]:
    planned = selectors.rounds_of(run.campaign).filter(state__in=Round.NOT_DRAWN)
    rows = planned.order_by("number").values_list("number", "run", "baseline")
    return [number for number, *named in rows if run.pk in named]

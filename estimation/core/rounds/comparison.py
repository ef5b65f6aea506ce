"""How runs compare, by one rule: `rank_runs`, with the slack of what could not be drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.labels import pair_labels
from ..inference.equivalence import VERDICTS, verdict_confidence
from ..inference.knowledge import unreached_differences, unreached_runs
from ..inference.out_of_reach import OutOfReach
from ..inference.ranks import rank_runs
from ..inference.settled import can_tell, least_differences
from ..inference.simultaneous import equivalence, margins
from ..inference.slack import most_added, slack
from .results import MeasureResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..arrays import BoolArray, FloatArray, IntArray
    from ..data.labels import LabelRows
    from ..data.scope import Scope
    from ..inference.equivalence import Equivalence
    from ..inference.ranks import Ranking
    from ..measures.table import Measure
    from .results import Asked, EstimatorResult


@dataclass(frozen=True, eq=False)
class Comparison:
    """What runs are compared by, under every measure: what is asked, and what was out of reach.

    Attributes
    ----------
    scope : Scope
    asked : Asked
    out : OutOfReach
    judged : ndarray of int64, shape (n,)
        The judged pairs, of the scope's.
    rows : LabelRows
        Their judgments, sorted by (pair, grade); `pair` counts positions in `judged`.
    """

    scope: Scope
    asked: Asked
    out: OutOfReach
    judged: IntArray
    rows: LabelRows

    @classmethod
    def of(
        cls,
        scope: Scope,
        asked: Asked,
        eligible: BoolArray,
        *,
        judged: IntArray,
        rows: LabelRows,
    ) -> Comparison:
        """Return that of a scope's runs; `eligible`, (M,), are the pairs that could be judged."""
        return cls(scope, asked, OutOfReach.of(scope.pool, eligible), judged, rows)

    def result(
        self,
        measure: Measure,
        runs: tuple[str, ...],
        estimators: Mapping[str, EstimatorResult],
        primary: str,
        **more: Any,
    ) -> MeasureResult:
        """Return runs compared by the primary estimator; `more` are fields of the result."""
        at = self.scope.positions(runs)
        added = None if self.scope.is_sampled else self.scope.added
        of_all = slack(self.out, measure, max_grade=self.asked.max_grade, added=added)
        stand_back = of_all[np.ix_(at, at)]
        support = self.out.support(measure, added)[at]
        ranking, equivalent = self._compared(measure, runs, estimators[primary], stand_back)
        if (unreached := unreached_runs(support)).any():
            most = most_added(self.out, measure, max_grade=self.asked.max_grade)[at]
            estimators = {name: each.without(unreached, most) for name, each in estimators.items()}
            ranking = ranking.without(
                unreached_differences(unreached, stand_back, ranking.verdicts, most=most)
            )
        return MeasureResult(
            measure=measure,
            runs=runs,
            estimators=estimators,
            primary=primary,
            ranking=ranking,
            equivalence=equivalent,
            support=support,
            **more,
        )

    def _compared(
        self,
        measure: Measure,
        runs: tuple[str, ...],
        shown: EstimatorResult,
        stand_back: FloatArray,
    ) -> tuple[Ranking, Equivalence | None]:
        """Rank runs by one estimator, the best first whether large or small values are good.

        Where some differences do not matter, verdicts leave part of their error to equivalence.
        """
        sign = -1.0 if measure.lower_is_better else 1.0
        within, confidence = self.asked.within(measure), self.asked.at_this_look
        ranked = partial(
            rank_runs,
            sign * shown.value,
            covariance=shown.covariance,
            expected=shown.expected,
            finds=shown.finds,
            freedom=shown.freedom,
            least=shown.difference_least,
            missed=shown.missed,
            least_margin=shown.difference_margin,
            df=shown.difference_df,
            unknown=shown.difference_unknown,
            few=shown.difference_few,
            tags=runs,
            confidence=verdict_confidence(confidence) if within else confidence,
            slack=stand_back,
            bound=shown.difference_bound,
        )
        ranking = ranked()
        surely = self._surely(measure, runs, ranking)
        if surely is not None:
            ranking = ranked(surely=surely)
        found = None
        if within:
            found = equivalence(
                ranking,
                within,
                confidence=confidence,
                slack=stand_back,
                least=_least_of_all(shown, confidence),
                few=shown.difference_few,
                surely=surely,
                bound=shown.difference_bound,
            )
            alone = margins(
                ranking,
                confidence,
                shown.difference_bound,
                shown.difference_margin,
                surely=surely,
            )
            ranking = replace(ranking, margin=alone)
        return self._as_told(ranking, sign, within), found and found.turned(sign)

    def _surely(
        self, measure: Measure, runs: tuple[str, ...], ranking: Ranking
    ) -> FloatArray | None:
        """What differences are at least, whatever was not judged; None if that says nothing.

        It says something of runs without a verdict where the better one is so for certain, and
        where the estimates are further apart than runs can be.
        """
        if measure.family != "gain":
            return None
        labels = pair_labels(self.rows, pairs=len(self.judged), measure=measure)
        if not can_tell(measure, labels):
            return None
        at, pool = self.scope.positions(runs), self.scope.pool
        difference, than = ranking.difference, np.full((len(pool.runs), len(pool.runs)), np.inf)
        ahead = np.where((ranking.verdicts == 0) & (difference > 0.0), 0.0, np.inf)
        than[np.ix_(at, at)] = np.where(difference < 0.0, difference, ahead)
        found = least_differences(
            pool,
            measure,
            pairs=self.judged,
            labels=labels,
            max_grade=self.asked.max_grade,
            than=than,
        )
        return None if found is None else found[np.ix_(at, at)]

    def _as_told(self, ranking: Ranking, sign: float, within: float) -> Ranking:
        """P-values that hold at all looks at once: over the share of the error of this one.

        They are at most 1 - confidence where there is a verdict, as at one look, and so with the
        share that equivalence leaves.
        """
        look, adjusted = self.asked.look, ranking.adjusted_p
        share = (1.0 if look is None else look.share) * (VERDICTS if within else 1.0)
        if share < 1.0:
            adjusted = np.minimum(adjusted / share, 1.0)
        return replace(ranking, difference=sign * ranking.difference, adjusted_p=adjusted)


def _least_of_all(shown: EstimatorResult, confidence: float) -> FloatArray | None:
    """Standard errors that differences have at least in intervals of all at once."""
    if shown.missed is None:
        return shown.difference_least
    least = shown.missed.least_errors(confidence=confidence)
    return least if shown.difference_least is None else np.maximum(least, shown.difference_least)

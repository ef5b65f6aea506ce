"""What is known of ideal lists, the denominators of nDCG, when some pairs of topics are judged.

Where a pool is hardly deeper than the measure, the budget goes to what runs return near the top,
and few of the pairs below are drawn, with small chances. Of a topic, the estimated number of
relevant documents is then what was found, or, if one of those few is relevant, very many more: its
ideal list is estimated short, or full. A linearization where every pair has its expected utility
sees nothing of that, as most lists are full there, and another document changes nothing. TREC-8,
one run, nDCG@10, a tenth of 5 000 pairs: values told .11 too high, with intervals of ± .06.

But what is true of a list can be said from what was judged. It is at least as good as what was
found, and pairs that were not judged add what is expected of them:

    D_x = sum_g (u_g - u_(g-1)) G(n_gx + K_gx),

n_gx the documents of topic x that were found to reach the utility of level g, K_gx those that were
not judged and do. The number U_gx that is expected of these stands on a factor of the topic that is
known by n_gx finds (`raking`), and is brought to the number that the sample says without bias for
all topics together, as far as there are finds. K_gx has the variance U + U^2 / (n + 1) for that,
and is taken for gamma distributed; the levels of a topic rise together.

What was found of a run is true whatever the list is. With F_xj what of the numerator is certain,
the value errs by F_xj (1/D^ - 1/D) in each topic, of which the expectation, a bias, may be left in
full, and errors have the variance of 1/D. Both are added to what is expected of errors
(`covariance`). Where numerators are not certain, as where many runs are judged to some depth,
estimates of both have the same documents, and a linearization sees what that does. So it does of
nDCG without a cutoff, whose lists are never full.

No value changes. To take the bias off halves the errors of few runs, but told 61 runs of DL 2019
.02 too low with a tenth judged, where a model expected too much of topics with little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..arrays import column_sums, share_of
from ..estimates.ratio_labels import by_levels
from ..estimates.ratio_lines import discounted
from ..estimates.ratio_moments import cross_sums
from .ratio_outlook import levels_of

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..data.labels import LabelRows
    from ..data.pool import Pool
    from ..estimates.drawn import Drawn
    from ..estimates.ratio_labels import FoundParts
    from ..measures.table import Measure
    from .outlook import Outlook

POINTS = 16  # of the distribution of what is not judged, each as likely
FINDS_BELIEVED = 4.0  # so many finds say as much of the number for all topics as the outlook does


@dataclass(frozen=True, eq=False)
class IdealLists:
    """What is expected of 1 / D of T topics, and its variance; 0 where nothing was found.

    Attributes
    ----------
    reciprocal, variance : ndarray of float64, shape (T,)
    """

    reciprocal: FloatArray
    variance: FloatArray

    @classmethod
    def of(
        cls, pool: Pool, measure: Measure, drawn: Drawn, rows: LabelRows, outlook: Outlook
    ) -> IdealLists:
        """Return what is known after the judgments of the drawn pairs.

        Rows are sorted by (pair, grade); `pair` counts positions in `drawn.pair`.
        """
        levels, gain = levels_of(measure, outlook)
        found = by_levels(rows, len(drawn.pair), gain, outlook.grades[1:][levels]).reach
        open_ = outlook.reach(np.arange(len(pool)))[levels] * (drawn.inclusion > 0.0)
        looked = open_[:, drawn.pair]
        open_[:, drawn.pair] = 0.0
        topics, of_drawn = pool.topic.astype(np.int64), pool.topic[drawn.pair].astype(np.int64)

        def per_topic(topic: IntArray, values: FloatArray) -> FloatArray:
            return np.stack([column_sums(topic, each, number=len(pool.topics)) for each in values])

        some, expected = per_topic(of_drawn, found), per_topic(of_drawn, looked)
        more = per_topic(topics, open_) * (some + 1.0) / (expected + 1.0)
        more *= _times(found, drawn, more.sum(axis=1))[:, None]
        scale = 1.0 + more / (some + 1.0)
        at = (np.arange(POINTS) + 0.5) / POINTS
        count = special.gammaincinv(np.maximum(more / scale, 1e-9), at[:, None, None])
        value = (gain[:, None] * discounted(measure, some + scale * count)).sum(axis=1)
        value[:, ~some.any(axis=0)] = 0.0  # a numerator of nothing errs by no list
        each = share_of(np.ones_like(value), of=value)
        return cls(each.mean(axis=0), each.var(axis=0))

    def covariance(self, found: FoundParts) -> FloatArray:
        """What errors of ideal lists add to the covariance of the values, shape (k, k)."""
        bias = (found.numerator * (found.reciprocal - self.reciprocal)[:, None]).sum(axis=0)
        spread = found.numerator * np.sqrt(self.variance)[:, None]
        return np.asarray(np.multiply.outer(bias, bias) + cross_sums(spread, spread))


def _times(found: FloatArray, drawn: Drawn, expected: FloatArray) -> FloatArray:
    """How many times what is expected of all topics the sample says there is, (L,).

    Documents of chance p stand for (1 - p) / p that were not judged. Of few one may have nearly all
    of that: they count as their number in equal parts would.
    """
    inclusion = drawn.inclusion[drawn.pair]
    stand_for = found * share_of(1.0 - inclusion, of=inclusion)
    unbiased = stand_for.sum(axis=1)
    finds = share_of(unbiased**2, of=(stand_for**2).sum(axis=1))
    believed = finds / (finds + FINDS_BELIEVED)
    return np.asarray(1.0 + believed * (share_of(unbiased, of=expected) - 1.0))

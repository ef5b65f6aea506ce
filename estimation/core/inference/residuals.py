"""What the judgments let one expect of the residuals that predictions leave over.

The difference estimator errs by what it predicts wrongly, v_i - b m_i, of pairs that were not
sampled. Residuals above 0, of documents that are more relevant than was predicted, are few and
large; those below 0 are many and small. The mean, the mean square and the mean cube of either are
each modeled as a product of factors of the pair's classes (`raking`), those of grades with the bin
of its prediction in the place of the prior's belief: a prediction tells more of its own residual.
"""

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray
from ..data.pool import Pool
from ..data.scope import Scope
from ..estimates.drawn import Drawn
from ..sampling.calibration import order_bins
from .raking import Kinds, Model, fitted_places

POWERS = 3


@dataclass(frozen=True, eq=False)
class Residuals:
    """What is expected of the residuals of the N pairs of a pool.

    Attributes
    ----------
    kinds, model : Kinds, Model
        Of residuals as shares of the largest, and of their powers.
    largest : float
    """

    kinds: Kinds
    model: Model
    largest: float

    def moments(self, pairs: IntArray) -> FloatArray:
        """Return expected residuals of pairs, their squares and their cubes, shape (2, 3, n).

        First of those above 0, then of those below, without their sign.
        """
        known = self.kinds.of_pairs(pairs)
        shares = self.model.shares(known, often=True).reshape(2, POWERS, len(pairs))
        scale = self.largest ** np.arange(1, POWERS + 1)
        return np.asarray(shares * scale[:, None], dtype=np.float64)

    def over(self, scope: Scope) -> "Residuals | ResidualsOver":
        """Return the same of the pairs of a scope."""
        return self if scope.is_sampled else ResidualsOver(self, scope)


@dataclass(frozen=True, eq=False)
class ResidualsOver:
    """Residuals of the N sampled pairs, said of the pairs of a scope.

    Only those that can be sampled are asked for.
    """

    sampled: Residuals
    scope: Scope

    def moments(self, pairs: IntArray) -> FloatArray:
        """Return what is expected of some pairs, shape (2, 3, n)."""
        return self.sampled.moments(self.scope.origin[pairs])


def fit_residuals(
    pool: Pool, drawn: Drawn, left: FloatArray, *, predictions: FloatArray
) -> Residuals:
    """Fit the model to what predictions leave over of the labels of a sample.

    Parameters
    ----------
    pool : Pool
    drawn : Drawn
    left : ndarray of float64, shape (n,)
        The residuals of the sampled pairs.
    predictions : ndarray of float64, shape (N,)
        NaN where nothing is predicted. Only their order counts.
    """
    some = fitted_places(drawn)
    largest = float(np.abs(left).max(initial=0.0)) or 1.0
    sides = (np.maximum(sign * left[some] / largest, 0.0) for sign in (1.0, -1.0))
    found = np.stack([side**power for side in sides for power in range(1, POWERS + 1)], axis=1)
    kinds = Kinds(pool, drawn, drawn.pair[some], order_bins(predictions))
    return Residuals(kinds, Model.of(pool, kinds.of_pairs(drawn.pair[some]), found), largest)

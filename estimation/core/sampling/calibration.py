"""Predictions made safe: only their order is used, and only as far as something bears it out.

A predicted grade may come from anywhere: a language model's whole grades, a classifier's
probabilities, scores on a scale of their own, nonsense. Its level is never believed. Pairs are put
into bins by the order of their predictions (`order_bins`), and what a bin means is learned:

before the draw (`agreement`)
    from what the runs return, for the prior ``scores``: there are no judgments yet;
after it (`calibrate`)
    from the judgments of other folds, for the difference estimator.
"""

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray, column_sums, share_of

FOLDS = 5
# Shares of the pool above the bins' edges: relevant pairs are few, so that bins narrow to the top.
TAILS = np.concatenate([2.0 ** (-0.5 * np.arange(16.0, 0.0, -1.0)), [0.75, 0.875, 0.9375]])
PSEUDO_PAIRS = 2.0  # equally weighted pairs that what a bin is shrunk towards is worth
MOST_RAISE = 3.0  # the root of a chance is raised by at most so many times itself
CREDIBLE, INCREDIBLE = 0.25, 0.5  # shares of the variance of what ranks say


def order_bins(predictions: FloatArray) -> IntArray:
    """Put pairs into bins by the order of their predictions, which are finite, or NaN for none.

    Equal predictions share a bin, and every increasing function of the predictions has the same
    bins: a scale 1000 times too large changes nothing. The bins depend on the predictions of all
    N pairs, never on what was drawn or judged. They count from 0, the smallest predictions, up;
    -1 where nothing is predicted.
    """
    known = ~np.isnan(predictions)
    ordered = np.sort(predictions[known])
    if not len(ordered):
        return np.full(len(predictions), -1)
    place = np.minimum(len(ordered) * (1.0 - TAILS), len(ordered) - 1).astype(np.int64)
    edge = ordered[place]
    first = np.searchsorted(ordered, edge, side="left")
    beyond = np.searchsorted(ordered, edge, side="right")
    many = beyond - first > len(ordered) * TAILS / 2.0  # equal ones get a bin of their own
    edges = np.unique(np.concatenate([ordered[first[first > 0] - 1], edge[many]]))
    return np.where(known, np.searchsorted(edges, predictions, side="left"), -1)


# -------------------------------------------------------------------------------- after the draw


def calibrate(
    bins: IntArray,
    fold: IntArray,
    *,
    pairs: IntArray,
    labels: FloatArray,
    importance: FloatArray,
) -> FloatArray:
    """Learn, by cross-fitting, the expected label of every pair from its bin.

    For the pairs of fold f, only sampled pairs of the other folds are looked at. The expected
    label of a bin is the mean of their labels, weighted by importance; means are made to rise with
    the bins (isotonic regression, which pools bins that do not), and each is shrunk towards the
    mean of all, and that towards 0, by as much as `PSEUDO_PAIRS` pairs more would do: a mean over
    weights c is worth (sum c)^2 / sum c^2 pairs (Kish). All is then multiplied by a coefficient
    between 0 and 1, the one with the smallest weighted squares of residuals when every other fold
    in turn is predicted from the rest of them. So whatever is predicted, an expected label is an
    average of labels that were seen, or less.

    Pairs enter a Poisson sample independently, and so do their labels. What is learned for a fold
    is therefore independent of what it is used on, and the difference estimator stays exactly
    unbiased.

    Parameters
    ----------
    bins : ndarray of int64, shape (N,)
        From `order_bins`.
    fold : ndarray of int64, shape (N,)
        The fold of every pair, below `FOLDS`, by a hash.
    pairs : ndarray of int64, shape (n,)
        The sampled pairs.
    labels : ndarray of float64, shape (n,)
        Their labels, >= 0.
    importance : ndarray of float64, shape (n,)
        c_i >= 0: how much each counts when expected labels are learned; to serve an estimate,
        (1 - pi)/pi^2 times a squared weight, its factor in the estimated variance.

    Returns
    -------
    ndarray of float64, shape (N,)
        Expected label of every pair, from 0 to the largest label; 0 where nothing is predicted.
    """
    places = int(bins.max(initial=-1)) + 2  # one for each bin, and before them one for bin -1
    cell = fold * places + (bins + 1)
    return _expected(_Sums.of(cell[pairs], places, labels, importance)).take(cell)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over sampled pairs by fold and place, all of shape (FOLDS, places)."""

    weight: FloatArray  # c
    total: FloatArray  # c v
    square: FloatArray  # c^2

    @classmethod
    def of(cls, cell: IntArray, places: int, values: FloatArray, weight: FloatArray) -> "_Sums":
        """Add up those of pairs whose cells are counted through all places fold by fold."""
        columns = (
            column_sums(cell, each, number=FOLDS * places).reshape(FOLDS, places)
            for each in (weight, weight * values, weight**2)
        )
        return cls(*columns)

    def without(self, *left_out: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The sums over all folds but some, each of shape (places,)."""
        kept = _folds_but(*left_out)
        return self.weight[kept].sum(0), self.total[kept].sum(0), self.square[kept].sum(0)

    @property
    def of_predicted(self) -> "_Sums":
        """Those of the bins: without the place of pairs of which nothing is predicted."""
        return _Sums(self.weight[:, 1:], self.total[:, 1:], self.square[:, 1:])


def _folds_but(*left_out: int) -> list[int]:
    return [fold for fold in range(FOLDS) if fold not in left_out]


def _expected(sums: _Sums) -> FloatArray:
    """The expected label at each place, for each fold, shape (FOLDS, places)."""
    bins = sums.of_predicted
    fitted = [_coefficient(bins, f) * _rising(*bins.without(f)) for f in range(FOLDS)]
    return np.pad(np.stack(fitted), ((0, 0), (1, 0)))


def _coefficient(sums: _Sums, fold: int) -> float:
    """The b in [0, 1] that suits the other folds best, each predicted from the rest of them."""
    product = square = 0.0
    for other in _folds_but(fold):
        predicted = _rising(*sums.without(fold, other))
        product += float((predicted * sums.total[other]).sum())
        square += float((predicted**2 * sums.weight[other]).sum())
    return min(1.0, product / square) if square > 0.0 else 0.0


def _rising(weight: FloatArray, total: FloatArray, square: FloatArray) -> FloatArray:
    """Shrunk means of bins that rise; a bin without any pair is taken with the one below it."""
    if not np.any(weight > 0.0):
        return np.zeros(len(weight))
    block = _blocks(weight, total)
    parts = (column_sums(block, each, number=block[-1] + 1) for each in (weight, total, square))
    weights, totals, squares = parts
    typical = total.sum() / weight.sum()
    typical *= _credence(weight.sum(), square.sum())
    mean = share_of(totals, of=weights)
    shrunk = typical + _credence(weights, squares) * (mean - typical)
    return np.asarray(shrunk[block], dtype=np.float64)


def _credence(weight: FloatArray, square: FloatArray) -> FloatArray:
    """The share n / (n + PSEUDO_PAIRS) that a mean of n equally weighted pairs has."""
    squared = np.square(weight)
    return share_of(squared, of=squared + PSEUDO_PAIRS * square)


def _blocks(weight: FloatArray, total: FloatArray) -> IntArray:
    """Number the runs of bins that isotonic regression pools, from 0; some weight is above 0."""
    filled = np.flatnonzero(weight > 0.0)
    means = isotonic(total[filled] / weight[filled], weight[filled])
    block = np.concatenate([[0], np.cumsum(np.diff(means) > 0.0)])
    below = np.searchsorted(filled, np.arange(len(weight)), side="right") - 1
    return np.asarray(block[np.maximum(below, 0)], dtype=np.int64)


def isotonic(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the nondecreasing numbers with the least weighted squares to B values.

    Weights are > 0. max over j <= i of min over k >= i of the mean of values j to k (Barlow et
    al. 1972, theorem 1.4), which takes B^2 numbers: for few values.
    """
    weight = np.concatenate([[0.0], np.cumsum(weights)])
    total = np.concatenate([[0.0], np.cumsum(weights * values)])
    size = np.subtract.outer(weight[1:], weight[:-1]).T  # [j, k]: of the bins j to k
    sums = np.subtract.outer(total[1:], total[:-1]).T
    upper = np.arange(len(values)) >= np.arange(len(values))[:, None]
    mean = np.divide(sums, size, out=np.full(size.shape, np.inf), where=upper)
    least = np.minimum.accumulate(mean[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.where(upper, least, -np.inf).max(axis=0), dtype=np.float64)


# ------------------------------------------------------------------------------- before the draw


def agreement(bins: IntArray, chance: FloatArray) -> FloatArray:
    """Return by how much to raise the root of each pair's chance, from predictions and runs alone.

    If predictions tell of a document only whether it is relevant, their distribution is a mixture
    of that of relevant documents and that of others, and the share of a bin changes with the
    chance p of relevance by the slope P(bin | relevant) - P(bin | not). That slope is seen before
    any judgment: p is believed from the ranks at which runs return the document. So a bin's
    relevant documents are 1 + (1 - mean p) slope / P(bin) times as many as usual. Predictions that
    have nothing to do with relevance, or are upside down, show no rising slope and raise nothing.

    The slopes are made to rise with the bins, shrunk by what chance alone would make of them, and
    scaled down until they explain no more of relevance than there is. Where predictions explain
    more of the variance of p than relevance could (from a quarter on less is believed, from a half
    on nothing), they were made from the runs' own ranks, and say nothing new.

    Parameters
    ----------
    bins : ndarray of int64, shape (N,)
        From `order_bins`; -1 where nothing is predicted.
    chance : ndarray of float64, shape (N,)
        p, from 0 to 1.

    Returns
    -------
    ndarray of float64, shape (N,)
        h from 0 to `MOST_RAISE`: sqrt(p) (1 + h) is the root to use. 0 where nothing is predicted.
    """
    known = bins >= 0
    raised = np.zeros(len(bins))
    if known.any() and np.ptp(chance[known]) > 0.0:
        raised[known] = _raises(bins[known], chance[known])
    return raised


def put_together(predictions: FloatArray, chance: FloatArray) -> FloatArray:
    """Return one number per pair, whose order tells what several predictions of it say together.

    The sum of the logarithms of what each by itself would raise the root of its chance to
    (`agreement`): by how much relevance becomes likelier if predictions err independently of each
    other. What shows no rising slope adds nothing, nor does one that is missing. Only the order is
    used, and what it is worth is seen from the runs once more, so that copies of one prediction
    count once.

    Parameters
    ----------
    predictions : ndarray of float64, shape (N,) or (N, S)
        Finite, or NaN for none. One column is returned as it is.
    chance : ndarray of float64, shape (N,)
        As for `agreement`.

    Returns
    -------
    ndarray of float64, shape (N,)
        NaN where nothing is predicted.
    """
    columns = predictions.reshape(len(chance), -1)
    if columns.shape[1] == 1:
        return columns[:, 0]
    raised = (agreement(order_bins(column), chance) for column in columns.T)
    total = np.add.reduce([np.log1p(each) for each in raised])
    return np.where(np.isnan(columns).all(axis=1), np.nan, total)


def _raises(bins: IntArray, chance: FloatArray) -> FloatArray:
    """sqrt(1 + rise) - 1 of each pair's bin, as far as that is credible; chances differ."""
    bin_of, size = np.unique(bins, return_inverse=True, return_counts=True)[1:]
    mean, spread, share = chance.mean(), chance.var(), size / size.sum()
    above = column_sums(bin_of, chance - mean, number=len(size)) / size
    explained = float((share * above**2).sum() / spread)
    rising = isotonic(above, share)
    rise = np.maximum(rising, 0.0) * (1.0 - mean) / spread
    rise *= _beyond_chance(float((size * rising**2).sum() / spread), len(size))
    of_relevance = float(mean / (1.0 - mean) * (share * rise**2).sum())
    rise /= np.sqrt(max(1.0, of_relevance))
    trust = float(np.clip((INCREDIBLE - explained) / (INCREDIBLE - CREDIBLE), 0.0, 1.0))
    raised = np.minimum(trust * (np.sqrt(1.0 + rise) - 1.0), MOST_RAISE)
    return np.asarray(raised[bin_of], dtype=np.float64)


def _beyond_chance(signal: float, bins: int) -> float:
    """The share of the squares of isotonic means that chance does not explain.

    Of so many means that differ by chance alone, with variances of 1, it makes 1/2 + ... + 1/bins
    (Barlow et al. 1972, chapter 3).
    """
    expected = float((1.0 / np.arange(2.0, bins + 1.0)).sum())
    return max(0.0, 1.0 - expected / signal) if signal > 0.0 else 0.0

"""Stratified sampling after a prior of average precision (Pavlu and Aslam; Stevens 1958)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from estimation.core.arrays import FloatArray, IntArray, check_whole, column_sums, frozen, refuse
from estimation.core.data.pool import Pool
from estimation.core.sampling.random_numbers import permanent_random_numbers, uniform_numbers
from estimation.research.baselines.selections import (
    Budget,
    Selection,
    contribution,
    sampling_budgets,
)


def ap_prior(depth: int) -> FloatArray:
    """Return the AP-prior of ranks 1..depth, which sums to 1.

    Proportional to 1 + 1/r + 1/(r + 1) + ... + 1/depth (Li and Kanoulas 2017, section 2.3): the
    weight of the pairs of ranks that rank r has a part in, when average precision is written as
    a sum over pairs.

    Returns
    -------
    ndarray of float64, shape (depth,)
    """
    check_whole(depth, name="depth")
    weights = 1.0 + np.cumsum(1.0 / np.arange(depth, 0, -1))[::-1]
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of one topic, from which n draws are made.

    Documents stand in the order of their prior, the highest first, and are cut into strata of n;
    the last one is what is left. Each draw takes stratum h with probability P_h, the sum of its
    documents' prior; a stratum drawn k times gives min(k, s_h) of its s_h documents, each set of
    so many being as likely as any other.

    Attributes
    ----------
    draws : int
        n.
    pair : ndarray of int64, shape (documents,)
        Pairs in the order of their prior.
    stratum : ndarray of int64, shape (documents,)
        Stratum of each: 0, 1, ...
    probability : ndarray of float64, shape (H,)
        P_h; sums to 1.
    """

    draws: int
    pair: IntArray
    stratum: IntArray
    probability: FloatArray

    @property
    def sizes(self) -> IntArray:
        """Documents s_h per stratum, shape (H,)."""
        return np.bincount(self.stratum, minlength=len(self.probability)).astype(np.int64)

    def inclusion(self) -> FloatArray:
        """Return pi_h = E[min(k_h, s_h)] / s_h of each stratum, shape (H,).

        k_h is binomial with n draws. For a full stratum, s_h = n, that is P_h.
        """
        return np.asarray(self._first() / self.sizes, dtype=np.float64)

    def joint(self, strata: IntArray | None = None) -> FloatArray:
        """Return the probability of two different documents of two strata to be both judged.

        With m_h = min(k_h, s_h): E[m_h (m_h - 1)] / (s_h (s_h - 1)) within a stratum, E[m_g m_h]
        / (s_g s_h) between two. Of full strata these are P_h^2 and P_g P_h (n - 1)/n. A stratum
        of one document has no two different ones: 1 stands in its place.

        Parameters
        ----------
        strata : ndarray of int64, shape (G,), optional
            Only these strata; by default all.

        Returns
        -------
        ndarray of float64, shape (G, G)
        """
        last = len(self.probability) - 1
        wanted = np.arange(last + 1) if strata is None else strata
        n, chance, sizes = self.draws, self.probability[wanted], self.sizes[wanted]
        products = n * (n - 1) * np.multiply.outer(chance, chance)
        if last > 0:
            short = np.flatnonzero(wanted == last)
            count, likely, taken = self._last()
            # k_g given k_last is binomial with n - k_last draws.
            mixed = float(likely @ (taken * (n - count))) / (1.0 - self.probability[last])
            products[short] = mixed * chance
            products[:, short] = mixed * chance[:, None]
            products[short, short] = float(likely @ (taken * (taken - 1)))
        pairs = np.multiply.outer(sizes, sizes)
        np.fill_diagonal(pairs, np.diag(pairs) - sizes)
        chances = np.divide(products, pairs, out=np.ones_like(products), where=pairs > 0)
        return np.asarray(chances, dtype=np.float64)

    def _first(self) -> FloatArray:
        expected = self.draws * self.probability
        _, chances, taken = self._last()
        expected[-1] = float(chances @ taken)
        return np.asarray(expected, dtype=np.float64)

    def _last(self) -> tuple[IntArray, FloatArray, IntArray]:
        """How often the last stratum is drawn, how likely that is, documents it then gives."""
        count = np.arange(self.draws + 1)
        chances = stats.binom.pmf(count, self.draws, min(self.probability[-1], 1.0))
        return count, np.asarray(chances), np.minimum(count, self.sizes[-1])


def stratify(pairs: IntArray, prior: FloatArray, *, draws: int) -> Strata:
    """Cut the documents of a topic into strata.

    Parameters
    ----------
    pairs : ndarray of int64, shape (documents,)
        In canonical order, which decides between equal priors.
    prior : ndarray of float64, shape (documents,)
        Positive.
    draws : int
        Between 1 and the number of documents.

    Raises
    ------
    ValueError
        If draws is out of range, or a prior is not positive.
    """
    check_whole(draws, name="draws", most=len(pairs), of="documents")
    wrong = ~(np.isfinite(prior) & (prior > 0.0))
    refuse(wrong, prior, name="prior", rule="be positive and finite")
    order = np.argsort(-prior, kind="stable")
    stratum = np.arange(len(pairs)) // draws
    sums = column_sums(stratum, prior[order], number=int(stratum[-1]) + 1)
    return Strata(draws, pairs[order], stratum, sums / sums.sum())


def select_stratified(
    pool: Pool, *, budget: Budget, seed: str, runs: Sequence[str] | None = None
) -> Selection:
    """Draw a stratified sample in every topic, as described at `Strata`.

    The prior of a document is the mean over runs of `ap_prior` at its rank, 0 where a run does
    not return it. The last stratum can be drawn more often than it has documents; then fewer
    pairs than the budget are judged.

    Parameters
    ----------
    budget : int or ndarray of int, shape (T,)
        Draws of all topics together, shared as by `topic_budgets`, or per topic; every topic with
        documents needs one.
    seed : str
    runs : sequence of str, optional
        Runs that contribute documents; by default all.

    Raises
    ------
    BudgetError
        If the budget cannot be spent, or leaves out a topic.
    """
    part = contribution(pool, runs)
    wanted = sampling_budgets(pool, part.sizes, budget)
    kept = part.entry
    weights = ap_prior(pool.depth)[pool.rank[kept] - 1]
    prior = column_sums(pool.entry_pair[kept], weights, number=len(pool))
    candidates = np.flatnonzero(part.eligible)
    starts = np.searchsorted(pool.topic[candidates], np.arange(len(pool.topics) + 1))
    numbers = np.empty(len(pool))
    numbers[candidates] = permanent_random_numbers(pool, seed=seed, pairs=candidates)
    drawn = []
    for place in np.flatnonzero(wanted):
        pairs = candidates[starts[place] : starts[place + 1]]
        strata = stratify(pairs, prior[pairs], draws=int(wanted[place]))
        draws = uniform_numbers(f"strata {seed} {pool.topics[place]}", number=strata.draws)
        drawn.append((int(place), strata, take(strata, draws, numbers[strata.pair])))
    return stratified_selection(pool, drawn)


def take(strata: Strata, draws: FloatArray, numbers: FloatArray) -> IntArray:
    """Return the positions of the documents that uniform numbers choose.

    Parameters
    ----------
    draws : ndarray of float64, shape (n,)
        One per draw of a stratum.
    numbers : ndarray of float64, shape (documents,)
        One per document, in the order of `Strata.pair`; the smallest of a stratum are taken.
    """
    cumulated = np.cumsum(strata.probability)
    last = len(cumulated) - 1
    chosen = np.minimum(np.searchsorted(cumulated, draws, side="right"), last)
    counts = np.bincount(chosen, minlength=last + 1)
    order = np.lexsort((numbers, strata.stratum))
    within = np.arange(len(order)) - strata.draws * strata.stratum  # strata before are full
    return np.sort(order[within < counts[strata.stratum]])


def stratified_selection(pool: Pool, drawn: Sequence[tuple[int, Strata, IntArray]]) -> Selection:
    """Put together what was drawn: per topic its place in the pool, its strata, taken documents."""
    number = len(pool.topics)
    joint = [np.ones((0, 0))] * number
    pairs, inclusion, groups = [], [], []
    for place, strata, taken in drawn:
        # Strata without a judged pair are left out: with few draws there are many strata.
        found, group = np.unique(strata.stratum[taken], return_inverse=True)
        pairs.append(strata.pair[taken])
        inclusion.append(strata.inclusion()[found][group])
        groups.append(group.astype(np.int64))
        joint[place] = frozen(strata.joint(found))
    return Selection(
        method="stratified",
        pair=frozen(np.concatenate(pairs)),
        inclusion=frozen(np.concatenate(inclusion)),
        group=frozen(np.concatenate(groups)),
        block=frozen(np.arange(number)),
        joint=tuple(joint),
        topics=frozen(np.arange(number)),
        pool_digest=pool.digest,
    )

"""What people call whose pools grow: old rounds over a new pool, and rounds that add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

import numpy as np

from ..arrays import index_array, kind_of
from ..rounds.adaptive.past import Past
from ..rounds.adaptive.state import AdaptivePlan
from ..rounds.adaptive.top_ups import topped_up
from ..rounds.combining import CombiningError, part_over, union_of
from ..sampling.designs import Design, DesignError
from ..sampling.methods import of_pairs_with
from ..sampling.top_up import top_up as fill_up
from .arguments import check_kind, check_pool, check_seeds
from .names import check_of_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ..data.pool import Pool
    from ..rounds.rounds import PairRound


def carry_over(drawn: PairRound, pool: Pool, *, larger: Pool, like: Design) -> PairRound:
    """Say a round of a pool as one of a larger pool, to be put `together` with rounds of that.

    Pairs keep their probabilities; the others were out of its reach, with the probability 0.

    Parameters
    ----------
    drawn : PairRound
        By ``poisson`` or ``iid``.
    pool, larger : Pool
        What it was drawn from, and a pool with all of its runs, of the same topics and depth.
    like : Design
        Of a round over the larger pool; what it believes of further pairs is taken over, and no
        value depends on that.

    Raises
    ------
    ValueError
        If the pools do not go together.

    Examples
    --------
    >>> runs = read_runs("demo/collection/runs")
    >>> old = {tag: runs[tag] for tag in ("bm25", "dph")}
    >>> pool, larger = pool_runs(old, depth=10), pool_runs(runs, depth=10)
    >>> drawn = draw_round(pool, make_design(pool, measure="P@10", budget=200), seed="a seed")
    >>> plain = make_design(larger, measure="P@10", budget=300)
    >>> before = carry_over(drawn, pool, larger=larger, like=plain)
    >>> int(before.design.eligible.sum()) == int(drawn.design.eligible.sum())
    True
    """
    check_of_pairs([drawn], having="with_earlier")
    check_pool(pool)
    check_pool(larger)
    check_kind(like, Design, name="like", see="make_design", error=DesignError)
    return part_over(drawn, pool=pool, joined=larger, like=like)


@overload
def top_up(
    design: Design,
    *,
    rounds: Sequence[PairRound] = (),
    seeds: Sequence[str] = (),
    judged: ArrayLike | None = None,
) -> Design: ...


@overload
def top_up(design: AdaptivePlan, *, judged: ArrayLike) -> AdaptivePlan: ...


def top_up(
    design: Design | AdaptivePlan,
    *,
    rounds: Sequence[PairRound] = (),
    seeds: Sequence[str] = (),
    judged: ArrayLike | None = None,
) -> Design | AdaptivePlan:
    """Change a design so that its budget is for new pairs, where earlier judgments say least.

    With `rounds` it fills up the probabilities that pairs have in them: estimate from all of them
    `together`. With `judged` it takes judged pairs for certain: estimate from the new round alone,
    with the old labels among its own, whatever the rounds before it were. See `sampling.top_up`
    for why both are unbiased. Draw it with a seed that no round before it had.

    Parameters
    ----------
    design : Design or AdaptivePlan
        By ``poisson`` or, with `judged`, ``adaptive``; without costs, as if nothing was judged. An
        adaptive round is drawn with the labels of judged pairs, from which it learns:
        ``draw_round(pool, plan, seed=..., labels=...)``.
    rounds : sequence of PairRound
        By ``poisson``, over the pool of the design; see `carry_over`.
    seeds : sequence of str
        What each was drawn with.
    judged : array_like of int, shape (n,), optional
        Positions in the pool of all pairs that are judged, instead of `rounds`.

    Raises
    ------
    CombiningError
        If there are both rounds and judged pairs, or neither, or a round is of another pool.
    DesignError
        If a design is not by ``poisson``, or nothing is left to judge.

    Examples
    --------
    >>> runs = read_runs("demo/collection/runs")
    >>> pool = pool_runs(runs, depth=10)
    >>> plain = make_design(pool, measure="P@10", budget=300)
    >>> before = draw_round(pool, plain, seed="a seed")
    >>> design = top_up(plain, rounds=[before], seeds=["a seed"])
    >>> added = draw_round(pool, design, seed="another seed")
    >>> together([before, added], seeds=["a seed", "another seed"]).method
    'poisson'
    >>> alone = top_up(plain, judged=before.served(pool).pair)
    >>> bool((alone.inclusion()[before.served(pool).pair] == 1.0).all())
    True

    >>> learning = make_design(pool, measure="P@10", budget=300, method="adaptive", max_grade=3)
    >>> judged = before.served(pool).pair
    >>> labels = read_qrels("demo/collection/qrels.txt.gz").labels(pool, judged, unlisted=0)
    >>> drawn = draw_round(pool, top_up(learning, judged=judged), seed="a third", labels=labels)
    >>> drawn.planned
    1
    """
    if isinstance(design, AdaptivePlan):
        if judged is None or len(rounds):
            raise CombiningError("an adaptive round is topped up with the judged pairs alone")
        some = index_array(np.asarray(judged), below=len(design.design.size), name="judged")
        return topped_up(design, Past.alone(np.unique(some), pairs=len(design.design.size)))
    if not isinstance(design, Design):
        listed = ", ".join(of_pairs_with("top_up"))
        raise DesignError(f"Only designs by {listed} top up, not {kind_of(design)}.")
    check_of_pairs(rounds, having="top_up")
    check_seeds(seeds, len(rounds))
    if bool(len(rounds)) == (judged is not None):
        raise CombiningError("give either rounds and their seeds, or judged pairs")
    if judged is not None:
        earlier = np.zeros(len(design.size))
        earlier[index_array(np.asarray(judged), below=len(earlier), name="judged")] = 1.0
        return fill_up(design, earlier).own(alone=True)
    for number, each in enumerate(rounds):
        if each.design.pool_digest != design.pool_digest:
            raise CombiningError(f"rounds[{number}] belongs to another pool; see carry_over")
    of_each = (each.design.inclusion(each.used) for each in rounds)
    return fill_up(design, union_of(zip(seeds, of_each, strict=True))).own(alone=False)

"""Judged collections as they are published: the complete batches of rounds, and no more.

What only the server needs is left out: batches that are not complete, the order of draws within a
batch, scores and predictions that nothing was drawn by, and of rounds of pairs which runs returned
what; what the judgments let one expect, which rests on that, is worked out instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BytesArray, Int32Array, frozen, index_array
from ..data.labels import pair_name
from ..data.pool import Pool
from ..data.preferences import BETWEEN, part_names
from ..inference.fitting import outlook_of
from ..measures.kinds import PREFERENCE_MAX_GRADE
from ..rounds.active.rounds import ActiveRound
from ..rounds.adaptive.rounds import AdaptiveRound
from ..rounds.combining import as_one
from ..rounds.rounds import PairRound, TopicRound
from ..sampling.samples import Sample
from .base import CollectionError, RoundCollection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sampling.designs import Design

_SUM_TOLERANCE = 1e-6
_SAME = 1e-9


def published(
    collection: RoundCollection, *, version: str, seeds: Sequence[str | None] = ()
) -> RoundCollection:
    """Return a collection as it is published.

    Parameters
    ----------
    collection : RoundCollection
        With the pool of its rounds.
    version : str
        The evalsite that publishes it.
    seeds : sequence of (str or None), optional
        Of its rounds, where they may be known: later batches follow from a seed. By default none
        may; that of an active or adaptive round is told only when all its batches are complete.

    Raises
    ------
    CollectionError
        If pool and rounds do not belong together, a pair is not judged, or nothing of the kind can
        be published: preferences of which whole topics were judged, an active round of a pool
        with a document in no run's list, or an adaptive one whose plan lacks beliefs, or whose
        judgments are on another scale.
    ValueError
        If a part's `complete` is not between 1 and the number of its design's batches.
    """
    for each in collection.parts or (collection.drawn,):
        if not isinstance(each, PairRound | TopicRound | ActiveRound | AdaptiveRound):
            raise CollectionError(f"rounds by the method {each.method} are not published")
        digests = {collection.pool.digest, each.design.pool_digest}
        if not isinstance(each, AdaptiveRound):
            digests.add(each.sample.pool_digest)
        if len(digests) > 1:
            raise CollectionError("pool, design and sample do not belong together")
    told = replace(collection, version=version, predictions=None, outlook=None)
    return _of_pairs(told, seeds) if told.parts else _of_lists(told, seeds)


def _of_pairs(collection: RoundCollection, seeds: Sequence[str | None]) -> RoundCollection:
    pool, parts = collection.pool, collection.parts
    numbers = _numbers(parts)
    drawn = as_one([_complete(part, name) for part, name in zip(parts, numbers, strict=True)])
    found = checked(
        replace(
            collection,
            pool=_without_runs(pool),
            drawn=drawn,
            seeds=tuple(seeds) or (None,) * len(parts),
        )
    )
    outlook = outlook_of(
        pool,
        drawn.drawn(pool.topic),
        found.labels,
        sampled=found.sampled,
        max_grade=found.max_grade,
    )
    return replace(found, outlook=outlook)


def _numbers(parts: Sequence[PairRound]) -> list[str]:
    """Which parts share their random numbers, whatever these are called."""
    known: dict[str, str] = {}
    return [
        known.setdefault(part.numbers or f"\n{place}", str(len(known) + 1))
        for place, part in enumerate(parts)
    ]


def _complete(part: PairRound, numbers: str) -> PairRound:
    """The part as if its complete batches were all, draws sorted within each."""
    design, sample, used = part.design, part.sample, part.used
    design.step(used)
    steps = (sample.constants if len(sample.constants) else design.steps)[:used]
    design = replace(design, steps=frozen(steps))
    taken = sample.batch <= used
    pair, draws = sample.pair[taken], sample.draws
    if design.with_replacement:
        ends = (design.steps * design.strata).astype(np.int64)
        draws = np.concatenate([np.sort(batch) for batch in np.split(draws, ends)[:-1]])
    sample = Sample(
        pair=frozen(pair),
        batch=frozen(sample.batch[taken]),
        probability=frozen(design.inclusion()[pair]),
        draws=frozen(draws),
        pool_digest=sample.pool_digest,
        constants=frozen(sample.constants[:used]),
    )
    return PairRound(design, sample, numbers=numbers)


def _without_runs(pool: Pool) -> Pool:
    names, of_two = part_names(pool), pool.is_of_preferences
    return pairs_alone(pool.topics, pool.depth, pool.topic, names, of_two=of_two)


def pairs_alone(
    topics: tuple[str, ...], depth: int, topic: Int32Array, names: BytesArray, *, of_two: bool
) -> Pool:
    """Return a pool of pairs of which it is not known which runs returned them.

    Parameters
    ----------
    topics, depth, topic
        As of a `Pool`.
    names : ndarray of bytes, shape (N,)
        As `part_names` has them.
    of_two : bool
        Whether each names two documents of a topic.
    """
    docno, other = names, None
    if of_two:
        both = [name.split(BETWEEN) for name in names.tolist()]
        docno, other = (frozen(np.array(each, dtype=np.bytes_)) for each in zip(*both, strict=True))
    nothing = frozen(np.zeros(0, dtype=np.int32))
    return Pool(
        topics=topics,
        runs=(),
        depth=depth,
        topic=topic,
        docno=docno,
        indptr=frozen(np.zeros(len(names) + 1, dtype=np.int64)),
        run=nothing,
        rank=nothing,
        other=other,
        other_rank=nothing if of_two else None,
    )


def _of_lists(collection: RoundCollection, seeds: Sequence[str | None]) -> RoundCollection:
    pool, drawn, labels = collection.pool, collection.drawn, collection.labels
    if pool.is_of_preferences and not isinstance(drawn, AdaptiveRound):
        raise CollectionError("preferences between documents do not make a judged collection")
    bare = narrowed(pool) if pool.score is None or _looks_at_scores(drawn) else _unscored(pool)
    kept = np.isin(labels.pair, drawn.pairs(pool))
    found = replace(
        collection,
        pool=bare,
        labels=labels.chosen(kept),
        made_for=collection.measures,
        seeds=tuple(seeds) or (None,),
    )
    if isinstance(drawn, TopicRound):
        whole = drawn.prefix(pool, drawn.batches)
        design = replace(whole.design, pool_digest=bare.digest)
        sample = replace(whole.sample, pool_digest=bare.digest)
        return checked(replace(found, drawn=TopicRound(design, sample)))
    if isinstance(drawn, ActiveRound):
        return checked(_of_plan(found, drawn))
    if isinstance(drawn, AdaptiveRound):
        return checked(_of_batches(found, drawn))
    return found


def _looks_at_scores(drawn: object) -> bool:
    """Whether batches were planned by what scores predict, or told with it."""
    return isinstance(drawn, AdaptiveRound) and any(
        each.family == "prediction" for each in drawn.measures
    )


def _unscored(pool: Pool) -> Pool:
    return replace(pool, score=None)


def narrowed(pool: Pool) -> Pool:
    """Return a pool of preferences whose docnos take no more room than they need; another as it is.

    Lists of a single document, which is compared with none, may have longer ones.
    """
    if pool.other is None:
        return pool
    both = (frozen(np.array(each.tolist(), dtype=np.bytes_)) for each in (pool.docno, pool.other))
    docno, other = both
    return replace(pool, docno=docno, other=other)


def _of_plan(collection: RoundCollection, drawn: ActiveRound) -> RoundCollection:
    pool, seeds = collection.pool, collection.seeds
    if np.any(np.diff(pool.indptr) == 0):
        name = pair_name(int(np.argmin(np.diff(pool.indptr))), pool)
        raise CollectionError(f"{name} is in no list: it could not be drawn")
    if len(drawn.sample.pair) < drawn.design.budget:
        seeds = (None,)
    design = replace(drawn.design, pool_digest=pool.digest)
    sample = replace(drawn.sample, pool_digest=pool.digest, seed=seeds[0] or "")
    return replace(collection, drawn=ActiveRound(design, sample), seeds=seeds)


def _of_batches(collection: RoundCollection, drawn: AdaptiveRound) -> RoundCollection:
    """All that planned the complete batches, what they foresaw of later ones included."""
    plan, seeds = drawn.design, collection.seeds
    if plan.design.belief is None:
        raise CollectionError("an adaptive round whose plan lacks beliefs is not published")
    if collection.is_of_preferences and plan.max_grade != PREFERENCE_MAX_GRADE:
        raise CollectionError(f"max_grade must be {PREFERENCE_MAX_GRADE}, not {plan.max_grade}")
    if collection.max_grade != plan.max_grade:
        told = f"{plan.max_grade}, by which the round was planned, not {collection.max_grade}"
        raise CollectionError(f"max_grade must be {told}")
    if drawn.planned < drawn.batches:
        seeds = (None,)
    plan = replace(plan, design=replace(plan.design, pool_digest=collection.pool.digest))
    sample = replace(drawn.sample, seed=seeds[0] or "")
    return replace(collection, drawn=AdaptiveRound(plan, sample), seeds=seeds)


# ---------------------------------------------------------------------------------- checks


def checked(collection: RoundCollection) -> RoundCollection:
    """Return a published collection whose parts fit each other, judgments by (pair, grade).

    What is read from a file is checked row by row by its reader (`estimation.formats.collections`).

    Raises
    ------
    CollectionError
        If sizes, names, seeds or samples contradict each other, or the judgments are not those of
        the sampled pairs.
    """
    if collection.parts:
        if len(collection.parts) != len(collection.seeds):
            lengths = f"{len(collection.parts)} and {len(collection.seeds)}"
            raise CollectionError(f"parts and seeds must be as many, not {lengths}")
        _check_names(collection)
        for part in collection.parts:
            _check_sizes(collection, part.design)
        _check_numbers(collection)
    _check_labels(collection)
    labels = collection.labels
    order = np.lexsort((labels.grade, labels.pair))
    labels = labels.chosen(order)
    return replace(collection, labels=labels)


def _check_labels(collection: RoundCollection) -> None:
    labels, pair, pool = collection.labels, collection.sampled, collection.pool
    index_array(labels.pair, below=len(pool), name="labels.pair", error=CollectionError)
    foreign = labels.pair[~np.isin(labels.pair, pair)]
    if len(foreign):
        name = pair_name(int(foreign[0]), pool)
        raise CollectionError(f"{name} is judged but was not sampled")
    missing = pair[~np.isin(pair, labels.pair)]
    if len(missing):
        name = pair_name(int(missing[0]), pool)
        raise CollectionError(f"{name} was sampled but is not judged")
    off = labels.grade[(labels.grade < 0) | (labels.grade > collection.max_grade)]
    if len(off):
        limit = collection.max_grade
        raise CollectionError(f"grade must lie between 0 and {limit}, not {int(off[0])}")


def _check_names(collection: RoundCollection) -> None:
    """Refuse measures of documents and of preferences together, and pairs of other things."""
    pool = collection.pool
    preferred = [each.family == "preference" for part in collection.parts for each in part.measures]
    if set(preferred) != {pool.is_of_preferences}:
        raise CollectionError("the measures must all be of documents or all of preferences")
    if pool.other is None:
        return
    if collection.max_grade != PREFERENCE_MAX_GRADE:
        limit = f"{PREFERENCE_MAX_GRADE}, not {collection.max_grade}"
        raise CollectionError(f"max_grade of preferences must be {limit}")
    wrong = pool.docno >= pool.other
    if wrong.any():
        rule = "two documents must be judged together, the first in byte order first"
        raise CollectionError(f"{rule}, not {pair_name(int(np.argmax(wrong)), pool)}")


def _check_sizes(collection: RoundCollection, design: Design) -> None:
    _check_total("all pairs", float(design.size.sum()))
    if design.by_topic:
        shares = np.bincount(collection.topic, weights=design.size, minlength=1)
        for topic in np.flatnonzero(shares).tolist():
            _check_total(f"topic {collection.topics[topic]!r}", shares[topic] * design.strata)


def _check_total(what: str, total: float) -> None:
    if abs(total - 1.0) > _SUM_TOLERANCE:
        raise CollectionError(f"the sizes of {what} must make up a whole, not {total!r} of it")


def _check_numbers(collection: RoundCollection) -> None:
    """Refuse what is said of shared random numbers if methods, seeds or samples contradict it."""
    sharing: dict[str, list[int]] = {}
    for place, part in enumerate(collection.parts):
        sharing.setdefault(part.numbers, []).append(place)
    if list(sharing) != list(map(str, range(1, len(sharing) + 1))):
        names = ", ".join(part.numbers for part in collection.parts)
        raise CollectionError(f"numbers must count up from 1 as they come, not {names}")
    known: dict[str, str] = {}
    for places in sharing.values():
        which = f"rounds {', '.join(str(place + 1) for place in places)}"
        seeds = {collection.seeds[place] for place in places}
        if len(seeds) > 1:
            raise CollectionError(f"{which} share their numbers and so must have one seed")
        parts = [collection.parts[place] for place in places]
        _check_shared(collection, parts, which)
        for seed in seeds:
            if seed in known:
                also = f"{known[seed]} have the same seed and so must share their numbers"
                raise CollectionError(f"{which} and {also}")
            if seed is not None:
                known[seed] = which


def _check_shared(collection: RoundCollection, parts: Sequence[PairRound], which: str) -> None:
    """A pair's number is below its probability in rounds that drew it, not below it in others."""
    below, above = np.ones(len(collection)), np.zeros(len(collection))
    for part in parts:
        chance = part.design.inclusion()
        drawn = np.zeros(len(collection), dtype=np.bool_)
        drawn[part.sample.pair] = True
        below = np.where(drawn, np.minimum(below, chance), below)
        above = np.where(drawn, above, np.maximum(above, chance))
    torn = np.flatnonzero(above > below * (1.0 + _SAME))
    if len(torn):
        name = pair_name(int(torn[0]), collection.pool)
        raise CollectionError(
            f"{which} do not share their numbers: only one that was less likely to draw {name} did"
        )

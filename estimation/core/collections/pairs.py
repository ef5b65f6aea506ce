"""Judged collections of drawn pairs, from one round or from several that go together.

Several rounds are estimated from as `combining` says: they are by ``iid``, or all by ``poisson``,
and a document is within reach if any of them could draw it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, IntArray, frozen
from ..data.labels import LabelRows
from ..data.pool import Pool
from ..data.preferences import BETWEEN, part_names
from ..inference.fitting import outlook_of
from ..inference.outlook import KnownOutlook
from ..measures.kinds import PREFERENCE_MAX_GRADE
from ..measures.table import Measure
from ..rounds.combining import Part, RoundsTogether
from ..rounds.rounds import PairRound
from ..sampling.designs import Design
from ..sampling.methods import with_option
from ..sampling.samples import Sample
from .base import Collection, CollectionError, ordered_labels

_SUM_TOLERANCE = 1e-6
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class PairCollection(Collection):
    """Pairs that were drawn, in one round or several.

    Build one with `PairCollection.of`.

    Attributes
    ----------
    parts : tuple of Part
        The rounds, in their order; the last is the one that asks. The design of each has the sizes
        of the N pairs, 0 for those that were never eligible, and the steps of its complete batches
        alone; for ``priority`` the constants that came to be. What it was made from tells where
        the collection comes from and has no influence. The sample has the pairs drawn in these
        batches; the order of draws within a batch is not kept. `Part.numbers` is "1", "2", … in
        the order of the rounds, the same for those that share their random numbers.
    seeds : tuple of (str or None)
        The seed of each round, where it may be known.
    outlook : KnownOutlook or None
        What the judgments let one expect of the N pairs, which intervals and verdicts take into
        account; it rests on which runs returned what, which the collection does not hold. None in
        collections of an earlier version: it is then fitted to the runs that are to be estimated.
    """

    parts: tuple[Part, ...]
    seeds: tuple[str | None, ...]
    outlook: KnownOutlook | None = None

    @classmethod
    def of(
        cls,
        pool: Pool,
        parts: Sequence[Part],
        *,
        labels: LabelRows,
        max_grade: int,
        version: str,
        seeds: Sequence[str | None] | None = None,
    ) -> "PairCollection":
        """Collect the first batches of rounds over a pool.

        Parameters
        ----------
        pool : Pool
            As it was when the samples were drawn.
        parts : sequence of Part
            At least one; of the batches of each every pair is judged.
        labels : LabelRows
            The judgments of the pairs of these batches, as positions in the pool.
        max_grade, version
            As the attributes.
        seeds : sequence of (str or None), optional
            Of the parts, where they may be known; by default none may.

        Raises
        ------
        CollectionError
            If pool and parts do not belong together, or a pair of these batches is not judged.
        ValueError
            If a part's `batches` is not between 1 and the number of its design's batches.
        """
        for part in parts:
            if not pool.digest == part.design.pool_digest == part.sample.pool_digest:
                raise CollectionError("pool, design and sample do not belong together")
        complete = tuple(
            _complete(part, number) for part, number in zip(parts, _numbers(parts), strict=True)
        )
        collection = cls(
            topics=pool.topics,
            depth=pool.depth,
            topic=pool.topic,
            docno=part_names(pool),
            labels=ordered_labels(labels),
            max_grade=max_grade,
            version=version,
            parts=complete,
            seeds=tuple(seeds) if seeds is not None else (None,) * len(parts),
        )
        drawn = collection.drawn.drawn(pool.topic)
        outlook = outlook_of(
            pool, drawn, collection.labels, sampled=collection.sampled, max_grade=max_grade
        )
        return replace(collection, outlook=outlook)

    @property
    def pool_digest(self) -> str:
        """Digest of the pool that the samples were drawn from."""
        return self.parts[-1].design.pool_digest

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the last round was drawn for; the first is the goal's."""
        design = self.parts[-1].design
        return design.measure, *design.reported

    @property
    def sampled(self) -> IntArray:
        """The pairs that any round drew, ascending."""
        return np.unique(np.concatenate([part.sample.pair for part in self.parts]))

    @property
    def is_of_preferences(self) -> bool:
        """Whether two documents at a time were judged."""
        return self.measures[0].family == "preference"

    @property
    def drawn(self) -> PairRound | RoundsTogether:
        """The one round, or all of them together."""
        if len(self.parts) > 1:
            return RoundsTogether(self.parts)
        return PairRound(self.parts[0].design, self.parts[0].sample)

    @property
    def within_reach(self) -> BoolArray:
        """Whether any round could draw each pair, shape (N,)."""
        eligible = [part.design.eligible for part in self.parts]
        return np.asarray(np.any(eligible, axis=0), dtype=np.bool_)

    @property
    def _outlook(self) -> KnownOutlook | None:
        return self.outlook

    def _check_sample(self) -> None:
        if not self.parts or len(self.parts) != len(self.seeds):
            lengths = f"{len(self.parts)} and {len(self.seeds)}"
            raise CollectionError(f"parts and seeds must be as many, at least one, not {lengths}")
        _check_names(self)
        for part in self.parts:
            _check_sizes(self, part.design)
        _check_rounds(self)
        _check_numbers(self)


def _numbers(parts: Sequence[Part]) -> list[str]:
    """Which parts share their random numbers, whatever these are called."""
    known: dict[str, str] = {}
    return [
        known.setdefault(part.numbers or f"\n{place}", str(len(known) + 1))
        for place, part in enumerate(parts)
    ]


def _complete(part: Part, numbers: str) -> Part:
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
    return Part(design, sample, numbers=numbers)


# ---------------------------------------------------------------------------------- checks


def _check_names(collection: PairCollection) -> None:
    """Refuse measures of documents and of preferences together, and pairs of other things."""
    designs = [part.design for part in collection.parts]
    families = {each.family for design in designs for each in (design.measure, *design.reported)}
    if len(families) > 1 and "preference" in families:
        raise CollectionError("the measures must all be of documents or all of preferences")
    if not collection.is_of_preferences:
        return
    if collection.max_grade != PREFERENCE_MAX_GRADE:
        limit = f"{PREFERENCE_MAX_GRADE}, not {collection.max_grade}"
        raise CollectionError(f"max_grade of preferences must be {limit}")
    for pair, name in enumerate(collection.docno.tolist()):
        docnos = name.split(BETWEEN)
        if len(docnos) != 2 or docnos[0] >= docnos[1]:
            rule = "two documents must be judged together, the first in byte order first"
            raise CollectionError(f"{rule}, not {collection.name_of(pair)}")


def _check_sizes(collection: PairCollection, design: Design) -> None:
    _check_total("all pairs", float(design.size.sum()))
    if design.method == "per-query":
        shares = np.bincount(collection.topic, weights=design.size, minlength=1)
        for topic in np.flatnonzero(shares).tolist():
            _check_total(f"topic {collection.topics[topic]!r}", shares[topic] * design.strata)


def _check_total(what: str, total: float) -> None:
    if abs(total - 1.0) > _SUM_TOLERANCE:
        raise CollectionError(f"the sizes of {what} must make up a whole, not {total!r} of it")


def _check_rounds(collection: PairCollection) -> None:
    """Refuse several rounds that cannot be estimated from together."""
    designs = [part.design for part in collection.parts]
    methods = [design.method for design in designs]
    able = with_option("with_earlier")
    if len(designs) > 1 and (len(set(methods)) > 1 or methods[0] not in able):
        allowed, told = " or all by ".join(able), ", ".join(methods)
        raise CollectionError(f"several rounds must all be by {allowed}, not {told}")
    if len({design.pool_digest for design in designs}) > 1:
        raise CollectionError("the rounds must be over the same pool")


def _check_numbers(collection: PairCollection) -> None:
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
        if len(parts) > 1 and parts[0].design.with_replacement:
            raise CollectionError(f"{which} have the same draws: they share their numbers")
        _check_shared(collection, parts, which)
        for seed in seeds:
            if seed in known:
                also = f"{known[seed]} have the same seed and so must share their numbers"
                raise CollectionError(f"{which} and {also}")
            if seed is not None:
                known[seed] = which


def _check_shared(collection: PairCollection, parts: Sequence[Part], which: str) -> None:
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
        name = collection.name_of(int(torn[0]))
        raise CollectionError(
            f"{which} do not share their numbers: only one that was less likely to draw {name} did"
        )

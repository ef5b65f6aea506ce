"""How everybody in a campaign answers: pace, agreement with others, patterns, from all judgments.

What is usual is told by all, so that figures of one need the answers of all: `services.looks` has a
worker tell them, and keeps them for pages.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from django.db.models import Case, F, FloatField, OuterRef, Q, Subquery, When
from django.db.models.functions import Coalesce, Length
from numpy.typing import NDArray

from judging.accounts import QRELS
from judging.conduct import HASTY, LEAST_QUICK, Pattern, too_fast
from judging.habits import SaidOfPair, patterns
from judging.labels import EpochSeconds, number_columns
from judging.models import MAX_GRADE, Campaign, IsWritten, Judgment, User
from judging.selectors import documents

LEAST = 5
"""Judgments, or pairs in common, from which something is told."""
PAUSE = 10 * 60.0
"""Seconds between two judgments after which somebody was away."""
SET_BACK = 60.0
"""Seconds by which an answer is earlier than the one before, if the clock was set back: of two that
are sent at once the later may be written first."""
UNTOLD = -1.0
"""In the place of seconds that are not known."""
LATEST = Q(revision=F("assignment__revision") + F("assignment__set_aside"))
"""Of judgments: the latest of their assignment, whether it counts or is excluded."""


@dataclass(frozen=True)
class WithOthers:
    """With others, of ``pairs`` that both judged: the share of equal answers, and by how many
    grades they are above others on average (None: preferences, which have no height)."""

    pairs: int
    share: float
    above: float | None


@dataclass(frozen=True)
class Manner:
    """How somebody answers.

    ``per_hour`` leaves out pauses over ten minutes; it and ``seconds``, the median, are None where
    too few are known. ``quick`` of the ``timed`` ones, of which time and length of text are known,
    were too fast to have read (`conduct.too_fast`).
    """

    comments: int = 0
    timed: int = 0
    quick: int = 0
    per_hour: float | None = None
    seconds: float | None = None
    agreement: WithOthers | None = None
    patterns: tuple[Pattern, ...] = ()

    @property
    def is_hasty(self) -> bool:
        return self.quick >= max(LEAST_QUICK, HASTY * self.timed)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> "Manner":
        agreement = told["agreement"] and WithOthers(**told["agreement"])
        found = tuple(Pattern(**each) for each in told["patterns"])
        return cls(**{**told, "agreement": agreement, "patterns": found})


NO_MANNER = Manner()


def manners(campaign: Campaign) -> dict[int, Manner]:
    """Of everybody who has judged, by row id, in two statements."""
    given = _given(campaign)
    paces, agreed, haste = _paces(given), _agreements(given), _haste(given)
    comments = Counter(given.who[given.current & given.commented].tolist())
    people = np.unique(given.who).tolist()
    names = dict(User.objects.filter(pk__in=people).values_list("pk", "username"))
    grades, every = len(campaign.grades), _orders(given, gold=True)
    plain = _orders(given, gold=False)
    found = patterns(plain, _shared(given), grades=grades, names=names, every=every)
    return {
        who: Manner(
            comments[who],
            **haste.get(who, {}),
            **paces.get(who, {}),
            agreement=agreed.get(who),
            patterns=tuple(found.get(who, ())),
        )
        for who in people
    }


@dataclass(frozen=True, eq=False)
class _Answers:
    """All judgments of a campaign, a row each, as what is usual is told by all.

    Gold tells of pace and haste, and of orders that come round; other patterns and agreement are
    those of sampled pairs.

    ``at``: `EpochSeconds`; ``seconds``: `by_both_clocks`; ``in_all`` of the pair; ``length``:
    `read_at_once`. ``current``: `LATEST`; ``several``: the pair was to have several labels, or has.
    """

    pk: NDArray[np.int64]
    pair: NDArray[np.int64]
    who: NDArray[np.int64]
    grade: NDArray[np.int64]
    at: NDArray[np.float64]
    seconds: NDArray[np.float64]
    in_all: NDArray[np.float64]
    length: NDArray[np.float64]
    first: NDArray[np.bool_]
    current: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    several: NDArray[np.bool_]
    preference: NDArray[np.bool_]
    gold: NDArray[np.bool_]
    commented: NDArray[np.bool_]


def _given(campaign: Campaign) -> _Answers:
    rows = Judgment.objects.filter(assignment__pair__campaign=campaign)
    several = Q(assignment__pair__wanted__gte=2) | Q(assignment__pair__judged__gte=2)
    several &= Q(assignment__gold=False)
    told = rows.annotate(
        at=EpochSeconds("created"),
        took=Coalesce("seconds", UNTOLD),
        **lengths(campaign),
        current=_flag(LATEST),
        counts=_flag(Q(assignment__set_aside=0)),
        several=_flag(several),
        preference=_flag(~Q(assignment__pair__other="")),
        gold=_flag(Q(assignment__gold=True)),
        commented=_flag(Q(IsWritten("comment"))),
        person=_flag(~Q(assessor__username=QRELS)),
    )
    names = ("pk", "assignment__pair_id", "assessor_id", "grade", "at", "took", "revision")
    texts, flags = (
        ("one", "two", "person"),
        ("current", "counts", "several", "preference", "gold", "commented"),
    )
    columns = number_columns(told, *names, *texts, *flags)
    pk, pair, who, grade, at, took, revision, one, two, person, *said = columns
    took = by_both_clocks(who, pk, at, took, person=person > 0)
    return _Answers(
        pk=pk.astype(np.int64),
        pair=pair.astype(np.int64),
        who=who.astype(np.int64),
        grade=grade.astype(np.int64),
        at=at,
        seconds=took,
        in_all=in_all(who, pair, took),
        length=read_at_once(one, two),
        first=revision == 1,
        **{name: column > 0 for name, column in zip(flags, said, strict=True)},
    )


def by_both_clocks(
    who: NDArray[Any],
    pk: NDArray[Any],
    at: NDArray[np.float64],
    told: NDArray[np.float64],
    *,
    person: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Seconds that judgments took at most, as far as is known; else `UNTOLD`.

    What a browser or a program has ``told`` is believed as far as the server's clock allows:
    nobody has read for longer than since they last said something here. Where nothing is told,
    and that is no more than a `PAUSE`, an answer of a ``person`` took as long: who leaves the time
    out is not thought to have read. Where the clock was set back meanwhile, it says nothing.
    """
    order = np.lexsort((pk, who))
    gap = np.full(len(at), np.inf)
    same = who[order][1:] == who[order][:-1]
    passed = np.diff(at[order])
    gap[order[1:][same]] = np.where(passed < -SET_BACK, np.inf, np.maximum(passed, 0.0))[same]
    since = np.where(person & (gap <= PAUSE), gap, UNTOLD)
    return np.where(told == UNTOLD, since, np.minimum(told, gap))


def in_all(
    who: NDArray[Any], pair: NDArray[Any], seconds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Seconds that all of somebody's answers to the pair took together; `UNTOLD` where those of one
    are not known. Who reads a document again is quick, and who clicked through and says the same
    again at once has not read it by that.
    """
    pairs, of_pair = np.unique(pair, return_inverse=True)
    of_person = np.unique(who, return_inverse=True)[1]
    code = np.unique(of_person * len(pairs) + of_pair, return_inverse=True)[1]
    unknown = _summed(code, seconds == UNTOLD) > 0
    return np.where(unknown, UNTOLD, _summed(code, seconds))


def lengths(campaign: Campaign) -> dict[str, Any]:
    """``one`` and ``two``: characters of a judgment's documents, -1 where a text is not there."""
    second = _length(campaign, "assignment__pair__other")
    return {
        "one": _length(campaign, "assignment__pair__docno"),
        "two": Case(When(assignment__pair__other="", then=0.0), default=second),
    }


def read_at_once(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.float64]:
    """Characters that were to be read for each judgment; -1 where not all texts are there."""
    return np.where((one < 0) | (two < 0), -1.0, one + two)


def _length(campaign: Campaign, docno: str) -> Coalesce:
    """Characters of a document; -1 where its text is not there."""
    texts = documents(campaign).filter(docno=OuterRef(docno)).order_by()
    length = Length("text", output_field=FloatField())
    return Coalesce(Subquery(texts.annotate(n=length).values("n")[:1]), -1.0)


def _flag(condition: Q) -> Case:
    return Case(When(condition, then=1), default=0)


def _paces(given: _Answers) -> dict[int, dict[str, Any]]:
    """From first answers: a correction is no further pair."""
    people, at, took = (column[given.first] for column in (given.who, given.at, given.seconds))
    found = {}
    for who in np.unique(people).tolist():
        theirs = people == who
        seconds = took[theirs]
        found[who] = {
            "per_hour": _per_hour(np.sort(at[theirs])),
            "seconds": _median(seconds[seconds != UNTOLD]),
        }
    return found


def _haste(given: _Answers) -> dict[int, dict[str, int]]:
    """Of pairs, whether their answers count or not."""
    known = given.current & (given.in_all != UNTOLD) & (given.length >= 0)
    people, seconds, length = (each[known] for each in (given.who, given.in_all, given.length))
    found = {}
    for who in np.unique(people).tolist():
        theirs = people == who
        quick = too_fast(seconds[theirs], length[theirs])
        found[who] = {"timed": int(theirs.sum()), "quick": int(quick.sum())}
    return found


def _orders(given: _Answers, *, gold: bool) -> dict[int, list[int]]:
    """Everybody's grades in the order of judging, by what they said first of each pair."""
    plain = given.first & ~given.preference & (gold | ~given.gold)
    people, grade = given.who[plain], given.grade[plain]
    order = np.lexsort((given.pk[plain], given.at[plain], people))
    people, grade = people[order], grade[order]
    who, first = np.unique(people, return_index=True)
    parts = np.split(grade, first[1:])
    return {each: part.tolist() for each, part in zip(who.tolist(), parts, strict=False)}


def _shared(given: _Answers) -> dict[int, list[SaidOfPair]]:
    """What was said of pairs that were to have several labels, or have, by the pair's row id."""
    rows = np.flatnonzero(given.current & given.several)
    columns = (given.pair, given.who, given.pk, given.grade, given.counts, given.preference)
    labels: dict[int, list[SaidOfPair]] = defaultdict(list)
    for pair, *said in zip(*(column[rows].tolist() for column in columns), strict=True):
        labels[pair].append(SaidOfPair(*said))
    return labels


def _per_hour(times: NDArray[np.float64]) -> float | None:
    gaps = np.diff(times)
    gaps = gaps[gaps <= PAUSE]
    total = float(gaps.sum())
    return 3600.0 * len(gaps) / total if len(gaps) >= LEAST and total > 0.0 else None


def _median(seconds: NDArray[np.float64]) -> float | None:
    return float(np.median(seconds)) if len(seconds) >= LEAST else None


def _agreements(given: _Answers) -> dict[int, WithOthers]:
    """Of everybody who shares enough pairs with others, by row id.

    Each pair weighs the same, however many others judged it.
    """
    shared = given.current & given.several
    columns = (given.pair, given.who, given.grade, given.counts, given.preference)
    pair, people, grade, counts, preference = (column[shared] for column in columns)
    code = np.unique(pair, return_inverse=True)[1]
    others = _summed(code, counts) - counts
    kept = others > 0
    equal = _summed(code * (MAX_GRADE + 1) + grade, counts) - counts
    total = _summed(code, counts * grade) - counts * grade
    share, mean = equal[kept] / others[kept], total[kept] / others[kept]
    people, above, has_height = people[kept], grade[kept] - mean, ~preference[kept]
    found = {}
    for who in np.unique(people).tolist():
        theirs = people == who
        heights = above[theirs & has_height]
        if theirs.sum() >= LEAST:
            height = float(heights.mean()) if len(heights) else None
            found[who] = WithOthers(int(theirs.sum()), float(share[theirs].mean()), height)
    return found


def _summed(code: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
    """The sum over all rows that have the code of a row, for every row."""
    if not len(code):
        return np.zeros(0)
    return np.bincount(code, values)[code].astype(np.float64)

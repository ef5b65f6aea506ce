"""Norming: who is how far with which session, what was said in it, and how far people are apart.

A norming pair is no pair of a round, and what is said of it is no label: no reader of labels, no
draw and no weight looks at these tables, so that the estimates stay unbiased whatever is said here
and whichever pairs were chosen to be talked about, also where they were chosen for how they were
judged. Who has talked judges otherwise afterwards, as after any new guidelines: labels given from
then on are about people who have talked.

What is not guarded against: the same document may be drawn in a round as well, and whoever talked
about it is not kept from that pair; nor from correcting what they said of it before. Its labels are
then those of people who know what the others think, and no longer say how much people differ.

Nobody is told what others said before the discussion begins, by any function here: `discussed` and
whatever rests on it say nothing of a session that is blind, to organizers neither. They may take
part themselves.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from judging import golds
from judging.errors import UserError
from judging.models import (
    Campaign,
    Membership,
    NormingAnswer,
    NormingComment,
    NormingPair,
    NormingPerson,
    NormingSession,
    Pair,
    User,
)
from judging.norm_scores import Distance, NormAgreement, agreement, distances

State = NormingSession.State
ASSESSOR = Membership.Role.ASSESSOR
MOST_APART = 10
"""Pairs on which people still differ, of which the organizer is told."""
OFFERED = 30
"""Pairs of a kind that are offered to be taken over."""
ORGANIZER_NAME = "Organizer"


def _count(rows: QuerySet[Any], session: str = "session") -> Coalesce:
    """How many of them the session of the row has; ``session`` leads from them to it."""
    counted = rows.filter(**{session: OuterRef("pk")}).order_by().values(session)
    return Coalesce(Subquery(counted.annotate(n=Count("pk")).values("n")), Value(0))


def sessions(campaign: Campaign) -> QuerySet[NormingSession]:
    """The latest first, each with its numbers of ``pair_count``, ``person_count`` and
    ``answer_count``."""
    return campaign.norming_sessions.annotate(
        pair_count=_count(NormingPair.objects.all()),
        person_count=_count(NormingPerson.objects.all()),
        answer_count=_count(NormingAnswer.objects.all(), "pair__session"),
    )


# ------------------------------------------------------------------------------- who takes part


@dataclass(frozen=True)
class Own:
    """A session as somebody who takes part sees it: ``answered`` of its ``pairs``."""

    session: NormingSession
    pairs: int
    answered: int

    @property
    def is_due(self) -> bool:
        """Whether there is something for them to do."""
        judging = self.session.state == State.JUDGING and self.answered < self.pairs
        return judging or self.session.state == State.DISCUSSION


def own(user: User, campaign: Campaign | None = None) -> list[Own]:
    """Sessions that the user takes part in, the latest first, in one query; drafts are none yet."""
    rows = NormingSession.objects.filter(_takes_part(user)).exclude(state=State.DRAFT)
    if campaign is not None:
        rows = rows.filter(campaign=campaign)
    counted = rows.select_related("campaign").annotate(
        pair_count=_count(NormingPair.objects.all()),
        answer_count=_count(NormingAnswer.objects.filter(person__user=user), "pair__session"),
    )
    return [Own(row, row.pair_count, row.answer_count) for row in counted]


def _takes_part(user: User) -> Exists:
    return Exists(NormingPerson.objects.filter(session=OuterRef("pk"), user=user))


def due(user: User, campaign: Campaign | None = None) -> list[Own]:
    """Those of them in which there is something to do."""
    return [each for each in own(user, campaign) if each.is_due]


def of_person(campaign: Campaign, user: User, pk: int) -> NormingPerson | None:
    """The user's part in a session, with the session; None if they have none, or it is a draft."""
    rows = NormingPerson.objects.filter(session__pk=pk, session__campaign=campaign, user=user)
    rows = rows.exclude(session__state=State.DRAFT)
    return rows.select_related("session").first()


@dataclass(frozen=True)
class Turn:
    """``pair`` is what somebody answers next, None if they have answered all."""

    pair: NormingPair | None
    done: int
    asked: int


def turn(person: NormingPerson) -> Turn:
    """Topic by topic, in another order for everybody."""

    def place(*of: object) -> bytes:
        told = "/".join(map(str, (person.pk, *of)))
        return hashlib.sha256(told.encode()).digest()

    rows = NormingPair.objects.filter(session=person.session_id).select_related("topic")
    pairs = sorted(rows, key=lambda pair: (place("topic", pair.topic_id), place("pair", pair.pk)))
    said = set(person.answers.values_list("pair", flat=True))
    following = next((pair for pair in pairs if pair.pk not in said), None)
    return Turn(following, len(said), len(pairs))


@dataclass(frozen=True)
class PersonLine:
    """Somebody who takes part, and how far they are. ``is_there``: they still assess here."""

    person: NormingPerson
    answered: int
    is_there: bool


def people(session: NormingSession) -> list[PersonLine]:
    """By name."""
    there = _is_there(session)
    rows = session.people.select_related("user").annotate(n=Count("answers"), there=there)
    return [PersonLine(row, row.n, row.there) for row in rows.order_by("user__username")]


def waits_for(session: NormingSession) -> QuerySet[NormingPerson]:
    """Who has not answered all, among those who still assess here."""
    rows = session.people.filter(_is_there(session)).annotate(n=Count("answers"))
    return rows.filter(n__lt=session.pairs.count())


def _is_there(session: NormingSession) -> Exists:
    """Whether somebody who takes part still assesses here."""
    assessors = Membership.objects.filter(campaign=session.campaign_id, role=ASSESSOR)
    return Exists(assessors.filter(user=OuterRef("user")))


def candidates(campaign: Campaign) -> QuerySet[User]:
    """Who may be asked: assessors, and no guests, who are paid by the pair and come once."""
    members = campaign.memberships.filter(role=ASSESSOR, user__is_active=True)
    rows = User.objects.filter(pk__in=members.values("user"), is_guest=False)
    return rows.order_by("username")


# ------------------------------------------------------------------------------- what was said


def refuse_blind(session: NormingSession) -> None:
    """Raises UserError ``still_blind`` (409) before the discussion has begun."""
    if session.is_blind:
        message = "People still judge alone here: what was said is told when the discussion begins."
        raise UserError("still_blind", message, status=409)


@dataclass(frozen=True)
class PeopleNames:
    """What people are called to whoever looks: by their names to organizers, and else by number."""

    by_user: dict[int, str]

    def of(self, user: int) -> str:
        """Whoever takes no part and says something organizes."""
        return self.by_user.get(user, ORGANIZER_NAME)


@dataclass(frozen=True)
class Seat:
    """Who looks at a session. ``person``: their part in it, if they have one."""

    session: NormingSession
    user: User
    organizes: bool
    person: NormingPerson | None = None


def names(seat: Seat) -> PeopleNames:
    """Of the people of the session, as whoever looks is told of them."""
    rows = seat.session.people.select_related("user")
    return PeopleNames({row.user_id: _name(seat, row) for row in rows})


def _name(seat: Seat, row: NormingPerson) -> str:
    username, number = row.user.get_username(), f"Assessor {row.number}"
    if row.user_id == seat.user.pk:
        return "You"
    if seat.session.named:
        return username
    return f"{username} ({number})" if seat.organizes else number


@dataclass(frozen=True)
class GradeSaid:
    """What one person said of a pair. ``is_own``: the person who looks."""

    name: str
    answer: NormingAnswer
    is_own: bool


@dataclass(frozen=True)
class Discussed:
    """A pair with what everybody said of it, lowest first grade first."""

    pair: NormingPair
    said: list[GradeSaid]
    comments: int

    @property
    def first(self) -> list[int]:
        return [each.answer.grade for each in self.said]

    @property
    def now(self) -> list[int]:
        return [each.answer.now for each in self.said]

    @property
    def spread(self) -> int:
        """From the lowest to the highest first grade."""
        return max(self.first) - min(self.first) if self.said else 0

    @property
    def own(self) -> NormingAnswer | None:
        return next((each.answer for each in self.said if each.is_own), None)


def by_spread(session: NormingSession) -> QuerySet[NormingPair]:
    """Those on which people were farthest apart first; nothing while the session is blind."""
    if session.is_blind:
        return NormingPair.objects.none()
    apart = Coalesce(Max("answers__grade") - Min("answers__grade"), Value(0))
    rows = session.pairs.select_related("topic").annotate(apart=apart)
    return rows.order_by("-apart", "topic__topic_id", "pk")


def discussed(seat: Seat, pairs: Iterable[NormingPair]) -> list[Discussed]:
    """Of these pairs of `by_spread`, what was said; in three queries, however many there are."""
    rows, called = list(pairs), names(seat)
    here = NormingPair.objects.filter(session=seat.session, session__discussed__isnull=False)
    shown = here.filter(pk__in=[pair.pk for pair in rows])
    counted = NormingComment.objects.filter(pair__in=shown).order_by().values("pair")
    comments = dict(counted.annotate(n=Count("pk")).values_list("pair", "n"))
    said: dict[int, list[GradeSaid]] = defaultdict(list)
    answers = NormingAnswer.objects.filter(pair__in=shown).select_related("person")
    for row in answers.order_by("grade", "person__number"):
        user = row.person.user_id
        said[row.pair_id].append(GradeSaid(called.of(user), row, user == seat.user.pk))
    return [Discussed(pair, said[pair.pk], comments.get(pair.pk, 0)) for pair in rows]


@dataclass(frozen=True)
class Comment:
    name: str
    row: NormingComment


def thread(pair: NormingPair) -> QuerySet[NormingComment]:
    """The newest last."""
    return pair.comments.filter(pair__session__discussed__isnull=False)


def comments_told(seat: Seat, rows: Iterable[NormingComment]) -> list[Comment]:
    """Comments, with who wrote each as whoever looks is told of them."""
    called = names(seat)
    return [Comment(called.of(row.author_id), row) for row in rows]


def beside(session: NormingSession, pair: NormingPair) -> tuple[int | None, int | None]:
    """The pairs before and after it in the order of `by_spread`."""
    order = list(by_spread(session).values_list("pk", flat=True))
    at = order.index(pair.pk)
    return order[at - 1] if at else None, order[at + 1] if at + 1 < len(order) else None


# ------------------------------------------------------------------------------- what it tells


@dataclass(frozen=True)
class HowFarOff:
    """Somebody's distance from the median before and after; None where nobody else answered."""

    line: PersonLine
    before: Distance | None
    after: Distance | None
    revised: int


@dataclass(frozen=True)
class NormFindings:
    """``people``: who was farthest from the median first. ``open``: pairs on which they differ
    still, farthest first; ``settled`` so many on which they do not differ any more."""

    before: NormAgreement
    after: NormAgreement
    people: list[HowFarOff]
    open: list[Discussed] = field(default_factory=list)
    open_count: int = 0
    settled: int = 0


def findings(seat: Seat) -> NormFindings | None:
    """What a session tells organizers about people and guidelines; None while it is blind."""
    session = seat.session
    if session.is_blind:
        return None
    first: dict[int, dict[int, int]] = defaultdict(dict)
    now: dict[int, dict[int, int]] = defaultdict(dict)
    revised: dict[int, int] = defaultdict(int)
    for row in NormingAnswer.objects.filter(pair__session=session).order_by("pair", "person"):
        first[row.pair_id][row.person_id] = row.grade
        now[row.pair_id][row.person_id] = row.now
        revised[row.person_id] += row.revised is not None
    apart = {pair: _spread(grades.values()) for pair, grades in now.items()}
    still = sorted((pair for pair in apart if apart[pair]), key=lambda pair: (-apart[pair], pair))
    settled = sum(_spread(first[pair].values()) > 0 and not apart[pair] for pair in apart)
    rows = NormingPair.objects.select_related("topic").in_bulk(still[:MOST_APART])
    return NormFindings(
        agreement(first.values()),
        agreement(now.values()),
        _people(session, distances(first.values()), distances(now.values()), revised),
        discussed(seat, [rows[pair] for pair in still[:MOST_APART]]),
        len(still),
        settled,
    )


def _spread(grades: Iterable[int]) -> int:
    found = list(grades)
    return max(found) - min(found)


def _people(
    session: NormingSession,
    before: dict[int, Distance],
    after: dict[int, Distance],
    revised: dict[int, int],
) -> list[HowFarOff]:
    found = [
        HowFarOff(
            line, before.get(line.person.pk), after.get(line.person.pk), revised[line.person.pk]
        )
        for line in people(session)
    ]
    return sorted(found, key=lambda each: -(each.before.mean if each.before else -1.0))


EXPORTED = (
    "topic", "docno", "assessor", "first", "first_at", "revised", "revised_at", "comments",
)  # fmt: skip
"""The columns of the file; ``comments`` are those of that person on that pair."""


def exported(session: NormingSession) -> Iterator[Sequence[str | int | None]]:
    """A row for each answer; none while the session is blind."""
    wrote = NormingComment.objects.filter(pair=OuterRef("pair"), author=OuterRef("person__user"))
    counted = wrote.order_by().values("pair").annotate(n=Count("pk")).values("n")
    rows = NormingAnswer.objects.filter(
        pair__session=session, pair__session__discussed__isnull=False
    )
    rows = rows.select_related("pair__topic", "person__user").annotate(
        wrote=Coalesce(Subquery(counted), Value(0))
    )
    for row in rows.order_by("pair__topic__topic_id", "pair__docno", "person__user__username"):
        yield (
            row.pair.topic.topic_id,
            row.pair.docno,
            row.person.user.get_username(),
            row.grade,
            row.created.isoformat(),
            row.revised,
            row.revised_at.isoformat() if row.revised_at else None,
            row.wrote,
        )


# ------------------------------------------------------------------------------- what to talk about


@dataclass(frozen=True)
class Offer:
    """A pair that may be taken over; ``grades`` tell the organizer why."""

    pk: int
    topic_id: str
    title: str
    docno: str
    grades: list[int]


def offered_training(session: NormingSession) -> list[Offer]:
    """Training pairs that are not in the session."""
    there = session.campaign.training_pairs.filter(~_is_in(session))
    rows = there.exclude(golds.is_in_use()).select_related("topic")
    return [
        Offer(row.pk, row.topic.topic_id, row.topic.title, row.docno, row.accepted)
        for row in rows[:OFFERED]
    ]


def offered_judged(session: NormingSession) -> list[Offer]:
    """Pairs that several people have judged with different grades, the farthest apart first."""
    counts = Q(
        assignments__revision__gt=0, assignments__judgments__revision=F("assignments__revision")
    )
    grade = "assignments__judgments__grade"
    there = session.campaign.pairs.filter(~_is_in(session), other="", judged__gte=2)
    pairs = there.exclude(golds.is_in_use())
    apart = pairs.annotate(low=Min(grade, filter=counts), high=Max(grade, filter=counts)).filter(
        high__gt=F("low")
    )
    rows = apart.select_related("topic").order_by(F("low") - F("high"), "pk")
    return [
        Offer(row.pk, row.topic.topic_id, row.topic.title, row.docno, [row.low, row.high])
        for row in rows[:OFFERED]
    ]


def _is_in(session: NormingSession) -> Exists:
    there = session.pairs.filter(topic=OuterRef("topic"), docno=OuterRef("docno"))
    return Exists(there.order_by())


def drafts(pair: Pair) -> list[NormingSession]:
    """Sessions into which a judged pair may still be taken."""
    there = NormingPair.objects.filter(
        session=OuterRef("pk"), topic=pair.topic_id, docno=pair.docno
    )
    rows = NormingSession.objects.filter(campaign=pair.campaign_id, state=State.DRAFT)
    return list(rows.filter(~Exists(there)))

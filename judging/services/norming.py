"""Norming sessions: made, walked through, talked about and closed. See `judging.norming`.

Whatever is done in a session is done under the lock of its row: no answer is taken after the
discussion has begun, and of two last answers that come at once one finds that everybody has
answered. The campaign, where it is locked too, is locked first.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now

from judging import norming
from judging.errors import UserError
from judging.formats.known_pairs import KnownPair
from judging.formats.problems import Problems, line_problem, text_problem
from judging.models import (
    Campaign,
    NormingAnswer,
    NormingComment,
    NormingPair,
    NormingPerson,
    NormingSession,
    User,
)
from judging.norms import LONGEST_COMMENT
from judging.services import audit, campaigns, gold, present

State = NormingSession.State
MOST_PAIRS, MOST_PEOPLE, MOST_COMMENTS = 200, 200, 500
"""Of a session; comments of a pair."""
LEAST_PEOPLE = 2
LONGEST_TITLE = 200
LONGEST_KEY = 64


@dataclass(frozen=True)
class SessionPlan:
    """What a `NormingSession` is made of."""

    title: str
    by_itself: bool = True
    named: bool = False


# ------------------------------------------------------------------------------- while it is made


def create(
    *, campaign: Campaign, by: User, plan: SessionPlan, people: Collection[User] | None = None
) -> NormingSession:
    """A draft, with these people, or all who may be asked. ``norming_invalid`` with the field."""
    title = plan.title.strip()
    if not title or len(title) > LONGEST_TITLE:
        raise _invalid(f"Expected a title of 1 to {LONGEST_TITLE} characters.", "title")
    if problem := line_problem(title):
        raise _invalid(f"The title cannot be kept: {problem}.", "title")
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        session = NormingSession.objects.create(
            campaign=campaign,
            title=title,
            by_itself=plan.by_itself,
            named=plan.named,
            created_by=by,
        )
        _ask(session, norming.candidates(campaign) if people is None else people)
        audit.record("create norming", by=by, campaign=campaign, target=session, title=title)
    return session


def _invalid(message: str, field: str) -> UserError:
    return UserError("norming_invalid", message, field=field)


def add(
    *, session: NormingSession, by: User, found: Sequence[KnownPair], problems: Problems
) -> list[NormingPair]:
    """Adds all pairs to a draft, or none. ``norming_invalid`` with ``errors`` by line, or
    ``wrong_state`` (409)."""
    with transaction.atomic():
        campaigns.lock(session.campaign_id)
        now = _locked(session, State.DRAFT)
        named = now.campaign.topics.filter(topic_id__in={pair.topic for pair in found})
        topics = dict(named.values_list("topic_id", "pk"))
        there = set(now.pairs.values_list("topic__topic_id", "docno"))
        for pair in found:
            if (pair.topic, pair.docno) in there:
                problems.error(pair.line, "docno", "this pair is in the session already")
        if len(there) + len(found) > MOST_PAIRS:
            problems.error(None, "", f"expected at most {MOST_PAIRS} pairs in a session")
        gold.refuse_in_use(now.campaign, found, problems)
        gold.refuse_faults(problems, "norming_invalid")
        made = [
            NormingPair.objects.create(session=now, topic_id=topics[pair.topic], docno=pair.docno)
            for pair in found
        ]
        audit.record("add norming", by=by, campaign=now.campaign_id, target=now, pairs=len(made))
    return made


def take(
    *, session: NormingSession, by: User, training: Collection[int], judged: Collection[int]
) -> list[NormingPair]:
    """Takes over training pairs, and pairs of rounds, by their row ids; what is there is passed
    over. ``norming_invalid``, or ``wrong_state`` (409)."""
    campaign = session.campaign
    rows = [
        *campaign.training_pairs.filter(pk__in=training).values_list("topic__topic_id", "docno"),
        *campaign.pairs.filter(pk__in=judged, other="").values_list("topic__topic_id", "docno"),
    ]
    there = set(session.pairs.values_list("topic__topic_id", "docno"))
    new = [pair for pair in dict.fromkeys(rows) if pair not in there]
    if not new:
        raise _invalid("Choose pairs that are not in the session yet.", "judged")
    found = [KnownPair(line, *pair, (), "") for line, pair in enumerate(new, start=1)]
    problems = Problems("pairs")
    gold.check_material(campaign, found, problems)
    return add(session=session, by=by, found=found, problems=problems)


def remove(*, pair: NormingPair, by: User) -> None:
    """Takes a pair out of a draft. ``wrong_state`` (409)."""
    with transaction.atomic():
        session = _locked(pair.session, State.DRAFT)
        audit.record(
            "remove norming", by=by, campaign=session.campaign_id, target=session, docno=pair.docno
        )
        pair.delete()


def set_people(*, session: NormingSession, by: User, people: Collection[User]) -> None:
    """Who takes part, until the discussion begins; whoever has answered something stays.

    Raises UserError ``norming_invalid``, or ``wrong_state`` (409).
    """
    with transaction.atomic():
        now = _locked(session, State.DRAFT, State.JUDGING)
        keep = {user.pk for user in people}
        gone = now.people.exclude(user__in=keep)
        if said := gone.filter(answers__isnull=False).select_related("user").first():
            raise _invalid(f"{said.user} has answered already, and stays.", "people")
        if now.state == State.JUDGING and len(keep) < LEAST_PEOPLE:
            raise _invalid("At least two people take part.", "people")
        gone.delete()
        _ask(now, people)
        audit.record(
            "set norming people", by=by, campaign=now.campaign_id, target=now, people=len(keep)
        )
        _talk_if_all_have_answered(now, by)


def _ask(session: NormingSession, people: Collection[User]) -> None:
    """In an order that tells nothing, those who are not in it; inside the caller's transaction."""
    there = dict(session.people.values_list("user", "number"))
    new = sorted({user.pk for user in people} - set(there))
    if len(new) + len(there) > MOST_PEOPLE:
        raise _invalid(f"At most {MOST_PEOPLE} people take part.", "people")
    allowed = norming.candidates(session.campaign).filter(pk__in=new)
    if allowed.count() < len(new):
        message = "Choose among the assessors of this campaign who did not come by a crowd link."
        raise _invalid(message, "people")
    random.SystemRandom().shuffle(new)
    after = max(there.values(), default=0) + 1
    NormingPerson.objects.bulk_create(
        NormingPerson(session=session, user_id=user, number=number)
        for number, user in enumerate(new, start=after)
    )


# ------------------------------------------------------------------------------- states


def begin(*, session: NormingSession, by: User) -> None:
    """From now on people judge. ``norming_invalid``, or ``wrong_state`` (409)."""
    with transaction.atomic():
        now = _locked(session, State.DRAFT)
        if not now.pairs.exists():
            raise _invalid("Add pairs first: there is nothing to judge yet.", "pairs")
        if now.people.count() < LEAST_PEOPLE:
            raise _invalid("Choose at least two people: nobody can differ alone.", "people")
        _move(now, by, "begin norming", state=State.JUDGING, begun=Now())


def discuss(*, session: NormingSession, by: User) -> None:
    """Everybody sees what everybody said; who has not answered does not any more.

    Raises UserError ``norming_unanswered`` (409) if nobody has, or ``wrong_state`` (409).
    """
    with transaction.atomic():
        now = _locked(session, State.JUDGING)
        if not NormingAnswer.objects.filter(pair__session=now).exists():
            message = "Nobody has answered yet: there is nothing to talk about."
            raise UserError("norming_unanswered", message, status=409)
        _move(now, by, "discuss norming", state=State.DISCUSSION, discussed=Now())


def close(*, session: NormingSession, by: User) -> None:
    """It is read from now on, and nothing more is said. ``wrong_state`` (409)."""
    with transaction.atomic():
        now = _locked(session, State.DISCUSSION)
        _move(now, by, "close norming", state=State.CLOSED, closed=Now())


def delete(*, session: NormingSession, by: User) -> None:
    """While nobody has answered. ``norming_answered`` (409)."""
    with transaction.atomic():
        now = _locked(session, *State)
        if NormingAnswer.objects.filter(pair__session=now).exists():
            message = "Somebody has answered already: what was said stays."
            raise UserError("norming_answered", message, status=409)
        audit.record("delete norming", by=by, campaign=now.campaign_id, target=now, title=now.title)
        now.delete()


def _locked(session: NormingSession, *allowed: State) -> NormingSession:
    """The session as it is until the commit. ``gone`` (404), ``wrong_state`` (409)."""
    rows = NormingSession.objects.filter(pk=session.pk).select_for_update(of=("self",))
    now = present.now(rows.select_related("campaign"), "The session")
    if now.state not in allowed:
        raise UserError("wrong_state", _NOT_NOW[State(now.state)], status=409)
    return now


_NOT_NOW = {
    State.DRAFT: "The session has not begun yet.",
    State.JUDGING: "People judge in this session: that is not possible before they talk.",
    State.DISCUSSION: "The discussion has begun: this is not possible any more.",
    State.CLOSED: "The session is closed: it can only be read.",
}


def _move(session: NormingSession, by: User, action: str, **values: object) -> None:
    """Inside the caller's transaction, which has the lock."""
    NormingSession.objects.filter(pk=session.pk).update(**values)
    audit.record(action, by=by, campaign=session.campaign_id, target=session)


def wait_no_more(*, campaign: Campaign, by: User) -> None:
    """Inside the transaction in which somebody leaves: they may have been the last to answer."""
    rows = campaign.norming_sessions.filter(state=State.JUDGING, by_itself=True).order_by("pk")
    for row in rows.select_for_update(of=("self",)):
        _talk_if_all_have_answered(row, by)


def _talk_if_all_have_answered(session: NormingSession, by: User) -> None:
    if session.state != State.JUDGING or not session.by_itself:
        return
    if not norming.waits_for(session).exists() and _somebody_answered(session):
        _move(session, by, "discuss norming", state=State.DISCUSSION, discussed=Now())


def _somebody_answered(session: NormingSession) -> bool:
    return NormingAnswer.objects.filter(pair__session=session).exists()


# ------------------------------------------------------------------------------- what people say


def answer(*, session: NormingSession, by: User, pair: int, grade: int) -> NormingAnswer:
    """What they say of a pair, blind; said again, it is what they said first.

    With the last answer of all the discussion begins, if it shall. Raises UserError
    ``grade_invalid``, ``gone`` (404: the pair), ``no_part`` (403), ``wrong_state`` (409).
    """
    _check_grade(session, grade)
    with transaction.atomic():
        now = _locked(session, *State)
        person = _person(now, by)
        if said := person.answers.filter(pair=pair).first():
            return said
        _refuse_outside(now, State.JUDGING)
        row = present.now(now.pairs.filter(pk=pair), "The pair")
        said = NormingAnswer.objects.create(pair=row, person=person, grade=grade)
        _talk_if_all_have_answered(now, by)
    return said


def revise(*, session: NormingSession, by: User, pair: int, grade: int) -> NormingAnswer:
    """What they say of a pair after talking; the first grade stays, and said again it is the one.

    Raises UserError ``grade_invalid``, ``no_answer`` (409: they said nothing while it was blind),
    ``gone`` (404: the pair), ``no_part`` (403), ``wrong_state`` (409).
    """
    _check_grade(session, grade)
    with transaction.atomic():
        now = _locked(session, State.DISCUSSION)
        person = _person(now, by)
        present.refuse_if_gone(now.pairs.filter(pk=pair), "The pair")
        said = person.answers.filter(pair=pair).first()
        if said is None:
            message = "You did not answer this pair while it was blind. You can comment on it."
            raise UserError("no_answer", message, status=409)
        if said.now == grade:
            return said
        changed = {"revised": grade, "revised_at": Now()}
        if grade == said.grade:
            changed = {"revised": None, "revised_at": None}
        NormingAnswer.objects.filter(pk=said.pk).update(**changed)
        told = {"pair": pair, "before": said.now, "after": grade}
        audit.record("revise norming", by=by, campaign=now.campaign_id, target=now, **told)
        said.refresh_from_db()
    return said


def comment(
    *, session: NormingSession, by: User, pair: int, text: str, key: str, organizes: bool
) -> NormingComment:
    """Sent again with its ``key``, it is the same one. ``organizes``: whether they need no part.

    Raises UserError ``comment_invalid``, ``comment_limit`` (409), ``gone`` (404: the pair),
    ``no_part`` (403), ``wrong_state`` (409).
    """
    words = _checked_text(text)
    if not 0 < len(key) <= LONGEST_KEY or text_problem(key):
        message = f"Expected a key of 1 to {LONGEST_KEY} characters."
        raise UserError("comment_invalid", message, field="key")
    with transaction.atomic():
        now = _locked(session, State.DISCUSSION)
        if not organizes:
            _person(now, by)
        row = present.now(now.pairs.filter(pk=pair), "The pair")
        there = row.comments.filter(author=by, key=key).first()
        if there is not None:
            return there
        if row.comments.count() >= MOST_COMMENTS:
            message = f"This pair has {MOST_COMMENTS} comments, and takes no more."
            raise UserError("comment_limit", message, status=409)
        made = NormingComment.objects.create(pair=row, author=by, text=words, key=key)
        audit.record("comment norming", by=by, campaign=now.campaign_id, target=now, pair=row.pk)
    return made


def _checked_text(text: str) -> str:
    words = text.replace("\r\n", "\n").strip()
    if not words:
        raise UserError("comment_invalid", "Write something first.", field="text")
    if len(words) > LONGEST_COMMENT:
        message = f"Expected at most {LONGEST_COMMENT:,} characters, found {len(words):,}."
        raise UserError("comment_invalid", message, field="text")
    if text_problem(words):
        raise UserError("comment_invalid", "The text has signs that no text has.", field="text")
    return words


def _check_grade(session: NormingSession, grade: int) -> None:
    most = session.campaign.max_grade
    if not 0 <= grade <= most:
        raise UserError("grade_invalid", f"Expected a grade from 0 to {most}.", field="grade")


def _person(session: NormingSession, user: User) -> NormingPerson:
    person = session.people.filter(user=user).first()
    if person is None:
        raise UserError("no_part", "You do not take part in this session.", status=403)
    return person


def _refuse_outside(session: NormingSession, state: State) -> None:
    if session.state != state:
        raise UserError("wrong_state", _NOT_NOW[State(session.state)], status=409)

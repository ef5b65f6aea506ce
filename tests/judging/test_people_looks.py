"""How people answer is told by a worker when somebody looks, and kept until something was done."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from judging.conduct import Pattern
from judging.manners import Manner, WithOthers, manners
from judging.models import AuditEntry, Campaign, Job, KeptManners, User, WorkerHeartbeat
from judging.services import assignments, exclusions, judgments, looks
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign(topics=2)
    factories.released_batch(made, [f"d{n}" for n in range(12)], labels=2)
    made.refresh_from_db()
    evaluation.worker_alive()
    return made


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def judge(made: Campaign, user: User, pairs: int, *, seconds: float = 10.0) -> None:
    for _ in range(pairs):
        held = assignments.claim_next(campaign=made, by=user)
        assert held is not None
        saying = judgments.Saying(1, f"{user.pk}-{held.pk}", seconds=seconds, comment="odd")
        judgments.record(assignment=held, by=user, saying=saying)


def waiting() -> int:
    return Job.objects.filter(kind=looks.LOOK, state=Job.State.QUEUED).count()


def test_what_was_kept_is_what_is_told() -> None:
    patterns = (Pattern("cycle", 30, 40, period=3), Pattern("same", 20, 25, other="ben"))
    manner = Manner(3, 9, 2, 120.5, 7.25, WithOthers(9, 0.5, None), patterns)
    assert Manner.of_json(manner.as_json()) == manner
    assert Manner.of_json(Manner().as_json()).agreement is None


@pytest.mark.slow
def test_a_worker_looks_once_however_many_look_and_pages_show_what_it_told(
    campaign: Campaign, organizer: Client
) -> None:
    anna, ben = factories.assessors(campaign, "anna", "ben")
    judge(campaign, anna, 24)
    judge(campaign, ben, 8)
    person = address("person", campaign, anna.pk)
    for _ in range(2):
        assert "stand here in a moment" in text(organizer.get(address("people", campaign)))
        assert "stand here in a moment" in text(organizer.get(person))
    assert waiting() == 1
    factories.run_due_jobs()
    assert looks.kept(campaign).manners == manners(campaign)
    shown = text(organizer.get(address("people", campaign)))
    assert "as of" in shown
    assert "a worker looks again" not in shown
    assert "8 pairs in common" in text(organizer.get(person))
    assert waiting() == 0, "nothing has been done since"


@pytest.mark.slow
def test_it_is_told_anew_after_a_while_if_something_was_done(
    campaign: Campaign, organizer: Client
) -> None:
    anna, ben = factories.assessors(campaign, "anna", "ben")
    judge(campaign, anna, 6)
    organizer.get(address("people", campaign))
    factories.run_due_jobs()
    long_ago = timedelta(seconds=looks.FRESH + 1)
    AuditEntry.objects.update(created=F("created") - 2 * long_ago)
    KeptManners.objects.update(told=F("told") - long_ago)
    organizer.get(address("people", campaign))
    assert waiting() == 0, "old, and still so"

    KeptManners.objects.update(told=F("told") + long_ago)
    judge(campaign, ben, 6)
    shown = text(organizer.get(address("people", campaign)))
    assert waiting() == 0, "a worker looked a moment ago"
    assert "ben" in shown, "what is counted is never old"
    KeptManners.objects.update(told=F("told") - long_ago)
    assert "a worker looks again" in text(organizer.get(address("people", campaign)))
    factories.run_due_jobs()
    assert looks.kept(campaign).manners[ben.pk].comments == 6


@pytest.mark.slow
def test_what_was_told_under_a_clock_that_was_ahead_is_told_anew(campaign: Campaign) -> None:
    anna, ben = factories.assessors(campaign, "anna", "ben")
    judge(campaign, anna, 6)
    looks.kept(campaign)
    factories.run_due_jobs()
    KeptManners.objects.update(told=F("told") + timedelta(days=1))
    judge(campaign, ben, 6)
    assert looks.kept(campaign).looking


@pytest.mark.slow
def test_what_was_committed_late_under_an_earlier_number_is_not_missed(campaign: Campaign) -> None:
    """Numbers are given before commits: an earlier one may appear after a worker has looked."""
    (anna,) = factories.assessors(campaign, "anna")
    judge(campaign, anna, 6)
    looks.kept(campaign)
    factories.run_due_jobs()
    KeptManners.objects.update(told=F("told") - timedelta(seconds=looks.FRESH + 1))
    AuditEntry.objects.update(created=F("created") - timedelta(seconds=looks.FRESH + 2))
    assert looks.kept(campaign).looking, "the last entry was written just before"


@pytest.mark.slow
@pytest.mark.parametrize("undo", [False, True])
def test_an_exclusion_is_a_reason_to_look_again(campaign: Campaign, *, undo: bool) -> None:
    (anna,) = factories.assessors(campaign, "anna")
    judge(campaign, anna, 6)
    by = campaign.created_by
    row = exclusions.exclude(campaign=campaign, assessor=anna, by=by, ground="time", reason="r")
    looks.kept(campaign)
    factories.run_due_jobs()
    entry = KeptManners.objects.get(campaign=campaign).entry
    if undo:
        exclusions.take_back(exclusion=row, by=by, reason="r")
    AuditEntry.objects.filter(pk__lte=entry).update(created=F("created") - timedelta(hours=1))
    KeptManners.objects.update(told=F("told") - timedelta(seconds=looks.FRESH + 1))
    assert looks.kept(campaign).looking == undo


@pytest.mark.slow
def test_what_failed_is_said_and_not_tried_with_every_look(
    campaign: Campaign, organizer: Client
) -> None:
    looks.kept(campaign)
    Job.objects.filter(kind=looks.LOOK).update(state=Job.State.FAILED, error="It broke.")
    assert "It broke." in text(organizer.get(address("people", campaign)))
    assert "Looking at how people answer" in text(organizer.get(address("campaign-home", campaign)))
    assert waiting() == 0


def test_without_a_worker_the_page_says_so(campaign: Campaign, organizer: Client) -> None:
    WorkerHeartbeat.objects.all().delete()
    assert "so how people answer is not told" in text(organizer.get(address("people", campaign)))


@pytest.mark.slow
def test_who_does_not_read_is_named_on_the_overview_and_in_the_list() -> None:
    made = evaluation.with_material()
    evaluation.drawn(made)
    made.refresh_from_db()
    evaluation.worker_alive()
    anna, ben = (User.objects.get(username=name) for name in ("anna", "ben"))
    judge(made, anna, 12, seconds=0.02)
    judge(made, ben, 12, seconds=20.0)
    factories.judged_apart(made)
    client = Client()
    client.force_login(made.created_by)
    assert "judged faster" not in text(client.get(address("campaign-home", made)))
    factories.run_due_jobs()
    shown = text(client.get(address("campaign-home", made)))
    assert "anna judged faster than anybody reads" in shown
    assert "and ben judged" not in shown
    assert "Too fast" in text(client.get(address("people", made)))
    manner = looks.kept(made).manners[anna.pk]
    assert (manner.timed, manner.quick) == (12, 12)
    exclusions.exclude(
        campaign=made, assessor=anna, by=made.created_by, ground="time", reason="too fast"
    )
    assert "judged faster" not in text(client.get(address("campaign-home", made)))

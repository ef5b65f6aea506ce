"""Every state of a campaign has one next step, and the bar on its pages says it."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from estimation.core.inference.unknown import Reason
from estimation.models import Round
from estimation.next_step import STATES, NextStep, next_step
from estimation.services import pausing, rounds, stopping
from estimation.situation import Situation
from judging.models import (
    Assignment,
    AuditEntry,
    Batch,
    Campaign,
    Job,
    Membership,
    Upload,
    User,
    WorkerHeartbeat,
)
from judging.services import assignments, campaigns, exclusions, judgments
from tests.estimation.test_stopping_in_hand import judge_all
from tests.support import evaluation, factories
from tests.support.crowd_states import CROWDS
from tests.support.later import join, lines_of, with_news
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def step(campaign: Campaign) -> NextStep:
    campaign.refresh_from_db()
    return next_step(Situation(campaign))


def closed(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    campaigns.close(campaign=campaign, by=campaign.created_by)


def archived(campaign: Campaign) -> None:
    """A draft, of which nobody is asked to plan a round."""
    campaigns.archive(campaign=campaign, by=campaign.created_by)


def closed_and_archived(campaign: Campaign) -> None:
    closed(campaign)
    archived(campaign)


def no_worker(_campaign: Campaign) -> None:
    WorkerHeartbeat.objects.all().delete()


def failed(campaign: Campaign) -> None:
    row = evaluation.drafted(campaign)
    failed = Job.State.FAILED
    Job.objects.create(
        kind="recompute", target=row.pk, campaign=campaign, state=failed, error="disk full"
    )


def reading(campaign: Campaign) -> None:
    factories.stored(campaign, b"1 Q0 a 1 1 r\n", name="late.run", kind="run")


def rejected(campaign: Campaign) -> None:
    campaign.runs.all().delete()
    factories.stored_upload(campaign, b"1 Q0 broken\n", name="broken.run", kind="run")


def checked(campaign: Campaign) -> None:
    campaign.runs.all().delete()
    upload = factories.stored(campaign, b"t1 Q0 d1 1 1 late\n", name="late.run", kind="run")
    Upload.objects.filter(pk=upload.pk).update(check_only=True)
    factories.run_due_jobs()


def without_runs(campaign: Campaign) -> None:
    campaign.runs.all().delete()


def nothing(_campaign: Campaign) -> None:
    """As it is: all material, and no round."""


def drawing(campaign: Campaign) -> None:
    row = evaluation.drafted(campaign)
    rounds.request_draw(row=row, by=campaign.created_by)


def drafted(campaign: Campaign) -> None:
    evaluation.drafted(campaign)


def finished(campaign: Campaign) -> Round:
    row = evaluation.drawn(campaign, budget=20, extra_share=0)
    evaluation.judge(campaign, 1000)
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    return row


def ended(campaign: Campaign) -> None:
    finished(campaign)


def computing(campaign: Campaign) -> None:
    finished(campaign).estimate_sets.all().delete()


def reported(campaign: Campaign) -> None:
    evaluation.made_reports(finished(campaign))


def joined_late(campaign: Campaign) -> None:
    """Nothing more was said to come of the round, and what the run returns is not in its sample."""
    finished(campaign)
    join(campaign, with_news("late"))


def joined_and_all_there(campaign: Campaign) -> None:
    finished(campaign)
    join(campaign, lines_of("run1", "late"))


def nothing_known(campaign: Campaign) -> None:
    """Whoever ends a round after a batch may have too few pairs for any value."""
    shown = finished(campaign).estimate_sets.order_by("-number")[0]
    shown.estimates.update(unknown=Reason.FEW_RELEVANT)


def planned_after_the_end(campaign: Campaign) -> None:
    finished(campaign)
    evaluation.drafted(campaign, seed="another")


def nobody(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    campaign.memberships.filter(role=Membership.Role.ASSESSOR).delete()


def too_few(campaign: Campaign) -> None:
    evaluation.drawn(campaign, labels=3, extra_share=0)


def draft(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.DRAFT)


def paused(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    campaigns.pause(campaign=campaign, by=campaign.created_by)


def round_paused(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign)
    pausing.pause(row=row, by=campaign.created_by)


def stuck(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    by = campaign.memberships.filter(role=Membership.Role.ASSESSOR)[0].user
    held = assignments.claim_next(campaign=campaign, by=by)
    assert held is not None
    assignments.skip(assignment=held, by=by, reason="cannot read it")


def others(campaign: Campaign) -> None:
    evaluation.drawn(campaign, labels=2, extra_share=0, stop_when="width", stop_width=0.01)
    judge_all(campaign, User.objects.get(username="anna"))


def again(campaign: Campaign) -> None:
    evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 45)
    who = User.objects.get(username="anna")
    by = campaign.created_by
    exclusions.exclude(campaign=campaign, assessor=who, by=by, ground="time", reason="too fast")
    factories.run_due_jobs()


def counting_rounds(campaign: Campaign) -> list[Round]:
    """Two that are estimated together."""
    asked = {"extra_share": 0.0, "method": "poisson"}
    first = evaluation.drawn(campaign, budget=30, batch_size=10, seed="s", **asked)
    asked |= {"budget": 20, "batch_size": 20, "seed": "t", "with_earlier": True}
    return [first, evaluation.drawn(campaign, **asked)]


def counting(campaign: Campaign) -> None:
    """Nothing of the first is judged, and the second is."""
    first, _ = counting_rounds(campaign)
    pausing.pause(row=first, by=campaign.created_by)
    evaluation.judge(campaign, 1000)
    pausing.resume(row=first, by=campaign.created_by)


def counting_and_paused(campaign: Campaign) -> None:
    first, _ = counting_rounds(campaign)
    pausing.pause(row=first, by=campaign.created_by)
    evaluation.judge(campaign, 1000)


def counting_and_judged(campaign: Campaign) -> None:
    counting_rounds(campaign)
    evaluation.judge(campaign, 1000)


def counting_and_freed(campaign: Campaign) -> None:
    """Work is excluded, and only what the second lacked for it is judged again."""
    first, _ = counting_rounds(campaign)
    evaluation.judge(campaign, 1000)
    by, who = campaign.created_by, User.objects.get(username="anna")
    exclusions.exclude(campaign=campaign, assessor=who, by=by, ground="time", reason="too fast")
    pausing.pause(row=first, by=by)
    ben = User.objects.get(username="ben")
    while held := assignments.claim_next(campaign=campaign, by=ben):
        judgments.record(assignment=held, by=ben, saying=judgments.Saying(1, f"again {held.pk}"))
    pausing.resume(row=first, by=by)
    factories.run_due_jobs()


def days_ago(days: int) -> None:
    Assignment.objects.update(created=F("created") - timedelta(days=days))
    Batch.objects.update(opened=F("opened") - timedelta(days=days))
    Round.objects.update(drawn=F("drawn") - timedelta(days=days))
    AuditEntry.objects.update(created=F("created") - timedelta(days=days))


def silent(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    evaluation.judge(campaign, 5)
    days_ago(4)


def invited(campaign: Campaign) -> None:
    """Their accounts have no password, until they follow their links."""
    evaluation.drawn(campaign)


def come(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    anna = User.objects.get(username="anna")
    anna.set_password("pw")
    anna.save()


def judging(campaign: Campaign) -> None:
    evaluation.drawn(campaign, extra_share=0)  # or no pair may be finished yet
    evaluation.judge(campaign, 5)


def planned_meanwhile(campaign: Campaign) -> None:
    judging(campaign)
    evaluation.drafted(campaign, seed="another")


CASES: list[tuple[str, Callable[[Campaign], object]]] = [
    ("archived", archived),
    ("archived", closed_and_archived),
    ("closed", closed),
    ("no worker", no_worker),
    ("failed", failed),
    ("reading", reading),
    ("rejected", rejected),
    ("checked", checked),
    ("material", without_runs),
    ("plan", nothing),
    ("drawing", drawing),
    ("draw", drafted),
    ("draw", planned_after_the_end),
    ("computing", computing),
    ("unknown", nothing_known),
    ("reported", reported),
    ("late", joined_late),
    ("ended", joined_and_all_there),
    ("ended", ended),
    ("nobody", nobody),
    ("too few", too_few),
    *CROWDS,
    ("open", draft),
    ("paused", paused),
    ("round paused", round_paused),
    ("stuck", stuck),
    ("others", others),
    ("again", again),
    ("counting", counting),
    ("counting", counting_and_freed),
    ("round paused", counting_and_paused),
    ("ended", counting_and_judged),
    ("silent", silent),
    ("invited", invited),
    ("judging", come),
    ("judging", judging),
    ("judging", planned_meanwhile),
]


def test_every_state_has_a_case() -> None:
    assert {state for state, _ in CASES} == set(STATES)


@pytest.mark.slow
@pytest.mark.parametrize(("state", "make"), CASES, ids=[make.__name__ for _, make in CASES])
@pytest.mark.on_both
def test_every_state_has_its_step_on_every_page(
    state: str, make: Callable[[Campaign], object], campaign: Campaign
) -> None:
    evaluation.worker_alive()
    make(campaign)
    found = step(campaign)
    assert found.state == state
    client = Client()
    client.force_login(campaign.created_by)
    for name in ("campaign-home", "people"):
        said = text(client.get(address(name, campaign)))
        assert found.what in said
        assert found.why in said
    told = client.get(f"/api/campaigns/{campaign.slug}/overview/").json()
    assert (told["next"]["state"], told["next"]["what"]) == (state, found.what)
    assert told["next"]["why"] == found.why
    assert told["next"]["waits"] == found.waits


@pytest.mark.slow
def test_who_closes_before_anything_is_judged_is_not_sent_to_results(campaign: Campaign) -> None:
    evaluation.worker_alive()
    evaluation.drawn(campaign)
    campaign.refresh_from_db()
    campaigns.close(campaign=campaign, by=campaign.created_by)
    found = step(campaign)
    assert (found.state, found.action) == ("closed", None)
    assert "no results yet" in found.why


@pytest.mark.slow
@pytest.mark.parametrize(("judged", "days"), [(5, 9), (0, 9), (5, 60)])
@pytest.mark.on_both
def test_who_is_silent_for_longer_than_the_pace_looks_back_is_silent(
    judged: int, days: int, campaign: Campaign
) -> None:
    """Also those who never began; a round that was opened only now waits for nobody yet."""
    evaluation.worker_alive()
    evaluation.drawn(campaign)
    evaluation.judge(campaign, judged)
    days_ago(days)
    assert (step(campaign).state, step(campaign).why) == (
        "silent",
        f"Nobody has judged for {days} days.",
    )
    if judged:
        by = campaign.created_by
        campaigns.pause(campaign=campaign, by=by)
        campaigns.open_for_judging(campaign=campaign, by=by)
        assert step(campaign).state == "judging", "they were told to come back later"
        days_ago(4)
        assert step(campaign).state == "silent"
    Batch.objects.update(opened=timezone.now())
    Round.objects.update(drawn=timezone.now())
    assert step(campaign).state == ("judging" if judged else "invited")


def test_an_empty_campaign_asks_for_everything() -> None:
    evaluation.worker_alive()
    empty = factories.campaign(topics=0, slug="empty")
    assert step(empty).what == "Upload topics, documents and runs"


def test_a_plan_without_material_is_no_step_before_the_material() -> None:
    """And pages for rounds lead to the files, and to no plan of which nothing can come."""
    evaluation.worker_alive()
    empty, organizer = factories.campaign(topics=0, slug="empty"), Client()
    organizer.force_login(empty.created_by)
    for name in ("round-list", "round-new"):
        page = organizer.get(address(name, empty))
        assert "A round needs topics and at least one run." in text(page)
        assert "Upload them first" in text(page)
        assert "See what it buys" not in text(page)
        assert "Plan a round" not in text(page)
    row = evaluation.drafted(empty)
    assert step(empty).what == "Upload topics and runs"
    draft = text(organizer.get(address("round-detail", empty, row.number)))
    assert "Upload files" in draft
    assert "Change the choices" not in draft


@pytest.mark.slow
def test_a_file_that_is_read_while_people_judge_is_no_step(campaign: Campaign) -> None:
    evaluation.worker_alive()
    judging(campaign)
    factories.stored(campaign, b"1 Q0 a 1 1 r\n", name="late.run", kind="run")
    assert Upload.objects.filter(state=Upload.State.STORED).exists()
    assert step(campaign).state == "judging"


@pytest.mark.slow
def test_the_rest_takes_as_long_as_the_pace_says(campaign: Campaign) -> None:
    evaluation.drawn(campaign, budget=60, batch_size=60, extra_share=0)
    evaluation.judge(campaign, 10)
    Assignment.objects.update(created=timezone.now() - timedelta(days=2))
    found = Situation(campaign)
    assert found.pace is not None
    assert found.pace.per_day == pytest.approx(5.0, rel=0.01)
    assert found.days_left == pytest.approx((found.expected - 10) / 5.0, rel=0.01)


@pytest.mark.slow
def test_labels_of_pairs_that_want_more_are_not_left_to_give(campaign: Campaign) -> None:
    """One of two has said all, so that no pair has both labels, and half of the work is done."""
    evaluation.drawn(campaign, labels=2, extra_share=0, budget=20, batch_size=10)
    anna, ben = User.objects.filter(memberships__role="assessor").order_by("pk")[:2]
    while factories.judge_next(campaign, anna, 0):
        pass
    found = Situation(campaign)
    assert (found.judged, found.expected) == (0, Assignment.objects.count())
    assert found.pace is not None
    assert found.days_left == pytest.approx(found.expected / found.pace.per_day)
    for _ in range(3):
        factories.judge_next(campaign, ben, 0)
    found = Situation(campaign)
    assert found.pace is not None
    assert found.days_left == pytest.approx((found.expected - 3) / found.pace.per_day)


@pytest.mark.slow
def test_of_a_round_that_pauses_nobody_tells_when_it_is_judged(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, extra_share=0)
    evaluation.judge(campaign, 10)
    organizer = Client()
    organizer.force_login(campaign.created_by)
    assert "at this pace" in text(organizer.get(address("people", campaign)))
    pausing.pause(row=row, by=campaign.created_by)
    assert "at this pace" not in text(organizer.get(address("people", campaign)))
    assert Situation(campaign).days_left is None


@pytest.mark.slow
def test_who_looks_at_the_ranking_is_not_sent_to_it(campaign: Campaign) -> None:
    evaluation.worker_alive()
    judging(campaign)
    client = Client()
    client.force_login(campaign.created_by)
    ranking = address("live", campaign, 1)
    assert "See the ranking" in text(client.get(address("people", campaign)))
    assert "See the ranking" not in text(client.get(ranking, {"measure": "P@2"}))
    bar = client.get(address("campaign-bar", campaign), {"here": f"{ranking}?measure=P@2"})
    assert "See the ranking" not in text(bar)


@pytest.mark.slow
def test_of_a_round_that_was_ended_early_it_is_not_said_that_it_is_judged(
    campaign: Campaign,
) -> None:
    evaluation.worker_alive()
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 25)
    client = Client()
    client.force_login(campaign.created_by)
    for there in (address("round-list", campaign), address("round-detail", campaign, 1)):
        page = client.get(there).content.decode()
        assert "Its 1 complete batch counts; of the others no more is judged." in page
    stopping.by_hand(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    assert step(campaign).why == "Round 1 was ended early: nothing more comes of it."
    overview = text(client.get(address("campaign-home", campaign)))
    assert "Round 1 was ended early: what is known" in overview
    assert "Round 1 is judged" not in overview


@pytest.mark.slow
def test_nobody_but_its_organizers_sees_the_bar(campaign: Campaign) -> None:
    judging(campaign)
    (anna,) = factories.assessors(campaign, "new-anna")
    client = Client()
    client.force_login(anna)
    assert "campaign-bar" not in client.get(address("judge", campaign)).content.decode()


@pytest.mark.slow
@pytest.mark.on_both
def test_the_ranking_says_which_rounds_tell_nothing(campaign: Campaign, organizer: Client) -> None:
    evaluation.worker_alive()
    counting(campaign)
    said = text(organizer.get(address("live", campaign, 2)))
    assert "without round 1, of which no batch is complete" in said
    assert "each by itself" not in said
    assert re.match(r"It counts with round 2, and \d+ pairs are not judged", step(campaign).why)
    evaluation.judge(campaign, 1000)
    said = text(organizer.get(address("live", campaign, 2)))
    assert "Rounds 1 and 2 together" in said
    assert "without round 1" not in said

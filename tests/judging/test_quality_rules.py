"""Rules about people: whom they find, that it is recorded and undone, and what waiting means."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from judging import gold_answers, selectors
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import Assignment, AuditEntry, Campaign, Exclusion, Job, Judgment, User
from judging.people import people
from judging.services import assignments, desk, exclusions, quality
from judging.services.judgments import Saying
from judging.services.quality import RulesPlan
from tests.judging.test_gold import campaign_of, judge_all
from tests.support import factories, rest

pytestmark = pytest.mark.django_db


def crowd(**values: Any) -> tuple[Campaign, User, User]:
    """Of gold, 1 and 2 are right: one person gives these in turn, the other also 0 and 3."""
    made, (good, bad) = campaign_of("good", "bad", labels=2, every=3, **values)
    for who, grades in ((good, (1, 2)), (bad, (0, 3))):
        sheet = desk.next_sheet(campaign=made, by=who, topic=True)
        while sheet is not None:
            mine = sheet.assignment
            mine.pair.campaign = made
            saying = Saying(grades[mine.pk % 2], f"k{mine.pk}", seconds=20.0)
            _, sheet = desk.judge(assignment=mine, by=who, saying=saying, topic=True)
    return made, good, bad


def rules(made: Campaign, **values: Any) -> None:
    quality.set_rules(campaign=made, by=made.created_by, plan=RulesPlan(**values))
    factories.run_due_jobs()


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_scores_tell_the_two_apart() -> None:
    made, good, bad = crowd()
    found = gold_answers.scores(made)
    assert (found[good.pk].right, found[bad.pk].right) == (found[good.pk].answers, 0)
    assert found[good.pk].untold == "skewed"  # all their grades are right for all gold
    assert found[bad.pk].high is not None
    assert found[bad.pk].high < 0.3
    assert {each.user: each.gold_is_low for each in people(made) if each.judges} == {
        good: False,
        bad: True,
    }


@pytest.mark.slow
def test_a_rule_excludes_whom_gold_finds_and_says_so() -> None:
    made, good, bad = crowd()
    rules(made, exclude_below=0.4)
    (row,) = Exclusion.objects.all()
    assert (row.assessor, row.ground, row.by_rule, row.looks_at_grades) == (
        bad,
        "gold",
        True,
        False,
    )
    assert row.decided_by == made.created_by
    assert row.reason.startswith("Gold: 0 of ")
    assert AuditEntry.objects.get(action="exclude work").data["by_rule"] is True
    assert not Exclusion.objects.filter(assessor=good).exists()

    exclusions.take_back(exclusion=row, by=made.created_by, reason="they were ill")
    rules(made, exclude_below=0.4)
    assert not Exclusion.objects.filter(ended=None).exists()


@pytest.mark.slow
def test_nothing_happens_by_itself_unless_somebody_has_said_so() -> None:
    made, _good, _bad = crowd()
    rules(made)
    quality.wake()
    assert not Job.objects.filter(kind=quality.APPLY).exists()
    assert not Exclusion.objects.exists()


@pytest.mark.slow
def test_whoever_waits_is_handed_nothing_until_somebody_has_looked_and_then_is_left_alone() -> None:
    made, good, bad = crowd(docnos=30)
    factories.released_batch(made, [f"e{n}" for n in range(6)], labels=2)
    rules(made, hold_below=0.4)
    made.refresh_from_db()
    assert assignments.claim_next(campaign=made, by=bad) is None
    assert selectors.empty_queue(made, bad) == "looked"
    assert Judgment.objects.filter(assessor=bad).exists()
    assert not Exclusion.objects.exists()
    assert assignments.claim_next(campaign=made, by=good) is not None
    assert rest.client_of(bad).post("/api/campaigns/test/assignments/next/").json()["reason"] == (
        "work_looked_at"
    )

    quality.let_go_on(campaign=made, assessor=bad, by=made.created_by)
    rules(made, hold_below=0.4)
    assert assignments.claim_next(campaign=made, by=bad) is not None
    with pytest.raises(UserError, match="does not wait"):
        quality.let_go_on(campaign=made, assessor=bad, by=made.created_by)


@pytest.mark.sqlite_only
def test_who_is_held_while_judging_keeps_what_is_in_hand_and_gets_no_more() -> None:
    made, (anna,) = campaign_of("anna", every=0)
    sheet = desk.next_sheet(campaign=made, by=anna)
    assert sheet is not None
    quality.hold(campaign=made, assessor=anna, by=made.created_by, reason="let us talk")
    mine = Assignment.objects.select_related("pair__campaign", "pair__topic").get(assessor=anna)
    recorded, following = desk.judge(assignment=mine, by=anna, saying=Saying(1, "k"), topic=True)
    assert recorded.created
    assert following is None
    with pytest.raises(UserError, match="waits already"):
        quality.hold(campaign=made, assessor=anna, by=made.created_by, reason="again")


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_who_is_too_fast_is_found_by_times_alone() -> None:
    made, (swift, slow) = campaign_of("swift", "slow", labels=2, every=0, topics=1)
    for who, took in ((swift, 0.05), (slow, 20.0)):
        for mine in judge_all(made, who, grade=1):
            Judgment.objects.filter(assignment=mine).update(seconds=took)
    factories.judged_apart(made)
    rules(made, exclude_hasty=True)
    (row,) = Exclusion.objects.all()
    assert (row.assessor, row.ground, row.by_rule) == (swift, "time", True)


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_nobody_is_too_fast_as_the_clock_was_set_back() -> None:
    """By times alone the later half of their answers came a moment after each of the earlier."""
    made, (slow,) = campaign_of("slow", labels=1, every=0, topics=1)
    given = judge_all(made, slow, grade=1)
    half, now = len(given) // 2, timezone.now()
    for number, mine in enumerate(given):
        after = 30 * (number % half) + 0.02 * (number // half)
        at = now - timedelta(hours=1) + timedelta(seconds=after)
        Judgment.objects.filter(assignment=mine).update(seconds=25.0, created=at)
    rules(made, exclude_hasty=True)
    assert not Exclusion.objects.exists()


def test_a_worker_looks_again_where_something_was_said_since_and_not_else() -> None:
    made, (anna,) = campaign_of("anna")
    rules(made, hold_below=0.3)
    job = Job.objects.get(kind=quality.APPLY)
    quality.wake()
    assert Job.objects.get(pk=job.pk).requested == job.requested  # it has only just looked
    Job.objects.filter(pk=job.pk).update(started=seconds_from_now(-300))
    AuditEntry.objects.update(created=seconds_from_now(-600))
    quality.wake()
    assert Job.objects.get(pk=job.pk).requested == job.requested  # nothing was said since
    assert factories.judge_next(made, anna, 1)
    quality.wake()
    assert Job.objects.get(pk=job.pk).requested == job.requested + 1


def test_rules_are_at_work_when_a_clock_that_was_ahead_is_set_back() -> None:
    made, (anna,) = campaign_of("anna")
    rules(made, hold_below=0.3)
    job = Job.objects.get(kind=quality.APPLY)
    Job.objects.filter(pk=job.pk).update(started=seconds_from_now(86_400))
    assert factories.judge_next(made, anna, 1)
    quality.wake()
    assert Job.objects.get(pk=job.pk).requested == job.requested + 1


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"least": 9}, "least"),
        ({"warn_below": 1.0}, "warn_below"),
        ({"hold_below": -1}, "hold_below"),
    ],
)
@pytest.mark.sqlite_only
def test_rules_out_of_bounds_are_refused_by_field(values: dict[str, Any], field: str) -> None:
    made = factories.campaign()
    with pytest.raises(UserError) as refused:
        quality.set_rules(campaign=made, by=made.created_by, plan=RulesPlan(**values))
    assert refused.value.field == field


@pytest.mark.slow
def test_pages_and_rest_tell_and_do_the_same() -> None:
    made, _good, bad = crowd()
    page, client = Client(), rest.client_of(made.created_by)
    page.force_login(made.created_by)
    assert "g0" in page.get("/c/test/gold/").content.decode()
    body = {"every": 12, "least": 12, "warn_below": 0.5}
    answer = client.patch("/api/campaigns/test/quality-rules/", body).json()
    assert (answer["every"], answer["least"], answer["hold_below"]) == (12, 12, None)
    text = page.get(f"/c/test/assessors/{bad.pk}/").content.decode()
    assert "Score" in text
    told = client.get(f"/api/campaigns/test/people/{bad.pk}/").json()
    assert told["person"]["gold"]["right"] == 0
    assert len(told["gold"]) == told["person"]["gold"]["answers"]

    held = client.post(f"/api/campaigns/test/people/{bad.pk}/hold/", {"reason": "look"}).json()
    assert held["held"] is not None
    assert "They wait for you" in page.get(f"/c/test/assessors/{bad.pk}/").content.decode()
    assert "Waits for you" in page.get("/c/test/people/").content.decode()
    assert page.post(f"/c/test/assessors/{bad.pk}/go-on/").status_code == 302
    assert page.post(f"/c/test/assessors/{bad.pk}/hold/", {}).status_code == 400

    pairs = [{"topic": "t1", "docno": "d1", "grades": [1, 2]}] * 2
    wrong = client.post("/api/campaigns/test/gold/", {"pairs": pairs})
    assert wrong.status_code == 400
    assert [(each["line"], each["field"]) for each in wrong.json()["errors"]] == [(2, "docno")]
    sent = page.post("/c/test/gold/add/", {"text": "topic,docno,grade\nt1,d1,7\n"})
    assert sent.status_code == 400
    assert "expected grades from 0 to 3" in sent.content.decode()
    made_gold = client.post("/api/campaigns/test/gold/", {"pairs": pairs[:1]})
    assert made_gold.status_code == 201
    pk = made_gold.json()[0]["id"]
    assert client.post(f"/api/campaigns/test/gold/{pk}/retire/").json()["retired"]
    assert client.post(f"/api/campaigns/test/gold/{pk}/retire/").status_code == 409
    assert page.post(f"/c/test/gold/{pk}/restore/").status_code == 302
    pair = made.pairs.get(docno="d2", topic__topic_id="t1")
    assert page.post(f"/c/test/judgments/{pair.pk}/gold/", {"grades": "2"}).status_code == 302
    assert made.gold_pairs.filter(pair__docno="d2").exists()

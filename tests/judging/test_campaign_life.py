"""Campaigns are paused, archived, and begun anew from one another; nothing judged is lost by it."""

from typing import Any

import pytest
from django.test import Client

from judging import lessons, selectors
from judging.errors import UserError
from judging.models import AuditEntry, Campaign, Judgment, Upload
from judging.services import (
    assignments,
    campaigns,
    duplicates,
    gold,
    jobs,
    judgments,
    quality,
    training,
)
from tests.support import factories
from tests.support.pages import address, as_role, text

pytestmark = pytest.mark.django_db

TOPICS = b"1\tfirst question\n2\tsecond question\n"


def with_topics() -> Campaign:
    made = factories.campaign(topics=0, slug="original")
    made.uploads.all().delete()
    factories.stored_upload(made, TOPICS, name="topics.tsv", kind="topics")
    return made


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign()
    factories.released_batch(made, "abc")
    made.refresh_from_db()
    return made


def test_while_paused_nothing_is_handed_out_and_what_is_in_hand_is_saved(
    campaign: Campaign,
) -> None:
    anna, ben = factories.assessors(campaign, "anna", "ben")
    held = assignments.claim_next(campaign=campaign, by=anna)
    assert held is not None
    campaigns.pause(campaign=campaign, by=campaign.created_by)
    assert assignments.claim_next(campaign=campaign, by=ben) is None
    assert selectors.empty_queue(campaign) == "paused"
    held.pair.campaign.refresh_from_db()
    saying = judgments.Saying(grade=2, key="in hand")
    assert judgments.record(assignment=held, by=anna, saying=saying).created
    corrected = judgments.Saying(grade=1, key="second thoughts")
    judgments.correct(assignment=held, by=anna, saying=corrected, revision=1)
    assert assignments.claim_next(campaign=campaign, by=anna) is None
    campaigns.open_for_judging(campaign=campaign, by=campaign.created_by)
    assert assignments.claim_next(campaign=campaign, by=ben) is not None


def test_a_closed_campaign_takes_no_judgment_of_what_is_in_hand(campaign: Campaign) -> None:
    """The twin: what a pause takes, an end does not."""
    (anna,) = factories.assessors(campaign, "anna")
    held = assignments.claim_next(campaign=campaign, by=anna)
    assert held is not None
    campaigns.pause(campaign=campaign, by=campaign.created_by)
    campaigns.close(campaign=campaign, by=campaign.created_by)
    held.pair.campaign.refresh_from_db()
    with pytest.raises(UserError, match="not open"):
        judgments.record(assignment=held, by=anna, saying=judgments.Saying(grade=2, key="too late"))
    assert not Judgment.objects.exists()


@pytest.mark.parametrize("state", ["draft", "paused", "closed"])
def test_only_what_is_open_is_paused(campaign: Campaign, state: str) -> None:
    Campaign.objects.update(state=state)
    with pytest.raises(UserError) as refused:
        campaigns.pause(campaign=campaign, by=campaign.created_by)
    assert refused.value.code == "wrong_state"


def test_assessors_read_that_it_is_a_pause(campaign: Campaign) -> None:
    campaigns.pause(campaign=campaign, by=campaign.created_by)
    anna = as_role("assessor", campaign)
    assert "A pause" in text(anna.get(address("judge", campaign)))
    assert "Paused by the organizer" in text(anna.get("/"))


def test_an_archived_campaign_stands_apart_and_comes_back(campaign: Campaign) -> None:
    organizer = Client()
    organizer.force_login(campaign.created_by)
    with pytest.raises(UserError) as refused:
        campaigns.archive(campaign=campaign, by=campaign.created_by)
    assert refused.value.code == "wrong_state"
    campaigns.close(campaign=campaign, by=campaign.created_by)
    organizer.post(address("campaign-archive", campaign))
    campaign.refresh_from_db()
    assert campaign.archived is not None
    assert "Archived (1)" in text(organizer.get("/"))
    with pytest.raises(UserError) as refused:
        campaigns.open_for_judging(campaign=campaign, by=campaign.created_by)
    assert refused.value.code == "archived"
    organizer.post(address("campaign-unarchive", campaign))
    campaign.refresh_from_db()
    assert campaign.archived is None
    assert "Archived" not in text(organizer.get("/"))
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"archive campaign", "unarchive campaign"} <= actions


@pytest.mark.slow
def test_a_duplicate_has_settings_and_files_and_no_judgment(campaign: Campaign) -> None:
    original = with_topics()
    factories.stored_upload(original, b"1\n", name="broken.tsv", kind="topics")
    organizer = Client()
    organizer.force_login(original.created_by)
    answer = organizer.post(
        address("campaign-duplicate", original), {"name": "Once more", "with_files": "on"}
    )
    made = Campaign.objects.get(slug="once-more")
    assert answer["Location"] == address("campaign-home", made)
    factories.run_due_jobs()
    assert (made.grades, made.guidelines) == (original.grades, original.guidelines)
    assert made.state == Campaign.State.DRAFT
    assert list(made.topics.values_list("topic_id", flat=True).order_by("topic_id")) == ["1", "2"]
    assert list(made.uploads.values_list("name", flat=True)) == ["topics.tsv"]
    assert original.topics.count() == 2


def test_a_duplicate_without_files_has_none_and_another_address() -> None:
    original = factories.campaign(slug="original")
    by = original.created_by
    first = duplicates.duplicate(campaign=original, by=by, name="Again", with_files=False)
    second = duplicates.duplicate(campaign=original, by=by, name="Again", with_files=False)
    assert (first.slug, second.slug) == ("again", "again-2")
    factories.run_due_jobs()
    assert not Upload.objects.filter(campaign__in=[first, second]).exists()


def test_copying_again_after_a_kill_stores_no_file_twice() -> None:
    original = with_topics()
    by = original.created_by
    made = duplicates.duplicate(campaign=original, by=by, name="Again", with_files=True)
    job = selectors.job_of(duplicates.COPY, made.pk)
    assert job is not None
    jobs.run(job.pk)
    jobs.request(duplicates.COPY, made.pk, campaign=made, data=job.data)
    factories.run_due_jobs()
    assert made.uploads.count() == 1


def test_who_may_not_make_campaigns_makes_no_duplicate() -> None:
    original = factories.campaign(slug="original")
    original.created_by.is_organizer = False
    original.created_by.save()
    with pytest.raises(UserError) as refused:
        duplicates.duplicate(
            campaign=original, by=original.created_by, name="Again", with_files=True
        )
    assert refused.value.code == "may_not_create"
    assert Campaign.objects.count() == 1


HEAD = "topic,docno,grade,reason\n"
MIXED, TAUGHT = "1,d1,2|1,so it is\n2,d2,0,\n", "2,d1,1,look\n2,d2,0,\n"


def with_known_pairs() -> Campaign:
    """Training that is obligatory, gold that is mixed in, and rules about people."""
    made = with_topics()
    factories.stored_upload(
        made, b'{"id": "d1", "text": "one"}\n{"id": "d2", "text": "two"}\n',
        name="d.jsonl", kind="documents",
    )  # fmt: skip
    factories.run_due_jobs()
    by = made.created_by
    bring(gold, made, MIXED)
    gold.retire(gold=made.gold_pairs.get(pair__docno="d2"), by=by)
    bring(training, made, TAUGHT)
    gold.mix(campaign=made, by=by, every=7)
    training.set_plan(campaign=made, by=by, plan=training.TrainingPlan(True, 0.9, 3))
    quality.set_rules(campaign=made, by=by, plan=quality.RulesPlan(hold_below=0.4))
    return made


def bring(service: Any, made: Campaign, lines: str) -> None:
    found, problems = gold.read(made, HEAD + lines, "known.csv")
    service.add(campaign=made, by=made.created_by, found=found, problems=problems)


def known_of(made: Campaign) -> tuple[object, ...]:
    made.refresh_from_db()
    plan = lessons.training_of(made)
    pairs = made.training_pairs.order_by("docno")
    mixed = made.gold_pairs.order_by("pair__docno")
    return (
        list(pairs.values_list("topic__topic_id", "docno", "accepted", "reason")),
        list(mixed.values_list("pair__topic__topic_id", "pair__docno", "accepted", "reason")),
        (plan.obligatory, plan.threshold, plan.tries, made.gold_every),
        quality.plan_of(made),
    )


@pytest.mark.slow
def test_training_and_gold_follow_the_files_and_come_once() -> None:
    original = with_known_pairs()
    before = known_of(original)
    made = duplicates.duplicate(
        campaign=original, by=original.created_by, name="Again", with_files=True
    )
    waiting = selectors.job_of(duplicates.COPY_KNOWN, made.pk)
    assert waiting is not None
    jobs.run(waiting.pk)  # before any file is read
    assert not made.training_pairs.exists()
    factories.run_due_jobs()
    for _ in range(2):
        jobs.request(duplicates.COPY_KNOWN, made.pk, campaign=made, data=waiting.data)
        factories.run_due_jobs()
    taught, mixed, plan, rules = known_of(made)
    assert (taught, plan, rules) == (before[0], (True, 0.9, 3, 7), before[3])
    assert mixed == [("1", "d1", [1, 2], "so it is")]
    assert known_of(original) == before


@pytest.mark.slow
def test_gold_that_is_taught_in_the_copy_by_then_stays_where_it_is() -> None:
    original = with_known_pairs()
    made = duplicates.duplicate(
        campaign=original, by=original.created_by, name="Again", with_files=True
    )
    waiting = selectors.job_of(duplicates.COPY_KNOWN, made.pk)
    assert waiting is not None
    factories.run_due_jobs()
    assert not made.training_pairs.exists()
    bring(training, made, "1,d1,0,taught\n")
    jobs.request(duplicates.COPY_KNOWN, made.pk, campaign=made, data=waiting.data)
    factories.run_due_jobs()
    assert not made.gold_pairs.exists()
    assert made.training_pairs.count() == 3


@pytest.mark.slow
def test_without_files_rules_come_and_no_pairs() -> None:
    original = with_known_pairs()
    made = duplicates.duplicate(
        campaign=original, by=original.created_by, name="Again", with_files=False
    )
    factories.run_due_jobs()
    taught, mixed, plan, rules = known_of(made)
    assert (taught, mixed, plan[0], rules) == ([], [], False, known_of(original)[3])


def test_names_without_a_latin_letter_get_addresses_of_their_own() -> None:
    """Of such a name nothing is left for an address, and nobody has chosen that of the first."""
    olga = factories.user("olga", is_organizer=True)
    plans = [campaigns.CampaignPlan(name=name) for name in ("حملة", "новая", "キャンペーン")]
    made = [campaigns.create(by=olga, plan=plan).slug for plan in plans]
    assert made == ["campaign", "campaign-2", "campaign-3"]


def test_a_name_is_one_line_and_an_earlier_one_is_in_nobodys_way() -> None:
    made = factories.campaign()
    organizer = made.created_by
    for name in ("one\ntwo", "one\u202etwo"):
        with pytest.raises(UserError, match="expected one line") as refused:
            campaigns.create(by=organizer, plan=campaigns.CampaignPlan(name=name))
        assert refused.value.field == "name"
        Campaign.objects.filter(pk=made.pk).update(name=name)
        campaigns.amend(campaign=made, by=organizer, chosen={"name": name, "guidelines": "Look."})
        with pytest.raises(UserError, match="expected one line"):
            campaigns.amend(campaign=made, by=organizer, chosen={"name": f"{name}."})
    assert Campaign.objects.get().guidelines == "Look."


def test_a_grade_has_a_name_in_one_line_and_an_earlier_one_is_in_nobodys_way() -> None:
    made = factories.campaign()
    organizer = made.created_by
    for name in ("no\nyes", "no\u202eyes"):
        grades = [{"name": name, "meaning": "two\nlines"}, {"name": "yes", "meaning": ""}]
        plan = campaigns.CampaignPlan(name="Lines", grades=grades)
        with pytest.raises(UserError, match="expected one line") as refused:
            campaigns.create(by=organizer, plan=plan)
        assert refused.value.field == "grades"
        Campaign.objects.filter(pk=made.pk).update(grades=grades)
        campaigns.amend(campaign=made, by=organizer, chosen={"grades": grades, "depth": 7})
        with pytest.raises(UserError, match="expected one line"):
            campaigns.amend(
                campaign=made,
                by=organizer,
                chosen={"grades": [*grades, grades[0] | {"name": f"{name}."}]},
            )
        made.refresh_from_db()
        again = duplicates.duplicate(campaign=made, by=organizer, name="Again", with_files=False)
        assert again.grades == grades
    assert Campaign.objects.get(pk=made.pk).depth == 7

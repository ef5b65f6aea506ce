"""A round pauses: nobody is given its pairs, others go on, and nothing that is said is lost."""

import pytest
from django.test import Client

from estimation.models import Round
from estimation.services import pausing, stopping
from judging.errors import UserError
from judging.models import AuditEntry, Batch, Campaign, Judgment, User
from judging.selectors import empty_queue
from judging.services import assignments, exclusions, judgments
from tests.support import evaluation, factories
from tests.support.pages import address, text
from tests.support.rest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def held_by(campaign: Campaign, name: str) -> object:
    return assignments.claim_next(campaign=campaign, by=User.objects.get(username=name))


def round_behind(pair: int) -> set[int]:
    return set(Round.objects.filter(draws__pair=pair).values_list("number", flat=True))


def two_rounds(campaign: Campaign) -> tuple[Round, Round]:
    """The first goes on, the second waits behind it."""
    first = evaluation.drawn(campaign, extra_share=0.0)
    second = evaluation.drawn(campaign, seed="other", extra_share=0.0)
    return first, second


@pytest.mark.slow
def test_what_is_handed_out_is_of_the_rounds_that_go_on(campaign: Campaign) -> None:
    first, second = two_rounds(campaign)
    evaluation.judge(campaign, 3)
    pausing.pause(row=first, by=first.created_by)
    for _ in range(5):
        given = held_by(campaign, "anna")
        assert second.number in round_behind(given.pair_id)  # type: ignore[attr-defined]
        evaluation.judge(campaign, 1)
    first.refresh_from_db()
    assert first.is_paused
    states = set(Batch.objects.filter(round_batch__round=first).values_list("state", flat=True))
    assert states == {Batch.State.HELD}


@pytest.mark.slow
@pytest.mark.on_both
def test_what_is_in_hand_is_saved_and_counts_when_it_goes_on(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    first = Batch.objects.filter(round_batch__round=row).order_by("number")[0]
    evaluation.judge(campaign, first.pair_count - 4)
    first.refresh_from_db()
    left = first.remaining
    hands = [held_by(campaign, name) for name in ("anna", "ben")]
    pausing.pause(row=row, by=row.created_by)
    for number, given in enumerate(hands):
        saying = judgments.Saying(grade=1, key=f"late-{number}")
        judgments.record(assignment=given, by=given.assessor, saying=saying)  # type: ignore[attr-defined]
    before = Judgment.objects.count()
    assert before == first.pair_count - 4 + 2
    assert held_by(campaign, "anna") is None
    assert empty_queue(campaign) == "held"
    pausing.resume(row=row, by=row.created_by)
    first.refresh_from_db()
    assert (left, first.remaining) == (4, 2)
    while evaluation.judge(campaign, 1000):
        pass
    row.refresh_from_db()
    assert (row.state, row.paused) == (Round.State.COMPLETE, None)
    assert Judgment.objects.count() > before


@pytest.mark.slow
@pytest.mark.on_both
def test_a_batch_that_an_exclusion_opens_again_is_held_while_its_round_pauses(
    campaign: Campaign,
) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    first = Batch.objects.filter(round_batch__round=row).order_by("number")[0]
    evaluation.judge(campaign, first.pair_count)
    first.refresh_from_db()
    assert first.state == Batch.State.COMPLETE
    pausing.pause(row=row, by=row.created_by)
    exclusions.exclude(
        campaign=campaign, by=row.created_by, assessor=User.objects.get(username="ben"),
        ground="time", reason="a second each",
    )  # fmt: skip
    first.refresh_from_db()
    assert first.state == Batch.State.HELD
    assert held_by(campaign, "anna") is None
    pausing.resume(row=row, by=row.created_by)
    first.refresh_from_db()
    assert first.state == Batch.State.OPEN
    assert first.remaining > 0


@pytest.mark.slow
def test_a_pause_changes_no_number(campaign: Campaign) -> None:
    """The same round with a pause and without one: the same sample, labels and estimates."""
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 30)
    pausing.pause(row=row, by=row.created_by)
    assert evaluation.judge(campaign, 1000) <= 2, "what was in hand alone"
    pausing.resume(row=row, by=row.created_by)
    while evaluation.judge(campaign, 1000):
        pass
    digest = row.estimate_sets.order_by("-number").first().digest  # type: ignore[union-attr]
    other = evaluation.with_material(slug="without")
    twin = evaluation.drawn(other, extra_share=0.0)
    while evaluation.judge(other, 1000):
        pass
    assert twin.estimate_sets.order_by("-number").first().digest == digest  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_batch_that_is_planned_in_a_pause_waits_for_its_end(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, method="adaptive", extra_share=0.0)
    size = Batch.objects.get(round_batch__round=row).pair_count
    evaluation.judge(campaign, size - 1)
    by = User.objects.get(username="anna")
    last = assignments.claim_next(campaign=campaign, by=by) or held_by(campaign, "ben")
    pausing.pause(row=row, by=row.created_by)
    saying = judgments.Saying(grade=0, key="last")
    judgments.record(assignment=last, by=last.assessor, saying=saying)  # type: ignore[union-attr,arg-type]
    pausing.resume(row=row, by=row.created_by)
    pausing.pause(row=row, by=row.created_by)
    factories.run_due_jobs()
    states = dict(row.round_batches.values_list("number", "batch__state"))
    assert states == {1: Batch.State.COMPLETE, 2: Batch.State.HELD}
    assert held_by(campaign, "anna") is None
    pausing.resume(row=row, by=row.created_by)
    while evaluation.judge(campaign, 1000):
        pass
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE


@pytest.mark.slow
def test_a_round_that_pauses_can_be_ended(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 30)
    pausing.pause(row=row, by=row.created_by)
    stopping.by_hand(row=row, by=row.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert not row.is_paused
    states = set(row.round_batches.values_list("batch__state", flat=True))
    assert states == {Batch.State.COMPLETE, Batch.State.DROPPED}


@pytest.mark.slow
def test_who_pauses_twice_is_told(campaign: Campaign) -> None:
    draft = evaluation.drafted(campaign)
    with pytest.raises(UserError, match="not being judged"):
        pausing.pause(row=draft, by=draft.created_by)
    row = evaluation.drawn(campaign, seed="t")
    with pytest.raises(UserError, match="does not pause"):
        pausing.resume(row=row, by=row.created_by)
    pausing.pause(row=row, by=row.created_by)
    with pytest.raises(UserError, match="not being judged"):
        pausing.pause(row=row, by=row.created_by)
    assert AuditEntry.objects.filter(action="pause round").count() == 1


@pytest.mark.slow
@pytest.mark.on_both
def test_page_and_rest_pause_and_go_on(campaign: Campaign, organizer: Client) -> None:
    row = evaluation.drawn(campaign)
    shown = text(organizer.post(address("round-pause", campaign, row.number), follow=True))
    assert "pauses" in shown
    there = f"/api/campaigns/{campaign.slug}/rounds/{row.number}/"
    assert organizer.get(there).json()["paused"]
    assert organizer.get(f"{there}batches/").json()["batches"][0]["state"] == "held"
    plain = {"content_type": "application/json"}
    assert organizer.post(f"{there}pause/", {}, **plain).status_code == 409
    assert organizer.delete(f"{there}pause/").status_code == 200
    assert organizer.get(there).json()["paused"] is None
    assert organizer.post(f"{there}pause/", {}, **plain).json()["paused"]
    organizer.post(address("round-resume", campaign, row.number))
    row.refresh_from_db()
    assert row.paused is None


@pytest.mark.slow
def test_programs_are_answered_as_the_schema_says(campaign: Campaign) -> None:
    """The client holds every answer against the document."""
    row, client = evaluation.drawn(campaign), client_of(campaign.created_by)
    there = f"/api/campaigns/{campaign.slug}/rounds/{row.number}/pause/"
    assert client.post(there, {}, format="json").json()["paused"]
    assert client.delete(there).json()["paused"] is None

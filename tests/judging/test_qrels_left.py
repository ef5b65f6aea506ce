"""Judging from qrels says what it leaves and why, and what it leaves can be brought to an end."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from estimation.models import Round
from judging.models import Campaign, Decision, KnownGrade, Pair
from judging.qrels_left import QrelsLeft, qrels_left
from judging.services import assignments, known_grades
from tests.support import evaluation, factories, rest
from tests.support.kept import Kept
from tests.support.pages import address, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("material", evaluation.with_material)


def drawn(campaign: Campaign, **values: Any) -> Round:
    """All of its pairs but the first two have a known grade."""
    row = evaluation.drawn(campaign, budget=20, batch_size=20, **values)
    upload = campaign.uploads.all()[0]
    known = list(Pair.objects.filter(campaign=campaign).order_by("pk"))[2:]
    KnownGrade.objects.bulk_create(
        KnownGrade(campaign=campaign, upload=upload, topic=pair.topic, docno=pair.docno, grade=1)
        for pair in known
    )
    return row


def from_qrels(campaign: Campaign) -> dict[str, Any]:
    """Asked for, done, and what programs are told."""
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/decisions/"
    assert client.post(f"{base}from-qrels/").status_code == 202
    factories.run_due_jobs()
    told: dict[str, Any] = client.get(base).json()
    return told


@pytest.mark.sqlite_only
def test_what_is_left_is_told_with_its_reasons(campaign: Campaign) -> None:
    drawn(campaign, labels=2, extra_share=0.0)
    pairs = Pair.objects.filter(campaign=campaign).count()
    anna = campaign.memberships.filter(role="assessor")[0].user
    assert qrels_left(campaign).known == 0, "no batch is open yet"
    assignments.claim_next(campaign=campaign, by=anna)
    told = from_qrels(campaign)
    left = qrels_left(campaign)
    assert left.pairs == pairs
    assert (left.unknown, left.further + left.held + left.known) == (2, pairs - 2)
    assert told["left"] == {
        "pairs": pairs, "further": left.further, "unknown": 2, "known": left.known,
        "held": left.held, "compared": 0,
    }  # fmt: skip
    note = told["working"][0]["note"]
    assert note.endswith(left.said)
    assert f"{left.further} want more labels than the one of the qrels, 2 not in the qrels" in note
    client = Client()
    client.force_login(campaign.created_by)
    page = text(client.get(address("decisions", campaign)))
    assert f"{pairs} pairs are left in the open batches:" in page
    assert f"{left.further} have the grade of the qrels, and want more labels" in page
    assert "2 are not among the qrels" in page


@pytest.mark.sqlite_only
def test_a_round_that_wants_one_label_leaves_only_what_is_unknown(campaign: Campaign) -> None:
    drawn(campaign, labels=1, extra_share=0.0)
    from_qrels(campaign)
    assert qrels_left(campaign) == QrelsLeft(further=0, known=0, held=0, unknown=2, compared=0)


@pytest.mark.slow
@pytest.mark.parametrize("by_page", [True, False])
def test_pairs_are_done_with_the_label_of_the_qrels(campaign: Campaign, by_page: bool) -> None:
    row = drawn(campaign, labels=1, extra_share=0.5)
    from_qrels(campaign)
    further = qrels_left(campaign).further
    assert further > 0
    if by_page:
        client = Client()
        client.force_login(campaign.created_by)
        there = reverse("use-labels", args=[campaign.slug])
        assert "Say why" in text(client.post(there, {"reason": " "}, follow=True))
        client.post(there, {"reason": "qrels alone"})
    else:
        api, base = rest.client_of(campaign.created_by), f"/api/campaigns/{campaign.slug}/"
        answer = api.post(
            f"{base}decisions/rest/", {"grade": None, "reason": "qrels alone"}, format="json"
        )
        assert answer.status_code == 202
    factories.run_due_jobs()
    taken = Decision.objects.filter(pair__campaign=campaign)
    assert taken.count() == further
    assert set(taken.values_list("kind", "grade")) == {("as is", None)} or all(
        grade is None for grade in taken.values_list("grade", flat=True)
    )
    assert qrels_left(campaign) == QrelsLeft(further=0, known=0, held=0, unknown=2, compared=0)
    unjudged = Pair.objects.filter(campaign=campaign, judged=0)
    assert not unjudged.filter(decided=True).exists(), "what nobody has judged is left alone"
    evaluation.judge(campaign, 1000)
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    assert row.estimate_sets.exists()


def test_a_pair_that_somebody_holds_is_left_to_them(campaign: Campaign) -> None:
    drawn(campaign, labels=2, extra_share=0.0)
    known_grades.answer(campaign=campaign, by=campaign.created_by)
    anna = campaign.memberships.filter(role="assessor")[0].user
    held = assignments.claim_next(campaign=campaign, by=anna)
    assert held is not None
    rest.client_of(campaign.created_by).post(
        f"/api/campaigns/{campaign.slug}/decisions/rest/",
        {"grade": None, "reason": "enough"},
        format="json",
    )
    factories.run_due_jobs()
    held.pair.refresh_from_db()
    assert not held.pair.decided


def test_qrels_of_a_longer_scale_judge_nothing_and_can_be_brought_anew(campaign: Campaign) -> None:
    drawn(campaign)
    factories.stored_upload(campaign, b"t1 0 elsewhere 3\n", name="old.qrels", kind="qrels")
    upload = campaign.uploads.get(name="old.qrels")
    assert upload.state == "accepted"
    Campaign.objects.filter(pk=campaign.pk).update(grades=campaign.grades[:2])
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/"
    answer = client.post(f"{base}decisions/from-qrels/")
    assert (answer.status_code, answer.json()["code"]) == (409, "scale_changed")
    assert "old.qrels has grades up to 3, but the scale goes to 1 now" in answer.json()["message"]
    assert client.delete(f"{base}uploads/{upload.pk}/").status_code == 204
    told = from_qrels(campaign)
    assert (told["left"]["unknown"], told["left"]["known"]) == (2, 0)

"""Who comes again: by another link of the campaign, or with a task that was taken again."""

import pytest
from django.test import Client
from django.urls import reverse

from judging.models import CrowdGuest
from judging.services import exclusions
from tests.judging.test_crowd_links import (
    QUESTION,
    account,
    campaign_of,
    enter,
    link_of,
    refusal,
)
from tests.support import factories

pytestmark = pytest.mark.django_db


def test_whoever_was_excluded_or_did_not_fit_does_not_come_in_by_another_link() -> None:
    made = campaign_of()
    first, second = link_of(made, **QUESTION), link_of(made, name="second wave", **QUESTION)
    other = link_of(made, name="another question")
    enter(first, "p1", "No")
    excluded, usual = enter(first, "p2", "Yes"), enter(first, "p3", "Yes")
    factories.judge_next(made, account(excluded), 1)
    by, ground = made.created_by, "identity"
    row = exclusions.exclude(
        campaign=made, assessor=account(excluded), by=by, ground=ground, reason="a robot"
    )

    assert refusal(enter, second, "p1", "Yes") == ("out_already", 409)
    assert refusal(enter, second, "p2", "Yes") == ("out_already", 409)
    second.refresh_from_db()
    assert second.people == 0
    assert enter(other, "p1").account is not None  # who does not fit here may fit there
    assert enter(second, "p3", "Yes").account != usual.account  # shown to the organizer
    exclusions.take_back(exclusion=row, by=by, reason="was somebody else")
    assert enter(second, "p2", "Yes").account is not None


def test_whose_part_is_over_is_told_nothing_but_that() -> None:
    """Their first answer is stored, and no address leads them on: others could begin here."""
    made = campaign_of()
    first, second = link_of(made, **QUESTION), link_of(made, name="second wave", **QUESTION)
    enter(first, "p1", "No")
    there = f"{reverse('work', args=[second.token])}?PROLIFIC_PID=p1"

    page = Client().post(there, {"action": "agree", "answer": "Yes"}).content.decode()

    assert "You cannot begin here" in page
    assert "Nothing about you was stored" not in page
    assert "can go on" not in page


def test_a_task_that_was_given_back_and_taken_again_is_paid_by_its_new_number() -> None:
    made = campaign_of()
    link = link_of(made, judgments=1)
    first = enter(link, "", workerId="w1", assignmentId="A1", hitId="H")
    enter(link, "", workerId="w1")
    enter(link, "", workerId="w1", assignmentId="ASSIGNMENT_ID_NOT_AVAILABLE")
    kept = {"workerId": "w1", "assignmentId": "A1", "hitId": "H"}
    assert CrowdGuest.objects.get().parameters == kept, "a bookmark or a preview takes nothing away"
    again = enter(link, "", workerId="w1", assignmentId="A2")
    assert (again.pk, again.submission) == (first.pk, "A2")
    client = Client()
    client.force_login(account(first))
    client.get(reverse("work", args=[link.token]), {"workerId": "w1", "assignmentId": "A3"})
    assert CrowdGuest.objects.get().submission == "A3"
    factories.judge_next(made, account(first), 1)
    enter(link, "", workerId="w1", assignmentId="A4")
    assert CrowdGuest.objects.get().submission == "A3", "what they are paid by does not change"

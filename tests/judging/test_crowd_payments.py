"""What organizers see of crowd links: their pages, who may be one person, and who is due what."""

import csv
import io
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from judging import payments
from judging.models import Assignment, AuditEntry, Campaign, CrowdGuest, CrowdLink, Judgment
from judging.services import entering, exclusions, members
from tests.judging.test_crowd_links import QUESTION, account, campaign_of, enter, link_of
from tests.support import factories, rest

pytestmark = pytest.mark.django_db
PAY: dict[str, Any] = {
    "per_judgment": Decimal("0.105"),
    "per_hour": Decimal(12),
    "least_minutes": 10,
    "bonus": Decimal("0.25"),
    "bonus_above": 1,
    "out_pay": Decimal("0.2"),
}


def judged(made: Campaign, guest: CrowdGuest, *minutes: float) -> None:
    """So many judgments, so long after the guest agreed."""
    began = timezone.now() - timedelta(minutes=5 + max(minutes))
    CrowdGuest.objects.filter(pk=guest.pk).update(agreed=began)
    for after in minutes:
        pair = factories.judge_next(made, account(guest), 1)
        rows = Judgment.objects.filter(assessor=guest.account, assignment__pair=pair)
        assert rows.update(created=began + timedelta(minutes=after)) == 1


def due(link: CrowdLink) -> payments.Payments:
    return payments.payments(CrowdLink.objects.select_related("campaign").get(pk=link.pk))


def signed_in(made: Campaign) -> Client:
    client = Client()
    client.force_login(made.created_by)
    return client


@pytest.mark.slow
def test_minutes_judgments_and_bonus_make_the_pay() -> None:
    made = campaign_of("abcdefgh")
    link = link_of(made, judgments=3, most_people=9, out_code="OUT", **PAY, **QUESTION)
    done, slow = enter(link, "p1", "Yes"), enter(link, "p2", "Yes")
    enter(link, "p3", "No")
    judged(made, done, 1, 2, 3.5)
    judged(made, slow, 30, 31)  # away for half an hour: ten minutes count
    assert entering.finish(guest=done)

    table = due(link)

    first, second, third = table.rows
    assert (first.state, first.minutes, first.judgments) == ("finished", Decimal("3.5"), 3)
    assert first.pay == Decimal("2.32")  # 3 x 0.105 + 10 minutes at least of 12 an hour
    assert first.bonus == Decimal("0.50")
    assert (second.state, second.minutes, second.pay) == (
        "working", Decimal("11.0"), Decimal("2.41"),
    )  # fmt: skip
    assert (third.state, third.total) == ("screened out", Decimal("0.20"))
    assert third.guest.told_code == "OUT"
    assert table.total == sum((row.total for row in table.rows), Decimal(0)) == Decimal("5.68")
    assert table.counts == {
        "screened_out": 1, "finished": 1, "left": 0, "timed_out": 0, "working": 1,
    }  # fmt: skip


def test_a_correction_is_no_further_work_and_a_skip_takes_time() -> None:
    made = campaign_of()
    guest = enter(link_of(made, **PAY))
    judged(made, guest, 1)
    row = Assignment.objects.get(state="judged")
    held = Assignment.objects.create(
        campaign=made, pair=made.pairs.exclude(pk=row.pair_id)[0], assessor=account(guest),
        state="skipped", lease_until=timezone.now(),
    )  # fmt: skip
    guest.refresh_from_db()
    Assignment.objects.filter(pk=held.pk).update(changed=guest.agreed + timedelta(minutes=3))

    (told,) = due(guest.link).rows

    assert (told.minutes, told.judgments, told.skipped) == (Decimal("3.0"), 1, 1)


def test_who_is_away_has_left_or_is_excluded_is_told_apart() -> None:
    made = campaign_of()
    link = link_of(made)
    away, left, out = (enter(link, name) for name in ("p1", "p2", "p3"))
    CrowdGuest.objects.filter(pk=away.pk).update(agreed=F("agreed") - timedelta(hours=1))
    members.remove(membership=made.memberships.get(user=left.account), by=made.created_by)
    factories.judge_next(made, account(out), 1)
    exclusions.exclude(
        campaign=made, assessor=account(out), by=made.created_by, ground="time", reason="fast"
    )

    rows = due(link).rows

    assert [row.state for row in rows] == ["timed out", "left", "working"]
    assert [row.excluded for row in rows] == [False, False, True]
    assert rows[2].judgments == 1


def test_one_device_and_one_participant_are_told_beside_both() -> None:
    made = campaign_of()
    first, second = link_of(made), link_of(made, name="second wave")
    same = [enter(first, "p1", device="d"), enter(first, "p2", device="d")]
    again = enter(second, "p1")

    told = due(first).rows

    assert told[1].alike == (f"Same device as {account(same[0])}",)
    assert told[0].alike == (
        f"Same device as {account(same[1])}",
        f"Same participant as {account(again)} (second wave)",
    )
    assert due(second).rows[0].alike == (
        f"Same participant as {account(same[0])} (Prolific, first wave)",
    )
    shown = signed_in(made).get(reverse("crowd-link", args=[made.slug, first.pk]))
    assert f"Same device as {account(same[0])}" in shown.content.decode()


@pytest.mark.parametrize(
    ("pay", "told"),
    [
        ({}, "<dt>Pay</dt><dd>none</dd>"),
        ({"bonus": Decimal("0.05")}, "<dt>Pay</dt><dd>0.05 more a judgment, in USD</dd>"),
        ({"bonus": 1, "bonus_above": 2000}, "<dt>Pay</dt><dd>1.00 more a judgment after 2,000, in"),
    ],
)
def test_what_is_paid_is_told_where_something_is(pay: dict[str, Any], told: str) -> None:
    made = campaign_of("ab")
    link = link_of(made, **pay)
    shown = signed_in(made).get(reverse("crowd-link", args=[made.slug, link.pk]))
    assert told in shown.content.decode()


@pytest.mark.slow
def test_the_file_adds_up_and_holds_no_formula() -> None:
    made = campaign_of("abcdefgh")
    link = link_of(made, judgments=3, most_people=9, **PAY)
    judged(made, enter(link, '=HYPERLINK("x")', SESSION_ID="+1"), 1, 2)
    judged(made, enter(link, "p2"), 4)

    answer = signed_in(made).get(reverse("crowd-payments", args=[made.slug, link.pk]))

    content = b"".join(answer.streaming_content).decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    assert rows[0]["participant"] == '\'=HYPERLINK("x")'
    assert rows[0]["submission"] == "'+1"
    *guests, last = rows
    assert last["participant"] == "sum"
    for column in ("minutes", "judgments", "pay", "bonus", "total"):
        assert sum(Decimal(row[column]) for row in guests) == Decimal(last[column]), column
    assert f"payments-{link.pk}.csv" in answer["Content-Disposition"]


@pytest.mark.slow
def test_statements_do_not_grow_with_guests() -> None:
    made = campaign_of("abcdefgh", labels=9)
    link = link_of(made, most_people=20)
    counts = []
    for number in range(6):
        factories.judge_next(made, account(enter(link, f"p{number}")), 1)
        if number in (0, 5):
            with CaptureQueriesContext(connection) as seen:
                due(link)
            counts.append(len(seen))

    assert counts[0] == counts[1]


FORM = {
    "name": "First wave", "most_people": "5", "judgments": "40", "least_left": "1",
    "consent": "I agree.", "question": "Do you read English?", "lets_in": "Yes\r\n\r\nA little",
    "screens_out": "No", "code_kind": "one", "code": "", "out_code": "OUT", "return_address": "",
    "currency": "EUR", "per_judgment": "0.1", "per_hour": "0", "least_minutes": "0", "bonus": "0",
    "bonus_above": "0", "out_pay": "0", "expires": "2031-05-06T07:08",
}  # fmt: skip


@pytest.mark.slow
def test_an_organizer_makes_closes_and_reopens_a_link() -> None:
    made = campaign_of()
    client = signed_in(made)
    links = reverse("crowd-links", args=[made.slug])
    assert "Make a link" in client.get(links).content.decode()

    page = client.post(links, FORM, follow=True)

    row = CrowdLink.objects.get()
    assert row.answers == [
        {"text": "Yes", "out": False}, {"text": "A little", "out": False},
        {"text": "No", "out": True},
    ]  # fmt: skip
    assert row.expires.isoformat() == "2031-05-06T07:08:00+00:00"
    assert len(row.code) == 10
    there = f"http://testserver/work/{row.token}/"
    shown = page.content.decode()
    assert f'value="{there}"' in shown
    assert "PROLIFIC_PID={{%PROLIFIC_PID%}}&amp;STUDY" in shown
    client.post(reverse("crowd-link-close", args=[made.slug, row.pk]))
    row.refresh_from_db()
    assert row.closed is not None
    assert "Closed" in client.get(links).content.decode()
    client.post(reverse("crowd-link-reopen", args=[made.slug, row.pk]))
    row.refresh_from_db()
    assert row.closed is None
    acts = AuditEntry.objects.filter(campaign=made, action__contains="crowd link")
    assert [row.action for row in acts.order_by("pk")] == [
        "make crowd link", "close crowd link", "reopen crowd link",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("lets_in", "", "Expected 2 to 20 different answers"),
        ("screens_out", "Yes", "Expected 2 to 20 different answers"),
        ("return_address", "http://x.org", "Expected an https address"),
        ("judgments", "0", "Expected 1 or more."),
        ("consent", "", "This is needed."),
        ("expires", "2020-01-01T00:00", "expected a time that is not over"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(name: str, value: str, told: str) -> None:
    made = campaign_of()
    given = FORM | {"screens_out": "No", name: value}

    answer = signed_in(made).post(reverse("crowd-links", args=[made.slug]), given)

    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert not CrowdLink.objects.exists()


@pytest.mark.slow
def test_programs_make_close_and_pay_as_pages_do() -> None:
    made = campaign_of()
    client = rest.client_of(made.created_by)
    base = f"/api/campaigns/{made.slug}/links/"
    body = {
        "name": "wave", "most_people": 2, "judgments": 1, "consent": "I agree.",
        "per_judgment": "0.105", "question": "English?",
        "answers": [{"text": "Yes", "out": False}, {"text": "No", "out": True}],
    }  # fmt: skip

    told = client.post(base, body)

    assert told.status_code == 201, told.content
    row = CrowdLink.objects.get()
    assert told.json()["address"] == f"http://testserver/work/{row.token}/"
    guest = enter(row, "p1", "Yes", SESSION_ID="s")
    factories.judge_next(made, account(guest), 1)
    there = f"{base}{row.pk}/"
    table = client.get(f"{there}payments/").json()
    assert (table["total"], table["judgments"], table["currency"]) == ("0.11", 1, "USD")
    (due_to,) = table["guests"]
    assert (due_to["participant"], due_to["submission"]) == ("p1", "s")
    assert (due_to["state"], due_to["code"]) == ("finished", row.code)
    assert client.post(f"{there}close/").json()["closed"] is not None
    assert client.post(f"{there}close/").status_code == 409
    assert client.post(f"{there}reopen/").json()["closed"] is None
    assert client.get(base).json()["results"][0]["people"] == 1
    wrong = client.post(base, body | {"return_address": "http://x.org"})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "link_invalid")
    assert client.post(base, body | {"per_hour": "NaN"}).status_code == 400


def test_a_guest_who_asks_by_program_is_told_when_it_is_enough() -> None:
    made = campaign_of()
    user = account(enter(link_of(made, judgments=1)))
    factories.judge_next(made, user, 1)
    signed_in_guest = rest.client_with(None)  # guests have no keys
    signed_in_guest.force_login(user)

    told = signed_in_guest.post(f"/api/campaigns/{made.slug}/assignments/next/").json()

    assert told == {"assignment": None, "reason": "enough_judged"}


@pytest.mark.slow
def test_pages_of_people_say_who_is_a_guest_and_of_which_link() -> None:
    made = campaign_of()
    link = link_of(made)
    user = account(enter(link))
    client = signed_in(made)

    people = client.get(reverse("people", args=[made.slug])).content.decode()
    person = client.get(reverse("person", args=[made.slug, user.pk])).content.decode()

    assert '<span class="chip">Guest</span>' in people
    assert "Invited, not here yet" not in people
    assert f'href="{reverse("crowd-link", args=[made.slug, link.pk])}">{link.name}</a>' in person

"""What a judgment asks of the database, by page and REST; and that the short way is the long one.

Counted are all statements but BEGIN and COMMIT, which a judgment needs once.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.sql.compiler import SQLCompiler
from django.test import Client
from django.test.utils import CaptureQueriesContext

from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import (
    Assignment,
    AuditEntry,
    Batch,
    BatchPair,
    Campaign,
    Judgment,
    Membership,
    Pair,
    User,
)
from judging.services import assignments, campaigns, desk, judgments, members
from judging.services.judgments import Recorded, Saying
from judging.sheets import Sheet
from tests.support import factories, rest
from tests.support.races import Other, at_once

MOST = 12
TRANSACTION = re.compile(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE")
database = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


def campaign_of(*people: str, docnos: int = 30, labels: int = 2) -> tuple[Campaign, list[User]]:
    campaign = factories.campaign(topics=2)
    found = factories.assessors(campaign, *people)
    factories.released_batch(campaign, [f"d{n}" for n in range(docnos)], labels=labels)
    return campaign, found


def asked(action: Callable[[], Any]) -> tuple[Any, list[str]]:
    with CaptureQueriesContext(connection) as captured:
        answer = action()
    return answer, [query["sql"] for query in captured]


def counted(statements: list[str]) -> int:
    return sum(not TRANSACTION.match(sql) for sql in statements)


@database
@pytest.mark.sqlite_only
def test_a_claim_compiles_no_statement_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """To build the same statements again took four fifths of its time."""
    campaign, (anna, ben) = campaign_of("anna", "ben")
    assert assignments.claim_next(campaign=campaign, by=anna) is not None
    built: list[str] = []
    as_sql = SQLCompiler.as_sql

    def seen(self: SQLCompiler, *args: Any, **options: Any) -> Any:
        built.append(str(self.query.model))
        return as_sql(self, *args, **options)

    monkeypatch.setattr(SQLCompiler, "as_sql", seen)
    assert assignments.claim_next(campaign=campaign, by=ben) is not None
    assert built == []


@pytest.mark.slow
@committed
@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.sqlite_only
def test_a_judgment_by_rest_takes_few_statements_and_one_transaction(labels: int) -> None:
    _, (anna, ben) = campaign_of("anna", "ben", labels=labels)
    clients = [rest.client_of(anna), rest.client_of(ben)]
    held = [c.post("/api/campaigns/test/assignments/next/").json()["assignment"] for c in clients]
    counts = []
    for turn in range(40):
        client, mine = clients[turn % 2], held[turn % 2]
        body = {"assignment": mine["id"], "grade": turn % 4}
        answer, statements = asked(lambda c=client, b=body: c.post(URL, b))
        assert answer.status_code == 201
        held[turn % 2] = answer.json()["next"]
        if held[turn % 2]["topic"] == mine["topic"]:
            counts.append(counted(statements))
            assert sum(sql.startswith("BEGIN") for sql in statements) == 1

    assert len(counts) > 30
    assert max(counts) <= MOST


@committed
@pytest.mark.postgres_only
def test_what_a_judgment_asks_is_prepared_and_no_other_statement_is_kept() -> None:
    campaign, (anna,) = campaign_of("anna")
    for _ in range(8):
        assert factories.judge_next(campaign, anna, grade=1)
        assert Pair.objects.filter(docno="of which there is none").count() == 0

    with connection.cursor() as cursor:
        cursor.execute("SELECT statement, custom_plans FROM pg_prepared_statements")
        found = cursor.fetchall()
    prepared = [sql for sql, _ in found]
    assert any('INSERT INTO "judging_judgment"' in sql for sql in prepared)
    assert not any("of which there is none" in sql for sql in prepared)
    assert not connection.connection._prepared._counts
    assert {planned_again for _, planned_again in found} == {0}


URL = "/api/campaigns/test/judgments/"


@pytest.mark.slow
@committed
@pytest.mark.sqlite_only
def test_a_judgment_on_the_page_takes_few_statements_and_one_transaction() -> None:
    _, (anna,) = campaign_of("anna")
    page = Client(HTTP_HX_REQUEST="true")
    page.force_login(anna)
    page.get("/c/test/judge/")
    counts = []
    for grade in range(20):
        mine = Assignment.objects.select_related("pair").get(assessor=anna, state="leased")
        said = {"grade": grade % 4, "key": f"k{grade}", "seconds": "1.5"}
        answer, statements = asked(lambda m=mine, s=said: page.post(f"/c/test/judge/{m.pk}/", s))
        assert answer.status_code == 200
        counts.append(counted(statements))

    assert max(counts) <= MOST
    assert counted(asked(lambda: page.get("/c/test/judge/"))[1]) <= MOST
    assert Judgment.objects.count() == AuditEntry.objects.filter(action="judge").count() == 20


def one(by: User, grade: int = 1) -> tuple[Recorded, Sheet | None]:
    mine = Assignment.objects.select_related("pair__campaign", "pair__topic").get(
        assessor=by, state="leased"
    )
    return desk.judge(assignment=mine, by=by, saying=Saying(grade, f"k{mine.pk}"), topic=True)


@pytest.mark.slow
@database
@pytest.mark.sqlite_only
def test_the_short_way_gives_the_pairs_and_the_numbers_of_the_long_way() -> None:
    """Anna and Ben have the same ids in both campaigns' orders: each takes one of the two ways."""
    campaign, (anna, ben) = campaign_of("anna", "ben", docnos=7)
    served: dict[str, list[int]] = {"short": [], "long": []}
    for way, by in (("short", anna), ("long", ben)):
        sheet = desk.next_sheet(campaign=campaign, by=by, topic=True)
        while sheet is not None:
            pair = sheet.assignment.pair
            served[way].append(pair.pk)
            expected = hand_out(campaign, by, sheet)
            if way == "short":
                _, sheet = one(by)
            else:
                factories.judge_next(campaign, by, grade=1)
                sheet = desk.next_sheet(campaign=campaign, by=by, topic=True)
            assert sheet is None or sheet.assignment.pair_id == expected

    assert (
        sorted(served["short"])
        == sorted(served["long"])
        == sorted(Pair.objects.values_list("pk", flat=True))
    )


@pytest.mark.slow
@database
@pytest.mark.parametrize("of_the_topic", [True, False])
@pytest.mark.sqlite_only
def test_a_place_in_an_earlier_batch_comes_first(of_the_topic: bool) -> None:
    """Whatever the hash says, and of whatever topic it is."""
    campaign, (anna,) = campaign_of("anna", docnos=1, labels=1)
    factories.released_batch(campaign, [f"later{n}" for n in range(8)])
    sheet = desk.next_sheet(campaign=campaign, by=anna, topic=True)
    while sheet is not None and not sheet.assignment.pair.docno.startswith("later"):
        _, sheet = one(anna)
    assert sheet is not None
    mine = sheet.assignment.pair
    first = Batch.objects.get(campaign=campaign, number=1)
    Batch.objects.filter(pk=first.pk).update(state=Batch.State.OPEN, remaining=1)
    topic = campaign.topics.get(pk=mine.topic_id)
    if not of_the_topic:
        topic = campaign.topics.exclude(pk=mine.topic_id).get()
    added = Pair.objects.create(campaign=campaign, topic=topic, docno="added", wanted=1)
    BatchPair.objects.create(batch=first, pair=added, labels=1)

    _, sheet = one(anna)
    assert sheet is not None
    assert sheet.assignment.pair == added
    _, sheet = one(anna)
    assert sheet is not None
    assert sheet.assignment.pair.docno.startswith("later")
    assert sheet.assignment.pair.topic_id == topic.pk


def hand_out(campaign: Campaign, by: User, sheet: Sheet) -> int | None:
    """The pair that the rules name, worked out by hand; and the progress that the sheet tells."""
    mine = Assignment.objects.filter(assessor=by)
    judged = mine.filter(state="judged")
    topic = sheet.assignment.pair.topic
    of_topic = judged.filter(pair__topic=topic).count()
    assert sheet.progress.judged == sheet.progress.judged_today == judged.count()
    assert (sheet.topic.judged, sheet.topic.total) == (of_topic, 7)
    left = Pair.objects.exclude(assignments__assessor=by)
    here = list(left.filter(topic=topic).values_list("pk", flat=True))
    if not here:
        return left.first() and min_by_topic(by, left)
    return min(here, key=lambda pk: assignments._shuffle(by.pk, pk))


def min_by_topic(by: User, left: Any) -> int:
    topics = set(left.values_list("topic", flat=True))
    topic = min(topics, key=lambda pk: assignments._shuffle(by.pk, pk))
    pairs = left.filter(topic=topic).values_list("pk", flat=True)
    return int(min(pairs, key=lambda pk: assignments._shuffle(by.pk, pk)))


def held_by(by: User) -> Assignment:
    rows = Assignment.objects.select_related("pair__campaign", "pair__topic")
    return rows.get(assessor=by, state="leased")


@pytest.mark.slow
@committed
def test_a_judgment_sent_at_once_from_many_tabs_is_stored_once_with_one_pair_after_it() -> None:
    campaign, (anna,) = campaign_of("anna")
    desk.next_sheet(campaign=campaign, by=anna)
    held = held_by(anna)

    told = at_once(
        [lambda: desk.judge(assignment=held, by=anna, saying=Saying(2, "same"))] * 12
        + [lambda: desk.next_sheet(campaign=campaign, by=anna)] * 4
    )

    assert not [each for each in told if isinstance(each, BaseException)]
    assert Judgment.objects.count() == 1
    following = held_by(anna)
    assert {sheet.assignment.pk for _, sheet in told[:12]} == {following.pk}
    assert {sheet.assignment.pk for sheet in told[12:]} <= {held.pk, following.pk}
    assert sorted(Pair.objects.filter(held=1).values_list("judged", flat=True)) == [0, 1]


@committed
@pytest.mark.slow
@pytest.mark.parametrize("labels", [1, 3])
def test_people_who_judge_at_the_same_time_fill_every_place_once(labels: int) -> None:
    campaign, people = campaign_of(*(f"a{n}" for n in range(5)), docnos=12, labels=labels)

    def work(by: User) -> int:
        done, sheet = 0, desk.next_sheet(campaign=campaign, by=by)
        while sheet is not None:
            held = sheet.assignment
            saying = Saying(done % 4, f"k{held.pk}")
            _, sheet = desk.judge(assignment=held, by=by, saying=saying)
            done += 1
        return done

    done = at_once([lambda by=by: work(by) for by in people])

    assert sum(done) == 24 * labels == Judgment.objects.count()
    assert set(Pair.objects.values_list("held", "judged")) == {(labels, labels)}
    assert Batch.objects.get().state == Batch.State.COMPLETE
    assert AuditEntry.objects.filter(action="judge").count() == 24 * labels


def save_while_the_next_pairs_are_locked() -> tuple[Other, bool]:
    """And whether the judgment is committed while its sender waits for the next pair."""
    campaign, (anna,) = campaign_of("anna", docnos=3)
    desk.next_sheet(campaign=campaign, by=anna)
    held = held_by(anna)
    with transaction.atomic():
        list(Pair.objects.exclude(pk=held.pair_id).order_by("pk").select_for_update())
        saving = Other(lambda: one(anna)).until_it_waits()
        stored = Judgment.objects.exists()
    return saving, stored


def test_nothing_that_a_save_has_locked_waits_for_the_next_pair(transactional_db: None) -> None:
    saving, stored = save_while_the_next_pairs_are_locked()

    _, sheet = saving.outcome()
    assert sheet is not None
    assert stored == (connection.vendor == "postgresql")  # SQLite waits for all of ours
    assert Judgment.objects.count() == 1


def statement(*, of_members: bool = True, **locks: bool) -> Any:
    """``desk._TAKEN`` with a mistake in it."""

    def taken() -> Any:
        rows, values = desk._taken()
        if not of_members:
            rows = Pair.objects.filter(pk=desk.Slot("pair"))
        return rows.select_for_update(**locks), values

    return desk.changes(taken)


@pytest.mark.slow
def test_a_save_that_waits_for_the_next_pair_is_caught(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_TAKEN", statement(no_key=True))

    saving, stored = save_while_the_next_pairs_are_locked()

    saving.outcome()
    assert not stored


def save_while_the_membership_ends() -> list[Assignment]:
    """What the one who left holds afterwards, under a lease that has not run out."""
    campaign, (anna,) = campaign_of("anna", docnos=3)
    desk.next_sheet(campaign=campaign, by=anna)
    held = held_by(anna)
    membership = Membership.objects.select_related("user", "campaign").get(user=anna)
    saying = Saying(1, "left")
    with transaction.atomic():
        members.remove(membership=membership, by=campaign.created_by)
        work = lambda: desk.judge(assignment=held, by=anna, saying=saying)  # noqa: E731
        saving = Other(work).until_it_waits()
    _, sheet = saving.outcome()
    assert Judgment.objects.count() == 1
    live = Assignment.objects.filter(state="leased", lease_until__gt=seconds_from_now(0))
    assert (sheet is None) == (not live)
    return list(live)


def test_who_leaves_while_a_judgment_is_stored_takes_no_pair_along(transactional_db: None) -> None:
    assert save_while_the_membership_ends() == []


def test_a_claim_that_does_not_look_at_the_membership_is_caught(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_TAKEN", statement(of_members=False, no_key=True, skip_locked=True))

    assert len(save_while_the_membership_ends()) == 1


@database
@pytest.mark.parametrize("late", [True, False])
@pytest.mark.sqlite_only
def test_a_key_that_was_used_for_another_pair_changes_nothing(*, late: bool) -> None:
    campaign, (anna,) = campaign_of("anna")
    desk.next_sheet(campaign=campaign, by=anna)
    one(anna)
    held, key = held_by(anna), Judgment.objects.get().key
    if late:
        Assignment.objects.update(lease_until=seconds_from_now(-1))
        assignments.release_lapsed()
        held.refresh_from_db(fields=["state"])

    with pytest.raises(UserError) as refused:
        desk.judge(assignment=held, by=anna, saying=Saying(1, key))

    assert (refused.value.code, Judgment.objects.count()) == ("key_reused", 1)
    assert sorted(Pair.objects.filter(judged=1).values_list("held", flat=True)) == [1]
    again, _ = desk.judge(assignment=Judgment.objects.get().assignment, by=anna, saying=said(key))
    assert not again.created


def said(key: str) -> Saying:
    stored = Judgment.objects.get(key=key)
    return Saying(stored.grade, key)


@database
@pytest.mark.sqlite_only
def test_what_goes_wrong_in_the_claim_undoes_the_judgment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody was told that it is stored: both are one transaction."""
    campaign, (anna,) = campaign_of("anna")
    desk.next_sheet(campaign=campaign, by=anna)
    held = held_by(anna)

    def broken(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(desk, "_claimed", broken)
        with pytest.raises(RuntimeError):
            desk.judge(assignment=held, by=anna, saying=Saying(1, "k"))
    assert not Judgment.objects.exists()
    assert held_by(anna) == held

    judgments.record(assignment=held, by=anna, saying=Saying(1, "k"))
    assert Judgment.objects.get().key == "k"


def give_back(held: Assignment) -> None:
    assignments.put_off(assignment=held, by=held.assessor)


def let_lapse(held: Assignment) -> None:
    Assignment.objects.filter(pk=held.pk).update(lease_until=seconds_from_now(-1))


def skip(held: Assignment) -> None:
    assignments.skip(assignment=held, by=held.assessor, reason="cannot read it")


def draw_more(held: Assignment) -> None:
    factories.released_batch(held.pair.campaign, ["more"])


def close(held: Assignment) -> None:
    campaign = held.pair.campaign
    campaigns.close(campaign=campaign, by=campaign.created_by)


def finish(held: Assignment) -> None:
    judgments.record(assignment=held, by=held.assessor, saying=Saying(1, "last"))


@pytest.mark.slow
@database
@pytest.mark.parametrize("change", [give_back, let_lapse, skip, draw_more, close, finish])
def test_an_idle_desk_is_told_at_once_when_it_may_go_on_or_waits_for_something_else(
    change: Callable[[Assignment], None],
) -> None:
    """Until then it costs four statements and no answer."""
    campaign = factories.campaign(topics=1)
    anna, ben = factories.assessors(campaign, "anna", "ben")
    factories.released_batch(campaign, ["a"])
    desk.next_sheet(campaign=campaign, by=ben)
    page = Client(HTTP_HX_REQUEST="true")
    page.force_login(anna)
    idle = {"idle": page.get("/c/test/judge/").context["idle"]}
    answer, statements = asked(lambda: page.get("/c/test/judge/", idle))
    assert (answer.status_code, len(statements)) == (204, 4)
    assert f"idle={idle['idle']}" in page.get("/c/test/judge/").content.decode()

    change(held_by(ben))

    assert page.get("/c/test/judge/", idle).status_code == 200
    assert page.get("/c/test/judge/", {"idle": ""}).status_code == 200

"""Gold: it is handed out as any other pair, tells of whoever answers it, and counts nowhere."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from judging import browsing, gold_answers, golds, selectors
from judging.browsing import JudgmentFilter
from judging.errors import UserError
from judging.formats import known_pairs
from judging.formats.problems import Problems
from judging.models import (
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Document,
    Exclusion,
    GoldPair,
    Judgment,
    Pair,
    User,
)
from judging.services import assignments, desk, exclusions, gold, judgments, uploads
from judging.services.judgments import Saying
from judging.stuck import stuck_pairs
from tests.support import factories, rest
from tests.support.races import at_once

database = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)
TRANSACTION = re.compile(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE")
GOLD = [f"g{n}" for n in range(8)]


def campaign_of(
    *people: str, docnos: int = 40, labels: int = 1, topics: int = 2, every: int = 4
) -> tuple[Campaign, list[User]]:
    """With eight gold pairs a topic, and people who are handed gold as often as most are."""
    made = factories.campaign(topics=topics)
    ids = usual_people(made.pk, every)
    for name in people:
        factories.user(name, pk=next(ids))
    found = factories.assessors(made, *people)
    drawn = [f"d{n}" for n in range(docnos)]
    upload = made.uploads.get()
    Document.objects.bulk_create(
        Document(campaign=made, upload=upload, docno=docno, title=docno, text="Some text.")
        for docno in (*drawn, *GOLD)
    )
    factories.released_batch(made, drawn, labels=labels)
    lines = [f"t{topic},{docno},1|2,so it is" for topic in range(1, topics + 1) for docno in GOLD]
    add(made, "\n".join(["topic,docno,grade,reason", *lines]))
    gold.mix(campaign=made, by=made.created_by, every=every)
    made.refresh_from_db()
    return made, found


def usual_people(campaign: int, every: int) -> Iterator[int]:
    """Row ids of people whose turns of gold come neither late nor in a bunch.

    Turns hang on row ids, which hang on what ran before: by chance alone somebody in a hundred has
    no gold among the first twelve pairs.
    """
    mixed = Campaign(pk=campaign, gold_every=every or 4)
    last = User.objects.order_by("-pk")[0].pk
    for pk in itertools.count(max(1_000_000, last + 1)):
        given = [0]
        for had in range(24):
            given.append(given[-1] + golds.is_due(mixed, User(pk=pk), had=had, gold=given[-1]))
        if given[6] in (1, 2) and given[12] in (3, 4) and given[24] in (6, 7, 8):
            yield pk


def add(made: Campaign, text: str) -> list[GoldPair]:
    found, problems = gold.read(made, text, "gold.csv")
    return gold.add(campaign=made, by=made.created_by, found=found, problems=problems)


def judge_all(made: Campaign, by: User, grade: int = 1) -> list[Assignment]:
    """Judges by the desk until nothing is left; in the order in which pairs came."""
    sheet = desk.next_sheet(campaign=made, by=by, topic=True)
    done = []
    while sheet is not None:
        mine = sheet.assignment
        mine.pair.campaign = made
        done.append(mine)
        saying = Saying(grade, f"k{mine.pk}")
        _, sheet = desk.judge(assignment=mine, by=by, saying=saying, topic=True)
    return done


@database
def test_gold_comes_at_its_rate_once_to_a_person_and_in_topics_with_other_pairs_alone() -> None:
    made, (anna,) = campaign_of("anna")
    done = judge_all(made, anna)

    which = [each.gold for each in done]
    assert sum(not each for each in which) == 80
    assert 12 <= sum(which) <= 16
    assert len({each.pair_id for each in done}) == len(done)
    assert all(each.gold == each.pair.gold for each in done)
    assert [each.pk for each in done] == sorted(each.pk for each in done)
    topics = [key for key, _ in itertools.groupby(each.pair.topic_id for each in done)]
    assert len(topics) == 2  # no topic comes again for gold alone
    assert not done[-1].gold or not done[-2].gold


@database
def test_of_a_campaign_without_gold_nothing_is_handed_out_but_what_was_drawn() -> None:
    made, (anna,) = campaign_of("anna", every=3)
    gold.mix(campaign=made, by=made.created_by, every=0)
    assert not any(each.gold for each in judge_all(made, anna))


@pytest.mark.slow
def test_turns_keep_the_rate_and_are_foretold_by_nobody(settings: Any) -> None:
    """Over many people: the share of gold, and that a turn hangs on person and campaign."""
    settings.SECRET_KEY = "one of all, which other turns hang on"
    made = Campaign(pk=3, gold_every=12)
    shares, turns = [], []
    for person in range(300):
        user, given = User(pk=person), 0
        order = []
        for had in range(240):
            order.append(golds.is_due(made, user, had=had, gold=given))
            given += order[-1]
        shares.append(given / 240)
        turns.append(order)
    assert abs(np.mean(shares) - 1 / 12) < 0.004
    assert max(shares) < 0.13
    assert min(shares) > 0.05
    by_turn = np.mean(turns, axis=0)
    assert by_turn[5:].max() < 0.16
    assert by_turn[5:].min() > 0.03
    assert turns[0] != turns[1]


def test_whoever_is_behind_gets_more_and_never_more_than_one_in_three() -> None:
    made, share = Campaign(pk=3, gold_every=12), {}
    for behind in (0, 4, 40):
        dealt = [
            golds.is_due(made, User(pk=person), had=480, gold=40 - behind) for person in range(4000)
        ]
        share[behind] = np.mean(dealt)
    assert abs(share[0] - 1 / 12) < 0.02
    assert abs(share[4] - 1 / 3) < 0.03
    assert abs(share[40] - 1 / 3) < 0.03


# What an assessor sees


def shape(value: Any) -> Any:
    """What is there, without what it says."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    return [shape(each) for each in value[:1]] if isinstance(value, list) else type(value).__name__


def plain(sql: str) -> str:
    """Without values; a revision is counted up in one of two columns of the same row."""
    sql = re.sub(r"""(SET "state" = (?:'judged'|%s)), "set_aside\"""", r'\1, "revision"', sql)
    sql = re.sub(
        r'"set_aside" = \("judging_assignment"."set_aside"',
        '"revision" = ("judging_assignment"."revision"',
        sql,
    )
    sql = re.sub(
        r'("judging_assignment"."set_aside" = \d)|("judging_assignment"."revision" = \d)', "?", sql
    )
    return re.sub(r"'[^']*'|\b\d+(\.\d+)?\b", "?", sql)


def asked(action: Any) -> tuple[Any, list[str]]:
    with CaptureQueriesContext(connection) as captured:
        answer = action()
    return answer, [plain(q["sql"]) for q in captured if not TRANSACTION.match(q["sql"])]


@pytest.mark.slow
@committed
@pytest.mark.parametrize("labels", [1, 2])
def test_a_judgment_of_gold_asks_the_database_the_same_as_any_other_by_rest(labels: int) -> None:
    _, (anna,) = campaign_of("anna", labels=labels)
    client = rest.client_of(anna)
    held = client.post("/api/campaigns/test/assignments/next/").json()["assignment"]
    found: dict[tuple[bool, bool], set[tuple[str, ...]]] = {}
    shapes = set()
    for _ in range(60):
        body = {"assignment": held["id"], "grade": 1}
        answer, statements = asked(lambda b=body: client.post("/api/campaigns/test/judgments/", b))
        shapes.add(repr(shape(answer.json() | {"next": None})))
        following = answer.json()["next"]
        shapes.add(repr(shape(following)))
        if following["topic"] == held["topic"]:
            kinds = (is_gold(held), is_gold(following))
            found.setdefault(kinds, set()).add(tuple(statements))
        held = following
    assert {(False, False), (True, False), (False, True)} <= set(found)
    every = set.union(*found.values())
    assert len(every) == 1, [set(one) ^ set(other) for one in every for other in every]
    assert all(len(each) <= 12 for each in next(iter(found.values())))
    assert len(shapes) == 2


def is_gold(held: dict[str, Any]) -> bool:
    return Assignment.objects.get(pk=held["id"]).gold


@pytest.mark.slow
@committed
def test_a_page_with_gold_is_the_same_as_any_other_and_undone_in_the_same_way() -> None:
    _made, (anna,) = campaign_of("anna", labels=2, every=3)
    page = Client(HTTP_HX_REQUEST="true")
    page.force_login(anna)
    page.get("/c/test/judge/")
    pages: dict[bool, set[str]] = {True: set(), False: set()}
    saves: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}
    corrections: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}
    for turn in range(40):
        mine = Assignment.objects.select_related("pair").get(assessor=anna, state="leased")
        if turn:
            text = page.get("/c/test/judge/").content.decode()
            pages[mine.gold].add(re.sub(r"[0-9a-f]{32}|csrf[^>]*>|[dg]?\d+|NaN", "", text))
        said = {"grade": "1", "key": f"k{turn}", "seconds": "1.5"}
        answer, statements = asked(lambda m=mine, s=said: page.post(f"/c/test/judge/{m.pk}/", s))
        assert answer.status_code == 200
        again = {"grade": "2", "key": f"c{turn}", "revision": "1", "back": "judge"}
        address = f"/c/test/judged/{mine.pk}/"
        corrected, asked_again = asked(lambda a=address, b=again: page.post(a, b))
        assert corrected.status_code == 200
        here = Assignment.objects.get(assessor=anna, state="leased")
        if turn and here.pair.topic_id == mine.pair.topic_id:
            saves[mine.gold].add(tuple(statements))
            corrections[mine.gold].add(tuple(asked_again))
    assert pages[True]
    assert pages[True] <= pages[False]
    for each in (saves, corrections):
        assert each[True], each
        assert each[True] == each[False], [set(a) ^ set(b) for a in each[True] for b in each[False]]


@database
def test_own_work_lists_gold_like_any_other_and_says_nothing_of_exclusion() -> None:
    made, (anna,) = campaign_of("anna", docnos=10, every=3)
    done = judge_all(made, anna)
    client = rest.client_of(anna)
    rows = client.get("/api/campaigns/test/judgments/?page_size=100").json()["results"]
    assert {row["assignment"] for row in rows} == {each.pk for each in done}
    assert len({repr(shape(row)) for row in rows}) == 1
    assert not any(row["excluded"] for row in rows)
    held = client.get("/api/campaigns/test/assignments/?page_size=100").json()["results"]
    assert {row["state"] for row in held} == {"judged"}
    assert selectors.own_progress(made, anna).judged == len(done)
    assert "topic_progress" not in rows[0]


@database
def test_what_was_put_off_comes_back_and_what_was_skipped_does_not_gold_or_not() -> None:
    made, (anna,) = campaign_of("anna", docnos=12, topics=1, every=3)
    put_off, skipped, done = set(), set(), []
    while held := assignments.claim_next(campaign=made, by=anna):
        held.pair.campaign = made
        kinds = {gold for _, gold in put_off}
        if held.gold not in kinds and len(done) > 1:
            put_off.add((held.pk, held.gold))
            assignments.put_off(assignment=held, by=anna)
        elif held.gold not in {gold for _, gold in skipped} and len(done) > 3:
            skipped.add((held.pk, held.gold))
            assignments.skip(assignment=held, by=anna, reason="cannot")
        else:
            saying = Saying(1, f"k{held.pk}")
            judgments.record(assignment=held, by=anna, saying=saying)
            done.append((held.pk, held.gold))
    assert {gold for _, gold in put_off} == {gold for _, gold in skipped} == {True, False}
    assert put_off <= set(done[-4:])
    assert not skipped & set(done)


# It counts nowhere


@pytest.mark.slow
@database
def test_no_reader_of_labels_sees_gold_and_the_database_refuses_that_it_counts() -> None:
    made, (anna, ben) = campaign_of("anna", "ben", labels=2)
    for person in (anna, ben):
        judge_all(made, person)
    answers = Assignment.objects.filter(gold=True)
    assert answers.count() > 20
    pairs = Pair.every.filter(campaign=made, gold=True)

    assert selectors.labels(pairs.values("pk")) == []
    assert not selectors.current_judgments().filter(assignment__pair__in=pairs).exists()
    said = selectors.given_judgments().filter(assignment__pair__in=pairs)
    assert said.count() == answers.count()  # so that there was something to be seen
    for asked, number in ((True, answers.count()), (False, 2 * made.pairs.count())):
        found = browsing.judgments(made, JudgmentFilter(gold=asked))
        assert {each.assignment.gold for each in found} == {asked}
        assert len(found) == number
    assert not made.pairs.filter(pk__in=pairs).exists()
    assert not BatchPair.objects.filter(pair__in=pairs).exists()
    assert {batch.state for batch in made.batches.all()} == {Batch.State.COMPLETE}
    with pytest.raises(IntegrityError), transaction.atomic():
        answers.update(revision=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        answers.filter(state="judged").update(revision=1, set_aside=0)


@database
def test_gold_is_corrected_and_every_answer_is_kept() -> None:
    made, (anna,) = campaign_of("anna", docnos=12, every=3)
    mine = next(each for each in judge_all(made, anna) if each.gold)
    mine.refresh_from_db()
    assert (mine.state, mine.revision, mine.set_aside) == ("judged", 0, 1)
    said = judgments.correct(assignment=mine, by=anna, saying=Saying(3, "again"), revision=1)
    mine.refresh_from_db()
    assert (said.judgment.revision, mine.revision, mine.set_aside) == (2, 0, 2)
    with pytest.raises(UserError, match="corrected meanwhile"):
        judgments.correct(assignment=mine, by=anna, saying=Saying(2, "late"), revision=1)
    assert sorted(mine.judgments.values_list("grade", flat=True)) == [1, 3]
    assert (
        gold_answers.scores(made)[anna.pk].right == gold_answers.scores(made)[anna.pk].answers - 1
    )


@committed
def test_gold_in_two_tabs_is_stored_once_and_handed_out_once() -> None:
    made, (anna,) = campaign_of("anna", every=3)
    stored = 0
    for turn in range(12):
        mine = assignments.claim_next(campaign=made, by=anna)
        assert mine is not None
        mine.pair.campaign = made
        saying = Saying(1, f"k{turn}")

        def send(m: Assignment = mine, s: Saying = saying) -> Any:
            return desk.judge(assignment=m, by=anna, saying=s, topic=True)

        answers = at_once([send, send])
        stored += sum(recorded.created for recorded, _ in answers)
        assert len({sheet.assignment.pk for _, sheet in answers}) == 1
    assert stored == 12 == Judgment.objects.count()
    assert Assignment.objects.filter(gold=True, state="judged").exists()
    assert Assignment.objects.filter(state="leased").count() == 1


@database
def test_gold_goes_with_excluded_work_and_comes_back_with_it() -> None:
    made, (anna, _ben) = campaign_of("anna", "ben", docnos=10, every=3)
    done = judge_all(made, anna)
    of_gold = [each for each in done if each.gold]
    before = rows_of(made)
    row = exclusions.exclude(
        campaign=made, assessor=anna, by=made.created_by, ground="time", reason="does not look"
    )
    assert {each.state for each in Assignment.objects.filter(assessor=anna)} == {"excluded"}
    assert gold_answers.scores(made)[anna.pk].answers == len(of_gold)
    assert not Exclusion.objects.get(pk=row.pk).looks_at_grades
    count = exclusions.take_back(exclusion=row, by=made.created_by, reason="they do")
    assert count == len(done) - len(of_gold)
    assert rows_of(made) == before


def rows_of(made: Campaign) -> list[Any]:
    rows = Assignment.objects.filter(pair__campaign=made).order_by("pk")
    held = Pair.every.filter(campaign=made).order_by("pk")
    return [
        list(rows.values_list("pk", "state", "revision", "set_aside", "gold")),
        list(held.values_list("pk", "held", "judged")),
    ]


# A pair that is gold and drawn


@database
def test_nobody_meets_a_document_as_gold_and_as_a_drawn_pair() -> None:
    """Gold waits while the drawn pair lacks labels, and then is for those who did not judge it."""
    made, people = campaign_of("anna", "ben", "carl", docnos=6, labels=1, topics=1, every=3)
    add(made, "topic,docno,grade\n" + "\n".join(f"t1,d{n},1" for n in range(6)))
    for person in people:
        judge_all(made, person)
    factories.released_batch(made, [f"e{n}" for n in range(30)], labels=3)
    for person in people:
        judge_all(made, person)
    met = Counter(
        Assignment.objects.values_list("assessor", "pair__topic", "pair__docno").order_by()
    )
    assert set(met.values()) == {1}
    both = Assignment.objects.filter(gold=True, pair__docno__startswith="d")
    assert both.exists()  # or nothing was shown


@database
def test_a_drawn_pair_is_not_handed_to_whoever_met_it_as_gold_and_the_organizer_is_told() -> None:
    made, (anna,) = campaign_of("anna", docnos=20, topics=1, every=3)
    met = next(each.pair.docno for each in judge_all(made, anna) if each.gold)
    factories.released_batch(made, [met, "new"])
    assert [each.pair.docno for each in judge_all(made, anna) if not each.gold] == ["new"]
    assert selectors.empty_queue(made, anna) == "others"
    assert [(each.docno, each.nobody_left) for each in stuck_pairs(made)] == [(met, True)]
    (ben,) = factories.assessors(made, "ben")
    assert [each.pair.docno for each in judge_all(made, ben) if not each.gold] == [met]
    assert stuck_pairs(made) == []


@database
def test_gold_that_is_retired_goes_to_nobody_and_still_tells() -> None:
    made, (anna, ben) = campaign_of("anna", "ben", labels=2, topics=1)
    first = judge_all(made, anna)
    before = gold_answers.scores(made)[anna.pk]
    for row in made.gold_pairs.all():
        gold.retire(gold=row, by=made.created_by)
    assert not any(each.gold for each in judge_all(made, ben))
    assert gold_answers.scores(made)[anna.pk] == before
    assert any(each.gold for each in first)


@database
def test_gold_is_marked_from_a_drawn_pair_whose_label_stays_a_label() -> None:
    made, (anna,) = campaign_of("anna", docnos=5, topics=1)
    judge_all(made, anna)
    pair = made.pairs.get(docno="d3")
    row = gold.mark(campaign=made, by=made.created_by, pair=pair, grades=[2, 1], reason="a fact")
    assert (row.accepted, row.pair.gold, row.pair.docno) == ([1, 2], True, "d3")
    assert len(selectors.labels(made.pairs.values("pk"))) == 5
    with pytest.raises(UserError) as refused:
        gold.mark(campaign=made, by=made.created_by, pair=pair, grades=[2], reason="")
    assert "gold already" in refused.value.data["errors"][0]["message"]


# Files


@database
@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("topic,grade\nt1,1\n", 1, "docno"),
        ("topic,docno,grade\nt1,g0,9\n", 2, "grade"),
        ("topic,docno,grade\nt1,g0,\n", 2, "grade"),
        ("topic,docno,grade\nt9,d1,1\n", 2, "topic"),
        ("topic,docno,grade\nt1,none,1\n", 2, "docno"),
        ("topic,docno,grade\nt1,d1,1\nt1,d1,2\n", 3, "docno"),
        ("topic,docno,grade\nt1,g0,1\n", 2, "docno"),
        ("topic,docno,grade\nt1,d1\n", 2, ""),
        ('topic,docno,grade\nt1,"d1,1\n', 2, ""),
        ("topic,docno,grade,color\nt1,d1,1,red\n", 2, "color"),
        ('{"topic": "t1", "docno": "d1", "grade": 1.5}', 1, "grade"),
        ('{"topic": "t1", "docno": "d1", "grade": true}', 1, "grade"),
        ('{"topic": "t1", "docno": "d1", "grade": 1, "reason": 3}', 1, "reason"),
        ('{"topic": "t1", "docno": "d1", "grade": 1}\n{nonsense', 2, ""),
        ("", None, ""),
        ("topic,docno,grade\nt1,d1," + "9" * 5000 + "\n", 2, "grade"),
    ],
)
def test_a_file_with_a_fault_is_refused_as_a_whole_by_line_and_field(
    text: str, line: int | None, field: str
) -> None:
    made, _ = campaign_of("anna", docnos=3)
    before = GoldPair.objects.count()
    with pytest.raises(UserError) as refused:
        add(made, text)
    error = refused.value.data["errors"][0]
    assert (error["file"], error["line"], error["field"]) == ("gold.csv", line, field)
    assert GoldPair.objects.count() == before == Pair.every.filter(gold=True).count()


def test_csv_and_json_lines_say_the_same() -> None:
    text = "\ufefftopic,docno,grade,reason\n7,d1,2|1,because\n7,d2,0,\n"
    json = '{"topic": 7, "docno": "d1", "grade": [2, 1], "reason": "because"}\n'
    json += '{"topic": "7", "docno": "d2", "grade": 0}\n'
    found = []
    for each in (text, json):
        problems = Problems("f")
        rows = known_pairs.read(each, problems, max_grade=3)
        assert problems.ok
        found.append([(row.topic, row.docno, row.grades, row.reason) for row in rows])
    assert found[0] == found[1] == [("7", "d1", (1, 2), "because"), ("7", "d2", (0,), "")]


@database
def test_topics_that_nothing_was_drawn_from_go_with_their_gold() -> None:
    made = factories.campaign(topics=2)
    upload = made.uploads.get()
    Document.objects.create(campaign=made, upload=upload, docno="g0", text="x")
    add(made, "topic,docno,grade\nt1,g0,1\n")
    uploads.remove(upload=upload, by=made.created_by)
    assert not GoldPair.objects.exists()
    assert not Pair.every.exists()

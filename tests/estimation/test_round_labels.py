"""Labels of a round, read as columns: the same as one by one, whatever they are and how many."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from django.db import connection, models
from django.db.models import Sum
from django.db.models.signals import post_init
from django.db.models.sql.compiler import SQLCompiler
from django.test.utils import CaptureQueriesContext

from estimation.core.arrays import content_digest
from estimation.core.data.scope import place_of_pairs
from estimation.models import Draw, Round
from estimation.selectors import draws_of
from estimation.services import estimates, pools, round_labels, storing, together
from estimation.services.collections import columns_of
from estimation.services.report_files.judgments import label_lines
from estimation.services.round_labels import RoundLabels
from judging import labels
from judging import selectors as judging
from judging.labels import PlacedPairs, label_columns
from judging.models import (
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Judgment,
    KnownGrade,
    Membership,
    Pair,
    User,
)
from judging.services import decisions, jobs, known_grades, members, pseudonyms
from tests.estimation.test_corrections import correct, judgment_of_batch
from tests.support import evaluation
from tests.support.later import join, with_news

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
Line = tuple[int, str, int, bool]


def one_by_one(row: Round) -> list[Line]:
    """The rows in their order, each pair looked up by itself."""
    counted, (pool, _) = together.counted(row), columns_of(row)
    draws = draws_of(row.campaign, {each.row.number: each.batches for each in counted})
    position = {draw.pair_id: place_in(draw, row) for draw in draws}
    assert max(position.values(), default=0) < len(pool)
    said = judging.labels(draws.values("pair"))
    return sorted((position[each.pair], each.assessor, each.grade, each.decided) for each in said)


def place_in(draw: Draw, row: Round) -> int:
    assert draw.round.pool is not None
    assert row.pool is not None
    if draw.round.pool == row.pool:
        return draw.position
    return int(place_of_pairs(pools.load(draw.round.pool), pools.load(row.pool))[draw.position])


def columns(row: Round) -> RoundLabels:
    return RoundLabels.of(row, columns_of(row)[0], together.counted(row))


def lines(found: RoundLabels) -> list[Line]:
    names = [found.names[code] for code in found.assessor.tolist()]
    rows = zip(
        found.pair.tolist(), names, found.grade.tolist(), found.decided.tolist(), strict=True
    )
    return list(rows)


def check(row: Round) -> list[Line]:
    expected, found = one_by_one(row), columns(row)
    assert lines(found) == expected
    assert found.digest() == digest_of(expected)
    return expected


def digest_of(expected: list[Line]) -> str:
    names = sorted({name for _, name, _, _ in expected})
    pairs, people, grades, decided = zip(*expected, strict=True) if expected else ((), (), (), ())
    columns = (
        np.array(pairs, dtype=np.int64),
        np.array([names.index(name) for name in people], dtype=np.int32),
        np.array(grades, dtype=np.int32),
        np.array(decided, dtype=np.bool_),
    )
    return content_digest([json.dumps(names).encode(), *columns])


@pytest.fixture
def second_labels(judged: Round) -> Round:
    """Half of the pairs have two labels, of which one was corrected."""
    correct(judgment_of_batch(judged, 1), 0)
    return judged


@pytest.mark.slow
def test_pairs_with_one_label_and_with_several_after_a_correction(second_labels: Round) -> None:
    found = check(second_labels)
    per_pair = np.unique([line[0] for line in found], return_counts=True)[1]
    assert {1, 2} <= set(per_pair.tolist())
    assert Judgment.objects.filter(revision=2).count() == 1


def test_reports_tell_them_with_three_statements_and_some_of_names(second_labels: Round) -> None:
    shown = second_labels.estimate_sets.get()
    made = {(line.topic, line.docno, line.other): line for line in label_lines(shown)}
    assert len(made) == shown.pair_count
    with CaptureQueriesContext(connection) as captured:
        told = [(line.assessor, line.grade) for line in label_lines(shown)]
    assert len(captured) <= 7
    by_orm = judging.labels(draws_of(second_labels.campaign, shown.all_batches).values("pair"))
    called = pseudonyms.by_name(second_labels.campaign, {each.assessor for each in by_orm})
    assert sorted(told) == sorted((called[each.assessor], each.grade) for each in by_orm)


@pytest.mark.slow
def test_before_any_label(campaign: Campaign) -> None:
    assert check(evaluation.drawn(campaign)) == []


@pytest.mark.slow
def test_what_the_organizer_decided_and_whoever_is_no_member_any_more(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    organizer, role = campaign.created_by, Membership.Role.ASSESSOR
    name, _ = members.add(campaign=campaign, by=organizer, username="Zoë", role=role)
    undecided = list(Pair.objects.filter(batch_pairs__batch__number=1).order_by("pk")[:2])
    decisions.decide(pair=undecided[0], by=campaign.created_by, grade=1, reason="unreadable")
    evaluation.judge(campaign, 1000)
    members.remove(membership=name, by=campaign.created_by)

    found = check(row)

    assert [line[1:] for line in found if line[3]] == [("", 1, True)]
    assert any(line[1].startswith("Zoë") for line in found)
    assert not name.user.memberships.exists()


@pytest.mark.slow
def test_grades_that_were_brought_along(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign)
    upload = campaign.uploads.all()[0]
    some = Pair.objects.filter(campaign=campaign).order_by("docno")[::2]
    KnownGrade.objects.bulk_create(
        KnownGrade(campaign=campaign, upload=upload, topic=pair.topic, docno=pair.docno, grade=1)
        for pair in some
    )
    known_grades.answer(campaign=campaign, by=campaign.created_by)
    evaluation.judge(campaign, 1000)

    assert {"anna", members.QRELS} <= {line[1] for line in check(row)}


ROUNDS: dict[str, dict[str, Any]] = {
    "draws": {"method": "iid", "eps": 0.1},
    "preferences": {"measure": "#ofSwaps", "reported": ["wSwaps"], "prior": "constant", "depth": 4},
    "topics": {"method": "query", "measure": "ERR@5", "budget": 60, "batch_size": 40,
               "reported": [], "extra_share": 0.0},
    "active": {"method": "active", "measure": "AP", "reported": [], "extra_share": 0.0,
               "budget": 24, "batch_size": 8},
    "adaptive": {"method": "adaptive", "extra_share": 0.3},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ROUNDS)
def test_every_kind_of_round(campaign: Campaign, kind: str) -> None:
    row = evaluation.drawn(campaign, **ROUNDS[kind])
    evaluation.judge(campaign, 1000, truth=Anything())
    assert check(row)


@pytest.mark.slow
def test_draws_that_come_batch_by_batch_are_found_when_they_are_there(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = evaluation.drawn(campaign, **ROUNDS["adaptive"])
    number = 0

    def judge_a_batch() -> None:
        (served,) = Batch.objects.filter(state__in=[Batch.State.WAITING, Batch.State.OPEN])
        wanted = BatchPair.objects.filter(batch=served).aggregate(labels=Sum("labels"))["labels"]
        assert evaluation.judge(campaign, wanted, truth=Anything()) == wanted
        row.refresh_from_db()

    for _ in range(2):
        judge_a_batch()
        number, before = len(check(row)), number
        assert number > before

    # a broken twin: draws that are kept whatever was drawn since
    same = round_labels._Drawn.of(together.counted(row)[0])
    monkeypatch.setattr(round_labels._Drawn, "of", lambda _: same)
    judge_a_batch()
    with pytest.raises(AssertionError):
        check(row)


@pytest.mark.slow
@pytest.mark.on_both
def test_labels_of_pairs_that_lie_apart_are_those_of_them_alone(
    second_labels: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a site with many campaigns, of which the row ids of pairs take turns."""
    expected = check(second_labels)
    complete = {second_labels.number: together.counted(second_labels)[0].batches}
    others = (
        draws_of(second_labels.campaign, complete).order_by("pair").values_list("pk", flat=True)
    )
    round_labels._drawn.cache_clear()
    monkeypatch.setattr(labels, "_SPARSE", 0)
    assert check(second_labels) == expected
    some = Draw.objects.filter(pk__in=others[::3])
    place = dict(some.values_list("pk", "position"))
    for sparse in (0, 1000):
        monkeypatch.setattr(labels, "_SPARSE", sparse)
        found = label_columns(PlacedPairs.of(some, "position"))
        told = [
            (pair, found.names[who], grade)
            for pair, who, grade in zip(
                found.places[0].tolist(), found.assessor.tolist(), found.grade.tolist(), strict=True
            )
        ]
        assert sorted(told) == [line[:3] for line in expected if line[0] in place.values()]


class Anything(dict[tuple[str, str], int]):
    def __missing__(self, key: tuple[str, str]) -> int:
        return len(key[1]) % 2


@pytest.mark.slow
@pytest.mark.parametrize("larger", [False, True])
@pytest.mark.on_both
def test_a_label_counts_once_however_many_rounds_drew_its_pair(
    campaign: Campaign, *, larger: bool
) -> None:
    first = evaluation.drawn(campaign, extra_share=0.0)
    if larger:
        join(campaign, with_news("later", known=3))
    second = evaluation.drawn(campaign, seed="t", with_earlier=True, extra_share=0.5)
    evaluation.judge(campaign, 1000, truth=Anything())
    both = first.draws.filter(pair__in=second.draws.values("pair"))
    assert both.exists()

    assert (first.pool_id != second.pool_id) is larger
    assert len(check(second)) == len({line[:2] for line in check(second)})


# ----------------------------------------------------------------------------- how much is asked


@contextmanager
def made() -> Iterator[list[type[models.Model]]]:
    """The classes of all rows of which an instance is made."""
    found: list[type[models.Model]] = []

    def note(sender: type[models.Model], **_rest: object) -> None:
        found.append(sender)

    post_init.connect(note)
    try:
        yield found
    finally:
        post_init.disconnect(note)


def asked_by(work: Callable[[Round], object], row: Round) -> tuple[int, list[type[models.Model]]]:
    with CaptureQueriesContext(connection) as said, made() as instances:
        work(row)
    return len(said), instances


@pytest.mark.slow
def test_many_judgments_take_no_more_statements_and_no_more_instances(campaign: Campaign) -> None:
    few = evaluation.drawn(campaign, budget=20, batch_size=20)
    many = evaluation.drawn(campaign, budget=80, batch_size=80, seed="t")
    evaluation.judge(campaign, 1000)
    ways: list[Callable[[Round], object]] = [columns, estimates.gather, again]
    for work in ways:
        for row in (few, many):
            work(row)  # what is looked up once in a process
        of_few, of_many = asked_by(work, few), asked_by(work, many)
        assert of_few == of_many
        assert not {Judgment, Assignment, Draw, Pair, User} & set(of_many[1])
    assert asked_by(columns, few)[0] <= 6


def again(row: Round) -> None:
    row.estimate_sets.all().delete()
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    storing.store(row, outcome, "matrices/none")


def test_a_recompute_compiles_few_statements_anew(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To build and compile the others took several times as long as the database does."""
    row = evaluation.drawn(campaign, budget=40, batch_size=20)
    evaluation.judge(campaign, 1000)
    built: list[str] = []
    as_sql = SQLCompiler.as_sql

    def seen(self: SQLCompiler, *args: Any, **options: Any) -> Any:
        built.append(self.query.model.__name__)
        return as_sql(self, *args, **options)

    monkeypatch.setattr(SQLCompiler, "as_sql", seen)
    for _ in range(2):  # the first compiles what all others run
        built.clear()
        row.estimate_sets.all().delete()
        jobs.run(jobs.request("recompute", row.pk, campaign=campaign).pk)
        assert row.estimate_sets.get().label_count
    assert set(built) <= {"EstimateSet", "User"}


def way_to_labels(row: Round, again: str = "") -> str:
    """How SQLite finds draws and labels, in its own words; those of before if it is asked `again`
    alike, as the connection keeps them."""
    round_labels._drawn.cache_clear()
    with CaptureQueriesContext(connection) as said:
        columns(row)
    statements = [each["sql"] for each in said if "group_concat" in each["sql"]]
    assert len(statements) == 2
    with connection.cursor() as cursor:
        return " ".join(
            str(step[-1])
            for statement in statements
            for step in cursor.execute(f"EXPLAIN QUERY PLAN {statement} {again}").fetchall()
        )


INDEXES = {"draw_of_label", "assignment_of_label"}


@pytest.mark.sqlite_only
def test_draws_and_labels_are_read_from_indexes_alone(judged: Round) -> None:
    def used(again: str = "") -> set[str]:
        found = way_to_labels(judged, again)
        return {name for name in INDEXES if f"USING COVERING INDEX {name} " in found}

    assert used() == INDEXES
    with connection.cursor() as cursor:  # a broken twin: that of the constraint has no grade
        cursor.execute("DROP INDEX assignment_of_label")
    assert used("-- again") == INDEXES - {"assignment_of_label"}


# ------------------------------------------------------------------------------ order of arrival


def arrived(row: Round, seed: int) -> None:
    """The same judgments, as if they had come in another order."""
    judgments = list(Judgment.objects.select_related("assignment"))
    np.random.default_rng(seed).shuffle(judgments)  # type: ignore[arg-type]
    Judgment.objects.all().delete()
    Assignment.objects.all().delete()
    for judgment in judgments:
        assignment, judgment.pk = judgment.assignment, None
        assignment.pk = None
        assignment.save(force_insert=True)
        judgment.assignment = assignment
        judgment.save(force_insert=True)


def numbers(row: Round) -> tuple[str, str]:
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    return outcome.digest, outcome.inputs.gathered.label_digest


def in_order_of_arrival(row: Round) -> str:
    """A broken twin of the digest, over the rows in the order in which they came."""
    drawn = judging.current_judgments().filter(assignment__pair__in=row.draws.values("pair"))
    rows = list(drawn.order_by("pk").values_list("assignment__pair", "assessor", "grade"))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


@pytest.mark.slow
def test_the_order_in_which_judgments_came_is_in_no_bit(judged: Round) -> None:
    before, twin = numbers(judged), in_order_of_arrival(judged)
    for seed in range(3):
        arrived(judged, seed)
        assert numbers(judged) == before
        assert in_order_of_arrival(judged) != twin


def test_one_other_grade_is_in_the_digest(judged: Round) -> None:
    before = columns(judged).digest()
    said = Assignment.objects.filter(revision__gte=1).order_by("pk")[0]
    Assignment.objects.filter(pk=said.pk).update(grade=(said.grade + 1) % 2)
    assert columns(judged).digest() != before

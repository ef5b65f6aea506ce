"""Alpha of a machine judge and people: against rows of the database one by one; what is not known.

The machine's answers are stored as a worker stores them; people judge through the services.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from estimation.endpoints import Endpoint
from estimation.figures import number
from estimation.machine_findings import findings_on
from estimation.models import MachineAnswer, MachineJudge, Round
from estimation.services.machines import judges
from estimation.services.machines.agreement import compared
from judging import selectors as judging
from judging.models import Campaign, Topic
from tests.core.test_core_alpha import against_one_by_one
from tests.estimation.test_exclusions import judge_by
from tests.support import evaluation, factories, rest
from tests.support.evaluation import SMALL
from tests.support.pages import text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
Says = Callable[[str, str], int]


def machine(made: Campaign, settings: Any, says: Says, *, share: int = 1) -> MachineJudge:
    """One that graded every pair of the first of every ``share`` documents."""
    endpoint = Endpoint("stub", "http://127.0.0.1:9/v1", ("small",))
    settings.MACHINE_ENDPOINTS = {"stub": endpoint}
    plan = judges.MachinePlan("m", "stub", "small", max_calls=500)
    judge = judges.create(campaign=made, by=made.created_by, plan=plan)
    prompt, topics = judge.prompts.get(), {each.topic_id: each for each in Topic.objects.all()}
    pairs = [pair for at, pair in enumerate(sorted(SMALL.truth)) if at % share == 0]
    MachineAnswer.objects.bulk_create(
        MachineAnswer(
            prompt=prompt, topic=topics[topic], docno=docno, outcome="graded", tries=1, reply="",
            grade=says(topic, docno), seconds=0.1, tokens_in=1, tokens_out=1,
        )
        for topic, docno in pairs
    )  # fmt: skip
    return judge


def kinder(topic: str, docno: str) -> int:
    return min(3, SMALL.truth[topic, docno] + sum(map(ord, topic + docno)) % 2)


def disputed(made: Campaign, **plan: Any) -> Round:
    """Three people, two labels for some pairs, grades that differ."""
    row = evaluation.drawn(made, **{"extra_share": 0.5, "batch_size": 30} | plan)
    factories.assessors(made, "cara")
    while judge_by(made, "anna", "ben", "cara"):
        factories.run_due_jobs()
    row.refresh_from_db()
    return row


def one_by_one(
    judge: MachineJudge, row: Round, metric: Any, *, weighted: bool, **only: Any
) -> float:
    """From draws, answers and judgments alone; ``only`` draws like this."""
    said = {
        (answer.topic_id, answer.docno): answer.grade
        for answer in MachineAnswer.objects.filter(prompt__judge=judge)
    }
    draws = list(row.draws.filter(**only).select_related("pair"))
    given: dict[int, list[int]] = defaultdict(list)
    for label in judging.labels(row.draws.values("pair")):
        given[label.pair].append(label.grade)
    own = [said.get((each.pair.topic_id, each.pair.docno), -1) for each in draws]
    weight = [1.0 / each.probability if weighted else 1.0 for each in draws]
    return against_one_by_one(own, [given[each.pair_id] for each in draws], weight, metric)


@pytest.mark.slow
@pytest.mark.on_both
def test_it_is_that_of_the_rows_one_by_one_as_judged_and_by_the_draw(
    campaign: Campaign, settings: Any, organizer: Client
) -> None:
    row = disputed(campaign)
    judge = machine(campaign, settings, kinder, share=2)
    found = compared(judge)

    for metric in ("nominal", "ordinal", "interval"):
        plain, drawn = (
            one_by_one(judge, row, metric, weighted=weighted) for weighted in (False, True)
        )
        assert found["plain"][metric][0] == pytest.approx(plain, abs=1e-12)
        assert found["drawn"][metric][0] == pytest.approx(drawn, abs=1e-12)
        assert drawn != pytest.approx(plain, abs=1e-6)
        assert found["plain"][metric][1] < plain < found["plain"][metric][2]
    assert found["plain"]["pairs"] == found["pairs"] < row.draws.count()
    for each in found["topics"]:
        rows = {"pair__topic__topic_id": each["topic"]}
        if each["alpha"] is not None:
            plain = one_by_one(judge, row, "ordinal", weighted=False, **rows)
            assert each["alpha"] == pytest.approx(plain, abs=1e-12)
            drawn = one_by_one(judge, row, "ordinal", weighted=True, **rows)
            assert each["drawn"] == pytest.approx(drawn, abs=1e-12)
    assert [each["batch"] for each in found["batches"]] == [1, 2]
    for each in found["batches"]:
        inside = {"batch_number": each["batch"]}
        plain = one_by_one(judge, row, "ordinal", weighted=False, **inside)
        assert each["alpha"] == pytest.approx(plain, abs=1e-12)
    assert sum(each["pairs"] for each in found["topics"]) == found["pairs"]
    assert sum(each["pairs"] for each in found["batches"]) == found["pairs"]


def grades_of(judge: MachineJudge, row: Round) -> dict[int, int]:
    """What the machine says of the drawn pairs."""
    said = {
        (answer.topic_id, answer.docno): answer.grade
        for answer in MachineAnswer.objects.filter(prompt__judge=judge)
    }
    pairs = [each.pair for each in row.draws.select_related("pair")]
    found = {pair.pk: said.get((pair.topic_id, pair.docno)) for pair in pairs}
    return {pair: grade for pair, grade in found.items() if grade is not None}


@pytest.mark.slow
@pytest.mark.on_both
def test_beside_it_stands_that_of_people_alone_on_the_same_pairs(
    campaign: Campaign, settings: Any, organizer: Client
) -> None:
    package = pytest.importorskip("krippendorff")
    row = disputed(campaign)
    judge = machine(campaign, settings, kinder, share=2)
    found = compared(judge)

    counts: dict[int, list[int]] = {pair: [0] * 4 for pair in grades_of(judge, row)}
    for label in judging.labels(row.draws.values("pair")):
        if label.pair in counts:
            counts[label.pair][label.grade] += 1
    table = [each for each in counts.values() if sum(each) > 1]
    for metric in ("nominal", "ordinal", "interval"):
        theirs = package.alpha(value_counts=table, level_of_measurement=metric)
        assert found["alone"][metric][0] == pytest.approx(theirs, abs=1e-9)
    assert found["alone"]["pairs"] == len(table) < found["pairs"]


@pytest.mark.slow
def test_page_and_answer_tell_it_with_and_without_the_draw(
    campaign: Campaign, settings: Any, organizer: Client
) -> None:
    disputed(campaign)
    judge = machine(campaign, settings, kinder)
    found = compared(judge)
    MachineJudge.objects.filter(pk=judge.pk).update(agreement=found)

    there = reverse("machine-detail", args=[campaign.slug, judge.pk])
    said = text(organizer.get(there))
    for name in ("plain", "drawn", "alone"):
        value, low, high = (number(each, 2) for each in found[name]["ordinal"])
        assert f"{value} ({low} to {high})" in said
    for words in ("As judged", "Whole pool", "People alone", "By grade", "By batch", "Said again"):
        assert words in said
    client = rest.client_of(campaign.created_by)
    told = client.get(f"/api/campaigns/{campaign.slug}/machines/{judge.pk}/").json()["agreement"]
    for name in ("plain", "drawn", "alone", "grades", "batches", "topics"):
        assert told[name] == found[name]

    with CaptureQueriesContext(connection) as with_it:
        organizer.get(there)
    # What an earlier version stored has none of it, and says so.
    new = ("plain", "drawn", "alone", "grades", "batches")
    old = {name: each for name, each in found.items() if name not in new}
    old["topics"] = [
        {name: each[name] for name in ("topic", "labels", "bias", "error")}
        for each in found["topics"]
    ]
    MachineJudge.objects.filter(pk=judge.pk).update(agreement=old)
    with CaptureQueriesContext(connection) as without:
        assert "is from an earlier version" in text(organizer.get(there))
    assert len(with_it) == len(without)
    told = client.get(f"/api/campaigns/{campaign.slug}/machines/{judge.pk}/").json()["agreement"]
    assert (told["plain"], told["alone"], told["grades"], told["batches"]) == (None, None, None, [])


@pytest.mark.slow
def test_where_pairs_were_chosen_by_what_was_found_it_is_of_just_these_pairs(
    campaign: Campaign, settings: Any, organizer: Client
) -> None:
    disputed(campaign, method="active", reported=[], extra_share=0.0)
    found = compared(machine(campaign, settings, kinder))
    assert found["plain"]["ordinal"][0] is not None
    assert (found["drawn"], found["grades"]["drawn"], found["weighted"]) == (None, None, False)
    assert {each["drawn"] for each in found["topics"]} == {None}
    assert len(found["batches"]) > 1
    assert found["alone"] is None
    assert any("nobody knows whether" in each.text for each in findings_on(found))


@pytest.mark.slow
def test_weights_of_adaptive_rounds_are_used_too(
    campaign: Campaign, settings: Any, organizer: Client
) -> None:
    disputed(campaign, method="adaptive")
    found = compared(machine(campaign, settings, kinder))
    assert found["weighted"]
    assert found["drawn"]["ordinal"][0] != pytest.approx(found["plain"]["ordinal"][0], abs=1e-9)
    assert [each["batch"] for each in found["batches"]] == [1, 2]


@pytest.mark.slow
def test_what_is_not_known_is_said(campaign: Campaign, settings: Any, organizer: Client) -> None:
    row = disputed(campaign)
    judge = machine(campaign, settings, kinder)
    answers = MachineAnswer.objects.filter(prompt__judge=judge)

    drawn = list(row.draws.select_related("pair").order_by("pk"))
    keys = {(each.pair.topic_id, each.pair.docno) for each in drawn}
    one = drawn[0].pair
    kept = answers.get(topic=one.topic, docno=one.docno)
    answers.exclude(pk=kept.pk).delete()
    found = compared(judge)
    assert (found["pairs"], found["plain"]["pairs"]) == (1, 1)
    assert found["plain"]["ordinal"][1:] == [None, None]
    assert set(found["plain"]["cautions"]) <= {"few", "constant"}
    assert any("rests on" in each.text for each in findings_on(found))
    MachineJudge.objects.filter(pk=judge.pk).update(agreement=found)
    there = reverse("machine-detail", args=[campaign.slug, judge.pk])
    assert "Machine and people" in text(organizer.get(there))

    answers.all().delete()
    assert compared(judge) == {}  # it graded none of the judged pairs

    away = next(key for key in sorted(SMALL.truth) if key not in named(keys))
    add(judge, campaign, *away, grade=2)
    assert compared(judge) == {}


def named(keys: set[tuple[int, str]]) -> set[tuple[str, str]]:
    names = dict(Topic.objects.values_list("pk", "topic_id"))
    return {(names[topic], docno) for topic, docno in keys}


def add(judge: MachineJudge, made: Campaign, topic: str, docno: str, *, grade: int) -> None:
    MachineAnswer.objects.create(
        prompt=judge.prompts.get(), topic=made.topics.get(topic_id=topic), docno=docno, grade=grade,
        outcome="graded", tries=1, reply="", seconds=0.1, tokens_in=1, tokens_out=1,
    )  # fmt: skip


@pytest.mark.slow
def test_where_all_grades_are_one_there_is_no_alpha(
    campaign: Campaign, settings: Any, organizer: Client
) -> None:
    evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 1000, truth=dict.fromkeys(SMALL.truth, 1))
    judge = machine(campaign, settings, lambda *_: 1)
    found = compared(judge)
    assert found["plain"]["cautions"] == ["constant"]
    for told in (found["plain"], found["drawn"]):
        assert told["ordinal"] == [None, None, None]
    assert {each["alpha"] for each in (*found["topics"], *found["batches"])} == {None}
    assert set(found["grades"]["alpha"]) == {None}
    assert found["alone"] is None
    assert not any("alpha" in each.text for each in findings_on(found))
    assert any("one and the same" in each.text for each in findings_on(found))
    MachineJudge.objects.filter(pk=judge.pk).update(agreement=found)
    said = text(organizer.get(reverse("machine-detail", args=[campaign.slug, judge.pk])))
    assert "one grade" in said
    assert "nan" not in said.split("Machine and people")[1].split("Latest answers")[0]

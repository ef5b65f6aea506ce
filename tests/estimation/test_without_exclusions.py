"""How far the numbers move without the exclusions: what they become when these are taken back."""

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from django.test import Client

from estimation import report_data, selectors
from estimation.core.rounds.results import Evaluation
from estimation.models import EstimateSet, Round
from estimation.services import collections, estimates, taken_back
from estimation.services.report_files import estimates_json, page, tables_tex
from estimation.services.round_labels import RoundLabels
from estimation.services.together import Counted
from judging.models import Assignment, Campaign, Exclusion, Judgment, Pair, User
from judging.services import assignments, campaigns, decisions, judgments, pseudonyms, seniors
from judging.signals import said_aside
from tests.core.length import bounded
from tests.estimation.test_exclusions import exclude, judge_by, judge_out, latest, take_back
from tests.support import evaluation, factories, rest
from tests.support.kept import Kept
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

METHODS = ["poisson", "adaptive", "iid", "priority"]
NOT_YET = "is not known yet: no worker has looked since they changed"
NOBODY = "Nobody’s work is excluded."


def excluded_two(made: Campaign, **plan: Any) -> Round:
    """Of four who judged two are excluded, on two grounds; others have judged the freed places."""
    row = evaluation.drawn(made, **{"extra_share": 0.0} | plan)
    factories.assessors(made, "mallory", "trudy")
    judge_out(made, "anna", "ben", "mallory", "trudy")
    exclude(made, "mallory", "time")
    exclude(made, "trudy", "grades")
    factories.assessors(made, "cara")
    judge_out(made, "anna", "ben", "cara")
    row.refresh_from_db()
    return row


@pytest.fixture
def excluded(campaign: Campaign, kept: Kept) -> Round:
    return kept("two are excluded", lambda: excluded_two(campaign), campaign)


def stored(row: Round) -> dict[str, Any]:
    found: dict[str, Any] = selectors.label_quality(latest(row))["excluded"]
    return found


def way(row: Round, ground: str = "") -> dict[str, Any]:
    (found,) = [each for each in stored(row)["ways"] if each["ground"] == ground]
    return dict(found)


def values(row: Round, measure: str) -> dict[str, float | None]:
    rows = latest(row).estimates.filter(measure=measure, primary=True).select_related("run")
    return {each.run.tag: None if each.unknown else each.value for each in rows}


def in_force(made: Campaign, name: str) -> Exclusion:
    return made.exclusions.select_related("campaign", "assessor", "decided_by").get(
        ended=None, assessor__username=name
    )


def differences(row: Round, told: dict[str, Any]) -> Iterator[str]:
    """Of what was told and what the latest estimates are."""
    for each in told["measures"]:
        now = values(row, each["measure"])
        then = dict(zip(each["runs"], each["otherwise"], strict=True))
        if now != pytest.approx(then, abs=1e-12):
            yield f"{each['measure']}: {then} was told, {now} came"


def surely_better(shown: EstimateSet, measure: str) -> set[tuple[str, str]]:
    found = selectors.pairwise(shown, measure)
    pairs = np.argwhere(found.verdicts == 1).tolist()
    return {(found.runs[one], found.runs[two]) for one, two in pairs}


def named(told: dict[str, Any], kind: str) -> set[tuple[str, str]]:
    assert told["verdicts"][kind]["count"] == len(told["verdicts"][kind]["named"])
    return {(better, worse) for better, worse in told["verdicts"][kind]["named"]}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS[:: bounded(2, 1)])
@pytest.mark.parametrize("labels", [1, 2])
def test_it_is_what_the_estimates_become(campaign: Campaign, method: str, labels: int) -> None:
    row = excluded_two(campaign, method=method, labels=labels)
    told = {ground: way(row, ground) for ground in ("", "time", "grades")}
    assert told[""]["labels"] == told["time"]["labels"] + told["grades"]["labels"] > 0
    assert (told[""]["people"], told["time"]["people"]) == (2, 1)
    assert [each["measure"] for each in told[""]["measures"]] == ["DCG@10", "P@10"]
    before, batches = {m: values(row, m) for m in ("DCG@10", "P@10")}, latest(row).batches
    certain = {measure: surely_better(latest(row), measure) for measure in before}
    for each in told[""]["measures"]:
        assert dict(zip(each["runs"], each["values"], strict=True)) == before[each["measure"]]
    assert list(differences(row, told[""])), "with the exclusions the numbers are others"

    take_back(in_force(campaign, "mallory"))
    assert list(differences(row, told["time"])) == []
    assert [each["ground"] for each in stored(row)["ways"]] == [""], "one ground is all there is"
    assert way(row)["people"] == 1
    take_back(in_force(campaign, "trudy"))
    assert list(differences(row, told[""])) == []
    assert latest(row).batches == batches
    for each in told[""]["measures"]:
        now, measure = surely_better(latest(row), each["measure"]), each["measure"]
        turned = {(worse, better) for better, worse in named(each, "turn")}
        assert named(each, "appear") | turned == now - certain[measure]
        assert named(each, "fall") | named(each, "turn") == certain[measure] - now
    assert "excluded" not in selectors.label_quality(latest(row))


@pytest.mark.slow
def test_twins_are_caught(
    campaign: Campaign, excluded: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that counts excluded labels in the place of those that others gave meanwhile, and one
    that forgets them."""
    row = excluded
    inputs = estimates.gather(row)
    right = taken_back.facts(row, latest(row), inputs)
    assert right == stored(row)["ways"]
    both = taken_back._labels
    pool = inputs.collection.pool

    def alone(*given: Any) -> RoundLabels:
        found = both(*given)
        out = {at for at, name in enumerate(found.names) if name in ("mallory", "trudy")}
        theirs = np.isin(found.assessor, list(out))
        kept = theirs | ~np.isin(found.pair, found.pair[theirs])
        columns = {at: getattr(found, at)[kept] for at in ("pair", "grade", "assessor", "decided")}
        return RoundLabels(**columns, names=found.names)

    def forgotten(row: Round, _inputs: object, counted: Any, _people: object) -> RoundLabels:
        return RoundLabels.of(row, pool, counted)

    told = {}
    for twin in (alone, forgotten):
        monkeypatch.setattr(taken_back, "_labels", twin)
        told[twin] = taken_back.facts(row, latest(row), inputs)[0]
    for name in ("mallory", "trudy"):
        take_back(in_force(campaign, name))
    assert list(differences(row, right[0])) == []
    assert all(list(differences(row, each)) for each in told.values())


@pytest.mark.slow
@pytest.mark.on_both
def test_of_fewer_batches_it_is_told_of_the_same(campaign: Campaign) -> None:
    """Of three batches the first alone was judged again: nothing moves but its labels."""
    row = evaluation.drawn(campaign)
    judge_out(campaign, "anna", "ben")
    exclude(campaign, "ben")
    factories.assessors(campaign, "cara")
    while selectors.complete_batches(row) < 1:
        assert judge_by(campaign, "anna", "cara", most=1)
    factories.run_due_jobs()
    shown, told = latest(row), way(row)
    assert (shown.batches, shown.look) == (1, 1)

    take_back(in_force(campaign, "ben"))
    assert latest(row).batches == 3
    inputs = estimates.gather(row)
    look = collections.gather(row, [Counted(row, 1)])
    again = look.collection.evaluate(inputs.joined, measures=inputs.collection.measures)
    assert isinstance(again, Evaluation)
    for each, result in zip(told["measures"], again.results, strict=True):
        found = dict(zip(result.runs, taken_back.known_values(result), strict=True))
        then = dict(zip(each["runs"], each["otherwise"], strict=True))
        assert then == pytest.approx(found, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["beside", "supersede"])
def test_senior_grades_count_then_as_they_do_now(campaign: Campaign, rule: str) -> None:
    row = excluded_two(campaign, labels=2)
    campaigns.amend(campaign=campaign, by=campaign.created_by, chosen={"senior_grades": rule})
    pairs = Pair.objects.filter(
        assignments__state=Assignment.State.EXCLUDED, judged__gte=1
    ).distinct()
    for pair in pairs.select_related("campaign", "topic").order_by("pk")[:6]:
        seniors.give(pair=pair, by=campaign.created_by, grade=3, reason="on second thoughts")
    factories.run_due_jobs()
    told = way(row)
    for name in ("mallory", "trudy"):
        take_back(in_force(campaign, name))
    assert list(differences(row, told)) == []


@pytest.mark.slow
def test_what_was_decided_of_a_freed_pair_goes_then(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    judge_out(campaign, "anna", "ben")
    exclude(campaign, "ben")
    freed = list(Pair.objects.filter(assignments__assessor__username="ben", judged=0))
    assert freed
    for pair in freed:
        decisions.decide(pair=pair, by=campaign.created_by, grade=3, reason="alone")
    judge_out(campaign, "anna")
    assert latest(row).decided_count == len(freed)
    told = way(row)
    take_back(in_force(campaign, "ben"))
    assert latest(row).decided_count == 0
    assert list(differences(row, told)) == []


@pytest.mark.slow
def test_it_follows_judgments_exclusions_and_what_is_said_aside(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign)
    factories.assessors(campaign, "mallory")
    judge_by(campaign, "anna", "ben", "mallory", most=40)
    factories.run_due_jobs()
    assert latest(row).batches >= 1
    assert "excluded" not in selectors.label_quality(latest(row))

    idle = factories.user("idle")
    campaign.memberships.create(user=idle, role="assessor")
    shown = latest(row)
    exclude(campaign, "idle")
    assert latest(row) == shown, "no label is another one"
    assert way(row)["labels"] == 0
    assert all(each["values"] == each["otherwise"] for each in way(row)["measures"])

    held = assignments.claim_next(campaign=campaign, by=User.objects.get(username="mallory"))
    exclude(campaign, "mallory")
    judge_out(campaign, "anna", "ben")
    before = way(row)
    assert before["labels"] > 0
    assert held is not None
    shown = latest(row)
    saying = judgments.Saying(grade=3, key="late")
    judgments.record(assignment=held, by=held.assessor, saying=saying)
    factories.run_due_jobs()
    assert latest(row) == shown
    assert way(row)["labels"] == before["labels"] + 1, "it was said, and counts nowhere"

    take_back(in_force(campaign, "idle"))
    assert way(row)["people"] == 1
    told = way(row)
    take_back(in_force(campaign, "mallory"))
    assert list(differences(row, told)) == []


@pytest.mark.slow
def test_twin_that_is_not_told_of_what_is_said_aside_stays_behind(excluded: Round) -> None:
    row = excluded
    before = way(row)
    aside = Assignment.objects.filter(
        assessor__username="mallory", state=Assignment.State.EXCLUDED, set_aside=1
    ).select_related("pair__campaign", "assessor")
    first, second = list(aside.order_by("pk")[:2])

    def correct(assignment: Assignment) -> None:
        (said,) = Judgment.objects.filter(assignment=assignment)
        saying = judgments.Saying(grade=3 - said.grade, key=f"other-{assignment.pk}")
        judgments.correct(assignment=assignment, by=assignment.assessor, saying=saying, revision=1)
        factories.run_due_jobs()

    (receiver,) = [each[1]() for each in said_aside.receivers]
    said_aside.disconnect(dispatch_uid="look-at-labels-after-aside", sender=Campaign)
    try:
        correct(first)
    finally:
        said_aside.connect(receiver, sender=Campaign, dispatch_uid="look-at-labels-after-aside")
    assert way(row) == before
    correct(second)
    assert way(row) != before


@pytest.mark.slow
def test_page_answer_and_report_say_the_same(
    campaign: Campaign, excluded: Round, organizer: Client
) -> None:
    row = excluded
    figure = report_data.without_exclusions(row, latest(row))
    assert figure is not None
    assert figure.all is not None
    assert [each.name for each in figure.by_ground] == [
        "Time: too fast to have read", "Grades: what they gave, or how far they agree with others",
    ]  # fmt: skip
    assert [each.looks_at_grades for each in figure.ways] == [False, False, True]
    said = text(organizer.get(address("live-labels", campaign, 1)))
    written = page.make(row, latest(row))
    tables = tables_tex.make(row, latest(row))
    assert len(figure.findings) == 2
    for each in figure.findings:
        assert re.match(r"(DCG|P)@10: values move by \d\.\d+ at most", each.text), each.text
        assert each.text in said
        assert each.text in written
    answer = (
        rest.client_of(campaign.created_by)
        .get(f"/api/campaigns/{campaign.slug}/label-quality/?round=1")
        .json()["exclusions"]
    )
    assert answer["known"]
    assert [each["text"] for each in answer["findings"]] == [e.text for e in figure.findings]
    assert answer["ways"] == stored(row)["ways"]
    document = json.loads(estimates_json.make(row, latest(row)))["exclusions"]
    assert document["if_it_counted"] == stored(row)["ways"]
    for moved in figure.all.measures:
        assert len(moved.runs) == 4
        for run in moved.runs:
            cells = (run.run, run.place, run.value, run.other_place, run.other_value, run.move)
            assert all(cell in said and cell in written for cell in cells)
            line = " & ".join([*cells, run.half_widths]).replace("_", r"\_").replace("−", "$-$")
            assert line in tables

    called = pseudonyms.by_name(campaign, ["mallory", "trudy"])
    for name, pseudonym in called.items():
        if name:
            assert name not in written + tables + json.dumps(document)
            assert pseudonym in written
            assert pseudonym in tables
    assert {each["who"] for each in document["in_force"]} == set(called.values()) - {""}


@pytest.mark.slow
def test_where_it_is_not_known_that_is_said_and_nobody_is_nobody(
    campaign: Campaign, excluded: Round, organizer: Client
) -> None:
    row = excluded
    there = address("live-labels", campaign, 1)
    api, asked = rest.client_of(campaign.created_by), f"/api/campaigns/{campaign.slug}/"
    title = "If excluded work counted"
    assert title in text(organizer.get(there))

    shown = latest(row)
    EstimateSet.objects.filter(pk=shown.pk).update(quality=None)
    shown.refresh_from_db()
    told = api.get(f"{asked}label-quality/").json()["exclusions"]
    assert (told["known"], told["ways"]) == (False, [])
    for said in (text(organizer.get(there)), page.make(row, shown), told["findings"][0]["text"]):
        assert NOT_YET in said
    assert NOT_YET in tables_tex.make(row, shown)
    assert json.loads(estimates_json.make(row, shown))["exclusions"]["if_it_counted"] is None
    assert estimates_json.make(row, shown).count("in_force") == 1

    for name in ("mallory", "trudy"):
        take_back(in_force(campaign, name))
    assert title not in text(organizer.get(there))
    assert api.get(f"{asked}label-quality/").json()["exclusions"] is None
    written = page.make(row, latest(row))
    assert NOBODY in written
    assert title not in written
    assert "excluded" not in tables_tex.make(row, latest(row))


@pytest.mark.slow
def test_what_was_worked_out_for_other_exclusions_is_not_told(
    campaign: Campaign, excluded: Round, organizer: Client
) -> None:
    row = excluded
    there = address("live-labels", campaign, 1)
    Exclusion.objects.filter(assessor__username="trudy").update(ended="2026-01-01T00:00Z")
    assert NOT_YET in text(organizer.get(there))
    figure = report_data.without_exclusions(row, latest(row))
    assert figure is not None
    assert not figure.known

"""While a round runs, numbers hold at every look; when it has ended as planned, at that one."""

import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client

from estimation import selectors
from estimation.core.inference.looks import Look
from estimation.core.inference.missed import Missed
from estimation.core.rounds.results import Evaluation
from estimation.findings import further_judgments
from estimation.formats.collections.files import read_collection
from estimation.models import Estimate, EstimateSet, Round
from estimation.services import collections, estimates, files
from estimation.validity import validity_of
from judging.formats.problems import Problems
from judging.models import Campaign
from judging.services import campaigns
from tests.core.length import bounded
from tests.support import evaluation
from tests.support.pages import address, text
from tests.support.rest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

AT_EVERY = "Valid at every look: intervals, verdicts and possible ranks keep their 95 % over all "
AT_THE_END = (
    "Valid at this look: intervals, verdicts and possible ranks have their 95 % at the end that "
    "was planned before the draw, after "
)
AT_ONE = "Valid at one look: intervals, verdicts and possible ranks have their 95 % if nobody"
BUDGETS = {"query": {"budget": 100, "batch_size": 50}}
TABS = ("live", "live-pairs", "live-history", "compare")


def latest(row: Round) -> EstimateSet:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    return shown


def evaluated(row: Round, look: Look | None) -> Evaluation:
    """What the collection of the round says at a look."""
    inputs = estimates.gather(row)
    asked = inputs.gathered.at(look).collection
    return asked.evaluate(inputs.joined, measures=asked.measures)


def intervals(shown: EstimateSet) -> dict[str, tuple[float, float]]:
    rows = Estimate.objects.filter(estimate_set=shown, measure="DCG@10", primary=True)
    return {each.run.tag: (each.low, each.high) for each in rows.select_related("run")}


def expected(found: Evaluation) -> dict[str, tuple[float, float]]:
    result = found["DCG@10"]
    ends = zip(result.estimate.low.tolist(), result.estimate.high.tolist(), strict=True)
    return dict(zip(result.runs, ends, strict=True))


def to_the_end(row: Round, campaign: Campaign) -> EstimateSet:
    while evaluation.judge(campaign, 1000):  # a batch of an active round is planned after the last
        row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    return latest(row)


# ---------------------------------------------------------------------------- the numbers


def test_the_numbers_of_a_running_round_hold_at_every_look(judged: Round) -> None:
    shown, planned = latest(judged), judged.round_batches.count()
    assert planned == 3
    assert (shown.look, shown.looks) == (1, planned)
    assert intervals(shown) == expected(evaluated(judged, Look(1, planned)))
    at_one = expected(evaluated(judged, None))
    for tag, (low, high) in intervals(shown).items():
        assert low <= at_one[tag][0]
        assert high > at_one[tag][1]


@pytest.mark.slow
def test_those_of_a_round_that_has_ended_hold_at_that_look(
    judged: Round, campaign: Campaign
) -> None:
    shown = to_the_end(judged, campaign)
    assert (shown.look, shown.looks) == (0, 3)
    assert intervals(shown) == expected(evaluated(judged, None))
    before = {each.batches: each.look for each in judged.estimate_sets.all()}
    assert before == {1: 1, 3: 0}
    outcome = estimates.from_scratch(judged)
    assert outcome is not None
    assert outcome.digest == shown.digest


@pytest.mark.slow
def test_a_round_of_one_batch_has_one_look(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, batch_size=60)
    shown = to_the_end(row, campaign)
    assert (shown.look, shown.looks) == (0, 1)
    assert validity_of(shown).why.startswith(f"{AT_THE_END}its only batch; ")
    assert intervals(shown) == expected(evaluated(row, Look(1, 1)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["iid", "active", "query", *bounded([], ["priority", "per-query"])]
)
def test_every_method_counts_the_batches_that_were_planned(campaign: Campaign, method: str) -> None:
    asked = {"extra_share": 0.0, "method": method, "reported": []}
    row = evaluation.drawn(campaign, **asked | BUDGETS.get(method, {}))
    while selectors.complete_batches(row) < 1:
        assert evaluation.judge(campaign, 10)
    shown = latest(row)
    assert (shown.look, shown.batches) == (selectors.complete_batches(row),) * 2
    planned = shown.looks
    assert planned > shown.look
    again = evaluated(row, Look(shown.look, planned))
    assert intervals(shown) == expected(again)
    last = to_the_end(row, campaign)
    assert (last.look, last.looks, last.batches) == (0, planned, planned)


@pytest.mark.slow
def test_rounds_together_count_the_batches_of_all(campaign: Campaign) -> None:
    """Also those of a round of which none is complete; they end when all have ended."""
    asked = {"extra_share": 0.0, "budget": 30, "batch_size": 10}
    first = evaluation.drawn(campaign, seed="s", **asked)
    second = evaluation.drawn(campaign, seed="t", with_earlier=True, **asked)
    planned = first.round_batches.count() + second.round_batches.count()
    seen = {}
    while evaluation.judge(campaign, 6):
        if (shown := selectors.latest_estimates(second)) is not None:
            seen[shown.number] = shown
    assert len(seen) > 1
    *running, last = seen.values()
    assert {each.looks for each in seen.values()} == {planned}
    for each in running:
        assert each.look == sum(each.all_batches.values()) < planned
    assert (last.look, sum(last.all_batches.values())) == (0, planned)


@pytest.mark.slow
@pytest.mark.on_both
def test_estimates_of_an_earlier_version_say_what_they_are(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    judged.estimate_sets.update(look=0, looks=0)
    said = text(organizer.get(address("live", campaign, 1)))
    assert AT_ONE in said
    assert AT_EVERY not in said
    shown = to_the_end(judged, campaign)
    assert shown.looks == 3
    judged.estimate_sets.update(look=0, looks=0)
    of_the_end, *_, first = judged.estimate_sets.order_by("-number")
    assert validity_of(of_the_end).why.startswith(AT_THE_END)
    assert validity_of(first).why.startswith(AT_ONE)


@pytest.mark.slow
def test_further_judgments_are_counted_with_the_margins_of_the_end(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Margins that hold at every look are wider now than they will be; twin: as if they stayed.

    Those of whole documents that may have been missed, in a pool as small, go by other quantiles.
    """
    monkeypatch.setattr(Missed, "least_margins", lambda self, **_: np.zeros_like(self.squares))
    row = evaluation.drawn(campaign, budget=110, batch_size=55, extra_share=0.0)
    while selectors.complete_batches(row) < 1:
        assert evaluation.judge(campaign, 5)
    table = selectors.ranking_table(row)
    assert table is not None
    assert table.pairs is not None
    assert table.estimate_set.look == 1
    table.round.pool.pair_count *= 100  # which has as many
    said = number_in(further_judgments(table, table.pairs))
    at_one = evaluated(row, None)["DCG@10"].ranking.margin
    assert np.all(at_one < table.pairs.margin + np.eye(len(at_one)))
    table.estimate_set.look = 0
    wanted = number_in(further_judgments(table, replace(table.pairs, margin=at_one)))
    assert said == pytest.approx(wanted, rel=0.03)  # 1000 degrees of freedom are nearly infinite
    assert number_in(further_judgments(table, table.pairs)) > 1.3 * wanted


def number_in(text: str | None) -> int:
    found = re.search(r"roughly ([\d,]+) further judgments", text or "")
    assert found is not None
    return int(found[1].replace(",", ""))


# ------------------------------------------------------------------------ what is said where


@pytest.mark.slow
def test_pages_say_at_which_looks_their_numbers_hold(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    for tab in TABS:
        said = text(organizer.get(address(tab, campaign, 1)))
        assert f"{AT_EVERY}3 planned looks, of which this is number 1, so that you may" in said
    for tab in ("live-batches", "live-labels"):
        assert "Valid at" not in text(organizer.get(address(tab, campaign, 1)))
    to_the_end(judged, campaign)
    for tab in TABS:
        said = text(organizer.get(address(tab, campaign, 1)))
        assert f"{AT_THE_END}its 3 batches; they make no allowance for having looked" in said
        assert AT_EVERY not in said


@pytest.mark.slow
def test_a_round_that_is_stopped_early_stays_valid_at_every_look(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    before = intervals(latest(judged))
    campaigns.close(campaign=campaign, by=campaign.created_by)
    estimates_again = estimates.from_scratch(judged)
    assert estimates_again is not None
    assert estimates_again.digest == latest(judged).digest
    assert intervals(latest(judged)) == before
    assert AT_EVERY in text(organizer.get(address("live", campaign, 1)))
    page = evaluation.made_reports(judged, "report.html")[0]
    assert AT_EVERY in files.path_of(page.file).read_text()


@pytest.mark.slow
def test_answers_and_files_say_it_in_a_field(judged: Round, campaign: Campaign) -> None:
    client = client_of(campaign.created_by)

    def told() -> list[dict[str, object]]:
        root = f"/api/campaigns/{campaign.slug}"
        answers = [client.get(f"{root}/{name}/").json() for name in ("estimates", "ranking")]
        made = {each.name: each for each in evaluation.made_reports(judged)}
        document = json.loads(files.path_of(made["estimates.json"].file).read_text())
        return [*(each["estimate_set"]["validity"] for each in answers), document["validity"]]

    first = told()
    assert first == [first[0]] * 3
    assert {key: first[0][key] for key in ("kind", "look", "looks")} == {
        "kind": "anytime",
        "look": 1,
        "looks": 3,
    }
    assert str(first[0]["why"]).startswith(AT_EVERY)
    to_the_end(judged, campaign)
    last = told()
    assert last == [last[0]] * 3
    assert (last[0]["kind"], last[0]["look"], last[0]["looks"]) == ("fixed-time", None, 3)
    assert str(last[0]["why"]).startswith(AT_THE_END)


@pytest.mark.slow
def test_a_rule_of_a_round_of_one_batch_has_cost_nothing(
    campaign: Campaign, organizer: Client
) -> None:
    """Its only look has all of the error, as that of a round without a rule."""
    row = evaluation.drawn(campaign, budget=30, batch_size=30, stop_when="best", extra_share=0.0)
    shown = to_the_end(row, campaign)
    assert intervals(shown) == expected(evaluated(row, None))
    assert validity_of(shown).why.startswith(f"{AT_THE_END}its only batch;")
    assert AT_EVERY not in text(organizer.get(address("live", campaign, 1)))


# ------------------------------------------------------------------- the judged collection


def scored(folder: Path, *options: str) -> tuple[str, str]:
    out, errors = io.StringIO(), io.StringIO()
    call_command(
        "score",
        str(folder / "collection.zip"),
        *map(str, sorted(folder.glob("*.run"))),
        *options,
        stdout=out,
        stderr=errors,
    )
    return out.getvalue(), errors.getvalue()


def assert_close(found: list[dict[str, float]], row: Round) -> None:
    """The intervals are those of the round's own estimates."""
    own = intervals(latest(row))
    assert len(found) == len(own)
    for each in found:
        assert (each["low"], each["high"]) == pytest.approx(own[str(each["tag"])])


def export(row: Round, folder: Path) -> Path:
    (folder / "collection.zip").write_bytes(collections.collection_zip(row, latest(row)))
    for name, content in evaluation.SMALL.runs.items():
        (folder / name).with_suffix(".run").write_bytes(content)
    return folder


@pytest.mark.slow
def test_scores_of_a_running_round_hold_as_its_own_do(
    judged: Round, campaign: Campaign, tmp_path: Path
) -> None:
    folder = export(judged, tmp_path)
    out, errors = scored(folder, "--format", "json", "--measure", "DCG@10")
    found = json.loads(out)
    assert_close(found, judged)
    assert {each["validity"]["kind"] for each in found} == {"anytime"}
    assert f"note: {AT_EVERY}3 planned looks, of which this is number 1" in errors
    _, errors = scored(folder, "--confidence", "0.9")
    assert AT_EVERY.replace("95 %", "90 %") in errors

    to_the_end(judged, campaign)
    export(judged, tmp_path)
    out, errors = scored(folder, "--format", "json", "--measure", "DCG@10")
    found = json.loads(out)
    assert_close(found, judged)
    assert {each["validity"]["kind"] for each in found} == {"fixed-time"}
    assert errors == ""


def with_look(content: bytes, look: object) -> bytes:
    """The file with another look in it; None: with none, as older files are."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            member = old.read(name)
            if name == "collection.json":
                facts = json.loads(member)
                assert facts.pop("look") == {"number": 1, "planned": 3}
                member = json.dumps(facts if look is None else facts | {"look": look}).encode()
            new.writestr(name, member)
    return changed.getvalue()


def test_a_collection_without_a_look_is_read_as_before(judged: Round) -> None:
    content = collections.collection_zip(judged, latest(judged))
    problems = Problems("collection.zip")
    found = read_collection(io.BytesIO(with_look(content, None)), problems)
    assert problems.ok
    assert found is not None
    assert found.look is None


@pytest.mark.parametrize(
    ("look", "message"),
    [
        ("first", "expected an object with number and planned, found 'first'"),
        ({"number": 4, "planned": 3}, "look must be a whole number between 1 and the 3 planned"),
        ({"number": 1}, "planned looks must be a whole number of at least 1, not 0"),
        ({"number": "1", "planned": 3}, "look must be a whole number between 1 and the 3 planned"),
        ({"number": 1, "planned": 3, "x": 1}, "expected no such field as 'x'"),
    ],
)
def test_a_look_that_cannot_be_is_refused(judged: Round, look: object, message: str) -> None:
    content = with_look(collections.collection_zip(judged, latest(judged)), look)
    problems = Problems("collection.zip")
    assert read_collection(io.BytesIO(content), problems) is None
    (error,) = problems.errors
    assert error.field == "look"
    assert error.message.startswith(message)

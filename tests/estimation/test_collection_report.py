"""The judged collection among the reports of a round."""

import gzip
import io
import zipfile
from dataclasses import replace

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from estimation import selectors
from estimation.core.collections.base import RoundCollection
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.rounds.results import Evaluation
from estimation.formats.collections import tables
from estimation.formats.collections.files import read_collection
from estimation.models import Draw, EstimateSet, Report, Round
from estimation.services import collections, estimates, files
from estimation.services.report_files.kinds import ReportKind
from estimation.services.report_files.table import PURPOSES, REPORTS
from estimation.services.runs import lists_of
from judging import selectors as judging
from judging.errors import UserError
from judging.formats.problems import Problems
from judging.models import Campaign, Job, User
from tests.core.comparing import OF_ONE_RUN
from tests.core.length import bounded
from tests.estimation.test_later_runs import join, of_run, with_news
from tests.estimation.test_round_choices import grades
from tests.support import evaluation, factories

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def collection_report(row: Round) -> Report:
    (report,) = evaluation.made_reports(row, "collection.zip")
    return report


def content_of(report: Report) -> RoundCollection:
    problems = Problems(report.name)
    with files.path_of(report.file).open("rb") as file:
        found = read_collection(file, problems)
    assert isinstance(found, RoundCollection), problems.errors
    return found


def latest(row: Round) -> EstimateSet:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    return shown


def latest_report(row: Round) -> Report:
    made = evaluation.made_reports(row, "collection.zip")
    return next(
        each for each in made if each.name == "collection.zip" and each.estimate_set == latest(row)
    )


@pytest.mark.slow
def test_it_holds_the_batches_of_the_estimates_and_no_more(judged: Round) -> None:
    shown = latest(judged)
    found = content_of(collection_report(judged))
    assert judged.pool is not None
    draws = Draw.objects.filter(round=judged, batch_number__lte=shown.batches)
    assert 0 < shown.batches < found_batches(judged)
    (part,) = found.parts
    assert part.design.batches == shown.batches
    assert len(part.sample) == draws.count() == shown.pair_count
    assert len(found.labels.pair) == shown.label_count
    assert len(found) == judged.pool.pair_count
    assert found.version == shown.provenance["evalsite"]
    assert found.pool_digest == shown.provenance["pool"]
    assert [str(measure) for measure in found.measures] == selectors.measures_of(judged)


def found_batches(row: Round) -> int:
    return row.round_batches.count()


def test_it_is_the_same_whenever_it_is_made(judged: Round) -> None:
    shown = latest(judged)
    kept = files.path_of(collection_report(judged).file).read_bytes()
    assert collections.collection_zip(judged, shown) == kept


@pytest.mark.slow
def test_predictions_help_the_round_and_are_not_published(campaign: Campaign) -> None:
    """What is published is estimated without, as the round tells it beside its own estimates."""
    grades(campaign)
    row = evaluation.drawn(campaign, estimator="difference", predictions="judge")
    evaluation.judge(campaign, 45)
    assert estimates.gather(row).collection.predictions is not None
    found = content_of(collection_report(row))
    assert found.predictions is None
    lists = {run.tag: lists_of(run) for run in campaign.runs.all()}
    (now, *_) = found.evaluate(lists, measures=found.measures).results
    assert list(now.estimators) == ["ht"]
    for name, same in (("ht", True), ("di", False)):
        rows = latest(row).estimates.filter(measure=str(now.measure), estimator=name)
        stored = dict(rows.values_list("run__tag", "value"))
        assert (dict(zip(now.runs, now.estimate.value.tolist(), strict=True)) == stored) is same


def test_it_names_no_assessor(judged: Round) -> None:
    archive = zipfile.ZipFile(files.path_of(collection_report(judged).file))
    told = b"".join(
        gzip.decompress(archive.read(name)) if name.endswith(".gz") else archive.read(name)
        for name in archive.namelist()
    )
    names = [user.username.encode() for user in User.objects.all()]
    assert len(names) == 3
    assert [name for name in names if name in told] == []


@pytest.mark.slow
def test_a_round_too_large_for_the_file_has_the_other_reports(
    judged: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS", 10)
    made = {report.name for report in evaluation.made_reports(judged)}
    assert made == set(REPORTS) - {"collection.zip"}
    job = judging.job_of("report", judged.pk)
    assert job is not None
    assert job.state == Job.State.FAILED
    assert job.error == (
        "collection.zip cannot be made of this round: it can hold at most 10 rows, with topic, "
        "docno, round, size, probability."
    )


def test_one_that_cannot_be_made_keeps_none_after_it_from_being_made(
    judged: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = next(iter(REPORTS))

    def refused(row: Round, shown: EstimateSet) -> str:
        raise UserError("too_large", "It is too large.", status=409)

    monkeypatch.setitem(REPORTS, first, replace(REPORTS[first], make=refused))
    made = {report.name for report in evaluation.made_reports(judged)}
    assert made == set(REPORTS) - {first}
    job = judging.job_of("report", judged.pk)
    assert job is not None
    assert (job.state, job.error) == (Job.State.FAILED, "It is too large.")


@pytest.mark.slow
@pytest.mark.on_both
def test_a_report_that_is_missing_can_be_made(judged: Round, organizer: Client) -> None:
    """As where an earlier evalsite made the others."""
    before = {report.name: report.pk for report in evaluation.made_reports(judged)}
    Report.objects.filter(pk=before.pop("collection.zip")).delete()
    address = reverse("reports", args=[judged.campaign.slug, 1])
    assert "Not among them: collection.zip." in organizer.get(address).content.decode()
    organizer.post(reverse("report-make", args=[judged.campaign.slug, 1]))
    assert "Not among them" not in organizer.get(address).content.decode()
    factories.run_due_jobs()
    assert "Not among them" not in organizer.get(address).content.decode()
    after = {report.name: report.pk for report in Report.objects.all()}
    assert after.keys() - before.keys() == {"collection.zip"}
    assert {name: after[name] for name in before} == before


# --------------------------------------------------------------- rounds that go together


def seeds_of(row: Round) -> tuple[str | None, ...]:
    kept = collections.collection_of(row, latest(row))
    assert isinstance(kept, RoundCollection)
    return kept.seeds


def judge_all(campaign: Campaign, *rows: Round) -> None:
    while evaluation.judge(campaign, 100):
        pass
    for row in rows:
        row.refresh_from_db()
        assert row.state == Round.State.COMPLETE


def judge_in_part(campaign: Campaign, first: Round, second: Round) -> None:
    """Until the first round is complete and the second has estimates, with batches left."""
    while first.state != Round.State.COMPLETE or selectors.latest_estimates(second) is None:
        assert evaluation.judge(campaign, 5)
        first.refresh_from_db()
    assert latest(second).batches < found_batches(second)


def two_rounds(campaign: Campaign, method: str = "poisson", seeds: str = "st") -> list[Round]:
    """Both are drawn before anything is judged; the second counts what the first finds."""
    plans = ({"budget": 60}, {"budget": 100, "with_earlier": True})
    return [
        evaluation.drawn(campaign, method=method, seed=seed, **each)
        for seed, each in zip(seeds, plans, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "complete"),
    [("poisson", True), ("iid", False), *bounded([], [("poisson", False), ("iid", True)])],
)
def test_runs_of_the_pool_get_the_numbers_of_the_recompute(
    campaign: Campaign, method: str, complete: bool
) -> None:
    """To the last bit, also while some batches are not complete."""
    first, second = two_rounds(campaign, method)
    judge_in_part(campaign, first, second)
    if complete:
        judge_all(campaign, first, second)
    shown = latest(second)
    assert shown.earlier == {"1": found_batches(first)}
    found = content_of(latest_report(second))
    assert [part.design.batches for part in found.parts] == [*shown.all_batches.values()]
    assert [str(measure) for measure in found.measures] == selectors.measures_of(second)
    outcome = estimates.from_scratch(second)
    assert outcome is not None
    assert outcome.digest == shown.digest
    lists = {run.tag: lists_of(run) for run in campaign.runs.all()}
    now = found.evaluate(lists, measures=found.measures)
    assert (now.judged_pairs, now.judgments) == (shown.pair_count, shown.label_count)
    for before, after in zip(outcome.evaluation.results, now.results, strict=True):
        assert after.runs == before.runs
        for name, estimator in before.estimators.items():
            for field in (*OF_ONE_RUN, "covariance"):
                kept = getattr(after.estimators[name], field).tolist()
                assert kept == getattr(estimator, field).tolist(), field
        assert after.support.tolist() == before.support.tolist()
        assert after.by_topic.tolist() == before.by_topic.tolist()
        assert after.ranking.verdicts.tolist() == before.ranking.verdicts.tolist()
    assert_the_same_alone(found, lists["run3"], outcome.evaluation)
    first.refresh_from_db()
    assert len(content_of(collection_report(first)).parts) == 1


def assert_the_same_alone(found: RoundCollection, run3: RankedLists, then: Evaluation) -> None:
    """What is expected of pairs does not depend on which runs are asked for."""
    now = found.evaluate({"run3": run3}, measures=found.measures)
    for before, after in zip(then.results, now.results, strict=True):
        at = before.runs.index("run3")
        for field in OF_ONE_RUN:
            told = getattr(before.estimate, field)[at], getattr(after.estimate, field)[0]
            assert told[0] == told[1], (before.measure, field)


@pytest.mark.slow
@pytest.mark.parametrize("method", bounded(["iid"], ["poisson", "iid"]))
def test_a_later_run_gets_the_numbers_of_the_recompute(campaign: Campaign, method: str) -> None:
    """The collection does not change by its joining."""
    first, second = two_rounds(campaign, method)
    judge_in_part(campaign, first, second)
    before = content_of(latest_report(second))
    join(campaign, with_news("late"))
    report = latest_report(second)
    assert content_of(report).pool_digest == before.pool_digest
    lists = {"late": lists_of(campaign.runs.get(tag="late"))}
    now = content_of(report).evaluate(lists, measures=before.measures)
    for result in now.results:
        stored = of_run(latest(second), "late", str(result.measure))
        assert stored.late
        for field in OF_ONE_RUN:
            assert getattr(result.estimate, field)[0] == getattr(stored, field), field
        assert result.support[0] == pytest.approx(stored.support, rel=1e-12)
        assert 0.0 < stored.support < 1.0
        size = result.effective_sample_size[0]
        assert size == pytest.approx(stored.sample_size, rel=1e-12)


# --------------------------------------------------------------------------------- seeds


@pytest.mark.slow
def test_the_seed_is_told_when_no_batch_is_left_to_guess(judged: Round, campaign: Campaign) -> None:
    assert content_of(collection_report(judged)).seeds == (None,)
    judge_all(campaign, judged)
    assert content_of(latest_report(judged)).seeds == ("s",)


@pytest.mark.slow
def test_a_seed_is_kept_back_while_any_round_has_batches_left_by_it(campaign: Campaign) -> None:
    """The first round is complete; another with its seed is not, or only drafted."""
    first = evaluation.drawn(campaign, seed="s")
    judge_all(campaign, first)
    assert seeds_of(first) == ("s",)
    drafted = evaluation.drafted(campaign, seed="s", budget=80)
    assert seeds_of(first) == (None,)
    other = evaluation.drafted(campaign, seed="t")
    Round.objects.filter(pk=drafted.pk).delete()
    assert seeds_of(first) == ("s",)
    Round.objects.filter(pk=other.pk).update(seed="s")
    assert seeds_of(first) == (None,)


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "told"), [("st", ("s", "t")), ("ss", ("s", "s"))])
def test_seeds_of_rounds_that_go_together(
    campaign: Campaign, seeds: str, told: tuple[str, ...]
) -> None:
    first, second = two_rounds(campaign, seeds=seeds)
    judge_in_part(campaign, first, second)
    assert seeds_of(second) == ((None, None) if seeds == "ss" else ("s", None))
    assert seeds_of(first) == ((None,) if seeds == "ss" else ("s",))
    judge_all(campaign, first, second)
    assert seeds_of(second) == told
    numbers = [part.numbers for part in content_of(latest_report(second)).parts]
    assert numbers == (["1", "2"] if seeds == "st" else ["1", "1"])


# ------------------------------------------------------------------------------- offered


@pytest.mark.slow
@pytest.mark.usefixtures("on_paper")
def test_every_file_says_what_it_is_good_for(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    made = evaluation.made_reports(judged)
    report = next(each for each in made if each.name == "collection.zip")
    listed = organizer.get(f"/api/campaigns/{campaign.slug}/reports/").json()["reports"]
    purposes = {name: told for name, told in PURPOSES if name != "qrels-strata.txt"}
    assert {row["name"]: row["purpose"] for row in listed} == purposes
    page = organizer.get(reverse("reports", args=[campaign.slug, 1])).content.decode()
    for sentence in purposes.values():
        assert sentence.endswith(".")
        assert sentence in page
    for address in (
        f"/api/campaigns/{campaign.slug}/reports/{report.pk}/",
        reverse("report-file", args=[campaign.slug, 1, report.pk]),
    ):
        answer = organizer.get(address)
        assert answer["Content-Type"] == "application/zip"
        content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
        assert zipfile.is_zipfile(io.BytesIO(content))


@pytest.mark.slow
def test_page_and_interface_say_the_same_of_every_file(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    evaluation.made_reports(judged)
    made = Report.objects.all()
    assert {row.name for row in made} == set(REPORTS)
    for row in made.filter(refused=""):
        files = [
            organizer.get(f"/api/campaigns/{campaign.slug}/reports/{row.pk}/"),
            organizer.get(reverse("report-file", args=[campaign.slug, 1, row.pk])),
        ]
        assert {answer["Content-Type"] for answer in files} == {REPORTS[row.name].content_type}


@pytest.mark.slow
def test_a_kind_of_report_that_is_in_the_table_is_made_listed_and_downloaded(
    judged: Round, campaign: Campaign, organizer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else knows which there are; nor is a further one a migration."""
    evaluation.made_reports(judged)
    kind = ReportKind(
        "a-file-of-another-kind.xml",
        "For a program that nobody has.",
        content_type="application/xml",
        make=lambda row, shown: f"<round number='{row.number}' pairs='{shown.pair_count}'/>",
        group="For programs",
    )
    monkeypatch.setitem(REPORTS, kind.name, kind)
    page = organizer.get(reverse("reports", args=[campaign.slug, 1])).content.decode()
    assert f"Not among them: {kind.name}" in page
    made = next(row for row in evaluation.made_reports(judged) if row.name == kind.name)
    page = organizer.get(reverse("reports", args=[campaign.slug, 1])).content.decode()
    assert kind.purpose in page
    listed = organizer.get(f"/api/campaigns/{campaign.slug}/reports/").json()["reports"]
    assert kind.purpose in {row["purpose"] for row in listed}
    for address in (
        f"/api/campaigns/{campaign.slug}/reports/{made.pk}/",
        reverse("report-file", args=[campaign.slug, 1, made.pk]),
    ):
        answer = organizer.get(address)
        assert answer["Content-Type"] == "application/xml"
        assert b"".join(answer.streaming_content).startswith(b"<round number='1'")  # type: ignore[attr-defined]
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)

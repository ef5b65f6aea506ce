"""The judged collection among the reports of a round."""

import gzip
import io
import zipfile

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from estimation import selectors
from estimation.core.collection import JudgedCollection
from estimation.formats.collections import read_collection
from estimation.models import Draw, EstimateSet, Report, Round
from estimation.services import collections, files, reports
from judging.formats.problems import Problems
from judging.models import Campaign, User
from tests.support import evaluation

pytestmark = pytest.mark.django_db


def collection_report(row: Round) -> Report:
    (report,) = (r for r in evaluation.made_reports(row) if r.name == Report.Name.COLLECTION)
    return report


def content_of(report: Report) -> JudgedCollection:
    problems = Problems(report.name)
    with files.path_of(report.file).open("rb") as file:
        found = read_collection(file, problems)
    assert found is not None, problems.errors
    return found


def latest(row: Round) -> EstimateSet:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    return shown


def test_it_holds_the_batches_of_the_estimates_and_no_more(judged: Round) -> None:
    shown = latest(judged)
    found = content_of(collection_report(judged))
    assert judged.pool is not None
    draws = Draw.objects.filter(round=judged, batch_number__lte=shown.batches)
    assert 0 < shown.batches < found_batches(judged)
    assert found.design.batches == shown.batches
    assert len(found.sample) == draws.count() == shown.pair_count
    assert len(found.labels.pair) == shown.label_count
    assert len(found) == judged.pool.pair_count
    assert found.version == shown.provenance["evalsite"]
    assert found.design.pool_digest == shown.provenance["pool"]
    assert [str(measure) for measure in found.measures] == selectors.measures_of(judged)


def found_batches(row: Round) -> int:
    return row.round_batches.count()


def test_it_is_the_same_whenever_it_is_made(judged: Round) -> None:
    shown = latest(judged)
    kept = files.path_of(collection_report(judged).file).read_bytes()
    assert collections.collection_zip(judged, shown) == kept


def test_it_names_no_assessor(judged: Round) -> None:
    archive = zipfile.ZipFile(files.path_of(collection_report(judged).file))
    told = b"".join(
        gzip.decompress(archive.read(name)) if name.endswith(".gz") else archive.read(name)
        for name in archive.namelist()
    )
    names = [user.username.encode() for user in User.objects.all()]
    assert len(names) == 3
    assert [name for name in names if name in told] == []


def test_the_seed_is_told_when_no_batch_is_left_to_guess(judged: Round, campaign: Campaign) -> None:
    assert content_of(collection_report(judged)).seed is None
    while evaluation.judge(campaign, 100):
        pass
    judged.refresh_from_db()
    assert judged.state == Round.State.COMPLETE
    report = next(
        each
        for each in evaluation.made_reports(judged)
        if each.name == Report.Name.COLLECTION and each.estimate_set == latest(judged)
    )
    assert content_of(report).seed == "s"


@pytest.mark.parametrize(
    ("changes", "offered"),
    [({}, True), ({"measure": "#ofSwaps"}, False), ({"method": "active"}, False)],
)
def test_it_is_offered_where_it_makes_sense(
    changes: dict[str, str], offered: bool, judged: Round
) -> None:
    """Preferences are no judgments of documents; active probabilities depend on judgments."""
    row = Round(**{"measure": judged.measure, "method": judged.method} | changes)
    shown = EstimateSet(round=row)
    assert reports._is_offered(Report.Name.COLLECTION, shown) is offered
    shown.earlier = {"1": 2}
    assert not reports._is_offered(Report.Name.COLLECTION, shown)
    assert reports._is_offered(Report.Name.HTML, shown)


def test_every_file_says_what_it_is_good_for(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    report = collection_report(judged)
    listed = organizer.get(f"/api/campaigns/{campaign.slug}/reports/").json()["reports"]
    assert {row["name"]: row["purpose"] for row in listed} == dict(Report.Name.choices)
    page = organizer.get(reverse("reports", args=[campaign.slug, 1])).content.decode()
    for sentence in Report.Name.labels:
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


@pytest.mark.django_db(transaction=True)
def test_the_migration_goes_back_without_what_was_unknown(judged: Round) -> None:
    evaluation.made_reports(judged)
    before = Report.objects.count()
    try:
        call_command("migrate", "estimation", "0001", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("SELECT name FROM estimation_report")
            left = {name for (name,) in cursor.fetchall()}
        assert left == {*Report.Name.values} - {"collection.zip"}
    finally:
        call_command("migrate", verbosity=0)
    assert Report.objects.count() == before - 1

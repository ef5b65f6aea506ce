"""Pages of the site for its admins: what they tell is so, and is told to nobody else."""

import csv
import io
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.template.defaultfilters import filesizeformat
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pypdfium2 import PdfDocument

from estimation.models import MachineAnswer, MachineJudge, MachinePrompt
from estimation.services.report_files import pdf
from evalsite.administration import overviews, site_report, storage, views
from evalsite.administration.forms import period_of
from evalsite.templatetags.administration import PAGES
from judging.models import Campaign, Job, Judgment, KeptFigure, User
from judging.services import jobs, judgments
from tests.support import evaluation, factories, rest
from tests.support.kept import Kept
from tests.support.pages import as_role, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("material", evaluation.with_material)


@pytest.fixture
def judged(campaign: Campaign, kept: Kept) -> Campaign:
    kept("judged", lambda: _judge(campaign), campaign)
    return campaign


def _judge(campaign: Campaign) -> None:
    evaluation.drawn(campaign, extra_share=0.5)
    evaluation.judge(campaign, 45)


@pytest.fixture
def admin(judged: Campaign) -> Client:
    return as_role("admin", judged)


@pytest.mark.parametrize("role", ["assessor", "organizer", "other"])
@pytest.mark.parametrize("name", [*PAGES, "site-report-file", "site-report-pdf"])
def test_others_are_told_no(name: str, role: str, campaign: Campaign) -> None:
    answer = as_role(role, campaign).get(reverse(name))
    assert answer.status_code == 403
    assert campaign.name not in text(answer)


def test_nobody_else_has_work_done_again(judged: Campaign) -> None:
    job = Job.objects.filter(campaign=judged)[0]
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED)
    for role in ("assessor", "organizer", "other"):
        there = reverse("site-work-again", args=[job.pk])
        assert as_role(role, judged).post(there).status_code == 403
    assert Job.objects.get(pk=job.pk).state == Job.State.FAILED


# -------------------------------------------------------------------------------- campaigns


@pytest.mark.slow
@pytest.mark.on_both
def test_campaigns_are_found_by_name_address_and_owner(judged: Campaign, admin: Client) -> None:
    other = factories.campaign(slug="quite-another")
    there = reverse("site-campaigns")
    found: Callable[[str], set[str]] = lambda words: {  # noqa: E731
        each.slug for each, _ in admin.get(there, {"q": words}).context["lines"]
    }
    assert found("") == {judged.slug, other.slug}
    assert found("QUITE") == {other.slug}
    assert found(other.created_by.username) == {other.slug}
    assert found("nothing like it") == set()


@pytest.mark.on_both
def test_a_campaign_is_told_with_what_is_judged_and_its_size(
    judged: Campaign, admin: Client
) -> None:
    ((_, unknown),) = admin.get(reverse("site-campaigns")).context["lines"]
    assert unknown is None, "nobody has measured it"
    factories.run_due_jobs()
    ((line, size),) = admin.get(reverse("site-campaigns")).context["lines"]
    standing = Judgment.objects.filter(assignment__pair__campaign=judged, revision=1).count()
    assert line.judged == standing == 45
    assert line.owner == judged.created_by.username
    uploads = sum(judged.uploads.values_list("size", flat=True))
    assert size > uploads > 0


def test_what_changed_last_comes_first(judged: Campaign) -> None:
    other = factories.campaign(slug="another")
    assert [row.slug for row in overviews.campaigns()] == [other.slug, judged.slug]
    factories.assessors(judged, "newcomer")
    assert [row.slug for row in overviews.campaigns()] == [judged.slug, other.slug]


# -------------------------------------------------------------------------------- people


def test_people_are_told_with_rights_campaigns_and_when_they_were_seen(judged: Campaign) -> None:
    now = timezone.now()
    User.objects.filter(username="ben").update(is_active=False, last_login=now)
    found = {each.username: each for each in overviews.listed_people(list(overviews.people()))}
    anna, ben, owner = (found[name] for name in ("anna", "ben", judged.created_by.username))
    assert (anna.admin, anna.may_create, anna.active) == (False, False, True)
    assert not ben.active
    assert ben.seen is not None
    assert ben.seen >= now
    assert anna.assesses == [(judged.name, judged.slug)]
    assert owner.organizes == [(judged.name, judged.slug)]
    assert anna.judged + ben.judged == 45
    last = Judgment.objects.filter(assessor__username="anna").latest("created").created
    assert anna.seen is not None
    assert abs(anna.seen - last) < timedelta(seconds=5)
    assert owner.seen is not None
    nobody = factories.user("never-here")
    (person,) = overviews.listed_people([nobody])
    assert (person.seen, person.judged, person.organizes) == (None, 0, [])


# -------------------------------------------------------------------------------- storage


def test_files_are_counted_by_what_they_are_for(judged: Campaign) -> None:
    found = storage.storage()
    kinds = {kind.name: kind for kind in found.kinds}
    assert kinds["Uploads"].files == judged.uploads.count()
    assert kinds["Uploads"].size == sum(judged.uploads.values_list("size", flat=True))
    assert kinds["Runs"].files == judged.runs.count()
    assert kinds["Estimates"].files >= 1
    assert found.by_campaign[judged.pk] == sum(kind.size for kind in found.kinds)
    assert found.loose == []
    assert found.missing == 0


def test_a_file_that_no_row_names_is_found_once_it_is_old(judged: Campaign) -> None:
    path = Path(settings.MEDIA_ROOT) / "matrices" / "left-behind"
    path.write_bytes(b"12345")
    try:
        assert storage.storage().loose == [], "its row may be about to be written"
        hours = time.time() - 5 * 3600
        os.utime(path, (hours, hours))
        (loose,) = storage.storage().loose
        assert (loose.name, loose.size) == ("matrices/left-behind", 5)
        assert loose.age == pytest.approx(5 * 3600, abs=60)
    finally:
        path.unlink()


@pytest.mark.slow
@pytest.mark.on_both
def test_a_file_that_is_gone_is_missed(judged: Campaign, admin: Client) -> None:
    run = judged.runs.all()[0]
    type(run).objects.filter(pk=run.pk).update(file="runs/gone")
    assert storage.storage().missing == 1
    admin.get(reverse("site-storage"))
    factories.run_due_jobs()
    assert "not there" in text(admin.get(reverse("site-storage")))


@pytest.mark.slow
def test_a_worker_measures_and_pages_show_what_it_found_with_its_time(
    judged: Campaign, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Not measured yet" in text(admin.get(reverse("site-storage")))
    assert "A worker measures the sizes" in text(admin.get(reverse("site-campaigns")))
    factories.run_due_jobs()
    kept = KeptFigure.objects.get(name=storage.MEASURE)
    found = storage.kept()
    assert found.found is not None
    free = found.found.free  # others write meanwhile
    assert found.found == replace(storage.storage(), free=free)
    assert not found.measuring
    monkeypatch.setattr(storage, "_walk", lambda _: pytest.fail("a page walks through files"))
    shown = text(admin.get(reverse("site-storage")))
    assert f"As of {kept.measured:%-d %b %Y, %H:%M} UTC" in shown
    size = filesizeformat(found.sizes[judged.pk]).replace("\xa0", " ")
    assert size in text(admin.get(reverse("site-campaigns")))
    assert not Job.objects.filter(kind=storage.MEASURE, state=Job.State.QUEUED).exists()

    KeptFigure.objects.update(measured=F("measured") - timedelta(seconds=storage.FRESH + 1))
    assert "a worker measures it again" in text(admin.get(reverse("site-storage")))
    assert Job.objects.get(kind=storage.MEASURE).state == Job.State.QUEUED
    admin.get(reverse("site-storage"))
    assert Job.objects.get(kind=storage.MEASURE).requested == 2, "asked for once, not by each visit"


@pytest.mark.slow
def test_what_was_measured_under_a_clock_that_was_ahead_is_measured_again(admin: Client) -> None:
    admin.get(reverse("site-storage"))
    factories.run_due_jobs()
    assert not storage.kept().measuring
    KeptFigure.objects.update(measured=F("measured") + timedelta(days=1))
    assert storage.kept().measuring


def test_every_column_that_names_a_file_is_known() -> None:
    """Else its files would be taken for such as nobody names."""
    from django.apps import apps

    columns = {
        (model, field.name)
        for label in ("judging", "estimation")
        for model in apps.get_app_config(label).get_models()
        for field in model._meta.get_fields()
        if field.name == "file" or field.name.endswith("_file")
    }
    assert columns == {(model, name) for _, model, names, _ in storage.SOURCES for name in names}


# -------------------------------------------------------------------------------- work


@pytest.mark.slow
def test_failed_work_is_told_with_its_reason_and_tried_again(
    judged: Campaign, admin: Client
) -> None:
    row = judged.rounds.get()
    job = jobs.request("recompute", row.pk, campaign=judged)
    running = jobs.claim(job.pk)
    assert running is not None
    jobs._fail(running, "The disk is full.")
    said = text(admin.get(reverse("site-work")))
    assert "Computing the estimates" in said
    assert "The disk is full." in said
    answer = admin.post(reverse("site-work-again", args=[job.pk]))
    assert answer["Location"] == reverse("site-work")
    assert Job.objects.get(pk=job.pk).state == Job.State.QUEUED
    assert overviews.work().counts["queued"] >= 1
    again = admin.post(reverse("site-work-again", args=[job.pk]), follow=True)
    assert "has not failed" in text(again)


def test_a_silent_worker_is_told_from_one_that_is_alive(admin: Client) -> None:
    evaluation.worker_alive()
    from judging.models import WorkerHeartbeat

    WorkerHeartbeat.objects.create(name="gone", seen=timezone.now() - timedelta(minutes=30))
    alive = {each.name: each.alive for each in overviews.work().workers}
    assert alive == {"a worker": True, "gone": False}


# -------------------------------------------------------------------------------- report


def today() -> site_report.Period:
    return period_of()


def test_the_report_counts_what_was_said_in_the_period(judged: Campaign) -> None:
    given = Judgment.objects.filter(assignment__pair__campaign=judged)
    for judgment in given[:3]:
        saying = judgments.Saying(grade=1, key=f"again-{judgment.pk}", seconds=36.0)
        judgments.correct(
            assignment=judgment.assignment, by=judgment.assessor, saying=saying, revision=1
        )
    found = site_report.site_report(today())
    (row,) = found.rows
    assert (row.judgments, row.corrections, row.assessors) == (45, 3, 2)
    assert (row.timed, row.hours) == (3, pytest.approx(3 * 36 / 3600))
    assert found.people_cost == {}
    Campaign.objects.update(hour_cost=20.0, currency="EUR")
    assert site_report.site_report(today()).people_cost == {"EUR": pytest.approx(20 * row.hours)}
    assert (found.judgments, found.assessors, found.created) == (45, 2, 1)

    early = datetime(2001, 1, 31, 23, 59, 59, tzinfo=UTC)
    late = datetime(2001, 2, 1, tzinfo=UTC)
    first, second = given.filter(revision=1).order_by("pk").values_list("pk", flat=True)[:2]
    Judgment.objects.filter(pk=first).update(created=early)
    Judgment.objects.filter(pk=second).update(created=late)
    january = site_report.Period(date(2001, 1, 1), date(2001, 1, 31))
    assert site_report.site_report(january).judgments == 1
    assert site_report.site_report(january).created == 0
    assert site_report.site_report(today()).judgments == 43


def test_what_machine_judges_cost_has_signs_between_thousands(
    judged: Campaign, admin: Client
) -> None:
    by, topic = judged.created_by, judged.topics.all()[0]
    machine = MachineJudge.objects.create(
        campaign=judged, name="m", endpoint="e", model="m", max_calls=1, document_chars=200,
        created_by=by,
    )  # fmt: skip
    prompt = MachinePrompt.objects.create(judge=machine, number=1, grades=[], created_by=by)
    MachineAnswer.objects.create(
        prompt=prompt, topic=topic, docno="d", outcome="graded", grade=1, tries=1, seconds=1.0,
        cost=30_750 * 10**9,
    )  # fmt: skip
    assert text(admin.get(reverse("site-report"))).count("30,750.00") == 2


@pytest.mark.parametrize("name", ["site-report", "site-report-file"])
def test_a_period_without_work_is_told(name: str, judged: Campaign, admin: Client) -> None:
    answer = admin.get(reverse(name), {"since": "2001-01-01", "until": "2001-01-31"})
    assert answer.status_code == 200
    told = b"".join(answer).decode()
    assert judged.name not in told
    assert (
        site_report.site_report(site_report.Period(date(2001, 1, 1), date(2001, 1, 2))).rows == []
    )


@pytest.mark.on_both
def test_agreement_is_that_of_every_two_labels(judged: Campaign) -> None:
    doubled = Judgment.objects.filter(assignment__pair__judged=2, revision=1).order_by("pk")
    changed = doubled[0]
    saying = judgments.Saying(grade=0 if changed.grade else 1, key="differs")
    judgments.correct(assignment=changed.assignment, by=changed.assessor, saying=saying, revision=1)
    pairs = judged.pairs.filter(judged=2).count()
    (row,) = site_report.site_report(today()).rows
    assert row.compared == pairs > 1
    assert row.same == pytest.approx((pairs - 1) / pairs)


def test_the_file_has_the_numbers_of_the_page_and_no_formulas(
    judged: Campaign, admin: Client
) -> None:
    Campaign.objects.filter(pk=judged.pk).update(name='=HYPERLINK("http://evil")')
    answer = admin.get(reverse("site-report-file"))
    (line,) = csv.DictReader(io.StringIO(b"".join(answer).decode()))
    assert line["name"] == '\'=HYPERLINK("http://evil")'
    (row,) = site_report.site_report(today()).rows
    assert (int(line["judgments"]), int(line["assessors"])) == (row.judgments, row.assessors)
    assert float(line["same_grade"]) == row.same


@pytest.mark.slow
@pytest.mark.usefixtures("on_paper")
def test_the_report_on_paper_has_the_numbers_of_the_page(judged: Campaign, admin: Client) -> None:
    Campaign.objects.filter(pk=judged.pk).update(name="<img src=file:///etc/passwd>")
    answer = admin.get(reverse("site-report-pdf"))
    assert answer["Content-Type"] == "application/pdf"
    assert answer["Content-Disposition"].endswith('.pdf"')
    sheet = PdfDocument(answer.content)[0]
    width, height = sheet.get_size()
    assert (round(width), round(height)) == (595, 842)  # A4
    said = sheet.get_textpage().get_text_range()
    (row,) = site_report.site_report(today()).rows
    assert "<img src=file:///etc/passwd>" in " ".join(said.split())
    assert str(row.judgments) in said


@pytest.mark.usefixtures("on_paper")
def test_nobody_waits_for_a_pdf_without_end(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "PDF_SECONDS", 0.001)
    answer = admin.get(reverse("site-report-pdf"), follow=True)
    assert "it took longer than 0.001 s" in text(answer)


@pytest.mark.slow
@pytest.mark.usefixtures("on_paper")
def test_where_no_pdf_can_be_made_the_page_says_what_is_missing(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf.pdf, "__name__", "tests.support.no_pango")
    asked = {"since": "2001-01-01", "until": "2001-01-31"}
    answer = admin.get(reverse("site-report-pdf"), asked, follow=True)
    assert answer.redirect_chain[0][0].endswith("?since=2001-01-01&until=2001-01-31")
    assert "apt-get install libpango" in text(answer)


def test_a_period_that_ends_before_it_begins_is_refused(admin: Client) -> None:
    asked = {"since": "2026-02-01", "until": "2026-01-01"}
    said = text(admin.get(reverse("site-report"), asked))
    assert "choose a later day" in said
    client = rest.client_of(User.objects.get(username="the-admin"))
    answer = client.get("/api/site/report/?since=2026-02-01&until=2026-01-01")
    assert answer.status_code == 400
    assert [line["field"] for line in answer.json()["errors"]] == ["until"]


@pytest.mark.parametrize("asked", ["until=9999-12-31", "until=0001-01-01"])
def test_a_period_may_reach_to_the_ends_of_the_calendar(admin: Client, asked: str) -> None:
    assert admin.get(f"{reverse('site-report')}?{asked}").status_code == 200
    client = rest.client_of(User.objects.get(username="the-admin"))
    assert client.get(f"/api/site/report/?{asked}").status_code == 200


def test_programs_are_told_the_same(judged: Campaign) -> None:
    client = rest.client_of(User.objects.create_superuser("root"))
    told = client.get("/api/site/report/").json()
    found = site_report.site_report(today())
    assert (told["judgments"], told["same"]) == (found.judgments, found.same)
    assert [row["campaign"] for row in told["campaigns"]] == [judged.slug]
    owner = rest.client_of(judged.created_by)
    assert owner.get("/api/site/report/").status_code == 403


# -------------------------------------------------------------------------------- statements


def statements(admin: Client) -> dict[str, int]:
    """How many each page sends."""
    found = {}
    for name in (*PAGES, "site-report-file", "site-report-pdf"):
        with CaptureQueriesContext(connection) as sent:
            b"".join(admin.get(reverse(name)))
        found[name] = len(sent)
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("on_paper")
def test_statements_do_not_grow_with_the_site(judged: Campaign, admin: Client) -> None:
    statements(admin)
    factories.run_due_jobs()  # what files take is known
    few = statements(admin)
    other = evaluation.with_material(slug="second")
    evaluation.drawn(other)
    evaluation.judge(other, 30)
    for number in range(5):
        factories.assessors(factories.campaign(slug=f"more-{number}"), f"more-{number}")
        jobs.request("recompute", 10_000 + number, campaign=other)
    many = statements(admin)
    assert {name: (few[name], n) for name, n in many.items() if n > few[name]} == {}

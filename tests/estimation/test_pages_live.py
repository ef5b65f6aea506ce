"""The live pages in every state, what polls bring, and reports."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import comparisons, selectors
from estimation.models import Estimate, EstimateSet, Report, Round
from estimation.services import files, reports
from estimation.services.report_files.table import REPORTS
from estimation.work import QUALITY
from judging.models import Batch, Campaign, WorkerHeartbeat
from judging.services import jobs, steward
from tests.support import evaluation, factories, unknown
from tests.support.pages import (
    HTMX,
    TABS,
    address,
    text,
)

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def test_live_without_a_number_leads_to_the_current_round(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign, seed="later")
    there = address("live", campaign, judged.number)
    assert organizer.get(address("live-current", campaign))["Location"] == there
    assert organizer.get(address("live", campaign))["Location"] == there


@pytest.mark.slow
def test_live_before_the_first_batch_says_what_happens_next(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign)
    said = text(organizer.get(address("live", campaign, 1)))
    assert "No estimates yet" in said
    assert re.search(r"0 of the \d+ pairs of the first batch are judged", said)
    for name in TABS:
        assert organizer.get(address(name, campaign, 1)).status_code == 200


@pytest.mark.slow
def test_a_batch_is_in_the_numbers_when_they_are_computed(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("live", campaign, 1)
    assert "Batch 1 of 3 in the numbers" in text(organizer.get(there))
    batch = judged.round_batches.get(number=2).batch
    batch.state = Batch.State.COMPLETE
    batch.save()
    assert "Batch 1 of 3 in the numbers" in text(organizer.get(there))


@pytest.mark.slow
def test_live_shows_every_run_in_the_order_of_tiers_with_its_interval(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    response = organizer.get(address("live", campaign, 1))
    said = text(response)
    table = selectors.ranking_table(judged)
    assert table is not None
    places = [said.index(f" {row.tier} {row.tag}") for row in table.rows]
    assert places == sorted(places)
    may_be = sum(row.as_good_as_leader for row in table.rows)
    assert said.count("may be best") == (may_be if may_be > 1 else 0)
    assert "pairs of runs are decided" in said
    assert re.search(r"\d\.\d+ – \d\.\d+", said)


@pytest.mark.slow
def test_live_switches_the_measure_and_ignores_unknown_ones(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("live", campaign, 1)
    assert organizer.get(there, {"measure": "P@10"}).context["table"].measure == "P@10"
    assert organizer.get(there, {"measure": "RBP(p=0.5)"}).context["table"].measure == "DCG@10"


@pytest.mark.slow
def test_every_tab_has_a_title_of_its_own(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    """By which tabs of a browser, its history and screen readers tell them apart."""
    shown = [organizer.get(address(name, campaign, 1)).content.decode() for name in TABS]
    titles = [page.partition("<title>")[2].partition("</title>")[0] for page in shown]
    assert len(set(titles)) == len(TABS), titles


def test_the_keyboard_stays_at_its_run_when_places_change(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    """What had it before is found again by its id, which was that of the place."""

    def ids() -> dict[str, str]:
        page = organizer.get(address("live", campaign, 1)).content.decode()
        return {tag: name for name, tag in re.findall(r'<a id="(run-[^"]+)"[^>]*>([^<]+)<', page)}

    before = ids()
    first = next(iter(before))
    Estimate.objects.filter(run__tag=first).delete()
    assert ids() == {tag: name for tag, name in before.items() if tag != first}


def test_live_warns_when_no_worker_is_alive(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("live", campaign, 1)
    WorkerHeartbeat.objects.all().delete()
    assert "No worker is alive" in text(organizer.get(there))
    evaluation.worker_alive()
    said = text(organizer.get(there))
    assert "No worker is alive" not in said
    assert "worker alive" in said


@pytest.mark.slow
def test_what_waits_for_a_worker_that_reads_uploads_alone_says_so(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    """Numbers, a preview and reports: each where it is waited for."""
    evaluation.drafted(campaign, seed="later")
    reports.request(row=judged, by=campaign.created_by)
    WorkerHeartbeat.objects.all().delete()
    steward.beat("reader", "uploads")
    pages = [("live", 1), ("reports", 1), ("round-detail", 2), ("round-preview", 2)]

    for name, number in pages:
        said = text(organizer.get(address(name, campaign, number)))
        assert "No worker serves the queue “celery”" in said, name
        assert "Start one with “celery -A evalsite worker --queues celery”." in said, name
    steward.beat("worker", "celery")
    for name, number in pages:
        assert "No worker" not in text(organizer.get(address(name, campaign, number))), name


@pytest.mark.slow
def test_quality_shows_by_itself_what_a_worker_finds_after_the_estimates(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    EstimateSet.objects.filter(round=judged).update(quality=None)
    there = address("live-labels", campaign, 1)
    page = organizer.get(there)
    assert "Can the labels be trusted?" not in text(page)
    seen = {"head": page.context["head_token"], "body": page.context["body_token"]}
    jobs.request(QUALITY, judged.pk, campaign=campaign)
    factories.run_due_jobs()
    brought = organizer.get(there, seen, headers=HTMX)
    assert "Can the labels be trusted?" in brought.content.decode()


@pytest.mark.slow
@pytest.mark.parametrize("name", TABS)
def test_a_poll_brings_nothing_while_nothing_has_changed(
    name: str, judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address(name, campaign, 1)
    page = organizer.get(there)
    seen = {"head": page.context["head_token"], "body": page.context["body_token"]}
    with CaptureQueriesContext(connection) as asked:
        assert organizer.get(there, seen, headers=HTMX).status_code == 204
    assert not [query for query in asked if f'FROM "{Estimate._meta.db_table}"' in query["sql"]]
    head = organizer.get(there, seen | {"head": "older"}, headers=HTMX).content.decode()
    assert 'id="live-head"' in head
    assert 'id="live-body"' not in head, "the reader's table stays where it is"
    whole = organizer.get(there, {"head": "older", "body": "older"}, headers=HTMX)
    assert 'hx-swap-oob="true"' in whole.content.decode()
    assert "<html" not in whole.content.decode()


@pytest.mark.slow
def test_a_poll_brings_the_head_after_a_judgment_and_the_table_after_a_batch(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign)
    there = address("live", campaign, 1)
    page = organizer.get(there)
    seen = {"head": page.context["head_token"], "body": page.context["body_token"]}
    while organizer.get(there, seen, headers=HTMX).status_code == 204:
        assert evaluation.judge(campaign, 1)
    assert "live-body" not in organizer.get(there, seen, headers=HTMX).content.decode()
    evaluation.judge(campaign, 50)
    assert "live-body" in organizer.get(there, seen, headers=HTMX).content.decode()


@pytest.mark.slow
def test_a_poll_brings_the_bar_along_so_that_a_page_has_one_number(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign)
    there = address("live", campaign, 1)
    page = organizer.get(there)
    assert "0 of" in bar_of(page.content.decode())
    evaluation.judge(campaign, 45)
    headers = HTMX | {"HX-Current-URL": f"http://testserver{there}?measure=P%4010"}
    polled = organizer.get(there, {"head": "older", "measure": "P@10"}, headers=headers)
    progress = polled.context["progress"]
    said = bar_of(polled.content.decode())
    assert f"{progress.finished} of {progress.pairs} pairs judged" in said
    assert progress.finished > 0
    assert f'name="next" value="{there}?measure=P%4010"' in polled.content.decode()
    assert 'id="campaign-bar" aria-label="State of the campaign" hx-swap-oob' in (
        polled.content.decode()
    )


@pytest.mark.slow
def test_both_numbers_of_a_page_say_what_they_count(campaign: Campaign, organizer: Client) -> None:
    """The bar counts the whole of the current round, the ranking what its round has planned."""
    first = evaluation.drawn(campaign, method="adaptive", budget=80, batch_size=20)
    page = organizer.get(address("live", campaign, 1))
    planned = page.context["progress"].pairs
    assert planned < first.budget
    assert f"0 of about {first.budget} pairs judged" in bar_of(page.content.decode())
    assert f"0 of {planned} pairs planned so far judged" in text(page)
    evaluation.drawn(campaign, seed="another")
    page = organizer.get(address("live", campaign, 1))
    assert re.search(r"0 of \d+ pairs of round 2 judged", bar_of(page.content.decode()))


@pytest.mark.slow
def test_no_line_ends_between_a_sign_and_its_half_width(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign)
    for page in (address("live", campaign, judged.number), address("round-detail", campaign, 2)):
        content = organizer.get(page).content.decode()
        assert re.search("±(&nbsp;|\N{NO-BREAK SPACE})[0-9]", content)
        assert not re.search(r"± +[0-9]", content)


@pytest.mark.slow
def test_a_file_that_a_round_cannot_have_is_not_awaited(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign, method="adaptive")
    evaluation.judge(campaign, 45)
    menu = text(organizer.get(address("live", campaign, row.number)))
    assert "estimates.csv not made yet" in menu
    for name in ("prels.txt", "qrels-strata.txt"):
        assert f"{name} Why not?" in menu
    said = text(organizer.get(address("reports", campaign, row.number)))
    assert "qrels-strata.txtNot of this round: the probabilities of every batch" in said


def bar_of(content: str) -> str:
    """The words of the bar, of which there is one."""
    (bar,) = re.findall(r'<section class="campaign-bar".*?</section>', content, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", bar).split())


@pytest.mark.slow
def test_two_runs_are_compared(
    campaign: Campaign, organizer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = evaluation.drawn(campaign)
    unknown.patch(monkeypatch)
    evaluation.judge(campaign, 45)
    table = selectors.ranking_table(row)
    assert table is not None
    found = comparisons.compare(table, "run1", "run4")
    assert found is not None
    there = address("compare", campaign, 1)
    said = text(organizer.get(there, {"first": "run1", "second": "run4"}))
    assert "run1 less run4" in said
    assert ("surely better" in said) == (found.verdict != 0)
    away = text(organizer.get(there, {"first": "x", "second": "y"}))
    assert "x and y are not in this ranking: withdrawn since, or never in this round. Pick" in away
    assert "Pick two different" in text(organizer.get(there, {"first": "run1", "second": "run1"}))
    assert organizer.get(there).status_code == 200


@pytest.mark.slow
def test_hostile_tags_are_escaped_everywhere(organizer: Client, campaign: Campaign) -> None:
    tag = "<script>x</script>&\"'"
    hostile = evaluation.SMALL.runs["run1.run"].replace(b" run1\n", f" {tag}\n".encode())
    assert factories.stored_upload(campaign, hostile, name="h.run", kind="run").state == "accepted"
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 40)
    for report in evaluation.made_reports(row):
        if report.name == "report.html":
            assert b"<script" not in files.path_of(report.file).read_bytes()
    for name in (*TABS, "round-detail"):
        content = organizer.get(address(name, campaign, 1)).content.decode()
        assert "<script>x" not in content


@pytest.mark.slow
@pytest.mark.on_both
def test_lower_bounds_are_called_so(judged: Round, campaign: Campaign, organizer: Client) -> None:
    latest = selectors.latest_estimates(judged)
    assert latest is not None
    latest.estimates.filter(run__tag="run2", measure="DCG@10").update(support=0.7)
    said = text(organizer.get(address("live", campaign, 1)))
    assert "counts for run2. Its value is a lower bound, and it is called worse" in said
    assert said.count("≥") == 1


@pytest.mark.slow
def test_reports_are_asked_for_made_and_downloaded(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("reports", campaign, 1)
    assert "No files yet" in text(organizer.get(there))
    organizer.post(address("report-make", campaign, 1))
    waiting = organizer.get(there)
    assert "Being made" in text(waiting)
    assert 'hx-trigger="every 2s"' in waiting.content.decode()
    assert "No worker is alive" in text(waiting)
    factories.run_due_jobs()
    evaluation.worker_alive()
    listed = organizer.get(there, headers=HTMX)
    assert "pairs judged" in bar_of(listed.content.decode()), "the next step may be another one"
    assert f'name="next" value="{there}"' in listed.content.decode()
    assert "<html" not in listed.content.decode()
    assert "hx-trigger" not in listed.content.decode()
    for report in Report.objects.filter(refused=""):
        assert report.name in text(listed)
        response = organizer.get(address("report-file", campaign, 1, report.pk))
        assert response["Content-Disposition"].startswith("attachment")
        assert report.name in response["Content-Disposition"]
        body = b"".join(response.streaming_content)  # type: ignore[attr-defined]
        assert len(body) == report.size
    assert Report.objects.count() == len(REPORTS)


@pytest.mark.slow
def test_reports_before_the_first_batch(campaign: Campaign, organizer: Client) -> None:
    evaluation.drawn(campaign)
    assert "Nothing to take along yet" in text(organizer.get(address("reports", campaign, 1)))
    assert organizer.post(address("report-make", campaign, 1)).status_code == 409
    there = address("reports", campaign, 1)
    assert organizer.get(address("report-list", campaign))["Location"] == there


@pytest.mark.slow
def test_newer_estimates_ask_for_newer_reports(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    evaluation.made_reports(judged)
    before = EstimateSet.objects.count()
    evaluation.judge(campaign, 200)
    assert EstimateSet.objects.count() > before
    said = text(organizer.get(address("reports", campaign, 1)))
    assert "There are newer estimates" in said
    assert "Earlier" in said


@pytest.mark.slow
def test_the_html_report_is_whole_by_itself_and_shown_with_the_site_s_styles(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    made = {each.name: each for each in evaluation.made_reports(judged)}
    report, csv = made["report.html"], made["estimates.csv"]
    document = files.path_of(report.file).read_text()
    assert "<style>" in document
    assert "--accent" in document
    for outside in ("src=", "<link", "<script", "url(", "hx-"):
        assert outside not in document, "it must look right without the site"
    shown = organizer.get(address("report-view", campaign, 1, report.pk))
    content = shown.content.decode()
    assert "<style" not in content
    assert "style=" not in content
    assert "How to reproduce" in content
    assert organizer.get(address("report-view", campaign, 1, csv.pk)).status_code == 404


@pytest.mark.slow
def test_the_report_says_what_a_reader_must_know(judged: Round) -> None:
    report = evaluation.made_reports(judged, "report.html")[0]
    latest = selectors.latest_estimates(judged)
    assert latest is not None
    assert judged.pool is not None
    document = files.path_of(report.file).read_text()
    for fact in (judged.seed, judged.pool.digest, latest.digest, latest.label_digest):
        assert fact in document
    for heading in (
        "Findings",
        "What was evaluated",
        "How the sample was drawn",
        "Who judged, and how they agreed",
        "Results by DCG@10",
        "Results by P@10",
        "Limits",
        "Decisions of the organizer",
        "How to reproduce",
    ):
        assert f"<h2>{heading}</h2>" in document
    assert "anna" not in document
    assert document.count("assessor-") == 2
    assert "The round is not complete" in document

"""The organizer's pages: who may see them, what they say in every state, what polls bring."""

import re
import subprocess
import sys
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from estimation import selectors
from estimation.models import EstimateSet, Report, Round
from estimation.services import files, reports, rounds
from judging.models import Campaign, Job, User, WorkerHeartbeat
from judging.services import assignments, campaigns
from tests.support import evaluation, factories

pytestmark = pytest.mark.django_db

SIGN_IN, OK, FORBIDDEN, MISSING = 302, 200, 403, 404
ORGANIZING = {
    "anonymous": SIGN_IN,
    "assessor": FORBIDDEN,
    "other": MISSING,
    "organizer": OK,
    "admin": OK,
}
PAGES = (
    "run-list",
    "round-list",
    "round-new",
    "round-detail",
    "round-preview",
    "live",
    "live-pairs",
    "live-history",
    "live-batches",
    "live-labels",
    "compare",
    "reports",
    "material",
    "upload-list",
    "topic-list",
    "document-list",
)
POSTS = ("round-change", "round-draw", "round-discard", "report-make")
IN_ROUND = {*PAGES[3:12], *POSTS}
TABS = ("live", "live-pairs", "live-history", "live-batches", "live-labels", "compare")
HTMX = {"HX-Request": "true"}


@pytest.fixture
def campaign() -> Campaign:
    return evaluation.with_material()


@pytest.fixture
def bare() -> Campaign:
    """A campaign with a drafted round and no material."""
    made = factories.campaign()
    rounds.draft(campaign=made, by=made.created_by, plan=evaluation.plan())
    return made


@pytest.fixture
def judged(campaign: Campaign) -> Round:
    """A round of which the first batch is complete."""
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 45)
    row.refresh_from_db()
    assert selectors.latest_estimates(row) is not None
    return row


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def as_role(role: str, campaign: Campaign) -> Client:
    client = Client()
    if role == "assessor":
        client.force_login(factories.assessors(campaign, "the-assessor")[0])
    elif role == "organizer":
        client.force_login(campaign.created_by)
    elif role == "other":
        client.force_login(factories.campaign(slug="other").created_by)
    elif role == "admin":
        client.force_login(User.objects.create_superuser("the-admin"))
    return client


def address(name: str, campaign: Campaign, *more: int) -> str:
    return reverse(name, args=[campaign.slug, *more])


def text(response: HttpResponse) -> str:
    """What a reader sees: tags away, white space as one blank."""
    visible = re.sub(
        r"<svg.*?</svg>|<select.*?</select>", " ", response.content.decode(), flags=re.S
    )
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", visible))


# ---------------------------------------------------------------------------------------- roles


@pytest.mark.parametrize("role", ORGANIZING)
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_for_organizers_of_the_campaign(role: str, name: str, bare: Campaign) -> None:
    response = as_role(role, bare).get(address(name, bare, *([1] if name in IN_ROUND else [])))
    if name in TABS and ORGANIZING[role] == OK:
        assert response["Location"] == address("round-detail", bare, 1), "nothing to rank yet"
    else:
        assert response.status_code == ORGANIZING[role]


@pytest.mark.parametrize("role", ["anonymous", "assessor", "other"])
@pytest.mark.parametrize("name", POSTS)
def test_nobody_else_changes_a_round(role: str, name: str, bare: Campaign) -> None:
    response = as_role(role, bare).post(address(name, bare, 1))
    assert response.status_code == ORGANIZING[role]
    assert list(Round.objects.values_list("state", flat=True)) == [Round.State.DRAFTED]
    assert Job.objects.filter(kind="draw").count() == 0


@pytest.mark.parametrize("name", POSTS)
def test_changes_need_a_post(name: str, bare: Campaign) -> None:
    assert as_role("organizer", bare).get(address(name, bare, 1)).status_code == 405


def test_a_round_of_another_campaign_is_not_reached_by_its_number(organizer: Client) -> None:
    other = evaluation.with_material(slug="other")
    rounds.draft(campaign=other, by=other.created_by, plan=evaluation.plan())
    campaign = Campaign.objects.get(slug="test")
    assert organizer.get(address("round-detail", campaign, 1)).status_code == 404


def test_reports_of_one_round_are_not_reached_through_another(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    report = made_reports(judged)[0]
    later = evaluation.drafted(campaign, seed="another")
    for name in ("report-file", "report-view"):
        assert organizer.get(address(name, campaign, later.number, report.pk)).status_code == 404


@pytest.mark.parametrize("role", ["anonymous", "assessor", "other"])
def test_report_files_are_for_organizers(role: str, judged: Round, campaign: Campaign) -> None:
    report = made_reports(judged)[0]
    found = as_role(role, campaign).get(address("report-file", campaign, judged.number, report.pk))
    assert found.status_code == ORGANIZING[role]


# ----------------------------------------------------------------------------------------- home


def test_home_sends_who_only_judges_to_judging(campaign: Campaign) -> None:
    response = as_role("assessor", campaign).get(address("campaign-home", campaign))
    assert response["Location"] == address("judge", campaign)
    other = as_role("other", campaign).get(address("campaign-home", campaign))
    assert other.status_code == MISSING


def test_home_of_an_empty_campaign_asks_for_material() -> None:
    empty = factories.campaign(topics=0)
    client = Client()
    client.force_login(empty.created_by)
    said = text(client.get(address("campaign-home", empty)))
    assert "Still missing: topics, documents, runs" in said
    assert "No worker is alive" in said


def test_home_follows_the_round(judged: Round, campaign: Campaign, organizer: Client) -> None:
    evaluation.worker_alive()
    said = text(organizer.get(address("campaign-home", campaign)))
    assert "4 runs" in said
    assert "6 topics, 24 documents" in said
    assert "DCG@10" in said
    assert "2 assessors" in said
    assert re.search(r"of \d+ pairs, estimates from batch [1-9]", said)
    assert "No worker is alive" not in said
    assert "Nothing. Everything" in said


def test_home_names_what_needs_attention(campaign: Campaign, organizer: Client) -> None:
    evaluation.drawn(campaign, labels=3, extra_share=0)
    factories.stored_upload(campaign, b"1 Q0 broken\n", name="broken.run", kind="run")
    Job.objects.create(
        kind="recompute", target=1, campaign=campaign, state=Job.State.FAILED, error="disk full"
    )
    campaigns.close(campaign=Campaign.objects.get(), by=campaign.created_by)
    said = text(organizer.get(address("campaign-home", campaign)))
    assert "1 file was rejected" in said
    assert "Computing the estimates failed: disk full" in said
    assert "the campaign is not open" in said
    assert "Some pairs want 3 labels, but there are 2 assessors" in said
    assert said.index("disk full") < said.index("1 file was rejected"), "the worst comes first"


def test_home_tells_of_pairs_that_wait_for_a_decision(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign)
    by = User.objects.get(username="anna")
    assignment = assignments.claim_next(campaign=campaign, by=by)
    assert assignment is not None
    assignments.skip(assignment=assignment, by=by, reason="unreadable")
    said = text(organizer.get(address("campaign-home", campaign)))
    assert "Batch 1 waits for 1 pair that nobody could judge" in said
    said = text(organizer.get(address("live", campaign, 1)))
    assert "1 pair waits for your decision" in said


# --------------------------------------------------------------------------------------- rounds


FORM = {
    "goal": "absolute",
    "measure": "DCG@10",
    "reported": "P@10, RBP(p=0.8,rel=2)",
    "budget": "60",
    "batch_size": "20",
    "labels": "1",
    "extra_share": "0.5",
    "prior": "rank",
    "method": "poisson",
    "eps": "",
    "seed": "abc",
}


def test_a_round_is_planned_previewed_changed_and_drawn(
    campaign: Campaign, organizer: Client
) -> None:
    response = organizer.post(address("round-new", campaign), FORM)
    page = address("round-detail", campaign, 1)
    assert response["Location"] == page
    assert "Working it out" in text(organizer.get(page))
    factories.run_due_jobs()
    said = text(organizer.get(page))
    assert "What it buys" in said
    assert "judgments of 60 pairs" in said
    row = Round.objects.get()
    assert row.reported == ["P@10", "RBP(p=0.8,rel=2)"]

    organizer.post(address("round-change", campaign, 1), FORM | {"budget": "40"})
    assert "Working it out" in text(organizer.get(page))
    factories.run_due_jobs()
    assert "judgments of 40 pairs" in text(organizer.get(page))

    organizer.post(address("round-draw", campaign, 1))
    assert "Drawing" in text(organizer.get(page))
    factories.run_due_jobs()
    said = text(organizer.get(page))
    assert "frozen since" in said
    assert "abc" in said
    refused = organizer.post(address("round-change", campaign, 1), FORM)
    assert refused.status_code == 409
    assert "is frozen" in text(refused)


def test_the_form_offers_the_choices_of_the_round_before_but_not_its_seed(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign, budget=44, seed="once-only")
    page = organizer.get(address("round-new", campaign)).content.decode()
    assert 'value="44"' in page
    assert "once-only" not in page


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"measure": "nonsense"}, "measure"),
        ({"budget": "0"}, "greater than or equal to 1"),
        ({"batch_size": "100"}, "the budget"),
        ({"goal": "single"}, "needs a run of the campaign"),
        ({"extra_share": "2"}, "less than or equal to 1"),
    ],
)
def test_a_wrong_choice_is_said_at_its_field(
    wrong: dict[str, str], said: str, campaign: Campaign, organizer: Client
) -> None:
    response = organizer.post(address("round-new", campaign), FORM | wrong)
    assert response.status_code == 200
    assert said in text(response)
    assert not Round.objects.exists()


def test_a_design_that_cannot_be_made_says_why_and_cannot_be_drawn(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drafted(campaign, measure="P(rel=5)@10", reported=[])
    response = organizer.get(address("round-detail", campaign, row.number))
    assert "This cannot be drawn" in text(response)
    assert row.preview["error"] in text(response)
    assert address("round-draw", campaign, row.number) not in response.content.decode()


def test_saving_by_htmx_answers_with_the_preview_alone(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign)
    there = address("round-change", campaign, 1)
    response = organizer.post(there, FORM, headers=HTMX)
    content = response.content.decode()
    assert content.lstrip().startswith('<section id="preview"')
    assert "hx-get" in content, "it goes on asking until the preview is there"


def test_a_wrong_choice_by_htmx_brings_the_form_back_and_so_does_mending_it(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign)
    there = address("round-change", campaign, 1)
    response = organizer.post(there, FORM | {"measure": "nonsense"}, headers=HTMX)
    assert response["HX-Retarget"] == "#planning"
    assert "had_errors" in response.content.decode()
    mended = organizer.post(there, FORM | {"had_errors": "1"}, headers=HTMX)
    assert mended["HX-Retarget"] == "#planning"
    assert "had_errors" not in mended.content.decode()


def test_the_preview_is_sent_again_only_when_something_has_changed(
    campaign: Campaign, organizer: Client
) -> None:
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=evaluation.plan())
    there = address("round-preview", campaign, row.number)
    first = organizer.get(there, headers=HTMX)
    seen = first.context["token"]
    assert organizer.get(there, {"seen": seen}, headers=HTMX).status_code == 204
    factories.run_due_jobs()
    second = organizer.get(there, {"seen": seen}, headers=HTMX)
    assert "What it buys" in text(second)
    assert "hx-trigger" not in second.content.decode(), "nothing more to wait for"


def test_the_preview_leads_to_the_frozen_page_after_the_draw(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign)
    response = organizer.get(address("round-preview", campaign, row.number), headers=HTMX)
    assert response["HX-Redirect"] == address("round-detail", campaign, row.number)


def test_a_drafted_round_is_discarded_and_a_drawn_one_is_not(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign)
    organizer.post(address("round-discard", campaign, 1))
    assert not Round.objects.exists()
    evaluation.drawn(campaign)
    assert organizer.post(address("round-discard", campaign, 1)).status_code == 409
    assert Round.objects.exists()


def test_every_goal_and_method_has_a_preview(campaign: Campaign, organizer: Client) -> None:
    for values in (
        {"goal": "single", "run": "run1"},
        {"goal": "pair", "run": "run1", "baseline": "run2"},
        {"goal": "baseline", "baseline": "run3"},
        {"goal": "ranking", "method": "iid", "eps": 0.1},
    ):
        row = evaluation.drafted(campaign, **values)
        said = text(organizer.get(address("round-detail", campaign, row.number)))
        assert "What it buys" in said, values


def test_the_round_list_counts_each_round_once(judged: Round, campaign: Campaign) -> None:
    evaluation.drafted(campaign, seed="t")
    rows = {row.round.number: row for row in selectors.round_rows(campaign)}
    progress = selectors.round_progress(judged)
    assert rows[judged.number].pairs == progress.pairs
    assert rows[judged.number].finished == progress.finished
    assert rows[judged.number].complete == progress.complete
    assert rows[judged.number].batches == len(progress.batches)
    assert rows[2].pairs == 0


# ----------------------------------------------------------------------------------------- live


def test_live_without_a_number_leads_to_the_current_round(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign, seed="later")
    there = address("live", campaign, judged.number)
    assert organizer.get(address("live-current", campaign))["Location"] == there
    assert organizer.get(address("live", campaign))["Location"] == there


def test_live_before_the_first_batch_says_what_happens_next(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign)
    said = text(organizer.get(address("live", campaign, 1)))
    assert "No estimates yet" in said
    assert re.search(r"0 of the \d+ pairs of the first batch are judged", said)
    for name in TABS:
        assert organizer.get(address(name, campaign, 1)).status_code == 200


def test_live_shows_every_run_in_rank_order_with_its_interval(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    response = organizer.get(address("live", campaign, 1))
    said = text(response)
    table = selectors.ranking_table(judged)
    assert table is not None
    places = [said.index(f" {row.rank} {row.tag}") for row in table.rows]
    assert places == sorted(places)
    assert said.count("≈ leader") >= sum(row.as_good_as_leader for row in table.rows) - 1
    assert "pairs of runs are decided" in said
    assert re.search(r"\d\.\d+ ± \d", said)


def test_live_switches_the_measure_and_ignores_unknown_ones(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("live", campaign, 1)
    assert organizer.get(there, {"measure": "P@10"}).context["table"].measure == "P@10"
    assert organizer.get(there, {"measure": "RBP(p=0.5)"}).context["table"].measure == "DCG@10"


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


@pytest.mark.parametrize("name", TABS)
def test_a_poll_brings_nothing_while_nothing_has_changed(
    name: str, judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address(name, campaign, 1)
    page = organizer.get(there)
    seen = {"head": page.context["head_token"], "body": page.context["body_token"]}
    assert organizer.get(there, seen, headers=HTMX).status_code == 204
    head = organizer.get(there, seen | {"head": "older"}, headers=HTMX).content.decode()
    assert 'id="live-head"' in head
    assert 'id="live-body"' not in head, "the reader's table stays where it is"
    whole = organizer.get(there, {"head": "older", "body": "older"}, headers=HTMX)
    assert 'hx-swap-oob="true"' in whole.content.decode()
    assert "<html" not in whole.content.decode()


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


def test_two_runs_are_compared(judged: Round, campaign: Campaign, organizer: Client) -> None:
    table = selectors.ranking_table(judged)
    assert table is not None
    found = selectors.compare(table, "run1", "run4")
    assert found is not None
    there = address("compare", campaign, 1)
    said = text(organizer.get(there, {"first": "run1", "second": "run4"}))
    assert "run1 less run4" in said
    assert ("surely better" in said) == (found.verdict != 0)
    assert "Pick two different runs" in text(organizer.get(there, {"first": "x", "second": "y"}))
    assert "Pick two different" in text(organizer.get(there, {"first": "run1", "second": "run1"}))
    assert organizer.get(there).status_code == 200


def test_hostile_tags_are_escaped_everywhere(organizer: Client, campaign: Campaign) -> None:
    tag = "<script>x</script>&\"'"
    hostile = evaluation.SMALL.runs["run1.run"].replace(b" run1\n", f" {tag}\n".encode())
    assert factories.stored_upload(campaign, hostile, name="h.run", kind="run").state == "accepted"
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 40)
    for report in made_reports(row):
        if report.name == Report.Name.HTML:
            assert b"<script" not in files.path_of(report.file).read_bytes()
    for name in (*TABS, "round-detail"):
        content = organizer.get(address(name, campaign, 1)).content.decode()
        assert "<script>x" not in content


def test_lower_bounds_are_called_so(judged: Round, campaign: Campaign, organizer: Client) -> None:
    latest = selectors.latest_estimates(judged)
    assert latest is not None
    latest.estimates.filter(run__tag="run2", measure="DCG@10").update(support=0.7)
    said = text(organizer.get(address("live", campaign, 1)))
    assert "counts for run2: these values are lower bounds" in said
    assert said.count("≥") == 1


def test_queries_do_not_grow_with_what_is_shown(
    judged: Round, campaign: Campaign, organizer: Client, django_assert_max_num_queries: Any
) -> None:
    for name in TABS:
        with django_assert_max_num_queries(25):
            organizer.get(address(name, campaign, 1))
    for name in ("round-list", "run-list", "material", "document-list", "campaign-home"):
        with django_assert_max_num_queries(25):
            organizer.get(address(name, campaign))
    page = organizer.get(address("live", campaign, 1))
    seen = {"head": page.context["head_token"], "body": page.context["body_token"]}
    with django_assert_max_num_queries(20):
        organizer.get(address("live", campaign, 1), seen, headers=HTMX)


def test_pages_load_neither_scipy_nor_the_arithmetic() -> None:
    code = (
        "import django; django.setup(); from django.urls import get_resolver;"
        "get_resolver().url_patterns; import sys;"
        "import estimation.urls, judging.urls, estimation.templatetags.figures;"
        "print([m for m in sys.modules if m.split('.')[0] == 'scipy'"
        " or m in ('estimation.core.designs', 'estimation.core.evaluation')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -------------------------------------------------------------------------------------- reports


def made_reports(row: Round) -> list[Report]:
    reports.request(row=row, by=row.created_by)
    factories.run_due_jobs()
    return list(Report.objects.filter(estimate_set__round=row))


def test_reports_are_asked_for_made_and_downloaded(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("reports", campaign, 1)
    assert "No report yet" in text(organizer.get(there))
    organizer.post(address("report-make", campaign, 1))
    waiting = organizer.get(there)
    assert "Being made" in text(waiting)
    assert 'hx-trigger="every 2s"' in waiting.content.decode()
    assert "No worker is alive" in text(waiting)
    factories.run_due_jobs()
    listed = organizer.get(there, headers=HTMX)
    assert "<html" not in listed.content.decode()
    assert "hx-trigger" not in listed.content.decode()
    for report in Report.objects.all():
        assert report.name in text(listed)
        response = organizer.get(address("report-file", campaign, 1, report.pk))
        assert response["Content-Disposition"].startswith("attachment")
        assert report.name in response["Content-Disposition"]
        body = b"".join(response.streaming_content)  # type: ignore[attr-defined]
        assert len(body) == report.size
    assert Report.objects.count() == len(Report.Name)


def test_reports_before_the_first_batch(campaign: Campaign, organizer: Client) -> None:
    evaluation.drawn(campaign)
    assert "Nothing to report yet" in text(organizer.get(address("reports", campaign, 1)))
    assert organizer.post(address("report-make", campaign, 1)).status_code == 409
    there = address("reports", campaign, 1)
    assert organizer.get(address("report-list", campaign))["Location"] == there


def test_newer_estimates_ask_for_newer_reports(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    made_reports(judged)
    before = EstimateSet.objects.count()
    evaluation.judge(campaign, 200)
    assert EstimateSet.objects.count() > before
    said = text(organizer.get(address("reports", campaign, 1)))
    assert "There are newer estimates" in said
    assert "Earlier" in said


def test_the_html_report_is_whole_by_itself_and_shown_with_the_site_s_styles(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    report = next(r for r in made_reports(judged) if r.name == Report.Name.HTML)
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
    csv = next(r for r in Report.objects.all() if r.name == Report.Name.ESTIMATES_CSV)
    assert organizer.get(address("report-view", campaign, 1, csv.pk)).status_code == 404


def test_the_report_says_what_a_reader_must_know(judged: Round) -> None:
    report = next(r for r in made_reports(judged) if r.name == Report.Name.HTML)
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
    assert "anna" in document
    assert "The round is not complete" in document


# ---------------------------------------------------------------------------------------- admin


def test_admins_look_at_rounds_and_numbers_but_change_nothing(judged: Round) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("the-admin"))
    for model in (
        "run",
        "pool",
        "round",
        "roundbatch",
        "draw",
        "estimateset",
        "estimate",
        "report",
    ):
        assert client.get(reverse(f"admin:estimation_{model}_changelist")).status_code == 200
        assert client.get(reverse(f"admin:estimation_{model}_add")).status_code == 403
    page = reverse("admin:estimation_round_change", args=[judged.pk])
    assert client.get(page).status_code == 200
    assert client.post(page, {"seed": "other"}).status_code == 403

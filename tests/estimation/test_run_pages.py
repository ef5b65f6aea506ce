"""The page of a run, and of a topic: what they say, in how many queries; the same by REST."""

import io
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import topic_facts as facts_of_topics
from estimation.models import Round, Run
from estimation.run_facts import alike_runs, run_facts
from estimation.selectors import ranking_table
from estimation.services import rounds, withdrawals
from estimation.standing import pooled_by_runs
from estimation.topic_facts import topic_facts
from estimation.topic_results import NOISY
from judging.models import AuditEntry, Campaign, Judgment, Pair, Upload
from judging.services import campaigns
from tests.core.length import bounded
from tests.support import evaluation, factories, rest
from tests.support.later import join, lines_of, with_news
from tests.support.material import small_material
from tests.support.pages import ORGANIZING, address, as_role, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def run_of(campaign: Campaign, tag: str = "run2") -> Run:
    return campaign.runs.select_related("campaign", "upload").get(tag=tag)


def lists(name: str) -> dict[str, list[str]]:
    """What a run of the material returns, best first, read without the product."""
    found: dict[str, list[tuple[float, str]]] = {}
    for line in evaluation.SMALL.runs[f"{name}.run"].decode().splitlines():
        topic, _, docno, _, score, _ = line.split()
        found.setdefault(topic, []).append((-float(score), docno))
    return {topic: [docno for _, docno in sorted(rows)] for topic, rows in found.items()}


def posted(client: Client, name: str, campaign: Campaign, *more: int, **body: Any) -> str:
    return text(client.post(address(name, campaign, *more), body, follow=True))


# ---------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize("role", ORGANIZING)
@pytest.mark.parametrize("name", ["run-detail", "topic-detail"])
def test_who_sees_the_pages(campaign: Campaign, name: str, role: str) -> None:
    row = run_of(campaign).pk if name == "run-detail" else campaign.topics.all()[0].pk
    assert as_role(role, campaign).get(address(name, campaign, row)).status_code == ORGANIZING[role]


@pytest.mark.parametrize("role", ["assessor", "other"])
@pytest.mark.parametrize("name", ["run-about", "run-replace", "run-fields", "upload-take-in"])
def test_others_change_nothing(campaign: Campaign, name: str, role: str) -> None:
    more = {"run-fields": [], "upload-take-in": [campaign.uploads.all()[0].pk]}
    row = more.get(name, [run_of(campaign).pk])
    client, before = as_role(role, campaign), AuditEntry.objects.count()
    body = {"team": "x", "names": "x", "given": io.BytesIO(b"x")}
    status = client.post(address(name, campaign, *row), body).status_code
    assert status == ORGANIZING[role]
    assert AuditEntry.objects.count() == before


@pytest.mark.slow
def test_a_page_of_another_campaign_is_not_there(campaign: Campaign, organizer: Client) -> None:
    other = evaluation.with_material(slug="another")
    for name, row in (("run-detail", other.runs.all()[0]), ("topic-detail", other.topics.all()[0])):
        assert organizer.get(address(name, campaign, row.pk)).status_code == 404


def test_what_is_in_common_is_counted(campaign: Campaign) -> None:
    mine, theirs = lists("run2"), lists("run1")
    common = sum(len(set(docs[:10]) & set(theirs[t][:10])) for t, docs in mine.items())
    every = sum(len(docs[:10]) for docs in mine.values())
    line = next(each for each in alike_runs(run_of(campaign)).every if each.tag == "run1")
    assert line.shallow == pytest.approx(common / every)
    assert 0 < line.shallow < 1
    assert not line.same


@pytest.mark.slow
@pytest.mark.on_both
def test_the_most_alike_stand_first_and_a_copy_is_named(
    campaign: Campaign, organizer: Client
) -> None:
    join(campaign, lines_of("run2", "zz-copy"))
    found = alike_runs(run_of(campaign)).every
    assert (found[0].tag, found[0].same, found[0].deep) == ("zz-copy", True, 1)
    assert [each.deep for each in found] == sorted((each.deep for each in found), reverse=True)
    where = address("run-detail", campaign, run_of(campaign).pk)
    assert "ranks the same" not in text(organizer.get(where)), "the page does not wait for it"
    part = organizer.get(where, {"part": "alike"}, headers={"HX-Request": "true"})
    page = text(organizer.get(where, {"part": "alike"}))
    assert len(text(part)) < len(page)
    assert "ranks the same documents in the same order as zz-copy" in text(part)
    assert "ranks the same documents in the same order as zz-copy" in page


def test_the_same_documents_in_another_order_are_no_copy(campaign: Campaign) -> None:
    turned = b"".join(
        b"%s Q0 %s 1 %d turned\n" % (topic.encode(), docno.encode(), place)
        for topic, docnos in lists("run2").items()
        for place, docno in enumerate(docnos)
    )
    join(campaign, turned)
    line = next(each for each in alike_runs(run_of(campaign)).every if each.tag == "turned")
    assert (line.deep, line.same) == (1.0, False)


def test_how_far_it_is_judged(campaign: Campaign, judged: Round) -> None:
    run, returned = run_of(campaign), lists("run2")
    (standing, bar), *others = run_facts(run).standings
    assert not others
    mine = {(topic, docno) for topic, docnos in returned.items() for docno in docnos}
    pairs = [each.pair for each in judged.draws.select_related("pair__topic")]
    mine_drawn = [pair for pair in pairs if (pair.topic.topic_id, pair.docno) in mine]
    assert (standing.documents, standing.outside) == (len(mine), 0)
    assert standing.drawn == len(mine_drawn)
    assert standing.judged == sum(pair.judged > 0 for pair in mine_drawn)
    assert 0 < standing.judged < standing.drawn < standing.documents
    assert sum(part.count for part in bar.parts) == standing.documents


@pytest.mark.slow
def test_what_came_later_is_outside(campaign: Campaign, judged: Round, organizer: Client) -> None:
    join(campaign, with_news("novel"))
    run = run_of(campaign, "novel")
    ((standing, _),) = run_facts(run).standings
    assert standing.outside == 4 * campaign.topics.count()
    page = text(organizer.get(address("run-detail", campaign, run.pk)))
    assert "24 came after the draw and could not be drawn" in page


@pytest.mark.slow
def test_its_estimate_is_that_of_the_ranking(
    campaign: Campaign, judged: Round, organizer: Client
) -> None:
    run = run_of(campaign)
    found = run_facts(run).estimate
    assert found is not None
    row = judged.estimate_sets.latest("number").estimates.get(
        run=run, measure=judged.measure, primary=True
    )
    assert (found.line.value, found.line.low, found.line.high) == (row.value, row.low, row.high)
    page = text(organizer.get(address("run-detail", campaign, run.pk)))
    assert f"{row.value:.{found.digits}f}" in page
    withdrawals.withdraw(run=run, by=campaign.created_by)
    factories.run_due_jobs()
    page = text(organizer.get(address("run-detail", campaign, run.pk)))
    assert "A withdrawn run is told of no more" in page


# ---------------------------------------------------------------------------------- metadata


@pytest.mark.slow
def test_team_description_and_fields_are_said_and_logged(
    campaign: Campaign, organizer: Client
) -> None:
    run = run_of(campaign)
    posted(organizer, "run-fields", campaign, names="Year\n\n  Index   size\n")
    campaign.refresh_from_db()
    assert campaign.run_fields == ["Year", "Index size"]
    body = {"team": "Team <b>", "description": "BM25", "own-0": "2026", "own-1": ""}
    page = posted(organizer, "run-about", campaign, run.pk, **body)
    assert "Team &lt;b&gt;" in page
    assert "2026" in page
    entry = AuditEntry.objects.get(action="describe run")
    assert (entry.actor, entry.data["before"]) == (campaign.created_by, {})
    posted(organizer, "run-about", campaign, run.pk, **{**body, "team": "Another"})
    before = AuditEntry.objects.filter(action="describe run").latest("pk").data["before"]
    assert before["team"] == "Team <b>"
    run.upload.refresh_from_db()
    assert run.upload.about["fields"] == {"Year": "2026"}
    assert "Another" in text(organizer.get(address("run-list", campaign)))


@pytest.mark.slow
def test_what_was_said_under_a_name_comes_back_with_it(
    campaign: Campaign, organizer: Client
) -> None:
    run = run_of(campaign)
    posted(organizer, "run-fields", campaign, names="Year")
    posted(organizer, "run-about", campaign, run.pk, **{"own-0": "2026"})
    posted(organizer, "run-fields", campaign, names="Index")
    assert run_facts(run_of(campaign)).fields == [("Index", "")]
    posted(organizer, "run-fields", campaign, names="Index\nYear")
    assert run_facts(run_of(campaign)).fields == [("Index", ""), ("Year", "2026")]


def test_names_of_fields_are_checked(campaign: Campaign, organizer: Client) -> None:
    assert "“Year” once" in posted(organizer, "run-fields", campaign, names="Year\nYear")
    campaign.refresh_from_db()
    assert campaign.run_fields == []


def test_metadata_of_the_head_is_shown_as_text(campaign: Campaign, organizer: Client) -> None:
    head = b"# ir_metadata.start\n# actor:\n#   team: <script>x</script>\n# ir_metadata.end\n"
    join(campaign, head + lines_of("run2", "told"))
    answer = organizer.get(address("run-detail", campaign, run_of(campaign, "told").pk))
    assert b"<script>x" not in answer.content
    assert "actor / team" in text(answer)


# ---------------------------------------------------------------------------------- replacing


@pytest.mark.slow
def test_a_run_is_replaced_on_its_page(campaign: Campaign, organizer: Client) -> None:
    run = run_of(campaign)
    posted(organizer, "run-about", campaign, run.pk, team="The team")
    file = io.BytesIO(with_news("run2"))
    file.name = "second.run"
    posted(organizer, "run-replace", campaign, run.pk, given=file)
    factories.run_due_jobs()
    page = text(organizer.get(address("run-detail", campaign, run.pk)))
    assert "second.run" in page
    facts = run_facts(run_of(campaign))
    assert [each.state for each in facts.versions] == ["earlier", "counts"]
    assert facts.team == "The team"


@pytest.mark.slow
@pytest.mark.on_both
def test_after_a_draw_the_page_asks_first(
    campaign: Campaign, judged: Round, organizer: Client
) -> None:
    run = run_of(campaign)
    file = io.BytesIO(with_news("run2"))
    file.name = "second.run"
    assert "says here what it would change" in posted(
        organizer, "run-replace", campaign, run.pk, given=file
    )
    factories.run_due_jobs()
    answer = organizer.get(address("run-detail", campaign, run.pk))
    assert "A new version waits for you" in text(answer)
    line = '<th scope="row">1</th><td class="num narrow-hide">48</td><td class="num">24</td>'
    assert line in answer.content.decode()  # documents, and those outside of the pool
    upload = Upload.objects.exclude(replaces=None).get()
    assert "stands on the page of the run" in text(
        organizer.get(address("upload-detail", campaign, upload.pk))
    )
    posted(organizer, "upload-take-in", campaign, upload.pk)
    factories.run_due_jobs()
    old, new = run_of(campaign), run_of(campaign, "run2-v2")
    page = text(organizer.get(address("run-detail", campaign, old.pk)))
    assert "It was replaced by run2-v2" in page
    assert "Replace it by a new version" not in page
    assert [each.state for each in run_facts(new).versions] == ["withdrawn", "counts"]


@pytest.mark.slow
def test_a_file_that_was_only_checked_is_taken_in(campaign: Campaign, organizer: Client) -> None:
    file = io.BytesIO(lines_of("run2", "fifth"))
    file.name = "fifth.run"
    posted(organizer, "material", campaign, given=file, check_only="on")
    factories.run_due_jobs()
    upload = campaign.uploads.latest("pk")
    assert upload.state == Upload.State.CHECKED
    assert (
        "Take it in"
        in organizer.get(address("upload-detail", campaign, upload.pk)).content.decode()
    )
    posted(organizer, "upload-take-in", campaign, upload.pk)
    factories.run_due_jobs()
    assert campaign.runs.filter(tag="fifth", upload=upload).exists()
    assert "not checked, or has been taken in already" in posted(
        organizer, "upload-take-in", campaign, upload.pk
    )


# ---------------------------------------------------------------------------------- topics


def test_the_page_of_a_topic_counts_what_is_there(
    campaign: Campaign, judged: Round, organizer: Client
) -> None:
    topic = campaign.topics.select_related("campaign").order_by("topic_id")[0]
    facts = topic_facts(topic)
    pairs = Pair.objects.filter(topic=topic)
    said = Judgment.objects.filter(assignment__pair__topic=topic)
    assert facts.drawn == pairs.count() > 0
    assert facts.judged == pairs.filter(judged__gt=0).count()
    assert sum(facts.grades) == said.count()
    assert facts.grades[0] == said.filter(grade=0).count()
    relevant = {pair.docno for pair in pairs.filter(assignments__judgments__grade__gt=0)}
    assert facts.relevant == len(relevant)
    line = next(each for each in facts.runs if each.tag == "run2")
    returned = set(lists("run2")[topic.topic_id])
    assert line.documents == len(returned)
    assert line.relevant == len(returned & relevant)
    assert line.drawn == len(returned & set(pairs.values_list("docno", flat=True)))
    every = {docno for n in range(1, 5) for docno in lists(f"run{n}")[topic.topic_id]}
    assert facts.pooled == len(every)
    page = text(organizer.get(address("topic-detail", campaign, topic.pk)))
    assert topic.title in page


def test_the_pool_tells_of_runs_what_their_files_tell(
    campaign: Campaign, judged: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one that came after the draw, which has its file alone."""
    join(campaign, evaluation.SMALL.runs["run1.run"].replace(b"run1", b"latecomer"))
    topics = list(campaign.topics.select_related("campaign"))
    by_pool = [topic_facts(topic).runs for topic in topics]
    monkeypatch.setattr(facts_of_topics, "pooled_by_runs", lambda *_: {})
    assert [topic_facts(topic).runs for topic in topics] == by_pool
    assert any(run.documents and run.tag == "latecomer" for run in by_pool[0])


def test_the_pool_tells_nothing_of_topics_that_came_later_or_of_another_depth(
    campaign: Campaign, judged: Round
) -> None:
    topic = campaign.topics.all()[0].topic_id
    assert pooled_by_runs(judged, topic, campaign.depth)
    assert pooled_by_runs(judged, topic, campaign.depth + 1) == {}
    assert pooled_by_runs(judged, "later", campaign.depth) == {}


@pytest.mark.slow
def test_what_topics_add_is_the_value_and_few_judgments_are_noisy(
    campaign: Campaign, judged: Round, organizer: Client
) -> None:
    """Over all topics what they add is the value of the run; where nothing is judged, nothing is
    told."""
    table = ranking_table(judged)
    assert table is not None
    topics = list(campaign.topics.select_related("campaign"))
    found = {topic: {run.tag: run.adds for run in topic_facts(topic).runs} for topic in topics}
    for row in table.known:
        told = [found[topic][row.tag] for topic in topics]
        assert sum(each.value or 0.0 for each in told if each) == pytest.approx(row.value)
        for each in told:
            assert each is not None
            assert (each.value is None) == (each.judged == 0)
            assert each.noisy == (0 < (each.judged or 0) < NOISY)
    some = next(topic for topic in topics if any(a and a.noisy for a in found[topic].values()))
    page = text(organizer.get(address("topic-detail", campaign, some.pk)))
    assert f"Adds to {judged.measure}" in page
    assert "noisy" in page
    rest = organizer.get(f"/api/campaigns/{campaign.slug}/topics/{some.pk}/").json()
    told = {run["tag"]: run["adds"] for run in rest["runs"]}
    for tag, adds in found[some].items():
        assert adds is not None
        assert told[tag] == {"value": adds.value, "judged": adds.judged, "noisy": adds.noisy}


@pytest.mark.slow
@pytest.mark.on_both
def test_the_judgments_of_a_topic_are_those_of_no_other(
    campaign: Campaign, judged: Round, organizer: Client
) -> None:
    topic = campaign.topics.order_by("topic_id")[0]
    asked = {"words": f"topic:{topic.topic_id}", "order": "topic"}
    found = organizer.get(address("judgment-list", campaign), asked).context["rows"]
    said = Judgment.objects.filter(assignment__pair__topic=topic)
    assert {row.pk for row in found} == set(said.values_list("pk", flat=True))
    assert said.exists()


# ---------------------------------------------------------------------------------- queries


def queries(client: Client, url: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return len(captured)


@pytest.mark.slow
def test_pages_ask_as_much_of_many_runs_and_topics_as_of_few() -> None:
    counts = []
    for slug, material in (
        ("few", small_material(topics=6, documents=24, runs=4, depth=12)),
        ("many", small_material(topics=50, documents=60, runs=bounded(40, 129), depth=15)),
    ):
        made = evaluation.with_material(material=material, slug=slug)
        drawn(made)
        evaluation.judge(made, 30, truth=material.truth)
        client, base = Client(), f"/api/campaigns/{made.slug}/"
        client.force_login(made.created_by)
        api = rest.client_of(made.created_by)
        run, topic = made.runs.all()[0], made.topics.all()[0]
        counts.append(
            [
                *(queries(client, address("run-detail", made, run.pk)),),
                queries(client, address("topic-detail", made, topic.pk)),
                queries(client, address("run-list", made)),
                queries(client, address("topic-list", made)),
                queries(client, address("material", made)),
                queries(api, f"{base}runs/{run.pk}/"),
                queries(api, f"{base}topics/{topic.pk}/"),
                queries(api, f"{base}runs/"),
            ]
        )
    assert counts[0] == counts[1]


def drawn(made: Campaign) -> None:
    row = evaluation.drafted(made)
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    campaigns.open_for_judging(campaign=made, by=made.created_by)
    factories.assessors(made, f"anna-{made.slug}", f"ben-{made.slug}")


# ---------------------------------------------------------------------------------- REST


@pytest.mark.on_both
def test_programs_read_and_describe_a_run(campaign: Campaign, judged: Round) -> None:
    client, run = rest.client_of(campaign.created_by), run_of(campaign)
    base = f"/api/campaigns/{campaign.slug}/runs/"
    fields = client.patch(f"{base}fields/", {"fields": ["Year"]}, format="json")
    assert fields.json() == {"fields": ["Year"]}
    assert client.get(f"{base}fields/").json() == {"fields": ["Year"]}
    body = {"team": "The team", "fields": {"Year": "2026"}}
    told = client.patch(f"{base}{run.pk}/", body, format="json").json()
    assert told["about"] == {
        "team": "The team", "description": "", "fields": {"Year": "2026"}, "ir_metadata": {},
    }  # fmt: skip
    facts = run_facts(run_of(campaign))
    assert [each["tag"] for each in told["alike"]] == [
        each.tag for each in alike_runs(run_of(campaign)).every
    ]
    assert told["standings"][0]["judged"] == facts.standings[0][0].judged
    assert told["estimate"]["value"] == facts.estimate.line.value  # type: ignore[union-attr]
    assert [each["state"] for each in told["versions"]] == ["counts"]
    wrong = client.patch(f"{base}{run.pk}/", {"fields": {"Month": "x"}}, format="json")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "field_unknown")
    assert client.get(base).json()[1]["team"] == "The team"


@pytest.mark.slow
def test_programs_replace_a_run(campaign: Campaign, judged: Round) -> None:
    client, run = rest.client_of(campaign.created_by), run_of(campaign)
    base = f"/api/campaigns/{campaign.slug}/"
    file = io.BytesIO(with_news("run2"))
    file.name = "second.run"
    answer = client.post(f"{base}runs/{run.pk}/versions/", {"file": file}, format="multipart")
    assert (answer.status_code, answer.json()["check_only"]) == (201, True)
    factories.run_due_jobs()
    upload = f"{base}uploads/{answer.json()['upload']}/"
    told = client.get(upload).json()
    assert (told["state"], told["replaces"]) == ("checked", run.upload_id)
    assert told["summary"]["changes"]["rounds"][0]["outside"] == 24
    assert client.post(f"{upload}take-in/", {}, format="json").status_code == 202
    factories.run_due_jobs()
    assert client.get(upload).json()["state"] == "accepted"
    states = [each["state"] for each in client.get(f"{base}runs/{run.pk}/").json()["versions"]]
    assert states == ["withdrawn", "counts"]
    again = client.post(f"{upload}take-in/", {}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "not_checked")


@pytest.mark.slow
def test_programs_read_a_topic(campaign: Campaign, judged: Round) -> None:
    topic = campaign.topics.select_related("campaign")[0]
    base = f"/api/campaigns/{campaign.slug}/topics/"
    client = rest.client_of(campaign.created_by)
    numbers = {each["id"]: each["number"] for each in client.get(base).json()["results"]}
    told = client.get(f"{base}{numbers[topic.topic_id]}/").json()
    facts = topic_facts(topic)
    assert (told["id"], told["judged"], told["grades"]) == (
        topic.topic_id, facts.judged, facts.grades,
    )  # fmt: skip
    assert [each["tag"] for each in told["runs"]] == [each.tag for each in facts.runs]
    assert client.get(f"{base}99999/").status_code == 404


@pytest.mark.slow
def test_large_numbers_are_grouped_as_everywhere(campaign: Campaign, organizer: Client) -> None:
    campaign.runs.update(line_count=41_234)
    assert "41,234" in text(organizer.get(address("run-list", campaign)))
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 45)
    row.estimate_sets.update(pair_count=1_234, label_count=5_678)
    assert "1,234 pairs, 5,678 labels" in text(organizer.get(address("reports", campaign, 1)))
    campaign.batches.update(pair_count=2_468)
    assert "2,468" in text(organizer.get(address("live-batches", campaign, 1)))


@pytest.mark.parametrize(
    ("tag", "warned"), [("RUN2", True), ("ｒｕｎ２", True), ("run2b", False), ("rün2", False)]
)
def test_a_run_whose_name_looks_like_another_one_is_warned_of(
    campaign: Campaign, tag: str, warned: bool
) -> None:
    upload = factories.stored_upload(campaign, lines_of("run2", tag), name="x.run", kind="run")
    assert upload.state == Upload.State.ACCEPTED
    said = [each["message"] for each in upload.warnings if each["field"] == "tag"]
    assert len(said) == warned
    assert all(f"{tag!r} is another one than 'run2'" in each for each in said)

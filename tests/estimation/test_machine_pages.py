"""Pages and REST of machine judges; how far people agree; who sees nothing of it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from estimation import machine_rows
from estimation.machine_findings import findings_on
from estimation.models import MachineAnswer, MachineJudge, Prediction, Round
from estimation.services import pools, rounds
from estimation.services.machines import prompts
from judging.models import Campaign, User
from tests.support import chat, evaluation, factories, rest
from tests.support.chat import Chat
from tests.support.evaluation import SMALL

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def stub(settings: Any) -> Iterator[Chat]:
    with chat.serving(knowing) as made:
        settings.MACHINE_ENDPOINTS = {"stub": made.endpoint(prices=(1.0, 2.0), parallel=8)}
        yield made


def knowing(seen: chat.Seen) -> chat.Reply:
    return chat.grade(said_of(seen.topic.removeprefix("about "), seen.document.split()[0]))


def said_of(topic: str, docno: str) -> int:
    """What people say, but one too many for most of what is not relevant."""
    truth = SMALL.truth[topic, docno]
    return truth + (truth == 0 and sum(map(ord, topic + docno)) % 4 > 0)


FORM = {"name": "Small <one>", "source": "stub/small", "max_calls": "500", "document_chars": "500"}


def page(client: Client, name: str, *args: object) -> str:
    return client.get(reverse(name, args=args)).content.decode()


@pytest.mark.slow
def test_an_organizer_adds_one_starts_it_and_uses_what_it_said(
    campaign: Campaign, organizer: Client, stub: Chat
) -> None:
    slug = campaign.slug
    assert "No machine judge yet" in page(organizer, "machine-list", slug)
    new = page(organizer, "machine-new", slug)
    assert f"small at stub (127.0.0.1:{stub.port})" in new
    prompt = new.split("<textarea")[1].split(">", 1)[1].split("</textarea>")[0]
    sent = FORM | {"prompt": prompt, "with_schema": "on", "max_cost": "1"}
    answer = organizer.post(reverse("machine-new", args=[slug]), sent)
    judge = MachineJudge.objects.get()
    assert answer.headers["Location"] == reverse("machine-detail", args=[slug, judge.pk])
    assert "It was not asked yet" in page(organizer, "machine-detail", slug, judge.pk)

    organizer.post(reverse("machine-start", args=[slug, judge.pk]))
    asking = page(organizer, "machine-detail", slug, judge.pk)
    assert 'hx-trigger="every 2s"' in asking
    assert ">Stop<" in asking
    factories.run_due_jobs()

    done = page(organizer, "machine-detail", slug, judge.pk)
    assert "Small &lt;one&gt;" in done
    assert "129 <span" in done
    assert "129 of 500" in done
    assert "in at most 371 calls?" in done, "of 500 so many are left"
    assert "Small &lt;one&gt; v1.tsv" in done
    assert "hx-trigger" not in done
    assert "129" in page(organizer, "machine-list", slug)
    assert "Small &lt;one&gt; v1" in page(organizer, "round-new", slug)


def test_a_model_that_is_another_one_in_the_middle_is_told(
    campaign: Campaign, organizer: Client, stub: Chat
) -> None:
    organizer.post(reverse("machine-new", args=[campaign.slug]), FORM | {"prompt": prompts.DEFAULT})
    judge = MachineJudge.objects.get()
    organizer.post(reverse("machine-start", args=[campaign.slug, judge.pk]))
    factories.run_due_jobs()
    assert "Answered by" not in page(organizer, "machine-detail", campaign.slug, judge.pk)
    MachineAnswer.objects.filter(grade=0).update(model="stub-2<i>")
    said = page(organizer, "machine-detail", campaign.slug, judge.pk)
    assert "<dt>Answered by</dt>" in said
    assert "stub-1, stub-2&lt;i&gt;: the endpoint has changed its model" in said


def test_what_ended_it_is_said_once_and_in_the_singular(
    campaign: Campaign, organizer: Client, stub: Chat
) -> None:
    organizer.post(
        reverse("machine-new", args=[campaign.slug]),
        FORM | {"prompt": prompts.DEFAULT, "max_calls": "1"},
    )
    judge = MachineJudge.objects.get()
    assert "in at most 1 call?" in page(organizer, "machine-detail", campaign.slug, judge.pk)
    organizer.post(reverse("machine-start", args=[campaign.slug, judge.pk]))
    organizer.post(reverse("machine-stop", args=[campaign.slug, judge.pk]))
    factories.run_due_jobs()
    said = page(organizer, "machine-detail", campaign.slug, judge.pk)
    assert said.count("stopped.") == 1


def test_the_form_says_what_is_wrong_at_its_field(
    campaign: Campaign, organizer: Client, stub: Chat
) -> None:
    there = reverse("machine-new", args=[campaign.slug])
    bad = organizer.post(there, FORM | {"prompt": "Is {document} about {topic}?"})
    assert bad.status_code == 422
    assert "It lacks {title}, {grades}" in bad.content.decode()
    bad = organizer.post(there, FORM | {"source": "http://evil.example/x", "prompt": "x"})
    assert "Expected one of the choices" in bad.content.decode()
    assert not MachineJudge.objects.exists()


def test_without_endpoints_the_page_says_who_declares_them(
    campaign: Campaign, organizer: Client, settings: Any
) -> None:
    settings.MACHINE_ENDPOINTS = {}
    for name in ("machine-list", "machine-new"):
        assert "MACHINE_ENDPOINTS=local" in page(organizer, name, campaign.slug)


def judged_with(campaign: Campaign, stub: Chat, **plan: Any) -> MachineJudge:
    """A machine judge, then a round, then judgments."""
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/machines/"
    body = {"name": "m", "endpoint": "stub", "model": "small", "max_calls": 500}
    made = client.post(base, body, format="json").json()
    assert client.post(f"{base}{made['id']}/start/").status_code == 202
    factories.run_due_jobs()
    evaluation.drawn(campaign, **plan)
    while evaluation.judge(campaign, 1000):
        pass  # batches may be planned one by one
    return MachineJudge.objects.get()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "adaptive"])
def test_agreement_with_people_is_told_with_its_interval_and_worth(
    campaign: Campaign, organizer: Client, stub: Chat, method: str
) -> None:
    plan = {"budget": 90, "batch_size": 30, "extra_share": 0.0, "method": method}
    judge = judged_with(campaign, stub, **plan)

    found = judge.agreement
    assert found["weighted"]
    assert found["labels"] == found["pairs"] > 60
    value, low, high = found["kappa"]
    assert -1 < low < value < high < 1
    assert value > 0.5
    assert found["bias"][1] > 0
    assert found["worth"]["judgments"] > 0
    errors = [row["error"] for row in found["topics"]]
    assert errors == sorted(errors, reverse=True)
    shown = page(organizer, "machine-detail", campaign.slug, judge.pk)
    assert "Quadratically weighted kappa with people is" in shown
    assert "The machine is more lenient than people" in shown
    assert "Its grades are worth about" in shown
    assert 'class="chart confusion"' in shown


@pytest.mark.slow
def test_its_grades_are_worth_no_more_judgments_than_there_are_pairs(
    campaign: Campaign, stub: Chat
) -> None:
    judge = judged_with(campaign, stub, budget=50, batch_size=50, extra_share=0.0)

    worth, (_, pool) = judge.agreement["worth"], pools.ensure(campaign)
    assert 0 < worth["judgments"] <= len(pool) - worth["of"]


@pytest.mark.slow
def test_weights_are_one_over_the_probabilities_of_the_draw(campaign: Campaign, stub: Chat) -> None:
    """Against the sums that follow from the rows of the draws alone."""
    judge = judged_with(campaign, stub, budget=60, batch_size=60, extra_share=0.4)

    row = Round.objects.get()
    total = agree = gap = 0.0
    for draw in row.draws.select_related("pair__topic"):
        topic, docno = draw.pair.topic.topic_id, draw.pair.docno
        said = said_of(topic, docno)
        total += 1 / draw.probability
        agree += (said == SMALL.truth[topic, docno]) / draw.probability
        gap += (said - SMALL.truth[topic, docno]) / draw.probability
    assert judge.agreement["equal"] == pytest.approx(agree / total, rel=1e-9)
    assert judge.agreement["bias"][0] == pytest.approx(gap / total, rel=1e-9)
    assert judge.agreement["labels"] > judge.agreement["pairs"]


WHOLE_TOPICS = {"method": "query", "measure": "ERR@10", "budget": 60, "batch_size": 60}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "words", "weighted"),
    [
        ({"method": "iid"}, "of adaptive and Poisson rounds only", True),
        (WHOLE_TOPICS, "of adaptive and Poisson rounds only", True),
        ({"method": "active", "reported": []}, "of adaptive and Poisson rounds only", False),
        ({"measure": "nDCG@10", "reported": []}, "sums of gains", True),
        ({"measure": "nDCG@10", "reported": [], "method": "adaptive"}, "sums of gains", True),
        ({"budget": 20, "batch_size": 20}, "once 30 pairs", True),
    ],
)
def test_what_cannot_be_said_is_said_to_be_so(
    campaign: Campaign, stub: Chat, plan: dict[str, Any], words: str, weighted: bool
) -> None:
    judge = judged_with(campaign, stub, **plan)

    assert words in judge.agreement["worth"]["unsaid"]
    assert judge.agreement["weighted"] is weighted


AGREED: dict[str, Any] = {
    "kappa": [0.512, 0.4, 0.61], "bias": [0.31, 0.21, 0.41], "equal": 0.6, "labels": 900,
    "weighted": True, "worth": {"judgments": 638.0, "of": 400, "measure": "DCG@10"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ({}, "note", "kappa with people is 0.51 (95 % interval 0.40 to 0.61); 60 % of"),
        ({}, "sure", "more lenient than people, by 0.31 grades on average (95 % interval 0.21 to"),
        ({"bias": [-0.3, -0.4, -0.2]}, "sure", "stricter than people, by 0.30 grades"),
        (
            {"bias": [0.1, -0.1, 0.3]},
            "open",
            "nor surely more lenient: +0.10 grades (95 % interval −0.10 to +0.30)",
        ),
        ({"bias": [0.1, None, None]}, "open", "more lenient: +0.10 grades."),
        ({}, "note", "about 640 judgments here: with them, 400 judged pairs tell as much"),
        ({}, "note", "of DCG@10 as 1,040 would without"),
        ({"worth": AGREED["worth"] | {"judgments": -9.0}}, "note", "save nothing here: the 400"),
        ({"worth": AGREED["worth"] | {"judgments": 1.2}}, "note", "about 1 judgment here"),
        ({"worth": {"unsaid": "Too few."}}, "note", "cannot be said here. Too few."),
        ({"kappa": [None, None, None]}, "open", "one and the same"),
        ({"kappa": [1.0, None, None]}, "open", "needs disagreement to learn from"),
        ({"kappa": [0.9, None, None]}, "open", "needs pairs of more topics"),
        ({"weighted": False}, "limit", "chosen while it was judged"),
        ({"labels": 1}, "limit", "rests on 1 judgment only"),
    ],
)
def test_what_is_said_of_an_agreement(said: dict[str, Any], kind: str, words: str) -> None:
    found = findings_on(AGREED | said)
    assert [each for each in found if each.kind == kind and words in each.text], found


def test_nothing_is_said_before_anybody_judged() -> None:
    assert findings_on({}) == []


@pytest.mark.slow
def test_its_grades_feed_the_design_and_the_difference_estimator_and_no_judgment(
    campaign: Campaign, stub: Chat
) -> None:
    judged_with(campaign, stub)
    made = Prediction.objects.get()
    plan = evaluation.plan(predictions=made.name, prior="scores", estimator="difference", seed="t")
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan)
    rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    evaluation.judge(campaign, 1000)

    row.refresh_from_db()
    last = row.estimate_sets.last()
    assert last is not None
    assert last.estimates.filter(estimator="di", primary=True).exists()
    names = set(User.objects.filter(judgments__isnull=False).values_list("username", flat=True))
    assert names == {"anna", "ben"}


@pytest.mark.slow
@pytest.mark.on_both
def test_programs_do_the_same(campaign: Campaign, stub: Chat) -> None:
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/"
    (offered,) = client.get(f"{base}machine-endpoints/").json()
    assert (offered["models"], offered["price_out"]) == (["small", "large"], 2.0)
    body = {"name": "m", "endpoint": "stub", "model": "small", "max_calls": 20}
    for wrong in ({"endpoint": "http://10.0.0.1/"}, {"model": "other"}, {"max_calls": 0}):
        assert client.post(f"{base}machines/", body | wrong, format="json").status_code == 400
    made = client.post(f"{base}machines/", body, format="json").json()
    assert client.post(f"{base}machines/", body, format="json").status_code == 409
    there = f"{base}machines/{made['id']}/"

    assert client.post(f"{there}stop/").status_code == 409
    assert client.post(f"{there}start/").json()["state"] == "asking"
    assert client.post(f"{there}start/").status_code == 409
    assert client.patch(there, {"max_calls": 30}, format="json").status_code == 409
    assert client.delete(there).status_code == 409
    assert client.post(f"{there}stop/").json()["state"] == "stopping"
    factories.run_due_jobs()
    assert stub.calls == 0
    client.post(f"{there}start/")
    factories.run_due_jobs()

    row = client.get(there).json()
    assert (row["state"], row["calls"], row["graded"]) == ("stopped", 20, 20)
    assert row["predictions"] == "m v1"
    assert row["cost"] == pytest.approx(20 * 0.00024)
    assert client.post(f"{there}start/").json()["code"] == "ceiling"
    changed = client.patch(there, {"max_calls": 30, "prompt": "no"}, format="json")
    assert changed.json()["errors"][0]["field"] == "prompt"
    assert client.patch(there, {"max_calls": 30}, format="json").json()["max_calls"] == 30
    asked = f"{row['prompt']}\nAnswer with care."
    assert client.patch(there, {"prompt": asked}, format="json").json()["graded"] == 0
    assert machine_rows.judges_of(campaign).get().graded == 0, "as the latest prompt has it"
    assert client.get(f"{base}machines/").json()["results"][0]["name"] == "m"
    assert client.delete(there).status_code == 204
    assert Prediction.objects.get().pair_count == 20


@pytest.mark.slow
def test_assessors_learn_nothing_of_it(campaign: Campaign, stub: Chat) -> None:
    judge = judged_with(campaign, stub)
    anna = User.objects.get(username="anna")
    browser, client = Client(), rest.client_of(anna)
    browser.force_login(anna)
    slug = campaign.slug

    for name, args in (("machine-list", [slug]), ("machine-detail", [slug, judge.pk])):
        assert browser.get(reverse(name, args=args)).status_code == 403
    for path in ("machines/", f"machines/{judge.pk}/", "machine-endpoints/"):
        assert client.get(f"/api/campaigns/{slug}/{path}").status_code == 403
    for name in ("judge", "own-work"):
        assert "achine" not in page(browser, name, slug)

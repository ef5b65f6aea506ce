"""What is kept of the versions of a machine judge, and told of the grades that are of each."""

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from estimation.models import MachineAnswer, MachineJudge, Prediction
from estimation.services.machines import judges, prompts
from estimation.services.machines.agreement import compared
from estimation.services.machines.judges import MachinePlan
from judging.models import Campaign
from tests.support import chat, evaluation, factories
from tests.support.chat import Chat
from tests.support.pages import ORGANIZING, as_role, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only, pytest.mark.slow]
STRICT = prompts.DEFAULT + "\nBe strict.\n"


@pytest.fixture
def stub(settings: Any) -> Iterator[Chat]:
    with chat.serving(lambda seen: chat.grade(len(seen.document) % 4)) as made:
        settings.MACHINE_ENDPOINTS = {"stub": made.endpoint()}
        yield made


def asked(campaign: Campaign, name: str = "boss", calls: int = 1000) -> MachineJudge:
    plan = MachinePlan(name, "stub", "small", max_calls=calls)
    return again(judges.create(campaign=campaign, by=campaign.created_by, plan=plan))


def again(judge: MachineJudge) -> MachineJudge:
    judges.start(judge=judge, by=judge.created_by)
    factories.run_due_jobs()
    judge.refresh_from_db()
    return judge


def changed(judge: MachineJudge, **chosen: Any) -> MachineJudge:
    judges.change(judge=judge, by=judge.created_by, chosen=chosen)
    return judge


def base(campaign: Campaign) -> str:
    return f"/api/campaigns/{campaign.slug}/"


def learning(campaign: Campaign, *names: str) -> dict[str, Any]:
    """What an adaptive round is drawn with that learns from these."""
    more = {"predictions": names[0], "more_predictions": list(names[1:])}
    return {"method": "adaptive", "extra_share": 0.0, **more}


@pytest.mark.parametrize("drawn", [True, False])
def test_it_stays_while_a_round_names_its_grades(
    campaign: Campaign, stub: Chat, organizer: Client, *, drawn: bool
) -> None:
    judge, other = asked(campaign, "first"), asked(campaign, "second")
    again(changed(other, prompt=STRICT))
    making = evaluation.drawn if drawn else evaluation.drafted
    making(campaign, **learning(campaign, "first v1", "second v1"))
    changed(judge, prompt=STRICT)
    answers = MachineAnswer.objects.count()

    for row in (judge, other):
        there = f"{base(campaign)}machines/{row.pk}/"
        refused = organizer.delete(there)
        assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
        assert "Round 1 uses its grades" in refused.json()["message"]
        assert organizer.get(there).status_code == 200
        remove = reverse("machine-remove", args=[campaign.slug, row.pk])
        assert "Round 1 uses its grades" in text(organizer.post(remove, follow=True))
    assert MachineAnswer.objects.count() == answers


def test_it_goes_where_no_round_names_its_grades(
    campaign: Campaign, stub: Chat, organizer: Client
) -> None:
    asked(campaign, "first")
    other = asked(campaign, "second")
    evaluation.drawn(campaign, **learning(campaign, "first v1"))
    assert organizer.delete(f"{base(campaign)}machines/{other.pk}/").status_code == 204


def test_predictions_say_which_version_they_are_of(
    campaign: Campaign, stub: Chat, organizer: Client
) -> None:
    judge = asked(campaign, calls=20)
    again(changed(judge, max_calls=40))
    again(changed(judge, max_calls=100, prompt=STRICT))
    given = {"name": "boss v2 (2).tsv", "kind": "predictions"}
    factories.stored_upload(campaign, b"t1\td1\t2\n", **given)

    told = organizer.get(f"{base(campaign)}predictions/").json()
    of = {each["name"]: (each["machine"], each["machine_version"]) for each in told}
    assert of == {
        "boss v1": (judge.pk, 1),
        "boss v1 (2)": (judge.pk, 1),
        "boss v2": (judge.pk, 2),
        "boss v2 (2)": (None, None),
    }
    first = Prediction.objects.get(name="boss v1")
    shown = text(organizer.get(reverse("prediction-detail", args=[campaign.slug, first.pk])))
    assert "version 1 of the machine judge boss" in shown
    own = Prediction.objects.get(name="boss v2 (2)")
    shown = text(organizer.get(reverse("prediction-detail", args=[campaign.slug, own.pk])))
    assert "of the machine judge" not in shown


@pytest.mark.parametrize("used", [True, False])
def test_the_version_is_compared_that_the_round_uses(
    campaign: Campaign, stub: Chat, organizer: Client, *, used: bool
) -> None:
    judge = asked(campaign)
    if used:
        evaluation.drawn(campaign, **learning(campaign, "boss v1"))
    else:
        evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 1000)
    judge.refresh_from_db()
    before = judge.agreement
    assert before["prompt"] == 1

    changed(judge, prompt=STRICT)
    assert compared(judge) == before, "a version without answers"
    stub.answer = lambda seen: chat.grade(0)
    again(judge)
    assert judge.agreement["prompt"] == (1 if used else 2)
    assert (judge.agreement == before) is used
    shown = text(organizer.get(reverse("machine-detail", args=[campaign.slug, judge.pk])))
    assert f"against version {1 if used else 2} of the prompt" in shown


def test_all_versions_are_told(campaign: Campaign, stub: Chat, organizer: Client) -> None:
    judge = asked(campaign, calls=20)
    changed(judge, max_calls=60, prompt=STRICT)
    there, pages = f"{base(campaign)}machines/{judge.pk}/", "machine-detail"

    told = organizer.get(there).json()
    assert (told["prompt_version"], told["answered"], told["planned"]) == (2, 0, 0)
    assert (told["predictions"], told["predictions_version"]) == ("boss v1", 1)
    shown = text(organizer.get(reverse(pages, args=[campaign.slug, judge.pk])))
    assert "Version 2 was not asked yet" in shown
    assert re.search(r"boss v1\.tsv ?, of version 1 ?: choose", shown)
    again(judge)

    told = organizer.get(there).json()
    assert (told["predictions"], told["predictions_version"]) == ("boss v2", 2)
    first, second = judge.prompts.all()
    assert told["versions"] == [
        {
            "number": prompt.number, "prompt": prompt.text, "digest": prompt.digest,
            "created": told["versions"][2 - prompt.number]["created"],
            "answered": answered, "graded": answered, "predictions": [f"boss v{prompt.number}"],
        }
        for prompt, answered in ((second, 40), (first, 20))
    ]  # fmt: skip
    shown = text(organizer.get(reverse(pages, args=[campaign.slug, judge.pk])))
    assert first.digest[:12] in shown
    assert second.digest[:12] in shown
    assert "What earlier versions ask" in shown
    assert shown.count("Grade what the document says") == 2


@pytest.mark.on_both
def test_all_answers_of_a_version_can_be_had(
    campaign: Campaign, stub: Chat, organizer: Client
) -> None:
    stub.answer = lambda seen: chat.Reply("=1+1; Grade: 2")
    judge = asked(campaign, calls=20)
    stub.answer = lambda seen: chat.Reply("I cannot say.")
    again(changed(judge, max_calls=32, prompt=STRICT))
    there = f"{base(campaign)}machines/{judge.pk}/answers/"

    first = organizer.get(there, {"version": 1, "page_size": 15}).json()
    assert (first["count"], len(first["results"])) == (20, 15)
    stored = MachineAnswer.objects.filter(prompt__number=1).order_by("topic__topic_id", "docno")
    said = stored.select_related("topic")[0]
    told = first["results"][0]
    assert (told["topic"], told["docno"], told["grade"]) == (said.topic.topic_id, said.docno, 2)
    assert (told["reply"], told["outcome"]) == ("=1+1; Grade: 2", "graded")
    assert told["cost"] == pytest.approx(said.cost / 1e9)
    latest = organizer.get(there).json()["results"]
    assert {row["outcome"] for row in latest} == {"unparsable"}
    assert organizer.get(there, {"version": 3}).status_code == 404

    page = organizer.get(reverse("machine-detail", args=[campaign.slug, judge.pk]))
    for number, outcome, count in ((1, "graded", 20), (2, "unparsable", len(latest))):
        file = reverse("machine-answers", args=[campaign.slug, judge.pk, number])
        assert f'href="{file}"' in page.content.decode()
        answer = organizer.get(file)
        assert answer.streaming
        assert f"-v{number}.csv" in answer["Content-Disposition"]
        with CaptureQueriesContext(connection) as statements:
            content = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
        assert len(statements) == 1
        rows = list(csv.DictReader(io.StringIO(content)))
        assert [row["outcome"] for row in rows] == [outcome] * count
        assert "=" not in {row["reply"][0] for row in rows}, "no formula of a spreadsheet"
    missing = reverse("machine-answers", args=[campaign.slug, judge.pk, 3])
    assert organizer.get(missing).status_code == 404


@pytest.mark.parametrize("role", ORGANIZING)
def test_who_has_the_answers(campaign: Campaign, stub: Chat, role: str) -> None:
    judge = asked(campaign, calls=5)
    file = reverse("machine-answers", args=[campaign.slug, judge.pk, 1])
    assert as_role(role, campaign).get(file).status_code == ORGANIZING[role]

"""What is kept of the versions of a machine judge, and told of the grades that are of each."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from estimation.models import MachineAnswer, MachineJudge, Prediction
from estimation.services.machines import judges, prompts
from estimation.services.machines.agreement import compared
from estimation.services.machines.judges import MachinePlan
from judging.models import Campaign
from tests.support import chat, evaluation, factories
from tests.support.chat import Chat
from tests.support.pages import text

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

"""Organizers and a worker at the very same moment, on threads: no order of commits is a bad one."""

import random
import threading
from collections.abc import Callable

import pytest
from django.db import connection
from django.db.models import Q

from estimation.models import Round
from estimation.services import rounds
from judging import selectors
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import AuditEntry, Batch, Campaign, Job
from judging.services import campaigns, jobs, uploads
from tests.support import evaluation, factories

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
Work = Callable[[], object]
PATIENCE = 1.0


def in_thread(work: Work, errors: list[BaseException]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def unlocked(campaign_id: int) -> Campaign:
    """The broken twin: it reads the campaign and locks nothing."""
    found: Campaign = Campaign.objects.get(pk=campaign_id)
    return found


def deeper(campaign: Campaign) -> None:
    plan = campaigns.CampaignPlan(name=campaign.name, grades=campaign.grades, depth=5)
    campaigns.change(campaign=campaign, by=campaign.created_by, plan=plan)


def without_a_run(campaign: Campaign) -> None:
    uploads.remove(upload=campaign.uploads.get(name="run1.run"), by=campaign.created_by)


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize(
    ("act", "action"), [(deeper, "change campaign"), (without_a_run, "remove upload")]
)
def test_who_saw_no_draw_is_done_before_the_draw_is_asked_for(
    act: Callable[[Campaign], None],
    action: str,
    twin: bool,
    campaign: Campaign,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the worker might have read what was there before. SQLite lets one write at a time."""
    row = evaluation.drafted(campaign)
    looked, asked = threading.Event(), threading.Event()
    errors: list[BaseException] = []
    look = selectors.is_being_drawn

    def hesitate(of: Campaign) -> bool:
        found = look(of)
        looked.set()
        asked.wait(PATIENCE)
        return found

    def ask() -> None:
        rounds.request_draw(row=row, by=campaign.created_by)
        asked.set()

    monkeypatch.setattr(selectors, "is_being_drawn", hesitate)
    if twin:
        monkeypatch.setattr(campaigns, "lock", unlocked)
    first = in_thread(lambda: act(campaign), errors)
    assert looked.wait(20.0)
    second = in_thread(ask, errors)
    first.join()
    second.join()

    assert errors == []
    both = AuditEntry.objects.filter(action__in=[action, "ask for draw"]).order_by("pk")
    in_order = list(both.values_list("action", flat=True)) == [action, "ask for draw"]
    assert in_order == (not twin or connection.vendor == "sqlite")


@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_acts_is_without_a_way_on(campaign: Campaign, seed: int) -> None:
    """Three organizers change, draw and discard rounds, and remove and bring runs, at random."""
    errors: list[BaseException] = []
    stop = threading.Event()
    material = evaluation.SMALL.runs["run1.run"]

    def organize(number: int) -> None:
        rng = random.Random(f"{seed}/{number}")
        for turn in range(12):
            act = rng.choice([draft, draft, change, draw, draw, discard, shuffle_runs])
            try:
                act(rng, f"{number}-{turn}")
            except UserError:
                continue

    def some(rng: random.Random) -> Round:
        found = list(Round.objects.filter(campaign=campaign))
        return rng.choice(found) if found else draft(rng, "first")

    def draft(rng: random.Random, name: str) -> Round:
        plan = evaluation.plan(budget=rng.randint(20, 60), seed=name)
        return rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan)

    def change(rng: random.Random, name: str) -> None:
        plan = evaluation.plan(budget=rng.randint(20, 60), seed=name)
        rounds.change(row=some(rng), by=campaign.created_by, plan=plan)

    def draw(rng: random.Random, _name: str) -> None:
        rounds.request_draw(row=some(rng), by=campaign.created_by)

    def discard(rng: random.Random, _name: str) -> None:
        rounds.discard(row=some(rng), by=campaign.created_by)

    def shuffle_runs(rng: random.Random, name: str) -> None:
        there = campaign.uploads.filter(kind="run").order_by("?").first()
        if there is not None and rng.random() < 0.5:
            uploads.remove(upload=there, by=campaign.created_by)
        else:
            content = material.replace(b" run1\n", f" {name}\n".encode())
            factories.stored(campaign, content, name=f"{name}.run", kind="run")

    def work() -> None:
        while not stop.is_set():
            factories.run_due_jobs()

    worker = in_thread(work, errors)
    people = [in_thread(lambda n=n: organize(n), errors) for n in range(3)]  # type: ignore[misc]
    for person in people:
        person.join()
    stop.set()
    worker.join()
    for _ in range(jobs.MAX_ATTEMPTS):
        Job.objects.filter(state=Job.State.QUEUED).update(due=seconds_from_now(-1))
        factories.run_due_jobs()

    assert errors == []
    assert not Round.objects.filter(state=Round.State.DRAWING).exists()
    assert not Batch.objects.filter(state=Batch.State.PREPARING).exists()
    unknown = ~Q(error="") & ~Q(error__contains="Upload")
    assert list(Job.objects.filter(unknown).values_list("kind", "error")) == []

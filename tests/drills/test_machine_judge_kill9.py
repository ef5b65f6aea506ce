"""A worker that is killed while it asks a language model loses no answer, doubles none, and passes
no ceiling, by what the model's server saw.

Once with kill -9 of real workers, and once, quickly, with a worker that dies at every step; there
the twin, which counts a request when it is answered, is caught.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from estimation.models import MachineAnswer, MachineJudge
from estimation.services import pools
from estimation.services.machines import asking, judges
from estimation.services.machines.judges import MachinePlan
from judging.clock import seconds_from_now
from judging.models import Job
from judging.services import jobs
from tests.conftest import MakeSite
from tests.core.length import bounded
from tests.support import chat, evaluation, factories
from tests.support.chat import Chat
from tests.support.crowd import Organizer
from tests.support.material import small_material
from tests.support.site import Site

PARALLEL, KILLS, SEED = 4, bounded(2, 4), 5
MATERIAL = small_material(topics=bounded(4, 8), documents=40, runs=4, depth=20)


@pytest.fixture
def stub() -> Iterator[Chat]:
    with chat.serving(lambda _seen: chat.Reply('{"grade": 1}', wait=0.15)) as made:
        yield made


# ------------------------------------------------------------------------------- real workers


@pytest.mark.services
@pytest.mark.slow
@pytest.mark.parametrize("stack", ["sqlite", "postgres"])
def test_kill_9_of_workers(stack: str, stub: Chat, make_site: MakeSite) -> None:
    env = {"JOB_LEASE_SECONDS": "4", **stub.environment(PARALLEL=str(PARALLEL), SECONDS="5")}
    site = make_site(stack, env=env)
    key = site.add_users("olga", organizer=True)["olga"]
    organizer = Organizer(site, site.api(key), "asked")
    organizer.create()
    organizer.bring(MATERIAL)

    judge = asked(organizer, "all", 10_000)
    kill_now_and_then(site, stub)
    row = ended(site, organizer, judge)

    pairs = pairs_of(MATERIAL.runs)
    assert row["state"] == "done", row["ended"]
    assert row["answered"] == row["graded"] == len(pairs) == len(stub.pairs)
    assert stub.calls - len(pairs) <= PARALLEL * KILLS, "asked again though answered"
    assert stub.calls <= row["calls"] <= stub.calls + PARALLEL * KILLS
    file = organizer.api.get(f"{organizer.base}uploads/{row['upload']}/").json()
    assert file["summary"] == {"predictions": len(pairs), "pairs_left_out": 0}

    before, ceiling = stub.calls, len(pairs) // 2
    judge = asked(organizer, "half", ceiling)
    kill_now_and_then(site, stub, before=before, until=ceiling // 2)
    row = ended(site, organizer, judge)
    assert stub.calls - before <= ceiling
    assert row["calls"] == ceiling
    assert ceiling - PARALLEL * KILLS <= row["graded"] <= ceiling


def asked(organizer: Organizer, name: str, max_calls: int) -> str:
    body = {"name": name, "endpoint": "stub", "model": "small", "max_calls": max_calls}
    made = organizer.api.post(f"{organizer.base}machines/", body).json()
    there = f"{organizer.base}machines/{made['id']}/"
    assert organizer.api.post(f"{there}start/").status == 202
    return there


def kill_now_and_then(site: Site, stub: Chat, *, before: int = 0, until: int = 10_000) -> None:
    """Whole workers and, with Redis, their processes by turns, each while it is asked.

    The processes of a worker on the folder broker wait for tasks under one lock, which an idle one
    that is killed takes along (billiard): then nothing but a new worker helps, whatever it does.
    """
    rng = random.Random(SEED)
    for number in range(KILLS):
        seen = stub.calls
        site.wait_until(lambda seen=seen: stub.calls > seen + 8, what="it is asked")  # type: ignore[misc]
        if stub.calls - before > until:
            return
        time.sleep(rng.uniform(0, 0.2))
        if number % 2 and site.stack == "postgres":
            site.workers[0].kill_child()
        else:
            site.workers[0].restart()


def ended(site: Site, organizer: Organizer, there: str) -> dict[str, Any]:
    """The machine judge once it has ended and its grades are read."""

    deadline = time.monotonic() + 90
    while True:
        row: dict[str, Any] = organizer.api.get(there).json()
        if row["predictions"] and row["state"] in ("done", "stopped"):
            return row
        assert time.monotonic() < deadline, (row["state"], row["ended"], site.logs())
        time.sleep(0.2)


def pairs_of(runs: dict[str, bytes]) -> set[tuple[str, str]]:
    lines = [line.split() for run in runs.values() for line in run.decode().splitlines()]
    return {(topic, docno) for topic, _, docno, *_ in lines}


# ------------------------------------------------------------------------------- every step


class Died(BaseException):
    """As if by kill -9: nothing is caught, and nothing is put in order."""


def dies_again_and_again(judge: MachineJudge, rng: random.Random) -> None:
    """Its worker dies after a few steps, until one has come to the end."""
    job = Job.objects.get(kind="machine-judge", target=judge.pk)
    original = asking.Asking._store
    for _ in range(200):
        left = rng.randrange(1, 9)

        def store(self: asking.Asking, rows: list[MachineAnswer], back: int) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Died
            original(self, rows, back)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asking.Asking, "_store", store)
            try:
                jobs.run(job.pk)
            except Died:
                time.sleep(0.02)  # what is under way arrives
        lapsed = Job.objects.filter(pk=job.pk, state=Job.State.RUNNING)
        if not lapsed.update(lease_until=seconds_from_now(-1)):
            job.refresh_from_db()
            if job.state != Job.State.QUEUED:
                return
    raise AssertionError("it never ends")


def started(stub: Chat, settings: Any, *, max_calls: int) -> MachineJudge:
    settings.MACHINE_ENDPOINTS = {"stub": stub.endpoint()}
    campaign = evaluation.with_material()
    plan = MachinePlan("m", "stub", "small", max_calls=max_calls)
    judge = judges.create(campaign=campaign, by=campaign.created_by, plan=plan)
    judges.start(judge=judge, by=campaign.created_by)
    return judge


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("ceiling", [60, 2000])
def test_dying_at_any_step(settings: Any, ceiling: int) -> None:
    with chat.serving() as stub:
        judge = started(stub, settings, max_calls=ceiling)
        dies_again_and_again(judge, random.Random(SEED))
        factories.run_due_jobs()

        judge.refresh_from_db()
        _, pool = pools.ensure(judge.campaign)
        answers = Counter(MachineAnswer.objects.values_list("topic", "docno"))
        assert set(answers.values()) == {1}
        assert stub.calls <= judge.calls <= ceiling
        if ceiling > len(pool):
            assert judge.state == MachineJudge.State.DONE
            assert len(answers) == len(pool)
        assert judge.upload is not None
        assert judge.upload.summary["predictions"] == len(answers)


@pytest.mark.slow
@pytest.mark.django_db
def test_the_twin_that_counts_answers_passes_its_ceiling(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uncounted(self: asking.Asking, ready: list[asking.Call]) -> int:
        answered = MachineAnswer.objects.filter(prompt=self.prompt).count()
        granted = min(len(ready), self.judge.max_calls - answered - self.flying)
        self.why = "" if granted else "It has enough."
        return max(granted, 0)

    with chat.serving() as stub:
        judge = started(stub, settings, max_calls=60)
        monkeypatch.setattr(asking.Asking, "_reserve", uncounted)
        dies_again_and_again(judge, random.Random(SEED))

        assert stub.calls > 60

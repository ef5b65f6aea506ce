"""What the recompute after a batch costs: the job of a site part by part, with few and many labels.

``python -m benchmarks.recompute [--postgres]``. Processor seconds of the process that does the job
and, with PostgreSQL, of its server. 128 made-up runs of 50 topics, of which about one judged
document in fifteen is relevant, as in TREC-8. "First" is the recompute that works out what follows
from pool and design alone, "next" the one after one more batch, "again" after a correction.
"""

import argparse
import cProfile
import os
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

OPTIONS = argparse.ArgumentParser(description=__doc__.splitlines()[0])
OPTIONS.add_argument("--postgres", action="store_true", help="a server of its own, not SQLite")
OPTIONS.add_argument("--depth", type=int, default=100)
OPTIONS.add_argument("--judgments", default="10000,100000", help="numbers of them, ascending")
OPTIONS.add_argument("--methods", default="poisson,adaptive")
OPTIONS.add_argument("--goal", default="absolute")
OPTIONS.add_argument("--measures", default="P@10,DCG@100,RBP(p=0.8)", help="the goal's first")
OPTIONS.add_argument("--repeated", type=float, default=0.1, help="share judged by two at least")
OPTIONS.add_argument("--passes", type=int, default=3)
OPTIONS.add_argument("--profile", action="store_true", help="the hottest spots of one recompute")
GIVEN = OPTIONS.parse_args() if __name__ == "__main__" else OPTIONS.parse_args([])

os.environ["EVALSITE_DATA"] = tempfile.mkdtemp(prefix="evalsite-benchmark-")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.support.postgres import Postgres  # noqa: E402

CLUSTER = Postgres(durable=True) if GIVEN.postgres else None
if CLUSTER is not None:
    CLUSTER.start()
    os.environ["DATABASE_URL"] = CLUSTER.create_database()

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.models import F  # noqa: E402

from benchmarks.bars import LARGE, of_recompute  # noqa: E402
from benchmarks.clusters import seconds_of  # noqa: E402
from benchmarks.core import Collection, synthetic  # noqa: E402
from benchmarks.figures import Figure, tell  # noqa: E402
from estimation.core.measures.table import parse_measure  # noqa: E402
from estimation.models import Round  # noqa: E402
from estimation.services import (  # noqa: E402
    collections,
    estimates,
    files,
    forecasting,
    label_advice,
    pools,
    rounds,
    storing,
)
from evalsite.celery import load_what_jobs_need  # noqa: E402
from judging.models import (  # noqa: E402
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Job,
    Judgment,
    Pair,
)
from judging.services import bulk, campaigns, jobs, judgments  # noqa: E402
from tests.support import evaluation, factories  # noqa: E402

PARTS: dict[str, tuple[Any, str]] = {
    "labels": (collections, "gather"),
    "estimates": (estimates, "compute"),
    "advice": (label_advice, "compared"),
    "forecasts": (forecasting, "foretold"),
    "storing": (storing, "store"),
    "files": (files, "keep_written"),
}
ASSESSORS = 10
MOST_OF_ONE = 0.12  # seconds of a round for one run, and of AP beside other measures
LATER = "9999-01-01T00:00:00+00:00"


# ------------------------------------------------------------------------------ what is judged


@dataclass
class Judged:
    """A campaign, of which so many judgments are in. Whoever judges does so in no order."""

    campaign: Campaign
    collection: Collection
    assessors: list[int]
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def fill(self, batches: list[int]) -> None:
        """All labels of the batches, as they would be in the end; one in fifty is a correction."""
        placed = BatchPair.objects.filter(batch__in=batches).order_by("batch", "pair__topic")
        rows = list(placed.values_list("pair", "labels", "pair__topic__topic_id", "pair__docno"))
        given = [row for row in rows for _ in range(row[1])]
        number = np.concatenate([np.arange(row[1]) for row in rows]).tolist()
        order = self._order(len(given))
        pairs = [given[at][0] for at in order]
        people = [self.assessors[(pairs[n] + number[at]) % ASSESSORS] for n, at in enumerate(order)]
        grades = [self._grade(*given[at][2:]) for at in order]
        bulk.insert(Assignment, {
            "campaign": self.campaign.pk, "pair": pairs, "assessor": people,
            "state": Assignment.State.JUDGED, "lease_until": LATER, "revision": 1,
            "grade": grades, "skip_reason": "",
        })  # fmt: skip
        self._judge(pairs, people, grades)
        Pair.objects.filter(batch_pairs__batch__in=batches).update(
            held=F("wanted"), judged=F("wanted")
        )

    def forget(self) -> None:
        """What was judged for the rounds before, whose batches tell nothing any more."""
        Batch.objects.update(state=Batch.State.DROPPED)
        for model in (Judgment, Assignment):
            model.objects.all().delete()
        Pair.objects.update(held=0, judged=0, wanted=1)

    def complete(self, batches: list[int]) -> None:
        Batch.objects.filter(pk__in=batches).update(state=Batch.State.COMPLETE, remaining=0)

    def _order(self, number: int) -> list[int]:
        """Nearly as the batches have them: people are some hundred pairs apart."""
        found: list[int] = np.argsort(np.arange(number) + 300 * self.rng.random(number)).tolist()
        return found

    def _grade(self, topic: str, docno: str) -> int:
        """People overlook what is relevant rather than that they find what is not."""
        right = self.collection.qrels.get((topic, docno.encode()), 0)
        return int(self.rng.random() < (0.8 if right else 0.02))

    def _judge(self, pairs: list[int], people: list[int], grades: list[int]) -> None:
        ids = bulk.find(Assignment, {"pair": pairs, "assessor": people})
        same: dict[str, Any] = {"assessor": people, "max_grade": 1, "seconds": 2.5, "comment": ""}
        keys = [f"key-{pk}" for pk in ids]
        bulk.insert(Judgment, same | {"assignment": ids, "grade": grades, "key": keys})
        again = self.rng.choice(len(ids), len(ids) // 50, replace=False).tolist()
        some = {"assessor": [people[at] for at in again], "key": [f"{keys[at]}-2" for at in again]}
        revised = [ids[at] for at in again]
        bulk.insert(Judgment, same | some | {
            "assignment": revised, "grade": [1 - grades[at] for at in again], "revision": 2,
        })  # fmt: skip
        for start in range(0, len(revised), 500):
            some_of_them = Assignment.objects.filter(pk__in=revised[start : start + 500])
            some_of_them.update(revision=2, grade=1 - F("grade"))


def campaign(collection: Collection, depth: int) -> Judged:
    organizer = factories.user("organizer", is_organizer=True)
    scale = [{"name": name, "meaning": ""} for name in ("no", "yes")]
    plan = campaigns.CampaignPlan(name="c", slug="c", depth=depth, grades=scale)
    made = campaigns.create(by=organizer, plan=plan)
    topics = "".join(f"{topic}\t{topic}\n" for topic in collection.topics)
    factories.stored_upload(made, topics.encode(), name="topics.tsv", kind="topics")
    for tag, lists in collection.runs.items():
        lines = (
            f"{topic} Q0 {docno.decode()} {rank} {depth - rank} {tag}\n"
            for topic, start in zip(lists.topics, lists.indptr, strict=False)
            for rank, docno in enumerate(lists.docnos[start : start + depth].tolist())
        )
        factories.stored_upload(made, "".join(lines).encode(), name=tag, kind="run")
    Campaign.objects.update(state=Campaign.State.OPEN)
    made.refresh_from_db()
    people = factories.assessors(made, *(f"assessor{number}" for number in range(ASSESSORS)))
    return Judged(made, collection, [each.pk for each in people])


def drawn(judged: Judged, method: str, judgments: int) -> Round:
    """A round for so many judgments: several of a pair where the pool is too small."""
    made = judged.campaign
    _, pool = pools.ensure(made)
    labels = 1 + int(judgments * (1 - GIVEN.repeated) / (0.8 * len(pool)))
    budget = int(judgments / (labels + GIVEN.repeated))
    goal, *reported = GIVEN.measures.split(",")
    plan = evaluation.plan(
        measure=goal, reported=reported, goal=GIVEN.goal, budget=budget,
        batch_size=budget // (10 if method == "adaptive" else 50), method=method, labels=labels,
        extra_share=GIVEN.repeated,
        **({"run": pool.runs[0]} if GIVEN.goal == "single" else {}),
    )  # fmt: skip
    row = rounds.draft(campaign=made, by=made.created_by, plan=plan)
    factories.run_due_jobs()
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    return row


# ---------------------------------------------------------------------------- what is measured


@dataclass
class Spent:
    """Processor seconds of a recompute: in all, of the database, and part by part."""

    every: float = 0.0
    database: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {seconds:.3f}" for name, seconds in self.parts.items())
        server = f" and {self.database:.3f} s of the database" if CLUSTER else ""
        rest = self.every - sum(self.parts.values())
        return f"{self.every:.3f} s{server}: {parts}, the rest {rest:.3f}"

    @classmethod
    def median(cls, several: list["Spent"]) -> "Spent":
        middle = statistics.median
        parts = {name: middle(each.parts.get(name, 0.0) for each in several) for name in PARTS}
        return cls(middle(e.every for e in several), middle(e.database for e in several), parts)


@contextmanager
def parted(spent: Spent) -> Iterator[None]:
    def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return work(*args, **kwargs)
            finally:
                spent.parts[name] = spent.parts.get(name, 0.0) + time.process_time() - start

        return wrapped

    with ExitStack() as stack:
        for name, (module, attribute) in PARTS.items():
            wrapped = timed(name, getattr(module, attribute))
            stack.enter_context(mock.patch.object(module, attribute, wrapped))
        yield


def recomputed(row: Round) -> Spent:
    """The job, as a worker does it."""
    known = row.estimate_sets.count()
    job, spent = jobs.request("recompute", row.pk, campaign=row.campaign), Spent()
    start, before = time.process_time(), seconds_of(CLUSTER)
    with parted(spent):
        jobs.run(job.pk)
    spent.every, spent.database = time.process_time() - start, seconds_of(CLUSTER) - before
    if row.estimate_sets.count() != known + 1:
        raise SystemExit(f"nothing was recomputed: {Job.objects.get(pk=job.pk).error}")
    return spent


def corrected(row: Round) -> Spent:
    """After the correction of one judgment: the same batches, with another label."""
    pair = row.draws.filter(batch_number=1).values("pair")[:1]
    held = Assignment.objects.filter(pair=pair, revision__gte=1).first()
    if held is None or held.grade is None:
        raise SystemExit("nothing was judged in the first batch")
    saying = judgments.Saying(grade=1 - held.grade, key=f"again-{held.revision}")
    judgments.correct(assignment=held, by=held.assessor, saying=saying, revision=held.revision)
    return recomputed(row)


def of_round(judged: Judged, method: str, judgments: int) -> None:
    judged.forget()
    row = drawn(judged, method, judgments)
    if method == "adaptive":
        first, following = _batch_by_batch(judged, row)
    else:
        ids = list(row.round_batches.order_by("number").values_list("batch", flat=True))
        judged.fill(ids)
        judged.complete(ids[: -GIVEN.passes])
        pools._load.cache_clear()
        first, following = recomputed(row), []
        analyzed()
        for pk in ids[-GIVEN.passes :]:
            judged.complete([pk])
            following.append(recomputed(row))
    again = Spent.median([corrected(row) for _ in range(GIVEN.passes)])
    shown = row.estimate_sets.last()
    print(f"\n{method}, {row.goal}: {shown.label_count:,} judgments of {shown.pair_count:,} pairs")
    after = Spent.median(following)
    for name, spent in [("first", first), ("next", after), ("again", again)]:
        print(f"  {name:>6} {spent}", flush=True)
    goal = "" if row.goal == "absolute" else f", goal {row.goal}"
    work = f"recompute, {method}, {connection.vendor}{goal}, {shown.label_count:,} judgments"
    tell(Figure(work, after.every + after.database, "s", most=_most(row, method, judgments)))
    if method == "poisson" and judgments == LARGE:
        tell(Figure(f"{work}: AP beside the others", added(row, "AP"), "s", most=MOST_OF_ONE))
    if GIVEN.profile:
        hottest(lambda: corrected(row))


def _most(row: Round, method: str, judgments: int) -> float | None:
    """Seconds that a recompute should take at most; None beyond the numbers that have a bar."""
    if row.goal == "single":
        return MOST_OF_ONE
    return of_recompute(judgments, adaptive=method == "adaptive")


def added(row: Round, name: str) -> float:
    """What one more measure takes, with and without it in turn."""
    inputs, more = estimates.gather(row), parse_measure(name)
    measures = inputs.collection.measures
    spent: dict[int, list[float]] = {}
    for _ in range(5):
        for asked in (measures, (*measures, more)):
            start = time.process_time()
            inputs.collection.evaluate(inputs.joined, measures=asked, interval="student")
            spent.setdefault(len(asked), []).append(time.process_time() - start)
    without, with_it = (statistics.median(each[1:]) for each in spent.values())
    return with_it - without


def analyzed() -> None:
    """PostgreSQL counts its rows and notes which are old, as it does by itself over days."""
    if CLUSTER is not None:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def _batch_by_batch(judged: Judged, row: Round) -> tuple[Spent, list[Spent]]:
    """Of the first and the last batch."""
    told = []
    while waiting := list(_waiting(row)):
        judged.fill(waiting)
        judged.complete(waiting)
        analyzed()
        told.append(recomputed(row))
        factories.run_due_jobs()
    return told[0], told[-1:]


def _waiting(row: Round) -> list[int]:
    served = row.round_batches.filter(batch__state__in=[Batch.State.WAITING, Batch.State.OPEN])
    return list(served.order_by("number").values_list("batch", flat=True))


def hottest(work: Callable[[], object]) -> None:
    profile = cProfile.Profile(time.process_time)
    profile.runcall(work)
    told = pstats.Stats(profile)
    spots = sorted(told.stats.items(), key=lambda item: -item[1][2])[:3]  # type: ignore[attr-defined]
    for (file, line, name), (_, calls, seconds, *_) in spots:
        where = f"{Path(file).name}:{line} {name}" if line else name
        print(f"  {seconds:7.3f} s in {calls:,} calls of {where}")


def main() -> None:
    try:
        load_what_jobs_need()  # as the process of a worker
        call_command("migrate", verbosity=0)
        judged = campaign(synthetic(noise=2.0), GIVEN.depth)
        _, pool = pools.ensure(judged.campaign)
        print(f"128 runs of 50 topics down to {GIVEN.depth}, {len(pool):,} pairs")
        for method in GIVEN.methods.split(","):
            for judgments in map(int, GIVEN.judgments.split(",")):
                of_round(judged, method, judgments)
    finally:
        connection.close()
        if CLUSTER is not None:
            CLUSTER.stop()


if __name__ == "__main__":
    main()

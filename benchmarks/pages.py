"""What an organizer's pages cost, of a campaign of TREC-8's size, and the job that makes reports.

128 made-up runs of 50 topics, 10 000 judgments in 25 batches, of which the last ten were recomputed
one by one. Processor time of the process that answers, on SQLite: "cold" when estimates are new,
the others the median of further visits. Reports are made by a worker, which has loaded what jobs
need with its first.
"""

import os
import statistics
import time
from collections.abc import Callable

from benchmarks.recompute import Judged, campaign, recomputed  # sets Django up

# isort: split

from django.core.management import call_command
from django.test import Client

from benchmarks.core import synthetic
from benchmarks.figures import Figure, tell
from estimation import versions
from estimation.models import Round
from estimation.services import pools, reports, rounds
from evalsite.celery import load_what_jobs_need
from judging.models import Campaign
from judging.services import jobs
from tests.support import evaluation, factories

BUDGET, BATCH, LOOKS, VISITS = 10_000, 400, 10, 9
PAGES = {
    "live": "ranking", "live-pairs": "matrix", "live-topics": "topics", "live-history": "history",
    "live-labels": "quality", "live-compare": "comparison",
}  # fmt: skip
MOST = {"matrix": 60.0, "history": 100.0}  # milliseconds; of the others 100


def judged_round() -> tuple[Judged, Round]:
    judged = campaign(synthetic(noise=2.0), 100)
    made = judged.campaign
    pools.ensure(made)
    plan = evaluation.plan(
        measure="DCG@100", reported=["P@10", "RBP(p=0.8)"], budget=BUDGET, batch_size=BATCH,
    )  # fmt: skip
    row = rounds.draft(campaign=made, by=made.created_by, plan=plan)
    factories.run_due_jobs()
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    ids = list(row.round_batches.order_by("number").values_list("batch", flat=True))
    judged.fill(ids)
    judged.complete(ids[:-LOOKS])
    recomputed(row)
    for pk in ids[-LOOKS:]:
        judged.complete([pk])
        recomputed(row)
    row.refresh_from_db()
    return judged, row


def milliseconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def of_pages(made: Campaign, row: Round) -> None:
    client = Client(SERVER_NAME="localhost")
    client.force_login(made.created_by)
    client.get("/")
    for name, said in PAGES.items():
        address = f"/c/{made.slug}/rounds/{row.number}/{_path(name)}"

        def visit(address: str = address) -> None:
            if client.get(address).status_code != 200:
                raise SystemExit(f"{address} does not answer")

        cold = milliseconds(visit)
        warm = statistics.median(milliseconds(visit) for _ in range(VISITS))
        tell(Figure(f"{said} page, cold", cold, "ms", "later", warm, MOST.get(said, 100.0)))
    address = f"/c/{made.slug}/rounds/{row.number}/ranking/"
    asked = {"head": versions.of_round(made.pk, row.number)}

    def poll() -> None:
        if client.get(address, asked, headers={"HX-Request": "true"}).status_code != 204:
            raise SystemExit("the poll had an answer")

    poll()
    idle = statistics.median(milliseconds(poll) for _ in range(10 * VISITS))
    tell(Figure("unchanged poll", idle, "ms", most=2.0))


def _path(name: str) -> str:
    return {"live": "ranking/"}.get(name, f"ranking/{name.removeprefix('live-')}/")


def of_reports(made: Campaign, row: Round) -> None:
    load_what_jobs_need()
    reports.request(row=row, by=made.created_by)
    job = jobs.request("report", row.pk, campaign=made)
    seconds = milliseconds(lambda: jobs.run(job.pk)) / 1000
    if not row.estimate_sets.last().reports.exists():
        raise SystemExit("there are no reports")
    tell(Figure("all reports of a round", seconds, "s", most=2.0))


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    judged, row = judged_round()
    of_pages(judged.campaign, row)
    of_reports(judged.campaign, row)


if __name__ == "__main__":
    main()

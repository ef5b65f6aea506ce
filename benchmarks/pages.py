"""What every page of an organizer costs, of a campaign of TREC-8's size, and those of admins.

129 made-up runs of 50 topics, 14 000 documents, 10 000 judged pairs in 25 batches, of which the
last ten were recomputed one by one; two further batches wait, and a second round is drafted.
Processor time of the process that answers, on SQLite (see `benchmarks.visits`), and statements.
Reports are made by a worker, which has loaded what jobs need with its first.
"""

import argparse
import json
import os
import resource
import statistics
from unittest import mock

from benchmarks.recompute import Judged, campaign, recomputed  # sets Django up

# isort: split

from django.core.management import call_command
from django.test import Client, override_settings

from benchmarks import visits
from benchmarks.core import synthetic
from benchmarks.figures import Figure, tell
from benchmarks.visits import Row, milliseconds
from estimation import versions
from estimation.endpoints import Endpoint
from estimation.models import MachineAnswer, Round
from estimation.services import pools, reports, rounds
from estimation.services.machines import judges
from estimation.services.report_files.table import REPORTS
from evalsite.celery import load_what_jobs_need
from judging.models import Assignment, AuditEntry, Campaign, Judgment, User
from judging.services import assignments, jobs
from tests.support import evaluation, factories

RUNS, DOCUMENTS, BUDGET, BATCH, LOOKS = 129, 14_000, 10_000, 400, 10
WAITING, COMMENTED, ANSWERS, CAMPAIGNS, PEOPLE = 2, 200, 2000, 60, 200
SLOWEST, MOST, POLLS = 10, 100.0, 90  # lines that are printed; milliseconds of a page; polls
QUICK = {"live-history": 60.0, "live-pairs": 60.0}  # pages with many numbers: at most so many
TURNS = 500_000  # of a loop that tells how fast the machine is just now
FILLER = " ".join(f"word{number % 97}" for number in range(250))


def judged_round() -> tuple[Judged, Round]:
    judged = campaign(synthetic(runs=RUNS, documents=DOCUMENTS, noise=2.0), 100)
    made = judged.campaign
    texts = "".join(
        json.dumps({"docno": f"doc-{number:05}", "title": f"document {number}", "text": FILLER})
        + "\n"
        for number in range(DOCUMENTS)
    )
    factories.stored_upload(made, texts.encode(), name="documents.jsonl", kind="documents")
    pools.ensure(made)
    plan = evaluation.plan(
        measure="DCG@100", reported=["P@10", "RBP(p=0.8)"], budget=BUDGET + WAITING * BATCH,
        batch_size=BATCH,
    )  # fmt: skip
    row = drafted(made, plan)
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    ids = list(row.round_batches.order_by("number").values_list("batch", flat=True))[:-WAITING]
    judged.fill(ids)
    judged.complete(ids[:-LOOKS])
    recomputed(row)
    for pk in ids[-LOOKS:]:
        judged.complete([pk])
        recomputed(row)
    row.refresh_from_db()
    return judged, row


def drafted(made: Campaign, plan: rounds.RoundPlan) -> Round:
    row = rounds.draft(campaign=made, by=made.created_by, plan=plan)
    factories.run_due_jobs()
    return row


def around(judged: Judged, row: Round) -> dict[str, list[Row]]:
    """What a campaign has beside judgments, and what the addresses of its pages may name."""
    made = judged.campaign
    draft = drafted(made, evaluation.plan(measure="DCG@100", budget=BUDGET // 10, batch_size=BATCH))
    said = Judgment.objects.order_by("pk")
    said.filter(pk__lte=said[COMMENTED - 1].pk).update(comment="Answers another question.")
    for person in User.objects.filter(pk__in=judged.assessors[:3]):
        if held := assignments.claim_next(campaign=made, by=person):
            assignments.skip(assignment=held, by=person, reason="no text")
    judged_by = Assignment.objects.filter(state="judged").values_list("assessor", "pair")
    AuditEntry.objects.bulk_create(
        AuditEntry(campaign=made, actor_id=who, action="judge", target=f"pair {pair}", data={})
        for who, pair in judged_by
    )
    evaluation.worker_alive()
    machine(made)
    return visits.rows_in(made, drawn=row, draft=draft)


def machine(made: Campaign) -> None:
    """One that was asked; its endpoint is declared while it is made, and asked nothing."""
    plan = judges.MachinePlan("machine", "nowhere", "small", max_calls=10 * ANSWERS)
    nowhere = Endpoint("nowhere", "http://127.0.0.1:9/v1", ("small",))
    with override_settings(MACHINE_ENDPOINTS={"nowhere": nowhere}):
        judge = judges.create(campaign=made, by=made.created_by, plan=plan)
    prompt, topics = judge.prompts.all()[0], list(made.topics.all())
    MachineAnswer.objects.bulk_create(
        MachineAnswer(
            prompt=prompt, topic=topics[n % len(topics)], docno=f"doc-{n:05}", outcome="graded",
            grade=n % 2, tries=1, reply='{"grade": 1}', seconds=0.8, tokens_in=410, tokens_out=24,
        )
        for n in range(ANSWERS)
    )  # fmt: skip


def others() -> User:
    """What else a site has: campaigns and people. Returns an admin."""
    for number in range(CAMPAIGNS):
        by = factories.user(f"organizer-{number}", is_organizer=True)
        factories.campaign(by=by, slug=f"other-{number}")
    User.objects.bulk_create(User(username=f"person-{number}") for number in range(PEOPLE))
    return User.objects.create_superuser("admin")


def of_pages(judged: Judged, row: Round) -> None:
    rows = around(judged, row)
    every = visits.pages(organizer=judged.campaign.created_by, admin=others(), rows=rows)
    before = milliseconds(loop)
    found = visits.visited(every)
    tell(
        Figure(
            "the same loop before and after the pages", before, "ms", "after", milliseconds(loop)
        )
    )
    print(*visits.lines(found[:SLOWEST]), sep="\n")
    for what, prefix in (("campaign", "/c/"), ("site", "/site/")):
        own = [each for each in found if each.page.address.startswith(prefix)]
        slowest, most = own[0], max(own, key=lambda each: each.statements)
        work = f"slowest of {len(own)} pages of a {what}, {slowest.page.name}, cold"
        tell(Figure(work, slowest.cold, "ms", "later", slowest.later, MOST))
        tell(Figure(f"most statements of one of them, {most.page.name}", most.statements, ""))
    for name, bar in QUICK.items():
        each = next(each for each in found if each.page.name == name)
        tell(Figure(f"{name}, cold", each.cold, "ms", "later", each.later, bar))


def loop() -> None:
    """Machines that are shared may be three times as slow as a minute ago."""
    total = 0
    for turn in range(TURNS):
        total += turn * turn % 7


def of_polls(made: Campaign, row: Round) -> None:
    client = Client(SERVER_NAME="localhost")
    client.force_login(made.created_by)
    address = f"/c/{made.slug}/rounds/{row.number}/ranking/"
    asked = {"head": versions.of_round(made.slug, row.number)}

    def poll() -> None:
        if client.get(address, asked, headers={"HX-Request": "true"}).status_code != 204:
            raise SystemExit("the poll had an answer")

    poll()
    idle = statistics.median(milliseconds(poll) for _ in range(POLLS))
    tell(Figure("unchanged poll", idle, "ms", most=2.0))


def of_reports(made: Campaign, row: Round) -> None:
    """Of the worker; a PDF is made by a program of its own, whose time stands apart."""
    load_what_jobs_need()
    first = {name: REPORTS[name] for name in ("qrels.txt", "judgments.csv")}
    with mock.patch.object(reports, "REPORTS", first):
        seconds = reported(made, row)
    tell(Figure("reports of qrels and judgments", seconds, "s", most=2.0))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    rest = f"the other {len(REPORTS) - len(first)} reports of a round"
    tell(Figure(rest, reported(made, row), "s"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tell(Figure("the program that makes its PDF", program, "s"))


def reported(made: Campaign, row: Round) -> float:
    """Seconds in which all that is missing was made."""
    reports.request(row=row, by=made.created_by)
    job = jobs.request("report", row.pk, campaign=made)
    seconds = milliseconds(lambda: jobs.run(job.pk)) / 1000
    there = set(row.estimate_sets.last().reports.values_list("name", flat=True))
    if missing := reports.REPORTS.keys() - there:
        raise SystemExit(f"there are no reports {', '.join(sorted(missing))}")
    return seconds


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    judged, row = judged_round()
    of_reports(judged.campaign, row)
    of_pages(judged, row)
    of_polls(judged.campaign, row)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    main()

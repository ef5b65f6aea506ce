"""What a draw costs, from wish to batches that wait, beside the same rows by the bare driver.

In a process that has loaded what jobs need, as that of a worker has with its first.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable

os.environ["EVALSITE_DATA"] = tempfile.mkdtemp(prefix="evalsite-benchmark-")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

import django

django.setup()

from django.core.management import call_command  # noqa: E402

from benchmarks.figures import Figure, tell  # noqa: E402
from estimation.models import Draw, Round  # noqa: E402
from estimation.services import rounds  # noqa: E402
from evalsite.celery import load_what_jobs_need  # noqa: E402
from judging.models import BatchPair, Campaign, Pair  # noqa: E402
from tests.support import evaluation, factories  # noqa: E402

TOPICS, DEPTH, RUNS = 100, 500, 4
BUDGETS = (10_000, 100_000)


def campaign() -> Campaign:
    """Runs that have little in common, so that the pool is large though they are few."""
    made = factories.campaign(slug="c", topics=TOPICS)
    Campaign.objects.filter(pk=made.pk).update(depth=DEPTH)
    made.refresh_from_db()
    names = sorted(made.topics.values_list("topic_id", flat=True))
    for run in range(RUNS):
        lines = (
            f"{topic} Q0 FT{run}-{rank * 7919 % 99991:05}-{rank} {rank} {DEPTH - rank} run{run}\n"
            for topic in names
            for rank in range(DEPTH)
        )
        factories.stored_upload(made, "".join(lines).encode(), name=f"run{run}", kind="run")
    return made


def drawn(made: Campaign, budget: int) -> tuple[Round, float]:
    plan = evaluation.plan(budget=budget, batch_size=budget // 10, measure=f"DCG@{DEPTH}")
    row = rounds.draft(campaign=made, by=made.created_by, plan=plan)
    preview = cpu(factories.run_due_jobs)
    tell(Figure(f"preview of {budget:,} pairs", preview, "s"))
    rounds.request_draw(row=row, by=made.created_by)
    seconds = cpu(factories.run_due_jobs)
    row.refresh_from_db()
    return row, seconds


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def bare(row: Round) -> float:
    """The rows of the round, with their constraints and indexes, by sqlite3 alone."""
    tables = [model._meta.db_table for model in (Pair, BatchPair, Draw)]
    source = sqlite3.connect(f"{os.environ['EVALSITE_DATA']}/evalsite.sqlite3")
    target = sqlite3.connect(f"{os.environ['EVALSITE_DATA']}/bare-{row.pk}.sqlite3")
    marks = ", ".join("?" * len(tables))
    schema = f"SELECT sql FROM sqlite_master WHERE tbl_name IN ({marks}) AND sql IS NOT NULL"
    for (statement,) in source.execute(schema + " ORDER BY type DESC", tables).fetchall():
        target.execute(statement)
    rows = {table: source.execute(f"SELECT * FROM {table}").fetchall() for table in tables}

    def write() -> None:
        for table, content in rows.items():
            target.executemany(
                f"INSERT INTO {table} VALUES ({', '.join('?' * len(content[0]))})",
                content,
            )
        target.commit()

    return cpu(write)


def main() -> None:
    call_command("migrate", verbosity=0)
    made = campaign()
    load_what_jobs_need()
    for budget in BUDGETS:
        row, seconds = drawn(made, budget)
        pairs, floor = row.draws.count(), bare(row)
        most = 2.0 if budget == max(BUDGETS) else None
        tell(Figure(f"draw {pairs:,} pairs", seconds, "s", "the bare driver", floor, most))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    main()

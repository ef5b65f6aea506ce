"""What one judgment costs, claim and save, with a hundred and with ten thousand pairs waiting."""

import os
import statistics
import tempfile
import time

os.environ["EVALSITE_DATA"] = tempfile.mkdtemp(prefix="evalsite-benchmark-")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, reset_queries  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from tests.support import factories  # noqa: E402

JUDGMENTS = 200
TOPICS = 20


def cost(documents: int) -> tuple[float, float]:
    """Median seconds and mean number of queries of a claim with its save."""
    campaign = factories.campaign(slug=f"c{documents}", topics=TOPICS)
    (anna,) = factories.assessors(campaign, f"anna{documents}")
    factories.released_batch(campaign, [f"d{number}" for number in range(documents)])
    seconds, queries = [], []
    for number in range(JUDGMENTS):
        reset_queries()
        with CaptureQueriesContext(connection) as captured:
            start = time.perf_counter()
            factories.judge_next(campaign, anna, grade=number % 4)
            seconds.append(time.perf_counter() - start)
        queries.append(len(captured))
    return statistics.median(seconds), statistics.mean(queries)


def main() -> None:
    call_command("migrate", verbosity=0)
    cost(10)  # warms caches up
    few, many = cost(11), cost(500)
    pairs = (11 * TOPICS, 500 * TOPICS)
    print(f"{pairs[0]:>6} pairs: {1000 * few[0]:.1f} ms, {few[1]:.1f} queries a judgment")
    print(f"{pairs[1]:>6} pairs: {1000 * many[0]:.1f} ms, {many[1]:.1f} queries a judgment")
    print(f"{pairs[1] / pairs[0]:.0f} times the pairs, {many[0] / few[0]:.1f} times the time")


if __name__ == "__main__":
    main()

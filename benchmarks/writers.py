"""How long assessors wait who judge at once on SQLite, with the queue of writers and without it.

``python -m benchmarks.writers [people] [judgments of each]``. Both sites have the same material;
"overtaken" is how many requests of others began later than one and were answered before it.
"""

import argparse
import os
import statistics
import tempfile

os.environ.setdefault("EVALSITE_DATA", tempfile.mkdtemp(prefix="evalsite-benchmark-"))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

from benchmarks.figures import Figure, tell
from tests.support.crowd import Assessor, Crowd, Organizer, Shift, assessors, most_overtaken
from tests.support.material import small_material
from tests.support.site import Site

ROUND = {
    "measure": "DCG@10",
    "budget": 1000,
    "batch_size": 200,
    "labels": 3,
    "seed": "writers",
    "method": "poisson",
}
SETTINGS = {"without": "tests.support.unqueued", "with": "evalsite.settings"}


def judged(settings: str, people: int, judgments: int) -> list[Assessor]:
    """Everybody judges without a pause, until all together have given so many."""
    site = Site("sqlite", env={"DJANGO_SETTINGS_MODULE": settings})
    try:
        site.start()
        key = site.add_users("olga", organizer=True)["olga"]
        organizer = Organizer(site, site.api(key), "writers")
        material = small_material(topics=30)
        organizer.create()
        organizer.bring(material)
        organizer.draft(**ROUND)
        organizer.draw()
        organizer.open()
        crowd = Crowd(material.truth, max_grade=3, seed="writers")
        keys = organizer.enlist(*(f"assessor{n}" for n in range(people)))
        with Shift(assessors(organizer, keys, crowd)) as shift:
            shift.wait_acknowledged(judgments * people)
            shift.stop.set()
        return shift.assessors
    finally:
        site.stop()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("people", nargs="?", type=int, default=8)
    options.add_argument("judgments", nargs="?", type=int, default=60, help="of each")
    given = options.parse_args()
    people, judgments = given.people, given.judgments
    for name, settings in SETTINGS.items():
        crowd = judged(settings, people, judgments)
        seconds = [second for person in crowd for second in person.seconds]
        starts, ends = zip(*(span for person in crowd for span in person.spans), strict=True)
        cuts = statistics.quantiles(seconds, n=100)
        median, p95, p99 = (1000 * cuts[at - 1] for at in (50, 95, 99))
        print(
            f"{name:>7} the queue: {len(seconds)} requests of {people} people,"
            f" {len(seconds) / (max(ends) - min(starts)):.0f} a second, p50 {median:.0f} ms,"
            f" p95 {p95:.0f} ms ({p95 / median:.1f} times p50), p99 {p99:.0f} ms,"
            f" longest {1000 * max(seconds):.0f} ms, overtaken by at most {most_overtaken(crowd)}"
        )
        work = f"95th percentile of waiting for an answer, {people} people at once, sqlite"
        if name == "with":
            tell(Figure(work, p95, "ms", "in the middle", median, most_times=4.0))


if __name__ == "__main__":
    main()

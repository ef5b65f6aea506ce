"""SIGTERM of web servers and workers while many people judge: nobody is cut off."""

import time

from tests.at_length.ground import Ground, embedded, prepare, production
from tests.at_length.tally import Tally
from tests.support.site import Process

TIMES = 5
EXIT_SECONDS = 10.0
PEOPLE = 20
HELD = """
from django.db.models.functions import Now
from judging.models import Job
print(Job.objects.filter(state="running", lease_until__gt=Now()).count())
"""


def on_production() -> Tally:
    with production() as site:
        ground = prepare(site, "graceful stop, production", people=PEOPLE, pause=0.05)
        drill(ground, [[site.web], [site.web], site.workers])
        return ground.tally


def on_up() -> Tally:
    with embedded() as site:
        ground = prepare(site, "graceful stop, up", people=PEOPLE, pause=0.05)
        drill(ground, [[site.web]])
        return ground.tally


def drill(ground: Ground, groups: list[list[Process]]) -> None:
    tally, slowest, codes = ground.tally, 0.0, set()
    with ground.judging():
        for turn in range(TIMES):
            ground.wait_more(100, seconds=120)
            for process in (group := groups[turn % len(groups)]):
                slowest = max(slowest, stop(process))
                assert process.process is not None
                codes.add(process.process.returncode)
                tally.faults += 1
            if process_is_worker(group):
                held = int(ground.site.python(HELD).split()[-1])
                tally.expect(held == 0, f"{held} jobs are left to their leases")
        ground.wait_more(100, seconds=120)
    tally.expect(slowest < EXIT_SECONDS, f"longest exit {slowest:.1f} s (at most {EXIT_SECONDS:g})")
    tally.expect(codes == {0}, f"exit codes {sorted(codes)}")
    cut = sum(person.cut for person in ground.people)
    tally.expect(cut == 0, f"{cut} requests cut without an answer")


def stop(process: Process) -> float:
    """SIGTERM; after how many seconds it had ended."""
    began = time.monotonic()
    process.stop(seconds=60)
    return time.monotonic() - began


def process_is_worker(group: list[Process]) -> bool:
    """All workers have ended then, so that nobody can hold a job."""
    return any(process.name.startswith("worker") for process in group)

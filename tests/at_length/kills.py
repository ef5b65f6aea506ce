"""kill -9 of one process after the other, at random, while people judge."""

import random
import time
from collections import Counter

from tests.at_length.ground import SEED, embedded, prepare, production
from tests.at_length.tally import Tally
from tests.support.topology import VICTIMS, Embedded, Production

KILLS = 60
SECONDS = 600.0


def on_production() -> Tally:
    with production() as site:
        return drill(site, "kills, production")


def on_up() -> Tally:
    with embedded() as site:
        return drill(site, "kills, up")


def drill(
    site: Production | Embedded, name: str, kills: int = KILLS, seconds: float = SECONDS
) -> Tally:
    """Every kind of process as often as every other, in random order, at random moments."""
    rng, ground = random.Random(SEED), prepare(site, name, pause=0.8)
    victims = [VICTIMS[n % len(VICTIMS)] for n in range(kills)]
    rng.shuffle(victims)
    with ground.judging():
        for victim in victims:
            due = time.monotonic() + rng.uniform(0.4, 1.6) * seconds / kills
            ground.wait_more(3, seconds=60)
            ground.go_on(max(0.0, due - time.monotonic()))
            if victim.startswith("worker"):
                ground.organizer.await_recompute()
            site.strike(victim, rng)
            ground.tally.faults += 1
        ground.wait_more(20, seconds=60)
    struck = ", ".join(f"{n} × {victim}" for victim, n in sorted(Counter(victims).items()))
    ground.tally.notes.append(f"killed {struck}")
    ground.tally.notes.append(f"longest request {ground.slowest():.1f} s")
    return ground.tally

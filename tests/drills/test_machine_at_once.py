"""Two acts of the machine at the same moment, in threads; then all that the machine checks."""

import logging
from collections.abc import Iterator

import pytest

from judging.models import Campaign
from tests.support.machine import checks, ending, stage
from tests.support.machine.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
Act = tuple[str, int, int, int]

DRAFTED: list[Act] = [("draft", 0, 3, 0), ("catch_up", 0, 0, 0)]
ASKED: list[Act] = [*DRAFTED, ("draw", 0, 0, 1)]
OPEN: list[Act] = [*ASKED, ("catch_up", 0, 0, 0), ("open", 0, 0, 0)]
HELD: list[Act] = [*OPEN, ("claim", 0, 0, 0), ("claim", 1, 0, 0)]
JUDGED: list[Act] = [*HELD, ("judge", 0, 0, 1)]
LATE: list[Act] = [*HELD, ("wait", 0, 0, 0)]
REST: list[Act] = [*HELD, ("decide_rest", 0, 0, 0)]
READING: list[Act] = [("upload", 0, 0, 0)]
LAST_UPLOAD = 4
PAIRS: dict[str, tuple[list[Act], Act, Act]] = {
    "draw and change": (DRAFTED, ("draw", 0, 0, 0), ("change", 1, 0, 0)),
    "draw and discard": (DRAFTED, ("draw", 0, 0, 0), ("discard", 1, 0, 0)),
    "draw twice": (DRAFTED, ("draw", 0, 0, 0), ("draw", 1, 0, 0)),
    "draw and remove a run": (DRAFTED, ("draw", 0, 0, 0), ("remove", 1, 3, 0)),
    "draw and change the scale": (DRAFTED, ("draw", 0, 0, 0), ("settle", 1, 0, 0)),
    "work and discard": (ASKED, ("work", 0, 1, 0), ("discard", 1, 0, 0)),
    "work and remove a run": (ASKED, ("work", 0, 0, 0), ("remove", 1, 3, 0)),
    "two workers": (ASKED, ("work", 0, 0, 0), ("work", 0, 0, 0)),
    "read and cancel": (READING, ("work", 0, 0, 0), ("cancel", 1, LAST_UPLOAD, 0)),
    "read and remove": (READING, ("work", 0, 0, 0), ("remove", 1, LAST_UPLOAD, 0)),
    "two claims": (OPEN, ("claim", 0, 0, 0), ("claim", 1, 0, 0)),
    "two tabs": (OPEN, ("claim", 0, 0, 0), ("claim", 0, 0, 0)),
    "judge and skip": (HELD, ("judge", 0, 0, 1), ("skip", 0, 0, 0)),
    "two judge": (HELD, ("judge", 0, 0, 1), ("judge", 0, 1, 2)),
    "judge and close": (HELD, ("judge", 0, 0, 1), ("close", 0, 0, 0)),
    "judge and leave": (HELD, ("judge", 0, 0, 1), ("leave", 0, 0, 0)),
    "judge and sweep": (LATE, ("judge", 0, 0, 1), ("sweep", 0, 0, 0)),
    "sweep and claim": (LATE, ("sweep", 0, 0, 0), ("claim", 0, 0, 0)),
    "judge and decide": (HELD, ("judge", 0, 0, 1), ("decide", 0, 0, 1)),
    "judge and decide the rest": (REST, ("judge", 0, 0, 1), ("catch_up", 0, 0, 0)),
    "two rests": (HELD, ("decide_rest", 0, 0, 0), ("decide_rest", 1, 0, 1)),
    "correct twice": (JUDGED, ("correct", 0, 0, 1), ("correct", 0, 0, 2)),
    "sent twice": (JUDGED, ("again", 0, 0, 0), ("again", 0, 0, 0)),
    "two organizers": ([], ("leave", 0, 2, 0), ("leave", 1, 3, 0)),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", PAIRS)
def test_two_acts_at_once(name: str) -> None:
    before, *both = PAIRS[name]
    staged = stage.build()
    world = World(Campaign.objects.get(slug="full"), staged.clients)
    for act in before:
        world.do(*act)
        assert not checks.faults(world)

    world.at_once(*both)

    assert not checks.faults(world)
    ending.play(world)

"""Two acts of the machine at the same moment, in threads; then all that the machine checks."""

import logging
from collections.abc import Iterator

import pytest

from judging.models import Campaign
from tests.conftest import ON_POSTGRES
from tests.core.length import bounded
from tests.support.kept import Kept
from tests.support.machine import checks, cuts, ending, stage
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
FAILS: list[Act] = [*[("fail", 0, 0, 0), ("wait", 0, 0, 0)] * 3, ("sweep", 0, 0, 0)]
UNREAD: list[Act] = [*READING, *FAILS]
UNSEEN: list[Act] = [("draft", 0, 3, 0), *FAILS]
DRAWN: list[Act] = [("draft", 0, 0, 0), ("catch_up", 0, 0, 0), ("draw", 0, 0, 1), *OPEN[-2:]]
DONE: list[Act] = [*DRAWN, *[("claim", 0, 0, 0), ("judge", 0, 0, 1)] * 4, ("catch_up", 0, 0, 0)]
OUT: list[Act] = [*DONE, ("exclude", 0, 0, 0)]
INSTEAD: list[Act] = [*OUT, ("catch_up", 0, 0, 0), ("claim", 1, 0, 0)]
SETTLED: list[Act] = [*DONE, *[("adjudicate", 0, pick, 2) for pick in range(8)]]
ALONE: list[Act] = [("convene", 0, 1, 1), ("begin_talk", 0, 0, 0), ("answer_alone", 0, 0, 2)]
TALKS: list[Act] = [*ALONE, ("answer_alone", 1, 0, 1), ("discuss", 0, 0, 0)]
LAST_UPLOAD = 4
IN_THE_READING = 4
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
    "cancel and remove": (READING, ("cancel", 0, LAST_UPLOAD, 0), ("remove", 1, LAST_UPLOAD, 0)),
    "remove twice": (READING, ("remove", 0, LAST_UPLOAD, 0), ("remove", 1, LAST_UPLOAD, 0)),
    "remove a run twice": ([], ("remove", 0, 3, 0), ("remove", 1, 3, 0)),
    "read again and remove": (UNREAD, ("retry", 0, 0, 0), ("remove", 1, LAST_UPLOAD, 0)),
    "read again twice": (UNREAD, ("retry", 0, 0, 0), ("retry", 1, 0, 0)),
    "draft with a run and remove it": ([], ("draft", 0, 4, 0), ("remove", 1, 2, 0)),
    "discard twice": (DRAFTED, ("discard", 0, 0, 0), ("discard", 1, 0, 0)),
    "discard and change": (DRAFTED, ("discard", 0, 0, 0), ("change", 1, 0, 0)),
    "discard and preview again": (UNSEEN, ("retry", 0, 0, 0), ("discard", 1, 0, 0)),
    "work on a preview and discard": (DRAFTED[:1], ("work", 0, 0, 0), ("discard", 1, 0, 0)),
    "two drafts": ([], ("draft", 0, 0, 0), ("draft", 1, 1, 0)),
    "change twice": (DRAFTED, ("change", 0, 0, 0), ("change", 1, 0, 1)),
    "a member leaves twice": ([], ("leave", 0, 0, 0), ("leave", 1, 0, 0)),
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
    "exclude twice": (DONE, ("exclude", 0, 0, 0), ("exclude", 1, 0, 2)),
    "exclude and judge": (HELD, ("exclude", 0, 0, 0), ("judge", 0, 0, 1)),
    "exclude and correct": (JUDGED, ("exclude", 0, 0, 0), ("correct", 0, 0, 2)),
    "exclude and claim": (JUDGED, ("exclude", 0, 0, 0), ("claim", 0, 0, 0)),
    "exclude and recompute": (DONE[:-1], ("work", 0, 0, 0), ("exclude", 1, 0, 0)),
    "take back and recompute": (OUT, ("work", 0, 0, 0), ("take_back", 1, 0, 0)),
    "take back twice": (OUT, ("take_back", 0, 0, 0), ("take_back", 1, 0, 0)),
    "take back and judge instead": (INSTEAD, ("take_back", 0, 0, 0), ("judge", 0, 0, 0)),
    "take back and decide": (INSTEAD, ("take_back", 0, 0, 0), ("decide", 1, 0, 1)),
    "exclude and adjudicate": (DONE, ("exclude", 0, 0, 0), ("adjudicate", 1, 0, 2)),
    "adjudicate twice": (DONE, ("adjudicate", 0, 0, 2), ("adjudicate", 1, 0, 1)),
    "adjudicate and rule": (SETTLED, ("adjudicate", 0, 0, 1), ("rule", 1, 0, 1)),
    "rule and look at labels": (SETTLED, ("work", 0, 0, 0), ("rule", 1, 0, 1)),
    "answer and talk": (ALONE, ("answer_alone", 1, 0, 1), ("discuss", 0, 0, 0)),
    "answer twice": (ALONE, ("answer_alone", 1, 0, 1), ("answer_alone", 1, 0, 0)),
    "listen and talk": (ALONE, ("peek", 0, 0, 0), ("discuss", 1, 0, 0)),
    "revise twice": (TALKS, ("revise", 0, 0, 1), ("revise", 0, 0, 0)),
    "revise and end": (TALKS, ("revise", 0, 0, 1), ("end_talk", 0, 0, 0)),
    "remark twice": (TALKS, ("remark", 0, 0, 0), ("remark", 0, 0, 0)),
}
TO_THE_END = bounded([*PAIRS][:: 8 if ON_POSTGRES else 4], [*PAIRS])
"""After which the campaign is judged to its end, which takes longer than all else, and asks
PostgreSQL the same whatever came before."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def do(world: World, name: str, *numbers: int) -> None:
    """An act of the world; `fail` is work whose database goes away."""
    if name != "fail":
        world.do(name, *numbers)
        return
    world.do("work", *numbers, cuts.Cut(IN_THE_READING, cuts.failure, ends=True))


@pytest.fixture
def world(kept: Kept) -> World:
    staged = stage.build(kept)
    return World(Campaign.objects.get(slug="full"), staged.clients)


@pytest.mark.parametrize("name", PAIRS)
def test_two_acts_at_once(name: str, world: World) -> None:
    before, *both = PAIRS[name]
    for act in before:
        do(world, *act)
    assert not checks.faults(world)

    world.at_once(*both)

    assert not checks.faults(world)
    if name in TO_THE_END:
        ending.play(world)

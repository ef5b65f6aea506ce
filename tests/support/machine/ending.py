"""From any state to the end: what people would do who want every round complete."""

import io

from django.core.management import CommandError, call_command

from tests.support.machine import checks
from tests.support.machine.told import Fault
from tests.support.machine.world import World

TURNS = 12


def play(world: World) -> None:
    """Mends what failed, draws nothing new, judges all that was drawn, makes the reports.

    The numbers are held against a recompute from scratch when all work has come to rest, and once
    more in the end. Raises Fault where it does not come to an end.
    """
    _come_to_rest(world)
    _recomputed(world)
    for number in [n for n, each in world.seen.rounds.items() if each.state == "drafted"]:
        world.do("discard", 0, sorted(world.told.rounds).index(number), 0)
    if world.seen.is_drawn:
        _judge_all(world)
        for pick, number in enumerate(sorted(world.told.rounds)):
            if world.seen.rounds[number].sets:
                world.do("report", 0, pick, 0)
        _come_to_rest(world)
        _recomputed(world)
    if found := checks.final(world):
        raise Fault("\n".join(found))


def _come_to_rest(world: World) -> None:
    """All work is done; what a cut has made fail is tried again."""
    for _ in range(4):
        world.do("wait", 0, 0, 0)
        world.do("sweep", 0, 0, 0)
        world.do("catch_up", 0, 0, 0)
        for pick, job in enumerate(world.seen.given_up):
            if job.kind != "draw":
                world.do("retry", 0, pick, 0)
        if not world.seen.pending:
            return


def _recomputed(world: World) -> None:
    out = io.StringIO()
    try:
        call_command("recompute", world.campaign.slug, stdout=out)
    except CommandError as error:
        raise Fault(f"{error}\n{out.getvalue()}") from error


def _judge_all(world: World) -> None:
    """Assessors judge a little; what is left the organizer decides, as the pages offer it."""
    if world.seen.state != "open":
        world.do("open", 0, 0, 0)
    for person in range(1, 4):
        world.do("join", 0, person, 0)
    world.do("examine", 0, 0, 0)
    for _ in range(TURNS):
        for person in range(len(world.assessors())):
            _judge_one(world, person)
        world.do("wait", 0, 0, 0)
        world.do("sweep", 0, 0, 0)
        world.do("decide_rest", 0, 0, 0)
        world.do("catch_up", 0, 0, 0)
        while judged := [n for n, pair in enumerate(world.seen.unfinished) if pair.judged]:
            world.do("decide", 0, judged[0], 0)
        world.do("catch_up", 0, 0, 0)
        if all(each.state in ("complete", "drafted") for each in world.seen.rounds.values()):
            return
    raise Fault(f"judged for ever: {[(n, r.state) for n, r in world.seen.rounds.items()]}")


def _judge_one(world: World, person: int) -> None:
    world.do("claim", person, 0, 0)
    name = world.assessors()[person]
    held = [row for row in world.seen.assignments if row.state == "leased"]
    if mine := [n for n, row in enumerate(held) if row.assessor.username == name]:
        world.do("judge", person, mine[0], 1)

"""Organizers, assessors and workers in any order, cut at any place, held against a model.

`EVALSITE_DRILLS=long` plays for as long as `EVALSITE_DRILL_SECONDS` says (ten minutes).
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from judging.models import Campaign
from tests.conftest import ON_POSTGRES
from tests.core.length import LONG
from tests.support.kept import Kept
from tests.support.machine import checks, cuts, ending, stage
from tests.support.machine.cuts import Cut
from tests.support.machine.told import Fault
from tests.support.machine.world import ASSESSORS, ORGANIZERS, WORKERS, World

SHORT = 4 if ON_POSTGRES else 8
"""Examples. What is compared are rows with a model; the statements are the same in any four."""
SECONDS = float(os.environ.get("EVALSITE_DRILL_SECONDS", "600"))
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.slow,
    pytest.mark.timeout(600 + 3 * LONG * SECONDS),
]
SMALL = st.integers(0, 5)
ANY = st.integers(0, 26)
PLACES = st.integers(0, 20) | st.integers(0, 80)


@dataclass(frozen=True)
class Blow:
    """What comes in the middle of an act: somebody else's act, and then perhaps the end.

    A value, so that it can be printed and made smaller.
    """

    at: int = 0
    act: tuple[str, int, int, int] | None = None
    end: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"Blow({self.at}, {self.act}, {self.end.__name__ if self.end else None})"

    @property
    def kind(self) -> str:
        named = "meanwhile" if self.act else "", self.end.__name__ if self.end else ""
        return " and ".join(filter(None, named))

    def falls(self, world: World) -> Cut:
        if self.act is None and self.end is None:
            return cuts.nothing()
        return Cut(
            self.at, lambda: self._fall(world), between=self.act is not None, ends=bool(self.end)
        )

    def _fall(self, world: World) -> None:
        if self.act is not None:
            world.meanwhile(*self.act)
        if self.end is not None:
            self.end()


NONE = Blow()
ACTS = st.tuples(st.sampled_from((*ORGANIZERS, *ASSESSORS, *WORKERS)), SMALL, SMALL, SMALL)
ENDS = st.sampled_from([cuts.death, cuts.failure])
BLOWS = st.one_of(
    st.just(NONE),
    st.just(NONE),
    st.just(NONE),
    st.builds(Blow, PLACES, st.none(), ENDS),
    st.builds(Blow, PLACES, ACTS, st.none() | ENDS),
)


class Machine(RuleBasedStateMachine):
    """One example: a campaign from somewhere in its life to its end."""

    stage: ClassVar[stage.Stage]
    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.good = True
        self.left = ExitStack()
        self.left.enter_context(stage.played())
        self.world = self._of("full")

    def _of(self, slug: str) -> World:
        return World(Campaign.objects.get(slug=slug), self.stage.clients)

    @initialize(slug=st.sampled_from(["full", "full", "full", "empty"]), scene=SMALL, plan=SMALL)
    def begin(self, slug: str, scene: int, plan: int) -> None:
        self.world = self._of(slug)
        acts = [("draft", 0, plan, 0), ("catch_up", 0, 0, 0), ("draw", 0, 0, 1)]
        acts += [("catch_up", 0, 0, 0), ("open", 0, 0, 0)]
        if slug == "full":
            for act in acts[: [0, 2, 3, 5, 5, 5][scene]]:
                self.play(*act, NONE)

    def play(self, name: str, who: int, pick: int, choice: int, blow: Blow) -> None:
        self.good = False
        cut = blow.falls(self.world)
        self.world.do(name, who, pick, choice, cut)
        self.counts[name] += 1
        self.counts["acts"] += 1
        if cut.fell:
            self.counts[f"cut by {blow.kind}"] += 1
        if found := checks.faults(self.world):
            raise Fault("\n".join(found))
        self.good = True

    @rule(act=ANY, who=SMALL, pick=SMALL, choice=SMALL, blow=BLOWS)
    def organize(self, act: int, who: int, pick: int, choice: int, blow: Blow) -> None:
        self.one_of(ORGANIZERS, act, who, pick, choice, blow)

    @precondition(lambda self: self.possible(ASSESSORS))
    @rule(act=ANY, who=SMALL, pick=SMALL, choice=SMALL, blow=BLOWS)
    def assess(self, act: int, who: int, pick: int, choice: int, blow: Blow) -> None:
        self.one_of(ASSESSORS, act, who, pick, choice, blow)

    @rule(act=ANY, who=SMALL, pick=SMALL, blow=BLOWS)
    def toil(self, act: int, who: int, pick: int, blow: Blow) -> None:
        self.one_of(WORKERS, act, who, pick, 0, blow)

    def possible(self, group: Sequence[str]) -> list[str]:
        return [name for name in group if self.world.may(name)]

    def one_of(
        self, group: Sequence[str], act: int, who: int, pick: int, choice: int, blow: Blow
    ) -> None:
        if there := self.possible(group):
            self.play(there[act % len(there)], who, pick, choice, blow)

    @precondition(lambda self: self.world.may("claim"))
    @rule(who=SMALL, times=st.integers(1, 6), choice=SMALL)
    def judge_some(self, who: int, times: int, choice: int) -> None:
        for turn in range(times):
            self.play("claim", who, 0, 0, NONE)
            self.play("judge", who, turn, choice + turn, NONE)

    @precondition(lambda self: self.world.seen.given_pairs)
    @rule(who=SMALL, pick=SMALL, choice=SMALL, others=st.integers(0, 3), blow=BLOWS, later=BLOWS)
    def exclude_for_a_while(
        self, who: int, pick: int, choice: int, others: int, blow: Blow, later: Blow
    ) -> None:
        """Somebody's work goes out, others judge in its place, and it comes back."""
        self.play("exclude", who, pick, choice, blow)
        for turn in range(others):
            self.play("claim", pick + turn, 0, 0, NONE)
            self.play("judge", who, turn, choice, NONE)
        if self.world.may("take_back"):
            self.play("take_back", who, len(self.world.seen.exclusions) - 1, 0, later)

    @precondition(lambda self: self.world.may("work"))
    @rule(pick=SMALL, blow=st.builds(Blow, PLACES, st.none() | ACTS, ENDS))
    def fail_for_good(self, pick: int, blow: Blow) -> None:
        """Three workers end over one job, or three tries of it fail."""
        for _ in range(3):
            self.play("work", 0, pick, 0, blow)
            self.play("wait", 0, 0, 0, NONE)
        self.play("sweep", 0, 0, 0, NONE)

    def teardown(self) -> None:
        try:
            if self.good:
                self.good = False
                ending.play(self.world)
                self.counts["examples"] += 1
        finally:
            self.left.close()


def run(examples: int, steps: int, **values: Any) -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            **values,
        ),
    )


@pytest.fixture(autouse=True)
def _staged(kept: Kept) -> Iterator[None]:
    """Every cut is logged by the product, as it should be; here that would hide what failed."""
    Machine.stage = stage.build(kept)
    Machine.counts.clear()
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_whatever_people_and_workers_do_nothing_is_lost_and_nothing_ends_in_a_hole() -> None:
    if not LONG:
        run(SHORT, 25, derandomize=True)
        return
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        run(10, 50)
    print(f"\n{dict(Machine.counts)}")

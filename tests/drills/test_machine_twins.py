"""The machine catches mistakes: the product with one of them in it must not come through.

The mistakes are the product's, and what catches them compares rows with a model; the database has
no part in that, so one of the two is enough. The machine itself is run on both.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from django.db.models import F, Q
from django.db.models.functions import Now
from hypothesis import Phase

from estimation import plans
from estimation.models import Round
from estimation.services import leftovers, rounds
from judging.models import Assignment, Campaign, Job, Judgment, Pair, User
from judging.services import assignments, audit, exclusions, jobs, judgments, members
from tests.drills.test_machine import NONE, Machine, _staged, run  # noqa: F401  (a fixture)
from tests.support.machine.told import Fault

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]
Patch = pytest.MonkeyPatch


def retry_that_forgets(patch: Patch) -> None:
    """Failed work that is tried again looks fine, and nobody does it."""

    def retry(job: Job) -> Job:
        Job.objects.filter(pk=job.pk).update(
            state=Job.State.DONE, requested=F("requested") + 1, error=""
        )
        return Job.objects.get(pk=job.pk)

    patch.setattr(jobs, "retry", retry)


def draw_that_is_not_given_back(patch: Patch) -> None:
    """A draw that failed for good stays under way."""
    patch.delitem(jobs._give_up, "draw")


def file_that_is_not_given_up(patch: Patch) -> None:
    """A file whose reader died three times is being read for ever."""
    patch.delitem(jobs._give_up, "upload")


def discard_during_a_draw(patch: Patch) -> None:
    """A round is discarded also while it is drawn."""

    def discard(*, row: Round, by: User) -> None:
        if not Round.objects.filter(pk=row.pk, state__in=Round.NOT_DRAWN).exists():
            raise rounds._frozen()
        leftovers.discard(row)
        audit.record("discard round", by=by, campaign=row.campaign_id, target=row)
        Round.objects.filter(pk=row.pk).delete()

    patch.setattr(rounds, "discard", discard)


def change_during_a_draw(patch: Patch) -> None:
    """A round is changed also while it is drawn."""

    def amend(*, row: Round, by: User, chosen: Mapping[str, Any]) -> None:
        values = rounds._checked(row.campaign, replace(plans.plan_of(row), **chosen))
        jobs.request("preview", row.pk, campaign=row.campaign_id)
        changed = Round.objects.filter(pk=row.pk, state__in=Round.NOT_DRAWN)
        if not changed.update(preview={}, **values):
            raise rounds._frozen()
        audit.record("change round", by=by, campaign=row.campaign_id, target=row)
        row.refresh_from_db()

    patch.setattr(rounds, "amend", amend)


def claim_that_counts_no_leases(patch: Patch) -> None:
    """Judgments are counted, pairs in somebody's hands are not."""

    def take(place: Any, campaign: Campaign, by: User) -> Assignment | None:
        if not Pair.objects.filter(pk=place.pair, judged__lt=place.labels).exists():
            return None
        return assignments._lease(place.pair, campaign, by)

    patch.setattr(assignments, "_take", take)
    free = lambda batch, by: assignments.BatchPair.objects.filter(  # noqa: E731
        ~assignments.Exists(assignments._own(by).exclude(state=Assignment.State.LAPSED)),
        Q(pair__decided=False, pair__judged__lt=F("labels")), batch_id=batch,
    )  # fmt: skip
    patch.setattr(assignments, "_free_places", free)


def place_that_is_not_given_back(patch: Patch) -> None:
    """A lease that has run out keeps its place."""

    def release(assignment: int, _pair: int) -> int:
        lapsed = Assignment.objects.filter(pk=assignment, lease_until__lt=Now())
        return lapsed.update(state=Assignment.State.LAPSED)

    patch.setattr(assignments, "_release", release)


def yes_before_it_is_written(patch: Patch) -> None:
    """A judgment is acknowledged that was never stored."""

    def record(*, assignment: Assignment, by: User, saying: judgments.Saying) -> judgments.Recorded:
        said = Judgment(
            assignment=assignment, assessor=by, grade=saying.grade, max_grade=3, key=saying.key
        )
        return judgments.Recorded(said, created=True)

    patch.setattr(judgments, "record", record)


def last_organizer_may_leave(patch: Patch) -> None:
    patch.setattr(members, "_refuse_last_organizer", lambda _membership: None)


def exclusion_that_keeps_places(patch: Patch) -> None:
    """The work is set aside, and its pairs still count it."""

    def set_aside(theirs: Any) -> tuple[int, int]:
        state = Assignment.State.EXCLUDED
        return theirs.update(state=state, set_aside=F("revision"), revision=0), 0

    patch.setattr(exclusions, "_set_aside", set_aside)


def work_that_is_forgotten_when_it_comes_back(patch: Patch) -> None:
    """It counts again, and the pairs do not know."""

    def put_back(theirs: Any) -> int:
        aside = theirs.filter(state=Assignment.State.EXCLUDED)
        aside.filter(set_aside=0).update(state=Assignment.State.LAPSED)
        back = {"state": Assignment.State.JUDGED, "revision": F("set_aside"), "set_aside": 0}
        return aside.filter(set_aside__gte=1).update(**back)

    patch.setattr(exclusions, "_put_back", put_back)


ROUND = ("draft", "draw", "work", "catch_up")
JUDGING = ("claim", "judge", "wait", "sweep", "leave")
TWINS: list[tuple[Callable[[Patch], None], tuple[str, ...]]] = [
    (retry_that_forgets, ("upload", "draft", "retry")),
    (draw_that_is_not_given_back, ("draft", "draw")),
    (file_that_is_not_given_up, ("upload", "work")),
    (discard_during_a_draw, (*ROUND, "discard")),
    (change_during_a_draw, (*ROUND, "change")),
    (claim_that_counts_no_leases, JUDGING),
    (place_that_is_not_given_back, JUDGING),
    (yes_before_it_is_written, JUDGING),
    (last_organizer_may_leave, ("leave", "join")),
]
"""Mistakes, and the acts that meet them: a machine that does all would look for longer."""


@pytest.mark.parametrize(("twin", "acts"), TWINS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_mistake_is_caught(
    twin: Callable[[Patch], None], acts: tuple[str, ...], monkeypatch: Patch
) -> None:
    twin(monkeypatch)
    monkeypatch.setattr(Machine, "repertoire", frozenset(acts))

    with pytest.raises(AssertionError):
        run(150, 12, derandomize=True, phases=[Phase.generate])


EXCLUSIONS = [None, exclusion_that_keeps_places, work_that_is_forgotten_when_it_comes_back]


@pytest.mark.parametrize("twin", EXCLUSIONS, ids=lambda twin: getattr(twin, "__name__", "none"))
def test_a_mistake_about_exclusions_is_caught(
    twin: Callable[[Patch], None] | None, monkeypatch: Patch
) -> None:
    """By the shortest way, as few examples judge, exclude and take back the same work."""
    if twin:
        twin(monkeypatch)
    machine = Machine()
    try:
        machine.begin(slug="full", scene=5, plan=0)
        machine.judge_some(who=0, times=3, choice=1)
        with pytest.raises(Fault) if twin else nullcontext():
            machine.exclude_for_a_while(who=0, pick=0, choice=0, others=2, blow=NONE, later=NONE)
        assert len(machine.world.seen.exclusions) == 1
    finally:
        machine.left.close()

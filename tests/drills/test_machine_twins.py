"""The machine catches mistakes: the product with one of them in it must not come through.

The mistakes are the product's, and what catches them compares rows with a model; the database has
no part in that, so one of the two is enough. The machine itself is run on both.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now
from django.utils import timezone

from estimation import plans
from estimation.models import Round
from estimation.services import leftovers, rounds
from judging import norming as norming_told
from judging.models import (
    Assignment,
    BatchPair,
    Campaign,
    GoldPair,
    Job,
    Judgment,
    NormingAnswer,
    NormingPair,
    NormingSession,
    Pair,
    SeniorGrade,
    Upload,
    User,
)
from judging.services import (
    assignments,
    audit,
    campaigns,
    desk,
    entering,
    exclusions,
    gold,
    jobs,
    judgments,
    members,
    norming,
    seniors,
    taking_in,
)
from tests.drills.test_machine import NONE, Blow, Machine, _staged  # noqa: F401  (a fixture)
from tests.support.machine import ending
from tests.support.machine.cuts import death, failure
from tests.support.machine.told import Fault

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]
Patch = pytest.MonkeyPatch
Mistake = Callable[[Patch], None]
Way = Callable[[Machine], None]


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
        return assignments._lease(place, campaign, by)

    patch.setattr(assignments, "_take", take)

    def free(assessor: Any, *, gold: bool) -> Any:
        used = Assignment.objects.filter(pair=OuterRef("pair"), assessor=assessor)
        return BatchPair.objects.filter(
            ~Exists(used.exclude(state=Assignment.State.LAPSED)),
            pair__decided=False,
            pair__judged__lt=F("labels"),
        )

    patch.setattr(assignments, "free_places", free)
    anew = assignments._without_and_with_gold  # what is compiled already knows nothing of `free`
    patch.setattr(assignments, "_TOPICS", anew(assignments._topics_with_places))
    patch.setattr(assignments, "_PLACES", anew(assignments._places_of_topic))


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
            assignment=assignment, assessor=by, grade=saying.grade, max_grade=3, key=saying.key,
            created=timezone.now(),
        )  # fmt: skip
        return judgments.Recorded(said, created=True)

    patch.setattr(judgments, "record", record)


def correction_that_labels_do_not_hear_of(patch: Patch) -> None:
    """What was said is stored, and estimates go on with what was said before."""
    append = judgments._append

    def appended(assignment: Assignment, by: User, saying: judgments.Saying, **how: Any) -> Any:
        found = append(assignment, by, saying, **how)
        if how["action"] == "correct":
            first = assignment.judgments.get(revision=1).grade
            Assignment.objects.filter(pk=assignment.pk).update(grade=first)
        return found

    patch.setattr(judgments, "_append", appended)


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


def rule_that_leaves_senior_grades(patch: Patch) -> None:
    """The campaign says that they count, and those that are there do not."""
    patch.setattr(campaigns, "_count_seniors", lambda *_: None)


def talk_that_spoils_what_is_said_after(patch: Patch) -> None:
    """Who hears what others said may still say it as if alone."""
    patch.setattr(norming, "_refuse_outside", lambda *_: None)


def talk_that_is_heard_before_it_begins(patch: Patch) -> None:
    patch.setattr(norming_told, "refuse_blind", lambda _: None)


def revision_that_is_not_written(patch: Patch) -> None:
    """Who talked is told that they stand by another grade."""

    def revise(*, session: NormingSession, by: User, pair: int, grade: int) -> NormingAnswer:
        said = NormingAnswer.objects.get(pair=pair, person__user=by)
        said.revised = grade
        return said

    patch.setattr(norming, "revise", revise)


def senior_grade_that_is_not_written(patch: Patch) -> None:
    """An organizer changes their mind, and the grade before stays."""
    give = seniors.give

    def first(*, pair: Pair, by: User, grade: int, reason: str) -> SeniorGrade:
        there = SeniorGrade.objects.filter(pair=pair, ended=None).first()
        return there or give(pair=pair, by=by, grade=grade, reason=reason)

    patch.setattr(seniors, "give", first)


def gold_that_people_are_told_of(patch: Patch) -> None:
    patch.setattr(gold, "refuse_in_use", lambda *_: None)


def dismissal_of_what_is_in_use(patch: Patch) -> None:
    """What was taken in goes with what was only checked."""
    usual = taking_in.dismiss

    def dismiss(*, campaign: Campaign, by: User, drop: str) -> int:
        gone = usual(campaign=campaign, by=by, drop=drop)
        return gone + campaign.uploads.filter(drop=drop).delete()[0]

    patch.setattr(taking_in, "dismiss", dismiss)


def taking_in_that_only_checks_again(patch: Patch) -> None:
    """It is read once more, and left as it was."""
    usual = taking_in._made_due

    def made_due(rows: Any, **asked: Any) -> int:
        checked = list(rows.filter(state=Upload.State.CHECKED).values_list("pk", flat=True))
        count = usual(rows, **asked)
        Upload.objects.filter(pk__in=checked).update(check_only=True)
        return count

    patch.setattr(taking_in, "_made_due", made_due)


def number_that_nobody_counts(patch: Patch) -> None:
    """Guests of a crowd link are handed pairs for ever."""
    for each in (assignments, desk, judgments):
        patch.setattr(each, "has_room", lambda *_, **__: True)
    patch.setattr(assignments, "is_full", lambda _: False)
    patch.setattr(entering, "note_if_done", lambda _: None)


def after_a_retry(machine: Machine) -> None:
    machine.begin(slug="full", scene=0, plan=0)
    machine.play("draft", 0, 0, 0, NONE)
    machine.fail_for_good(pick=0, blow=Blow(4, None, failure))
    machine.play("retry", 0, 0, 0, NONE)
    machine.play("catch_up", 0, 0, 0, NONE)


def after_draws_that_fail(machine: Machine) -> None:
    machine.begin(slug="full", scene=2, plan=0)
    machine.fail_for_good(pick=0, blow=Blow(10, None, failure))


def after_readers_that_die(machine: Machine) -> None:
    machine.begin(slug="full", scene=0, plan=0)
    machine.play("upload", 0, 0, 0, NONE)
    machine.fail_for_good(pick=0, blow=Blow(4, None, death))


def amid_a_draw(act: str) -> Way:
    """Asked for, and taken up by nobody yet."""

    def play(machine: Machine) -> None:
        machine.begin(slug="full", scene=2, plan=0)
        machine.play(act, 0, 0, 0, NONE)

    return play


def around_the_last_place(machine: Machine) -> None:
    """Everybody claims the same few pairs, and leases run out."""
    machine.begin(slug="full", scene=5, plan=0)
    for turn in range(6):
        machine.play("claim", turn, 0, 0, NONE)
    machine.play("wait", 0, 0, 0, NONE)
    machine.play("sweep", 0, 0, 0, NONE)
    for turn in range(6):
        machine.play("claim", turn, 0, 0, NONE)
        machine.play("judge", turn, 0, turn, NONE)


def one_judgment(machine: Machine) -> None:
    machine.begin(slug="full", scene=5, plan=0)
    machine.judge_some(who=0, times=1, choice=1)


def one_judgment_and_another(machine: Machine) -> None:
    machine.begin(slug="full", scene=5, plan=0)
    machine.judge_some(who=0, times=1, choice=1)
    machine.play("correct", 0, 0, 0, NONE)
    assert [row.grade for row in machine.world.seen.assignments if row.revision == 2] == [0]


def all_leave(machine: Machine) -> None:
    machine.begin(slug="full", scene=0, plan=0)
    for turn in range(8):
        machine.play("leave", turn, turn // 2, 0, NONE)


def exclusion_for_a_while(machine: Machine) -> None:
    machine.begin(slug="full", scene=5, plan=0)
    machine.judge_some(who=0, times=3, choice=1)
    machine.exclude_for_a_while(who=0, pick=0, choice=0, others=2, blow=NONE, later=NONE)
    assert len(machine.world.seen.exclusions) == 1


def report_after_an_exclusion(machine: Machine) -> None:
    """Estimates are there, and rest on a batch that lacks labels now."""
    machine.begin(slug="full", scene=5, plan=0)
    machine.judge_some(who=0, times=4, choice=1)
    for act in (("catch_up", 0, 0, 0), ("exclude", 0, 0, 0), ("report", 0, 0, 0)):
        machine.play(*act, NONE)
    assert machine.world.seen.rounds[1].sets
    assert machine.world.seen.rounds[1].used is None


def a_rule_after_senior_grades(machine: Machine) -> None:
    machine.begin(slug="full", scene=5, plan=0)
    machine.judge_some(who=0, times=3, choice=1)
    for pick in range(len(machine.world.seen.pairs)):
        machine.play("adjudicate", 0, pick, 2, NONE)
    assert SeniorGrade.objects.filter(ended=None, counts=False).exists()
    machine.play("rule", 0, 0, 1, NONE)


def a_talk_begins_before_all_have_answered(machine: Machine) -> None:
    machine.begin(slug="full", scene=0, plan=0)
    for act in (("convene", 0, 1, 1), ("begin_talk", 0, 0, 0), ("answer_alone", 0, 0, 2)):
        machine.play(*act, NONE)
    machine.play("discuss", 0, 0, 0, NONE)
    assert NormingAnswer.objects.exists()
    for turn in range(4):
        machine.play("answer_alone", turn, turn, 1, NONE)


def somebody_listens_to_who_judges_alone(machine: Machine) -> None:
    machine.begin(slug="full", scene=0, plan=0)
    for act in (("convene", 0, 1, 1), ("begin_talk", 0, 0, 0), ("answer_alone", 0, 0, 2)):
        machine.play(*act, NONE)
    assert NormingAnswer.objects.exists()
    machine.play("peek", 0, 0, 0, NONE)


def a_grade_changes_after_the_talk(machine: Machine) -> None:
    a_talk_begins_before_all_have_answered(machine)
    there = {(row.person.user.username, row.pair_id) for row in NormingAnswer.objects.all()}
    assert there
    for turn in range(4):
        machine.play("revise", turn, turn, 1, NONE)
    assert machine.world.revised.keys() & there


def a_senior_grade_is_changed(machine: Machine) -> None:
    machine.begin(slug="full", scene=5, plan=0)
    machine.judge_some(who=0, times=3, choice=1)
    for grade in (2, 1):
        for pick in range(len(machine.world.seen.pairs)):
            machine.play("adjudicate", 0, pick, grade, NONE)
    assert 1 in machine.world.settled.values()


def gold_is_named_in_a_talk(machine: Machine) -> None:
    machine.begin(slug="full", scene=0, plan=0)
    machine.play("gold", 0, 0, 2, NONE)
    machine.play("convene", 0, 0, 1, NONE)
    machine.play("gold", 0, 0, 1, NONE)
    assert GoldPair.objects.count() == 2 - NormingPair.objects.exists()


def guest_without_end(machine: Machine) -> None:
    """A guest judges as long as they are handed something."""
    machine.begin(slug="full", scene=5, plan=0)
    machine.play("enter", 0, 0, 0, NONE)
    names = machine.world.assessors()
    (guest,) = [n for n, name in enumerate(names) if name.startswith("guest-")]
    for _ in range(4):
        machine.play("claim", guest, 0, 0, NONE)
        if machine.world.may("judge"):
            machine.play("judge", guest, 0, 1, NONE)
    assert machine.world.seen.done == {names[guest]}


def files_that_were_checked(machine: Machine) -> None:
    """Two at once, of which one is taken in; the other is dismissed."""
    machine.begin(slug="full", scene=0, plan=0)
    machine.play("upload", 0, 7, 4, NONE)
    machine.play("catch_up", 0, 0, 0, NONE)
    first = len(machine.world.told.uploads) - 2
    machine.play("take_in", 0, first, 0, NONE)
    machine.play("catch_up", 0, 0, 0, NONE)
    pk = sorted(machine.world.told.uploads)[first]
    if machine.world.seen.uploads[pk].state != "accepted":
        raise Fault(f"upload {pk} was to be taken in")
    machine.play("take_in", 0, first, 0, NONE)
    machine.play("dismiss", 0, 0, 0, NONE)
    machine.play("take_in_all", 0, 0, 0, NONE)
    assert len(machine.world.told.uploads) == first + 1


WAYS: dict[Way, tuple[Mistake, ...]] = {
    after_a_retry: (retry_that_forgets,),
    after_draws_that_fail: (draw_that_is_not_given_back,),
    after_readers_that_die: (file_that_is_not_given_up,),
    amid_a_draw("discard"): (discard_during_a_draw,),
    amid_a_draw("change"): (change_during_a_draw,),
    around_the_last_place: (claim_that_counts_no_leases, place_that_is_not_given_back),
    one_judgment: (yes_before_it_is_written,),
    one_judgment_and_another: (correction_that_labels_do_not_hear_of,),
    all_leave: (last_organizer_may_leave,),
    a_rule_after_senior_grades: (rule_that_leaves_senior_grades,),
    a_talk_begins_before_all_have_answered: (talk_that_spoils_what_is_said_after,),
    somebody_listens_to_who_judges_alone: (talk_that_is_heard_before_it_begins,),
    a_grade_changes_after_the_talk: (revision_that_is_not_written,),
    a_senior_grade_is_changed: (senior_grade_that_is_not_written,),
    gold_is_named_in_a_talk: (gold_that_people_are_told_of,),
    guest_without_end: (number_that_nobody_counts,),
    files_that_were_checked: (dismissal_of_what_is_in_use, taking_in_that_only_checks_again),
    report_after_an_exclusion: (),
    exclusion_for_a_while: (
        exclusion_that_keeps_places,
        work_that_is_forgotten_when_it_comes_back,
    ),
}
"""The shortest ways to mistakes: by chance, a machine that does everything looks for minutes."""


def walked(way: Way) -> None:
    """To the end of the campaign, with all that is checked on the way."""
    machine = Machine()
    try:
        way(machine)
        ending.play(machine.world)
    finally:
        machine.left.close()


@pytest.mark.parametrize(
    ("way", "twin"),
    [(way, twin) for way, twins in WAYS.items() for twin in twins],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_mistake_is_caught(way: Way, twin: Mistake, monkeypatch: Patch) -> None:
    twin(monkeypatch)
    with pytest.raises(Fault):
        walked(way)


@pytest.mark.parametrize("way", WAYS, ids=lambda value: getattr(value, "__name__", ""))
def test_without_a_mistake_there_is_nothing_to_catch(way: Way) -> None:
    walked(way)

"""Estimates after work is excluded are those of a campaign in which the person never judged."""

import hashlib
from collections.abc import Callable

import pytest
from django.test import Client

from estimation import receivers, selectors
from estimation.models import EstimateSet, Round
from estimation.reopened import FreedBatch, JudgedAgain
from estimation.services import estimates, pausing, stopping
from estimation.situation import Situation
from judging.models import Batch, Campaign, Exclusion, Pair, User
from judging.selectors import current_judgments
from judging.services import assignments, batches, campaigns, exclusions, jobs, judgments
from judging.signals import labels_counted_anew
from tests.core.length import bounded
from tests.support import evaluation, factories, rest
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

METHODS = ["poisson", "iid", "adaptive", "priority"]


def grade_of(user: User, topic: str, docno: str) -> int:
    """What this person says of this document, in whatever order they come by it."""
    return hashlib.sha256(f"{user.username}/{topic}/{docno}".encode()).digest()[0] % 4


def judge_by(made: Campaign, *names: str, most: int = 10_000) -> int:
    """These people judge by turns what they are handed, as long as there is something."""
    made.refresh_from_db()
    people = list(User.objects.filter(username__in=names).order_by("username"))
    count, idle = 0, 0
    while idle < len(people) and count < most:
        by = people[(count + idle) % len(people)]
        held = assignments.claim_next(campaign=made, by=by)
        if held is None:
            idle += 1
            continue
        idle, pair = 0, held.pair
        saying = judgments.Saying(
            grade_of(by, pair.topic.topic_id, pair.docno), f"{made.pk}-{held.pk}"
        )
        judgments.record(assignment=held, by=by, saying=saying)
        count += 1
    return count


def judge_out(made: Campaign, *names: str) -> None:
    """Until nothing is left, also of what is planned meanwhile."""
    while judge_by(made, *names):
        factories.run_due_jobs()
    factories.run_due_jobs()


def exclude_alone(made: Campaign, name: str, ground: str = "time") -> Exclusion:
    """Nothing that is due after it is done."""
    return exclusions.exclude(
        campaign=made,
        assessor=User.objects.get(username=name),
        by=made.created_by,
        ground=ground,
        reason="half a second each",
    )


def exclude(made: Campaign, name: str, ground: str = "time") -> Exclusion:
    row = exclude_alone(made, name, ground)
    factories.run_due_jobs()
    return row


def take_back(row: Exclusion) -> None:
    exclusions.take_back(exclusion=row, by=row.decided_by, reason="a mistake")
    factories.run_due_jobs()


def latest(row: Round) -> EstimateSet:
    found = selectors.latest_estimates(row)
    assert found is not None
    return found


def values(shown: EstimateSet) -> dict[tuple[str, str], tuple[float, ...]]:
    rows = shown.estimates.filter(primary=True).select_related("run")
    return {(r.run.tag, r.measure): (r.value, r.se, r.low, r.high) for r in rows}


@pytest.mark.slow
@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.on_both
def test_all_is_as_if_the_person_had_never_judged(campaign: Campaign, labels: int) -> None:
    row = evaluation.drawn(campaign, labels=labels, extra_share=0.0)
    factories.assessors(campaign, "mallory")
    judge_out(campaign, "anna", "ben", "mallory")
    before = latest(row)
    if labels == 1:
        factories.assessors(campaign, "cara")
    exclude(campaign, "mallory")
    judge_out(campaign, "anna", "ben")

    other = evaluation.with_material(slug="never")
    never = evaluation.drawn(other, labels=labels, extra_share=0.0)
    factories.assessors(other, "anna", "ben")
    by_hand(other, {(r.pair, r.assessor) for r in said(campaign)})
    factories.run_due_jobs()

    found, expected = values(latest(row)), values(latest(never))
    assert set(found) == set(expected)
    for key, numbers in expected.items():
        assert found[key] == pytest.approx(numbers, rel=1e-12, abs=1e-12), key
    assert values(before) != found
    assert latest(row).batches == latest(never).batches == before.batches


class Said:
    def __init__(self, topic: str, docno: str, assessor: str) -> None:
        self.pair, self.assessor = (topic, docno), assessor


def said(made: Campaign) -> list[Said]:
    rows = current_judgments().filter(assignment__pair__campaign=made)
    columns = ("assignment__pair__topic__topic_id", "assignment__pair__docno", "assessor__username")
    return [Said(*each) for each in rows.values_list(*columns)]


def by_hand(made: Campaign, labels: set[tuple[tuple[str, str], str]]) -> None:
    """These people judge these pairs, and nobody any other."""
    made.refresh_from_db()
    while batches.open_next(made.pk):
        pass
    pairs = {
        (pair.topic.topic_id, pair.docno): pair
        for pair in made.pairs.select_related("topic", "campaign")
    }
    people = {user.username: user for user in User.objects.all()}
    for pair, name in sorted(labels):
        held = assignments.claim(pair=pairs[pair], by=people[name])
        assert held is not None
        held.pair.campaign = made
        saying = judgments.Saying(grade_of(people[name], *pair), f"{made.pk}-{held.pk}")
        judgments.record(assignment=held, by=people[name], saying=saying)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS[:: bounded(2, 1)])
def test_taking_back_brings_the_same_digest(campaign: Campaign, method: str) -> None:
    row = evaluation.drawn(campaign, method=method)
    judge_out(campaign, "anna", "ben")
    before = latest(row)
    row.refresh_from_db()
    state = row.state
    taken = exclude(campaign, "ben")
    now = selectors.latest_estimates(row)
    assert now is None or now.batches < before.batches
    row.refresh_from_db()
    assert row.state == Round.State.JUDGING != state
    take_back(taken)
    row.refresh_from_db()
    assert row.state == state
    assert (latest(row).digest, latest(row).label_digest) == (before.digest, before.label_digest)


@pytest.mark.slow
def test_numbers_of_batches_that_lack_labels_are_not_told(campaign: Campaign) -> None:
    """A recompute that finds no complete batch must not leave the old numbers standing."""
    row = evaluation.drawn(campaign, extra_share=0.0)
    judge_out(campaign, "anna", "ben")
    assert latest(row).batches == 3
    exclude(campaign, "ben")
    assert row.estimate_sets.count() > 0
    assert selectors.complete_batches(row) == 0
    assert selectors.latest_estimates(row) is None
    assert estimates.from_scratch(row) is None


def excluded_while_it_is_computed(row: Round, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recompute without news has gathered its labels when work is excluded."""
    gather, left = estimates.gather, [row.campaign]

    def gathered(asked: Round, job: jobs.Running | None = None) -> estimates.Inputs:
        found = gather(asked, job)
        if left:
            exclude_alone(left.pop(), "ben")
        return found

    monkeypatch.setattr(estimates, "gather", gathered)
    jobs.request("recompute", row.pk, campaign=row.campaign)
    factories.run_due_jobs()
    row.refresh_from_db()


@pytest.mark.slow
@pytest.mark.parametrize("news", [False, True])
def test_work_that_is_excluded_while_numbers_are_computed_lets_the_round_go_on(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, news: bool
) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    judge_out(campaign, "anna", "ben")
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    if news:
        row.estimate_sets.update(label_digest="others")
    before = row.estimate_sets.count()
    excluded_while_it_is_computed(row, monkeypatch)
    assert row.state == Round.State.JUDGING
    assert row.estimate_sets.count() == before, "numbers of what does not count any more"
    assert Situation(row.campaign).progress.again is not None  # type: ignore[union-attr]
    judge_out(campaign, "anna")
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE


@pytest.mark.slow
def test_a_twin_that_goes_by_what_was_gathered_is_caught(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    judge_out(campaign, "anna", "ben")
    monkeypatch.setattr(estimates, "_is_overtaken", lambda *_: False)
    excluded_while_it_is_computed(row, monkeypatch)
    assert row.state == Round.State.COMPLETE
    assert selectors.complete_batches(row) == 0


@pytest.mark.slow
@pytest.mark.parametrize("paused", [False, True])
def test_a_round_that_ends_while_work_is_excluded_keeps_its_batches(
    campaign: Campaign, paused: bool
) -> None:
    """Whatever comes first, the exclusion or the end."""
    row = evaluation.drawn(campaign, budget=90, batch_size=15, extra_share=0.0)
    while judge_by(campaign, "anna", "ben", most=5) and selectors.complete_batches(row) < 3:
        factories.run_due_jobs()
    factories.run_due_jobs()
    before = latest(row)
    row.refresh_from_db()
    if paused:
        pausing.pause(row=row, by=campaign.created_by)
    taken = exclude(campaign, "ben")
    assert selectors.complete_batches(row) < before.batches
    stopping.by_hand(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert (row.state, row.stopping["batch"]) == (Round.State.STOPPED, before.batches)
    dropped = row.round_batches.filter(batch__state=Batch.State.DROPPED)
    assert set(dropped.values_list("number", flat=True)) == set(range(before.batches + 1, 7))
    assert Situation(row.campaign).progress.again is not None  # type: ignore[union-attr]
    take_back(taken)
    assert (latest(row).digest, latest(row).batches) == (before.digest, before.batches)
    exclude(campaign, "ben")
    judge_out(campaign, "anna")
    assert latest(row).batches == before.batches
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED


@pytest.mark.slow
def test_twin_without_the_signal_stays_on_the_old_labels(campaign: Campaign) -> None:
    """With more labels than the batches ask for, nothing opens again: only labels are others."""
    row = evaluation.drawn(campaign, extra_share=0.0)
    judge_out(campaign, "anna", "ben")
    taken = exclude(campaign, "ben")
    judge_out(campaign, "anna")
    take_back(taken)
    together = latest(row)

    labels_counted_anew.disconnect(dispatch_uid="recompute-after-exclusion", sender=Campaign)
    try:
        exclude(campaign, "ben")
    finally:
        labels_counted_anew.connect(
            receivers.recompute_after_exclusion,
            sender=Campaign,
            dispatch_uid="recompute-after-exclusion",
        )
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    assert latest(row) == together
    assert outcome.digest != together.digest
    take_back(campaign.exclusions.get(ended=None))
    exclude(campaign, "ben")
    assert latest(row).digest == outcome.digest


@pytest.mark.slow
def test_the_ranking_says_that_there_are_no_numbers_now(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    judge_out(campaign, "anna", "ben")
    exclude(campaign, "ben")
    for name in ("live", "live-pairs", "live-history", "live-batches", "live-labels", "reports"):
        assert organizer.get(address(name, campaign, row.number)).status_code == 200
    home = text(organizer.get(address("campaign-home", campaign)))
    assert "Wait for the numbers" not in home
    assert "The work of ben is excluded" in home
    assert "excluded the work of ben" in home


@pytest.mark.slow
def test_what_happened_and_what_mends_it_is_told_in_the_same_words(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.worker_alive()
    judge_out(campaign, "anna", "ben")
    assert selectors.judged_again(row) is None
    of_ben = Pair.objects.filter(assignments__assessor__username="ben").distinct().count()
    exclude(campaign, "ben")

    told = selectors.judged_again(row)
    assert told is not None
    assert (told.pairs, told.used, told.excluded) == (of_ben, 0, ["ben"])
    assert told.what.startswith("The work of ben is excluded, so that ")
    assert [each.number for each in told.freed] == [1, 2, 3]
    live = text(organizer.get(address("live", campaign, row.number)))
    assert "No estimates at the moment" in live
    assert "No estimates yet" not in live
    base = f"/api/campaigns/{campaign.slug}/"
    answer = rest.client_of(campaign.created_by).get(f"{base}ranking/").json()
    assert answer["judged_again"]["text"] == told.text
    assert answer["judged_again"]["pairs"] == of_ben
    for page in (live, text(organizer.get(address("campaign-home", campaign)))):
        assert told.what in page
        assert told.until in page
        assert f"Have {of_ben} pairs judged again" in page
    assert told.mend in live

    factories.assessors(campaign, "cleo")
    judge_out(campaign, "anna", "cleo")
    assert selectors.judged_again(row) is None
    assert rest.client_of(campaign.created_by).get(f"{base}ranking/").json()["judged_again"] is None
    assert "is excluded" not in text(organizer.get(address("live", campaign, row.number)))


STANDING_STILL: dict[str, Callable[[Round], None]] = {
    "the campaign is paused": lambda row: campaigns.pause(campaign=row.campaign, by=by(row)),
    "the campaign is closed": lambda row: campaigns.close(campaign=row.campaign, by=by(row)),
    "round 1 is paused": lambda row: pausing.pause(row=row, by=by(row)),
}


def by(row: Round) -> User:
    return row.campaign.created_by


@pytest.mark.parametrize("still", STANDING_STILL)
def test_where_nothing_is_handed_out_nobody_reads_that_it_is(
    still: str, campaign: Campaign, organizer: Client
) -> None:
    """Nor that estimates stay, or that no batch was judged before."""
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.worker_alive()
    evaluation.judge(campaign, 35)
    STANDING_STILL[still](Round.objects.select_related("campaign").get(pk=row.pk))
    exclude(campaign, "ben")
    told = selectors.judged_again(Round.objects.get(pk=row.pk))
    assert told is not None
    live = text(organizer.get(address("live", campaign, row.number)))
    home = text(organizer.get(address("campaign-home", campaign)))
    assert "before the first batch was judged" not in live
    assert "stay as they are" not in home
    assert told.what in live
    assert told.what in home
    assert f" while {still}: have it go on, or decide them yourself" in told.mend
    assert told.mend in live


@pytest.mark.slow
def test_the_excluded_are_nobody_who_could_judge_the_rest(campaign: Campaign) -> None:
    evaluation.drawn(campaign, extra_share=0.0)
    assert Situation(campaign).assessors == 2
    exclude(campaign, "ben")
    assert Situation(campaign).assessors == 1


def test_what_is_judged_again_is_told_in_a_line_however_many_batches_there_are() -> None:
    freed = [FreedBatch(number, 60) for number in range(1, 26)]
    assert JudgedAgain(freed, 0, ["ben"]).what == (
        "The work of ben is excluded, so that 1,500 pairs of 25 batches lack labels."
    )
    assert JudgedAgain(freed[:1], 0, ["ben"]).what == (
        "The work of ben is excluded, so that 60 pairs of batch 1 lack labels."
    )

"""A round that ends before its budget is spent: its rule has come true, or its organizer says so.

The rule is looked at by the recompute, which notes in the commit of its estimates that it holds,
and asks for the job `stop`. That one ends the round, whoever does it and however often: a worker
that is killed between the two leaves the job in the database, and of two workers the one that
changes the round's state drops its batches. From the note on nothing more is planned.

It is a job of its own because of the locks. A judgment holds its pair and its batch when it asks
for a recompute, whose row the recompute holds; who drops batches must hold none that a judgment
may ask for.

An organizer who ends it by hand may have looked at the numbers, as a rule does; he asks for the
same job, and the same is told from then on.

Why this biases no coverage is said in `estimation.core.planning.stopping`: what is told holds at
every look. Whole batches are dropped, however their judgments turned out, and what an incomplete
batch has got is stored and counts for nothing in it, as in a round whose campaign is closed; a
round that tops up alone takes it for certain (`services.topping`).

A batch that estimates have rested on is not dropped. It lacks labels because work was excluded, and
is judged again, or complete again once the work counts: which of the two comes first, an exclusion
or the end of a round, makes no difference. One that is complete behind a batch that is dropped
counts for nothing either, and is dropped too: nobody shall judge it again.
"""

from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone

from estimation.core.planning.stopping import StoppingRule
from estimation.core.rounds.results import MeasureResult
from estimation.endings import HAND
from estimation.models import EstimateSet, Round, RoundBatch
from estimation.pacing import expected_pairs
from estimation.selectors import complete_batches, told_batches
from judging.errors import UserError
from judging.models import Batch, Campaign, User
from judging.services import audit, batches, jobs
from judging.taken_up import taken_up

STOP = "stop-round"
GOING = (Round.State.DRAWN, Round.State.JUDGING)
"""It is drawn until its first numbers are computed, however much is judged by then."""


def rule_of(row: Round) -> StoppingRule | None:
    """The rule of a round; None if it goes on until its budget is spent."""
    if row.stop_when == Round.Stop.WIDTH:
        return StoppingRule("width", width=row.stop_width)
    if row.stop_when == Round.Stop.TOP:
        return StoppingRule("top", top=row.stop_top)
    return StoppingRule("best") if row.stop_when else None


def comes_true(row: Round, result: MeasureResult, *, ended: bool) -> bool:
    """Whether a round shall end now; one that has ended as planned has nothing to save."""
    rule = rule_of(row)
    return rule is not None and not ended and not row.stopping and rule.holds(result)


def too_far_ahead(campaign: Campaign) -> list[int]:
    """Waiting batches of rounds with a rule that are not opened yet: those behind the batch after
    one that others have to end (`taken_up`). Row ids.

    A rule is looked at with batches that are complete in a row from the first. While one pair of
    an early batch was held, or wanted a label of somebody else, all others were judged to the end
    of the budget, and nothing could be saved. One batch ahead there is work meanwhile. For a pair
    in hand nobody waits for longer than a lease; for labels of others until these come, as what one
    person says alone completes no batch (`estimation.others` tells the organizer).

    Batches are served whole and in their order as ever, and count so: when one is opened hangs on
    leases, on who has answered and on what is complete, never on a grade, and no pair is left out
    or put before another.
    """
    going = campaign.rounds.filter(state__in=GOING).exclude(stop_when="")
    ruled = list(going.values_list("pk", flat=True))
    if not ruled:  # the rest looks at every pair of open batches
        return []
    behind = RoundBatch.objects.filter(round__in=ruled)
    kept = behind.filter(batch__in=taken_up(campaign)).order_by()
    first = kept.values_list("round").annotate(first=Min("number"))
    waiting = RoundBatch.objects.filter(batch__state=Batch.State.WAITING)
    found = [waiting.filter(round=row, number__gt=number + 1) for row, number in first]
    return [pk for rows in found for pk in rows.values_list("batch", flat=True)]


def note(row: Round, shown: EstimateSet, *, planned: int) -> None:
    """Writes that the rule has come true. In the transaction that stores the estimates.

    ``planned`` is how many batches the round was to have.
    """
    found = {
        "rule": row.stop_when,
        "batch": shown.batches,
        "batches": planned,
        "estimates": shown.number,
    }
    open_rounds = Round.objects.filter(pk=row.pk, stopping={}).exclude(state__in=Round.ENDED)
    if open_rounds.update(stopping=found):
        row.stopping = found
        told = {"rule": row.stop_when, "batch": shown.batches}
        audit.record("rule true", by=None, campaign=row.campaign_id, target=row, **told)


def by_hand(*, row: Round, by: User) -> None:
    """Has the round end now: its complete batches count, and nothing more is judged for it.

    Once asked for it cannot be undone. Raises UserError ``not_judged`` (409) before a batch of it
    is complete, and ``ended`` (409) where it has ended or is being ended, or is judged to its end
    and ends by itself when the numbers are computed.
    """
    with transaction.atomic():
        judged = complete_batches(row)
        complete = max(judged, told_batches(row))
        if not complete:
            message = "No batch of it is judged yet. Wait for the first, or close the campaign."
            raise UserError("not_judged", message, status=409)
        planned = max(row.round_batches.count(), row.preview.get("batches", 0))
        told = row.sampling.draws != "batches" or "batches" in row.preview
        if told and judged >= planned:
            message = "All that was planned is judged: the round ends by itself in a moment."
            raise UserError("ended", message, status=409)
        found = {"rule": HAND, "batch": complete, "batches": planned}
        jobs.request(STOP, row.pk, campaign=row.campaign_id)  # jobs are locked before rounds
        going = Round.objects.filter(pk=row.pk, stopping={}, state__in=GOING)
        if not going.update(stopping=found):
            message = "The round has ended already, or is being ended."
            raise UserError("ended", message, status=409)
        row.stopping = found
        audit.record("end round", by=by, campaign=row.campaign_id, target=row, batch=complete)


def stop(job: jobs.Running) -> None:
    """The job: ends a round whose rule has come true. Safe to run again at any point."""
    row = Round.objects.get(pk=job.target)
    if not row.stopping:
        return
    _let_go(row)
    with transaction.atomic():
        job.fence()
        going = Round.objects.filter(pk=row.pk, state__in=GOING)
        if not going.update(state=Round.State.STOPPED):
            return
        served = row.round_batches.exclude(batch__state=Batch.State.PREPARING)
        others = served.filter(number__gt=told_batches(row))
        left = batches.drop(list(others.order_by("batch").values_list("batch", flat=True)))
        dropped = served.filter(batch__state=Batch.State.DROPPED).order_by("number").first()
        if dropped is not None:
            behind = served.filter(number__gt=dropped.number)
            batches.drop_complete(list(behind.values_list("batch", flat=True)))
        found = row.stopping | {"saved": left + _never_planned(row, served)} | _counted(row)
        ended = {"ended": timezone.now().isoformat()}
        Round.objects.filter(pk=row.pk).update(stopping=found | ended)
        audit.record("stop round", by=None, campaign=row.campaign_id, target=row, **found)


def _counted(row: Round) -> dict[str, int]:
    """Which batch is the last that counts: one may have been completed since the end was noted.

    Nobody gives a rule another batch to come true after, but who ends a round ends it after its
    last. Call when the others are dropped: none is completed any more.
    """
    last = max(complete_batches(row), told_batches(row))
    if last <= row.stopping["batch"]:
        return {}
    return {"batch" if row.stopping["rule"] == HAND else "counted": last}


def _let_go(row: Round) -> None:
    """What is judged again of a round that pauses is held no more.

    In a transaction of its own: who lets batches go locks their pairs, as a judgment does.
    """
    held = row.round_batches.filter(batch__state=Batch.State.HELD)
    kept = held.filter(number__lte=told_batches(row))
    with transaction.atomic():
        batches.let_go(list(kept.order_by("batch").values_list("batch", flat=True)))


def _never_planned(row: Round, served: QuerySet[RoundBatch]) -> int:
    """Judgments of batches that would have been planned one by one, as the budget expects them:
    no more pairs than there are, and so many of them as it pays for where they cost unequally, or
    as the hours that were left do."""
    if row.sampling.draws != "batches":
        return 0
    drawn = row.draws.filter(batch_number__in=served.values("number")).count()
    paced, planned = expected_pairs(row), row.preview.get("expected_pairs", row.budget)
    expected: float = planned if paced is None else paced
    return round(max(expected - drawn, 0) * row.labels_each)

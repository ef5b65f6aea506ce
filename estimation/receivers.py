"""Labels that estimates rest on are new or other: recomputes are due, in the same commit."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Model, ProtectedError, Q, QuerySet
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from estimation.machines import AGREEMENT
from estimation.material import taking_part
from estimation.models import Draw, MachineJudge, Prediction, Round
from estimation.selectors import current_round, label_quality, latest_estimates
from estimation.services import pausing, stopping
from estimation.work import OF_NUMBERS, QUALITY
from judging.models import Batch, Campaign, Job, Pair, Upload
from judging.services import jobs
from judging.signals import (
    batch_completed,
    competence_asked,
    judgment_corrected,
    labels_added,
    labels_counted_anew,
    left_out_asked,
    opening_asked,
    said_aside,
    seniors_changed,
    weights_asked,
    work_to_come,
)


@receiver(batch_completed, sender=Batch, dispatch_uid="recompute-after-batch")
def recompute_after_batch(batches: Sequence[Batch], **_kwargs: Any) -> None:
    """Their rounds, and all others that drew one of their pairs: these may have new labels."""
    drawn = Draw.objects.filter(pair__batch_pairs__batch__in=batches).values("round")
    _request(Round.objects.filter(Q(round_batches__batch__in=batches) | Q(pk__in=drawn)))


@receiver(judgment_corrected, sender=Pair, dispatch_uid="recompute-after-correction")
def recompute_after_correction(pair: int, **_kwargs: Any) -> None:
    _request(Round.objects.filter(draws__pair=pair))


@receiver(labels_added, sender=Pair, dispatch_uid="recompute-after-labels")
def recompute_after_labels(pairs: Sequence[int], **_kwargs: Any) -> None:
    """Another round wants more labels of a pair: where the pair was complete, it has new ones."""
    _request(Round.objects.filter(draws__pair__in=pairs))


@receiver(labels_counted_anew, sender=Campaign, dispatch_uid="recompute-after-exclusion")
def recompute_after_exclusion(campaign: Campaign, **_kwargs: Any) -> None:
    """All rounds of it; one that was complete and lacks labels now goes on until it has them."""
    _request(Round.objects.filter(campaign=campaign).exclude(state__in=Round.NOT_DRAWN))
    again = Round.objects.filter(
        campaign=campaign,
        state=Round.State.COMPLETE,
        round_batches__batch__state=Batch.State.OPEN,
    )
    Round.objects.filter(pk__in=again.values("pk")).update(state=Round.State.JUDGING)
    for row in Round.objects.filter(campaign=campaign, paused__isnull=False, stopping={}):
        pausing.hold_back(row)  # what was complete is open again, and its round pauses


@receiver(seniors_changed, sender=Campaign, dispatch_uid="look-at-labels-after-seniors")
@receiver(said_aside, sender=Campaign, dispatch_uid="look-at-labels-after-aside")
def look_at_labels_again(campaign: Campaign, **_kwargs: Any) -> None:
    """What would be with senior grades, or without them, and if excluded work counted, is told
    beside the estimates."""
    drawn = Round.objects.filter(campaign=campaign).exclude(state__in=Round.NOT_DRAWN)
    for row in drawn.order_by("pk"):
        jobs.request(QUALITY, row.pk, campaign=campaign)


def _request(rounds: QuerySet[Round]) -> None:
    """Asks for a recompute of each, and of rounds estimated together with it.

    One without news ends at once.

    Whether a round has complete batches is left to the recompute: one may complete just now. The
    order is the same everywhere, so that two transactions never wait in a circle.
    """
    followers = Q(with_earlier=True, campaign__in=rounds.values("campaign"))
    due = Round.objects.filter(Q(pk__in=rounds.values("pk")) | followers)
    due = due.exclude(state__in=Round.NOT_DRAWN)  # a draft has no numbers, and may be discarded
    found = due.order_by("pk").values_list("pk", "campaign").distinct()
    for round_id, campaign_id in found:
        jobs.request("recompute", round_id, campaign=campaign_id)
    judges = MachineJudge.objects.filter(campaign__in=[campaign_id for _, campaign_id in found])
    for judge_id, campaign_id in judges.order_by("pk").values_list("pk", "campaign"):
        jobs.request(AGREEMENT, judge_id, campaign=campaign_id)


@receiver(pre_delete, sender=Prediction, dispatch_uid="keep-named-predictions")
def keep_named_predictions(instance: Prediction, **_kwargs: Any) -> None:
    """As a protected foreign key does for the first predicted grades that a round names.

    Whoever names some, or takes them out of the campaign, holds the campaign's lock.
    """
    rounds = Round.objects.filter(campaign=instance.campaign_id)
    naming: set[Model] = {each for each in rounds if instance.name in each.more_predictions}
    if naming:
        raise ProtectedError("Rounds name these predicted grades.", naming)


@receiver(work_to_come, sender=Campaign, dispatch_uid="next-batch-is-planned")
def next_batch_is_planned(campaign: Campaign, **_kwargs: Any) -> str:
    """Asked where all batches are complete: is a round going on whose next one is planned then?

    Whether any is left, the planning finds; until then assessors wait for a worker, not for people.
    Where the work has failed for good, no worker goes on by itself.
    """
    going = campaign.rounds.filter(state__in=[Round.State.DRAWN, Round.State.JUDGING])
    planned = {row.pk for row in going if row.sampling.draws == "batches" and not row.stopping}
    failed = Job.objects.filter(kind__in=OF_NUMBERS, state=Job.State.FAILED, target__in=planned)
    halted = set(failed.values_list("target", flat=True))
    if planned - halted:
        return "chosen"
    return "halted" if halted else ""


@receiver(opening_asked, sender=Campaign, dispatch_uid="batches-that-a-rule-may-save")
def batches_that_a_rule_may_save(campaign: Campaign, **_kwargs: Any) -> list[int]:
    return stopping.too_far_ahead(campaign)


@receiver(weights_asked, sender=Campaign, dispatch_uid="design-weights")
def design_weights(campaign: Campaign, pairs: Sequence[int], **_kwargs: Any) -> dict[int, float]:
    """One over the probability with which a pair was drawn; in the last round that drew it."""
    drawn = Draw.objects.filter(round__campaign=campaign, pair__in=pairs).order_by("round__number")
    found = drawn.values_list("pair", "probability")
    return {pair: 1.0 / probability for pair, probability in found}


@receiver(left_out_asked, sender=Campaign, dispatch_uid="withdrawn-runs")
def withdrawn_runs(campaign: Campaign, **_kwargs: Any) -> list[int]:
    """Files of runs that take part in no ranking: a copy of the campaign does without.

    So they do whose place another version has taken, which leaves no run of theirs.
    """
    files = campaign.uploads.filter(kind=Upload.Kind.RUN)
    gone = files.exclude(pk__in=taking_part(campaign).values("upload"))
    return list(gone.values_list("pk", flat=True))


@receiver(competence_asked, sender=Campaign, dispatch_uid="competence-of-somebody")
def competence_of_somebody(campaign: Campaign, username: str, **_kwargs: Any) -> dict[str, Any]:
    """From the latest estimates of the round that pages show; empty where their labels are not
    among those that count there."""
    row = current_round(campaign)
    shown = latest_estimates(row) if row else None
    found = label_quality(shown) if shown else {}
    people = {each["name"]: each for each in found.get("people", [])}
    told = people.get(username)
    return {**told, "round": row.number} if told and row else {}

"""A round that goes no further before others judge: its next batch has what one person can give."""

from dataclasses import dataclass

from estimation.models import Round
from judging.models import Batch, Campaign
from judging.taken_up import left_to_others as left_batches
from judging.taken_up import pairs_left


@dataclass(frozen=True)
class LeftToOthers:
    """The first batch of round ``number`` that is not complete: all ``pairs`` that are left of it
    were answered, and want labels of others. ``ruled``: it is a rule that keeps later ones back,
    else they are planned when it is complete."""

    number: int
    batch: int
    pairs: int
    ruled: bool

    @property
    def brief(self) -> str:
        want = "1 pair wants" if self.pairs == 1 else f"{self.pairs:,} pairs want"
        return f"Batch {self.batch} of round {self.number}: {want} a label of somebody else."

    @property
    def text(self) -> str:
        hands = "it" if self.pairs == 1 else "them"
        then = (
            "At most one batch more is handed out before, so that the rule can still save some."
            if self.ruled
            else "The next batch is planned when it is complete."
        )
        return f"{self.brief} Nobody has {hands} in hand. {then}"


def left_to_others(row: Round) -> LeftToOthers | None:
    """Told of rounds that wait for it: those with a rule, and those whose batches are planned one
    by one. None where nothing is handed out, as the round or the campaign pauses."""
    ruled, campaign = bool(row.stop_when), row.campaign
    if not (ruled or row.sampling.draws == "batches") or not row.labels_each > 1.0:
        return None
    if campaign.state != Campaign.State.OPEN or not row.is_going or row.is_paused or row.stopping:
        return None
    done = [Batch.State.COMPLETE, Batch.State.DROPPED]
    first = row.round_batches.exclude(batch__state__in=done).order_by("number").first()
    if first is None or not left_batches(campaign).filter(pk=first.batch_id).exists():
        return None
    return LeftToOthers(row.number, first.number, pairs_left(first.batch_id), ruled)

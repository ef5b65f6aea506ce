"""A batch is complete: the round's estimates are due, in the same commit."""

from typing import Any

from django.dispatch import receiver

from estimation.models import RoundBatch
from judging.models import Batch
from judging.services import jobs
from judging.signals import batch_completed


@receiver(batch_completed, sender=Batch, dispatch_uid="recompute-after-batch")
def recompute_round(batch: Batch, **_kwargs: Any) -> None:
    link = RoundBatch.objects.filter(batch=batch).first()
    if link is not None:
        jobs.request("recompute", link.round_id, campaign=batch.campaign_id)

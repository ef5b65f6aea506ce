"""What a draw leaves behind when it is cut off: batches in preparation, which nobody has seen."""

from estimation.models import Round
from judging.models import Batch
from judging.services import batches


def discard(row: Round) -> None:
    """Removes the batches of the round that are still in preparation, with what was drawn for them.

    Its pairs may stay on the judging side: alone they mean nothing.
    """
    links = row.round_batches.filter(batch__state=Batch.State.PREPARING).select_related("batch")
    left = [link.batch for link in links]
    row.draws.filter(batch_number__in=[link.number for link in links]).delete()
    links.delete()
    batches.discard(left)

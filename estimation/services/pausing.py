"""A round of which nobody is given anything for a while, when others go on.

What is held are whole batches, whatever was found in them, and they come back in their order. So
the sample stays the sample: which batches are complete, and after which of them one looks, may hang
on anything, as numbers of a running round hold at every look. Whoever has a pair in hand may still
answer, as in a campaign that pauses.

A batch that is planned meanwhile, because the one before it was completed by what was in hand, is
held as well: `planning` asks for it in the commit that releases it, under the lock of the round.
"""

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from estimation.models import Round
from judging.errors import UserError
from judging.models import Batch, User
from judging.services import audit, batches


def pause(*, row: Round, by: User) -> None:
    """Nobody is given pairs of the round until it goes on. Raises UserError ``not_going`` (409)
    where nothing more is judged for it, or it pauses already.

    Batches are locked before the round, as a judgment locks the batch that it completes before the
    job that recomputes the round; what was planned until the round was locked is held after it.
    """
    with transaction.atomic():
        held = hold_back(row)
        _require(_going(row).filter(paused=None).update(paused=Now()), "is not being judged")
        held += hold_back(row)
        audit.record("pause round", by=by, campaign=row.campaign_id, target=row, batches=held)


def resume(*, row: Round, by: User) -> None:
    """The batches of a round that pauses are handed out again, in their order.

    What was answered meanwhile counts. A batch that is judged by now asks for a recompute, and jobs
    are locked before rounds; one that was planned until the round was locked is let go after it,
    and asks for nothing. Raises UserError ``not_going`` (409) of a round that does not pause.
    """
    with transaction.atomic():
        _let_go(row)
        _require(_going(row).filter(paused__isnull=False).update(paused=None), "does not pause")
        _let_go(row)
        audit.record("resume round", by=by, campaign=row.campaign_id, target=row)


def _let_go(row: Round) -> None:
    held = row.round_batches.filter(batch__state=Batch.State.HELD).order_by("batch")
    batches.let_go(list(held.values_list("batch", flat=True)))


def hold_back(row: Round) -> int:
    """Holds what is released of a round that pauses, in its transaction."""
    served = row.round_batches.order_by("batch").values_list("batch", flat=True)
    return batches.hold(list(served))


def _going(row: Round) -> QuerySet[Round]:
    return Round.objects.filter(
        pk=row.pk, stopping={}, state__in=[Round.State.DRAWN, Round.State.JUDGING]
    )


def _require(changed: int, why: str) -> None:
    if not changed:
        raise UserError("not_going", f"The round {why}. Look at it again.", status=409)

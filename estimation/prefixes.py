"""How many batches of a round are complete before the first that is not."""

from collections.abc import Iterable
from itertools import takewhile

from django.db.models import QuerySet

from estimation.models import Round, RoundBatch
from judging.models import Batch
from judging.statements import Slot, reads


def complete_now(row: Round) -> int:
    """As the round is now."""
    return complete_first(state for (state,) in _STATES.rows(round=row.pk))


def complete_first(states: Iterable[str]) -> int:
    """From the states of its batches, in their order."""
    return sum(1 for _ in takewhile(lambda state: state == Batch.State.COMPLETE, states))


def _states() -> QuerySet[RoundBatch, tuple[str]]:
    every = RoundBatch.objects.filter(round=Slot("round"))
    return every.order_by("number").values_list("batch__state")


_STATES = reads(_states)

"""Batches: the only door through which pairs come from a sample to the assessors.

``prepare`` writes a batch in short transactions (still invisible), ``release`` lets a round's
batches wait in their order, ``open_next`` opens the first that waits when somebody asks for a pair,
and ``open_judged`` those of which all is judged already. What is drawn is served: no step drops a
pair, and nothing here looks at a grade, so the sample stays the sample. ``drop`` takes back whole
batches, of a round that has ended before them; ``hold`` keeps whole batches back for a while, and
``let_go`` ends that.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Count, F, Max, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Greatest, Now

from judging.models import Assignment, Batch, BatchPair, Campaign, Pair
from judging.services import audit, bulk
from judging.signals import batch_completed, labels_added
from judging.statements import Slot, changes

CHUNK = 5000


class WantedPair(NamedTuple):
    """A pair to be judged: the topic's row id, the docno, and how many labels it shall get.

    With ``other`` it is a preference between the two documents. Its grade depends on which comes
    first, so that must be the one whose docno is less as UTF-8 bytes.
    """

    topic: int
    docno: str
    labels: int
    other: str = ""


_topic_docno_other = itemgetter(0, 1, 3)


def new_batch(campaign: Campaign) -> Batch:
    """An empty batch in preparation, numbered after the campaign's last one."""
    with transaction.atomic():
        Campaign.objects.select_for_update().get(pk=campaign.pk)
        last = Batch.objects.filter(campaign=campaign).aggregate(last=Max("number"))["last"] or 0
        return Batch.objects.create(campaign=campaign, number=last + 1)


def prepare(batch: Batch, wanted: Sequence[WantedPair]) -> list[int]:
    """Adds the pairs to a batch in preparation; returns their row ids, in the order given.

    Raises
    ------
    ValueError
        A preference whose documents are in the wrong order.
    """
    _refuse_turned(wanted)
    ids: list[int] = []
    for start in range(0, len(wanted), CHUNK):
        with transaction.atomic():
            ids += _prepare_chunk(batch, wanted[start : start + CHUNK])
    _raise_wanted(batch)
    Batch.objects.filter(pk=batch.pk).update(pair_count=F("pair_count") + len(ids))
    return ids


def _refuse_turned(wanted: Iterable[WantedPair]) -> None:
    for _, docno, _, other in wanted:
        if other and not docno.encode() < other.encode():
            message = f"docno must come before other as UTF-8 bytes: {docno!r}, {other!r}"
            raise ValueError(message)


def _prepare_chunk(batch: Batch, wanted: Sequence[WantedPair]) -> list[int]:
    """Pairs are inserted in the order of their key, their places in the batch in that of the pairs'
    row ids: two draws wait for each other's rows, and must not do so in a circle, nor with whoever
    locks pairs."""
    fresh = sorted(wanted, key=_topic_docno_other)
    bulk.insert(Pair, _key(batch, fresh) | {"wanted": [w.labels for w in fresh]}, keep=True)
    ids = bulk.find(Pair, _key(batch, wanted))
    placed = sorted(zip(ids, (w.labels for w in wanted), strict=True))
    columns = {"pair": [pk for pk, _ in placed], "labels": [labels for _, labels in placed]}
    bulk.insert(BatchPair, columns | {"batch": batch.pk})
    return ids


def _key(batch: Batch, wanted: Sequence[WantedPair]) -> dict[str, Any]:
    return {
        "campaign": batch.campaign_id,
        "topic": [w.topic for w in wanted],
        "docno": [w.docno for w in wanted],
        "other": [w.other for w in wanted],
        "gold": False,
    }


def _raise_wanted(batch: Batch) -> None:
    """Pairs of an earlier batch may now want more labels than they did."""
    short = BatchPair.objects.filter(batch=batch, pair__wanted__lt=F("labels"))
    ids = list(short.order_by("pair").values_list("pair_id", flat=True))
    most = BatchPair.objects.filter(pair=OuterRef("pk")).order_by("-labels").values("labels")[:1]
    for start in range(0, len(ids), CHUNK):
        with transaction.atomic():
            pairs = Pair.objects.filter(pk__in=ids[start : start + CHUNK])
            lock_pairs(pairs)
            pairs.update(wanted=Greatest(F("wanted"), Coalesce(Subquery(most), F("wanted"))))


def discard(batches: Iterable[Batch]) -> None:
    """Removes batches whose preparation was cut off; nobody wants the labels of theirs any more.

    Pairs may stay: alone they mean nothing.
    """
    for batch in batches:
        with transaction.atomic():
            rows = BatchPair.objects.filter(batch=batch, batch__state=Batch.State.PREPARING)
            ids = list(rows.order_by("pair").values_list("pair_id", flat=True))
            rows.delete()
            for start in range(0, len(ids), CHUNK):
                _lower_wanted(ids[start : start + CHUNK])
            Batch.objects.filter(pk=batch.pk, state=Batch.State.PREPARING).delete()


def _lower_wanted(pair_ids: Sequence[int]) -> None:
    """To what their other batches want, but not below the places that are taken."""
    most = BatchPair.objects.filter(pair=OuterRef("pk")).order_by("-labels").values("labels")[:1]
    pairs = Pair.objects.filter(pk__in=pair_ids)
    lock_pairs(pairs)
    pairs.update(wanted=Greatest(F("held"), Coalesce(Subquery(most), F("wanted"))))


def release(batch_ids: Sequence[int]) -> None:
    """The batches may now be opened. Call in the transaction that freezes their round."""
    _refresh_statistics()
    Batch.objects.filter(pk__in=batch_ids, state=Batch.State.PREPARING).update(
        state=Batch.State.WAITING
    )
    _open_judged_then(batch_ids)


def drop(batch_ids: Sequence[int]) -> int:
    """Batches that wait or are open are served no more; returns how many labels nobody gives now.

    Nothing that was said is lost: whoever holds a lease on one of their pairs may still answer, and
    judgments stay as they are. What is dropped is whole batches, whatever their grades; estimates
    rest on complete ones, so that none is made of the labels that happened to come first. Call in
    a transaction. Nothing but the batches is locked, after which whoever judges asks for no more.
    """
    ids = _taken_back(batch_ids, [Batch.State.WAITING, Batch.State.OPEN, Batch.State.HELD])
    Batch.objects.filter(pk__in=ids).update(state=Batch.State.DROPPED)
    _open_judged_then(ids)  # which waited for these, and nobody is asked for any more
    lacking = BatchPair.objects.filter(
        batch__in=ids, pair__decided=False, pair__judged__lt=F("labels")
    )
    left = lacking.aggregate(left=Sum(F("labels") - F("pair__judged")))["left"]
    return int(left or 0)


def drop_complete(batch_ids: Sequence[int]) -> None:
    """Complete batches that count for nothing, as one before them was dropped: what their labels
    lack later, nobody is asked for. Call in the transaction that dropped the others."""
    complete = Batch.objects.filter(pk__in=batch_ids, state=Batch.State.COMPLETE)
    ids = list(complete.order_by("pk").select_for_update().values_list("pk", flat=True))
    Batch.objects.filter(pk__in=ids).update(state=Batch.State.DROPPED)


def _taken_back(batch_ids: Sequence[int], states: Sequence[str]) -> list[int]:
    """Those of the batches in one of the states, under a lock; of one that was never open all pairs
    remain."""
    served = Batch.objects.filter(pk__in=batch_ids, state__in=states)
    ids = list(served.order_by("pk").select_for_update().values_list("pk", flat=True))
    Batch.objects.filter(pk__in=ids, state=Batch.State.WAITING).update(remaining=F("pair_count"))
    return ids


def hold(batch_ids: Sequence[int]) -> int:
    """Nobody is given pairs of these batches until they are let go; returns how many there are.

    Whoever has a pair of theirs in hand may still answer, and nothing that was said is lost.
    Whole batches are held, whatever their grades: what is judged of them counts when they are
    complete, as always. Call in a transaction; nothing but the batches is locked, as by ``drop``.
    """
    ids = _taken_back(batch_ids, [Batch.State.WAITING, Batch.State.OPEN])
    _open_judged_then(ids)
    return Batch.objects.filter(pk__in=ids).update(state=Batch.State.HELD)


def let_go(batch_ids: Sequence[int]) -> None:
    """Batches that are held go on: those that were open are, and the others wait in their order.

    What was answered meanwhile is counted, under the locks of ``open_next``. Call in a transaction.
    """
    held = Batch.objects.filter(pk__in=batch_ids, state=Batch.State.HELD)
    begun = list(held.filter(opened__isnull=False).order_by("pk").values_list("pk", flat=True))
    inside = BatchPair.objects.filter(batch__in=begun)
    lock_pairs(Pair.objects.filter(pk__in=inside.values("pair")))
    held.filter(opened__isnull=True).update(state=Batch.State.WAITING)
    settle([pk for pk in begun if held.filter(pk=pk).update(state=Batch.State.OPEN)])
    _open_judged_then(batch_ids)


def _refresh_statistics() -> None:
    """Tells PostgreSQL how many rows there are now.

    Its own daemon may have counted while they were being written, and seen none: a join of two
    tables that are thought empty compares every row with every other.
    """
    if connection.vendor == "postgresql":
        tables = (Pair, BatchPair, Assignment)
        with connection.cursor() as cursor:
            for table in tables:
                cursor.execute(f"ANALYZE {connection.ops.quote_name(table._meta.db_table)}")


def open_next(campaign_id: int, *, but: Collection[int] = ()) -> Batch | None:
    """Opens the first waiting batch, if there is one; complete at once if nothing is left to do.

    ``but``: row ids of those that are not to be opened yet, and are passed over.

    The pairs are locked before they are counted, as a save locks its pair before its batch: a
    judgment that comes in at the same moment is either counted here or takes one off afterwards.
    """
    with transaction.atomic():
        waiting = Batch.objects.filter(campaign_id=campaign_id, state=Batch.State.WAITING)
        batch = waiting.exclude(pk__in=but).order_by("number").first()
        if batch is None:
            return None
        lock_pairs(Pair.objects.filter(batch_pairs__batch=batch))
        opened = waiting.filter(pk=batch.pk).update(state=Batch.State.OPEN, opened=Now())
        if opened:
            settle([batch.pk])
        return batch


def open_judged(campaign_id: int) -> None:
    """Opens waiting batches of an open campaign in their order, as long as nothing is left to judge
    of the next one: each is complete at once.

    Other rounds may have had all of its pairs judged. Then nobody is asked, and nobody would come.
    """
    while _next_is_judged(campaign_id) and open_next(campaign_id):
        pass


def _next_is_judged(campaign_id: int) -> bool:
    going = {"campaign": campaign_id, "campaign__state": Campaign.State.OPEN}
    waiting = Batch.objects.filter(**going, state=Batch.State.WAITING)
    batch = waiting.order_by("number").first()
    return batch is not None and not unfinished(batch.pk).exists()


def _open_judged_then(batch_ids: Sequence[int]) -> None:
    """Once the transaction is committed. Where that fails, whoever asks for a pair does it."""
    for pk in Batch.objects.filter(pk__in=batch_ids).values_list("campaign", flat=True).distinct():
        transaction.on_commit(partial(open_judged, pk), robust=True)


def lock_pairs(pairs: QuerySet[Pair]) -> None:
    """Locks the rows in one order everywhere, so that two transactions never wait in a circle."""
    list(pairs.order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True))


def unfinished(batch_id: int) -> QuerySet[BatchPair]:
    return BatchPair.objects.filter(
        batch_id=batch_id, pair__decided=False, pair__judged__lt=F("labels")
    )


def unfinished_pairs(campaign_id: int) -> QuerySet[BatchPair, int]:
    """Row ids of the pairs that open batches of the campaign still wait for."""
    waited_for = BatchPair.objects.filter(
        batch__campaign_id=campaign_id,
        batch__state=Batch.State.OPEN,
        pair__decided=False,
        pair__judged__lt=F("labels"),
    )
    return waited_for.values_list("pair_id", flat=True)


def settle(batch_ids: Sequence[int]) -> None:
    """Counts what open batches still lack, under their locks, and completes those at zero."""
    list(Batch.objects.filter(pk__in=batch_ids).order_by("pk").select_for_update())
    for pk in batch_ids:
        Batch.objects.filter(pk=pk).update(remaining=unfinished(pk).count())
    complete_those_done(batch_ids)


def settle_all(pair_ids: Iterable[int]) -> None:
    """Settles every open batch that holds one of the pairs; for services that finish many."""
    touched = Batch.objects.filter(
        pk__in=BatchPair.objects.filter(pair__in=list(pair_ids)).values("batch"),
        state=Batch.State.OPEN,
    )
    ids = list(touched.order_by("pk").select_for_update().values_list("pk", flat=True))
    settle(ids)
    _open_judged_then(ids)


def reopen(pairs: QuerySet[Pair]) -> int:
    """Labels of the pairs count no more: what their batches lack is counted anew, and complete ones
    that lack some are served again, before later ones. Returns how many these are.

    Call in a transaction that has locked the pairs. Estimates rest on complete batches, so that
    none is made of a sample with holes; which pairs are served again was drawn before any grade was
    known.
    """
    served = [Batch.State.OPEN, Batch.State.COMPLETE]
    touched = Batch.objects.filter(
        pk__in=BatchPair.objects.filter(pair__in=pairs).values("batch"), state__in=served
    )
    ids = list(touched.order_by("pk").select_for_update().values_list("pk", flat=True))
    lacking = BatchPair.objects.filter(
        batch=OuterRef("pk"), pair__decided=False, pair__judged__lt=F("labels")
    )
    count = lacking.order_by().values("batch").annotate(count=Count("pk")).values("count")
    Batch.objects.filter(pk__in=ids).update(remaining=Coalesce(Subquery(count), 0))
    again = Batch.objects.filter(pk__in=ids, state=Batch.State.COMPLETE, remaining__gte=1)
    return again.update(state=Batch.State.OPEN, completed=None)


def pair_finished(pair_id: int, *, labels: int, fewest: int) -> None:
    """A save brought the pair to ``labels`` labels: takes one off every open batch it finishes.

    Whoever rests on a batch that it was finished in before hears of its new label: there is one
    where ``fewest``, the least that any batch asks for, is less.

    All batches are locked before any is completed, here as in settle_all: who hears of a complete
    batch locks rows of its own, and two transactions must not wait in a circle.
    """
    finished = sorted(_FINISHED.rows(pair=pair_id, labels=labels))
    completed = complete_those_done([pk for pk, remaining in finished if not remaining])
    if not completed and fewest < labels:
        labels_added.send(sender=Pair, pairs=[pair_id])


def _finished_in() -> tuple[QuerySet[Batch], dict[str, object]]:
    """Open batches to which this many labels of the pair are all they ask for."""
    asking = BatchPair.objects.filter(pair=Slot("pair"), labels=Slot("labels"))
    rows = Batch.objects.filter(pk__in=asking.values("batch"), state=Batch.State.OPEN)
    locked = rows.order_by("pk").select_for_update()
    return locked, {"remaining": F("remaining") - 1}


_FINISHED = changes(_finished_in, returning=("id", "remaining"))


def tell_of_labels(pair_ids: Sequence[int]) -> None:
    """The pairs got a judgment each: tells of those that some batch had asked for no more of."""
    beyond = BatchPair.objects.filter(pair__in=pair_ids, labels__lt=F("pair__judged"))
    if pairs := list(beyond.order_by("pair").values_list("pair", flat=True).distinct()):
        labels_added.send(sender=Pair, pairs=pairs)


def complete_those_done(batch_ids: Sequence[int]) -> list[Batch]:
    """The batches that this has completed. All are told of at once: who hears of them locks jobs in
    one order, and a transaction that did so for one batch after the other would keep none."""
    completed = []
    for pk in batch_ids:
        done = Batch.objects.filter(pk=pk, state=Batch.State.OPEN, remaining=0)
        if done.update(state=Batch.State.COMPLETE, completed=Now()):
            completed.append(Batch.objects.get(pk=pk))
    for batch in completed:
        audit.record("batch complete", by=None, campaign=batch.campaign_id, target=batch)
    if completed:
        batch_completed.send(sender=Batch, batches=completed)
    return completed

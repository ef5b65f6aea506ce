"""Pools: built from the accepted runs when they are needed, kept under the digest of the input."""

import hashlib
import json
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.data.restriction import restricted
from estimation.core.shards.joining import JoinedPool
from estimation.material import taking_part
from estimation.models import Run, StoredPool
from estimation.services import files, runs, scores, sharding
from judging.errors import UserError
from judging.models import Campaign
from judging.services import jobs
from judging.statements import Slot, reads

POOL_SHARE = 0.1
"""Of the progress of a job that waits for a pool."""


class PoolKind(StrEnum):
    """What the parts of a pool are, and whether it holds the scores of the runs."""

    DOCUMENTS = "documents"
    SCORED = "scored"
    PREFERENCES = "preferences"


def ensure(
    campaign: Campaign,
    *,
    depth: int | None = None,
    kind: PoolKind = PoolKind.DOCUMENTS,
    topics: Sequence[str] | None = None,
    runs_of: QuerySet[Run] | None = None,
    job: jobs.Running | None = None,
) -> tuple[StoredPool, Pool]:
    """The pool of the campaign's topics and runs, by default of all that take part and down to its
    depth. The job that needs it is told how far it is, and keeps it only while it has its lease.

    Raises UserError ``nothing_to_pool`` (409) without topics or runs, ``pool_impossible`` (409)
    for runs that cannot be pooled, and `jobs.Hindered` if many processes build it and some end.
    """
    depth = depth or campaign.depth
    if topics is None:
        topics = list(campaign.topics.values_list("topic_id", flat=True))
    accepted = list((taking_part(campaign) if runs_of is None else runs_of).order_by("pk"))
    if not topics or not accepted:
        message = "A pool needs topics and at least one accepted run. Upload them first."
        raise UserError("nothing_to_pool", message, status=409)
    digest = _input_digest(topics, accepted, depth, kind)
    row = StoredPool.objects.filter(campaign=campaign, digest=digest).first()
    if row is not None:
        return row, load(row)
    try:
        if sharding.is_large(accepted):
            row = _kept_from_shards(campaign, topics, accepted, digest, depth, kind, job)
        else:
            row = _keep(campaign, digest, _pooled(topics, accepted, depth, kind), job)
    except PoolError as error:
        raise UserError("pool_impossible", str(error), status=409) from None
    return row, load(row)  # mapped, and what was built is let go


def _pooled(topics: Sequence[str], accepted: list[Run], depth: int, kind: PoolKind) -> Pool:
    scored = kind == PoolKind.SCORED
    lists = {run.tag: runs.lists_of(run, scores=scored) for run in accepted}
    columns = build_pool(topics, lists, depth=depth, scores=scored)
    return preference_pool(columns, depth=depth) if kind == PoolKind.PREFERENCES else columns


def _kept_from_shards(
    campaign: Campaign,
    topics: Sequence[str],
    accepted: list[Run],
    digest: str,
    depth: int,
    kind: PoolKind,
    job: jobs.Running | None,
) -> StoredPool:
    """The same row and the same file as `_pooled` makes."""
    told = jobs.untold if job is None else lambda share, note: job.report(POOL_SHARE * share, note)
    scores, preferences = kind == PoolKind.SCORED, kind == PoolKind.PREFERENCES
    with sharding.pooled(
        topics, accepted, depth=depth, digest=digest, scores=scores, preferences=preferences,
        told=told,
    ) as columns:  # fmt: skip
        return _keep(campaign, digest, columns, job)


def joined(
    campaign: Campaign, columns: Pool, job: jobs.Running | None = None
) -> tuple[Pool, list[str]]:
    """A pool of the campaign with the runs that were accepted after it was built.

    The same object if there are none. Topics that were added later stay outside, as they were, and
    so do runs whose scores the pool cannot take: their tags are told. Which these are follows from
    the runs alone, so that nothing else is estimated differently.
    """
    known, without = set(columns.runs), []
    later = [tag for (tag,) in _TAKING_PART.rows(campaign=campaign.pk) if tag not in known]
    if later and columns.score is not None:
        runs = taking_part(campaign).filter(tag__in=later).order_by("tag")
        without = [run.tag for run in runs if scores.fault_of(run, depth=columns.depth)]
    tags = [tag for tag in later if tag not in without]
    if not tags:
        return columns, without
    _, larger = ensure(
        campaign,
        depth=columns.depth,
        kind=kind_of(columns),
        topics=columns.topics,
        runs_of=campaign.runs.filter(tag__in=[*columns.runs, *tags]),
        job=job,
    )
    return larger, without


def without_withdrawn(campaign: Campaign, columns: Pool) -> tuple[Pool, list[str]]:
    """The pool with the entries of the runs that take part, and the tags of the others."""
    known = set(columns.runs)
    tags = sorted(tag for (tag,) in _WITHDRAWN.rows(campaign=campaign.pk) if tag in known)
    if not tags:
        return columns, []
    return restricted(columns, known - set(tags)), tags


def _tags(rows: QuerySet[Run]) -> QuerySet[Run, tuple[str]]:
    return rows.filter(campaign=Slot("campaign")).order_by("tag").values_list("tag")


_TAKING_PART = reads(lambda: _tags(Run.objects.filter(withdrawn=None)))
_WITHDRAWN = reads(lambda: _tags(Run.objects.exclude(withdrawn=None)))


def kind_of(columns: Pool) -> PoolKind:
    if columns.is_of_preferences:
        return PoolKind.PREFERENCES
    return PoolKind.DOCUMENTS if columns.score is None else PoolKind.SCORED


def load(row: StoredPool) -> Pool:
    """A pool that was kept; UserError ``pool_impossible`` (409) for one nobody would keep today."""
    try:
        return _load(row.file)
    except PoolError as error:
        raise UserError("pool_impossible", str(error), status=409) from None


@lru_cache(maxsize=4)
def _load(name: str) -> Pool:
    """A pool file never changes: its name is the digest of its content (`files.damaged`)."""
    return Pool.load(files.path_of(name), check=False)


def _input_digest(topics: Sequence[str], accepted: list[Run], depth: int, kind: PoolKind) -> str:
    content: list[object] = [sorted(topics), sorted((run.tag, run.digest) for run in accepted)]
    content.append(depth)
    if kind == PoolKind.SCORED:  # a run's digest is of its ranking alone
        content.append(sorted((run.tag, run.file) for run in accepted))
    elif kind == PoolKind.PREFERENCES:
        content.append(kind)
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _keep(
    campaign: Campaign, digest: str, columns: Pool | JoinedPool, job: jobs.Running | None
) -> StoredPool:
    row = StoredPool(
        campaign=campaign,
        digest=digest,
        file=files.keep_written("pools", columns.save),
        depth=columns.depth,
        topic_count=len(columns.topics),
        run_count=len(columns.runs),
        pair_count=len(columns),
    )
    try:
        with transaction.atomic():
            if job is not None:
                job.fence()
            row.save(force_insert=True)
    except IntegrityError:  # another worker was as quick
        return StoredPool.objects.get(campaign=campaign, digest=digest)
    return row

"""Pools: built from the accepted runs when they are needed, kept under the digest of the input."""

import hashlib
import json

from django.db import IntegrityError, transaction

from estimation.core.pool import Pool as Columns
from estimation.core.pool import build_pool
from estimation.models import Pool, Run
from estimation.services import files, runs
from judging.errors import UserError
from judging.models import Campaign


def ensure(campaign: Campaign) -> tuple[Pool, Columns]:
    """The pool of the campaign's topics and accepted runs down to its depth.

    Raises UserError ``nothing_to_pool`` (409) without topics or runs.
    """
    topics = list(campaign.topics.values_list("topic_id", flat=True))
    accepted = list(campaign.runs.order_by("pk"))
    if not topics or not accepted:
        message = "A pool needs topics and at least one accepted run. Upload them first."
        raise UserError("nothing_to_pool", message, status=409)
    digest = _input_digest(topics, accepted, campaign.depth)
    row = Pool.objects.filter(campaign=campaign, digest=digest).first()
    if row is not None:
        return row, load(row)
    lists = {run.tag: runs.read_back(run).lists for run in accepted}
    columns = build_pool(topics, lists, depth=campaign.depth)
    return _keep(campaign, digest, columns), columns


def load(row: Pool) -> Columns:
    return Columns.load(files.path_of(row.file))


def _input_digest(topics: list[str], accepted: list[Run], depth: int) -> str:
    content = [sorted(topics), sorted((run.tag, run.digest) for run in accepted), depth]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _keep(campaign: Campaign, digest: str, columns: Columns) -> Pool:
    row = Pool(
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
            row.save(force_insert=True)
    except IntegrityError:  # another worker was as quick
        return Pool.objects.get(campaign=campaign, digest=digest)
    return row

"""Runs: what is kept of one, and what its coming makes due.

A run that is accepted after a round was drawn makes the round's estimates due again: it is
estimated from the judgments there are (see `estimation.services.estimates`).
"""

import hashlib
from typing import Any

from estimation.core.data.ranked_lists import RankedLists
from estimation.formats.runs import RunFile, load_lists, save_run
from estimation.models import Round, Run
from estimation.services import files
from judging.models import Campaign
from judging.services import jobs
from judging.services.uploads import Reading

HASHED = 1 << 13  # docnos that are hashed at once


def columns_of(reading: Reading, run: RunFile) -> dict[str, Any]:
    """The columns of a run that was read, whose rankings are kept in a file."""
    return {
        "upload": reading.upload,
        "tag": run.tag,
        "file": files.keep_written("runs", lambda file: save_run(file, run)),
        "digest": _digest(run),
        "topic_count": len(run.lists.topics),
        "line_count": len(run.scores),
    }


def make_estimates_due(campaign: Campaign) -> None:
    """Also of rounds without estimates: their first ones may be computed at this very moment."""
    drawn = campaign.rounds.exclude(state__in=Round.NOT_DRAWN).order_by("pk")
    for pk in drawn.values_list("pk", flat=True):
        jobs.request("recompute", pk, campaign=campaign)


def _digest(run: RunFile) -> str:
    """SHA-256 of the rankings: tag, topics, docnos in order."""
    digest = hashlib.sha256()
    for part in (run.tag, *run.lists.topics):
        digest.update(part.encode() + b"\0")
    digest.update(run.lists.indptr.astype("<i8").tobytes())
    docnos = run.lists.docnos
    for start in range(0, len(docnos), HASHED):
        digest.update(b"\0".join([*docnos[start : start + HASHED].tolist(), b""]))
    return digest.hexdigest()


def lists_of(run: Run, *, scores: bool = False) -> RankedLists:
    """What a run returns. Where two runs rank alike, their scores may still differ."""
    return load_lists(files.path_of(run.file), scores=scores)

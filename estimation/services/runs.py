"""Runs: the loader of run files (a kind of upload).

A run that is accepted after a round was drawn makes the round's estimates due again: it is
estimated from the judgments there are (see `estimation.services.estimates`).
"""

import hashlib

from estimation.core.data.ranked_lists import RankedLists
from estimation.formats.runs import RunFile, load_lists, read_run, save_run
from estimation.models import Round, Run
from estimation.services import files
from judging.models import Campaign, Upload
from judging.services import jobs
from judging.services.loaders import topic_ids
from judging.services.uploads import Load, Reading, loads

HASHED = 1 << 13  # docnos that are hashed at once


@loads(Upload.Kind.RUN)
def load(reading: Reading) -> Load:
    """Reads a run against the campaign's topics; waits for topics that are on their way."""
    topics = topic_ids(reading)
    if not topics:
        message = "Upload the topics first: a run is read against them."
        reading.problems.fatal(None, "topic", message)
    with reading.open() as file:
        run = read_run(file, reading.problems, topics=topics, limits=reading.limits)
    if run is None:
        return lambda: None
    if reading.campaign.runs.filter(tag=run.tag).exists():
        message = f"The campaign has a run “{run.tag}” already."
        reading.problems.error(None, "tag", message)
    reading.summary = {
        "tag": run.tag,
        "topics": len(run.lists.topics),
        "lines": run.lines,
        "lines_left_out": run.dropped,
    }
    return lambda: _create(reading, run)


def _create(reading: Reading, run: RunFile) -> None:
    Run.objects.create(
        campaign=reading.campaign,
        upload=reading.upload,
        tag=run.tag,
        file=files.keep_written("runs", lambda file: save_run(file, run)),
        digest=_digest(run),
        topic_count=len(run.lists.topics),
        line_count=len(run.scores),
    )
    make_estimates_due(reading.campaign)


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

"""New versions of runs.

Before anything is drawn, a new version takes the place of the old one: no probability rests on
either. Once a round is drawn, its sample, pool and probabilities were made with the old version,
and nothing of them may move. So the old version is withdrawn, which changes no value of another
run, and the new one joins as any run that comes later: it is estimated from the same judgments as
far as they reach, and a top-up draws what only it returns. There is no third way for data to go,
and whatever holds of withdrawn and of later runs holds of the two versions.

Whoever replaces a run has seen what that changes before: a new version is only checked at first,
and is taken in for exactly those drawn rounds that it was shown for.
"""

import itertools
import re
from dataclasses import asdict
from typing import Any

import numpy as np
from django.core.files.base import File

from estimation.formats.runs import RunFile
from estimation.models import Round, Run
from estimation.services import runs, withdrawals
from estimation.standing import RoundsAsJudged, RunLists, ranking_of
from judging.errors import UserError
from judging.models import Campaign, Upload, User
from judging.services import taking_in, uploads
from judging.services.uploads import Reading, Refused

MAX_TAG = 255


def replace(*, run: Run, by: User, file: "File[bytes]", name: str) -> Upload:
    """Stores a new version of a run. Once a round is drawn it waits for `confirm`.

    Raises UserError as `uploads.store` does, ``replaced`` (409) for a version that is not the
    latest, ``in_use`` (409) for the run or the baseline that a drawn round is about.
    """
    refuse_if_replaced(run.upload)
    withdrawals.refuse_if_asked_about(run)
    return uploads.store(
        campaign=run.campaign,
        by=by,
        file=file,
        name=name,
        kind=Upload.Kind.RUN,
        replaces=run.upload,
    )


def refuse_if_replaced(upload: Upload) -> None:
    """UserError ``replaced`` (409) where a newer version counts already."""
    newer = upload.replaced_by.filter(state=Upload.State.ACCEPTED).first()
    if newer is not None:
        message = f"{newer.name} has replaced this version already. Replace that one."
        raise UserError("replaced", message, status=409)


def confirm(*, upload: Upload, by: User) -> None:
    """Takes in a new version that was checked, for the rounds that its changes were told of.

    Any other file that was checked is taken in as well.

    Raises UserError ``not_checked`` (409), ``being_drawn`` (409), ``replaced`` (409), ``in_use``
    (409) as `replace` does, and ``changed_meanwhile`` (409) where another round was drawn since.
    """
    told = _told(upload.summary)
    if upload.replaces is not None and upload.state == Upload.State.CHECKED:
        refuse_if_replaced(upload.replaces)
        for run in Run.objects.filter(upload=upload.replaces).select_related("campaign"):
            withdrawals.refuse_if_asked_about(run)
        if told != drawn_rounds(upload.campaign):
            raise UserError("changed_meanwhile", _drawn_since(), status=409)
    taking_in.take_in(upload=upload, by=by, confirmed={"rounds": told})


def drawn_rounds(campaign: Campaign) -> list[int]:
    drawn = campaign.rounds.exclude(state__in=Round.NOT_DRAWN).order_by("number")
    return list(drawn.values_list("number", flat=True))


def _told(summary: dict[str, Any]) -> list[int]:
    return [line["round"] for line in summary.get("changes", {}).get("rounds", [])]


def _drawn_since() -> str:
    return (
        "A round was drawn since this file was checked. Upload it again, to see what it changes "
        "for that round too."
    )


# ---------------------------------------------------------------------------------- in the worker


def version_of(reading: Reading) -> Run | None:
    """The run that a file which is read replaces; None for one that replaces nothing.

    What may no longer be replaced is a problem of the file.
    """
    old = reading.upload.replaces
    if old is None:
        return None
    try:
        refuse_if_replaced(old)
    except UserError as error:
        reading.problems.fatal(None, "", error.message)
    run = Run.objects.filter(upload=old).first()
    if run is None:
        message = "The version that this file replaces is not there any more. Upload it as a run."
        reading.problems.fatal(None, "", message)
    return run


def tag_for(run: Run, file_tag: str) -> str:
    """The name of a new version: that of the run; after a draw one that is free."""
    if not drawn_rounds(run.campaign):
        return run.tag
    taken = set(run.campaign.runs.values_list("tag", flat=True))
    if file_tag not in taken:
        return file_tag
    name = re.sub(r"-v[0-9]+$", "", run.tag)[: MAX_TAG - 8]
    return next(tag for n in itertools.count(2) if (tag := f"{name}-v{n}") not in taken)


def changes(run: Run, file: RunFile) -> dict[str, Any]:
    """What a new version changes, in plain values: a line for every drawn round.

    Of the documents that it returns down to the round's depth: how many are in the pool, drawn and
    judged, and how many judged ones the version before has.
    """
    lists = file.lists
    before, now = ranking_of(run), RunLists(lists.topics, lists.indptr, lists.docnos)
    rounds = RoundsAsJudged(run.campaign)
    lines = [
        {**asdict(line), "judged_before": old.judged}
        for line, old in zip(rounds.of(now), rounds.of(before), strict=True)
    ]
    return {"rounds": lines, "same": _same(before, now)}


def _same(before: RunLists, now: RunLists) -> bool:
    """Whether it ranks the same documents in the same order."""
    return (
        list(before.topics) == list(now.topics)
        and np.array_equal(before.indptr, now.indptr)
        and np.array_equal(before.docnos, now.docnos)
    )


def take_its_place(reading: Reading, run: Run, file: RunFile) -> None:
    """The load: before a draw in the row of the old version, after it beside that one.

    Raises Refused where other rounds are drawn than those that somebody has confirmed.
    """
    drawn = drawn_rounds(reading.campaign)
    if drawn != reading.upload.summary.get("confirmed", {}).get("rounds", []):
        raise Refused(_drawn_since())
    by = reading.upload.created_by
    values = runs.columns_of(reading, file)
    if not drawn:
        if not Run.objects.filter(pk=run.pk, upload=reading.upload.replaces).update(**values):
            raise Refused("Another version has taken its place meanwhile. Replace that one.")
        return
    if run.withdrawn is None:
        withdrawals.move(run=run, by=by, action="replace run", withdrawn=True)
    Run.objects.create(campaign=reading.campaign, **values)
    runs.make_estimates_due(reading.campaign)

"""The design of a drafted round has a name: the digest of all that it follows from.

A preview carries the name of the design that it was worked out for, and so does the button beside
it. What is drawn is the design of that name or nothing, whatever was typed, uploaded or chosen by
somebody else in between.
"""

import hashlib
import json

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from estimation.material import taking_part
from estimation.models import Draw, Round, RoundBatch, Run
from estimation.plans import NAMED, OPTIONS
from estimation.selectors import complete_batches
from judging.errors import UserError
from judging.models import Batch, Campaign, Upload
from judging.services import jobs

PREVIEWED = "best two"
"""What previews have had since their last change: of one from before nothing is drawn."""
AGAIN = "Have it worked out again: by the button of its page, or by a PATCH of {} to the round"
"""How to mend a preview that is older than what the design follows from."""


def digest_of(row: Round) -> str:
    """The name of the design that the row stands for over the campaign's material as it is now."""
    campaign = row.campaign
    content = [
        {name: getattr(row, f"{name}_id" if name in NAMED else name) for name in OPTIONS},
        [campaign.depth, campaign.max_grade],
        sorted(campaign.topics.values_list("topic_id", flat=True)),
        sorted(taking_part(campaign).values_list("tag", "digest", "file")),
        _lengths(row),
        PREVIEWED,
        *topped_up(row),
        *_drawn_before(row),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _drawn_before(row: Round) -> list[object]:
    """The rounds that may count as well, where the round asks for that."""
    if not row.with_earlier:
        return []
    drawn = row.campaign.rounds.exclude(state__in=Round.NOT_DRAWN).filter(number__lt=row.number)
    return [sorted(drawn.values_list("number", flat=True))]


def topped_up(row: Round) -> list[object]:
    """What is judged, where the round is to add to it: complete batches; and what others kept."""
    if not row.top_up:
        return []
    kept = sorted(kept_pairs(row.campaign)) if takes_kept(row) else []
    return [sorted(complete(row.campaign).items()), *([kept] if kept else [])]


def require_topped_up(row: Round, adds_to: list[object]) -> None:
    """Raises NotYet, so that a job begins again, if other batches are complete than there were."""
    if topped_up(row) != adds_to:
        raise jobs.NotYet(0.0, "more was judged meanwhile")


def takes_kept(row: Round) -> bool:
    """Whether a top-up takes for certain what others kept: all but those that fill up chances."""
    return row.top_up and not row.is_of_a_union


def kept_pairs(campaign: Campaign) -> set[int]:
    """Row ids of judged pairs of batches that were not complete when their round ended."""
    return set(kept_draws(campaign).order_by().values_list("pair", flat=True))


def kept_draws(campaign: Campaign) -> QuerySet[Draw]:
    """What was drawn in batches that a round left open when it ended, and has all its labels.

    In the round itself it counts for nothing: which pairs come first in a batch is no sample.
    Nor does a batch count that was judged while somebody held a pair of one before it.
    """
    left_open = RoundBatch.objects.filter(
        round=OuterRef("round"),
        number__lte=OuterRef("batch_number"),
        batch__state=Batch.State.DROPPED,
    )
    rows = Draw.objects.filter(Exists(left_open), round__campaign=campaign)
    return rows.filter(Q(pair__decided=True) | Q(pair__judged__gte=F("pair__wanted")))


def _lengths(row: Round) -> list[int]:
    """The uploads of documents, where their lengths are what pairs cost."""
    if row.costs != Round.Costs.LENGTH:
        return []
    documents = row.campaign.uploads.filter(
        kind=Upload.Kind.DOCUMENTS, state=Upload.State.ACCEPTED, check_only=False
    )
    return sorted(documents.values_list("pk", flat=True))


def complete(campaign: Campaign) -> dict[int, int]:
    """How many batches of each drawn round are complete, in a row from the first; none without."""
    drawn = campaign.rounds.exclude(state__in=Round.NOT_DRAWN)
    found = {row.number: complete_batches(row) for row in drawn}
    return {number: batches for number, batches in found.items() if batches}


def withdrawn_choice(row: Round) -> str:
    """What a drafted round names and cannot be drawn with, and how to mend it; empty if nothing."""
    of = {"run": "is about", "baseline": "compares with"}
    for field, role in of.items():
        run: Run | None = getattr(row, field)
        if run is None or run.withdrawn is None:
            continue
        newer = _newer(run)
        other = f"its newer version {newer}" if newer else "another run"
        return (
            f"The run that this round {role}, {run.tag}, was withdrawn since. Choose {other} in "
            f"the question, or take {run.tag} back on its page."
        )
    return ""


def _newer(run: Run) -> str:
    """The tag of the last version that takes part in place of a run; empty if there is none."""
    uploads = Upload.objects.filter(campaign=run.campaign_id).exclude(replaces=None)
    following = dict(uploads.values_list("replaces_id", "pk"))
    tags = dict(taking_part(run.campaign).values_list("upload_id", "tag"))
    at, found = run.upload_id, ""
    while at in following:
        at = following.pop(at)
        found = tags.get(at, found)
    return found


def is_outdated(row: Round, design: str) -> bool:
    """Whether the preview was worked out for another design than this one, the row's by now."""
    return bool(row.preview) and row.preview.get("design") != design


def require(row: Round, design: str) -> None:
    """Raises UserError ``design_changed`` (409) unless the row stands for this design."""
    now = digest_of(row)
    if now != design:
        first = f"{AGAIN}. Then look" if is_outdated(row, now) else "Look"
        message = (
            "The round, its topics, its runs or what is judged have changed meanwhile, so nothing "
            f"is drawn. {first} at what it buys now, and draw that."
        )
        raise UserError("design_changed", message, status=409, field="design")


def refuse_if_over(campaign: Campaign) -> None:
    """Nothing is drawn then. UserError ``campaign_closed`` (409)."""
    if campaign.archived is not None:
        message = "The campaign is archived. Take it out of the archive first."
        raise UserError("campaign_closed", message, status=409)
    if campaign.state == Campaign.State.CLOSED:
        message = "The campaign is closed. Open it again first."
        raise UserError("campaign_closed", message, status=409)

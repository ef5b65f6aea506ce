"""Gold pairs: brought by a file or a program, marked from pairs, and retired. See `judging.golds`.

Whatever brings them is checked as a whole: where one cannot be taken, all that is wrong is told by
line and field, and none is added.
"""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models.functions import Now

from judging import golds
from judging.errors import UserError
from judging.formats import known_pairs
from judging.formats.known_pairs import KnownPair
from judging.formats.problems import Problems
from judging.models import Campaign, GoldPair, NormingPair, Pair, Topic, User
from judging.selectors import documents
from judging.services import audit, campaigns

RATES = (0, *range(3, 1001))
"""One pair in so many; 0 is none. More often than one in three people would notice."""


def read(
    campaign: Campaign, text: str, name: str, *, graded: bool = True
) -> tuple[list[KnownPair], Problems]:
    """The pairs of a file, and what is wrong with its lines, beside the campaign's material.

    They need grades where they are ``graded``.
    """
    problems = Problems(name)
    found = known_pairs.read(text, problems, max_grade=campaign.max_grade, graded=graded)
    check_material(campaign, found, problems)
    return found, problems


def check_material(campaign: Campaign, found: Sequence[KnownPair], problems: Problems) -> None:
    """Whether the campaign has the topics and documents."""
    topics = _topics(campaign, found)
    docnos = {pair.docno for pair in found}
    texts = set(documents(campaign).filter(docno__in=docnos).values_list("docno", flat=True))
    for pair in found:
        if pair.topic not in topics:
            problems.error(pair.line, "topic", "the campaign has no such topic")
        if pair.docno not in texts:
            problems.error(pair.line, "docno", "the campaign has no text of this document")


def _topics(campaign: Campaign, found: Iterable[KnownPair]) -> dict[str, int]:
    named = campaign.topics.filter(topic_id__in={pair.topic for pair in found})
    return dict(named.values_list("topic_id", "pk"))


def add(
    *, campaign: Campaign, by: User, found: Sequence[KnownPair], problems: Problems
) -> list[GoldPair]:
    """Adds all of them, or none. Raises UserError ``gold_invalid`` with ``errors`` by line."""
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        topics = _topics(campaign, found)
        _check_new(campaign, found, problems)
        _check_untold(campaign, found, problems)
        refuse_faults(problems, "gold_invalid")
        made = [_made(campaign, by, pair, topics[pair.topic]) for pair in found]
        audit.record("add gold", by=by, campaign=campaign, pairs=len(made))
    return made


def refuse_faults(problems: Problems, code: str) -> None:
    """Raises UserError with that code and all ``errors``, if anything is wrong."""
    if not problems.ok:
        told = problems.as_dict()
        count = told["error_count"]
        message = f"{count:,} problem{'s' if count > 1 else ''}: no pair has been added."
        raise UserError(code, message, data={"errors": told["errors"]})


def _check_new(campaign: Campaign, found: Sequence[KnownPair], problems: Problems) -> None:
    docnos = {pair.docno for pair in found}
    there = campaign.gold_pairs.filter(pair__docno__in=docnos)
    known = set(there.values_list("pair__topic__topic_id", "pair__docno"))
    for pair in found:
        if (pair.topic, pair.docno) in known:
            problems.error(pair.line, "docno", "this pair is gold already")


def _check_untold(campaign: Campaign, found: Sequence[KnownPair], problems: Problems) -> None:
    known = told(campaign)
    for pair in found:
        if (pair.topic, pair.docno) in known:
            problems.error(pair.line, "docno", "this pair is in the training or a norming session")


def told(campaign: Campaign) -> set[tuple[str, str]]:
    """Topics and documents of the pairs whose grade people are told, or talk about."""
    discussed = NormingPair.objects.filter(session__campaign=campaign)
    rows = (campaign.training_pairs, discussed)
    return {pair for each in rows for pair in each.values_list("topic__topic_id", "docno")}


def refuse_in_use(campaign: Campaign, found: Sequence[KnownPair], problems: Problems) -> None:
    """What people are to be told must not be gold in use: who knows the answer passes the check.

    Inside the caller's transaction, which has the campaign's lock, as `add` has.
    """
    rows = campaign.gold_pairs.filter(retired=None, pair__docno__in={each.docno for each in found})
    used = set(rows.values_list("pair__topic__topic_id", "pair__docno"))
    for pair in found:
        if (pair.topic, pair.docno) in used:
            problems.error(pair.line, "docno", "this pair is gold: retire it first")


def _made(campaign: Campaign, by: User, pair: KnownPair, topic: int) -> GoldPair:
    row = Pair.every.create(
        campaign=campaign, topic_id=topic, docno=pair.docno, gold=True, wanted=golds.MOST_LABELS
    )
    return GoldPair.objects.create(
        campaign=campaign, pair=row, accepted=list(pair.grades), reason=pair.reason, created_by=by
    )


def mark(
    *, campaign: Campaign, by: User, pair: Pair, grades: Sequence[int], reason: str
) -> GoldPair:
    """Makes gold of a sampled pair's document, as a pair beside it: labels that count stay labels.

    Raises UserError ``gold_invalid``.
    """
    if pair.other:
        message = "A preference has no grade. Gold is made of single documents."
        raise UserError("gold_invalid", message)
    topic = Topic.objects.get(pk=pair.topic_id).topic_id
    problems = Problems("")
    values = {"topic": topic, "docno": pair.docno, "grade": list(grades), "reason": reason}
    found = known_pairs.checked(1, values, problems, max_grade=campaign.max_grade)
    given = [found] if found else []
    check_material(campaign, given, problems)
    (made,) = add(campaign=campaign, by=by, found=given, problems=problems)
    return made


def retire(*, gold: GoldPair, by: User) -> None:
    """It is handed to nobody any more. UserError ``wrong_state`` (409)."""
    with transaction.atomic():
        if not GoldPair.objects.filter(pk=gold.pk, retired=None).update(retired=Now()):
            raise UserError("wrong_state", "This pair is retired already.", status=409)
        audit.record("retire gold", by=by, campaign=gold.campaign_id, target=gold)


def restore(*, gold: GoldPair, by: User) -> None:
    """It is mixed in again. UserError ``wrong_state``, or ``gold_told`` (409): people were told."""
    with transaction.atomic():
        campaign = campaigns.lock(gold.campaign_id)
        if (gold.pair.topic.topic_id, gold.pair.docno) in told(campaign):
            message = "This pair is in the training or a norming session: people know its grade."
            raise UserError("gold_told", message, status=409)
        rows = GoldPair.objects.filter(pk=gold.pk).exclude(retired=None)
        if not rows.update(retired=None):
            raise UserError("wrong_state", "This pair is in use already.", status=409)
        audit.record("restore gold", by=by, campaign=gold.campaign_id, target=gold)


def mix(*, campaign: Campaign, by: User, every: int) -> None:
    """From now on one pair in ``every`` is gold; none if it is 0. UserError ``rate_invalid``."""
    if every not in RATES:
        message = "Expected 0 for none, or a whole number from 3 to 1,000: one pair in so many."
        raise UserError("rate_invalid", message, field="every")
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        Campaign.objects.filter(pk=campaign.pk).update(gold_every=every)
        audit.record("mix gold", by=by, campaign=campaign, every=every)
    campaign.gold_every = every

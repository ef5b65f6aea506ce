"""Gold: pairs whose grade is known, mixed in among those of a sample; when, and to whom.

Whoever judges must not be able to tell which pair is gold, so it comes as any other does:

* of the topic in hand, and only while a sampled pair of it could be handed out instead, so that no
  topic has nothing but gold, and no batch lasts longer by it;
* at a turn that a keyed hash of person and turn chooses, which only the site can work out;
* in the place of a single document: among preferences, where two are compared, there is none;
* never beside the sampled pair of the same document: whoever had one of the two is not handed the
  other, as seeing a document twice would tell.

None of this looks at a grade. Whom a sampled pair goes to hangs on hashes and on who had its
document as gold, so that labels are missing at random; and gold waits while its document still
lacks labels as a sampled pair, so that it takes nobody away from it.
"""

from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils.crypto import salted_hmac

from judging.gold_turns import chance_of_gold
from judging.models import Assignment, Batch, BatchPair, Campaign, GoldPair, User

MOST_LABELS = 32_767
"""Of a gold pair: everybody may judge it."""
LACKING = [Batch.State.PREPARING, Batch.State.WAITING, Batch.State.OPEN, Batch.State.HELD]


def is_due(campaign: Campaign, user: User, *, had: int, gold: int) -> bool:
    """Whether the next pair shall be gold, after ``had`` pairs of which ``gold`` were."""
    chance = chance_of_gold(campaign.gold_every, had=had, gold=gold)
    turn = f"{campaign.pk}/{user.pk}/{had}"
    digest = salted_hmac("judging.golds", turn, algorithm="sha256").digest()
    return int.from_bytes(digest[:8], "big") < chance * 2.0**64


def turns() -> dict[str, Count]:
    """Of somebody's assignments in a campaign: how many there are, and of gold."""
    return {"had": Count("pk"), "gold": Count("pk", filter=Q(gold=True))}


def free(assessor: Any, topic: Any) -> QuerySet[GoldPair]:
    """Gold of a topic that the assessor may be handed; both are row ids, or expressions for them.

    What they have put off is not among it (see ``put_off``).
    """
    mine = Assignment.objects.filter(assessor=assessor)
    had = mine.filter(pair=OuterRef("pair"))
    seen = mine.filter(**same_document("pair__"))
    lacking = BatchPair.objects.filter(
        **same_document("pair__"),
        pair__other="",
        pair__decided=False,
        pair__judged__lt=F("labels"),
        batch__state__in=LACKING,
    )
    of_topic = GoldPair.objects.filter(pair__topic=topic, retired=None).order_by()
    return of_topic.filter(~Exists(had), ~Exists(seen), ~Exists(lacking))


def put_off(assessor: int, topic: int) -> QuerySet[Assignment]:
    """Gold of a topic that the assessor wanted to see later."""
    return Assignment.objects.filter(
        assessor=assessor, pair__topic=topic, gold=True, state=Assignment.State.LAPSED
    )


def met(assessor: Any) -> Exists:
    """Of a row of a batch: whether the assessor has had its document as gold."""
    mine = Assignment.objects.filter(assessor=assessor, gold=True)
    return Exists(mine.filter(**same_document("pair__")))


def same_document(outer: str = "") -> dict[str, OuterRef]:
    """Conditions of rows that name a pair: it is of the topic and document of the outer row's.

    They are those of the index of pairs: without the campaign, databases look through all that
    somebody ever judged, for every outer row.
    """
    names = ("campaign", "topic", "docno")
    return {f"pair__{name}": OuterRef(f"{outer}{name}") for name in names}


def is_in_use() -> Exists:
    """Of a row with campaign, topic and docno: whether gold of this document may be handed out."""
    rows = GoldPair.objects.filter(**same_document(), retired=None)
    return Exists(rows.order_by())

"""What the list of campaigns has of each: its card, and what waits for an organizer."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.db.models import (
    Aggregate,
    Count,
    Exists,
    OuterRef,
    Q,
    QuerySet,
    Sum,
)

from judging import norming
from judging.guests import SAID
from judging.models import (
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Job,
    Membership,
    Pair,
    Upload,
    User,
)
from judging.selectors import campaigns_of, refused


@dataclass(frozen=True)
class Need:
    """What waits for an organizer: how many of what, and the page where it is settled."""

    count: int
    name: str
    page: str


@dataclass(frozen=True)
class CampaignCard:
    """What one campaign asks of one user; ``norming``: sessions that wait for them.

    ``to_judge``: whether pairs are handed out, or will be as soon as somebody asks for one.
    """

    campaign: Campaign
    organizes: bool
    assesses: bool
    pairs: int
    finished: int
    judged: int
    needs: list[Need]
    norming: list[norming.Own]
    to_judge: bool

    @property
    def waits(self) -> bool:
        """Whether there is something to judge, or to talk about."""
        return self.to_judge or bool(self.norming)

    @property
    def left(self) -> int:
        """Pairs of open batches; one that two rounds wait for counts in both."""
        return self.pairs - self.finished


def home(user: User) -> list[CampaignCard]:
    """The user's campaigns, newest first, in a fixed number of queries."""
    campaigns = list(campaigns_of(user))
    roles = set(user.memberships.values_list("campaign_id", "role"))
    drawn = Batch.objects.filter(state__in=[Batch.State.OPEN, Batch.State.COMPLETE])
    counted = (
        drawn.order_by().values("campaign").annotate(all=Sum("pair_count"), left=Sum("remaining"))
    )
    pairs = {each["campaign"]: each["all"] for each in counted}
    left = {each["campaign"]: each["left"] for each in counted}
    unjudged = Batch.objects.filter(state__in=[Batch.State.WAITING, Batch.State.OPEN])
    to_judge = set(unjudged.order_by().values_list("campaign_id", flat=True).distinct())
    mine = Assignment.objects.filter(SAID, assessor=user)
    judged = _by_campaign(mine, "campaign", Count("pk"))
    needs = _needs()
    talks = defaultdict(list)
    for each in norming.due(user):
        talks[each.session.campaign_id].append(each)
    return [
        CampaignCard(
            campaign=row,
            organizes=user.is_superuser or (row.pk, Membership.Role.ORGANIZER) in roles,
            assesses=(row.pk, Membership.Role.ASSESSOR) in roles,
            pairs=pairs.get(row.pk, 0),
            finished=pairs.get(row.pk, 0) - left.get(row.pk, 0),
            judged=judged.get(row.pk, 0),
            needs=[] if row.state == Campaign.State.CLOSED else needs.get(row.pk, []),
            norming=talks[row.pk],
            to_judge=row.state == Campaign.State.OPEN and row.pk in to_judge,
        )
        for row in campaigns
    ]


def _needs() -> dict[int, list[Need]]:
    """Of every campaign, what does not go on without an organizer, by four statements."""
    rejected = Upload.objects.filter(refused())
    unread = Upload.objects.filter(state__in=[Upload.State.STORED, Upload.State.READING])
    failed = Job.objects.filter(state=Job.State.FAILED, campaign__isnull=False)
    failed = failed.filter(~Q(kind="upload") | Q(target__in=unread.values("pk")))
    held = Membership.objects.filter(role=Membership.Role.ASSESSOR, held__isnull=False)
    kinds: list[tuple[QuerySet[Any], str, str]] = [
        (failed, "failed job", "campaign-home"),
        (_skipped_pairs(), "skipped pair", "decisions"),
        (rejected, "rejected file", "material"),
        (held, "held assessor", "people"),
    ]
    found: dict[int, list[Need]] = defaultdict(list)
    for rows, name, page in kinds:
        for campaign, count in _by_campaign(rows, "campaign", Count("pk")).items():
            found[campaign].append(Need(count, name, page))
    return found


def _by_campaign(rows: QuerySet[Any], campaign: str, value: Aggregate) -> dict[int, int]:
    counted = rows.order_by().values(campaign).annotate(value=value)
    return dict(counted.values_list(campaign, "value"))


def _skipped_pairs() -> QuerySet[Pair]:
    """Pairs of open batches that somebody skipped and that still lack labels."""
    skipped = Assignment.objects.filter(pair=OuterRef("pk"), state=Assignment.State.SKIPPED)
    waited_for = BatchPair.objects.filter(
        pair=OuterRef("pk"), batch__state=Batch.State.OPEN, labels__gt=OuterRef("judged")
    )
    return Pair.objects.filter(Exists(skipped), Exists(waited_for), decided=False)

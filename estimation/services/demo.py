"""The demo campaign: loaded once, its first batches judged by five simulated assessors.

They claim pairs and record judgments through the same services as people. Where their work ends
is chosen so that a visitor can finish a batch alone: of the current batch a dozen pairs wait for
their last label, and the pairs of the next ones wait for one label each.
"""

from collections.abc import Sequence
from pathlib import Path

from django.conf import settings
from django.db import transaction

from demo.assessors import AssessorProfile, load_profiles, load_truth, simulated_grade, uniform
from estimation.models import Round
from estimation.plans import RoundPlan
from estimation.services import importing, rounds
from judging.models import BatchPair, Campaign, Job, Membership, Pair, User
from judging.services import assignments, audit, batches, campaigns, judgments, members

COLLECTION = Path(settings.BASE_DIR) / "demo" / "collection"
SEED = 20
COMPLETE_BATCHES = 7
AHEAD_BATCHES = 4
LEFT_FOR_VISITOR = 12
PLAN = RoundPlan(
    measure="DCG@10",
    reported=["P@10", "P@5"],
    goal=Round.Goal.ABSOLUTE,
    method=Round.Method.POISSON,  # its batches are known, so that labels can be given ahead
    budget=1000,
    batch_size=50,
    labels=2,
    seed="demo",
)


def load() -> Campaign | None:
    """Loads the demo into an installation that has no campaign yet; None if there is one."""
    if Campaign.objects.exists():
        return None
    organizer = _accounts()
    campaign, uploaded = importing.import_folder(COLLECTION, by=organizer)
    if campaign is None:
        rejected = [upload.name for upload in uploaded if upload.state != upload.State.ACCEPTED]
        raise RuntimeError(f"the demo collection is damaged: {', '.join(rejected)}")
    _invite(campaign, organizer)
    row = rounds.draft(campaign=campaign, by=organizer, plan=PLAN)
    importing.finish(Job.objects.get(kind="preview", target=row.pk))
    rounds.request_draw(row=row, by=organizer)
    importing.finish(Job.objects.get(kind="draw", target=row.pk))
    campaigns.open_for_judging(campaign=campaign, by=organizer)
    _judge_first_batches(campaign, row)
    return campaign


def _accounts() -> User:
    with transaction.atomic():
        for username, password, _ in settings.DEMO_SIGN_INS:
            user, _created = User.objects.get_or_create(username=username)
            user.is_superuser = user.is_staff = username == "admin"
            user.is_organizer = username == "organizer"
            user.set_password(password)
            user.save()
        audit.record("create demo accounts", by=None)
    return User.objects.get(username="organizer")


def _invite(campaign: Campaign, organizer: User) -> None:
    profiles = load_profiles(COLLECTION / "campaign.json")
    for username in ("assessor", *(profile.username for profile in profiles)):
        role = Membership.Role.ASSESSOR
        members.add(campaign=campaign, by=organizer, username=username, role=role)
    for profile in profiles:
        User.objects.filter(username=profile.username).update(
            is_active=False, first_name=profile.name
        )


def _judge_first_batches(campaign: Campaign, row: Round) -> None:
    profiles = load_profiles(COLLECTION / "campaign.json")
    truth = load_truth(COLLECTION / "qrels.txt.gz")
    users = {user.username: user for user in User.objects.all()}
    ahead = _open(campaign, COMPLETE_BATCHES + 1 + AHEAD_BATCHES)
    for batch_pairs in ahead:
        for pair in batch_pairs:
            profile = _assessor(profiles, pair, turn=0)
            _judge(pair, users[profile.username], profile, truth)
    for number, batch_pairs in enumerate(ahead[: COMPLETE_BATCHES + 1]):
        last = number == COMPLETE_BATCHES
        for pair in batch_pairs[: -LEFT_FOR_VISITOR if last else None]:
            profile = _assessor(profiles, pair, turn=1)
            _judge(pair, users[profile.username], profile, truth)
        if not last:
            importing.finish(Job.objects.get(kind="recompute", target=row.pk))


def _open(campaign: Campaign, number: int) -> list[list[Pair]]:
    opened = [batch for _ in range(number) if (batch := batches.open_next(campaign.pk))]
    return [
        [
            link.pair
            for link in BatchPair.objects.filter(batch=batch)
            .select_related("pair__topic", "pair__campaign")
            .order_by("pk")
        ]
        for batch in opened
    ]


def _assessor(profiles: Sequence[AssessorProfile], pair: Pair, *, turn: int) -> AssessorProfile:
    """Two different assessors for the two labels, picked by hash: at random, not by content."""
    first = int(uniform("who", pair.topic.topic_id, pair.docno) * len(profiles))
    step = 1 + int(uniform("next", pair.topic.topic_id, pair.docno) * (len(profiles) - 1))
    return profiles[(first + turn * step) % len(profiles)]


def _judge(
    pair: Pair, by: User, profile: AssessorProfile, truth: dict[tuple[str, str], int]
) -> None:
    assignment = assignments.claim(pair=pair, by=by)
    if assignment is None:
        raise RuntimeError(f"no place for {by} on {pair}")
    topic, docno = pair.topic.topic_id, pair.docno
    grade = simulated_grade(truth, profile, seed=SEED, topic=topic, docno=docno)
    key = f"demo-{profile.username}-{pair.pk}"
    assignment.pair = pair
    judgments.record(
        assignment=assignment, by=by, saying=judgments.Saying(grade=grade, key=key, seconds=None)
    )

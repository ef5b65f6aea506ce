"""The demo campaign: loaded once, its first batches judged by five simulated assessors.

They claim pairs and record judgments through the same services as people. The first round is over:
a machine judge was asked, batches were planned by what was found, and the round ended by its rule.
Where work on the second one ends is chosen so that a visitor can finish a batch alone: of the
current batch a dozen pairs wait for their last label, and the pairs of the next ones wait for one
label each.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from demo.assessors import AssessorProfile, load_profiles, load_truth, simulated_grade, uniform
from demo.judge import MODEL, serving
from estimation.endpoints import Endpoint
from estimation.machines import AGREEMENT, ASKING
from estimation.models import MachineJudge, Round
from estimation.plans import RoundPlan
from estimation.services import importing, rounds
from estimation.services.machines import judges
from judging.models import (
    Assignment,
    BatchPair,
    Campaign,
    Job,
    Judgment,
    Membership,
    Pair,
    User,
)
from judging.services import assignments, audit, batches, campaigns, judgments, members

COLLECTION = Path(settings.BASE_DIR) / "demo" / "collection"
SEED = 20
COMPLETE_BATCHES = 7
AHEAD_BATCHES = 4
LEFT_FOR_VISITOR = 12
ENDPOINT = "demo"
MACHINE = judges.MachinePlan(name="Demo judge", endpoint=ENDPOINT, model=MODEL, max_calls=800)
PLAN_OF_BEST = RoundPlan(
    measure="DCG@10",
    goal=Round.Goal.WINNER,
    method=Round.Method.ADAPTIVE,
    prior=Round.Prior.SCORES,
    budget=1200,
    batch_size=100,
    extra_share=0.3,
    negligible=0.75,
    stop_when=Round.Stop.BEST,
    seed="demo-best",
)
LEAST_SECONDS, CHUNK = 12.0, 100
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
    crowd, (machine, grades) = Crowd(), _ask_machine(campaign, organizer)
    best = _drawn(campaign, organizer, replace(PLAN_OF_BEST, predictions=grades))
    campaigns.open_for_judging(campaign=campaign, by=organizer)
    _judge_until_it_stops(crowd, best)
    _judge_first_batches(crowd, _drawn(campaign, organizer, PLAN))
    importing.finish(Job.objects.get(kind=AGREEMENT, target=machine.pk))
    _as_if_they_had_read(campaign)
    return campaign


def _as_if_they_had_read(campaign: Campaign) -> None:
    """All is judged in a moment; whoever looks at people shall not find that nobody has read."""
    rows = Judgment.objects.filter(assignment__campaign=campaign).select_related("assignment")
    given = list(rows.order_by("-pk"))
    at = dict.fromkeys((row.assessor_id for row in given), timezone.now())
    for row in given:
        row.seconds = round(LEAST_SECONDS * (1 + 2 * uniform("seconds", row.key)), 1)
        row.created = row.assignment.created = row.assignment.changed = at[row.assessor_id]
        at[row.assessor_id] -= timedelta(seconds=row.seconds)
    Judgment.objects.bulk_update(given, ["seconds", "created"], batch_size=CHUNK)
    held = [row.assignment for row in given]
    Assignment.objects.bulk_update(held, ["created", "changed"], batch_size=CHUNK)


def _drawn(campaign: Campaign, organizer: User, plan: RoundPlan) -> Round:
    row = rounds.draft(campaign=campaign, by=organizer, plan=plan)
    importing.finish(Job.objects.get(kind="preview", target=row.pk))
    rounds.request_draw(row=row, by=organizer)
    importing.finish(Job.objects.get(kind="draw", target=row.pk))
    return row


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


@contextlib.contextmanager
def _endpoint() -> Iterator[None]:
    """Offers the demo's language model to this process, while it is at work."""
    with serving() as url:
        settings.MACHINE_ENDPOINTS[ENDPOINT] = Endpoint(ENDPOINT, url, (MODEL,))
        try:
            yield
        finally:
            del settings.MACHINE_ENDPOINTS[ENDPOINT]


def _ask_machine(campaign: Campaign, organizer: User) -> tuple[MachineJudge, str]:
    """Has the machine judge predict grades, which the worker would do on a site that goes on; with
    the name that these have."""
    with _endpoint():
        judge = judges.create(campaign=campaign, by=organizer, plan=MACHINE)
        judges.start(judge=judge, by=organizer)
        importing.finish(Job.objects.get(kind=ASKING, target=judge.pk))
    judge.refresh_from_db()
    if judge.upload is None:
        raise RuntimeError(f"the demo's machine judge said nothing: {judge.ended}")
    importing.finish(Job.objects.get(kind="upload", target=judge.upload.pk))
    return judge, campaign.predictions.get(upload=judge.upload).name


class Crowd:
    """The simulated assessors: who judges a pair is decided by its hash, and so is the grade."""

    def __init__(self) -> None:
        self.profiles = load_profiles(COLLECTION / "campaign.json")
        self.truth = load_truth(COLLECTION / "qrels.txt.gz")
        self.users = {user.username: user for user in User.objects.all()}

    def judge(self, pair: Pair, *, turn: int) -> None:
        """The first or the second label of a pair, unless that assessor has given one before."""
        profile = _assessor(self.profiles, pair, turn=turn)
        by = self.users[profile.username]
        if not pair.assignments.filter(assessor=by).exists():
            _judge(pair, by, profile, self.truth)


def _judge_until_it_stops(crowd: Crowd, row: Round) -> None:
    while not row.has_ended:
        (pairs,) = _open(row.campaign, 1)
        with transaction.atomic():  # a visitor waits for it: one commit a batch, not one a label
            for pair in pairs:
                for turn in range(pair.wanted):
                    crowd.judge(pair, turn=turn)
        for kind in ("recompute", "stop-round", "plan-batch"):
            for job in Job.objects.filter(kind=kind, target=row.pk):
                importing.finish(job)
        row.refresh_from_db()


def _judge_first_batches(crowd: Crowd, row: Round) -> None:
    ahead = _open(row.campaign, COMPLETE_BATCHES + 1 + AHEAD_BATCHES)
    for batch_pairs in ahead:
        with transaction.atomic():
            for pair in batch_pairs:
                crowd.judge(pair, turn=0)
    for number, batch_pairs in enumerate(ahead[: COMPLETE_BATCHES + 1]):
        last = number == COMPLETE_BATCHES
        with transaction.atomic():
            for pair in batch_pairs[: -LEFT_FOR_VISITOR if last else None]:
                crowd.judge(pair, turn=1)
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

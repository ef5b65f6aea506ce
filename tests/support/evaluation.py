"""A campaign with material, and rounds of it in every state, through the services."""

from collections.abc import Mapping
from unittest import mock

from django.db.models.functions import Now

from estimation.models import Report, Round
from estimation.services import reports, rounds
from estimation.services.report_files.table import REPORTS
from judging.models import Campaign, User, WorkerHeartbeat
from judging.services import assignments, campaigns, judgments
from tests.support import factories
from tests.support.material import Material, small_material

SMALL = small_material(topics=6, documents=24, runs=4, depth=12)


def with_material(*, material: Material = SMALL, slug: str = "test") -> Campaign:
    """Topics, documents and runs, all read."""
    organizer = factories.user(f"organizer-{slug}", is_organizer=True)
    made = campaigns.create(
        by=organizer, plan=campaigns.CampaignPlan(name=f"The {slug}", slug=slug)
    )
    factories.stored_upload(made, material.topics, name="topics.tsv", kind="topics")
    factories.stored_upload(made, material.documents, name="docs.jsonl", kind="documents")
    for name, content in material.runs.items():
        factories.stored_upload(made, content, name=name, kind="run")
    return made


def plan(**values: object) -> rounds.RoundPlan:
    """By default by Poisson sampling, whose batches are all there once it is drawn."""
    chosen = {"measure": "DCG@10", "budget": 60, "batch_size": 20, "seed": "s"}
    chosen |= {"method": "poisson"}
    return rounds.RoundPlan(**chosen | {"reported": ["P@10"], "extra_share": 0.5} | values)


def drafted(made: Campaign, **values: object) -> Round:
    """A round whose preview is there."""
    row = rounds.draft(campaign=made, by=made.created_by, plan=plan(**values))
    factories.run_due_jobs()
    row.refresh_from_db()
    return row


def drawn(made: Campaign, **values: object) -> Round:
    """A drawn round of an open campaign with two assessors."""
    row = drafted(made, **values)
    draw(made, row)
    return row


def draw(made: Campaign, row: Round) -> None:
    """A round whose preview is there; also opens its campaign to two assessors."""
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    if made.state != Campaign.State.OPEN:
        campaigns.open_for_judging(campaign=made, by=made.created_by)
        factories.assessors(made, "anna", "ben")


def judge(
    made: Campaign, labels: int, *, truth: Mapping[tuple[str, str], int] = SMALL.truth
) -> int:
    """Has the assessors give so many labels by turns, as long as there is work; then recomputes."""
    given = 0
    assessors = list(User.objects.filter(memberships__campaign=made, memberships__role="assessor"))
    idle = 0
    while given < labels and idle < len(assessors):
        by = assessors[(given + idle) % len(assessors)]
        assignment = assignments.claim_next(campaign=made, by=by)
        if assignment is None:
            idle += 1
            continue
        assignment.pair.campaign = made  # or every judgment would read it again
        idle, grade = 0, truth[assignment.pair.topic.topic_id, assignment.pair.docno]
        saying = judgments.Saying(grade=grade, key=f"{made.pk}-{assignment.pk}")
        judgments.record(assignment=assignment, by=by, saying=saying)
        given += 1
    factories.run_due_jobs()
    return given


def worker_alive() -> None:
    WorkerHeartbeat.objects.update_or_create(name="a worker", defaults={"seen": Now()})


def made_reports(row: Round, *names: str) -> list[Report]:
    """Those named, or all of them."""
    only = {name: REPORTS[name] for name in names or REPORTS}
    reports.request(row=row, by=row.created_by)
    with mock.patch.dict(REPORTS, only, clear=True):
        factories.run_due_jobs()
    made = Report.objects.filter(estimate_set__round=row)
    return list(made.filter(name__in=names) if names else made)


def judge_one(campaign: Campaign) -> None:
    """One judgment by whoever finds work; what is due after it stays due."""
    for by in User.objects.filter(memberships__campaign=campaign, memberships__role="assessor"):
        if assignment := assignments.claim_next(campaign=campaign, by=by):
            truth = SMALL.truth[assignment.pair.topic.topic_id, assignment.pair.docno]
            saying = judgments.Saying(grade=truth, key=f"one-{assignment.pk}")
            judgments.record(assignment=assignment, by=by, saying=saying)
            return


def batch_states(row: Round) -> list[str]:
    return list(row.round_batches.order_by("number").values_list("batch__state", flat=True))

"""What stands in the database about one campaign, looked at between two acts."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models.functions import Now

from estimation import selectors, work
from estimation.models import Draw, EstimateSet, Round, RoundBatch, Run, StoredPool
from judging.models import (
    Assignment,
    AuditEntry,
    Batch,
    BatchPair,
    Campaign,
    CrowdGuest,
    Decision,
    Exclusion,
    Job,
    Judgment,
    Membership,
    NormingPair,
    NormingSession,
    Pair,
    TrainingPair,
    Upload,
    User,
)
from judging.statements import Slot, reads
from judging.stuck import stuck_pairs
from tests.support.machine.rows import Rows, beside

PENDING = (Job.State.QUEUED, Job.State.RUNNING)


@dataclass(frozen=True)
class RoundSeen:
    """``batches`` are the judging side's, in their order; ``used`` those that estimates rest on."""

    row: Round
    batches: list[Batch]
    draws: Counter[int]
    sets: int
    used: int | None

    @property
    def state(self) -> str:
        return self.row.state

    @property
    def preview(self) -> dict[str, Any]:
        return dict(self.row.preview)

    @property
    def complete(self) -> int:
        return selectors.complete_batches(self.row)

    @property
    def all_complete(self) -> bool:
        return all(batch.state == Batch.State.COMPLETE for batch in self.batches)


@dataclass(frozen=True)
class Seen:
    campaign: Campaign
    members: dict[tuple[str, str], int]
    rounds: dict[int, RoundSeen]
    uploads: dict[int, Upload]
    tags: dict[str, int]
    jobs: list[Job]
    failed: list[Job]
    batches: list[Batch]
    batch_pairs: list[BatchPair]
    pairs: dict[int, Pair]
    assignments: list[Assignment]
    judgments: list[Judgment]
    decisions: dict[int, Decision]
    audits: list[tuple[str, str, Any]]
    exclusions: list[Exclusion]
    done: set[str]
    talks: list[NormingSession]

    @classmethod
    def of(cls, campaign: Campaign) -> "Seen":
        """``failed`` is what pages show of failed work, the jobs are all there are."""
        here = {"campaign": campaign.pk}
        users = {row.pk: row for row in _USERS()}
        pairs = {row.pk: row for row in _PAIRS(**here)}
        assignments = {row.pk: row for row in _ASSIGNMENTS(**here)}
        for row in assignments.values():
            beside(row, assessor=users[row.assessor_id], pair=pairs[row.pair_id])
        judgments = _JUDGMENTS(**here)
        for said in judgments:
            beside(
                said,
                assessor=users[said.assessor_id],
                assignment=assignments[said.assignment_id],
            )
        exclusions = _EXCLUSIONS(**here)
        for out in exclusions:
            beside(out, assessor=users[out.assessor_id])
        (now,) = _CAMPAIGNS(**here)
        jobs, batches = _JOBS(**here), _BATCHES(**here)
        gave_up = any(job.state == Job.State.FAILED for job in jobs)
        return cls(
            campaign=now,
            members={(users[user].username, role): pk for user, role, pk in _MEMBERS.rows(**here)},
            rounds=_rounds(campaign, batches),
            uploads={row.pk: row for row in _UPLOADS(**here)},
            tags=dict(_TAGS.rows(**here)),
            jobs=jobs,
            failed=[each.job for each in work.failed(now)] if gave_up else [],
            batches=batches,
            batch_pairs=_BATCH_PAIRS(**here),
            pairs=pairs,
            assignments=list(assignments.values()),
            judgments=judgments,
            decisions={row.pair_id: row for row in _DECISIONS(**here)},
            audits=_AUDITS.rows(**here),
            exclusions=exclusions,
            done={users[user].username for (user,) in _DONE.rows(**here)},
            talks=_TALKS(**here),
        )

    @property
    def state(self) -> str:
        return self.campaign.state

    @property
    def scale(self) -> int:
        return len(self.campaign.grades)

    @cached_property
    def is_drawn(self) -> bool:
        return any(batch.state != Batch.State.PREPARING for batch in self.batches)

    @property
    def is_being_drawn(self) -> bool:
        return any(job.kind == "draw" and job.state in PENDING for job in self.jobs)

    @cached_property
    def pending(self) -> list[Job]:
        return [job for job in self.jobs if job.state in PENDING]

    @property
    def given_up(self) -> list[Job]:
        """Also files whose reading failed, which stand where files are and not with failed work."""
        return [job for job in self.jobs if job.state == Job.State.FAILED]

    @property
    def named(self) -> set[int]:
        """Uploads of runs that a round names, and of topics that are taught or talked about."""
        runs = [run for each in self.rounds.values() for run in (each.row.run, each.row.baseline)]
        taught = TrainingPair.objects.filter(campaign=self.campaign)
        discussed = NormingPair.objects.filter(session__campaign=self.campaign)
        told = {
            pk
            for rows in (taught, discussed)
            for pk in rows.values_list("topic__upload", flat=True)
        }
        return {run.upload_id for run in runs if run is not None} | told

    @cached_property
    def excluded(self) -> set[str]:
        """Those whose work counts nowhere."""
        return {row.assessor.username for row in self.exclusions if row.ended is None}

    @cached_property
    def given_pairs(self) -> set[str]:
        """Whoever was given a pair."""
        return {row.assessor.username for row in self.assignments}

    @cached_property
    def set_aside(self) -> set[int]:
        """Assignments that count nowhere."""
        return {row.pk for row in self.assignments if row.state == "excluded"}

    @cached_property
    def gold(self) -> set[int]:
        """Pairs that are gold."""
        return {pk for pk, row in self.pairs.items() if row.gold}

    @cached_property
    def by_assignment(self) -> dict[int, Assignment]:
        return {row.pk: row for row in self.assignments}

    @cached_property
    def judgments_by_key(self) -> dict[tuple[str, str], Judgment]:
        return {(row.assessor.username, row.key): row for row in self.judgments}

    @cached_property
    def unfinished(self) -> list[Pair]:
        """Pairs that open batches wait for."""
        opened = {batch.pk for batch in self.batches if batch.state == Batch.State.OPEN}
        return [
            self.pairs[row.pair_id]
            for row in self.batch_pairs
            if row.batch_id in opened and self.lacks(row)
        ]

    def lacks(self, row: BatchPair) -> bool:
        pair = self.pairs[row.pair_id]
        return not pair.decided and pair.judged < row.labels

    def job(self, kind: str, target: int) -> Job | None:
        return next((job for job in self.jobs if (job.kind, job.target) == (kind, target)), None)

    def is_pending(self, kind: str, target: int) -> bool:
        job = self.job(kind, target)
        return job is not None and job.state in PENDING

    def has_failed(self, kind: str, target: int) -> bool:
        job = self.job(kind, target)
        return job is not None and job.state == Job.State.FAILED

    def is_shown_as_failed(self, kind: str, target: int) -> bool:
        return any((job.kind, job.target) == (kind, target) for job in self.failed)

    @cached_property
    def stuck(self) -> set[int]:
        """Pairs that the organizer is asked to decide on."""
        return {row.pair for row in stuck_pairs(self.campaign)}

    def live_leases(self) -> Counter[int]:
        rows = Assignment.objects.filter(
            pair__campaign=self.campaign, state=Assignment.State.LEASED, lease_until__gte=Now()
        )
        return Counter(rows.values_list("pair_id", flat=True))


def _rounds(campaign: Campaign, every: list[Batch]) -> dict[int, RoundSeen]:
    here = {"campaign": campaign.pk}
    if not (rows := _ROUNDS(**here)):
        return {}
    runs = {row.pk: row for row in _RUNS(**here)}
    pools = {row.pk: row for row in _POOLS(**here)}
    by_id = {batch.pk: batch for batch in every}
    batches: dict[int, list[Batch]] = {}
    for round_id, batch in _LINKS.rows(**here):
        batches.setdefault(round_id, []).append(by_id[batch])
    draws: dict[int, Counter[int]] = {}
    for round_id, pair in _DRAWS.rows(**here):
        draws.setdefault(round_id, Counter())[pair] += 1
    sets = Counter(round_id for (round_id,) in _SETS.rows(**here))
    for row in rows:
        beside(
            row,
            run=runs.get(row.run_id or 0),
            baseline=runs.get(row.baseline_id or 0),
            pool=pools.get(row.pool_id or 0),
        )
    return {
        row.number: RoundSeen(
            row,
            batches.get(row.pk, []),
            draws.get(row.pk, Counter()),
            sets[row.pk],
            latest.batches if (latest := selectors.latest_estimates(row)) else None,
        )
        for row in rows
    }


HERE = Slot("campaign")
_USERS = Rows(User.objects.all)
_PAIRS = Rows(lambda: Pair.every.filter(campaign=HERE).order_by("pk"))
_ASSIGNMENTS = Rows(lambda: Assignment.objects.filter(pair__campaign=HERE).order_by("pk"))
_JUDGMENTS = Rows(lambda: Judgment.objects.filter(assignment__pair__campaign=HERE).order_by("pk"))
_EXCLUSIONS = Rows(lambda: Exclusion.objects.filter(campaign=HERE).order_by("pk"))
_CAMPAIGNS = Rows(lambda: Campaign.objects.filter(pk=HERE))
_UPLOADS = Rows(lambda: Upload.objects.filter(campaign=HERE))
_JOBS = Rows(lambda: Job.objects.filter(campaign=HERE).order_by("pk"))
_BATCHES = Rows(lambda: Batch.objects.filter(campaign=HERE).order_by("number"))
_BATCH_PAIRS = Rows(lambda: BatchPair.objects.filter(batch__campaign=HERE).order_by("pk"))
_DECISIONS = Rows(lambda: Decision.objects.filter(pair__campaign=HERE))
_TALKS = Rows(lambda: NormingSession.objects.filter(campaign=HERE).order_by("pk"))
_ROUNDS = Rows(lambda: Round.objects.filter(campaign=HERE))
_RUNS = Rows(lambda: Run.objects.filter(campaign=HERE))
_POOLS = Rows(
    lambda: StoredPool.objects.filter(pk__in=Round.objects.filter(campaign=HERE).values("pool"))
)
_MEMBERS = reads(
    lambda: Membership.objects.filter(campaign=HERE).values_list("user_id", "role", "pk")
)
_TAGS = reads(lambda: Run.objects.filter(campaign=HERE).values_list("tag", "upload_id"))
_AUDITS = reads(
    lambda: AuditEntry.objects.filter(campaign=HERE).values_list("action", "target", "data")
)
_DONE = reads(
    lambda: (
        CrowdGuest.objects.filter(link__campaign=HERE)
        .exclude(finished=None)
        .exclude(account=None)
        .values_list("account_id")
    )
)
_LINKS = reads(
    lambda: (
        RoundBatch.objects.filter(round__campaign=HERE)
        .order_by("number")
        .values_list("round_id", "batch_id")
    )
)
_DRAWS = reads(lambda: Draw.objects.filter(round__campaign=HERE).values_list("round_id", "pair_id"))
_SETS = reads(lambda: EstimateSet.objects.filter(round__campaign=HERE).values_list("round_id"))

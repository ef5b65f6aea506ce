"""What stands in the database about one campaign, looked at between two acts."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from estimation import selectors, work
from estimation.models import Draw, EstimateSet, Round, RoundBatch, Run
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
    Pair,
    TrainingPair,
    Upload,
)
from judging.stuck import stuck_pairs

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

    @classmethod
    def of(cls, campaign: Campaign) -> "Seen":
        """``failed`` is what pages show of failed work, the jobs are all there are."""
        pairs = {row.pk: row for row in Pair.every.filter(campaign=campaign).order_by("pk")}
        assignments = list(
            Assignment.objects.filter(pair__campaign=campaign)
            .select_related("assessor", "pair")
            .order_by("pk")
        )
        now = Campaign.objects.get(pk=campaign.pk)
        return cls(
            campaign=now,
            members={
                (row.user.username, row.role): row.pk
                for row in Membership.objects.filter(campaign=campaign).select_related("user")
            },
            rounds=_rounds(campaign),
            uploads={row.pk: row for row in Upload.objects.filter(campaign=campaign)},
            tags=dict(Run.objects.filter(campaign=campaign).values_list("tag", "upload")),
            jobs=list(Job.objects.filter(campaign=campaign).order_by("pk")),
            failed=[each.job for each in work.failed(now)],
            batches=list(Batch.objects.filter(campaign=campaign).order_by("number")),
            batch_pairs=list(BatchPair.objects.filter(batch__campaign=campaign).order_by("pk")),
            pairs=pairs,
            assignments=assignments,
            judgments=list(
                Judgment.objects.filter(assignment__pair__campaign=campaign)
                .select_related("assessor", "assignment")
                .order_by("pk")
            ),
            decisions={
                row.pair_id: row for row in Decision.objects.filter(pair__campaign=campaign)
            },
            audits=list(
                AuditEntry.objects.filter(campaign=campaign).values_list("action", "target", "data")
            ),
            done=set(
                CrowdGuest.objects.filter(link__campaign=campaign)
                .exclude(finished=None)
                .values_list("account__username", flat=True)
            ),
            exclusions=list(
                Exclusion.objects.filter(campaign=campaign)
                .select_related("assessor")
                .order_by("pk")
            ),
        )

    @property
    def state(self) -> str:
        return self.campaign.state

    @property
    def scale(self) -> int:
        return len(self.campaign.grades)

    @property
    def is_drawn(self) -> bool:
        return any(batch.state != Batch.State.PREPARING for batch in self.batches)

    @property
    def is_being_drawn(self) -> bool:
        return any(job.kind == "draw" and job.state in PENDING for job in self.jobs)

    @property
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

    @property
    def excluded(self) -> set[str]:
        """Those whose work counts nowhere."""
        return {row.assessor.username for row in self.exclusions if row.ended is None}

    @property
    def given_pairs(self) -> set[str]:
        """Whoever was given a pair."""
        return {row.assessor.username for row in self.assignments}

    @property
    def set_aside(self) -> set[int]:
        """Assignments that count nowhere."""
        return {row.pk for row in self.assignments if row.state == "excluded"}

    @property
    def gold(self) -> set[int]:
        """Pairs that are gold."""
        return {pk for pk, row in self.pairs.items() if row.gold}

    @property
    def by_assignment(self) -> dict[int, Assignment]:
        return {row.pk: row for row in self.assignments}

    @property
    def judgments_by_key(self) -> dict[tuple[str, str], Judgment]:
        return {(row.assessor.username, row.key): row for row in self.judgments}

    @property
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

    def stuck(self) -> set[int]:
        """Pairs that the organizer is asked to decide on."""
        return {row.pair for row in stuck_pairs(self.campaign)}

    def live_leases(self) -> Counter[int]:
        rows = Assignment.objects.filter(
            pair__campaign=self.campaign, state=Assignment.State.LEASED, lease_until__gte=Now()
        )
        return Counter(rows.values_list("pair_id", flat=True))


def _rounds(campaign: Campaign) -> dict[int, RoundSeen]:
    rows = Round.objects.filter(campaign=campaign).select_related("run", "baseline", "pool")
    links = RoundBatch.objects.filter(Q(round__campaign=campaign)).select_related("batch")
    batches: dict[int, list[Batch]] = {}
    for link in links.order_by("number"):
        batches.setdefault(link.round_id, []).append(link.batch)
    draws: dict[int, Counter[int]] = {}
    for round_id, pair in Draw.objects.filter(round__campaign=campaign).values_list(
        "round", "pair"
    ):
        draws.setdefault(round_id, Counter())[pair] += 1
    sets: dict[int, list[EstimateSet]] = {}
    for each in EstimateSet.objects.filter(round__campaign=campaign).order_by("number"):
        sets.setdefault(each.round_id, []).append(each)
    return {
        row.number: RoundSeen(
            row,
            batches.get(row.pk, []),
            draws.get(row.pk, Counter()),
            len(sets.get(row.pk, [])),
            latest.batches if (latest := selectors.latest_estimates(row)) else None,
        )
        for row in rows
    }

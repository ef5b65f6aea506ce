"""The estimation side in the admin's pages: to look at. Rounds are made by services only."""

from django.contrib import admin

from estimation.models import (
    Draw,
    Estimate,
    EstimateSet,
    MachineAnswer,
    MachineJudge,
    MachinePrompt,
    Prediction,
    Report,
    Round,
    RoundBatch,
    Run,
    StoredPool,
)
from judging.admin import ReadOnly


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ("tag", "campaign", "topic_count", "line_count", "created")
    list_select_related = ("campaign",)
    list_filter = ("campaign",)
    search_fields = ("tag",)


@admin.register(Prediction)
class PredictionAdmin(ReadOnly):
    list_display = ("name", "campaign", "form", "topic_count", "pair_count", "created")
    list_select_related = ("campaign",)
    list_filter = ("campaign",)
    search_fields = ("name",)


@admin.register(StoredPool)
class PoolAdmin(ReadOnly):
    list_display = ("__str__", "campaign", "depth", "topic_count", "run_count", "pair_count")
    list_select_related = ("campaign",)


@admin.register(Round)
class RoundAdmin(ReadOnly):
    list_display = ("__str__", "campaign", "state", "goal", "measure", "budget", "drawn")
    list_select_related = ("campaign",)
    list_filter = ("state", "campaign")


@admin.register(RoundBatch)
class RoundBatchAdmin(ReadOnly):
    list_display = ("__str__", "round", "number", "batch")
    list_select_related = ("round", "batch")


@admin.register(Draw)
class DrawAdmin(ReadOnly):
    list_display = ("pair", "round", "batch_number", "count", "probability")
    list_select_related = ("pair", "round")
    raw_id_fields = ("pair",)


@admin.register(EstimateSet)
class EstimateSetAdmin(ReadOnly):
    list_display = ("__str__", "round", "batches", "pair_count", "label_count", "created", "digest")
    list_select_related = ("round",)


@admin.register(Estimate)
class EstimateAdmin(ReadOnly):
    list_display = (
        "run", "estimate_set", "measure", "estimator", "value", "unknown", "low", "high", "rank",
    )  # fmt: skip
    list_select_related = ("run", "estimate_set")
    list_filter = ("primary", "estimator", "unknown")


@admin.register(Report)
class ReportAdmin(ReadOnly):
    list_display = ("name", "estimate_set", "size", "digest", "created")
    list_select_related = ("estimate_set",)


@admin.register(MachineJudge)
class MachineJudgeAdmin(ReadOnly):
    list_display = ("name", "campaign", "endpoint", "model", "state", "calls", "max_calls")
    list_select_related = ("campaign",)
    list_filter = ("campaign",)


@admin.register(MachinePrompt)
class MachinePromptAdmin(ReadOnly):
    list_display = ("judge", "number", "digest", "created_by", "created")
    list_select_related = ("judge", "created_by")


@admin.register(MachineAnswer)
class MachineAnswerAdmin(ReadOnly):
    list_display = ("prompt", "topic", "docno", "outcome", "grade", "model", "created")
    list_select_related = ("prompt", "topic")
    list_filter = ("outcome",)

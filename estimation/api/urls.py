"""Addresses of the estimation side, under /api/campaigns/{slug}/."""

from django.urls import URLPattern, URLResolver, path

from estimation.api import (
    compared,
    data,
    label_quality,
    log,
    machines,
    overview,
    predictions,
    results,
    rounds,
    work,
)

campaign_urlpatterns: list[URLPattern | URLResolver] = [
    path("audit/", log.Audit.as_view(), name="api-audit"),
    path("overview/", overview.Overview.as_view(), name="api-overview"),
    path("runs/", rounds.Runs.as_view(), name="api-runs"),
    path("runs/<int:run>/", data.RunDetail.as_view(), name="api-run"),
    path("runs/<int:run>/versions/", data.RunVersions.as_view(), name="api-run-versions"),
    path("uploads/<int:upload>/take-in/", data.TakeIn.as_view(), name="api-take-in"),
    path("topics/<int:topic>/", data.TopicDetail.as_view(), name="api-topic"),
    path("runs/<int:run>/withdrawal/", rounds.RunWithdrawal.as_view(), name="api-run-withdrawal"),
    path("rounds/", rounds.Rounds.as_view(), name="api-rounds"),
    path("rounds/<int:number>/", rounds.RoundDetail.as_view(), name="api-round"),
    path("rounds/<int:number>/draw/", rounds.RoundDraw.as_view(), name="api-draw"),
    path("rounds/<int:number>/end/", rounds.RoundEnd.as_view(), name="api-round-end"),
    path("rounds/<int:number>/pause/", rounds.RoundPause.as_view(), name="api-round-pause"),
    path(
        "rounds/<int:number>/extension/", rounds.RoundExtension.as_view(), name="api-round-extend"
    ),
    path("rounds/<int:number>/reach/", rounds.RoundReach.as_view(), name="api-reach"),
    path("rounds/<int:number>/batches/", rounds.RoundBatches.as_view(), name="api-batches"),
    path("predictions/", predictions.Predictions.as_view(), name="api-predictions"),
    path(
        "predictions/<int:prediction>/",
        predictions.PredictionDetail.as_view(),
        name="api-prediction",
    ),
    path("machine-endpoints/", machines.Endpoints.as_view(), name="api-machine-endpoints"),
    path("machines/", machines.Machines.as_view(), name="api-machines"),
    path("machines/<int:machine>/", machines.MachineDetail.as_view(), name="api-machine"),
    path(
        "machines/<int:machine>/answers/",
        machines.MachineAnswers.as_view(),
        name="api-machine-answers",
    ),
    path("machines/<int:machine>/start/", machines.MachineStart.as_view(), name="api-start"),
    path("machines/<int:machine>/stop/", machines.MachineStop.as_view(), name="api-stop"),
    path("work/", work.FailedWork.as_view(), name="api-work"),
    path("work/<int:job>/retry/", work.WorkRetry.as_view(), name="api-work-retry"),
    path("estimates/", results.Estimates.as_view(), name="api-estimates"),
    path("ranking/", results.Ranking.as_view(), name="api-ranking"),
    path("label-quality/", label_quality.LabelQuality.as_view(), name="api-label-quality"),
    path("comparison/", compared.Comparison.as_view(), name="api-comparison"),
    path("comparison/documents/", compared.ComparedDocuments.as_view(), name="api-compared"),
    path("reports/", results.Reports.as_view(), name="api-reports"),
    path("reports/names/", results.ReportNames.as_view(), name="api-report-names"),
    path("reports/<int:report>/", results.ReportFile.as_view(), name="api-report"),
]

"""Pages of the estimation side."""

from django.urls import URLPattern, URLResolver, include, path

from estimation.views import (
    compared,
    home,
    live,
    log,
    machines,
    plan,
    predictions,
    reports,
    rounds,
    runs,
    topics,
    work,
)

in_round: list[URLPattern | URLResolver] = [
    path("", rounds.round_detail, name="round-detail"),
    path("preview/", rounds.round_preview, name="round-preview"),
    path("change/", rounds.round_change, name="round-change"),
    path("draw/", rounds.round_draw, name="round-draw"),
    path("pause/", plan.round_pause, name="round-pause"),
    path("resume/", plan.round_resume, name="round-resume"),
    path("extend/", plan.round_extend, name="round-extend"),
    path("end/", plan.round_end, name="round-end"),
    path("discard/", rounds.round_discard, name="round-discard"),
    path("ranking/", live.live, name="live"),
    path("ranking/pairs/", live.live_pairs, name="live-pairs"),
    path("ranking/topics/", live.live_topics, name="live-topics"),
    path("ranking/history/", live.live_history, name="live-history"),
    path("ranking/batches/", live.live_batches, name="live-batches"),
    path("ranking/labels/", live.live_labels, name="live-labels"),
    path("ranking/compare/", live.compare, name="compare"),
    path("ranking/compare/topics/<int:pk>/", compared.compared_topic, name="compare-topic"),
    path("reports/", reports.report_list, name="reports"),
    path("reports/make/", reports.report_make, name="report-make"),
    path("reports/names/", reports.report_names, name="report-names"),
    path("reports/<int:pk>/", reports.report_view, name="report-view"),
    path("reports/<int:pk>/file/", reports.report_file, name="report-file"),
]

of_machine: list[URLPattern | URLResolver] = [
    path("", machines.machine_detail, name="machine-detail"),
    path("change/", machines.machine_change, name="machine-change"),
    path("start/", machines.machine_start, name="machine-start"),
    path("stop/", machines.machine_stop, name="machine-stop"),
    path("remove/", machines.machine_remove, name="machine-remove"),
    path("answers/<int:number>/file/", machines.machine_answers, name="machine-answers"),
]

of_run: list[URLPattern | URLResolver] = [
    path("", runs.run_detail, name="run-detail"),
    path("about/", runs.run_about, name="run-about"),
    path("replace/", runs.run_replace, name="run-replace"),
    path("withdraw/", runs.run_withdraw, name="run-withdraw"),
    path("back/", runs.run_back, name="run-back"),
]

in_campaign: list[URLPattern | URLResolver] = [
    path("", home.campaign_home, name="campaign-home"),
    path("bar/", home.campaign_bar, name="campaign-bar"),
    path("material/runs/", runs.run_list, name="run-list"),
    path("material/runs/fields/", runs.run_fields, name="run-fields"),
    path("material/runs/<int:pk>/", include(of_run)),
    path("material/files/<int:pk>/take-in/", runs.upload_take_in, name="upload-take-in"),
    path("material/topics/<int:pk>/", topics.topic_detail, name="topic-detail"),
    path("material/predictions/", predictions.prediction_list, name="prediction-list"),
    path("material/predictions/<int:pk>/", predictions.prediction_detail, name="prediction-detail"),
    path("material/machines/", machines.machine_list, name="machine-list"),
    path("material/machines/new/", machines.machine_new, name="machine-new"),
    path("material/machines/<int:pk>/", include(of_machine)),
    path("work/<int:pk>/again/", work.work_again, name="work-again"),
    path("settings/log/", log.audit_log, name="audit-log"),
    path("settings/log/file/", log.audit_file, name="audit-file"),
    path("rounds/", plan.round_list, name="round-list"),
    path("rounds/new/", rounds.round_new, name="round-new"),
    path("rounds/<int:number>/", include(in_round)),
    # Without a number: those of the current round.
    path("ranking/", live.live_current, name="live-current"),
    path("ranking/", live.live_current, name="live"),
    path("reports/", reports.report_current, name="report-list"),
]

urlpatterns: list[URLPattern | URLResolver] = [path("c/<slug:slug>/", include(in_campaign))]

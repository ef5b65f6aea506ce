"""Estimation's job handlers."""

from estimation.machines import AGREEMENT, ASKING
from estimation.services import (  # noqa: F401  (loaders register themselves)
    campaign_rows,
    drawing,
    estimates,
    label_quality,
    planning,
    predictions,
    previews,
    reports,
    run_files,
    stopping,
    unnamed_files,
)
from estimation.services.machines import agreement, asking, publishing
from estimation.work import QUALITY
from judging.services import jobs

jobs.handles("preview")(previews.preview)
jobs.handles("draw", give_up=drawing.give_back)(drawing.draw_round)
jobs.handles("recompute")(estimates.recompute)
jobs.handles(QUALITY)(label_quality.look)
jobs.handles("plan-batch")(planning.plan_batch)
jobs.handles(stopping.STOP)(stopping.stop)
jobs.handles("report")(reports.make)
jobs.handles(ASKING, give_up=publishing.give_up)(asking.ask)
jobs.handles(AGREEMENT)(agreement.compare)
jobs.handles(unnamed_files.SWEEP)(unnamed_files.sweep)
campaign_rows.register()

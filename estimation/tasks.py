"""Estimation's job handlers (the Celery task is judging.tasks.run_job)."""

from estimation.services import drawing, estimates, previews, reports, runs  # noqa: F401
from judging.services import jobs

jobs.handles("preview")(previews.preview)
jobs.handles("draw")(drawing.draw_round)
jobs.handles("recompute")(estimates.recompute)
jobs.handles("report")(reports.make)

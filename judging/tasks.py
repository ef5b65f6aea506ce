"""The one Celery task, and judging's job handlers."""

from celery import shared_task

from judging.services import (  # noqa: F401  (loaders register themselves)
    decisions,
    jobs,
    known_grades,
    loaders,
    uploads,
)


@shared_task(name="judging.tasks.run_job")
def run_job(job_id: int) -> None:
    jobs.run(job_id)


jobs.handles("upload", give_up=uploads.give_up)(uploads.read)
jobs.handles("judge-from-qrels")(known_grades.judge)
jobs.handles("decide-rest")(decisions.rest)

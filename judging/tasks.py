"""The one Celery task."""

from celery import shared_task

from judging.services import jobs


@shared_task(name="judging.tasks.run_job")
def run_job(job_id: int) -> None:
    jobs.run(job_id)

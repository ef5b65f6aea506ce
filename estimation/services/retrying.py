"""The way back for work that failed."""

from django.db import transaction

from estimation.machines import ASKING
from estimation.models import MachineJudge
from estimation.services.machines import judges
from judging.errors import UserError
from judging.models import Job, Upload, User
from judging.selectors import DRAW
from judging.services import audit, jobs, present, uploads


def retry(*, job: Job, by: User | None) -> Job:
    """Has failed work done once more, as it was asked for: the job as it is then.

    ``by`` is None at the command line. Raises UserError ``not_failed`` (409), ``gone`` (404), and
    ``draw_again`` (409) for a draw, whose round is a draft again: what is drawn is asked for by
    whoever sees what it is.
    """
    if job.kind == DRAW:
        message = "The round is a draft again. Look at it, and draw it once more."
        raise UserError("draw_again", message, status=409)
    if job.kind == "upload":
        upload = present.now(Upload.objects.filter(pk=job.target), "What this work was for")
        return uploads.read_again(upload=upload, by=by)
    if job.kind == ASKING and job.state == Job.State.FAILED:
        judge = present.now(MachineJudge.objects.filter(pk=job.target), "What this work was for")
        judges.start(judge=judge, by=by or judge.asked_by or judge.created_by)
        return Job.objects.get(pk=job.pk)
    with transaction.atomic():
        again = jobs.retry(job)
        audit.record("try again", by=by, campaign=job.campaign_id, target=job, work=job.kind)
    return again

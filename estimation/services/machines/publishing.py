"""The grades of a machine judge as a file of predicted grades, which is read as any other one."""

import hashlib
import io

from django.core.files.base import File
from django.db import transaction

from estimation.machine_versions import graded_lines
from estimation.machines import AGREEMENT
from estimation.models import MachineJudge
from judging.errors import UserError
from judging.models import Upload
from judging.services import audit, jobs, uploads


def conclude(job: jobs.Running, pk: int, why: str) -> None:
    """Ends the asking and hands in what was answered; ``why`` is empty if all was asked."""
    with transaction.atomic():
        job.fence()
        judge = MachineJudge.objects.select_related("campaign", "upload").filter(pk=pk).first()
        if judge is None:
            return
        jobs.request(AGREEMENT, pk, campaign=judge.campaign_id)
        try:
            upload = _hand_in(judge)
        except UserError as error:
            upload, why = judge.upload, f"{why} {error.message}".strip()
        state = MachineJudge.State.STOPPED if why else MachineJudge.State.DONE
        ended = {"state": state, "ended": why[:500], "plan_file": "", "upload": upload}
        MachineJudge.objects.filter(pk=pk).update(**ended)
        audit.record("machine judge ended", by=None, campaign=judge.campaign, target=judge, why=why)


def give_up(pk: int, error: str) -> None:
    """The job has failed for good: what was answered is kept, and it can be started again."""
    at_work = MachineJudge.objects.filter(pk=pk, state__in=MachineJudge.AT_WORK)
    at_work.update(state=MachineJudge.State.STOPPED, ended=f"Asking failed: {error}"[:500])


def _hand_in(judge: MachineJudge) -> Upload | None:
    """The upload with all grades of the latest prompt; the one that there is if it has them all."""
    prompt = judge.prompts.last()
    content = "".join(graded_lines(prompt.pk)).encode() if prompt else b""
    same = judge.upload is not None and judge.upload.sha256 == hashlib.sha256(content).hexdigest()
    if not content or same or prompt is None:
        return judge.upload
    name = _free_name(judge, f"{judge.name} v{prompt.number}")
    file: File[bytes] = File(io.BytesIO(content), name=name)
    by = judge.asked_by or judge.created_by
    kind = Upload.Kind.PREDICTIONS
    return uploads.store(campaign=judge.campaign, by=by, file=file, name=name, kind=kind)


def _free_name(judge: MachineJudge, wanted: str) -> str:
    """A file name that no predicted grades of the campaign have yet."""
    taken = set(judge.campaign.uploads.values_list("name", flat=True))
    taken |= {f"{name}.tsv" for name in judge.campaign.predictions.values_list("name", flat=True)}
    name, number = f"{wanted}.tsv", 1
    while name in taken:
        number += 1
        name = f"{wanted} ({number}).tsv"
    return name

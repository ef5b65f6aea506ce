"""The versions of what machine judges are asked, and which predicted grades are of which.

A file tells by its name which version it is of, and by its content that it is: it has the grades
that this version had when the file came in. Whoever uploads another one under such a name uploads
grades of their own.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from estimation.machines import MachineAnswer, MachineJudge, MachinePrompt
from judging.models import Campaign, Upload

FILE_NAME = re.compile(r"(?P<judge>.+) v(?P<number>[0-9]+)( \([0-9]+\))?\.tsv")
_COLUMNS = ("topic__topic_id", "docno", "grade")
CHUNK = 5000


@dataclass(frozen=True)
class Origin:
    """Which version of which machine judge predicted grades are of."""

    judge: MachineJudge
    version: int


def origins_of(campaign: Campaign) -> dict[int, Origin]:
    """By the ids of uploads; none of files that people brought."""
    prompts = MachinePrompt.objects.filter(judge__campaign=campaign).select_related("judge")
    named = {(each.judge.name, str(each.number)): each for each in prompts}
    if not named:
        return {}
    found = {}
    files = campaign.uploads.filter(kind=Upload.Kind.PREDICTIONS)
    for pk, name, sha256, created in files.values_list("pk", "name", "sha256", "created"):
        match = FILE_NAME.fullmatch(name)
        prompt = named.get((match["judge"], match["number"])) if match else None
        if prompt and (prompt.judge.upload_id == pk or _answered(prompt.pk, sha256, created)):
            found[pk] = Origin(prompt.judge, prompt.number)
    return found


def graded_lines(prompt: int, until: datetime | None = None) -> Iterator[str]:
    """The grades of a version of a prompt, by its id, as lines of a file: all, or of that time."""
    graded = MachineAnswer.objects.filter(prompt=prompt, outcome=MachineAnswer.Outcome.GRADED)
    if until is not None:
        graded = graded.filter(created__lte=until)
    rows = graded.order_by("topic__topic_id", "docno").values_list(*_COLUMNS)
    return (f"{topic}\t{docno}\t{grade}\n" for topic, docno, grade in rows.iterator(CHUNK))


@lru_cache(maxsize=1024)
def _answered(prompt: int, sha256: str, when: datetime) -> bool:
    """Whether the grades of that time have this digest. No answer ever becomes another one."""
    content = hashlib.sha256()
    for line in graded_lines(prompt, when):
        content.update(line.encode())
    return content.hexdigest() == sha256

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

from django.db.models import Count, Q, QuerySet

from estimation.machines import NANO, MachineAnswer, MachineJudge, MachinePrompt
from judging.formats.csvfile import csv_lines
from judging.models import Campaign, Upload

FILE_NAME = re.compile(r"(?P<judge>.+) v(?P<number>[0-9]+)( \([0-9]+\))?\.tsv")
_COLUMNS = ("topic__topic_id", "docno", "grade")
CHUNK = 5000


@dataclass(frozen=True)
class Origin:
    """Which version of which machine judge predicted grades are of."""

    judge: MachineJudge
    version: int


@dataclass(frozen=True)
class MachineVersion:
    """How many pairs it was asked about, how many grades it gave, and the files that these came in
    with, the earliest first."""

    prompt: MachinePrompt
    answered: int
    graded: int
    files: list[Upload]

    @property
    def names(self) -> list[str]:
        """By which rounds name its grades."""
        read = [getattr(each, "prediction", None) for each in self.files]
        return [each.name for each in read if each is not None]


def versions_of(judge: MachineJudge) -> list[MachineVersion]:
    """All of a machine judge, the latest first."""
    origins = {
        pk: each.version
        for pk, each in origins_of(judge.campaign).items()
        if each.judge.pk == judge.pk
    }
    uploads = judge.campaign.uploads.filter(pk__in=origins).select_related("prediction")
    files = list(uploads.defer("errors", "warnings").order_by("pk"))
    graded = Count("answers", filter=Q(answers__outcome=MachineAnswer.Outcome.GRADED))
    rows = judge.prompts.annotate(answered=Count("answers"), graded=graded).order_by("-number")
    own = {row.number: [each for each in files if origins[each.pk] == row.number] for row in rows}
    return [MachineVersion(row, row.answered, row.graded, own[row.number]) for row in rows]


def version_of(upload: Upload | None, versions: list[MachineVersion]) -> int | None:
    """The number of the one among all that a file is of."""
    return next((each.prompt.number for each in versions if upload in each.files), None)


ANSWERED = (
    *("topic", "docno", "outcome", "grade", "reply", "model", "tokens_in", "tokens_out", "cost"),
    *("tries", "seconds", "when"),
)


def answers_of(prompt: MachinePrompt) -> "QuerySet[MachineAnswer]":
    """What became of every pair that a version was asked about, in the order of its file."""
    rows = MachineAnswer.objects.filter(prompt=prompt).select_related("topic")
    named = (name for name in ANSWERED if name not in ("topic", "when"))
    return rows.only("topic__topic_id", *named, "created").order_by("topic__topic_id", "docno")


def answer_lines(prompt: MachinePrompt) -> Iterator[str]:
    """The same as CSV, read from the database bit by bit."""
    rows = (
        (
            each.topic.topic_id,
            *(each.docno, each.outcome, each.grade, each.reply, each.model),
            *(each.tokens_in, each.tokens_out, each.cost / NANO),
            *(each.tries, each.seconds, each.created.isoformat()),
        )
        for each in answers_of(prompt).iterator(CHUNK)
    )
    return csv_lines(ANSWERED, rows)


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

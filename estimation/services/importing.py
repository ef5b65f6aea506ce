"""A whole campaign from a folder: ``topics.*``, ``docs.*``, ``runs/``, ``qrels.*``, as uploads.

The same uploads and the same readers as in the browser, done in this process instead of a worker.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.files.base import File

from judging.errors import UserError
from judging.formats.problems import Problems, UnreadableError, show
from judging.formats.qrels import read_qrels
from judging.models import Campaign, Job, Upload, User
from judging.services import campaigns, jobs, uploads

PATTERNS = (
    (Upload.Kind.TOPICS, "topics.*"),
    (Upload.Kind.DOCUMENTS, "docs.*"),
    (Upload.Kind.RUN, "runs/*"),
    (Upload.Kind.QRELS, "qrels.*"),
)
TOPIC_SUFFIXES = (".jsonl", ".sgml", ".trec", ".txt", ".xml", ".tsv")
GRADE_NAMES = ("Not relevant", "Relevant")
GRADE_FIELDS = ("grade", "name", "meaning")
"""Grades count from 0 in the order in which they stand, so that ``grade`` says nothing more."""
Progress = Callable[[Upload], None]


@dataclass(frozen=True)
class FoundFile:
    kind: str
    path: Path


def import_folder(
    folder: Path,
    *,
    by: User,
    plan: campaigns.CampaignPlan | None = None,
    progress: Progress = lambda upload: None,
) -> tuple[Campaign | None, list[Upload]]:
    """Makes a campaign of the folder. A ``campaign.json`` in it names, explains and grades it.

    All or nothing: if any file is rejected the campaign is removed again, None is returned for
    it, and the uploads tell why.

    Raises UserError ``folder_incomplete`` when there are no topics or no runs.
    """
    found = list(_found(folder))
    kinds = {each.kind for each in found}
    if Upload.Kind.TOPICS not in kinds or Upload.Kind.RUN not in kinds:
        message = f"{folder}: expected topics.* and run files in runs/."
        raise UserError("folder_incomplete", message)
    campaign = campaigns.create(by=by, plan=plan or plan_of(folder))
    done = []
    for each in found:
        upload = _upload(campaign, by, each)
        progress(upload)
        done.append(upload)
    if any(upload.state != Upload.State.ACCEPTED for upload in done):
        _remove(campaign)
        return None, done
    return campaign, done


def _found(folder: Path) -> Iterator[FoundFile]:
    for kind, pattern in PATTERNS:
        there = (path for path in folder.glob(pattern) if path.is_file())
        paths = sorted(path for path in there if not path.name.startswith("."))
        if kind == Upload.Kind.RUN:
            yield from (FoundFile(kind, path) for path in paths)
        elif paths:
            yield FoundFile(kind, min(paths, key=_preference))


def left_out(folder: Path) -> Iterator[str]:
    """What one would think is read, and is not, with the reason."""
    found = list(_found(folder))
    for kind, pattern in PATTERNS:
        taken = [each.path for each in found if each.kind == kind]
        for path in sorted({*folder.glob(pattern)} - {*taken}):
            if not path.name.startswith("."):
                why = f"{taken[0].name} is read" if taken and path.is_file() else "it is no file"
                yield f"{path.relative_to(folder)}: {why}"
    if (path := folder / "campaign.json").exists():
        facts = _facts(path)
        grades = {name for grade in facts.get("grades", ()) for name in grade}
        for where, given, read in (("", facts, SHAPES), (" of a grade", grades, GRADE_FIELDS)):
            for name in sorted({*given} - {*read}):
                yield f"{path.name}: {show(name)}{where} is none of {', '.join(read)}"


def _preference(path: Path) -> tuple[int, str]:
    """Of several files of one kind the one with the most structure is taken."""
    suffix = path.name.removesuffix(".gz")
    order = [suffix.endswith(known) for known in TOPIC_SUFFIXES]
    return (order.index(True) if True in order else len(order), path.name)


def _upload(campaign: Campaign, by: User, found: FoundFile) -> Upload:
    with found.path.open("rb") as file:
        upload = uploads.store(
            campaign=campaign, by=by, file=File(file), name=found.path.name, kind=found.kind
        )
    finish(Job.objects.get(kind="upload", target=upload.pk))
    upload.refresh_from_db()
    return upload


def finish(job: Job) -> None:
    """Does the job here, or waits for the worker that has taken it."""
    while True:
        jobs.run(job.pk)
        job.refresh_from_db()
        if job.state in (Job.State.DONE, Job.State.FAILED):
            return
        time.sleep(0.2)


def _remove(campaign: Campaign) -> None:
    for upload in campaign.uploads.all():
        upload.file.delete(save=False)
    campaign.delete()


def plan_of(folder: Path) -> campaigns.CampaignPlan:
    """The campaign that ``campaign.json`` describes, or one named after the folder."""
    path = folder / "campaign.json"
    if not path.exists():
        return campaigns.CampaignPlan(name=folder.resolve().name, grades=_grades_of_qrels(folder))
    facts = _facts(path)
    guidelines = facts.get("guidelines", "")
    return campaigns.CampaignPlan(
        name=facts.get("name") or folder.resolve().name,
        slug=facts.get("slug", ""),
        guidelines="\n\n".join(guidelines) if isinstance(guidelines, list) else guidelines,
        grades=[
            {"name": grade["name"], "meaning": grade.get("meaning", "")}
            for grade in facts.get("grades", campaigns.DEFAULT_GRADES)
        ],
        depth=facts.get("depth", 100),
    )


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise UserError("campaign_json", f"{path}: not JSON: {error}") from None
    if not isinstance(facts, dict):
        raise UserError("campaign_json", f"{path}: expected a JSON object.")
    for name, (wanted, fits) in SHAPES.items():
        if name in facts and not fits(facts[name]):
            message = f"{path}: {name}: expected {wanted}, found {show(json.dumps(facts[name]))}."
            raise UserError("campaign_json", message, field=name)
    return facts


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text_or_paragraphs(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, list) and all(map(_is_text, value)))


def _are_grades(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_grade, value))


def _is_grade(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return _is_text(value.get("name")) and _is_text(value.get("meaning", ""))


SHAPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "name": ("text", _is_text),
    "slug": ("text", _is_text),
    "guidelines": ("text, or a list of paragraphs", _is_text_or_paragraphs),
    "grades": ("a list of objects with a name and perhaps a meaning", _are_grades),
    "depth": ("a whole number", _is_whole),
}
"""What ``campaign.json`` may say, as far as it is looked at."""


def _grades_of_qrels(folder: Path) -> list[dict[str, str]]:
    """A scale up to the highest grade of the qrels, if there are any."""
    paths = [each.path for each in _found(folder) if each.kind == Upload.Kind.QRELS]
    if not paths:
        return list(campaigns.DEFAULT_GRADES)
    highest = 1
    try:
        with paths[0].open("rb") as file:
            read = read_qrels(file, Problems(paths[0].name))
        highest = int(read.values.max(initial=highest))
    except UnreadableError:
        pass  # told with file and line when the file is uploaded
    names = GRADE_NAMES if highest == 1 else [f"Grade {grade}" for grade in range(highest + 1)]
    return [{"name": name, "meaning": ""} for name in names]

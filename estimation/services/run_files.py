"""The loader of run files, a kind of upload: a run, or a new version of one."""

import unicodedata
from dataclasses import replace

from estimation.formats.runs import RunFile, read_run
from estimation.models import Run
from estimation.services import replacing, runs
from judging.formats.problems import show
from judging.models import Upload
from judging.services.loaders import topic_ids
from judging.services.uploads import Load, Reading, loads


@loads(Upload.Kind.RUN)
def load(reading: Reading) -> Load:
    """Reads a run against the campaign's topics; waits for topics that are on their way."""
    topics = topic_ids(reading)
    if not topics:
        message = "Upload the topics first: a run is read against them."
        reading.problems.fatal(None, "topic", message)
    old = replacing.version_of(reading)
    with reading.open() as file:
        run = read_run(file, reading.problems, topics=topics, limits=reading.limits)
    if run is None:
        return lambda: None
    named = run if old is None else replace(run, tag=replacing.tag_for(old, run.tag))
    reading.summary = {
        "tag": named.tag,
        "topics": len(run.lists.topics),
        "lines": run.lines,
        "lines_left_out": run.dropped,
    }
    if run.metadata:
        reading.summary["ir_metadata"] = [list(each) for each in run.metadata]
    return _new(reading, run) if old is None else _version(reading, old, run, named)


def _new(reading: Reading, run: RunFile) -> Load:
    if reading.campaign.runs.filter(tag=run.tag).exists():
        message = f"The campaign has a run “{run.tag}” already. To replace it, open its page."
        reading.problems.error(None, "tag", message)
    elif alike := _that_look_alike(reading, run.tag):
        message = (
            f"the run {show(run.tag)} is another one than {show(alike[0])}: their names differ "
            "only in case, or in the code of letters that look the same"
        )
        reading.problems.warning(None, "tag", message)
    return lambda: _create(reading, run)


def _that_look_alike(reading: Reading, tag: str) -> list[str]:
    tags = reading.campaign.runs.order_by("tag").values_list("tag", flat=True)
    return [each for each in tags if _look(each) == _look(tag)]


def _look(tag: str) -> str:
    return unicodedata.normalize("NFKC", tag).casefold()


def _version(reading: Reading, old: Run, run: RunFile, named: RunFile) -> Load:
    if named.tag != run.tag:
        message = f"the file calls the run {show(run.tag)}; its name here is {show(named.tag)}"
        reading.problems.warning(None, "tag", message)
    if reading.problems.ok:
        reading.summary["changes"] = replacing.changes(old, run)
    return lambda: replacing.take_its_place(reading, old, named)


def _create(reading: Reading, run: RunFile) -> None:
    Run.objects.create(campaign=reading.campaign, **runs.columns_of(reading, run))
    runs.make_estimates_due(reading.campaign)

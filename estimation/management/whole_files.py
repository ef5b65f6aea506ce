"""Files that commands read whole: the first error in one ends the command."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from django.core.management.base import CommandError

from estimation.core.data.ranked_lists import RankedLists
from estimation.formats.runs import read_run
from judging.formats.lines import BinaryFile
from judging.formats.problems import Problems, UnreadableError

Read = TypeVar("Read")


def read_whole(
    path: Path, argument: str, reader: Callable[[BinaryFile, Problems], Read | None]
) -> Read:
    """Raises CommandError with file, line and message; ``argument`` names the file to people."""
    problems = Problems(path.name)
    try:
        with path.open("rb") as file:
            content = reader(file, problems)
    except UnreadableError:
        content = None
    except OSError as error:
        raise CommandError(f"{argument} {path} cannot be read: {error.strerror}.") from None
    if content is None or not problems.ok:
        first = problems.errors[0]
        raise CommandError(f"{path}:{first.line or '-'}: {first.field or 'file'}: {first.message}")
    return content


def read_runs(
    files: Sequence[Path],
    argument: str,
    *,
    after_each: Callable[[int], None] = lambda _total: None,
) -> dict[str, RankedLists]:
    """Their lists by tag. `after_each` is called after every run with the number of files."""
    runs: dict[str, RankedLists] = {}
    for path in files:
        tag, lists = read_whole(path, argument, _run)
        if tag in runs:
            raise CommandError(f"{path}: another file has the run {tag} already.")
        runs[tag] = lists
        after_each(len(files))
    return runs


def _run(file: BinaryFile, problems: Problems) -> tuple[str, RankedLists] | None:
    run = read_run(file, problems)
    return (run.tag, replace(run.lists, scores=run.scores)) if run else None

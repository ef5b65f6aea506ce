"""Files that came at once: how they fared, and what is wrong with them, by kind of problem."""

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q

from judging.models import Campaign, Upload
from judging.selectors import CANCELED

_DETAIL = re.compile(r"'(?:[^'\\]|\\.)*'|\"[^\"]*\"|“[^”]*”|U\+[0-9A-F]{4}|[0-9][0-9.,]*")
NAMED = 5
EARLIER = 10
"""So many drops before the last are told of, while some of their files are left."""


@dataclass
class ProblemKind:
    """Problems that say the same but for names and numbers; ``message`` is that of the first.

    ``count``: how many of them are kept; ``more``: their files have others, which are counted only.
    """

    severity: str
    field: str
    message: str
    count: int = 0
    more: bool = False
    files: list[Upload] = dataclasses.field(default_factory=list)

    @property
    def named(self) -> list[Upload]:
        return self.files[:NAMED]


@dataclass(frozen=True)
class Drop:
    """``good``, ``warned`` and ``refused`` count files that were read; ``waiting`` those that are
    to be, ``canceled`` those that were not, as somebody wanted.

    ``to_take_in``: those of them that were only checked, and may be taken in, ``warned_left`` with
    warnings; of ``to_dismiss`` nothing was taken in.
    """

    id: str
    check_only: bool
    files: int
    good: int
    warned: int
    refused: int
    canceled: int
    waiting: int
    to_take_in: int
    warned_left: int
    to_dismiss: int
    problems: list[ProblemKind]


@dataclass(frozen=True)
class EarlierDrop:
    """Of a drop before the last: its files of which nothing was taken in."""

    id: str
    at: datetime
    to_take_in: int
    warned_left: int
    refused: int

    @property
    def to_dismiss(self) -> int:
        return self.to_take_in + self.refused


def latest(campaign: Campaign) -> Drop | None:
    """The last files that came at once, if they were several; in two queries."""
    last = campaign.uploads.exclude(drop="").order_by("-pk").values_list("drop", flat=True).first()
    found = drop_of(campaign, last) if last else None
    return found if found and found.files > 1 else None


def drop_of(campaign: Campaign, drop: str) -> Drop | None:
    """All files of a drop. An archive counts as the files that it has brought."""
    every = list(campaign.uploads.filter(drop=drop).order_by("pk")) if drop else []
    if not every:
        return None
    unpacked = (Upload.State.ACCEPTED, Upload.State.CHECKED)
    rows = [
        row for row in every if row.kind != Upload.Kind.ARCHIVE or row.state not in unpacked
    ] or every
    states = [_fared(row) for row in rows]
    checked = [row for row in rows if _may_be_taken_in(row)]
    return Drop(
        id=drop,
        check_only=all(row.check_only for row in rows),
        files=len(rows),
        to_take_in=len(checked),
        warned_left=sum(row.warning_count > 0 for row in checked),
        to_dismiss=sum(row.state in LEFT for row in rows),
        problems=_problems(row for row in rows if CANCELED not in row.summary),
        **{name: states.count(name) for name in FARED},
    )


LEFT = (Upload.State.CHECKED, Upload.State.REJECTED)


def _may_be_taken_in(row: Upload) -> bool:
    return row.state == Upload.State.CHECKED and row.kind != Upload.Kind.ARCHIVE


def earlier(campaign: Campaign, last: Drop | None) -> list[EarlierDrop]:
    """Drops before the last with several files that are left, the newest first; in one query."""
    checked, refused = (Q(state=state) for state in LEFT)
    rows = campaign.uploads.exclude(drop="").exclude(kind=Upload.Kind.ARCHIVE, state__in=LEFT[:1])
    left = rows.filter(~Q(summary__has_key=CANCELED), state__in=LEFT)
    told = left.order_by().values("drop")
    counted = told.annotate(
        at=Max("created"),
        good=Count("pk", filter=checked),
        odd=Count("pk", filter=checked & Q(warning_count__gt=0)),
        bad=Count("pk", filter=refused),
    )
    several = counted.filter(Q(good__gt=1) | Q(bad__gt=1) | Q(good=1, bad=1))
    found = several.exclude(drop=last.id if last else "").order_by("-at")[:EARLIER]
    return [
        EarlierDrop(row["drop"], row["at"], row["good"], row["odd"], row["bad"]) for row in found
    ]


FARED = ("good", "warned", "refused", "canceled", "waiting")


def _fared(row: Upload) -> str:
    if CANCELED in row.summary:
        return "canceled"
    if row.state in (Upload.State.STORED, Upload.State.READING):
        return "waiting"
    if row.state == Upload.State.REJECTED:
        return "refused"
    return "warned" if row.warning_count else "good"


def _problems(rows: Iterable[Upload]) -> list[ProblemKind]:
    """Errors before warnings, and those of most files first."""
    kinds: dict[tuple[str, str, str], ProblemKind] = {}
    for row in rows:
        kept = [*row.errors, *row.warnings]
        total = {"error": row.error_count, "warning": row.warning_count}
        held = {"error": len(row.errors), "warning": len(row.warnings)}
        for problem in kept:
            found = kinds.setdefault(_shape(problem), _kind(problem))
            found.count += 1
            found.more |= total[found.severity] > held[found.severity]
            if not found.files or found.files[-1] is not row:
                found.files.append(row)
    return sorted(kinds.values(), key=lambda k: (k.severity, -len(k.files), -k.count, k.message))


def _shape(problem: dict[str, Any]) -> tuple[str, str, str]:
    """What problems of a kind have in common: all but names and numbers."""
    said = _DETAIL.sub("…", problem["message"])
    return problem["severity"], problem["field"], said


def _kind(problem: dict[str, Any]) -> ProblemKind:
    return ProblemKind(problem["severity"], problem["field"], problem["message"])

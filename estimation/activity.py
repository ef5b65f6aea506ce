"""What happened in a campaign lately, in words, from its audit log."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from estimation import logged
from judging.models import AuditEntry, Campaign

PEOPLE = {
    "create campaign": "made the campaign",
    "change campaign": "changed the settings",
    "campaign open": "opened the campaign",
    "campaign paused": "paused the campaign",
    "campaign closed": "closed the campaign",
    "archive campaign": "archived the campaign",
    "unarchive campaign": "took the campaign out of the archive",
    "duplicate campaign": "began another campaign like this",
    "add member": "made {user} {role}",
    "remove member": "removed {user}",
    "invite again": "made a new link for {user}",
    "exclude work": "excluded the work of {user}",
    "take back exclusion": "let the work of {user} count again",
    "upload": "uploaded {file}",
    "remove upload": "removed {file}",
    "cancel upload": "canceled {file}",
    "take file in": "had {file} taken in",
    "take files in": "had {files:checked file} taken in",
    "dismiss files": "dismissed {files:file}",
    "withdraw run": "withdrew the run {run}",
    "take run back": "took the run {run} back",
    "draft round": "planned {target}",
    "discard round": "discarded the plan of a round",
    "ask for draw": "had {target} drawn",
    "decide": "decided {pairs:pair}",
    "ask for rest": "decided the unjudged rest",
    "ask for labels there are": "had pairs done with the labels they have",
    "judge from qrels": "had {pairs:pair} judged from the qrels",
    "begin norming": "had a norming session begin",
    "close norming": "closed a norming session",
    "add machine judge": "added a machine judge",
    "start machine judge": "started a machine judge",
    "stop machine judge": "stopped a machine judge",
    "remove machine judge": "removed the machine judge {name}",
    "pause round": "paused {target}",
    "resume round": "had {target} go on",
    "end round": "ended {target} after batch {batch}",
    "ask for report": "asked for the report of {target}",
}
"""What somebody did, after the name."""
ITSELF = {
    "exclude work by rule": "A rule has excluded the work of {user}",
    "draw round": "{target} was drawn: {pairs:pair}",
    "plan batch": "Batch {batch} of {target} was planned: {pairs:pair}",
    "batch complete": "{target} is judged",
    "stop round": "{target} has ended after batch {batch}",
    "machine judge ended": "A machine judge ended: {why}",
    "upload rejected": "A file has {errors:error}: nothing of it was taken in",
}
"""What the site did, as a sentence."""
SHOWN = 10


@dataclass(frozen=True)
class Happened:
    """``who`` did ``what``; nobody if the site did it."""

    who: str
    what: str
    when: datetime


def lately(campaign: Campaign, limit: int = SHOWN) -> list[Happened]:
    """The latest entries that say something to an organizer, latest first."""
    rows = AuditEntry.objects.filter(campaign=campaign, action__in=[*PEOPLE, *ITSELF])
    entries = list(rows.select_related("actor").order_by("-pk")[:limit])
    names = logged.names_of(entries)
    return [_happened(entry, names) for entry in entries]


def _happened(entry: AuditEntry, names: Mapping[str, str]) -> Happened:
    facts = _Facts(entry.data, target=names.get(entry.target, "a round"))
    action = f"{entry.action} by rule" if entry.data.get("by_rule") else entry.action
    by_itself = action in ITSELF
    said = (ITSELF if by_itself else PEOPLE)[action].format_map(facts).removesuffix(": ")
    who = "" if by_itself or entry.actor is None else entry.actor.get_username()
    return Happened(who, said if who else said[0].upper() + said[1:], entry.created)


class _Facts(dict[str, object]):
    """An entry of an earlier version may lack a fact: the sentence does without."""

    def __getitem__(self, name: str) -> "_Fact":
        return _Fact(self.get(name, "some"))


@dataclass(frozen=True)
class _Fact:
    """``{pairs:pair}`` is written as 1 pair, 12 pairs, no pairs."""

    value: object

    def __format__(self, one: str) -> str:
        if not one:
            return str(self.value)
        if self.value == 1:
            return f"1 {one}"
        count = f"{self.value:,}" if isinstance(self.value, int) else str(self.value)
        return f"{count if self.value else 'no'} {one}s"

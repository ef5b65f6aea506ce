"""The one thing an organizer does next, with the reason: it stands on every page of a campaign.

The rules are asked in order, and the first that has something to say is believed: what stops
everything, then what is missing, then what waits for a person, then what goes on by itself. Every
state of a campaign has a step; where nobody has to do anything, it says what is awaited.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.utils import timezone

from estimation.models import Round
from estimation.selectors import round_progress
from estimation.situation import Action, Situation
from judging.models import Batch, Campaign

COPYING = "The files of the campaign from which this one was made are being copied."
SILENT_DAYS = 3
"""So long nobody has judged before somebody should be reminded."""


@dataclass(frozen=True)
class NextStep:
    """``what`` to do and ``why``; ``action`` leads to the place for it.

    ``opens``: the step is the button that opens the campaign. ``waits``: nobody has to do anything.
    """

    state: str
    what: str
    why: str
    action: Action | None = None
    opens: bool = False
    waits: bool = False


Rule = Callable[[Situation], NextStep | None]


def next_step(found: Situation) -> NextStep:
    return next(step for rule in RULES if (step := rule(found)) is not None)


def _archived(found: Situation) -> NextStep | None:
    if found.campaign.archived is None:
        return None
    why = "The campaign is archived: all of it can be read and taken along."
    return NextStep(
        "archived", "Nothing to do", why, Action("campaign-settings", "Settings"), waits=True
    )


def _over(found: Situation) -> NextStep | None:
    if found.campaign.state != Campaign.State.CLOSED:
        return None
    why = "The campaign is closed: judgments and estimates stay as they are."
    if not found.drawn or found.row is None:
        return NextStep("closed", "Nothing to do", why, waits=True)
    if again := found.progress and found.progress.again:
        action = Action("report-list", "Export") if again.used else None
        why = f"{again.what} {again.until}"
        return NextStep("closed", "Open it again, if it shall go on", why, action, waits=True)
    if not found.row.estimate_sets.exists():
        return _over_without_numbers(found.row)
    return NextStep("closed", "Take the results along", why, Action("report-list", "Export"))


def _over_without_numbers(row: Round) -> NextStep:
    """The latest round has none. One before it may have."""
    before = Round.objects.filter(campaign=row.campaign_id, number__lt=row.number)
    known = before.exclude(estimate_sets=None).order_by("-number").first()
    if known is None:
        why = "The campaign was closed before a batch was judged: there are no results yet."
        return NextStep("closed", "Open it again, if it shall go on", why, waits=True)
    why = (
        f"The campaign was closed before a batch of round {row.number} was judged: the latest "
        f"results are those of round {known.number}."
    )
    action = Action("reports", "Export", (known.number,))
    return NextStep("closed", "Take the results along", why, action)


def _no_worker(found: Situation) -> NextStep | None:
    if not any(not lack.alive for lack in found.unserved):
        return None
    what = "Start a worker"
    why = "Until one is alive no file is read, and nothing is drawn or computed."
    return NextStep("no worker", what, why, Action("campaign-home", "See how"))


def _failed(found: Situation) -> NextStep | None:
    if not found.failed:
        return None
    each = found.failed[0]
    why = f"{each.name} failed: {each.job.error}"
    if each.is_draw and each.round:
        action = Action("round-detail", f"Look at round {each.round}", (each.round,))
        return NextStep("failed", "Mend the design, and draw it again", why, action)
    return NextStep("failed", "Try it again", why, Action("campaign-home", "Look at it"))


def _reading(found: Situation) -> NextStep | None:
    if not found.drawn and found.material.copying:
        return NextStep("reading", "Wait for the files", COPYING, waits=True)
    count = 0 if found.drawn else found.material.uploads_pending
    if not count:
        return None
    why = f"{count} file{' is' if count == 1 else 's are'} being read."
    return NextStep("reading", "Wait for the files", why, Action("material", "Watch"), waits=True)


def _material(found: Situation) -> NextStep | None:
    if found.drawn:
        return None
    there = found.material
    kinds = {"topics": there.topics, "runs": found.runs}
    if found.row is None:  # who has planned without documents has read that it can be
        kinds = {"topics": there.topics, "documents": there.documents, "runs": found.runs}
    missing = [name for name, count in kinds.items() if not count]
    if not missing:
        return None
    if there.uploads_rejected:
        count = there.uploads_rejected
        rejected = f"{count} file{' was' if count == 1 else 's were'} rejected"
        why = f"{rejected}; there are no {_listed(missing, 'or')} yet."
        return NextStep("rejected", "Mend the files", why, Action("material", "See why"))
    if there.uploads_checked:
        count = there.uploads_checked
        good = f"{count} good file{' was' if count == 1 else 's were'} only checked so far"
        why = f"{good}; there are no {_listed(missing, 'or')} yet."
        return NextStep("checked", "Take in what is good", why, Action("material", "See it"))
    lacking = f"There are no {_listed(missing, 'or')} yet;"
    why = f"{lacking} a round is drawn from what runs return."
    if missing == ["documents"]:
        why = f"{lacking} whoever judges would see a number, and no text. Or plan without."
    return NextStep("material", f"Upload {_listed(missing)}", why, Action("material", "Upload"))


def _plan(found: Situation) -> NextStep | None:
    if found.row is not None:
        return None
    why = "All material is there. What shall be known, and what may it cost?"
    return NextStep("plan", "Plan a round", why, Action("round-new", "Plan"))


def _draw(found: Situation) -> NextStep | None:
    """A draft that is planned while an earlier round is judged can wait."""
    row, current = found.planned, found.row
    if row is None or (current is not None and current.is_drawn and not current.has_ended):
        return None
    action = Action("round-detail", f"Round {row.number}", (row.number,))
    if row.state == Round.State.DRAWING:
        why = f"Round {row.number} is being drawn."
        return NextStep("drawing", "Wait for the draw", why, action, waits=True)
    why = f"Round {row.number} is planned; nothing is drawn before you say so."
    return NextStep("draw", "See what it buys, and draw", why, action)


def _ended(found: Situation) -> NextStep | None:
    row = found.row
    if row is None or not row.has_ended or _is_judged_again(found) or found.counting:
        return None
    latest = row.estimate_sets.order_by("-number").first()
    if latest is None:
        why = f"Round {row.number} is judged, and its numbers are being computed."
        action = Action("live", "Watch", (row.number,))
        return NextStep("computing", "Wait for the numbers", why, action, waits=True)
    ended = "was ended early" if row.state == Round.State.STOPPED else "is judged"
    told = latest.estimates.filter(measure=row.measure, primary=True)
    unknown = list(told.values_list("unknown", flat=True))
    if unknown and all(unknown):
        why = f"Round {row.number} {ended} and tells no value: too little was found for one."
        return NextStep("unknown", "Have more judged", why, Action("round-list", "Extend it"))
    if latest.reports.exists():
        why = f"Round {row.number} {ended} and its report made. More needs a further round."
        action = Action("round-new", "Plan a further round")
        return NextStep("reported", "Close the campaign, or go on", why, action)
    if late := told.filter(late=True, support__lt=1.0).count() + len(latest.left_out):
        runs = f"{late:,} run{'' if late == 1 else 's'} joined since"
        why = f"Round {row.number} {ended}; {runs}, of which its sample tells a part at most."
        action = Action("round-new", "Plan a further round")
        return NextStep("late", "Have judged what later runs lack", why, action)
    why = f"Round {row.number} {ended}: nothing more comes of it."
    return NextStep("ended", "Make the report", why, Action("reports", "Export", (row.number,)))


def _is_judged_again(found: Situation) -> bool:
    """A round that was stopped, of whose complete batches some lack labels: work was excluded."""
    stopped = found.row is not None and found.row.state == Round.State.STOPPED
    batches = found.progress.batches if stopped and found.progress else []
    return any(batch.state == Batch.State.OPEN for batch in batches)


def _people(found: Situation) -> NextStep | None:
    if found.row is None or not found.few:
        return None
    if found.crowd.links:
        return crowd_step(found)
    if not found.assessors:
        why = f"Round {found.row.number} is drawn, and there is nobody to judge it."
        return NextStep("nobody", "Invite assessors", why, Action("people", "People"))
    why = f"{_too_few(found)}."
    return NextStep("too few", "Invite more assessors", why, Action("people", "People"))


def _too_few(found: Situation) -> str:
    there = "is one assessor" if found.assessors == 1 else f"are {found.assessors} assessors"
    return f"Some pairs want {found.labels_wanted} labels, and there {there}"


def crowd_step(found: Situation) -> NextStep | None:
    """Where nobody new comes by the links; guests who are done have given labels, too."""
    crowd, links = found.crowd, "the crowd link" if found.crowd.links == 1 else "the crowd links"
    lets_in = found.campaign.state == Campaign.State.OPEN and not found.paused
    if crowd.free or (crowd.places and not lets_in):
        return None
    if found.assessors and found.assessors + crowd.done >= found.labels_wanted:
        return None
    full = f"all places of {links} are taken"
    if crowd.places:
        full = f"fewer pairs are left than {links} must have for anybody new"
    action = Action("crowd-links", "Crowd links")
    if not found.assessors:
        why = f"Nobody judges any more, and {full}."
        return NextStep("nobody", "Make another crowd link", why, action)
    return NextStep("too few", "Make another crowd link", f"{_too_few(found)}; {full}.", action)


def _guests(found: Situation) -> NextStep | None:
    """They come by themselves, once somebody has told them of the link."""
    if found.row is None or not found.few or not found.crowd.free:
        return None
    free, links = found.crowd.free, "link" if found.crowd.links == 1 else "links"
    places = f"{'one place' if free == 1 else f'{free:,} places'} of the crowd {links}"
    told = f"{places} {'is' if free == 1 else 'are'} free."
    why = f"{_too_few(found)}; {told}"
    if not found.assessors:
        why = f"Round {found.row.number} waits for guests; {told}"
    return NextStep("guests", f"Share the crowd {links}", why, Action("crowd-links", "Crowd links"))


def _open(found: Situation) -> NextStep | None:
    if found.campaign.state == Campaign.State.DRAFT:
        who = "assessors" if found.assessors else "guests of the crowd link"
        why = f"All is ready: {who} can judge as soon as the campaign is open."
        return NextStep("open", "Open the campaign", why, opens=True)
    if found.campaign.state == Campaign.State.PAUSED:
        why = "The campaign is paused: assessors are told to come back later."
        return NextStep("paused", "Go on with judging", why, opens=True)
    return None


def _paused(found: Situation) -> NextStep | None:
    row = found.paused
    if row is None:
        return None
    why = f"Round {row.number} pauses, and nothing else is judged."
    return NextStep(
        "round paused", f"Go on with round {row.number}", why, Action("round-list", "Rounds")
    )


def _stuck(found: Situation) -> NextStep | None:
    progress = found.progress
    if progress is None or not progress.stuck:
        return None
    pairs = f"{progress.stuck} pair{'' if progress.stuck == 1 else 's'}"
    why = kept_open(progress.stuck)
    return NextStep("stuck", f"Decide {pairs}", why, Action("decisions", "Decide"))


def kept_open(stuck: int) -> str:
    """They are those of the whole campaign, and may be of several batches and rounds."""
    if stuck == 1:
        return "1 pair waits for your decision, and keeps its batch from its end."
    return f"{stuck:,} pairs wait for your decision, and keep their batches from their end."


def _again(found: Situation) -> NextStep | None:
    """Before what is said of a lack of people: it is this that they are missed for."""
    again = found.progress.again if found.progress else None
    if again is None or found.campaign.state != Campaign.State.OPEN or found.paused:
        return None
    why = f"{again.what} {again.until}"
    if found.progress and found.progress.stuck:
        stuck = found.progress.stuck
        what = f"Decide {stuck} pair{'' if stuck == 1 else 's'}"
        return NextStep("again", what, why, Action("decisions", "Decide"))
    pairs = f"{again.pairs:,} pair{'' if again.pairs == 1 else 's'}"
    return NextStep("again", f"Have {pairs} judged again", why, Action("people", "People"))


def _others(found: Situation) -> NextStep | None:
    if found.others is None:
        return None
    action = Action("people", "People")
    return NextStep("others", "Have somebody else judge", found.others.brief, action)


def _counting(found: Situation) -> NextStep | None:
    """The current round has ended, and one that counts with it has not."""
    if found.row is None or not found.row.has_ended or not found.counting:
        return None
    earlier = found.counting[0]
    progress = round_progress(earlier)
    left = progress.pairs - progress.finished
    pairs = f"{left:,} pair{' is' if left == 1 else 's are'}"
    why = f"It counts with round {found.row.number}, and {pairs} not judged."
    if progress.again:
        why = f"It counts with round {found.row.number}. {progress.again.what}"
    what = f"Have round {earlier.number} judged to its end"
    return NextStep("counting", what, why, Action("people", "People"))


def _silent(found: Situation) -> NextStep | None:
    since = found.silent_since
    days = (timezone.now() - since).days if since else 0
    if days < SILENT_DAYS:
        return None
    why = f"Nobody has judged for {days} days."
    return NextStep("silent", "Remind the assessors", why, Action("people", "People"))


def _invited(found: Situation) -> NextStep | None:
    if not found.awaited:
        return None
    why = (
        "One assessor is invited, and has not signed in yet: the link stands beside the name."
        if found.awaited == 1
        else f"{found.awaited:,} assessors are invited, and none of them has signed in yet: their "
        "links stand beside the names."
    )
    return NextStep("invited", "Bring the assessors in", why, Action("people", "People"))


def _judging(found: Situation) -> NextStep:
    row = found.row
    numbers = Action("live", "See the ranking", (row.number,)) if row else None
    why = "Assessors judge; numbers follow."
    return NextStep("judging", "Nothing waits for you", why, numbers, waits=True)


RULES: tuple[Rule, ...] = (
    _archived,
    _over,
    _no_worker,
    _failed,
    _reading,
    _material,
    _plan,
    _draw,
    _ended,
    _again,
    _people,
    _open,
    _paused,
    _guests,
    _stuck,
    _others,
    _counting,
    _silent,
    _invited,
    _judging,
)
STATES = (
    "archived", "closed", "no worker", "failed", "reading", "rejected", "checked", "material",
    "plan", "drawing", "draw",
    "computing", "unknown", "reported", "late", "ended", "nobody", "too few", "open", "paused",
    "round paused", "guests", "stuck", "others", "again", "counting", "silent", "invited",
    "judging",
)  # fmt: skip
"""Every state that a step can name; the tests walk through all of them."""


TRANSIENT = ("reading", "drawing", "computing")
"""States that end by themselves in a moment: the bar looks again."""


def _listed(names: list[str], last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"

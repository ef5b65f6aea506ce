"""What the campaign's home says: how to set it up, then what is known, and what needs a person."""

from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from estimation import selectors, work
from estimation.charts.bars import BarChart, day_bars
from estimation.findings import Finding, findings, listed, named, what_more_buys
from estimation.forecasts import ForecastFigure, forecast_figure, target_of
from estimation.known_now import known_of, said_against
from estimation.models import EstimateSet, Round
from estimation.next_step import COPYING, crowd_step, kept_open
from estimation.situation import Action, Situation
from judging.models import Campaign, Job
from judging.pace import by_day
from judging.queue import APART, COMMENT, silent, todo_counts
from judging.services.looks import hasty

SILENCE = 3
"""Days without a judgment after which somebody may have forgotten, or need help."""


@dataclass(frozen=True)
class Card:
    """A step. ``state``: done, now or later."""

    title: str
    state: str
    number: str
    detail: str
    action: Action | None


@dataclass(frozen=True)
class Attention:
    """``job``: failed work that can be tried again."""

    level: str
    text: str
    action: Action | None = None
    job: Job | None = None


@dataclass(frozen=True)
class RoundOutcome:
    """What a round has shown so far, and what is foretold of it.

    Of one that has ``ended``, ``further`` says what more judgments would buy; ``known`` how narrow
    its intervals are, where no ``forecast`` does.
    """

    number: int
    measure: str
    ended: bool
    findings: list[Finding]
    forecast: ForecastFigure | None
    known: str
    further: str
    actions: list[Action]


def outcome(facts: Situation) -> RoundOutcome | None:
    """Said of the current round as soon as it has estimates."""
    row = facts.row
    latest = selectors.latest_estimates(row) if row and row.is_drawn else None
    if row is None or latest is None:
        return None
    found, forecast, known, further = _conclusions(latest.pk, latest.created, row.state)
    actions = [Action("live", "See the ranking", (row.number,))]
    if row.has_ended:
        actions.append(Action("reports", "Make the report", (row.number,)))
    if row.has_ended and facts.campaign.state != Campaign.State.CLOSED:
        actions.insert(0, Action("round-new", "Plan a further round"))
    further = further if row.has_ended else ""
    ended = row.has_ended
    return RoundOutcome(row.number, row.measure, ended, found, forecast, known, further, actions)


@lru_cache(maxsize=64)
def _conclusions(
    pk: int, _created: datetime, _state: str
) -> tuple[list[Finding], ForecastFigure | None, str, str]:
    """What the estimates of a drawn round say by its measure: they never change once stored."""
    rounds = ("round__run", "round__baseline", "round__pool")
    shown = EstimateSet.objects.select_related(*rounds).get(pk=pk)
    table = selectors.ranking_table(shown.round, shown.round.measure, shown)
    if table is None or table.pairs is None:
        return [], None, "", ""
    row, forecast = shown.round, forecast_figure(table)
    known = "" if forecast else said_against(known_of(row, row.measure), row, target_of(row))
    further = what_more_buys(table, table.pairs) or ""
    return findings(table, table.pairs), forecast, known, further


@dataclass(frozen=True)
class Days:
    """How many judgments came, by day, and at which pace."""

    chart: BarChart
    first: date
    last: date
    per_day: int
    assessors: int


def days(facts: Situation) -> Days | None:
    """None before the first judgment, and where the last is long ago."""
    counted = by_day(facts.campaign)
    if not facts.drawn or not any(judged for _, judged in counted):
        return None
    chart = day_bars([(f"{day:%-d %B}", float(judged)) for day, judged in counted])
    per_day = round(facts.pace.per_day) if facts.pace else 0
    return Days(chart, counted[0][0], counted[-1][0], per_day, facts.assessors)


def cards(facts: Situation) -> list[Card]:
    """The steps until the first draw; afterwards there is more to say."""
    if facts.drawn:
        return []
    return [_material(facts), _goal(facts), _budget(facts), _people(facts), _judging()]


def _material(facts: Situation) -> Card:
    there = facts.material
    missing = [
        name
        for name, count in (
            ("topics", there.topics),
            ("documents", there.documents),
            ("runs", facts.runs),
        )
        if not count
    ]
    detail = f"{_plural(there.topics, 'topic')}, {_plural(there.documents, 'document')}"
    action: Action | None = Action("material", "Upload files" if missing else "See the material")
    if there.copying:
        detail, action = f"{detail}. {COPYING}", None
    elif missing and there.uploads_pending:
        verb = "is" if there.uploads_pending == 1 else "are"
        detail = f"{detail}. {_plural(there.uploads_pending, 'file')} {verb} being read."
        action = Action("material", "Watch")
    elif missing:
        detail = f"{detail}. Still missing: {', '.join(missing)}"
    state = "later" if there.copying else "now" if missing else "done"
    return Card("Material", state, _plural(facts.runs, "run"), detail, action)


def _goal(facts: Situation) -> Card:
    row = facts.row
    if row is None:
        detail = "What shall be estimated, and what is it for?"
        ready = facts.runs and facts.material.topics
        action = Action("round-new", "Plan a round") if ready else Action("round-list", "Rounds")
        return Card("Measures and goal", "now" if ready else "later", "Not chosen", detail, action)
    further = f", and {_plural(len(row.reported), 'further measure')}" if row.reported else ""
    action = Action("round-detail", f"See round {row.number}", (row.number,))
    detail = f"{row.get_goal_display()}{further}"
    return Card("Measures and goal", "done", row.measure, detail, action)


def _budget(facts: Situation) -> Card:
    row = facts.row
    if row is None:
        action = Action("round-list", "Rounds")
        return Card("Budget", "later", "–", "How many pairs are worth judging.", action)
    number, unit = _plural(row.budget, "pair"), ""
    if row.costs != Round.Costs.EQUAL:
        number, unit = f"{row.budget:,}", f"{row.unit.capitalize()}. "
    action = Action("round-detail", "See what it buys and draw", (row.number,))
    state = "now" if facts.runs and facts.material.topics else "later"
    return Card("Budget", state, number, f"{unit}Planned, not drawn yet.", action)


def _people(facts: Situation) -> Card:
    wanted = facts.labels_wanted
    enough = not facts.few
    if not enough and (places := facts.crowd.places):
        return Card(
            title="People",
            state="done",
            number=_plural(facts.assessors, "assessor"),
            detail=f"{_plural(places, 'place')} by crowd link.",
            action=Action("crowd-links", "See the links"),
        )
    return Card(
        title="People",
        state="done" if enough else "now",
        number=_plural(facts.assessors, "assessor"),
        detail=_labels(wanted) if facts.row else "Who judges?",
        action=Action("people", "See the people" if enough else "Invite assessors"),
    )


def _labels(wanted: int) -> str:
    return f"Up to {wanted} labels per pair" if wanted > 1 else "1 label per pair"


def _judging() -> Card:
    action = Action("round-list", "Rounds")
    return Card("Judging", "later", "–", "Begins when a round is drawn.", action)


def attention(facts: Situation) -> list[Attention]:
    """What somebody should look at now, worst first."""
    found = _machines(facts)
    if facts.campaign.state != Campaign.State.CLOSED:
        found += [*_files(facts), *_judges(facts), *_stuck(facts), *_others(facts)]
        found += [*_silent(facts), *_hasty(facts)]
        found += [*_excluded(facts), *_texts(facts), *_to_look_at(facts)]
    order = {"bad": 0, "warn": 1, "": 2}
    return sorted(found, key=lambda notice: order[notice.level])


def _machines(facts: Situation) -> list[Attention]:
    found = []
    if any(not lack.alive for lack in facts.unserved):
        found.append(Attention("bad", NO_WORKER))
    else:
        found += [
            Attention("bad", f"{lack.missing}: {lack.waits} until one does. {lack.mend}")
            for lack in facts.unserved
        ]
    found += [_failed(each) for each in facts.failed]
    return found


def _failed(each: work.FailedWork) -> Attention:
    where = f"Round {each.round}: " if each.round else ""
    text = f"{where}{each.name} failed: {each.job.error}"
    if each.is_draw and each.round:
        action = Action("round-detail", "Look at it, and draw it again", (each.round,))
        return Attention("bad", text, action)
    return Attention("bad", text, job=each.job)


NO_WORKER = (
    "No worker is alive: files are not read, and nothing is drawn or computed until one is. "
    "Judgments are saved all the same. “python manage.py up” starts the web server with a worker; "
    "“python manage.py doctor” says what is wrong."
)


def _files(facts: Situation) -> list[Attention]:
    rejected, pending = facts.material.uploads_rejected, facts.material.uploads_pending
    found = []
    if rejected:
        verb = "was" if rejected == 1 else "were"
        text = f"{_plural(rejected, 'file')} {verb} rejected."
        found.append(Attention("warn", text, Action("material", "See why")))
    if pending:
        verb = "is" if pending == 1 else "are"
        text = f"{_plural(pending, 'file')} {verb} being read."
        found.append(Attention("", text, Action("material", "Watch")))
    return found


def _judges(facts: Situation) -> list[Attention]:
    row = facts.row
    if row is None or not facts.drawn or row.has_ended:
        return []
    found = []
    if facts.campaign.state == Campaign.State.DRAFT:
        text = (
            "The round is drawn, but the campaign is a draft: assessors cannot judge until you "
            "open it, at the top of this page."
        )
        found.append(Attention("warn", text))
    if facts.few and facts.crowd.links:
        step = crowd_step(facts)
        found += [Attention("warn", step.why, step.action)] if step else []
    elif not facts.assessors:
        text = "There are no assessors."
        found.append(Attention("warn", text, Action("people", "Invite some")))
    elif facts.assessors < facts.labels_wanted:
        text = (
            f"Some pairs want {facts.labels_wanted} labels, but there "
            f"{'is' if facts.assessors == 1 else 'are'} {_plural(facts.assessors, 'assessor')}: "
            "their batches cannot be completed."
        )
        found.append(Attention("warn", text, Action("people", "Invite more")))
    return found


def _stuck(facts: Situation) -> list[Attention]:
    progress = facts.progress
    if progress is None or not progress.stuck:
        return []
    return [Attention("warn", kept_open(progress.stuck), Action("decisions", "Decide"))]


def _others(facts: Situation) -> list[Attention]:
    waits = facts.others
    return [Attention("warn", waits.text, Action("people", "Look at people"))] if waits else []


def _silent(facts: Situation) -> list[Attention]:
    """Told while there is something to judge."""
    is_open = facts.campaign.state == Campaign.State.OPEN
    if not (is_open and facts.drawn) or facts.row is None or not facts.row.is_going:
        return []
    names = silent(facts.campaign, SILENCE)
    if not names:
        return []
    text = f"{named(names)} judged nothing in the last {SILENCE} days."
    return [Attention("warn", text, Action("people", "Look at people"))]


def _hasty(facts: Situation) -> list[Attention]:
    names = hasty(facts.campaign) if facts.drawn and facts.judged else []
    if not names:
        return []
    text = f"{named(names)} judged faster than anybody reads, or than they usually do."
    return [Attention("warn", text, Action("people", "Look at people"))]


def _to_look_at(facts: Situation) -> list[Attention]:
    """Nothing waits for it."""
    kinds = {APART: "disagreement", COMMENT: "comment"}
    counts = todo_counts(facts.campaign, kinds) if facts.drawn else {}
    there = [_plural(counts[kind], word) for kind, word in kinds.items() if counts.get(kind)]
    if not there:
        return []
    return [Attention("", f"{listed(there)} to look at.", Action("queue", "Look"))]


def _excluded(facts: Situation) -> list[Attention]:
    """Told while batches lack labels by it, so that numbers may be missing that were there."""
    again = facts.progress.again if facts.progress else None
    return [Attention("warn", again.text, Action("queue", "The queue"))] if again else []


def _texts(facts: Situation) -> list[Attention]:
    missing = facts.row.preview.get("without_text", 0) if facts.row else 0
    if not missing:
        return []
    text = (
        f"{_plural(missing, 'pooled document')} had no text when the round was planned: "
        "assessors would see the docno only."
    )
    return [Attention("warn", text, Action("document-list", "See the documents"))]


def _plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"

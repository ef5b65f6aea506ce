"""More judgments for a round that was drawn: a round that takes what is judged for certain.

The number of batches of a round is part of what its numbers promise: what may be told at look b was
fixed by b and by how many there would be (`core.inference.looks`), and the last batch of an
adaptive round has taken all that was left to weigh (`core.rounds.adaptive.sampling`). Somebody who
wants more has looked. Were batches added to the round then, the levels of its looks would follow
from what was found, and the sum of what they spend would be no bound.

So more comes as a round of its own, of which nothing has been seen. Every pair in a complete batch
of any round is in its sample for certain, at no cost, and all others are drawn anew, by random
numbers of its own. Given all that happened before, whatever made somebody want more,

    E[ sum_{judged} w v + sum_{new} w v / p ] = sum of w v over all pairs,

with the labels that the judged pairs have; and its own looks, which were fixed before its draw,
hold at once (docs/methods/sampling.md, *alone*). Rounds whose judgments count by a union of chances
are topped up *together* from the form of a new round: that is the more exact, and right where
nobody planned it because of what was found, which nobody can know here.
"""

from dataclasses import replace

from estimation.core.measures.table import parse_measure
from estimation.core.sampling.methods import SAMPLING_METHODS
from estimation.models import Round
from estimation.plans import USUAL, RoundPlan, completed, plan_of
from estimation.selectors import complete_batches
from estimation.services import rounds
from judging.errors import UserError
from judging.models import Campaign, User

ABLE = SAMPLING_METHODS["poisson"]
ANEW = "Plan a further round by the same method; it is estimated alone."


def extend(*, row: Round, by: User, budget: int) -> Round:
    """Drafts the round that adds so much to what is judged; returns it.

    Nothing is drawn. Raises UserError ``not_extended`` (409) with what to do instead, and as
    `rounds.draft`.
    """
    if why := why_not(row, complete=complete_batches(row)):
        raise UserError("not_extended", why, status=409)
    return rounds.draft(campaign=row.campaign, by=by, plan=plan_after(row, budget))


def why_not(row: Round, *, complete: int) -> str:
    """Why a round cannot be extended, and what to do instead; nothing if it can.

    ``complete`` is how many of its batches are complete.
    """
    if not row.is_drawn:
        return "It is not drawn yet: change its budget."
    if row.campaign.state == Campaign.State.CLOSED:
        return "The campaign is closed. Open it again first."
    if not complete:
        return "No batch of it is judged yet. Wait for the first."
    able = ABLE.measures
    for text in (row.measure, *row.reported):
        if parse_measure(text).name not in able:
            return f"{text} needs whole topics, and a sample of pairs adds nothing to them. {ANEW}"
    return ""


def plan_after(row: Round, budget: int) -> RoundPlan:
    """The choices of the round that adds to it: its own, but how it is drawn.

    It learns from what is judged, as new rounds do where they can. What was the best run is found
    out by the ranking of all where a method has no race.
    """
    added = replace(
        plan_of(row),
        budget=budget,
        batch_size=None,
        method="",
        rule="",
        eps=0.0,
        interval=Round.Interval.STUDENT,
        estimator="",
        top_up=True,
        with_earlier=False,
        further=0.0,
        keeps_hours=False,
        seed="",
    )
    return added if completed(added).method == USUAL else _drawn_at_once(added)


def _drawn_at_once(plan: RoundPlan) -> RoundPlan:
    races = plan.goal == Round.Goal.WINNER
    goal = Round.Goal.RANKING if races else plan.goal
    return replace(plan, method=ABLE.name, goal=goal, topic_minimum=1, more_predictions=[])

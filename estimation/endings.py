"""What is said of the rule by which a round may end early, of the end that it made, and of what
keeps a round from going on."""

from datetime import datetime

from estimation.models import Round
from estimation.scales import plus_minus
from judging.models import Campaign

HAND = "hand"
"""The rule of an organizer who ends a round without one."""
STILL = {
    Campaign.State.DRAFT: "the campaign is not open yet",
    Campaign.State.PAUSED: "the campaign is paused",
    Campaign.State.CLOSED: "the campaign is closed",
}
"""Why nobody is handed anything, as the end of a sentence."""


def rule_in_words(row: Round) -> str:
    """The rule of a round, as the end of a sentence; nothing if it has none."""
    if not row.stop_when:
        return ""
    if row.stop_when == Round.Stop.WIDTH:
        width = plus_minus(f"{row.stop_width:g}")
        return f"{row.measure} of every run is known to {width} or better"
    alike = f", but for differences up to {row.negligible:g}" if row.negligible else ""
    if row.stop_when == Round.Stop.TOP and row.stop_top > 1:
        return f"the best {row.stop_top} runs are known{alike}"
    return f"the best run is known{alike}"


def plan_in_words(row: Round) -> str:
    """When a round ends that has a rule; nothing if it has none."""
    rule = rule_in_words(row)
    return f"After the first batch from which {rule}; at the latest with the budget" if rule else ""


def end_in_words(row: Round) -> str:
    """What ended a round before its budget was spent; nothing if nothing did."""
    found = row.stopping
    if not found:
        return ""
    after = f"after batch {found['batch']} of {found['batches']}"
    by_hand = found["rule"] == HAND
    if "saved" not in found:
        if by_hand:
            return f"Its organizer ends the round {after}."
        return f"The rule of this round came true {after}, and it is being ended."
    saved = found["saved"]
    spared = f"{saved:,} judgment{' was' if saved == 1 else 's were'} saved"
    if by_hand:
        return f"Ended by its organizer {after}. {spared}."
    more = ""
    if last := found.get("counted"):
        first = found["batch"] + 1
        which = f"Batch {last} was" if last == first else f"Batches {first} to {last} were"
        more = f" {which} complete before it ended, and {'counts' if last == first else 'count'}."
    held = f"which held then: {rule_in_words(row)}."
    return f"Stopped by its rule {after}, {held}{more} {spared}."


def ended_at(row: Round) -> datetime | None:
    """When a round was stopped; None of one that was not, or of which nobody has noted it."""
    noted = row.stopping.get("ended")
    return datetime.fromisoformat(noted) if noted else None


def still_because(row: Round) -> str:
    """Why nobody is handed anything of a round that has not ended; nothing if somebody is."""
    return still_now(row) if row.is_going else ""


def still_now(row: Round) -> str:
    """The same of one that may have ended, and of which something is judged again."""
    paused = f"round {row.number} is paused" if row.is_paused else ""
    return STILL.get(Campaign.State(row.campaign.state), paused)


def standing(row: Round) -> str:
    """The state of a round in a word: one that stands still has that of what keeps it."""
    if row.is_going and row.campaign.state in (Campaign.State.PAUSED, Campaign.State.CLOSED):
        return str(row.campaign.state)
    return "paused" if row.is_paused else str(row.state)

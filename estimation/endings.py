"""What is said of the rule by which a round may end early, and of the end that it made."""

from estimation.models import Round

HAND = "hand"
"""The rule of an organizer who ends a round without one."""


def rule_in_words(row: Round) -> str:
    """The rule of a round, as the end of a sentence; nothing if it has none."""
    if not row.stop_when:
        return ""
    if row.stop_when == Round.Stop.WIDTH:
        return f"{row.measure} of every run is known to ± {row.stop_width:g} or better"
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
    return f"Stopped by its rule {after}: {rule_in_words(row)}. {spared}."

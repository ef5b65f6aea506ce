"""What is told of a round that keeps to hours: the pace, and what the hours pay for now."""

from estimation.models import Round


def expected_pairs(row: Round) -> int | None:
    """Pairs of all batches, as the measured pace lets expect; None where none was looked at."""
    return round(row.paces[-1]["expected"]) if row.paces else None


def hours_told(row: Round) -> str:
    """In a sentence; nothing of a round that does not keep to hours."""
    if not row.keeps_hours:
        return ""
    if not row.paces:
        return (
            f"Keeps to the hours of its budget: at {row.seconds} s a judgment, as assumed, until "
            "the first batch tells the pace."
        )
    now = row.paces[-1]
    pairs = f"{expected_pairs(row) or 0:,} pairs where {row.budget:,} were planned"
    told = f"{_seconds(now['seconds'])} s a judgment, as measured"
    if not now["timed"]:
        told = f"{_seconds(now['seconds'])} s a judgment as assumed, because no time is known"
    used = f"{_number(now['used'])} h were used before batch {now['batch']}"
    if now["used"] >= now["hours"]:
        used += "; what is left to be planned is as little as can be"
    return f"Keeps to {_number(now['hours'])} hours: {pairs}; {told}; {used}."


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10.0 else f"{seconds:.1f}"


def _number(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10.0 else f"{hours:.1f}"

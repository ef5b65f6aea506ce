"""How many seconds a recompute should take at most, by how much was judged."""

LARGE, MANY = 100_000, 1_000_000  # judgments: those of the usual bar, and the most that have one
_ALWAYS, _OF_EACH, _OF_LARGE = 0.06, 2e-6, 0.25
_ADAPTIVE = 1.3  # times as much for rounds that fit a model after every batch


def of_recompute(judgments: int, *, adaptive: bool) -> float | None:
    """Seconds after so many judgments; None beyond the numbers that have a bar."""
    if judgments > MANY:
        return None
    most = _ALWAYS + _OF_EACH * judgments
    if judgments <= LARGE:
        most = min(most, _OF_LARGE)
    return round(_ADAPTIVE * most if adaptive else most, 3)

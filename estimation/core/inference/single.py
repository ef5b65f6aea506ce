"""One difference, as it is told: web processes read this, and load no SciPy for it."""


def ends(difference: float, margin: float, adjusted_p: float) -> tuple[float, float]:
    """Return the ends of the interval of one difference: at 0 where its sign is certain.

    Of estimate, half width and adjusted p-value as `Ranking` has them.
    """
    low, high = difference - margin, difference + margin
    if adjusted_p > 0.0:
        return low, high
    return (max(low, 0.0), high) if difference > 0.0 else (low, min(high, 0.0))

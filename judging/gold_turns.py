"""With which chance somebody's next pair is gold. It knows numbers of pairs, and no grade."""

LEAST_CHANCE, MOST_CHANCE = 0.25, 1 / 3
"""Of a turn to be gold: a share of the usual chance at least, and this at most."""


def chance_of_gold(every: int, *, had: int, gold: int) -> float:
    """After ``had`` pairs of which ``gold`` were, where one in ``every`` shall be.

    It is that rate, and somewhat more for whoever is behind, so that the rate is kept where only
    some topics have gold, without a turn that anybody could foretell.
    """
    share = 1.0 / every
    wanted = share * (1.0 + share * had - gold)
    return min(max(wanted, LEAST_CHANCE * share), MOST_CHANCE)

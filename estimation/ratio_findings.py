"""What is said of AP, nDCG and Rprec alone: what they rest on, and that they have a bias."""

from estimation.core.measures.table import parse_measure
from estimation.figures import half_width, number
from estimation.scales import common_decimals
from estimation.selectors import RankingTable
from estimation.unknown import enough_relevant


def few_relevant(table: RankingTable) -> str | None:
    """The bias of a ratio falls with the relevant documents found."""
    found = table.estimate_set.relevant_found
    enough = enough_relevant(parse_measure(table.measure), method=table.round.method)
    if not _is_from_a_part(table) or found is None or found >= enough:
        return None
    documents = f"{found:g} relevant document{'' if found == 1 else 's'}"
    return (
        f"{table.measure} rests on {documents} found per topic; below about "
        f"{enough} its intervals can be too short."
    )


def bias(table: RankingTable) -> str | None:
    """No estimate of a ratio from part of a pool is without (decision 0108)."""
    if not _is_from_a_part(table) or table.round.sampling.draws == "topics":
        return None
    return (
        f"{table.measure} divides by what is relevant in the whole pool, so that no estimate from "
        f"a part of it is free of bias: {_corrected(table)}, and the intervals allow for what may "
        "be left."
    )


def _corrected(table: RankingTable) -> str:
    moved = table.estimate_set.ratio_bias.get(table.measure)
    if moved is None:
        return "what can be told of it is in the estimates and their errors"
    digits = common_decimals(map(half_width, table.known))
    shown = number(abs(moved), digits)
    if not float(shown):
        return f"it comes to less than {number(10.0**-digits, digits)} here, as far as can be told"
    way = "taken off" if moved > 0.0 else "added to"
    return f"{shown} was {way} the values, on average, for what can be told of it"


def _is_from_a_part(table: RankingTable) -> bool:
    """Whether it is a ratio of which anything is known, and something is not judged."""
    is_ratio = parse_measure(table.measure).family == "ratio"
    return is_ratio and any(row.low != row.high for row in table.known)

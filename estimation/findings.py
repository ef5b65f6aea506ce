"""What may be concluded from a ranking, in words.

Everything said as sure is a verdict: a step-down test over all pairs of runs, or bounds that hold
for all of them at once, keep the probability of any false one at 5 %. Everything else is called
open. Nothing rests on a value or a difference that is not known; such ones are counted, with the
reason.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from estimation.core.data.scores import EXPECTED
from estimation.core.inference.unknown import Reason
from estimation.core.measures.table import parse_measure
from estimation.models import Round
from estimation.ratio_findings import bias, few_relevant
from estimation.scales import decided_of, decimals, share_reached
from estimation.selectors import Pairwise, RankedRun, RankingTable
from estimation.unknown import continued

SURE, OPEN, LIMIT, NOTE = "sure", "open", "limit", "note"
NAMED = 4
"""So many runs are named in a sentence; of more, the number is given."""
OF_PREFERENCES = "its pairs of documents were made from the lists of the runs that were there"
"""Why earlier versions left later runs out of a round; stored estimates still say so."""
FARTHEST = 10
"""Extrapolations beyond this multiple of the labels there are not made."""


@dataclass(frozen=True)
class Finding:
    """A sentence, and whether it is sure, open, a limit of what the numbers mean, or a note."""

    kind: str
    text: str


def findings(table: RankingTable, pairs: Pairwise) -> list[Finding]:
    """The conclusions in order of importance."""
    if not table.rows:
        return []
    found = [*_limits(table), *_of_goal(table, pairs), *_enough(table, pairs)]
    found += [*_of_lead(table, pairs), *_unknown(table)]
    if len(table.rows) > 1:
        found.append(_decided(pairs))
    found += [*_later_runs(table), *_kind_of_interval(table), *_bias(table)]
    return [*found, *_earlier_rounds(table)]


def _kind_of_interval(table: RankingTable) -> list[Finding]:
    """Said where the round asked for a guarantee."""
    if table.guaranteed:
        text = (
            f"Intervals and verdicts are guaranteed ({table.interval_name}): they hold for samples "
            "of any size, and are wider for it."
        )
        return [Finding(NOTE, text)]
    if table.round.interval == Round.Interval.STUDENT:
        return []
    text = f"For {table.measure} there are no guaranteed intervals: these are Student's."
    return [Finding(LIMIT, text)]


def _earlier_rounds(table: RankingTable) -> list[Finding]:
    earlier = table.estimate_set.earlier
    if not earlier:
        return []
    rounds = [
        f"round {number} ({batches} batch{'' if batches == 1 else 'es'})"
        for number, batches in earlier.items()
    ]
    text = (
        f"The judgments of {listed(rounds)} count as well. That is right as long as this round "
        "was not planned because of what they had shown."
    )
    return [Finding(NOTE, text)]


def _limits(table: RankingTable) -> list[Finding]:
    few = few_relevant(table)
    return [*_out_of_reach(table), *([Finding(LIMIT, few)] if few else [])]


def _bias(table: RankingTable) -> list[Finding]:
    text = bias(table)
    return [Finding(NOTE, text)] if text else []


def _out_of_reach(table: RankingTable) -> list[Finding]:
    short = [row.tag for row in table.known if row.support < 1.0 and not row.late]
    if not short:
        return []
    left_out = f"The sample leaves out part of what {table.measure} counts for {named(short)}."
    return [Finding(LIMIT, f"{left_out} {_allowance(table.measure, one=len(short) == 1)}")]


def _later_runs(table: RankingTable) -> list[Finding]:
    late = [row for row in table.late if not row.unknown]
    whole = [row for row in late if not row.open_part]
    partial = [row for row in late if row.open_part]
    found = [_joined(table, whole)] if whole else []
    if partial:
        found.append(_joined_in_part(table, partial))
    return [*found, *_left_out(table), *_withdrawn(table)]


def _joined(table: RankingTable, rows: Sequence[RankedRun]) -> Finding:
    reached = "could be drawn"
    if table.round.sampling.draws == "topics":
        reached = "is judged where its topic is drawn"
    text = (
        f"{named([row.tag for row in rows])} joined after the sample was drawn; all that "
        f"{table.measure} counts for {_them(rows)} {reached} ({_sizes(rows)})."
    )
    return Finding(NOTE, text)


def _joined_in_part(table: RankingTable, rows: Sequence[RankedRun]) -> Finding:
    least, most = _ends([row.support for row in rows])
    reached = share_reached(most)
    shares = reached if share_reached(least) == reached else f"{share_reached(least)} to {reached}"
    text = (
        f"{named([row.tag for row in rows])} joined after the sample was drawn, which reaches "
        f"{shares} of what {table.measure} counts for {_them(rows)} ({_sizes(rows)}). "
        f"{_allowance(table.measure, one=len(rows) == 1)}"
    )
    return Finding(LIMIT, text)


def _allowance(name: str, *, one: bool) -> str:
    """What documents out of reach may do to values, and what verdicts allow for."""
    measure = parse_measure(name)
    value = "Its value is a lower bound" if one else "Their values are lower bounds"
    verdict = "better" if measure.lower_is_better else "worse"
    if measure.family == "ratio":
        value = f"{'Its value takes' if one else 'Their values take'} the rest for not relevant"
        verdict = "better or worse"
    documents = "pairs of documents" if measure.family == "preference" else "documents"
    return (
        f"{value}, and {'it is' if one else 'they are'} called {verdict} than another run only "
        f"where the {documents} out of reach could not change that."
    )


def _withdrawn(table: RankingTable) -> list[Finding]:
    tags = table.estimate_set.withdrawn
    if not tags:
        return []
    text = (
        f"{named(tags)} {'was' if len(tags) == 1 else 'were'} withdrawn: the sample was made with "
        f"{_them(tags)}, and stays what it was; verdicts and ranks are those of the other runs."
    )
    return [Finding(NOTE, text)]


def _left_out(table: RankingTable) -> list[Finding]:
    """Later runs that these estimates were made without, and why."""
    tags = table.estimate_set.left_out
    if not tags:
        return []
    one = len(tags) == 1
    why = (
        f"{OF_PREFERENCES}. A new round takes {'it' if one else 'them'} in and keeps all judgments"
    )
    if any(parse_measure(text).family == "prediction" for text in table.measures):
        which = "some of its scores are" if one else "some of their scores are"
        why = f"{which} too far from any grade. {EXPECTED[0].upper()}{EXPECTED[1:]}"
    text = (
        f"{named(tags)} joined after the round was drawn and {'is' if one else 'are'} not in "
        f"this round: {why}."
    )
    return [Finding(LIMIT, text)]


def _them(runs: Sequence[object]) -> str:
    return "it" if len(runs) == 1 else "them"


def _sizes(rows: Sequence[RankedRun]) -> str:
    least, most = (f"{size:,.0f}" for size in _ends([row.sample_size for row in rows]))
    if least == most:
        return f"effective sample size {most}"
    return f"effective sample sizes {least} to {most}"


def _ends(numbers: Sequence[float]) -> tuple[float, float]:
    return min(numbers), max(numbers)


def _of_goal(table: RankingTable, pairs: Pairwise) -> list[Finding]:
    row = table.round
    if len(table.rows) == 1:
        return _measured(table, table.rows[0].tag)
    if row.goal == Round.Goal.PAIR and row.run and row.baseline:
        return [_pair(table, pairs, row.run.tag, row.baseline.tag)]
    if row.goal == Round.Goal.BASELINE and row.baseline:
        return _against(table, pairs, row.baseline.tag)
    if row.goal == Round.Goal.SINGLE and row.run:
        return _measured(table, row.run.tag)
    return _in_the_race(table) if _is_race(table) else []


def _is_race(table: RankingTable) -> bool:
    """Whether the round looks for the best run, under this measure."""
    row = table.round
    return row.goal == Round.Goal.WINNER and table.measure == row.measure and len(table.rows) > 1


def _in_the_race(table: RankingTable) -> list[Finding]:
    """Who may still be the best: nobody is surely better; all others are worse than somebody."""
    tags = [row.tag for row in table.rows if row.rank_low == 1]
    if len(tags) == 1:
        return []
    if len(tags) == len(table.rows):
        every = "Both" if len(tags) == 2 else f"All {len(tags)}"
        return [Finding(OPEN, f"{every} runs are still in the race for the best.")]
    out = len(table.rows) - len(tags)
    others = "the other one is" if out == 1 else f"the other {out} are"
    text = f"{named(tags)} are still in the race for the best; {others} surely worse than another."
    return [Finding(OPEN, text)]


def _measured(table: RankingTable, tag: str) -> list[Finding]:
    """The value that the round was made for, or of the only run.

    Its interval is that of the ranking, in as many digits as it justifies.
    """
    row = next((each for each in table.known if each.tag == tag), None)
    if row is None or row.value is None:
        return []
    digits = decimals(max(row.high - row.value, row.value - row.low))
    value, low, high = (f"{number:.{digits}f}" for number in (row.value, row.low, row.high))
    text = f"{table.measure} of {tag} is {value}, between {low} and {high} with 95 % confidence."
    return [Finding(SURE, text)]


def _pair(table: RankingTable, pairs: Pairwise, first: str, second: str) -> Finding:
    verdict, reason = pairs.verdict(first, second), pairs.reason(first, second)
    if verdict == 0 and (within := pairs.within(first, second)):
        return Finding(SURE, f"{first} and {second} differ by at most {within:g}, for sure.")
    if why := table.purpose.of_difference(reason, first, second):
        return Finding(OPEN, f"The difference of {first} and {second} is {continued(why)}")
    if verdict == 0:
        return Finding(OPEN, f"{first} and {second} cannot be told apart.")
    better, worse = (first, second) if verdict > 0 else (second, first)
    return Finding(SURE, f"{better} is surely better than {worse}.")


def _against(table: RankingTable, pairs: Pairwise, baseline: str) -> list[Finding]:
    others = [row.tag for row in table.rows if row.tag != baseline]
    by_verdict = {
        sign: [tag for tag in others if pairs.verdict(tag, baseline) == sign] for sign in (1, -1)
    }
    unknown = sum(pairs.reason(tag, baseline) != Reason.KNOWN for tag in others)
    open_runs = len(others) - len(by_verdict[1]) - len(by_verdict[-1]) - unknown
    words = {1: "better", -1: "worse"}
    found = [
        Finding(SURE, f"Surely {words[sign]} than the baseline {baseline}: {named(tags)}.")
        for sign, tags in by_verdict.items()
        if tags
    ]
    if open_runs:
        runs = "1 run is" if open_runs == 1 else f"{open_runs} runs are"
        found.append(Finding(OPEN, f"{runs} not told apart from the baseline."))
    if unknown:
        runs = "1 run" if unknown == 1 else f"{unknown} runs"
        text = f"How {runs} compare{'s' if unknown == 1 else ''} with the baseline is not known."
        found.append(Finding(OPEN, text))
    return found


def _of_lead(table: RankingTable, pairs: Pairwise) -> list[Finding]:
    """The leader is the best run whose value is known."""
    if len(table.rows) == 1 or not table.known:
        return []
    leader, rivals = table.known[0], [row for row in table.known[1:] if row.as_good_as_leader]
    if not rivals:
        return _alone(table, leader)
    found = _contest(leader, rivals, pairs, told=_is_race(table))
    further = None if pairs.forecast else further_judgments(table, pairs)
    if further:
        found.append(Finding(OPEN, further))
    if 2 * leader.rank_high <= len(table.rows):
        text = f"{leader.tag} is surely among the best {leader.rank_high} of {len(table.rows)}."
        found.append(Finding(SURE, text))
    return found


def _enough(table: RankingTable, pairs: Pairwise) -> list[Finding]:
    """Runs with which one does not lose more than what is negligible, unless one is the best."""
    tags = pairs.enough
    if pairs.equivalence is None or not tags or len(table.rows) == 1:
        return []
    if all(pairs.verdict(tags[0], other) == 1 for other in pairs.runs if other != tags[0]):
        return []
    limit = f"at most {pairs.equivalence.within:g} below the best"
    is_ = "is" if len(tags) == 1 else "are each"
    return [Finding(SURE, f"{named(tags)} {is_} surely {limit}, which does not matter.")]


def _alone(table: RankingTable, leader: RankedRun) -> list[Finding]:
    """Said of a leader without rivals; runs that are not known may still be as good."""
    if not table.unknown_rivals:
        return [Finding(SURE, f"{leader.tag} is surely better than all others.")]
    others = len(table.known) - 1
    if not others:
        return []
    whose = "the other run" if others == 1 else f"all {others} other runs"
    text = f"{leader.tag} is surely better than {whose} whose value is known."
    return [Finding(SURE, text)]


def _unknown(table: RankingTable) -> list[Finding]:
    tags = [row.tag for row in table.unknown]
    if not tags:
        return []
    are = f"The value of {tags[0]} is" if len(tags) == 1 else f"The values of {named(tags)} are"
    return [Finding(LIMIT, f"{are} not known; why is said under the ranking.")]


def _contest(
    leader: RankedRun, rivals: Sequence[RankedRun], pairs: Pairwise, *, told: bool
) -> list[Finding]:
    """Runs compared with the leader in vain, and those of which the sample says too little.

    ``told``: that they are in the race was said already.
    """
    reasons = {row.tag: pairs.reason(row.tag, leader.tag) for row in rivals}
    close = [tag for tag, reason in reasons.items() if reason == Reason.KNOWN]
    unknown = [tag for tag in reasons if tag not in close]
    found = []
    if told:
        close = []
    if 0 < len(close) < NAMED:
        together = listed([leader.tag, *close])
        found.append(f"{together} cannot be told apart for the lead.")
    elif close:
        found.append(
            f"{len(close) + 1} runs cannot be told apart for the lead, {leader.tag} and "
            f"{close[0]} having the best estimates."
        )
    if unknown:
        found.append(f"Whether {leader.tag} is better than {named(unknown)} is not known.")
    return [Finding(OPEN, text) for text in found]


def further_judgments(table: RankingTable, pairs: Pairwise) -> str | None:
    """How many labels more would separate the first two, were their difference the true one.

    A standard error shrinks with the root of the number of labels; the verdict needs the critical
    value of the strictest of all comparisons. None if that is not a matter of finite numbers. Not
    said beside a forecast, which does not take the difference for the true one and is right more
    often: two numbers for one question would contradict each other.
    """
    if len(table.known) < 2 or table.guaranteed:  # bounds do not shrink with the root alone
        return None
    first, second = table.known[:2]
    reached = _told_apart_by_the_sample(table, first, second)
    unknown = pairs.reason(first.tag, second.tag) != Reason.KNOWN
    if unknown or not reached or first.value is None or second.value is None:
        return None
    difference = abs(first.value - second.value)
    i, j = pairs.runs.index(first.tag), pairs.runs.index(second.tag)
    margin = float(pairs.margin[i, j])
    labels, left = table.estimate_set.label_count, _left(table)
    if not (difference > 0 and math.isfinite(margin) and margin > 0 and labels and left != 0):
        return None
    growth = (margin * _strictness(table) / difference) ** 2
    if growth <= 1:
        return None
    shown = f"If their difference of {difference:.{decimals(difference)}f} is the true one, "
    apart = f"{first.tag} and {second.tag} apart"
    takes = f"roughly {_rounded(labels * (growth - 1)):,} further judgments tell {apart}."
    if growth > FARTHEST:
        takes = f"telling {apart} takes over {FARTHEST} times the judgments there are."
    if left is not None and labels * (growth - 1) >= left * table.round.labels_each:
        takes = f"judging {_rest(left)} should tell {apart}."
    return shown + takes


def what_more_buys(table: RankingTable, pairs: Pairwise) -> str | None:
    """How many undecided pairs of runs more judgments would decide, were the estimates the truth.

    As `further_judgments`, for all pairs whose difference is known and rests on what the sample
    reaches. None if none is undecided, or if that is not a matter of more judgments: bounds do not
    shrink with the root alone, and where everything is judged nothing is left to judge.
    """
    left, judged = _left(table), table.estimate_set.pair_count
    if table.guaranteed or table.round.preview.get("is_census") or left == 0:
        return None
    rows = {row.tag: row for row in table.known if not row.open_part}
    at = [index for index, tag in enumerate(pairs.runs) if tag in rows]
    if len(at) < 2:
        return None
    value = np.array([rows[pairs.runs[index]].value for index in at], dtype=np.float64)
    among = np.ix_(at, at)
    first, second = np.triu_indices(len(at), 1)
    still = (pairs.verdicts[among] == 0) & ~pairs.unknown[among].astype(bool)
    margin = pairs.margin[among][first, second] * _strictness(table)
    open_pairs = still[first, second] & np.isfinite(margin)
    distance = np.abs(value[first] - value[second])[open_pairs]
    total = int(np.count_nonzero(open_pairs))
    if not total:
        return None
    buys, end = [], "The closest would still be open: runs may just be equally good."
    twice = "twice as many judgments would decide about {:,} of them"
    for times, text in ((2, twice), (4, "four times as many about {:,}")):
        if left is not None and judged * (times - 1) >= left:
            buys.append(f"judging {_rest(left)} would decide all but those that are equally good")
            end = ""
            break
        decided = margin[open_pairs] < distance * math.sqrt(times)
        buys.append(text.format(np.count_nonzero(decided)))
    return (
        f"{total:,} pair{'' if total == 1 else 's'} of runs that more judgments could decide "
        f"{'is' if total == 1 else 'are'} open. Were the estimated differences the true ones, "
        f"{', and '.join(buys)}. {end}"
    ).strip()


def _left(table: RankingTable) -> int | None:
    """Pairs of the pool that are not judged: no more judgments can be had of it than these."""
    pool = table.round.pool
    return None if pool is None else max(0, pool.pair_count - table.estimate_set.pair_count)


def _rest(left: int) -> str:
    return f"what is left of the pool, {left:,} pair{'' if left == 1 else 's'},"


def _told_apart_by_the_sample(table: RankingTable, first: RankedRun, second: RankedRun) -> bool:
    """Whether no document out of reach matters between two runs, however many are judged.

    A design for differences leaves out what counts alike for the runs of its goal.
    """
    row = table.round
    if not (first.open_part or second.open_part):
        return True
    if first.late or second.late or table.measure != row.measure:
        return False
    if row.goal == Round.Goal.PAIR and row.run and row.baseline:
        return {first.tag, second.tag} == {row.run.tag, row.baseline.tag}
    return row.goal in (Round.Goal.BASELINE, Round.Goal.RANKING, Round.Goal.WINNER)


def _strictness(table: RankingTable) -> float:
    """Critical value of the strictest comparison at the end, as a multiple of that of a margin.

    Margins that hold at all looks at once are wider now than they will be when the round ends.
    """
    normal, runs = NormalDist(), len(table.rows)
    comparisons = runs * (runs - 1) // 2
    of_a_margin = (1.0 + table.estimate_set.at_this_look) / 2.0
    return normal.inv_cdf(1 - 0.025 / comparisons) / normal.inv_cdf(of_a_margin)


def _rounded(number: float) -> int:
    """To two digits: more would pretend to know."""
    power: int = 10 ** max(0, math.floor(math.log10(max(number, 1))) - 1)
    return max(power, round(number / power) * power)


def _decided(pairs: Pairwise) -> Finding:
    count = len(pairs.runs)
    total, decided = count * (count - 1) // 2, int((pairs.verdicts != 0).sum()) // 2
    kind = SURE if decided == total else OPEN
    unknown = int(np.count_nonzero(pairs.unknown)) // 2
    rest = f"; {unknown:,} {'is' if unknown == 1 else 'are'} not known" if unknown else ""
    if pairs.equivalence is not None:
        more = int((pairs.equivalent & (pairs.verdicts == 0)).sum()) // 2
        if more:
            differ = "differs" if more == 1 else "differ"
            rest = f", and {more:,} more {differ} by at most {pairs.equivalence.within:g}{rest}"
        kind = SURE if decided + more == total else OPEN
    return Finding(kind, f"{decided_of(decided, total)}{rest}.")


def named(tags: Sequence[str]) -> str:
    if len(tags) <= NAMED:
        return listed(tags)
    return f"{', '.join(tags[: NAMED - 1])} and {len(tags) - NAMED + 1} more"


def listed(tags: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(tags[:-1]), tags[-1])))

"""Which patterns the answers of everybody in a campaign show; `conduct` has the rules."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from judging import conduct
from judging.conduct import Pattern

LEAST_PEOPLE = 3
"""With whom somebody can be compared and still be told apart from the other."""
SELDOM = 0.2
"""Share of the pairs in common on which somebody came second, up to which they copy nobody."""


class SaidOfPair(NamedTuple):
    """``at`` rises with time. ``counts``: the person is not excluded. ``preference``: no grade."""

    who: int
    at: int
    grade: int
    counts: bool
    preference: bool


def patterns(
    orders: Mapping[int, Sequence[int]],
    shared: Mapping[int, Sequence[SaidOfPair]],
    *,
    grades: int,
    names: Mapping[int, str],
    every: Mapping[int, Sequence[int]] | None = None,
) -> dict[int, list[Pattern]]:
    """By row id of the person; of whoever shows none there is nothing.

    ``orders`` are everybody's grades in the order of judging, ``shared`` the answers by pair;
    ``every`` the orders with gold between (None: there is none). Work that is excluded is told of
    like any other, and held against answers that count.
    """
    found: dict[int, list[Pattern]] = defaultdict(list)
    plain = [[each for each in said if not each.preference] for said in shared.values()]
    every = orders if every is None else every
    given = Counter(grade for each in orders.values() for grade in each)
    beside = _beside(plain)
    for who, order in orders.items():
        others = beside[who]
        if others.total() < conduct.LEAST_ANSWERS:
            others = given - Counter(order)
        total = max(others.total(), 1)
        shares = np.array([others[grade] / total for grade in range(grades)])
        answers, with_gold = (np.array(each, dtype=np.int64) for each in (order, every[who]))
        found[who] += conduct.of_order(answers, shares=shares, every=with_gold)
    _add_unrelated(found, plain)
    _add_same(found, plain, names)
    return {who: each for who, each in found.items() if each}


def _beside(plain: Iterable[Sequence[SaidOfPair]]) -> dict[int, Counter[int]]:
    """What others said of the same pairs: topics differ, and so do those whom they are given to."""
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for said in plain:
        for each in said:
            found[each.who].update(
                other.grade for other in said if other.counts and other.who != each.who
            )
    return found


def _add_unrelated(found: dict[int, list[Pattern]], plain: Iterable[Sequence[SaidOfPair]]) -> None:
    own: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for said in plain:
        for each in said:
            others = [other.grade for other in said if other.counts and other.who != each.who]
            if others:
                own[each.who].append((each.grade, sum(others) / len(others)))
    related = {}
    for who, rows in own.items():
        columns = np.array(rows, dtype=np.float64)
        value = conduct.correlation(columns[:, 0], columns[:, 1])
        if value is not None:
            related[who] = value
    if len(related) < LEAST_PEOPLE:
        return
    usual = float(np.median(list(related.values())))
    for who, value in related.items():
        pattern = conduct.unrelated(value, len(own[who]), usual=usual)
        if pattern and not found[who]:  # else it is said already, and better
            found[who].append(pattern)


@dataclass
class _Couple:
    """Of two people: pairs in common, equal answers, those on which the first came later; and how
    often either agreed with somebody else on these pairs, of how many comparisons."""

    pairs: int = 0
    equal: int = 0
    later: int = 0
    with_others: int = 0
    others: int = 0


def _add_same(
    found: dict[int, list[Pattern]], plain: Iterable[Sequence[SaidOfPair]], names: Mapping[int, str]
) -> None:
    """Of two who answer alike, it is told of whoever came after the other; of both where that
    went to and fro.

    What is usual is told by others on the same pairs, which may be easy ones; where these are too
    few, by all other couples.
    """
    couples = _couples(plain)
    every = sum(each.pairs for each in couples.values())
    same = sum(each.equal for each in couples.values())
    for couple, two in couples.items():
        if two.pairs == every:
            continue  # there are no others to know from what is usual
        usual = (same - two.equal) / (every - two.pairs)
        if two.others >= conduct.LEAST_ANSWERS:
            usual = two.with_others / two.others
        after = two.later / two.pairs
        for who, beside, share in ((*couple, after), (*couple[::-1], 1.0 - after)):
            name = names.get(beside, "somebody else")
            pattern = conduct.same_answers(two.equal, two.pairs, usual, name)
            if pattern and share > SELDOM:
                found[who].append(pattern)


def _couples(plain: Iterable[Sequence[SaidOfPair]]) -> dict[tuple[int, int], _Couple]:
    couples: dict[tuple[int, int], _Couple] = defaultdict(_Couple)
    for said in plain:
        given = Counter(each.grade for each in said)
        for one, other in combinations(sorted(said), 2):
            two, equal = couples[one.who, other.who], one.grade == other.grade
            two.pairs += 1
            two.equal += equal
            two.later += one.at > other.at
            two.with_others += given[one.grade] + given[other.grade] - 2 - 2 * equal
            two.others += 2 * (len(said) - 2)
    return couples

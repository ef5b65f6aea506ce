"""How somebody judges: rules of plain numbers, each beside somebody whom it must not accuse."""

import numpy as np
import pytest
from scipy import stats

from judging import conduct
from judging.conduct import CYCLE, ONE_GRADE, SAME, UNRELATED, ReadingPace, chance_of
from judging.habits import SaidOfPair, patterns

SHARES = np.array([0.6, 0.2, 0.1, 0.1])


def reading(
    rng: np.random.Generator, count: int, *, rate: float = 0.01, spread: float = 0.3
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and characters of somebody who reads ``1 / rate`` characters a second."""
    characters = rng.integers(200, 9000, count).astype(float)
    return rate * (600 + characters) * np.exp(rng.normal(0, spread, count)), characters


# ------------------------------------------------------------------------------------- too fast


def test_usual_time_is_found_however_somebody_reads() -> None:
    rng = np.random.default_rng(1)
    for rate in (0.004, 0.02):
        seconds, characters = reading(rng, 200, rate=rate)
        pace = ReadingPace.of(seconds, characters)
        assert pace is not None
        expected = rate * (600 + np.array([500.0, 5000.0]))
        np.testing.assert_allclose(pace.usual(np.array([500.0, 5000.0])), expected, rtol=0.15)
        assert pace.slope == pytest.approx(1.0, abs=0.15)


def test_what_does_not_hang_on_the_length_is_not_told_by_it() -> None:
    rng = np.random.default_rng(2)
    _, characters = reading(rng, 200)
    pace = ReadingPace.of(8.0 * np.exp(rng.normal(0, 0.3, 200)), characters)
    assert pace is not None
    assert pace.slope < 0.1
    falling = ReadingPace.of(9000.0 / characters, characters)
    assert falling is not None
    assert falling.slope == 0.0


def test_quick_ones_are_found_and_do_not_move_what_is_usual() -> None:
    rng = np.random.default_rng(3)
    seconds, characters = reading(rng, 200)
    seconds[:20] /= 12.0
    pace = ReadingPace.of(seconds, characters)
    assert pace is not None
    found = pace.too_fast(seconds, characters)
    assert found[:20].mean() > 0.9
    assert found[20:].mean() < 0.02


def test_the_rule_adapts_to_how_even_somebody_is() -> None:
    """The twin, a quarter of the usual time for all, accuses the uneven one."""
    rng = np.random.default_rng(4)
    even = reading(rng, 400, spread=0.2)
    uneven = reading(rng, 400, spread=0.9)
    accused = []
    for seconds, characters in (even, uneven):
        pace = ReadingPace.of(seconds, characters)
        assert pace is not None
        accused.append(int((pace.too_fast(seconds, characters)).sum()))
        twin = int((seconds < 0.25 * pace.usual(characters)).sum())
    assert accused[0] == 0
    assert accused[1] <= 4 < twin
    pace = ReadingPace.of(*even)
    assert pace is not None
    one = np.array([0.3 * pace.usual(np.array([4000.0]))[0]])
    assert pace.too_fast(one, np.array([4000.0]))[0], "who is so even does not take a third"


def test_nobody_reads_a_text_in_no_time_however_usual_that_is_for_them() -> None:
    seconds, characters = np.full(50, 0.3), np.full(50, 3000.0)
    pace = ReadingPace.of(seconds, characters)
    assert pace is not None
    assert pace.too_fast(seconds, characters).all()
    assert not pace.too_fast(np.array([0.3]), np.array([20.0])).any(), "twenty characters are read"
    np.testing.assert_allclose(conduct.floor(np.array([0.0, 50.0, 1e6])), [0.0, 0.5, 1.0])


def test_of_few_times_nothing_is_told() -> None:
    assert ReadingPace.of(np.full(9, 1.0), np.full(9, 100.0)) is None


# ------------------------------------------------------------------------------------- patterns


def test_chances_are_those_of_the_binomial_distribution() -> None:
    for least, among, share in ((38, 40, 0.6), (0, 5, 0.2), (3, 3, 0.5), (20, 100, 0.1)):
        assert chance_of(least, among, share) == pytest.approx(
            stats.binom.sf(least - 1, among, share), rel=1e-9
        )
    assert chance_of(1, 9, 0.0) == 0.0
    assert chance_of(9, 9, 1.0) == 1.0


def test_one_grade_for_all_is_told_where_others_differ_and_not_where_nearly_all_is_one() -> None:
    alike = np.zeros(40, dtype=np.int64)
    (found,) = conduct.of_order(alike, shares=SHARES)
    assert (found.kind, found.grade, found.matching, found.among) == (ONE_GRADE, 0, 40, 40)
    assert "40 of 40 answers are grade 0" in found.sentence
    assert conduct.of_order(alike, shares=np.array([0.95, 0.05, 0.0, 0.0])) == []
    assert conduct.of_order(alike[:19], shares=SHARES) == []
    assert conduct.of_order(alike, shares=np.zeros(4)) == [], "nobody to know from what is usual"


@pytest.mark.parametrize("order", [(0, 3), (0, 1, 2, 3), (1, 1, 3)])
def test_answers_in_turn_are_told(order: tuple[int, ...]) -> None:
    grades = np.resize(np.array(order), 40)
    grades[17] = 2
    (found,) = conduct.of_order(grades, shares=SHARES)
    assert (found.kind, found.period) == (CYCLE, len(order))


@pytest.mark.parametrize("gold_every", [3, 6])
def test_answers_in_turn_are_told_where_some_of_them_went_to_gold(gold_every: int) -> None:
    """Without the answers between them nothing comes round."""
    rng = np.random.default_rng(3)
    every = np.resize(np.array([0, 3]), 120)
    plain = every[rng.random(120) > 1.0 / gold_every]
    found = patterns({1: plain}, {}, grades=4, names={}, every={1: every})
    assert [(each.kind, each.period) for each in found[1]] == [(CYCLE, 2)]
    assert patterns({1: plain}, {}, grades=4, names={}) == {}, "the twin that forgets gold"


def test_who_reads_topic_by_topic_has_no_order() -> None:
    """Whole topics of one grade: neighbors are alike, and so are answers two before."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        topics = rng.choice(4, size=8, p=SHARES)
        found = conduct.of_order(np.repeat(topics, 6), shares=SHARES)
        assert [each.kind for each in found if each.kind != ONE_GRADE] == []
        assert conduct.of_order(rng.choice(4, size=60, p=SHARES), shares=SHARES) == []


def answers(rows: list[tuple[int, int, int]]) -> dict[int, list[SaidOfPair]]:
    """Of (pair, who, grade), given in this order."""
    shared: dict[int, list[SaidOfPair]] = {}
    for at, (pair, who, grade) in enumerate(rows):
        shared.setdefault(pair, []).append(SaidOfPair(who, at, grade, True, False))
    return shared


def crowd(seed: int, *, pairs: int = 60, people: int = 5) -> list[tuple[int, int, int]]:
    """Everybody reads, with errors of their own."""
    rng = np.random.default_rng(seed)
    level = rng.choice(4, size=pairs, p=SHARES)
    seen = level[:, None] + np.round(rng.normal(0, 0.6, (pairs, people))).astype(int)
    grades = np.clip(seen, 0, 3)
    return [(pair, who, int(grades[pair, who])) for who in range(people) for pair in range(pairs)]


def told(rows: list[tuple[int, int, int]]) -> dict[int, list[tuple[str, str]]]:
    names = {who: f"p{who}" for _, who, _ in rows}
    found = patterns({}, answers(rows), grades=4, names=names)
    return {who: [(each.kind, each.other) for each in every] for who, every in found.items()}


def test_one_grade_is_held_against_what_others_said_of_the_same_pairs() -> None:
    """Somebody who was given topics without anything relevant; the twin looks at all pairs."""
    later = np.random.default_rng(1).integers(4, size=(160, 3))
    later[:40] = 0
    rows = [(pair, who, int(later[pair, who])) for who in range(3) for pair in range(160)]
    rows = [row for row in rows if row[1] or row[0] < 40]
    orders = {who: [grade for _, each, grade in rows if each == who] for who in range(3)}
    assert patterns(orders, answers(rows), grades=4, names={}) == {}
    twin = patterns(orders, {}, grades=4, names={})
    assert [each.kind for each in twin[0]] == [ONE_GRADE]


def test_luck_has_nothing_to_do_with_others_and_who_reads_has() -> None:
    assert told(crowd(6)) == {}
    rng = np.random.default_rng(7)
    rows = crowd(6) + [(pair, 9, int(rng.integers(4))) for pair in range(60)]
    assert told(rows) == {9: [(UNRELATED, "")]}
    turned = crowd(6) + [(pair, 9, min(3, grade + 1)) for pair, who, grade in crowd(6) if who == 0]
    assert 9 not in told(turned), "somebody lenient relates to others"


def test_where_nobody_agrees_nobody_is_called_unrelated() -> None:
    rng = np.random.default_rng(8)
    rows = [(pair, who, int(rng.integers(4))) for who in range(5) for pair in range(60)]
    assert told(rows) == {}


def test_who_came_later_copies_and_not_who_is_copied() -> None:
    rows = crowd(6) + [(pair, 9, grade) for pair, who, grade in crowd(6) if who == 2]
    assert told(rows) == {9: [(SAME, "p2")]}
    two = zip(*(only(rows, who) for who in (2, 9)), strict=True)
    mixed = [row for couple in two for row in couple]
    half = [row if at % 4 < 2 else mixed[at ^ 1] for at, row in enumerate(mixed)]
    both = told([row for row in rows if row[1] not in (2, 9)] + half)
    assert both == {2: [(SAME, "p9")], 9: [(SAME, "p2")]}, "to and fro, nobody knows who"


def only(rows: list[tuple[int, int, int]], who: int) -> list[tuple[int, int, int]]:
    return [row for row in rows if row[1] == who]


def test_where_all_agree_nobody_copies() -> None:
    rng = np.random.default_rng(9)
    level = rng.choice(4, size=60, p=SHARES)
    rows = [(pair, who, int(level[pair])) for who in range(4) for pair in range(60)]
    assert told(rows) == {}
    assert told([row for row in crowd(6) if row[1] < 2]) == {}, "two cannot be held against others"


def test_excluded_work_is_held_against_what_counts_and_not_the_other_way() -> None:
    rng = np.random.default_rng(7)
    rows = answers(crowd(6) + [(pair, 9, int(rng.integers(4))) for pair in range(60)])
    aside = {
        pair: [each._replace(counts=each.who != 9) for each in said] for pair, said in rows.items()
    }
    found = patterns({}, aside, grades=4, names={})
    assert list(found) == [9]


# ------------------------------------------------------------------------------------- change


def test_a_slide_is_told_and_luck_is_not() -> None:
    rng = np.random.default_rng(10)
    slide = (np.linspace(-0.8, 0.8, 80) + rng.normal(0, 0.5, 80)).tolist()
    found = conduct.over_time([5.0] * 80, slide)
    assert found is not None
    assert [part.first for part in found.parts] == [1, 21, 41, 61]
    assert [part.last for part in found.parts] == [20, 40, 60, 80]
    assert found.drift == pytest.approx(1.2, abs=0.4)
    assert found.parts[0].seconds == 5.0
    even = [conduct.over_time([None] * 80, rng.normal(0.3, 0.5, 80).tolist()) for _ in range(200)]
    assert sum(each is not None and each.drift is not None for each in even) <= 4
    assert even[0] is not None
    assert even[0].parts[0].seconds is None


def test_of_a_short_time_no_change_is_told() -> None:
    assert conduct.over_time([1.0] * 19, [0.0] * 19) is None
    found = conduct.over_time([1.0] * 20, [None] * 20)
    assert found is not None
    assert (found.drift, found.parts[0].above, found.parts[0].shared) == (None, None, 0)

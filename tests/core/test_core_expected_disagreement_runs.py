"""Expected disagreement where the utility of a grade differs from run to run."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows, pair_labels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.terms import Noise, linear_terms
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior

SWAPS, MAE, BINARY = map(parse_measure, ("#ofSwaps", "MAE", "P@1"))
TOPICS, DOCUMENTS, SWAPPED, WRONG, TWICE, TRIALS = 20, 6, 3, 0.4, 0.1, 40


def documents(**lists: Sequence[str]) -> Pool:
    """A pool of runs, each with one list of documents a topic, of falling scores."""
    topics = tuple(f"t{number:02}" for number in range(len(next(iter(lists.values())))))
    return build_pool(
        topics, {tag: _ranked(topics, each) for tag, each in lists.items()}, depth=9, scores=True
    )


def _ranked(topics: tuple[str, ...], lists: Sequence[str]) -> RankedLists:
    names = np.array([docno.encode() for each in lists for docno in each])
    scores = np.concatenate([np.arange(len(each), 0, -1.0) for each in lists])
    return RankedLists(topics, np.cumsum([0, *map(len, lists)]), names, scores)


def noise_of(pool: Pool, measure: str, rows: LabelRows, name: str = "noise") -> np.ndarray:
    """The noise of each pair in the covariance of every two runs."""
    terms = linear_terms(pool, parse_measure(measure), pairs=np.arange(len(pool)), rows=rows)
    noise = getattr(terms, name)
    assert noise is not None
    deviations = noise.rows.toarray()
    found = np.zeros((len(pool), len(pool.runs), len(pool.runs)))
    each = noise.scale[:, None, None] * deviations[:, :, None] * deviations[:, None, :]
    np.add.at(found, noise.pair, each)
    return found


def test_of_two_grades_it_is_that_of_gains() -> None:
    """Each grade is right for one of two orders, so that runs gain or lose by it alike."""
    pool = preference_pool(documents(a=["uvwx"], b=["xvwu"]), depth=4)
    pair = np.array([0, 0, 1, 1, 2, 2, 2, 3, 4, 5])
    grade = np.array([0, 2, 2, 2, 0, 0, 2, 0, 2, 0])
    found = noise_of(pool, "#ofSwaps", LabelRows(pair, grade))
    gains = pair_labels(LabelRows(pair, grade // 2), pairs=len(pool), measure=BINARY)
    weight = pool.entry_weights(SWAPS)[0] ** 2
    assert found[:, 0, 0] == pytest.approx(weight * gains.with_expected().noise)
    likely = noise_of(pool, "#ofSwaps", LabelRows(pair, grade), "noise_by_grades")
    assert likely[:, 0, 0] == pytest.approx(weight * gains.likely_noise)
    assert np.abs(found[:, 0, 1]) == pytest.approx(found[:, 0, 0])
    assert (found[:, 0, 1] < 0.0).any(), "where their orders differ, what one gains the other loses"


def test_a_pair_with_one_judgment_has_what_its_grade_lets_one_expect() -> None:
    """By hand: two pairs with 0 and 2 and with 1 and 1, and one with 0 alone; a run says 2.5."""
    pool = documents(a=["uvw"])
    pool = replace(pool, score=np.array([0.5, 1.0, 2.5]))
    rows = LabelRows(np.array([0, 0, 1, 1, 2]), np.array([0, 2, 1, 1, 0]))
    found = noise_of(pool, "MAE", rows)[2, 0, 0]
    apart = {(0, 1): (2.5 - 1.5) ** 2, (0, 2): (2.5 - 0.5) ** 2, (1, 2): (1.5 - 0.5) ** 2}
    seen = {(0, 1): 0.0, (0, 2): 1.0, (1, 2): 0.0}
    steps = {(0, 1): 0.5, (0, 2): 0.0, (1, 2): 0.5}
    expected = sum(
        ((0.5 * seen[two] + 3.0 * (seen[two] + steps[two]) / 3.0) / (0.5 + 3.0)) * apart[two] / 2.0
        for two in apart
    )
    assert found == pytest.approx(expected * pool.entry_weights(MAE)[2] ** 2)


def false_verdicts() -> float:
    """Share of campaigns in which errors tell apart runs that differ in three equal preferences."""
    generator = np.random.default_rng(4)
    first = ["".join(generator.permutation(list("uvwxyz"))) for _ in range(TOPICS)]
    second = [each[0] + each[2] + each[1] + each[3:] for each in first[:SWAPPED]] + first[SWAPPED:]
    third = [each[::-1] for each in first]
    pool = preference_pool(documents(a=first, b=second, c=third), depth=DOCUMENTS)
    about = {"goal": goals.ranking(*pool.runs), "measure": SWAPS, "max_grade": 2}
    planned = make_design(
        pool,
        prior=make_prior(pool, name="constant", **about),
        budget=len(pool),
        batch_size=len(pool),
        **about,
    )
    part = PairRound(planned, draw(pool, planned, seed="x"))
    orders = pool.by_pair(pool.predictions).toarray()
    grades = np.where(orders[:, 0] == orders[:, 1], generator.integers(0, 3, len(pool)), 1)
    assert np.count_nonzero(orders[:, 0] != orders[:, 1]) == SWAPPED
    told = []
    for trial in range(TRIALS):
        random = np.random.default_rng(trial)
        pairs = np.append(np.arange(len(pool)), np.flatnonzero(random.random(len(pool)) < TWICE))
        moved = (grades[pairs] + random.integers(1, 3, len(pairs))) % 3
        given = np.where(random.random(len(pairs)) < WRONG, moved, grades[pairs])
        asked = {"labels": LabelRows(pairs, given), "measures": [SWAPS], "max_grade": 2}
        told.append(bool(evaluate(pool, part, **asked).results[0].ranking.verdicts[0, 1]))
    return float(np.mean(told))


@pytest.mark.slow
def test_runs_that_differ_in_few_preferences_are_not_told_apart_by_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the twin pairs with two judgments, one in ten, stand for nine others each."""
    assert false_verdicts() <= 0.1
    stands = lambda noise, _: replace(noise, scale=noise.scale * (1.0 + 2.0 * 9.0))  # noqa: E731
    monkeypatch.setattr(Noise, "with_more", stands)
    assert false_verdicts() > 0.3

"""Where nearly everything is judged, what one missed document changes is no verdict."""

import numpy as np
import pytest
from scipy import stats

from estimation.core.inference.missed import Missed
from estimation.core.inference.ranks import rank_runs
from estimation.core.inference.simultaneous import equivalence, margins


def test_so_many_are_missed_as_all_but_few_trials_have() -> None:
    """Two runs, one of which may miss a document of weight .1: Poisson, by hand."""
    error = 0.05
    for number, most in ((0.04, 0), (0.06, 1), (0.3, 1), (1.0, 3)):
        missed = Missed(np.diag([number * 0.01, 0.0]), np.array([0.1, 0.1]))
        least = missed.least_errors(confidence=1.0 - error)
        assert stats.poisson.sf(most, number) <= error
        assert most == 0 or stats.poisson.sf(most - 1, number) > error
        reach = least[0, 1] * stats.norm.ppf(1.0 - error / 2.0)
        assert reach == pytest.approx(0.0 if most == 0 else (most + 0.5 - number) * 0.1)
        assert least[0, 0] == least[1, 1] == 0.0


def test_a_document_that_may_have_been_missed_keeps_runs_from_being_equivalent() -> None:
    """The estimates differ by nothing, with next to no error; without a least error they would."""
    value, covariance = np.array([0.5, 0.5]), 1e-12 * np.eye(2)
    ranking = rank_runs(value, covariance=covariance, df=np.full((2, 2), 1e6), tags=("a", "b"))
    given = {"within": 0.05, "confidence": 0.95, "slack": np.zeros((2, 2))}
    least = np.array([[0.0, 0.1], [0.1, 0.0]])
    assert equivalence(ranking, **given).pairs(ranking.unknown)[0, 1]
    assert not equivalence(ranking, **given, least=least).pairs(ranking.unknown)[0, 1]


def test_values_reach_up_to_what_may_have_been_missed() -> None:
    """A run of which a tenth of a document is expected to be missed, and one with none at all."""
    missed = Missed(np.diag([0.1 * 0.01, 0.0]), np.array([0.1, 0.1]))
    reach = missed.least_reach(confidence=0.95)
    # Geometric with the mean .1: two or more are missed in (.1/1.1)^2 = .008 of the trials.
    assert reach == pytest.approx([(1.0 + 0.5 - 0.1) * 0.1, 0.0])
    few = Missed(np.diag([0.02 * 0.01, 0.03 * 0.01]), np.array([0.1, 0.1]))
    assert (few.least_reach(confidence=0.95) > 0.0).tolist() == [False, True]


def test_single_differences_reach_as_far_as_one_document_that_may_have_been_missed() -> None:
    """Of .1 documents expected in which two runs differ, in .005 of the trials there are two."""
    squares = 0.01 * np.array([[0.1, 0.05, 0.1], [0.05, 0.1, 0.05], [0.1, 0.05, 0.1]])
    found = Missed(squares, np.full(3, 0.1)).least_margins(confidence=0.95)
    assert found[0, 1] == found[1, 0] == pytest.approx((1.0 + 0.5 - 0.1) * 0.1)
    assert found[0, 2] == np.diag(found).max() == 0.0, "two runs that nothing tells apart"
    left = Missed(squares / 100.0, np.full(3, 0.1), left=np.array([0.6, 0.1, 0.0]))
    found = left.least_margins(confidence=0.95)
    assert found[0, 1] == pytest.approx((2.0 + 0.5 - 0.301) * 0.1), "half of the larger is theirs"
    assert found[0, 2] == 0.0
    assert Missed(squares / 100.0, np.full(3, 0.1)).least_margins(confidence=0.95).max() == 0.0
    assert Missed(1000.0 * squares, np.full(3, 0.1)).least_margins(confidence=0.95).max() == 0.0


def test_a_margin_is_at_least_what_may_have_been_missed() -> None:
    """Also where some differences are negligible; verdicts do not depend on it."""
    value, covariance = np.array([0.5, 0.6]), 1e-6 * np.eye(2)
    given = {"covariance": covariance, "df": np.full((2, 2), 1e6), "tags": ("a", "b")}
    least = np.array([[0.0, 0.2], [0.2, 0.0]])
    ranking = rank_runs(value, **given, least_margin=least)
    assert ranking.margin[0, 1] == 0.2
    assert ranking.verdicts[1, 0] == 1
    assert margins(ranking, 0.9, least=least)[0, 1] == 0.2
    assert margins(ranking, 0.9)[0, 1] < 0.01


def test_a_run_of_which_nothing_was_found_reaches_as_far_as_its_pairs_that_are_left() -> None:
    """Ten pairs left and sixty judged: the model has next to nothing, one find more has .16."""
    missed = Missed(np.diag([1e-9]), np.array([0.1]), left=np.array([10.0 / 61.0]))
    assert missed.least_reach(confidence=0.95) == pytest.approx([(1.5 - 10.0 / 61.0) * 0.1])
    assert Missed(np.diag([1e-9]), np.array([0.1])).least_reach(confidence=0.95) == [0.0]


def test_where_many_are_missed_intervals_are_long_enough() -> None:
    missed = Missed(np.diag([40.0 * 0.01]), np.array([0.1]))
    assert missed.least_reach(confidence=0.95) == [0.0]


def test_a_difference_that_missed_documents_may_make_is_no_verdict() -> None:
    """Two documents between two of 20 runs whose errors are one and the same.

    The least error allows for as many standard errors as 190 unlike differences take, and verdicts
    on these take 1.96.
    """
    runs, document = 20, 0.1
    value = np.append([2.0 * document], np.zeros(runs - 1))
    shared = 1e-9 * np.multiply.outer(np.arange(runs), np.arange(runs)).astype(float)
    missed = Missed(np.diag(0.02 * document**2 * np.ones(runs)), np.full(runs, document))
    beyond = missed.beyond(confidence=0.95)
    assert beyond[0, 1] == pytest.approx((2.0 + 0.5 - 0.04) * document)
    given = {
        "covariance": shared,
        "df": np.full((runs, runs), 1e6),
        "tags": tuple(f"{run:02}" for run in range(runs)),
        "least": missed.least_errors(confidence=0.95),
    }
    assert rank_runs(value, **given).verdicts[0, 1] == 1, "the twin"
    assert not rank_runs(value, **given, beyond=beyond).verdicts.any()
    assert rank_runs(1.5 * value, **given, beyond=beyond).verdicts[0, 1:].all()

"""Where nearly everything is judged, what one missed document changes is no verdict."""

import numpy as np
import pytest
from scipy import stats

from estimation.core.arrays import FloatArray
from estimation.core.inference import missed as missed_pairs
from estimation.core.inference.missed import Missed
from estimation.core.inference.ranks import adjusted_by_missed, rank_runs
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
    assert adjusted_by_missed(missed, np.subtract.outer(value, value))[0, 1] > 0.05
    given = {
        "covariance": shared,
        "df": np.full((runs, runs), 1e6),
        "tags": tuple(f"{run:02}" for run in range(runs)),
        "least": missed.least_errors(confidence=0.95),
    }
    assert rank_runs(value, **given).verdicts[0, 1] == 1, "the twin"
    assert not rank_runs(value, **given, missed=missed).verdicts.any()
    assert rank_runs(1.5 * value, **given, missed=missed).verdicts[0, 1:].all()


@pytest.mark.parametrize(("ahead", "behind"), [(0.0, 3.0), (3.0, 0.0), (0.4, 0.6), (2.0, 1.5)])
def test_how_seldom_so_much_is_missed_is_told_as_by_hand(ahead: float, behind: float) -> None:
    """Over all numbers of documents that two runs miss, a half beyond the difference."""
    apart, counts = 2.6, np.arange(40)
    missed = Missed(0.01 * np.diag([ahead, behind]), np.array([0.1, 0.1]), lost=np.zeros(2))
    of_both = np.outer(stats.poisson.pmf(counts, ahead), stats.poisson.pmf(counts, behind))
    off = np.subtract.outer(-(counts - ahead), -(counts - behind))  # of the first less the second
    found = adjusted_by_missed(missed, apart * np.array([[0.0, 0.1], [-0.1, 0.0]]))
    assert found[0, 1] == found[1, 0] == pytest.approx(of_both[off > apart - 0.5 - 1e-9].sum())
    assert found[0, 0] == adjusted_by_missed(missed, np.zeros((2, 2)))[0, 1] == 1.0


def test_pairs_that_are_worse_than_is_told_speak_for_the_other_run() -> None:
    """Of the run ahead; and where nobody knows which pairs raise a value, nothing makes up."""
    squares, step = 0.01 * np.diag([2.0, 0.7]), np.array([0.1, 0.1])
    lead = np.array([[0.0, 0.36], [-0.36, 0.0]])

    def found(*lost: float) -> float:
        return float(Missed(squares, step, lost=np.array(lost)).p_values(lead)[0, 1])

    def by_hand(behind: float) -> float:
        enough = np.ceil(3.6 + behind - (2.7 - behind) - 0.5)
        return float(stats.skellam.sf(enough - 1, behind, 2.7 - behind))

    assert found(0.0, 0.0) == pytest.approx(by_hand(0.7))
    assert found(0.25, 0.0) == pytest.approx(by_hand(0.7 + 0.5))
    assert found(0.25, 1.0) == pytest.approx(by_hand(0.5))
    alone = stats.poisson.sf(np.ceil(3.6 + 2.7 - 0.5) - 1, 2.7)
    assert Missed(squares, step).p_values(lead)[0, 1] == pytest.approx(alone)


def test_what_is_certain_or_cannot_be_missed_is_not_made_by_it() -> None:
    two = np.array([[0.0, 0.25], [-0.25, 0.0]])
    missed = Missed(np.diag([0.01, 0.01]), np.array([0.1, 0.1]))
    assert adjusted_by_missed(missed, two)[0, 1] > 0.0
    assert adjusted_by_missed(missed, two, two != 0.0)[0, 1] == 0.0
    assert Missed(np.zeros((2, 2)), np.zeros(2)).p_values(two)[0, 1] == 0.0


def test_what_is_beyond_leaves_others_fewer_to_be_compared_with() -> None:
    """Where next to nothing is expected all are compared, and nothing makes up for it."""
    runs, document = 20, 0.1
    value = np.append([0.0, 0.0], 10.0 * np.arange(1, runs - 1))
    for number, apart, compared in ((2.0, 4.0, 1), (0.6, 2.5, 1), (0.4, 2.5, 190)):
        value[0] = apart * document
        of_one, step = 0.5 * number * document**2, np.full(runs, document)
        missed = Missed(of_one * np.eye(runs), step, lost=np.zeros(runs))
        if compared == 1:
            enough = np.ceil(apart - 0.5)
            single = stats.skellam.sf(enough - 1, number / 2.0, number / 2.0)
        else:
            single = stats.poisson.sf(np.ceil(apart + number - 0.5) - 1, number)
        found = adjusted_by_missed(missed, np.subtract.outer(value, value))[0, 1]
        assert found == pytest.approx(min(1.0, compared * single))
        assert 190 * single > 0.05 > single


def any_false() -> float:
    """The chance of any false verdict between three tied runs, over all numbers that are missed.

    Two of them miss documents, about Poisson, of which what is expected is in their values. Other
    runs are far apart. There is no error but this.
    """
    runs, number, document, counts = 9, 1.5, 0.1, np.arange(14)
    missed = Missed(
        np.diag(np.append([0.0, number, number], np.zeros(runs - 3)) * document**2),
        np.full(runs, document),
        lost=np.zeros(runs),
    )
    chance, total = stats.poisson.pmf(counts, number), 0.0
    for one, other in np.ndindex(len(counts), len(counts)):
        value = 100.0 * np.arange(runs, dtype=np.float64)
        value[:3] = document * (number - np.array([number, one, other]))
        told = rank_runs(
            value,
            covariance=1e-12 * np.eye(runs),
            df=np.full((runs, runs), 1e6),
            tags=tuple(f"{run:02}" for run in range(runs)),
            missed=missed,
        )
        total += chance[one] * chance[other] * bool(told.verdicts[:3, :3].any())
    return total


def test_any_false_verdict_by_what_was_missed_is_seldom() -> None:
    """Two-sided: 33 of 36 differences are beyond it, and leave three to be compared."""
    assert 0.01 < any_false() <= 0.05


@pytest.mark.parametrize(("times", "least", "most"), [(1, 0.055, 1.0), (36, 0.0, 0.005)])
def test_twins_that_adjust_nothing_or_compare_all_are_caught(
    monkeypatch: pytest.MonkeyPatch, times: int, least: float, most: float
) -> None:
    adjust = "estimation.core.inference.ranks.holm"
    monkeypatch.setattr(adjust, lambda single: np.minimum(times * single, 1.0))
    assert least < any_false() < most


def test_the_twin_for_which_nothing_can_be_less_than_expected_tells_ties_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that missed less than was expected is not ahead because of that."""
    told = missed_pairs._skellam_at_least

    def one_or_more(enough: FloatArray, more: FloatArray, less: FloatArray) -> FloatArray:
        return told(np.maximum(enough, 1.0), more, less)

    monkeypatch.setattr(missed_pairs, "_skellam_at_least", one_or_more)
    assert any_false() > 0.5

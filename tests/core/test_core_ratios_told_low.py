"""How far ratios of adaptive rounds are lower than unbiased sums say, and what is made of it."""

from itertools import product

import numpy as np
import pytest

from estimation.core.data.pool import build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates.ratio_frames import Frame, Gains
from estimation.core.estimates.ratio_labels import BiasLeft
from estimation.core.estimates.ratio_lines import Tangent
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive.beyond import Beyond, share_at_most
from estimation.core.rounds.adaptive.ratios import lowered

AP, NDCG, RPREC = map(parse_measure, ("AP", "nDCG@3", "Rprec"))
TOPICS = 4


def told_low(times: float, told: float, *, error: float = 0.0) -> float:
    """Of one run, where two topics of four have no find, and a ratio of .4 each is expected."""
    beyond = Beyond(np.array([1, 3]), np.array([times]), np.array([error]))
    ratios, share = np.full((TOPICS, 1), 0.4 / TOPICS), np.full(TOPICS, 0.5)
    return float(beyond.told_low(np.full((TOPICS, 1), told / TOPICS), ratios, share)[0])


def test_what_is_told_less_than_sums_say_is_too_low() -> None:
    assert told_low(2.0, 0.1) == pytest.approx(-2 * (0.5 * 0.8 - 0.1) / TOPICS)
    assert told_low(9.0, 0.1) == pytest.approx(-2 * (0.5 * 1.0 - 0.1) / TOPICS), "1 at most"


def test_what_is_told_more_than_sums_say_goes_for_nothing() -> None:
    assert told_low(0.2, 0.1) == 0.0


def test_what_may_be_chance_is_not_believed() -> None:
    less, chance = 2 * (0.4 - 0.1) / TOPICS, 0.5 * 0.5 * 2 * 0.4 / TOPICS
    assert told_low(2.0, 0.1, error=0.5) == pytest.approx(-np.sqrt(less**2 - chance**2))
    assert told_low(2.0, 0.1, error=4.0) == 0.0


def test_the_chance_of_any_is_at_most_what_is_taken_whatever_pairs_have_to_do_with_each_other() -> (
    None
):
    """1 - P0, the twin, is less than the chance that is there if never two of them are relevant."""
    for chances in product((0.05, 0.2, 0.4), repeat=3):
        nothing = np.array([np.prod(1.0 - np.array(chances))])
        alone = min(sum(chances), 1.0)
        assert share_at_most(nothing, AP)[0] >= alone
        assert 1.0 - nothing[0] < alone, "the twin"
    assert share_at_most(np.array([0.0, 1.0]), AP).tolist() == [1.0, 0.0]


def test_rprec_of_less_than_one_document_has_the_chance_of_any_in_it() -> None:
    assert share_at_most(np.array([0.0, 0.7, 1.0]), RPREC).tolist() == [1.0, 1.0, 1.0]


def test_what_left_bias_allows_for_downward_is_not_allowed_for_twice() -> None:
    left, low = np.array([-0.03, -0.01, 0.0, 0.05]), np.full(4, -0.02)
    assert BiasLeft(left, left, low).further_down == pytest.approx([0.0, -0.01, -0.02, -0.02])
    assert BiasLeft(left, left).further_down.tolist() == [0.0] * 4


# ------------------------------------------------------------ counts not below what was found


def with_count(measure: Measure, estimated: float, found: int) -> tuple[Tangent, np.ndarray]:
    """A topic of eight documents of one run, whose estimates sum to what is given."""
    documents = np.array([f"d{at}".encode() for at in range(8)])
    pool = build_pool(["t"], {"a": RankedLists(("t",), np.array([0, 8]), documents)}, depth=8)
    reach = np.full((1, 8), estimated / 8)
    gains = Gains(np.ones(1), reach, np.arange(8), np.ones(8), None, np.array([[float(found)]]))
    tangent = Tangent.of(Frame.of(pool, measure, gains, None), measure)
    return tangent, np.clip(tangent.by_topic, 0.0, 1.0)


@pytest.mark.parametrize("estimated", [4.0, 4.9])
def test_a_count_that_was_raised_tells_what_ratios_lose(estimated: float) -> None:
    tangent, ratio = with_count(AP, estimated, 5)
    assert lowered(tangent, AP, ratio)[0] == pytest.approx(ratio[0] * (1.0 - 5.0 / estimated))


def test_a_count_that_came_out_below_0_was_raised_by_no_more_than_it_is() -> None:
    tangent, ratio = with_count(AP, -4.0, 5)
    assert lowered(tangent, AP, np.full_like(ratio, 0.3))[0] == pytest.approx(-0.3), "twice as many"


def test_an_ideal_list_that_is_full_loses_nothing_by_a_count_that_was_raised() -> None:
    """The twin goes by what the list had before, which is anything where the count was near 0."""
    tangent, ratio = with_count(NDCG, 1.0, 5)
    assert lowered(tangent, NDCG, ratio)[0] == pytest.approx(0.0, abs=1e-12)
    before, _ = with_count(NDCG, 1.0, 0)
    assert before.reciprocal[0] > 2.0 * tangent.reciprocal[0], "the twin"


def test_counts_that_were_not_raised_lower_nothing() -> None:
    for measure in (AP, NDCG, RPREC):
        tangent, ratio = with_count(measure, 5.0, 4)
        assert lowered(tangent, measure, ratio).tolist() == [[0.0]]

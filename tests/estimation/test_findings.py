"""The words say what the verdicts say, and no more."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.charts import matrices
from estimation.core.inference.equivalence import Equivalence
from estimation.core.inference.unknown import all_known
from estimation.core.planning.foretold import Forecast, Foretold
from estimation.findings import LIMIT, NOTE, OPEN, SURE, findings, further_judgments
from estimation.models import EstimateSet, Round, Run
from estimation.selectors import Pairwise, RankedRun, RankingTable

LABELS = 400


def ranked(rank: int, value: float, *, tied: bool, of: int, support: float = 1.0) -> RankedRun:
    return RankedRun(
        tag=f"run{rank}",
        rank=rank,
        rank_low=1,
        rank_high=of,
        value=value,
        se=0.1,
        low=value - 0.2,
        high=value + 0.2,
        support=support,
        sample_size=50.0,
        estimator="ht",
        as_good_as_leader=tied,
        moved=None,
    )


def case(
    verdicts: list[list[int]],
    *,
    values: list[float] | None = None,
    margin: float = 0.2,
    row: Round | None = None,
    support: float = 1.0,
) -> tuple[RankingTable, Pairwise]:
    """A ranking in which the row's run is surely better where its verdict is 1."""
    count = len(verdicts)
    values = values or [1.0 - 0.1 * n for n in range(count)]
    rows = [
        ranked(n + 1, values[n], tied=verdicts[0][n] <= 0, of=count, support=support)
        for n in range(count)
    ]
    shown = EstimateSet(label_count=LABELS, number=1)
    table = RankingTable(row or Round(goal="absolute"), shown, "P@10", ["P@10"], rows)
    pairs = Pairwise(
        measure="P@10",
        runs=[run.tag for run in rows],
        covariance=np.zeros((count, count)),
        margin=np.full((count, count), margin),
        adjusted_p=np.ones((count, count)),
        verdicts=np.array(verdicts, dtype=np.int8),
        unknown=all_known(count, count),
        by_topic=np.zeros((1, count)),
    )
    return table, pairs


def said(table: RankingTable, pairs: Pairwise) -> list[tuple[str, str]]:
    return [(found.kind, found.text) for found in findings(table, pairs)]


OPEN3 = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
WON = [[0, 1, 1], [-1, 0, 0], [-1, 0, 0]]


def test_a_sole_winner_is_named() -> None:
    assert said(*case(WON)) == [
        (SURE, "run1 is surely better than all others."),
        (OPEN, "2 of 3 pairs of runs are decided."),
    ]


def test_contenders_are_named_and_nobody_is_called_best() -> None:
    texts = said(*case(OPEN3))
    assert texts[0] == (OPEN, "run1, run2 and run3 cannot be told apart for the lead.")
    assert not any(kind == SURE for kind, _ in texts)


def test_a_round_for_one_run_begins_with_its_value() -> None:
    row = Round(goal="single", run=Run(tag="run2"))
    texts = said(*case(OPEN3, row=row))
    assert texts[0] == (SURE, "P@10 of run2 is 0.90, between 0.70 and 1.10 with 95 % confidence.")


def test_many_contenders_are_counted() -> None:
    count = 12
    text = said(*case([[0] * count for _ in range(count)]))[0][1]
    assert (
        text == "12 runs cannot be told apart for the lead, run1 and run2 having the best "
        "estimates."
    )


def test_everything_decided_is_sure() -> None:
    verdicts = [[0, 1, 1], [-1, 0, 1], [-1, -1, 0]]
    assert said(*case(verdicts))[-1] == (SURE, "3 of 3 pairs of runs are decided.")


def test_one_run_and_none_have_nothing_to_compare() -> None:
    alone = "P@10 of run1 is 1.00, between 0.80 and 1.20 with 95 % confidence."
    assert said(*case([[0]])) == [(SURE, alone)]
    table, pairs = case([[0]])
    assert findings(RankingTable(table.round, table.estimate_set, "P@10", [], []), pairs) == []


@pytest.mark.parametrize(
    ("found", "told"), [(1.0, "1 relevant document found"), (2.5, "2.5 relevant documents found")]
)
def test_how_many_relevant_documents_a_ratio_rests_on(found: float, told: str) -> None:
    table, pairs = case(WON)
    shown = EstimateSet(label_count=LABELS, number=1, relevant_found=found)
    ratio = replace(table, estimate_set=shown, measure="AP")
    assert f"AP rests on {told} per topic" in said(ratio, pairs)[0][1]


@pytest.mark.parametrize(
    ("taken", "told"),
    [
        (0.1234, "0.12 was taken off the values, on average, for what can be told of it"),
        (-0.05, "0.05 was added to the values, on average"),
        (-0.0004, "it comes to less than 0.01 here, as far as can be told"),
        (None, "what can be told of it is in the estimates and their errors"),
    ],
)
def test_ratios_are_said_to_have_a_bias(taken: float | None, told: str) -> None:
    table, pairs = case(WON)
    shown = EstimateSet(number=1, ratio_bias={} if taken is None else {"AP": taken, "P@10": 9.0})
    ratio = replace(table, estimate_set=shown, measure="AP")
    (kind, text) = said(ratio, pairs)[-1]
    assert kind == NOTE
    assert text.startswith("AP divides by what is relevant in the whole pool, so that no estimate")
    assert told in text
    assert text.endswith("and the intervals allow for what may be left.")


def test_no_bias_is_told_of_sums_of_whole_topics_and_where_all_is_judged() -> None:
    table, pairs = case(WON)
    assert not any("bias" in text for _, text in said(table, pairs))
    topics = replace(table, measure="AP", round=Round(goal="absolute", method="query"))
    assert not any("bias" in text for _, text in said(topics, pairs))
    rows = [replace(row, low=row.value, high=row.value) for row in table.rows]
    whole = replace(table, measure="AP", rows=rows)
    assert not any("bias" in text for _, text in said(whole, pairs))


def test_lower_bounds_come_first() -> None:
    kind, text = said(*case(WON, support=0.6))[0]
    assert kind == LIMIT
    assert "run1, run2 and run3" in text
    assert "lower bounds" in text


def test_the_goal_s_pair_is_answered() -> None:
    runs = {"run": Run(tag="run2"), "baseline": Run(tag="run1")}
    row = Round(goal="pair", **runs)
    assert (SURE, "run1 is surely better than run2.") in said(*case(WON, row=row))
    assert (OPEN, "run2 and run1 cannot be told apart.") in said(*case(OPEN3, row=row))


def test_two_runs_are_both_and_one_pair() -> None:
    two = [[0, 0], [0, 0]]
    row = Round(goal="winner", measure="P@10")
    assert (OPEN, "Both runs are still in the race for the best.") in said(*case(two, row=row))
    assert (OPEN, "All 3 runs are still in the race for the best.") in said(*case(OPEN3, row=row))
    assert said(*case(two))[-1] == (OPEN, "0 of 1 pair of runs is decided.")
    assert said(*case([[0, 1], [-1, 0]]))[-1] == (SURE, "1 of 1 pair of runs is decided.")
    drawn = matrices.verdict_matrix(["run1", "run2"], two, measure="P@10")
    assert drawn.description == "0 of 1 pair of runs is decided."


def test_the_goal_s_baseline_is_answered() -> None:
    row = Round(goal="baseline", baseline=Run(tag="run2"))
    texts = [text for _, text in said(*case(WON, row=row))]
    assert texts[0] == "Surely better than the baseline run2: run1."
    assert texts[1] == "1 run is not told apart from the baseline."


def test_further_judgments_follow_the_square_of_margin_over_difference() -> None:
    """Two runs: one comparison, so the margin itself is the hurdle."""
    table, pairs = case([[0, 0], [0, 0]], values=[1.0, 0.9], margin=0.2)
    text = further_judgments(table, pairs)
    assert text is not None
    assert "roughly 1,200 further judgments" in text, (
        "400 labels, (0.2 / 0.1) ** 2 = 4 times as many"
    )


def test_more_comparisons_ask_for_more_judgments() -> None:
    values = [1.0, 0.85, 0.1, 0.1, 0.1, 0.1]
    texts = [
        further_judgments(*case([[0] * k for _ in range(k)], values=values[:k])) or ""
        for k in (2, 6)
    ]
    numbers = [int(text.split("roughly ")[1].split(" ")[0].replace(",", "")) for text in texts]
    assert numbers[0] < numbers[1]


@pytest.mark.parametrize("margin", [float("inf"), float("nan"), 0.0])
def test_nothing_is_extrapolated_from_margins_that_say_nothing(margin: float) -> None:
    assert further_judgments(*case([[0, 0], [0, 0]], margin=margin)) is None


def test_nothing_is_extrapolated_without_a_difference() -> None:
    assert further_judgments(*case([[0, 0], [0, 0]], values=[1.0, 1.0])) is None


def test_far_extrapolations_are_not_made() -> None:
    text = further_judgments(*case([[0, 0], [0, 0]], values=[1.0, 0.99]))
    assert text is not None
    assert "over 10 times the judgments" in text


def test_beside_a_forecast_the_observed_difference_is_not_taken_for_the_true_one() -> None:
    table, pairs = case(OPEN3, values=[1.0, 0.9, 0.8])
    assert any("further judgments tell" in text for _, text in said(table, pairs))
    told = Forecast(1, 3, (Foretold(1, 100.0, 0.2, 0.0, 0.0),))
    assert not any("further" in text for _, text in said(table, replace(pairs, forecast=told)))


def alike(pairs: Pairwise, *equal: tuple[int, int]) -> Pairwise:
    """The same where some pairs differ by at most 0.3, and no more is known of the others."""
    count = len(pairs.runs)
    low, high = np.full((count, count), -1.0), np.full((count, count), 1.0)
    for i, j in (*equal, *((j, i) for i, j in equal)):
        low[i, j], high[i, j] = -0.2, 0.2
    return replace(pairs, equivalence=Equivalence(0.3, low, high))


def test_a_run_that_is_as_good_as_the_best_is_named_with_what_it_may_lose() -> None:
    table, pairs = case(OPEN3)
    lost = "surely at most 0.3 below the best, which does not matter."
    assert not any(lost in text for _, text in said(table, alike(pairs, (0, 1))))
    found = said(table, alike(pairs, (0, 1), (0, 2)))
    assert (SURE, f"run1 is {lost}") in found
    assert found[-1] == (
        OPEN, "0 of 3 pairs of runs are decided, and 2 more differ by at most 0.3.",
    )  # fmt: skip
    every = said(table, alike(pairs, (0, 1), (0, 2), (1, 2)))
    assert (SURE, f"run1, run2 and run3 are each {lost}") in every
    assert every[-1][0] == SURE
    decided, of_winner = case(WON)
    assert not any(lost in text for _, text in said(decided, alike(of_winner, (1, 2))))


def test_the_goal_s_pair_is_answered_where_it_differs_too_little_to_matter() -> None:
    row = Round(goal="pair", run=Run(tag="run2"), baseline=Run(tag="run1"))
    table, pairs = case(OPEN3, row=row)
    answer = (SURE, "run2 and run1 differ by at most 0.3, for sure.")
    assert answer in said(table, alike(pairs, (0, 1)))
    assert answer not in said(table, alike(pairs, (0, 2)))

"""The words about runs that joined after the sample was drawn."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.inference.unknown import all_known
from estimation.findings import LIMIT, NOTE, findings, further_judgments
from estimation.models import EstimateSet, Round, Run
from estimation.selectors import Pairwise, RankedRun, RankingTable


def told(
    rows: list[RankedRun],
    measure: str = "P@10",
    *,
    method: str = "poisson",
    about: str = " joined after ",
    **of_set: object,
) -> list[tuple[str, str]]:
    """What is said of runs, in a ranking that two runs of the pool lead."""
    known = [row_of(f"run{n}", late=False) for n in (1, 2)]
    count = len(known) + len(rows)
    table = RankingTable(
        Round(goal="absolute", method=method, measure=measure),
        EstimateSet(label_count=100, number=1, **of_set),
        measure,
        [measure],
        [*known, *rows],
    )
    pairs = Pairwise(
        measure=measure,
        runs=[row.tag for row in table.rows],
        covariance=np.zeros((count, count)),
        margin=np.zeros((count, count)),
        adjusted_p=np.ones((count, count)),
        verdicts=np.zeros((count, count), dtype=np.int8),
        unknown=all_known(count, count),
        by_topic=np.zeros((1, count)),
    )
    found = [(each.kind, each.text) for each in findings(table, pairs)]
    return [each for each in found if about in each[1]]


def row_of(tag: str, *, support: float = 1.0, size: float = 50.0, late: bool = True) -> RankedRun:
    return RankedRun(
        tag=tag, rank=1, rank_low=1, rank_high=3, value=1.0, se=0.1, low=0.8, high=1.2,
        support=support, sample_size=size, estimator="ht", as_good_as_leader=True, moved=None,
        late=late,
    )  # fmt: skip


ALLOWED = "only where the documents out of reach could not change that."


@pytest.mark.parametrize(
    ("rows", "measure", "kind", "text"),
    [
        ([row_of("a"), row_of("b", size=20.4)], "P@10", NOTE,
         "a and b joined after the sample was drawn; all that P@10 counts for them could be drawn "
         "(effective sample sizes 20 to 50)."),
        ([row_of("a", support=0.5), row_of("b", support=0.9999)], "P@10", LIMIT,
         "a and b joined after the sample was drawn, which reaches 50 % to 99.9 % of what P@10 "
         "counts for them (effective sample size 50). Their values are lower bounds, and they are "
         f"called worse than another run {ALLOWED}"),
        ([row_of("a", support=0.5)], "AP", LIMIT,
         "a joined after the sample was drawn, which reaches 50 % of what AP counts for it "
         "(effective sample size 50). Its value takes the rest for not relevant, and it is called "
         f"better or worse than another run {ALLOWED}"),
        ([row_of("a", support=0.5)], "MAE", LIMIT,
         "a joined after the sample was drawn, which reaches 50 % of what MAE counts for it "
         "(effective sample size 50). Its value is a lower bound, and it is called better than "
         f"another run {ALLOWED}"),
    ],
)  # fmt: skip
def test_the_words_fit_the_runs(rows: list[RankedRun], measure: str, kind: str, text: str) -> None:
    assert told(rows, measure) == [(kind, text)]


def test_of_whole_topics_documents_are_judged_and_not_drawn() -> None:
    assert told([row_of("a", size=7.0)], "ERR@10", method="query") == [
        (NOTE, "a joined after the sample was drawn; all that ERR@10 counts for it is judged where "
               "its topic is drawn (effective sample size 7).")
    ]  # fmt: skip
    ((kind, text),) = told([row_of("a", support=0.5)], "ERR@10", method="query")
    assert kind == LIMIT
    assert "which reaches 50 % of what ERR@10 counts for it" in text
    assert "Its value is a lower bound" in text
    assert "drawn" not in text.removeprefix("a joined after the sample was drawn")


def test_runs_that_cannot_be_taken_are_named() -> None:
    (found,) = told([], left_out=["a", "b"])
    assert found == (
        LIMIT,
        "a and b joined after the round was drawn and are not in this round: its pairs of "
        "documents were made from the lists of the runs that were there. A new round takes them "
        "in and keeps all judgments.",
    )


@pytest.mark.parametrize(
    ("late", "support", "goal", "measure", "promised"),
    [
        (False, 1.0, "absolute", "P@10", True),
        (True, 0.9, "absolute", "P@10", False),
        (True, 0.9, "ranking", "P@10", False),
        (False, 0.9, "single", "P@10", False),
        (False, 0.9, "ranking", "P@10", True),
        (False, 0.9, "ranking", "P@20", False),
        (False, 0.9, "pair", "P@10", True),
    ],
)
def test_no_number_of_judgments_is_promised_where_documents_out_of_reach_matter(
    late: bool, support: float, goal: str, measure: str, promised: bool
) -> None:
    """A design for differences leaves out what is alike for the goal's runs under its measure."""
    second = replace(row_of("b", late=late, support=support), value=0.9)
    of_goal = {"run": Run(tag="b"), "baseline": Run(tag="a")} if goal == "pair" else {}
    table = RankingTable(
        Round(goal=goal, measure="P@10", **of_goal), EstimateSet(label_count=100, number=1),
        measure, ["P@10", "P@20"], [row_of("a", late=False), second],
    )  # fmt: skip
    square = np.full((2, 2), 0.2)
    pairs = Pairwise(measure, ["a", "b"], square, square, square, square, all_known(2, 2), square)
    assert (further_judgments(table, pairs) is not None) == promised


@pytest.mark.parametrize(
    ("tags", "measure", "text"),
    [
        ("a", "P@10", "P@10 counts for a. Its value is a lower bound, and it is called worse than"),
        ("ab", "MSE", "MSE counts for a and b. Their values are lower bounds, and they are called "
                      "better than"),
        ("ab", "AP", "AP counts for a and b. Their values take the rest for not relevant, and"),
    ],
)  # fmt: skip
def test_of_own_runs_it_is_said_what_the_sample_leaves_out(
    tags: str, measure: str, text: str
) -> None:
    rows = [row_of(tag, late=False, support=0.5) for tag in tags]
    ((kind, found),) = told(rows, measure, about="leaves out")
    assert kind == LIMIT
    assert found.startswith(f"The sample leaves out part of what {text}")
    assert found.endswith(ALLOWED)

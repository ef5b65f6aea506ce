"""What is said of what is not known, and that no finding rests on it."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.inference.unknown import Reason
from estimation.core.measures.table import parse_measure
from estimation.findings import LIMIT, OPEN, SURE, further_judgments
from estimation.models import EstimateSet, Round, Run
from estimation.selectors import Pairwise, RankingTable
from estimation.unknown import ANEW, FURTHER, NAMES, Purpose, name_of, purpose_of
from tests.estimation.test_findings import case, said

P10, AP = parse_measure("P@10"), parse_measure("AP")
ABSOLUTE = "A round with the goal absolute would tell."
RANKING = "A round with the goal ranking would tell."
FEW = Reason.FEW_RELEVANT
LATER = "Not known: too few documents of runs that joined after the draw were judged. A new round "
LITTLE = Reason.TOO_LITTLE
YET = f"Not known yet: too few of the documents behind this value were judged. {FURTHER}"


@pytest.mark.parametrize(
    ("purpose", "tag", "said"),
    [
        (Purpose("single", P10, run="bm25"), "other",
         "Not known: this round was made to measure bm25; for the other runs it sampled too "
         f"little. {ABSOLUTE}"),
        (Purpose("single", P10, run="bm25"), "bm25", YET),
        (Purpose("absolute", P10), "bm25", YET),
        (Purpose("pair", P10, run="a", baseline="b"), "c",
         f"Not known: this round was made to compare a and b; for the other runs it sampled too "
         f"little. {ABSOLUTE}"),
        (Purpose("pair", P10, run="a", baseline="b"), "b",
         f"Not known: this round was made for differences, not for values. {ABSOLUTE}"),
        (Purpose("baseline", P10, baseline="b"), "c",
         f"Not known: this round was made for differences, not for values. {ABSOLUTE}"),
        (Purpose("ranking", P10), "c",
         f"Not known: this round was made for differences, not for values. {ABSOLUTE}"),
        (Purpose("absolute", P10, late={"c"}), "c", f"{LATER}would tell."),
        (Purpose("ranking", P10, late={"c"}), "c", f"{LATER}would tell."),
        (Purpose("absolute", parse_measure("#ofSwaps")), "c",
         YET.replace("documents", "pairs of documents")),
    ],
)  # fmt: skip
def test_a_value_is_not_known_because_of_what_the_round_was_made_for(
    purpose: Purpose, tag: str, said: str
) -> None:
    assert purpose.of_value(LITTLE, tag) == said


APART = f"Not known yet: too few relevant documents tell the two apart so far. {FURTHER}"


@pytest.mark.parametrize(
    ("purpose", "said"),
    [
        (Purpose("absolute", P10), APART),
        (Purpose("ranking", P10), APART),
        (Purpose("ranking", parse_measure("#ofSwaps")),
         APART.replace("relevant documents", "pairs of documents")),
        (Purpose("pair", P10, run="b", baseline="a"), APART),
        (Purpose("baseline", P10, baseline="b"), APART),
        (Purpose("pair", P10, run="a", baseline="c"),
         "Not known: this round was made to compare a and c; for other differences it sampled too "
         f"little. {RANKING}"),
        (Purpose("baseline", P10, baseline="c"),
         "Not known: this round was made to compare runs with c; for other differences it sampled "
         f"too little. {RANKING}"),
        (Purpose("single", P10, run="a"),
         "Not known: this round was made to measure a; for differences it sampled too little. "
         f"{RANKING}"),
        (Purpose("ranking", P10, late={"a"}), f"{LATER}would tell."),
    ],
)  # fmt: skip
def test_a_difference_is_not_known_because_of_what_the_round_was_made_for(
    purpose: Purpose, said: str
) -> None:
    assert purpose.of_difference(LITTLE, "a", "b") == said
    assert purpose.of_difference(LITTLE, "b", "a") == said


@pytest.mark.parametrize(
    ("measure", "found", "said"),
    [
        ("AP", 3.0, "; 3 were found per topic (median); about 30 would do, so judge more, or use "
         "P@10 or DCG@10."),
        ("AP", 1.0, "; 1 was found per topic (median); about 30 would do, so judge more, or use "
         "P@10 or DCG@10."),
        ("nDCG@20", 2.5, "; 2.5 were found per topic (median); about 30 would do, so judge more, "
         "or use P@20 or DCG@20."),
        ("AP", None, ", and too few were found; judge more, or use P@10 or DCG@10."),
        ("AP", 31.0, ", and too few were found; judge more, or use P@10 or DCG@10."),
    ],
)  # fmt: skip
def test_a_ratio_says_how_many_relevant_documents_it_needs(
    measure: str, found: float | None, said: str
) -> None:
    purpose = Purpose("absolute", parse_measure(measure), relevant_found=found)
    start = f"Not known: {measure} needs relevant documents to count from"
    assert purpose.of_value(FEW, "a") == f"{start}{said}"
    assert purpose.of_difference(FEW, "a", "b") == f"{start}{said}"


def test_nothing_is_said_of_what_is_known() -> None:
    purpose = Purpose("single", P10, run="a")
    assert purpose.of_value(Reason.KNOWN, "b") is None
    assert purpose.of_difference(Reason.KNOWN, "a", "b") is None


@pytest.mark.parametrize(
    ("state", "told"), [("judging", FURTHER), ("complete", ANEW), ("stopped", ANEW)]
)
def test_of_a_round_that_has_ended_no_further_batch_is_promised(state: str, told: str) -> None:
    row = Round(goal="absolute", method="poisson", state=state)
    purpose = purpose_of(row, EstimateSet(), "P@10", [])
    assert str(purpose.of_value(LITTLE, "a")).endswith(f"were judged. {told}")
    assert str(purpose.of_difference(LITTLE, "a", "b")).endswith(f"so far. {told}")


def test_every_reason_has_a_name() -> None:
    assert [name_of(reason) for reason in Reason] == [None, "too_little", "few_relevant"]
    assert sorted(NAMES) == sorted(reason for reason in Reason if reason)


def test_an_active_round_is_about_the_values_of_all_runs_whatever_its_goal() -> None:
    row = Round(goal="pair", method="active", run=Run(tag="a"), baseline=Run(tag="b"))
    purpose = purpose_of(row, EstimateSet(), "Rprec", ["late"])
    assert (purpose.goal, purpose.run, purpose.enough) == ("absolute", "", 45)
    assert purpose.of_value(LITTLE, "c") == YET


# ------------------------------------------------------------------------------------- findings


def less(
    given: tuple[RankingTable, Pairwise],
    *,
    values: tuple[str, ...] = (),
    differences: tuple[tuple[str, str], ...] = (),
) -> tuple[RankingTable, Pairwise]:
    """A case of which some values, and some differences, are not known."""
    table, pairs = given
    rows = [
        replace(row, value=None, rank=None, as_good_as_leader=False, unknown="too_little",
                unknown_why=YET, rank_low=1)
        if row.tag in values
        else row
        for row in table.rows
    ]  # fmt: skip
    unknown, verdicts = pairs.unknown.copy(), pairs.verdicts.copy()
    for pair in differences:
        i, j = map(pairs.runs.index, pair)
        unknown[i, j] = unknown[j, i] = LITTLE
        verdicts[i, j] = verdicts[j, i] = 0
    rows.sort(key=lambda row: row.unknown is not None)
    return replace(table, rows=rows), replace(pairs, unknown=unknown, verdicts=verdicts)


WON = [[0, 1, 1], [-1, 0, 0], [-1, 0, 0]]
OPEN3 = [[0, 0, 0]] * 3
TO_1 = (("run1", "run2"), ("run1", "run3"))
TO_3 = (("run1", "run3"), ("run2", "run3"))


def test_the_best_run_known_leads_and_is_only_better_than_those_that_are_known() -> None:
    told = said(*less(case(WON), values=("run3",), differences=TO_3))
    assert told == [
        (SURE, "run1 is surely better than the other run whose value is known."),
        (LIMIT, "The value of run3 is not known; why is said under the ranking."),
        (OPEN, "1 of 3 pairs of runs are decided; 2 are not known."),
    ]


def test_a_run_that_is_not_known_does_not_lead() -> None:
    texts = [text for _, text in said(*less(case(OPEN3), values=("run1",), differences=TO_1))]
    assert texts[0] == "run2 and run3 cannot be told apart for the lead."
    assert not any("run1" in text for text in texts if "not known" not in text)


def test_a_run_that_is_surely_worse_is_no_rival_though_its_value_is_not_known() -> None:
    table, pairs = less(case(WON), values=("run3",))
    rows = [replace(row, rank_low=2) if row.unknown else row for row in table.rows]
    assert (SURE, "run1 is surely better than all others.") in said(
        replace(table, rows=rows), pairs
    )


def test_a_rival_of_which_the_difference_is_not_known_is_not_said_to_be_compared() -> None:
    pairs_of = (("run1", "run2"),)
    texts = [text for _, text in said(*less(case(OPEN3), differences=pairs_of))]
    assert texts[:2] == [
        "run1 and run3 cannot be told apart for the lead.",
        "Whether run1 is better than run2 is not known.",
    ]
    texts = [text for _, text in said(*less(case(OPEN3), differences=TO_1))]
    assert texts[0] == "Whether run1 is better than run2 and run3 is not known."


def test_nobody_leads_where_no_value_is_known() -> None:
    tags = ("run1", "run2", "run3")
    told = said(*less(case(WON), values=tags, differences=(*TO_1, ("run2", "run3"))))
    assert told == [
        (LIMIT, "The values of run1, run2 and run3 are not known; why is said under the ranking."),
        (OPEN, "0 of 3 pairs of runs are decided; 3 are not known."),
    ]


def test_verdicts_of_known_differences_are_told_though_values_are_not_known() -> None:
    row = Round(goal="pair", run=Run(tag="run2"), baseline=Run(tag="run1"))
    told = said(*less(case(WON, row=row), values=("run1", "run2", "run3")))
    assert told[0] == (SURE, "run1 is surely better than run2.")


def test_the_goal_s_pair_and_baseline_say_what_is_not_known() -> None:
    row = Round(goal="pair", run=Run(tag="run2"), baseline=Run(tag="run1"))
    told = said(*less(case(WON, row=row), differences=(("run1", "run2"),)))
    assert told[0] == (
        OPEN,
        "The difference of run2 and run1 is not known yet: too few relevant documents tell the "
        f"two apart so far. {FURTHER}",
    )
    row = Round(goal="baseline", baseline=Run(tag="run2"))
    told = said(*less(case(WON, row=row), differences=(("run2", "run3"),)))
    assert told[:2] == [
        (SURE, "Surely better than the baseline run2: run1."),
        (OPEN, "How 1 run compares with the baseline is not known."),
    ]


def test_no_number_of_judgments_is_promised_for_what_is_not_known() -> None:
    given = case([[0, 0], [0, 0]], values=[1.0, 0.9])
    assert further_judgments(*given) is not None
    assert further_judgments(*less(given, values=("run2",))) is None
    assert further_judgments(*less(given, differences=(("run1", "run2"),))) is None


def test_lower_bounds_are_not_claimed_of_values_that_are_not_known() -> None:
    told = said(*less(case(WON, support=0.6), values=("run3",)))
    assert "counts for run1 and run2." in told[0][1]


def test_a_finding_never_changes_with_the_numbers_of_what_is_not_known() -> None:
    """The twin: with the run known, they do."""
    for known in (False, True):
        texts = []
        for value in (0.1, 0.95):
            given = case([[0, 0], [0, 0]], values=[1.0, value])
            texts.append(said(*(given if known else less(given, values=("run2",)))))
        assert (texts[0] == texts[1]) != known
    assert np.count_nonzero(case(WON)[1].unknown) == 0

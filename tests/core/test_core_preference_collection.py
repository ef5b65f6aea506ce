"""Judged collections of preferences: what they say of the runs of the round and of others."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.collections.base import CollectionError, RoundCollection
from estimation.core.collections.published import checked
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.preferences import part_names, with_parts
from estimation.core.data.ranked_lists import PoolError, RankedLists
from estimation.core.measures.kinds import PREFERENCE_MAX_GRADE, MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.rounds import comparison
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.designs import METHODS
from tests.core.collecting import publish
from tests.core.comparing import OF_ONE_RUN
from tests.core.test_core_later_preferences import (
    EXACT,
    LATE,
    LATER,
    MEASURES,
    OLD,
    Case,
    census,
    design_of,
    named,
    pool_of,
    ranked,
)
from tests.core.test_core_later_runs import RUNS
from tests.core.test_core_slack import no_slack

LISTS = OLD | LATER


def collected(pool: Pool, parts: list[PairRound], labels: LabelRows) -> RoundCollection:
    return publish(pool, parts, labels=labels, max_grade=PREFERENCE_MAX_GRADE, version="0.1")


def of_case(case: Case, rounds: int = 1) -> RoundCollection:
    return collected(case.pool, case.parts[:rounds], case.asked["labels"])


def evaluated(case: Case, runs: dict[str, RankedLists], rounds: int = 1) -> Evaluation:
    return of_case(case, rounds).evaluate(runs, measures=MEASURES)


@pytest.mark.parametrize("method", METHODS)
def test_runs_of_the_round_get_its_bits(method: str) -> None:
    case = Case(method)
    for before, now in zip(case.alone().results, evaluated(case, RUNS).results, strict=True):
        assert now.runs == before.runs
        for field in (*OF_ONE_RUN, "covariance", "difference_df"):
            numbers = getattr(now.estimate, field)
            assert numbers.tolist() == getattr(before.estimate, field).tolist()
        assert now.by_topic.tolist() == before.by_topic.tolist()
        assert now.support.tolist() == [1.0, 1.0, 1.0]
        assert now.ranking.verdicts.tolist() == before.ranking.verdicts.tolist()


@pytest.mark.parametrize(("method", "rounds"), [("iid", 1), ("poisson", 1), ("poisson", 2)])
def test_later_runs_get_what_the_round_says_of_them(method: str, rounds: int) -> None:
    """They need not come together, nor with the runs of the round."""
    case = Case(method)
    together = evaluate(
        case.pool, RoundsTogether(tuple(case.parts[:rounds])), joined=case.joined, **case.asked
    )
    for tag, lists in LATE.items():
        alone = evaluated(case, {tag: lists}, rounds)
        for now, found in zip(together.results, alone.results, strict=True):
            at = now.runs.index(tag)
            for field in OF_ONE_RUN:
                numbers = getattr(found.estimate, field)
                assert numbers[0] == pytest.approx(getattr(now.estimate, field)[at], **EXACT)
            assert found.support[0] == pytest.approx(now.support[at], **EXACT)


def verdicts(*, from_collection: bool) -> list[list[list[int]]]:
    """What a round or its collection says where pairs of documents are out of reach."""
    pool, joined = pool_of(OLD), pool_of(LISTS)
    design, sample = census(pool)
    parts, runs = [PairRound(design, sample)], {tag: ranked(each) for tag, each in LISTS.items()}
    found = []
    for seed in range(40):
        grades = np.random.default_rng(seed).integers(0, 3, len(sample.pair))
        labels = LabelRows(sample.pair, grades)
        if from_collection:
            results = collected(pool, parts, labels).evaluate(runs, measures=MEASURES).results
        else:
            results = evaluate(
                pool, RoundsTogether(tuple(parts)), joined=joined, labels=labels, measures=MEASURES,
                max_grade=PREFERENCE_MAX_GRADE,
            ).results  # fmt: skip
        found += [result.ranking.verdicts.tolist() for result in results]
    return found


@pytest.mark.slow
def test_verdicts_are_those_of_the_round() -> None:
    of_round = verdicts(from_collection=False)
    assert verdicts(from_collection=True) == of_round
    assert np.any(of_round)


@pytest.mark.slow
def test_the_twin_that_ranks_as_if_all_were_within_reach_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_round = verdicts(from_collection=False)
    monkeypatch.setattr(comparison, "slack", no_slack)
    assert verdicts(from_collection=True) != of_round


def test_parts_are_added_by_hand() -> None:
    """ac is new in t1 and t3, ab known; what runs have stays where it is."""
    pool = pool_of({"alpha": {"t1": "ba", "t2": "xy"}, "beta": {"t2": "yx"}})
    assert named(pool) == [("t1", "a", "b"), ("t2", "x", "y")]
    names = np.array([b"a\0c", b"a\0b", b"a\0c"])
    found = with_parts(pool, topic=np.array([0, 0, 2], dtype=np.int32), names=names)
    assert named(found) == [("t1", "a", "b"), ("t1", "a", "c"), ("t2", "x", "y"), ("t3", "a", "c")]
    assert found.indptr.tolist() == [0, 1, 1, 3, 3]
    assert (found.run.tolist(), found.rank.tolist()) == (pool.run.tolist(), pool.rank.tolist())
    again = with_parts(pool, topic=pool.topic, names=part_names(pool))
    assert again.digest == pool.digest


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("name", [b"x", b"y"])
def test_a_pair_names_two_documents_in_order(name: bytes) -> None:
    pool = pool_of(OLD)
    design, sample = census(pool)
    good = collected(pool, [PairRound(design, sample)], LabelRows(sample.pair, sample.pair * 0))
    docno = np.array([*good.pool.docno.tolist()[:-1], name])
    other = np.array([*good.pool.other.tolist()[:-1], b"x"])
    told = f"documents {name.decode()!r} and 'x' of topic 't2'"
    with pytest.raises(CollectionError, match=f"byte order first, not {told}"):
        checked(replace(good, pool=replace(good.pool, docno=docno, other=other)))


def test_measures_grades_and_runs_are_of_preferences() -> None:
    case = Case("poisson")
    good = of_case(case)
    with pytest.raises(CollectionError, match="max_grade of preferences must be 2, not 3"):
        checked(replace(good, max_grade=3))
    mixed = replace(case.design, reported=(parse_measure("P@2"),))
    with pytest.raises(CollectionError, match="all be of documents or all of preferences"):
        checked(replace(good, drawn=replace(good.parts[0], design=mixed)))
    with pytest.raises(MeasureError, match="P@2 is judged on documents, not on pairs"):
        good.evaluate(RUNS, measures=[parse_measure("P@2")])
    with pytest.raises(PoolError, match="one run"):
        good.evaluate({}, measures=MEASURES)
    design = design_of(case.pool, "poisson", budget=40)
    with pytest.raises(CollectionError, match="do not belong together"):
        collected(case.joined, [PairRound(design, case.sample)], case.asked["labels"])

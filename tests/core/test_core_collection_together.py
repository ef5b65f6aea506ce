"""Runs that arrive later, estimated from the collection of several rounds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from estimation.core.arrays import frozen
from estimation.core.collections.base import CollectionError, RoundCollection
from estimation.core.collections.published import checked
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.combining import CombiningError, as_one
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.draws import draw
from estimation.core.sampling.samples import Sample
from tests.core.collecting import publish
from tests.core.test_core_collection import LATE, assert_same, truth
from tests.core.test_core_combining import (
    DCG,
    EXACT,
    GRADES,
    designs,
    draws_of,
    labels_of,
    moments,
    poisson_of,
)
from tests.core.test_core_later_runs import LATE as LATER
from tests.core.test_core_later_runs import MAX_GRADE, RUNS
from tests.core.test_core_later_together import KINDS, Rounds

# The grades here are those of the rounds' tests; `truth` is by hand with its own.
BY_HAND = dict(zip("abcxy", GRADES.tolist(), strict=True))


def collected(pool: Pool, parts: Sequence[PairRound], labels: LabelRows, **more) -> RoundCollection:
    return publish(pool, parts, labels=labels, max_grade=MAX_GRADE, version="0.1", **more)


# ------------------------------------------------------------------------- over all samples

Samples = Iterator[tuple[float, list[PairRound]]]


def apart(pool: Pool, method: str) -> Samples:
    """Every two samples of two rounds with random numbers of their own."""
    first, second = designs(pool, method)
    every = draws_of if method == "iid" else poisson_of
    for (one, a), (two, b) in product(list(every(first)), list(every(second))):
        yield one * two, [PairRound(first, a, numbers="s"), PairRound(second, b, numbers="t")]


def sharing(pool: Pool, method: str) -> Samples:
    """Every two samples of two rounds with the same random numbers: a pair is in both of them, in
    the one that is likelier to draw it, or in none."""
    assert method == "poisson"
    both = designs(pool, method)
    chance = np.stack([design.inclusion() for design in both])
    low, high = chance.min(axis=0), chance.max(axis=0)
    outcomes = np.stack([low, high - low, 1.0 - high])
    for outcome in product(range(3), repeat=len(pool)):
        probability = float(np.prod(outcomes[outcome, np.arange(len(pool))]))
        if probability > 0.0:
            number = np.choose(outcome, [low / 2, (low + high) / 2, (1.0 + high) / 2])
            parts = [PairRound(each, sample_of(each, number), numbers="s") for each in both]
            yield probability, parts


def sample_of(design, number: np.ndarray) -> Sample:
    pair = np.flatnonzero(number < design.inclusion())
    ones, none = np.ones(len(pair), dtype=np.int32), np.array([], dtype=np.int64)
    return Sample(pair, ones, design.inclusion()[pair], none, design.pool_digest)


CASES = [(apart, "iid"), (apart, "poisson"), (sharing, "poisson")]


def estimated(pool: Pool, run, samples: Samples):
    for probability, parts in samples:
        labels = labels_of(*(part.sample for part in parts))
        found = collected(pool, parts, labels).evaluate({"late": run}, measures=[DCG])
        estimate = found.results[0].estimate
        yield probability, estimate.value, estimate.covariance


def taken_for_the_last(samples: Samples) -> Samples:
    """The twin: what both rounds drew is taken for the sample of the last one alone."""
    for probability, (first, last) in samples:
        pair = np.unique(np.append(first.sample.pair, last.sample.pair))
        ones = np.ones(len(pair), dtype=np.int32)
        chance = frozen(last.design.inclusion()[pair])
        union = replace(last.sample, pair=pair, batch=ones, probability=chance)
        yield probability, [replace(last, sample=union)]


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize(("samples", "method"), CASES)
def test_a_late_run_is_estimated_without_bias(tiny_pool: Pool, ranked, samples, method) -> None:
    run = ranked(LATE)
    mean, covariance, expected = moments(estimated(tiny_pool, run, samples(tiny_pool, method)))
    assert mean == pytest.approx([truth(LATE, grade=BY_HAND)], **EXACT)
    assert expected == pytest.approx(covariance, **EXACT)
    assert covariance[0, 0] > 0.001


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
@pytest.mark.parametrize("samples", [apart, sharing])
def test_the_twin_with_the_probabilities_of_one_round_is_caught(
    tiny_pool: Pool, ranked, samples
) -> None:
    every = taken_for_the_last(samples(tiny_pool, "poisson"))
    mean, _, _ = moments(estimated(tiny_pool, ranked(LATE), every))
    assert abs(mean[0] / truth(LATE, grade=BY_HAND) - 1.0) > 0.1


@pytest.mark.usefixtures("estimates_alone")
@pytest.mark.slow
def test_the_twin_that_takes_shared_numbers_for_others_is_caught(tiny_pool: Pool, ranked) -> None:
    every = (
        (probability, [replace(part, numbers="") for part in parts])
        for probability, parts in sharing(tiny_pool, "poisson")
    )
    mean, _, _ = moments(estimated(tiny_pool, ranked(LATE), every))
    assert abs(mean[0] / truth(LATE, grade=BY_HAND) - 1.0) > 0.02


# ----------------------------------------------------------------- the same as it was there


def collection_of(case: Rounds) -> RoundCollection:
    return collected(case.pool, case.parts, case.asked["labels"])


@pytest.mark.slow
@pytest.mark.parametrize("subset", [tuple(RUNS), ("run2",), ("run2", "run0")])
@pytest.mark.parametrize(("method", "interval"), KINDS)
def test_a_run_of_the_pool_gets_the_same_bits(method: str, interval: str, subset) -> None:
    """The first round is judged in part only."""
    case = Rounds(method)
    case.asked["interval"] = interval
    collection = collection_of(case)
    assert [part.design.batches for part in collection.parts] == [2, 2]
    now = collection.evaluate(
        {tag: RUNS[tag] for tag in subset}, measures=case.asked["measures"], interval=interval
    )
    for before, after in zip(case.alone(), now.results, strict=True):
        assert_same(before, after)
        assert after.interval == before.interval


def test_the_same_bits_would_notice_a_lost_round() -> None:
    case = Rounds("poisson")
    labels, last = case.asked["labels"], case.parts[-1]
    own = np.isin(labels.pair, last.sample.pair)
    alone = collected(case.pool, [last], LabelRows(labels.pair[own], labels.grade[own]))
    now = alone.evaluate({"run2": RUNS["run2"]}, measures=case.asked["measures"])
    with pytest.raises(AssertionError):
        assert_same(case.alone()[0], now.results[0])


@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_a_later_run_gets_what_the_rounds_say_of_it(method: str) -> None:
    case = Rounds(method)
    late = {"another": LATER["another"]}
    now = collection_of(case).evaluate(late, measures=case.asked["measures"])
    for there, here in zip(case.together(), now.results, strict=True):
        at = there.runs.index("another")
        assert here.support[0] == pytest.approx(there.support[at], rel=1e-12)
        assert here.support[0] < 1.0
        for field in ("value", "se", "df", "low", "high"):
            assert getattr(here.estimate, field)[0] == getattr(there.estimate, field)[at]


def test_rounds_that_share_their_numbers_say_so_and_no_more() -> None:
    case = Rounds("poisson")
    first, second = case.parts
    other = PairRound(first.design, draw(case.pool, first.design, seed="t"), numbers="t")
    parts = [first, second, other, replace(first, numbers="")]
    pairs = np.unique(np.concatenate([part.sample.prefix(part.used) for part in parts]))
    collection = collected(case.pool, parts, LabelRows(pairs, pairs * 0))
    assert [part.numbers for part in collection.parts] == ["1", "2", "2", "3"]
    assert collection.seeds == (None,) * 4
    assert collection.sampled.tolist() == pairs.tolist()


def test_it_asks_for_what_the_last_round_was_drawn_for() -> None:
    case = Rounds("iid")
    collection = collection_of(case)
    assert collection.measures == (parse_measure("P@3"),)
    assert collection.intervals == ("student", "hoeffding", "hoeffding-paper")
    pairs = case.parts[1].sample.pair
    alone = collected(case.pool, case.parts[1:], LabelRows(pairs, pairs * 0))
    assert "empirical-bernstein" in alone.intervals


# ------------------------------------------------------------------------------- bad input


def of_two(
    tiny_pool: Pool, method: str = "poisson", numbers: str = "st", **more
) -> RoundCollection:
    both = zip(designs(tiny_pool, method), numbers, strict=True)
    parts = [PairRound(each, draw(tiny_pool, each, seed=seed), numbers=seed) for each, seed in both]
    return collected(tiny_pool, parts, labels_of(*(part.sample for part in parts)), **more)


def test_what_draws_do_not_tell_is_refused(tiny_pool: Pool, ranked) -> None:
    collection, late = of_two(tiny_pool, "iid"), {"late": ranked(LATE)}
    with pytest.raises(MeasureError, match="ratio measures cannot be estimated from several"):
        collection.evaluate(late, measures=[parse_measure("AP")])
    with pytest.raises(ValueError, match="one of student, hoeffding, hoeffding-paper for several"):
        collection.evaluate(late, measures=[DCG], interval="empirical-bernstein")


def test_methods_that_do_not_go_together_are_refused(tiny_pool: Pool) -> None:
    good = of_two(tiny_pool)
    with pytest.raises(CombiningError, match="all be by poisson or all by iid, not poisson, iid"):
        as_one([good.parts[0], of_two(tiny_pool, "iid").parts[1]])
    with pytest.raises(CombiningError, match="all by iid, not priority, priority"):
        as_one([of_method(part, "priority") for part in good.parts])
    first, second = good.parts
    foreign = replace(second, design=replace(second.design, pool_digest="0" * 64))
    with pytest.raises(CombiningError, match=r"parts\[1\] belongs to another pool"):
        as_one([first, foreign])


def of_method(part: PairRound, method: str) -> PairRound:
    return replace(part, design=replace(part.design, method=method))


@pytest.mark.parametrize("numbers", [("0", "1"), ("1", "3"), ("2", "1"), ("", "1"), ("1", "one")])
def test_numbers_count_up(tiny_pool: Pool, numbers: tuple[str, str]) -> None:
    good = of_two(tiny_pool)
    parts = tuple(
        replace(part, numbers=number) for part, number in zip(good.parts, numbers, strict=True)
    )
    with pytest.raises(CollectionError, match=f"as they come, not {numbers[0]}, {numbers[1]}"):
        checked(replace(good, drawn=as_one(parts)))


def test_numbers_agree_with_seeds(tiny_pool: Pool) -> None:
    good = of_two(tiny_pool)
    assert of_two(tiny_pool, seeds=("s", None)).seeds == ("s", None)
    assert of_two(tiny_pool, numbers="ss", seeds=("s", "s")).seeds == ("s", "s")
    with pytest.raises(CollectionError, match="rounds 2 and rounds 1 have the same seed"):
        checked(replace(good, seeds=("s", "s")))
    with pytest.raises(CollectionError, match=r"rounds 1, 2 share their numbers .* have one seed"):
        of_two(tiny_pool, numbers="ss", seeds=("s", None))
    with pytest.raises(CombiningError, match=r"parts\[1\] has the same draws as another part"):
        of_two(tiny_pool, "iid", numbers="ss")


def test_numbers_agree_with_samples(tiny_pool: Pool) -> None:
    """With shared numbers only a round that is likelier to draw a pair can be alone with it."""
    first, second = designs(tiny_pool, "poisson")
    better = first.inclusion() > second.inclusion()
    assert better.any()
    assert not better.all()
    at = int(np.argmax(better))
    number = np.full(len(tiny_pool), 1.0)
    number[at] = (first.inclusion()[at] + second.inclusion()[at]) / 2
    fine = [PairRound(each, sample_of(each, number), numbers="s") for each in (first, second)]
    assert [len(part.sample) for part in fine] == [1, 0]
    labels = LabelRows(np.array([at]), np.array([1]))
    assert len(collected(tiny_pool, fine, labels).parts) == 2
    swapped = [
        replace(part, sample=other.sample) for part, other in zip(fine, fine[::-1], strict=True)
    ]
    with pytest.raises(CollectionError, match="do not share their numbers: only one that was less"):
        collected(tiny_pool, swapped, labels)
    apart = [replace(part, numbers="") for part in swapped]
    assert len(collected(tiny_pool, apart, labels).parts) == 2

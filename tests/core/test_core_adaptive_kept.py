"""What is kept with the batches of an adaptive round has no label in it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.scope import Scope
from estimation.core.rounds.adaptive import answers, estimates, state
from estimation.core.rounds.adaptive.batch_weights import BatchWeights
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation
from estimation.core.rounds.rounds import load_round
from tests.core.test_core_adaptive_collection import BEST, DCG, MEASURES, Case
from tests.core.test_core_later_runs import LATE, RUNS, pool_of


def corrected(labels: LabelRows) -> LabelRows:
    """Every fourth judgment says something else."""
    other = np.arange(len(labels.pair)) % 4 == 0
    return replace(labels, grade=np.where(other, BEST - labels.grade, labels.grade))


def asked(drawn: AdaptiveRound, labels: LabelRows, pool: Pool, **options) -> Evaluation:
    return evaluate(pool, drawn, labels=labels, measures=MEASURES, max_grade=BEST, **options)


def read_again(case: Case) -> tuple[AdaptiveRound, Pool]:
    """The round and its pool as another process would find them, with nothing kept."""
    return replace(case.drawn, sample=case.drawn.sample.first(case.drawn.batches)), pool_of(RUNS)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches were gone through, for every time that weights were worked out."""
    found, work = [], BatchWeights.of

    def of(frame, passed, measures, ends):
        found.append(ends)
        return work(frame, passed, measures, ends)

    monkeypatch.setattr(BatchWeights, "of", of)
    return found


def test_corrected_labels_have_the_numbers_of_whoever_reads_all_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case, worked_out = Case(), counted(monkeypatch)
    for labels in (case.labels, corrected(case.labels), case.labels):
        assert_same(asked(case.drawn, labels, case.pool), asked(*_with(read_again(case), labels)))
    # once for the round itself, and for each of those that read it again
    assert worked_out == [4] * 4
    first, second = (
        asked(case.drawn, each, case.pool).results[0].estimate.value
        for each in (case.labels, corrected(case.labels))
    )
    assert np.any(first != second)


def assert_same(then: Evaluation, now: Evaluation) -> None:
    """Every number has the same bits."""
    for one, other in zip(then.results, now.results, strict=True):
        for field in ("value", "se", "df", "low", "high", "covariance"):
            before, after = getattr(one.estimate, field), getattr(other.estimate, field)
            assert np.array_equal(before, after, equal_nan=True), (one.measure, field)
        assert np.array_equal(one.by_topic, other.by_topic)
        assert np.array_equal(one.ranking.margin, other.ranking.margin)


def _with(
    read: tuple[AdaptiveRound, Pool], labels: LabelRows
) -> tuple[AdaptiveRound, LabelRows, Pool]:
    drawn, pool = read
    return drawn, labels, pool


def test_what_is_worked_out_ahead_is_what_estimates_take(monkeypatch: pytest.MonkeyPatch) -> None:
    case, worked_out = Case(), counted(monkeypatch)
    case.drawn.work_ahead(Scope.of(case.pool), tuple(MEASURES))
    assert worked_out == [4]
    told = asked(case.drawn, case.labels, case.pool)
    assert worked_out == [4]
    assert_same(told, asked(*_with(read_again(case), case.labels)))


def test_each_prefix_has_weights_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    case, worked_out = Case(), counted(monkeypatch)
    found = [asked(case.drawn, case.labels, case.pool, batches=each) for each in (2, 4, 2)]
    assert worked_out == [2, 4, 2]
    assert_same(found[0], found[2])
    assert np.any(found[0].results[0].estimate.value != found[1].results[0].estimate.value)


@pytest.mark.slow
def test_runs_that_come_later_have_totals_of_their_own() -> None:
    case = Case()
    joined = pool_of(RUNS | LATE)
    for pool in (None, joined, None):
        drawn, fresh = read_again(case)
        options = {} if pool is None else {"joined": pool}
        again = {} if pool is None else {"joined": pool_of(RUNS | LATE)}
        found = asked(case.drawn, case.labels, case.pool, **options)
        assert_same(found, asked(drawn, case.labels, fresh, **again))


def test_twin_that_keeps_the_labels_as_well_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[object] = []
    work = estimates.estimate_totals

    def forgetful(*given, **named):
        if named["measure"] != DCG:
            return work(*given, **named)
        kept.append(work(*given, **named))
        return kept[0]

    monkeypatch.setattr(answers, "estimate_totals", forgetful)
    case = Case()
    asked(case.drawn, case.labels, case.pool)
    told = asked(case.drawn, corrected(case.labels), case.pool)
    monkeypatch.undo()
    with pytest.raises(AssertionError):
        assert_same(told, asked(*_with(read_again(case), corrected(case.labels))))


# ------------------------------------------------------------------- what earlier batches leave


def read_from_files(drawn: AdaptiveRound, folder: Path) -> AdaptiveRound:
    """As it is read from its files."""
    drawn.design.save(folder / "design")
    drawn.sample.save(folder / "sample")
    read = load_round(folder / "design", folder / "sample")
    assert isinstance(read, AdaptiveRound)
    return read


def batches_gone_through(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of batches whose chances were worked out."""
    found, work = [], state.passed_batch

    def passed_batch(frame, number, *given):
        found.append(number)
        return work(frame, number, *given)

    monkeypatch.setattr(state, "passed_batch", passed_batch)
    return found


@pytest.mark.slow
def test_a_longer_round_goes_on_where_the_shorter_one_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, passed = Case(), batches_gone_through(monkeypatch)
    latest = None
    for number in range(1, case.drawn.batches + 1):
        part = case.drawn.prefix(case.pool, number)
        read = read_from_files(part, tmp_path)
        latest = read if latest is None else read.following(latest)
        passed.clear()
        told = asked(latest, case.labels, case.pool)
        assert passed == [number]
        assert_same(
            told, asked(replace(part, sample=part.sample.first(number)), case.labels, pool_of(RUNS))
        )


@pytest.mark.slow
def test_a_round_that_began_otherwise_is_gone_through_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, passed = Case(), batches_gone_through(monkeypatch)
    before = case.drawn.prefix(case.pool, 3)

    def gone_through_after(sample: state.AdaptiveState) -> list[int]:
        passed.clear()
        again = read_from_files(case.drawn, tmp_path).following(replace(before, sample=sample))
        asked(again, case.labels, case.pool)
        return passed

    asked(before, case.labels, case.pool)
    sample, steps = before.sample, before.sample.steps
    other = replace(steps[1], constants=steps[1].constants * 2.0)
    others = {
        "seed": replace(sample, seed="another"),
        "chance": replace(sample, chance=sample.chance / 2.0),
        "batch": replace(sample, batch=sample.batch[::-1]),
        "steps": replace(sample, steps=(steps[0], other, *steps[2:])),
        "longer": replace(sample, steps=(*case.drawn.sample.steps, other)),
    }
    for name, each in others.items():
        each.walks.extend(sample.walks)
        assert gone_through_after(each) == [1, 2, 3, 4], name
    assert gone_through_after(sample) == [4]

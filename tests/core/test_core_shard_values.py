"""Values from shards: the bits of one pool, whatever the number of shards."""

from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.labels import (
    LabelError,
    LabelRows,
    PairLabels,
    pair_labels,
    select_rows,
)
from estimation.core.data.qrels import Qrels, find_rows
from estimation.core.estimates.estimators import horvitz_thompson_poisson
from estimation.core.estimates.terms import linear_terms
from estimation.core.estimates.totals import Totals
from estimation.core.library.complete import evaluate_complete
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.shards.designing import ShardedSample, draw_shards
from estimation.core.shards.lines import judgment_lines
from estimation.core.shards.running import SerialExecutor
from estimation.core.shards.store import write_columns
from estimation.core.shards.values import estimate_shards, evaluate_shards, judged_topics
from estimation.research.simulation import true_topic_values, true_values
from tests.core.sharded_pools import (
    DEPTH,
    NAMES,
    NUMBERS,
    grades_of,
    whole_pool,
    whole_runs,
    write_judgments,
)
from tests.core.test_core_shard_designs import sharded_design
from tests.core.test_core_shards import built

pytestmark = pytest.mark.usefixtures("no_disk_waits")

MEASURES = tuple(map(parse_measure, ("P@10", "DCG@100", "nDCG@100", "AP", "Rprec", "Mean(max=3)")))
DCG = parse_measure("DCG@10")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With judgments of the relevant pairs, ``judgments1``, and of all, ``judgments0``."""
    folder = tmp_path_factory.mktemp("shards")
    for least in (0, 1):
        write_judgments(folder, whole_pool(), least=least)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("shards", NUMBERS)
def test_values_of_topics_have_the_bits_of_one_pool(folder: Path, shards: int) -> None:
    pool = whole_pool()
    found = evaluate_shards(
        SerialExecutor(), built(folder, shards), [folder / "judgments1"], measures=MEASURES
    )
    for measure, value in zip(MEASURES, found, strict=True):
        grades = grades_of(pool)
        assert np.all(value.mean(axis=0) > 0.0)
        assert value.tobytes() == true_topic_values(pool, grades=grades, measure=measure).tobytes()
        one = true_values(pool, grades=grades, measure=measure)
        assert value.mean(axis=0).tobytes() == one.tobytes()


def judged_apart(folder: Path) -> tuple[Path, Qrels]:
    """Judgments that are not of the pool: of documents and a topic of no run; ten have none."""
    pool, others = whole_pool(), 4 * len(NAMES)
    inside = np.flatnonzero(pool.topic >= 10)
    more = np.arange(4 * 10, others)
    topics = np.append(NAMES, b"t99")
    code = np.concatenate([pool.topic[inside], more // 4, [len(NAMES)]])
    docno = np.concatenate([pool.docno[inside], [b"x%d" % (each % 4) for each in more], [b"d00"]])
    grade = np.concatenate([grades_of(pool)[inside], more % 3, [1]])
    place = folder / "apart"
    lines = judgment_lines(topics=topics[10:], topic=code - 10, docno=docno, grade=grade)
    write_columns(place, *lines)
    return place, Qrels(topics[code], docno, grade)


def test_topics_and_relevant_documents_are_those_of_the_judgments(tmp_path: Path) -> None:
    """`evaluate_complete`, which is held against trec_eval, is of runs alone and knows no pool."""
    place, qrels = judged_apart(tmp_path)
    runs = whole_runs(depth=DEPTH)
    expected = evaluate_complete(runs, qrels, measures=MEASURES).by_topic
    bits = set()
    for shards in (1, 2, 7):
        pool = built(tmp_path, shards)
        found = evaluate_shards(SerialExecutor(), pool, [place], measures=MEASURES)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0.0)
        bits.add(found.tobytes())
    assert len(bits) == 1
    assert judged_topics([place]) == qrels.topics
    assert found.shape[1] == len(NAMES) - 9
    assert not found[:, -1].any()


def test_a_document_that_is_judged_twice_is_refused(folder: Path) -> None:
    judgments = [folder / "judgments1", folder / "judgments0"]
    with pytest.raises(
        LabelError, match=r"document 'd\d\d' of topic 't\d\d' has several judgments"
    ):
        evaluate_shards(SerialExecutor(), built(folder, 2), judgments, measures=MEASURES[:1])
    with pytest.raises(LabelError, match="no topic is judged"):
        evaluate_shards(SerialExecutor(), built(folder, 2), [], measures=MEASURES[:1])


@pytest.mark.slow
def test_more_shards_than_topics_are_one_for_each(folder: Path) -> None:
    """A shard without a topic would be work for nothing, in every step."""
    sample, pool = drawn(folder, 100_000), built(folder, 100_000)
    assert [len(pool.frame.topics_of(shard)) for shard in range(len(NAMES))] == [1] * len(NAMES)
    assert pool.frame.shards == len(pool.places) == len(NAMES)
    assert sample.probability.tobytes() == drawn(folder, 2).probability.tobytes()
    judgments, measures = [folder / "judgments1"], MEASURES[3:4]
    found = evaluate_shards(SerialExecutor(), pool, judgments, measures=measures)
    expected = evaluate_shards(SerialExecutor(), built(folder, 2), judgments, measures=measures)
    assert found.tobytes() == expected.tobytes()
    estimate_shards(SerialExecutor(), pool, sample, [folder / "judgments0"], measure=DCG)


def test_complete_judgments_may_be_asked_for(folder: Path) -> None:
    pool, plan = built(folder, 2), {"measures": MEASURES[:1], "unlisted": None}
    every = evaluate_shards(SerialExecutor(), pool, [folder / "judgments0"], **plan)
    listed = evaluate_shards(SerialExecutor(), pool, [folder / "judgments1"], measures=MEASURES[:1])
    assert every.tobytes() == listed.tobytes()
    with pytest.raises(LabelError, match="pairs of shard 1 of 2 have no judgment"):
        evaluate_shards(SerialExecutor(), pool, [folder / "judgments1"], **plan)


def test_measures_that_need_more_are_refused(folder: Path) -> None:
    pool = built(folder, 2)
    with pytest.raises(MeasureError, match="gain or ratio: ERR@20"):
        evaluate_shards(
            SerialExecutor(), pool, [folder / "judgments1"], measures=[parse_measure("ERR@20")]
        )


# --------------------------------------------------------------------------------- of a sample


def drawn(folder: Path, shards: int) -> ShardedSample:
    design = sharded_design(folder, "absolute", shards, 500, 100)
    return draw_shards(SerialExecutor(), design, seed="any")


def judged_twice(folder: Path, sample: ShardedSample) -> Path:
    """Judgments of a sample alone: every third pair is judged twice, by people who disagree."""
    place = folder / "twice"
    rows = np.append(np.arange(len(sample.docno)), np.arange(0, len(sample.docno), 3))
    again = np.arange(len(rows)) >= len(sample.docno)
    if not place.exists():
        grade = (rows * 7 + again) % 4 * (rows % 3 > 0) + again
        lines = judgment_lines(
            topics=NAMES, topic=sample.topic[rows], docno=sample.docno[rows], grade=grade
        )
        write_columns(place, *lines)
    return place


def one_estimate(sample: ShardedSample) -> Totals:
    """The same sample and judgments in one pool."""
    pool = whole_pool()
    pairs = find_rows(pool, NAMES[sample.topic], sample.docno)
    rows = np.append(np.arange(len(pairs)), np.arange(0, len(pairs), 3))
    again = np.arange(len(rows)) >= len(pairs)
    grade = (rows * 7 + again) % 4 * (rows % 3 > 0) + again
    labels = select_rows(LabelRows(pairs[rows], grade), sampled=pairs, prefix=pairs, max_grade=9)
    terms = linear_terms(pool, DCG, pairs=pairs, rows=labels)
    assert np.count_nonzero(pair_labels(labels, pairs=len(pairs), measure=DCG).expected) > 300
    return horvitz_thompson_poisson(terms.weights, terms.labels, probability=sample.probability)


@pytest.mark.slow
@pytest.mark.parametrize("shards", NUMBERS)
def test_estimates_have_the_bits_of_one_pool(folder: Path, shards: int) -> None:
    sample = drawn(folder, shards)
    judgments = [judged_twice(folder, sample)]
    expected = one_estimate(sample)
    found = estimate_shards(SerialExecutor(), built(folder, shards), sample, judgments, measure=DCG)
    assert np.all(np.diag(expected.noise) > 0.0)
    for name in ("value", "covariance", "contributions", "noise", "sure", "noise_by_grades"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name


def test_the_twin_that_expects_nothing_of_one_judgment_is_caught(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pairs in three were judged once, and all of them are in the noise."""
    sample = drawn(folder, 2)
    judgments, pool = [judged_twice(folder, sample)], built(folder, 2)
    expected = one_estimate(sample)
    monkeypatch.setattr(PairLabels, "with_expected", lambda labels: labels)
    twin = estimate_shards(SerialExecutor(), pool, sample, judgments, measure=DCG)
    assert twin.value.tobytes() == expected.value.tobytes()
    assert np.all(np.abs(twin.noise - expected.noise) > 0.01 * expected.noise)


@pytest.mark.slow
def test_a_census_gives_the_truth(folder: Path) -> None:
    pool = built(folder, 7)
    design = sharded_design(folder, "absolute", 7, pool.pairs, 1000)
    sample = draw_shards(SerialExecutor(), design, seed="any")
    found = estimate_shards(
        SerialExecutor(), pool, sample, [folder / "judgments1"], measure=DCG, unlisted=0
    )
    truth = true_values(whole_pool(), grades=grades_of(whole_pool()), measure=DCG)
    np.testing.assert_allclose(found.value, truth, rtol=1e-13)
    assert not found.covariance.any()


def test_a_pair_that_was_not_judged_is_named_and_that_other_shards_may_have_more(
    folder: Path,
) -> None:
    told = r"^\d+ sampled pairs of shard \d of 7 have no judgment; the first is document"
    with pytest.raises(LabelError, match=told):
        estimate_shards(
            SerialExecutor(),
            built(folder, 7),
            drawn(folder, 7),
            [folder / "judgments1"],
            measure=DCG,
        )
    with pytest.raises(MeasureError, match="family gain: AP"):
        estimate_shards(
            SerialExecutor(), built(folder, 7), drawn(folder, 7), [folder / "judgments1"],
            measure=parse_measure("AP"),
        )  # fmt: skip

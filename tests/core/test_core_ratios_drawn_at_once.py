"""Ratios of rounds drawn at once of which denominators are hardly known: products of finds tell.

Where relevant documents are scattered below the top, most topics have none of them in the sample
and few have one that counts for very many, so that ratios of estimates are far too high.
"""

from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scope import Scope, find_pairs
from estimation.core.estimates.drawn import Drawn
from estimation.core.estimates.ratio_labels import RatioEstimate
from estimation.core.estimates.ratios import estimate_ratios, judged_ratios
from estimation.core.inference import drawn_at_once, second_order
from estimation.core.inference.drawn_at_once import following, of_sample, share_followed
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.inference.ratio_outlook import AtOutlook
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds import pair_estimates
from estimation.core.rounds.evaluation import evaluate, evaluate_scope
from estimation.core.rounds.results import Asked, MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.draws import draw
from estimation.research.simulation import true_topic_values, true_values
from tests.core.length import bounded
from tests.core.ratio_pools import AP, design_for

TOPICS = [f"t{number:03d}" for number in range(150)]
DOCUMENTS, TOP, TRIALS, NEVER = 100, 5, bounded(10, 60), 10**9


@pytest.fixture(scope="module")
def runs() -> dict[str, RankedLists]:
    rng, found = np.random.default_rng(5), {}
    for number in range(4):
        docnos = []
        for _ in TOPICS:
            place = np.arange(DOCUMENTS) + rng.normal(0.0, 1.0 + 3.0 * number, DOCUMENTS)
            docnos += [f"d{each:03d}".encode() for each in np.argsort(place)]
        bounds = np.arange(0, len(docnos) + 1, DOCUMENTS)
        found[f"run {number}"] = RankedLists(tuple(TOPICS), bounds, np.array(docnos))
    return found


@pytest.fixture(scope="module")
def scattered(runs: dict[str, RankedLists]) -> tuple[Pool, np.ndarray]:
    """Four runs whose first documents are relevant often, and all others one time in 12."""
    often = np.where(np.arange(DOCUMENTS) < TOP, 0.6, 0.08)
    relevant = often > np.random.default_rng(6).random((len(TOPICS), DOCUMENTS))
    pool = build_pool(TOPICS, runs, depth=DOCUMENTS)
    document = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, relevant[pool.topic, document].astype(np.int64)


def told(
    world: tuple[Pool, np.ndarray], measure: Measure, method: str = "poisson", budget: int = 4000
) -> list[MeasureResult]:
    pool, grades = world
    design, found = design_for(pool, method, budget=budget, measure=measure), []
    for trial in range(TRIALS):
        sample = draw(pool, design, seed=f"scattered {trial}")
        labels = LabelRows(sample.pair, grades[sample.pair])
        asked = {"labels": labels, "measures": [measure], "max_grade": 1}
        found += evaluate(pool, PairRound(design, sample), **asked).results
    return found


def errors(found: list[MeasureResult], truth: np.ndarray) -> tuple[float, float, float]:
    """Root mean square of the errors; shares of values and of differences that are covered."""
    off = np.array([each.estimate.value for each in found]) - truth
    inside = [(each.estimate.low <= truth) & (truth <= each.estimate.high) for each in found]
    apart, others = np.subtract.outer(truth, truth), ~np.eye(len(truth), dtype=bool)
    held = [np.abs(each.ranking.difference - apart) <= each.ranking.margin for each in found]
    return np.sqrt((off**2).mean()), np.mean(inside), np.mean([each[others] for each in held])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "priority"])
def test_scattered_relevance_is_told(scattered, monkeypatch, method: str) -> None:
    """The twin knows ratios of estimates alone, and its intervals do not hold the values."""
    truth = true_values(scattered[0], grades=scattered[1], measure=AP)
    error, values, differences = errors(told(scattered, AP, method), truth)
    monkeypatch.setattr(second_order, "LEAST_TOPICS", NEVER)
    of_ratios, values_of_ratios, differences_of_ratios = errors(told(scattered, AP, method), truth)
    assert error < 0.75 * of_ratios
    assert values > 0.85
    assert values_of_ratios < 0.65
    assert differences > differences_of_ratios


def of_one_topic(ranked) -> tuple[Pool, np.ndarray]:
    """Two runs of eight documents; what is found of each."""
    pool = build_pool(
        ["t"], {"one": ranked({"t": "abcdefgh"}), "two": ranked({"t": "hcagbedf"})}, depth=8
    )
    grades = np.zeros(8, dtype=np.int64)
    grades[[pool.docno.tolist().index(each) for each in (b"a", b"d", b"g")]] = 1
    return pool, grades


@pytest.mark.parametrize("text", ["AP", "nDCG", "nDCG@5"])
def test_over_all_samples_the_second_order_is_nearer(ranked, text: str) -> None:
    """Of a document that is always judged and seven that are by chance, all 128 samples."""
    pool, grades = of_one_topic(ranked)
    measure = parse_measure(text)
    truth = true_topic_values(pool, grades=grades, measure=measure)
    inclusion = np.array([0.4, 0.5, 0.3, 0.6, 0.35, 0.45, 0.5, 0.55])
    inclusion[np.flatnonzero(grades)[0]] = 1.0
    outlook = KnownOutlook(np.array([1]), np.linspace(0.25, 0.5, 8)[None, :])
    of_ratios = of_products = 0.0
    open_pairs = np.flatnonzero(inclusion < 1.0)
    for chosen in product((False, True), repeat=len(open_pairs)):
        taken = np.ones(8, dtype=bool)
        taken[open_pairs] = chosen
        chance = float(np.where(taken, inclusion, 1.0 - inclusion)[open_pairs].prod())
        pair = np.flatnonzero(taken)
        drawn = Drawn(pair, inclusion, inclusion, inclusion[pair])
        rows = LabelRows(np.arange(len(pair)), grades[pair])
        at = AtOutlook.of(pool, measure, drawn, outlook)
        asked = {"drawn": drawn, "rows": rows, "more": np.ones(1)}
        found = estimate_ratios(pool, measure, expected_bias=at.bias_by_topic(), **asked)
        of_ratios += chance * (found.estimate.value + found.bias)
        said = of_sample(at, measure, outlook, drawn=drawn, rows=rows)
        of_products += chance * said[0]
    left, of_plain = np.abs(of_products - truth[0]), np.abs(of_ratios - truth[0])
    assert left.max() < 0.5 * of_plain.max()


@pytest.fixture
def estimated(scattered) -> tuple[RatioEstimate, float]:
    """What a sample says of ratios, and the mean standard error of the values."""
    pool, grades = scattered
    design = design_for(pool, "poisson", budget=4000)
    sample = draw(pool, design, seed="followed")
    drawn = Drawn.of(design, sample, 1, topic=pool.topic)
    rows = LabelRows(np.arange(len(drawn.pair)), grades[drawn.pair])
    nothing, ones = np.zeros((len(pool.topics), len(pool.runs))), np.ones(len(pool.topics))
    asked = {"drawn": drawn, "rows": rows, "expected_bias": nothing, "more": ones}
    found = estimate_ratios(pool, AP, **asked)
    return found, float(np.sqrt(np.diag(found.estimate.covariance).mean()))


def followed(found: RatioEstimate, further: np.ndarray) -> RatioEstimate:
    return following(found, further, share_followed(found, further))


def test_runs_are_followed_together_where_it_is_sure(estimated) -> None:
    """By hand: every topic off by as much has no variance, and the values' own is the least."""
    found, error = estimated
    topics, runs = found.by_topic.shape
    value = found.estimate.value
    for off, share in ((0.9, 0.0), (1.1, 0.4), (1.5, 1.0)):
        moved = np.full(runs, off * error)
        after = followed(found, found.by_topic + moved / topics)
        assert after.estimate.value == pytest.approx(value + share * moved, abs=1e-9)
        assert after.estimate.value + after.bias == pytest.approx(value + found.bias, abs=1e-12)
        assert (after.rest is None) == (share == 0.0)
    after = followed(found, found.by_topic + 1.125 * error / topics)
    left = (0.5 * 1.125 * error) ** 2  # half is followed, and the other half believed by half
    assert after.rest.of_values == pytest.approx(np.full(runs, 0.5 * left))
    assert after.rest.of_differences == pytest.approx(np.zeros((runs, runs)), abs=1e-12)


def test_what_topics_do_not_tell_surely_is_not_followed(estimated, monkeypatch) -> None:
    """Half of it in every second topic, the other half taken back: far off, and as noisy."""
    found, error = estimated
    topics, _ = found.by_topic.shape
    off = np.where(np.arange(topics) % 2 == 0, 40.0, -30.0)[:, None] * error / topics
    assert followed(found, found.by_topic + off) is found
    monkeypatch.setattr(drawn_at_once, "SURE_OF_ALL", 0.0)
    assert followed(found, found.by_topic + off) is not found


def test_few_topics_are_not_followed(estimated, monkeypatch) -> None:
    found, error = estimated
    topics, _ = found.by_topic.shape
    monkeypatch.setattr(second_order, "LEAST_TOPICS", topics + 1)
    assert followed(found, found.by_topic + 3.0 * error / topics) is found


def alone(pool: Pool) -> dict[str, RankedLists]:
    """Later runs: four times the last documents of every topic, from the last one up."""
    docnos = [f"d{each:03d}".encode() for _ in TOPICS for each in range(DOCUMENTS - 1, -1, -1)]
    bounds = np.arange(0, len(docnos) + 1, DOCUMENTS)
    lists = RankedLists(tuple(TOPICS), bounds, np.array(docnos))
    return {f"later {number}": lists for number in range(4)}


def test_nobody_is_told_otherwise_for_who_else_is_asked_for(
    scattered, runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is followed is told by the runs of the round; the twin asks all that are there."""
    pool, grades = scattered
    later = alone(pool)
    joined = build_pool(TOPICS, runs | later, depth=DOCUMENTS)
    own, only = list(pool.runs), build_pool(TOPICS, later, depth=DOCUMENTS)
    design = design_for(pool, "poisson", budget=4000)
    sample = draw(pool, design, seed="asked")
    labels = LabelRows(sample.pair, grades[sample.pair])
    drawn, asked = PairRound(design, sample), Asked(labels, (AP,), 1)

    def values(scope: Scope, tags: list[str]) -> np.ndarray:
        found = evaluate_scope(scope, drawn, asked).results[0].estimate.value
        return found[[scope.pool.run_index(tag) for tag in tags]]

    of_round, with_later = Scope.of(pool), Scope.of(pool, joined)
    place = find_pairs(pool.topic, pool.docno, among_topic=only.topic, among_docno=only.docno)
    assert np.all(place >= 0)
    without = Scope(only, place, pool, joins=False)
    told = values(of_round, own)
    assert values(with_later, own) == pytest.approx(told, rel=1e-9)
    assert values(without, list(later)) == pytest.approx(values(with_later, list(later)), rel=1e-9)

    monkeypatch.setattr(
        pair_estimates, "share_followed", lambda found, further, *_: share_followed(found, further)
    )
    assert np.abs(values(with_later, own) / told - 1.0).max() > 1e-3


@pytest.mark.parametrize("text", ["AP", "nDCG"])
def test_what_disagreement_moves_ratios_by_is_no_part_of_it(
    ranked, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Everything is judged, by two who disagree: what is followed is what judgments say."""
    pool, grades = of_one_topic(ranked)
    measure = parse_measure(text)
    pair = np.repeat(np.arange(8), 2)
    grade = np.sort(np.stack([grades, np.roll(grades, 1)]).T, axis=1).ravel()
    rows, ones = LabelRows(pair, grade), np.ones(8)
    drawn = Drawn(np.arange(8), ones, ones, ones)
    outlook = KnownOutlook(np.array([1]), np.full((1, 8), 0.4))
    at = AtOutlook.of(pool, measure, drawn, outlook)
    monkeypatch.setattr(drawn_at_once, "LEAST_VARIANCE", 0.0)
    said = of_sample(at, measure, outlook, drawn=drawn, rows=rows)
    assert said == pytest.approx(judged_ratios(pool, measure, rows=rows).value, rel=1e-9)

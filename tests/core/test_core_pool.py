"""Order of ranked lists, and the pool that is made of them."""

import io

import numpy as np
import pytest

from estimation.core.archives import ArchiveError
from estimation.core.data import ranked_lists
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.pool_ranks import total_weights
from estimation.core.data.ranked_lists import PoolError, RankedLists, rank_lines, trec_eval_order
from estimation.core.measures.table import parse_measure

DOCNOS = ["a", "b", "c", "d", "e", "é", "ab", "B", "z9", "0"]


def as_bytes(texts: list[str]) -> np.ndarray:
    return np.array([text.encode() for text in texts])


def scores_with_ties(rng: np.random.Generator) -> np.ndarray:
    base = rng.integers(-2, 3, size=len(DOCNOS)).astype(float)
    return base + rng.choice([0.0, 1e-9, 1e-6], size=len(DOCNOS))


@pytest.mark.parametrize("seed", range(20))
def test_order_is_that_of_trec_eval_in_single_precision(seed: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    scores = scores_with_ties(np.random.default_rng(seed))
    order = trec_eval_order(scores, as_bytes(DOCNOS))
    run = {"q": dict(zip(DOCNOS, scores.tolist(), strict=True))}
    for place, position in enumerate(order, start=1):
        evaluator = pytrec_eval.RelevanceEvaluator(
            {"q": {DOCNOS[position]: 1, "other": 0}}, {"recip_rank"}
        )
        assert evaluator.evaluate(run)["q"]["recip_rank"] == pytest.approx(1 / place)


def test_scores_that_single_precision_cannot_hold_are_tied() -> None:
    tied = trec_eval_order([1 + 1e-9, 1.0, 1e300, 1e299, -0.0, 0.0], as_bytes(list("abcdef")))
    assert tied.tolist() == [3, 2, 1, 0, 5, 4]


def test_lines_in_any_order_give_the_same_lists() -> None:
    lines = [("2", "x", 1.0), ("1", "a", 3.0), ("1", "c", 3.0), ("10", "q", 0.0), ("1", "b", 5.0)]
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        topics, docnos, scores = zip(*(lines[i] for i in order), strict=True)
        found = rank_lines(as_bytes(topics), as_bytes(docnos), scores, depth=2)
        assert found.topics == ("1", "10", "2")
        assert found.docnos.tolist() == [b"b", b"c", b"q", b"x"]
        assert found.indptr.tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize(
    ("docnos", "scores", "message"),
    [
        (["a", "a"], [1.0, 2.0], "'a' occurs twice in topic '1'"),
        (["a", "b"], [1.0, float("nan")], "finite"),
        (["a", "b"], [1.0], "one length"),
    ],
)
def test_lines_that_are_no_run_are_refused(docnos, scores, message) -> None:
    with pytest.raises(PoolError, match=message):
        rank_lines(as_bytes(["1", "1"]), as_bytes(docnos), scores)


def test_pool_by_hand(tiny_pool: Pool) -> None:
    assert tiny_pool.topics == ("t1", "t2", "t3")
    assert tiny_pool.runs == ("alpha", "beta", "gamma")
    assert tiny_pool.docno.tolist() == [b"a", b"b", b"c", b"x", b"y"]
    assert tiny_pool.topic.tolist() == [0, 0, 0, 1, 1]
    assert tiny_pool.indptr.tolist() == [0, 1, 3, 4, 7, 9]
    assert tiny_pool.run.tolist() == [0, 0, 1, 1, 0, 1, 2, 0, 2]
    assert tiny_pool.rank.tolist() == [1, 2, 1, 2, 1, 1, 2, 2, 1]


def test_weights_are_means_over_all_topics_even_those_without_pairs(tiny_pool: Pool) -> None:
    weights = tiny_pool.weights(parse_measure("P@1")).toarray()
    third = 1 / 3
    expected = [[third, 0, 0], [0, third, 0], [0, 0, 0], [third, third, 0], [0, 0, third]]
    assert weights.tolist() == expected
    assert tiny_pool.weights(parse_measure("P@1")).nnz == 5
    some = tiny_pool.weights(parse_measure("P@1"), np.array([1, 4]))
    assert some.toarray().tolist() == [expected[1], expected[4]]
    assert total_weights(tiny_pool, parse_measure("P@1")) == pytest.approx([2 / 3, 2 / 3, third])


def test_weights_do_not_touch_the_pool(tiny_pool: Pool) -> None:
    before = tiny_pool.run.copy()
    tiny_pool.weights(parse_measure("P@1"))
    assert tiny_pool.run.tolist() == before.tolist()
    with pytest.raises(ValueError, match="read-only"):
        tiny_pool.run[0] = 1


def test_weights_by_rank_are_worked_out_once_for_each_measure(tiny_pool: Pool) -> None:
    first, other = parse_measure("DCG@2"), parse_measure("DCG@3")
    told = tiny_pool.rank_weights(first)
    assert tiny_pool.rank_weights(parse_measure("DCG@2")) is told
    assert tiny_pool.rank_weights(other) is not told
    assert told is not None
    assert not told.flags.writeable


def test_depth_cuts_and_foreign_topics_are_ignored(ranked) -> None:
    pool = build_pool(["t1"], {"r": ranked({"t0": "xy", "t1": "cab"})}, depth=2)
    assert pool.docno.tolist() == [b"a", b"c"]
    assert pool.rank.tolist() == [2, 1]


def test_order_of_input_has_no_influence(ranked) -> None:
    runs = {"s": ranked({"t2": "ab", "t1": "c"}), "r": ranked({"t1": "cab"})}
    swapped = {"r": ranked({"t1": "cab"}), "s": ranked({"t1": "c", "t2": "ab"})}
    first = build_pool(["t1", "t2"], runs, depth=5)
    assert first.digest == build_pool(["t2", "t1"], swapped, depth=5).digest


def test_digest_depends_on_every_part(ranked) -> None:
    def digest(topics=("t1", "t2"), tag="r", rows="ab", depth=5) -> str:
        return build_pool(topics, {tag: ranked({"t1": rows})}, depth=depth).digest

    others = [
        digest(topics=("t1", "t3")),
        digest(tag="s"),
        digest(rows="ba"),
        digest(rows="ac"),
        digest(depth=6),
    ]
    assert len({digest(), *others}) == 6
    assert digest() == digest()


def test_wide_docnos_beyond_the_depth_leave_no_trace(ranked) -> None:
    wide = RankedLists(("t1",), np.array([0, 2]), np.array([b"a", b"a-very-long-docno"]))
    narrow = build_pool(["t1"], {"r": ranked({"t1": "a"})}, depth=1)
    assert build_pool(["t1"], {"r": wide}, depth=1).digest == narrow.digest


@pytest.mark.parametrize(
    ("topics", "rows", "depth", "message"),
    [
        ([], "ab", 5, "at least one topic"),
        (["t1"], "ab", 0, "at least 1"),
        (["t1", "t1"], "ab", 5, "named twice"),
        (["t1"], "aba", 5, "returns 'a' twice in topic 't1'"),
    ],
)
def test_what_cannot_be_pooled_is_refused(ranked, topics, rows, depth, message) -> None:
    with pytest.raises(PoolError, match=message):
        build_pool(topics, {"r": ranked({"t1": rows})}, depth=depth)


def test_inconsistent_lists_are_refused() -> None:
    docnos = np.array([b"a", b"b"])
    for topics, bounds in ((("t", "t"), [0, 1, 2]), (("t",), [0, 1]), (("t", "u"), [0, 3, 2])):
        with pytest.raises(PoolError):
            RankedLists(topics, np.array(bounds), docnos)


def test_saved_pool_is_the_same_pool(tiny_pool: Pool, tmp_path) -> None:
    tiny_pool.save(tmp_path / "pool")
    loaded = Pool.load(tmp_path / "pool")
    assert loaded.digest == tiny_pool.digest
    assert loaded.runs == tiny_pool.runs
    again = io.BytesIO()
    loaded.save(again)
    assert again.getvalue() == (tmp_path / "pool").read_bytes()


def test_damaged_pool_files_are_refused(tiny_pool: Pool, tmp_path) -> None:
    file = io.BytesIO()
    tiny_pool.save(file)
    stored = bytearray(file.getvalue())
    stored[stored.index(b"abcxy")] ^= 1
    for content in (bytes(stored), stored[:100], b"", b"no archive at all"):
        with pytest.raises(ValueError):  # noqa: PT011 - which message depends on the damage
            Pool.load(io.BytesIO(bytes(content)))
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    with pytest.raises(ArchiveError):
        Pool.load(tmp_path / "other.npz")


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float64, "S3"])
def test_topics_may_be_any_values_that_have_an_order(kind: type) -> None:
    rng = np.random.default_rng(1)
    topic, score = rng.integers(0, 9, 200), rng.integers(-4, 4, 200).astype(float)
    docno = as_bytes([f"d{n}" for n in rng.permutation(200)])
    ordered = trec_eval_order(score, docno, topics=topic.astype(kind))
    places = zip(topic.tolist(), score.tolist(), docno.tolist(), range(200), strict=True)
    wanted = sorted(
        sorted(places, key=lambda row: row[2], reverse=True), key=lambda r: (r[0], -r[1])
    )
    assert ordered.tolist() == [row[3] for row in wanted]


@pytest.mark.parametrize("shift", [0, 60])
def test_docnos_are_numbered_as_they_are_sorted(
    shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where different ones have equal hashes."""
    hashes = ranked_lists.document_hashes
    monkeypatch.setattr(
        ranked_lists, "document_hashes", lambda *of: hashes(*of) << np.uint64(shift)
    )
    rng = np.random.default_rng(3)
    for count in (0, 1, 2, 50, 3000):
        docnos = as_bytes([rng.choice(DOCNOS) * int(rng.integers(1, 12)) for _ in range(count)])
        docnos = docnos.astype(np.bytes_)
        different, number = ranked_lists.distinct_docnos(docnos)
        names, place = np.unique(docnos, return_inverse=True)
        assert different.tolist() == names.tolist()
        assert number.tolist() == place.tolist()

"""Results as tables: plain columns, short text, HTML that holds no foreign tags, data frames."""

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from estimation import core
from estimation.core.data.pool import Pool
from estimation.core.rounds.results import ROW, Verdicts
from estimation.core.tables import Tabled, by_rows

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def pool() -> Pool:
    orders = {"good": "abcdefgh", "bad": "hgfedcba", "other": "badcfehg"}
    topics = [str(number) for number in range(1, 31)]
    scores = {
        tag: {topic: {docno: -float(at) for at, docno in enumerate(order)} for topic in topics}
        for tag, order in orders.items()
    }
    return core.pool_runs({tag: core.rank_scores(each) for tag, each in scores.items()}, depth=8)


@pytest.fixture
def found(pool: Pool) -> core.Evaluation:
    design = core.make_design(pool, measure="P@4", budget=150, goal="absolute")
    drawn = core.draw_round(pool, design, seed="tables")
    relevant = core.Qrels.of({topic: dict.fromkeys("abc", 1) for topic in pool.topics})
    labels = relevant.labels(pool, drawn.served(pool).pair, unlisted=0)
    return core.evaluate(pool, drawn, labels=labels, measures=["P@4", "Rprec"], max_grade=1)


def is_plain(table: Tabled) -> bool:
    """Columns of one length, of nothing but what JSON has."""
    columns = table.columns()
    cells = [cell for column in columns.values() for cell in column]
    plain = all(type(cell) in (str, int, float, bool, type(None)) for cell in cells)
    return plain and len({len(column) for column in columns.values()}) == 1


def test_every_result_has_plain_columns(pool: Pool, found: core.Evaluation) -> None:
    design = core.make_design(pool, measure="P@4", budget=60)
    drawn = core.draw_round(pool, design, seed="s")
    results = [
        *(found, found.results[0], found.results[0].verdicts, design, drawn, drawn.served(pool)),
        core.expected_precision(pool, design),
        core.precision_by_budget(pool, design, budgets=[50, 100]),
        core.together([drawn], seeds=["s"]),
        core.make_design(pool, measure="P@4", budget=60, method="active"),
        core.make_design(pool, measure="ERR@4", budget=60, method="query", max_grade=1),
    ]
    for each in results:
        assert is_plain(each), each
        assert "array(" not in repr(each)
        assert str(each) == repr(each)
        assert len(repr(each).splitlines()) <= each.MOST_ROWS + 3
        assert each._repr_html_().startswith("<table>")


def test_a_result_is_by_rank(found: core.Evaluation) -> None:
    columns = found["p@4"].columns()
    assert tuple(columns) == ROW
    assert columns["rank"] == [1, 2, 3]
    assert columns["value"] == sorted(columns["value"], reverse=True)
    assert columns["run"][-1] == "bad"
    at = found["P@4"].runs.index(columns["run"][0])
    assert columns["low"][0] == found["P@4"].estimate.low[at]


def test_what_is_not_known_has_no_number_and_a_reason(found: core.Evaluation) -> None:
    """Three relevant documents a topic are too few for Rprec of the run that returns them last."""
    columns = found["Rprec"].columns()
    assert columns["unknown"] == ["", "", "few_relevant"]
    for name in ("value", "low", "high"):
        assert [number is None for number in columns[name]] == [False, False, True]
    assert " ? " in repr(found["Rprec"])
    known = found["Rprec"]
    unknown = replace(known.ranking, unknown=np.where(np.eye(3), 0, 2).astype(np.int8))
    pairs = Verdicts(known.runs, unknown).columns()
    assert pairs["unknown"] == ["few_relevant"] * 3
    assert pairs["difference"] == pairs["margin"] == pairs["adjusted p"] == [None] * 3


def test_a_ranking_names_every_two_runs(found: core.Evaluation) -> None:
    ranking, runs = found["P@4"].ranking, found["P@4"].runs
    columns = found["P@4"].verdicts.columns()
    assert len(columns["run"]) == 3
    for run, other, verdict, difference in zip(
        *(columns[name] for name in ("run", "other", "verdict", "difference")), strict=True
    ):
        i, j = runs.index(run), runs.index(other)
        assert ranking.rank[i] < ranking.rank[j]
        assert difference == ranking.difference[i, j] >= 0
        assert verdict == {1: "better", 0: "", -1: "worse"}[int(ranking.verdicts[i, j])]
    assert "better" in columns["verdict"]


def test_a_measure_that_was_not_asked_for_is_named(found: core.Evaluation) -> None:
    with pytest.raises(core.MeasureError, match="DCG@4 was not estimated; there is P@4, Rprec"):
        found["DCG@4"]


def test_what_is_to_be_judged_is_by_batch(pool: Pool) -> None:
    design = core.make_design(pool, measure="P@4", budget=60)
    served = core.draw_round(pool, design, seed="s").served(pool)
    columns = served.columns()
    assert columns["batch"] == sorted(columns["batch"])
    pairs = list(zip(columns["topic"], columns["docno"], strict=True))
    assert len(set(pairs)) == len(served.pair)
    assert "more rows" in repr(served)


def test_preferences_show_both_documents(pool: Pool) -> None:
    preferences = core.preference_pool(pool, depth=3)
    design = core.make_design(preferences, measure="#ofSwaps", budget=20, max_grade=2)
    served = core.draw_round(preferences, design, seed="s").served(preferences)
    columns = served.columns()
    assert all(
        first < other for first, other in zip(columns["docno"], columns["other"], strict=True)
    )


class Hostile(Tabled):
    def columns(self) -> dict[str, list[object]]:
        return by_rows(["<b>", "n"], [["<script>", 0.123456], [None, True]])


def test_no_cell_is_markup() -> None:
    shown = Hostile()._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown
    assert repr(Hostile()).splitlines()[1:] == [
        "<b>            n",
        "<script>  0.1235",
        "?            yes",
    ]


@pytest.mark.slow
def test_a_data_frame_where_pandas_is(tmp_path: Path) -> None:
    """A stand-in for pandas, which the house does without; the real one is in no requirement."""
    code = """
import estimation.core as c
run = c.rank_scores({"1": {"a": 2.0, "b": 1.0}})
pool = c.pool_runs({"r": run}, depth=2)
design = c.make_design(pool, measure="P@2", budget=2, goal="absolute")
import sys
assert "pandas" not in sys.modules
print(type(design.table()).__name__, sorted(design.table()))
"""
    (tmp_path / "pandas.py").write_text("class DataFrame(dict):\n    pass\n")
    for path, kind in ((f"{tmp_path}:{REPO}", "DataFrame"), (str(REPO), "dict")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        name, _, columns = done.stdout.partition(" ")
        assert columns.strip() == "['value', 'what']"
        assert name == kind or find_spec("pandas") is not None

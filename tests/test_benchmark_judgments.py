"""The comparison of ways of judging, on a small collection that is made here."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.judgments import __main__ as command
from benchmarks.judgments.cells import Results, Row, play, summed_up
from benchmarks.judgments.charts import CHARTS, drawing
from benchmarks.judgments.lara import lara_chances
from benchmarks.judgments.material import Material, noisy_machine, of_collection
from benchmarks.judgments.page import BEGIN, END, tables
from benchmarks.judgments.players import METHODS, Told, paired_verdicts
from benchmarks.judgments.ppi import prediction_powered_mean
from estimation.core.data.ranked_lists import rank_lines
from estimation.management.judged_collections import JudgedCollection
from tests.support.site import REPO

TOPICS, DOCUMENTS, RUNS, BUDGET = 12, 40, 6, 110
TRIALS, FEW = 20, 4
SLOW = ("active", *(name for name in METHODS if name.startswith("adaptive")))


def made(topics: int = TOPICS) -> JudgedCollection:
    """Runs that rank all documents by their grades and by chance, half of them as later runs."""
    rng = np.random.default_rng(3)
    grades = rng.choice(3, size=(topics, DOCUMENTS), p=(0.75, 0.17, 0.08))
    topic, document = np.indices(grades.shape)
    names = np.array([f"t{each:02}" for each in topic.ravel()], dtype=np.bytes_)
    docnos = np.array([f"d{each:02}" for each in document.ravel()], dtype=np.bytes_)
    runs = {}
    for run in range(RUNS):
        scores = grades + rng.normal(scale=0.6 + run / 3.0, size=grades.shape)
        runs[f"{'later.' if run % 2 else ''}r{run}"] = rank_lines(names, docnos, scores.ravel())
    keys = zip(np.char.decode(names).tolist(), np.char.decode(docnos).tolist(), strict=True)
    known = dict(zip(keys, grades.ravel().tolist(), strict=True))
    return JudgedCollection(tuple(sorted(set(np.char.decode(names).tolist()))), runs, known)


@pytest.fixture(scope="module")
def material() -> Material:
    return of_collection("made", made(), "DCG@10", seed="1")


@pytest.fixture(scope="module")
def rows(material: Material) -> dict[str, Row]:
    return {
        name: play(material, name, BUDGET, trials=FEW if name in SLOW else TRIALS, seed="1")
        for name in METHODS
    }


# ------------------------------------------------------------------------------ what is found


@pytest.mark.slow
def test_every_method_is_played_at_about_as_many_judged_pairs(rows: dict[str, Row]) -> None:
    for name, row in rows.items():
        if name not in ("machine", "deep", "query"):  # nothing; whole topics as they come
            assert row.judged == pytest.approx(BUDGET, rel=0.06), name
        assert row.pairs == RUNS * (RUNS - 1) // 2
        assert 0.0 < row.error < 1.0, name


@pytest.mark.slow
def test_samples_are_unbiased_and_pooling_is_not(rows: dict[str, Row]) -> None:
    def noise(row: Row) -> float:  # of a mean over trials, if the runs' errors go all together
        return row.error / np.sqrt(row.trials)

    for name in ("adaptive", "adaptive-machine", "poisson", "priority", "iid", "uniform", "ppi"):
        assert abs(rows[name].bias) < 3.5 * noise(rows[name]), name
    for name in ("pooling", "mtf", "mab"):
        assert rows[name].bias < -0.1, name
    assert rows["pooling"].error > 1.5 * rows["poisson"].error


@pytest.mark.slow
def test_intervals_of_samples_hold_the_truth_and_others_have_none(rows: dict[str, Row]) -> None:
    for name in ("adaptive", "poisson", "iid", "uniform", "ppi", "poisson-machine"):
        assert rows[name].coverage is not None
        assert rows[name].coverage > 0.88, name
    for name in ("pooling", "condensed", "mtf", "lara", "machine"):
        assert rows[name].coverage is None


@pytest.mark.slow
def test_a_design_is_more_exact_than_a_uniform_sample(rows: dict[str, Row]) -> None:
    assert rows["poisson"].error < 0.9 * rows["uniform"].error
    assert rows["poisson-machine"].error < 0.9 * rows["poisson"].error


@pytest.mark.slow
def test_a_bad_machine_misleads_lara_and_biases_no_sample(
    material: Material, rows: dict[str, Row]
) -> None:
    inverted = replace(material, machine=material.max_grade - material.machine)
    noise = replace(material, machine=np.random.default_rng(1).permutation(material.machine))
    for bad in (inverted, noise):
        told = play(bad, "lara-expected", 40, trials=5, seed="1")
        good = play(material, "lara-expected", 40, trials=5, seed="1")
        assert told.tau < good.tau - 0.1
        ours = play(bad, "poisson-machine", BUDGET, trials=TRIALS, seed="1")
        assert abs(ours.bias) < 3.5 * ours.error / np.sqrt(ours.trials)
    assert play(noise, "machine", BUDGET, trials=1, seed="1").tau < rows["machine"].tau - 0.2


@pytest.mark.slow
def test_a_row_follows_from_its_arguments(material: Material, rows: dict[str, Row]) -> None:
    assert play(material, "poisson", BUDGET, trials=TRIALS, seed="1") == rows["poisson"]
    assert play(material, "poisson", BUDGET, trials=TRIALS, seed="2") != rows["poisson"]


# ------------------------------------------------------------------------------- single parts


def test_the_machine_agrees_as_it_says_and_a_leaning_one_leans(material: Material) -> None:
    pool, grades = material.pool, material.grades
    later = np.array([tag.startswith("later.") for tag in pool.runs])
    shares = np.bincount(pool.entry_pair, later[pool.run]) / np.diff(pool.indptr)
    leans = {}
    for favored in (None, "later."):
        said = noisy_machine(pool, grades, max_grade=2, seed="1", favored=favored)
        assert np.corrcoef(said, grades)[0, 1] == pytest.approx(0.6, abs=1e-6)
        assert 0.0 <= said.min() <= said.max() <= 2.0
        leans[favored] = np.corrcoef(said - grades, shares)[0, 1]
    assert leans["later."] > leans[None] + 0.3


def test_condensed_lists_are_those_without_unjudged_documents(material: Material) -> None:
    judged = np.random.default_rng(4).random(len(material.pool)) < 0.4
    pool, collection = material.pool, made()
    known = {
        (pool.topics[topic], docno): grade
        for topic, docno, grade, kept in zip(
            pool.topic, pool.docno.tolist(), material.grades, judged, strict=True
        )
        if kept
    }
    found = material.condensed_values(judged)
    for run, tag in enumerate(pool.runs):
        lists = collection.runs[tag]
        for place, topic in enumerate(lists.topics):
            docnos = lists.docnos[lists.indptr[place] : lists.indptr[place + 1]].tolist()
            kept = [known[topic, docno] for docno in docnos if (topic, docno) in known][:10]
            value = sum(grade / np.log2(rank + 2) for rank, grade in enumerate(kept))
            assert found[place, run] == pytest.approx(value)
    everything = np.ones(len(pool), dtype=bool)
    assert material.condensed_values(everything).mean(axis=0) == pytest.approx(material.truth)


def test_prediction_powered_means_are_those_of_the_authors_package() -> None:
    labels = np.array([[0, 2], [1, 0], [3, 1], [0, 0], [2, 2]], dtype=float)
    said = np.array([[0.5, 1.5], [1, 0.2], [2, 1], [0.1, 0.4], [1.5, 1]])
    rest = [[0.3, 0.1], [2, 1], [0.7, 0.2], [1.1, 1.9], [0, 0.3], [0.2, 0.6], [1.8, 0.9]]
    found = prediction_powered_mean(labels, said, np.array(rest))
    half = stats.norm.ppf(0.975) * np.sqrt(np.diag(found.covariance))
    # ppi_mean_pointestimate and ppi_mean_ci(alpha=0.05) of ppi-python 0.2.3
    assert found.value == pytest.approx([1.08515293, 0.91828189], abs=1e-8)
    assert found.value - half == pytest.approx([0.37035498, 0.30738923], abs=1e-8)
    assert found.value + half == pytest.approx([1.79995088, 1.52917455], abs=1e-8)
    same = prediction_powered_mean(labels, np.ones((5, 2)), np.ones((7, 2)))
    assert same.tuned == 0.0
    assert same.value == pytest.approx(labels.mean(axis=0))


def test_lara_judges_what_the_machine_is_least_sure_of() -> None:
    machine, grades = np.linspace(0.0, 1.0, 41), np.repeat([0, 1], [20, 21])
    numbers = np.linspace(0.0, 1.0, 41)
    judged, chances = lara_chances(machine, grades, max_grade=1, budget=5, numbers=numbers)
    assert judged.tolist() == [18, 19, 20, 21, 22]
    assert chances[judged].tolist() == np.eye(2)[grades[judged]].tolist()
    assert np.argmax(chances, axis=1).tolist() == grades.tolist()


def test_lara_learns_where_a_lenient_machine_begins_to_say_relevant() -> None:
    machine = np.linspace(0.0, 1.0, 401)
    grades, numbers = (machine > 0.8).astype(np.int64), np.linspace(0.0, 1.0, 401)
    _, learned = lara_chances(machine, grades, max_grade=1, budget=200, numbers=numbers)
    assert np.mean((machine > 0.5) != grades) > 0.25
    assert np.mean(np.argmax(learned, axis=1) != grades) < 0.02


def test_paired_tests_are_those_of_scipy_with_holms_correction() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(25, 1)) + rng.normal(size=(25, 4)) + [0.0, 0.1, 0.9, 2.0]
    values = np.column_stack([values, values[:, 3]])  # a run twice
    rows, columns = np.triu_indices(5, k=1)
    single = np.array(
        [
            stats.ttest_rel(values[:, i], values[:, j]).pvalue if (i, j) != (3, 4) else 1.0
            for i, j in zip(rows, columns, strict=True)
        ]
    )
    order = np.argsort(single)
    steps = np.maximum.accumulate(np.arange(len(order), 0, -1) * single[order])
    wanted = np.zeros((5, 5), dtype=int)
    for i, j in ((rows[at], columns[at]) for at in order[steps <= 0.05]):
        wanted[i, j] = np.sign(values[:, i].mean() - values[:, j].mean())
        wanted[j, i] = -wanted[i, j]
    assert 0 < np.count_nonzero(wanted == 1) < 9
    assert paired_verdicts(values).tolist() == wanted.tolist()
    without_spread = np.array([[0.3, 0.4, 0.1], [0.6, 0.7, 0.4]])
    assert not paired_verdicts(without_spread).any()


def test_what_is_told_is_held_against_the_truth(material: Material) -> None:
    truth = material.truth
    order = np.sign(np.subtract.outer(truth, truth)).astype(np.int8)
    right = Told(5, truth * 1.1, (truth - 1.0, truth + 1.0), order)
    wrong = Told(5, truth, (truth + 0.5, np.where(truth < truth.mean(), np.nan, 9.0)), -order)
    found = summed_up(material, [right, wrong])
    assert found["decided"] == 0.5
    assert found["false"] == 0.5 * found["pairs"]
    assert found["any_false"] == found["any_reversed"] == 0.5
    assert found["bias"] == pytest.approx(0.05)
    assert found["tau"] == 1.0
    assert found["coverage"] == pytest.approx(RUNS / (2 * RUNS))
    assert found["worst_coverage"] == 0.5


# ------------------------------------------------------------------------------- the command


def write(collection: JudgedCollection, folder: Path) -> None:
    (folder / "runs").mkdir(parents=True)
    for tag, lists in collection.runs.items():
        lines = [
            f"{topic} Q0 {docno.decode()} {rank} {1000 - rank} {tag}\n"
            for place, topic in enumerate(lists.topics)
            for rank, docno in enumerate(
                lists.docnos[lists.indptr[place] : lists.indptr[place + 1]], start=1
            )
        ]
        (folder / "runs" / f"{tag}.gz").write_bytes(gzip.compress("".join(lines).encode()))
    qrels = [f"{topic} 0 {docno} {grade}\n" for (topic, docno), grade in collection.grades.items()]
    (folder / "qrels.txt").write_text("".join(qrels))


@pytest.mark.parametrize("name", ["trec8", "dl2019-leaning", "llm-judges"])
def test_where_its_collections_are_not_it_says_what_names_them(tmp_path: Path, name: str) -> None:
    """It ended in a traceback."""
    said = r"^There is no folder \S+\. EVALSITE_TEST_DATA names the folder"
    with pytest.raises(SystemExit, match=said):
        command.main(
            ["--data", str(tmp_path), "--collections", name, "--out", str(tmp_path / "rows.jsonl")]
        )


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_and_named_methods_are_played_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(made(topics=6), tmp_path / "cranfield")
    out, page = tmp_path / "rows.jsonl", tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")

    def run(*more: str) -> list[str]:
        data = ["--data", str(tmp_path), "--out", str(out), "--collections", "cranfield"]
        command.main([*data, "--budgets", "60", "--trials", "1", *more])
        return [line for line in capsys.readouterr().err.splitlines() if "left out" not in line]

    assert len(run("--methods", "poisson,pooling")) == 2
    first = out.read_text().splitlines()
    assert [json.loads(line)["method"] for line in first] == ["poisson", "pooling"]
    rest = run()
    assert rest
    assert not any(" poisson:" in line or " pooling:" in line for line in rest)
    assert set(first) <= set(out.read_text().splitlines())
    assert run() == []
    assert len(run("--methods", "poisson", "--seed", "3")) == 1
    again = out.read_text().splitlines()
    assert len(set(first) - set(again)) == 1
    assert len(run("--page", str(page), "--from", str(out))) == 0
    assert page.read_text() == "\n".join(
        ["before", BEGIN, "", *tables(list(Results(out))), "", END, "after", ""]
    )
    assert len(list((tmp_path / "images").glob("*.svg"))) == len(CHARTS)
    with pytest.raises(SystemExit):
        run("--methods", "poison")


# ------------------------------------------------------------------------------ what is told


def test_the_page_has_the_figures_that_are_stored() -> None:
    rows = list(Results(REPO / "docs" / "benchmarks.jsonl"))
    text = (REPO / "docs" / "benchmarks.md").read_text("utf-8")
    assert "\n".join([BEGIN, "", *tables(rows), "", END]) in text
    for name, chart in CHARTS.items():
        stored = (REPO / "docs" / "images" / f"benchmarks-{name}.svg").read_text("utf-8")
        assert stored == drawing(chart, rows)
    assert {row.method for row in rows} <= set(METHODS)

"""``manage.py score`` as somebody types it who has a collection and runs, and nothing else."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from estimation import selectors
from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.combining import RoundsTogether
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.formats.collections.files import read_collection, write_collection
from estimation.formats.runs import read_run
from estimation.models import Estimate, Round
from estimation.services import files
from judging.formats.problems import Problems
from tests.core.collecting import publish
from tests.core.length import LONG, bounded
from tests.estimation.test_later_preferences import SWAPS
from tests.estimation.test_later_preferences import judge as judge_preferences
from tests.estimation.test_later_runs import with_news
from tests.support import evaluation
from tests.support.material import small_material

REPO = Path(__file__).resolve().parents[2]
MATERIAL = small_material(topics=6, documents=24, runs=4, depth=12)
DCG = parse_measure("DCG@10")
FIELDS = ("", "_low", "_high", "_se", "_support", "_ess")


@dataclass(frozen=True)
class Said:
    out: str
    err: str


def score(*arguments: object) -> Said:
    """Without the mark of tests that use a database: a query would be an error."""
    out, err = io.StringIO(), io.StringIO()
    call_command("score", *map(str, arguments), stdout=out, stderr=err)
    return Said(out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collections drawn for run1 and run2, and the files of all four runs.

    ``collection.zip`` is of one round, ``together.zip`` of two rounds of draws.
    """
    made = tmp_path_factory.mktemp("score")
    lists = {}
    for name, content in MATERIAL.runs.items():
        (made / name).write_bytes(content)
        run = read_run(io.BytesIO(content), Problems(name))
        assert run is not None
        lists[run.tag] = run.lists
    pool = build_pool(
        [f"t{n}" for n in range(1, 7)], {tag: lists[tag] for tag in ("run1", "run2")}, depth=12
    )
    keep(made / "collection.zip", pool, [drawn_for(pool, "poisson", "s")])
    keep(made / "together.zip", pool, [drawn_for(pool, "iid", seed) for seed in "st"])
    return made


def drawn_for(pool: Pool, method: str, seed: str) -> PairRound:
    goal = goals.absolute("run1", "run2")
    prior = make_prior(pool, name="rank", goal=goal, measure=DCG, max_grade=3)
    design = make_design(
        pool, goal=goal, measure=DCG, prior=prior, budget=40, batch_size=20, method=method,
        reported=[parse_measure("P@10")],
    )  # fmt: skip
    return PairRound(design, draw(pool, design, seed=seed), numbers=seed)


def keep(path: Path, pool: Pool, parts: list[PairRound]) -> None:
    pairs = np.unique(np.concatenate([part.sample.pair for part in parts]))
    keys = [(pool.topics[pool.topic[p]], pool.docno[p].decode()) for p in pairs]
    labels = LabelRows(pairs, np.array([MATERIAL.truth[key] for key in keys]))
    collection = publish(pool, parts, labels=labels, max_grade=3, version="0.1")
    with path.open("wb") as file:
        write_collection(file, collection)


def loaded(path: Path) -> RoundCollection:
    with path.open("rb") as file:
        found = read_collection(file, Problems(path.name))
    assert found is not None
    return found


def test_lines_are_in_trec_evals_columns(folder: Path) -> None:
    said = score(folder / "collection.zip", folder / "run1.run")
    lines = [line.split("\t") for line in said.out.splitlines()]
    assert {len(cells) for cells in lines} == {3}
    assert {len(cells[0]) for cells in lines} == {22}
    names = [f"{measure}{field}" for measure in ("DCG@10", "P@10") for field in FIELDS]
    assert [cells[0].rstrip() for cells in lines] == ["runid", *names]
    assert {cells[1] for cells in lines} == {"all"}
    assert lines[0][2] == "run1"
    assert all(cells[2] == f"{float(cells[2]):6.4f}" for cells in lines[1:])
    assert said.err == ""


@pytest.mark.parametrize("name", ["collection.zip", "together.zip"])
def test_the_numbers_are_those_of_the_core(folder: Path, name: str) -> None:
    run = read_run(io.BytesIO(MATERIAL.runs["run2.run"]), Problems(""))
    assert run is not None
    result = loaded(folder / name).evaluate({"run2": run.lists}, measures=[DCG]).results[0]
    (found,) = json.loads(
        score(
            folder / name, folder / "run2.run", "--measure", "dcg@10",
            "--format", "json",
        ).out
    )  # fmt: skip
    assert found["tag"] == "run2"
    assert found["measure"] == "DCG@10"
    for field in ("value", "low", "high", "se"):
        assert found[field] == getattr(result.estimate, field)[0]
    assert found["support"] == 1.0
    assert found["effective_sample_size"] == result.effective_sample_size[0]
    assert found["lower_bound"] is False
    assert "differences" not in found


@pytest.mark.parametrize(("name", "method", "seeds"), [
    ("collection.zip", "poisson", "s"), ("together.zip", "iid", "st"),
])  # fmt: skip
def test_the_numbers_are_those_of_the_round(
    folder: Path, name: str, method: str, seeds: str
) -> None:
    """Of one run alone, where the round had two: the file tells what it has to do with the rest."""
    runs = [read_run(io.BytesIO(MATERIAL.runs[f"run{n}.run"]), Problems("")) for n in (1, 2)]
    lists = {run.tag: run.lists for run in runs if run is not None}
    pool = build_pool([f"t{n}" for n in range(1, 7)], lists, depth=12)
    parts, labels = [drawn_for(pool, method, seed) for seed in seeds], loaded(folder / name).labels
    asked = {"labels": labels, "measures": [DCG], "max_grade": 3}
    if len(parts) == 1:
        result = evaluate(pool, PairRound(parts[0].design, parts[0].sample), **asked).results[0]
    else:
        result = evaluate(pool, RoundsTogether(tuple(parts)), **asked).results[0]
    for at, tag in enumerate(result.runs):
        arguments = [folder / name, folder / f"{tag}.run", "--measure", "DCG@10"]
        (found,) = json.loads(score(*arguments, "--format", "json").out)
        for field in ("value", "low", "high", "se"):
            assert found[field] == getattr(result.estimate, field)[at], (tag, field)


def test_a_late_run_is_a_lower_bound_and_says_how_much_is_out_of_reach(folder: Path) -> None:
    said = score(
        folder / "collection.zip", folder / "run4.run", folder / "run1.run", "--format", "json",
        "--measure", "DCG@10", "--measure", "AP",
    )  # fmt: skip
    rows = {(row["tag"], row["measure"]): row for row in json.loads(said.out)}
    assert list(rows) == [("run4", "DCG@10"), ("run4", "AP"), ("run1", "DCG@10"), ("run1", "AP")]
    late = rows["run4", "DCG@10"]
    assert 0.0 < late["support"] < 1.0
    assert (late["lower_bound"], rows["run1", "DCG@10"]["lower_bound"]) == (True, False)
    missing = f"{100 * (1 - late['support']):.3g} %"
    assert f"warning: run4: DCG@10 is a lower bound: {missing} of its weight is on" in said.err
    assert "run1: DCG@10" not in said.err
    assert "run4: AP may be too high or too low" in said.err
    assert rows["run4", "AP"]["lower_bound"] is False


def test_a_run_out_of_reach_is_not_known_and_no_lower_bound(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.run"
    other.write_bytes(MATERIAL.runs["run4.run"].replace(b" d", b" other"))
    said = score(
        folder / "collection.zip", other, "--format", "json", "--measure", "DCG@10",
    )  # fmt: skip
    (found,) = json.loads(said.out)
    assert (found["value"], found["unknown"], found["support"]) == (None, "too_little", 0.0)
    assert found["lower_bound"] is False
    assert found["low"] == 0.0 < found["high"]
    assert "run4: DCG@10 is not known" in said.err
    assert "lower bound" not in said.err


def test_differences_are_told_when_there_are_several_runs(folder: Path) -> None:
    paths = [folder / f"run{number}.run" for number in (2, 1)]
    rows = json.loads(score(folder / "collection.zip", *paths, "--format", "json").out)
    second, first = (row for row in rows if row["measure"] == "DCG@10")
    (told,) = second["differences"]
    (back,) = first["differences"]
    assert (told["tag"], back["tag"]) == ("run1", "run2")
    assert told["value"] == pytest.approx(second["value"] - first["value"])
    assert told["low"] < told["value"] < told["high"]
    assert (told["low"], told["se"]) == (-back["high"], back["se"])
    assert told["se"] < np.hypot(second["se"], first["se"])


def test_topics_are_shown_on_demand_and_average_to_the_value(folder: Path) -> None:
    arguments = [folder / "collection.zip", folder / "run1.run", "--measure", "P@10"]
    lines = [line.split("\t") for line in score(*arguments, "--per-topic").out.splitlines()]
    topics = {cells[1]: float(cells[2]) for cells in lines if cells[1] != "all"}
    assert list(topics) == [f"t{number}" for number in range(1, 7)]
    (row,) = json.loads(score(*arguments, "--per-topic", "--format", "json").out)
    assert np.mean(list(row["topics"].values())) == pytest.approx(row["value"], rel=1e-12)
    assert topics == pytest.approx(row["topics"], abs=6e-5)


def test_confidence_widens_the_interval(folder: Path) -> None:
    arguments = [folder / "collection.zip", folder / "run1.run", "--format", "json"]
    wide, narrow = (
        json.loads(score(*arguments, "--confidence", level).out)[0] for level in ("0.99", "0.8")
    )
    assert wide["value"] == narrow["value"]
    assert wide["high"] > narrow["high"]


def test_guaranteed_intervals_where_a_measure_has_them(folder: Path) -> None:
    arguments = [
        folder / "collection.zip", folder / "run1.run", folder / "run2.run", "--format", "json",
        "--measure", "DCG@10", "--measure", "AP",
    ]  # fmt: skip
    usual = json.loads(score(*arguments).out)
    said = score(*arguments, "--interval", "chernoff")
    found = json.loads(said.out)
    assert [row["interval"] for row in usual] == ["student"] * 4
    assert [row["interval"] for row in found] == ["chernoff", "student"] * 2
    assert "warning: AP has no chernoff intervals; they are student ones" in said.err
    assert "DCG@10 has no" not in said.err
    for before, now in zip(usual, found, strict=True):
        assert now["value"] == before["value"]
        assert (now["high"] == before["high"]) == (now["interval"] == "student")
    assert found[0]["differences"][0]["high"] != usual[0]["differences"][0]["high"]


def test_a_cut_measure_is_told(folder: Path) -> None:
    said = score(folder / "collection.zip", folder / "run1.run", "--measure", "DCG@100")
    assert "DCG@100 is cut at rank 12, the depth of the collection's pool" in said.err


def test_what_is_odd_about_a_run_is_told(folder: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.run"
    odd.write_text("t1 Q0 d1 1 2.0 odd\nt99 Q0 d1 1 2.0 odd\n")
    said = score(folder / "collection.zip", odd, "--measure", "MSE")
    assert f"warning: {odd}:2: topic: topic 't99' is not among the known topics" in said.err
    assert "missing: the run returns nothing there" in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["collection.zip", "none.run"], r"none\.run cannot be read: No such file"),
        (["none.zip", "run1.run"], r"none\.zip cannot be read: No such file"),
        (["run1.run", "run1.run"], r"run1\.run:-: file: expected a zip file"),
        (["collection.zip", "collection.zip"], r"expected UTF-8 text, plain or gzip, found a zip"),
        (["collection.zip", "run1.run", "run1.run"], "another file has the run run1 already"),
        (["collection.zip", "run1.run", "--measure", "Fancy@3"], "--measure Fancy@3: .*DCG"),
        (["collection.zip", "run1.run", "--measure", "#ofSwaps"], "judged on pairs of documents"),
        (
            ["collection.zip", "run1.run", "--interval", "hoeffding"],
            "--interval must be one of student, bernstein, chernoff for this collection, not",
        ),
        (
            ["together.zip", "run1.run", "--interval", "empirical-bernstein"],
            "--interval must be one of student, hoeffding, hoeffding-paper for this collection",
        ),
        (
            ["together.zip", "run1.run", "--measure", "AP"],
            "ratio measures cannot be estimated from several rounds of draws: AP",
        ),
        (["collection.zip", "run1.run", "--confidence", "1"], "between 0 and 1, not 1.0"),
        (["collection.zip", "run1.run", "--confidence", "nan"], "between 0 and 1, not nan"),
    ],
)
def test_bad_arguments(folder: Path, arguments: list[str], message: str) -> None:
    paths = [folder / each if "." in each and "/" not in each else each for each in arguments[:2]]
    rest = [folder / each if each.endswith(".run") else each for each in arguments[2:]]
    with pytest.raises(CommandError, match=message):
        score(*paths, *rest)


def test_errors_of_a_run_are_told_with_their_place(folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.run"
    bad.write_text("".join(f"t1 Q0 d{n} {n} high bad\n" for n in range(12)))
    with pytest.raises(CommandError) as refused:
        score(folder / "collection.zip", bad)
    told = str(refused.value).splitlines()
    assert told[0] == f"{bad}:1: score: expected a finite number, found 'high'"
    assert told[-1] == "… and 2 more errors"


# ----------------------------------------------------------------- without any installation


def environment(data: Path) -> dict[str, str]:
    """That of a machine whose database cannot even be made."""
    return {
        **os.environ,
        "EVALSITE_DATA": str(data),
        "DATABASE_URL": "sqlite:////nowhere/at/all/evalsite.sqlite3",
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
    }


def manage(*arguments: object, data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *map(str, arguments)],
        cwd=REPO, env=environment(data), capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_no_database_is_needed(folder: Path, tmp_path: Path) -> None:
    arguments = ["score", folder / "collection.zip", folder / "run1.run"]
    done = manage(*arguments, data=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == score(*arguments[1:]).out
    assert manage("migrate", data=tmp_path).returncode != 0, "the database must be out of reach"
    refused = manage("score", folder / "collection.zip", "nothing.run", data=tmp_path)
    assert refused.returncode == 1
    assert (
        refused.stderr == "CommandError: nothing.run cannot be read: No such file or directory.\n"
    )


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(folder: Path, tmp_path: Path) -> None:
    """As with head; more is written than a pipe holds."""
    (folder / "many").mkdir()
    lines = (folder / "run1.run").read_text()
    for number in range(200):
        path = folder / "many" / f"{number}.run"
        path.write_text(lines.replace(" run1\n", f" many{number}\n"))
    runs = " ".join(map(str, (folder / "many").iterdir()))
    command = f"{sys.executable} manage.py score {folder / 'collection.zip'} {runs} | head -1"
    done = subprocess.run(
        command, shell=True, cwd=REPO, env=environment(tmp_path), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.startswith("runid")
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "rounds"),
    [*((method, 1) for method in Round.Method), ("poisson", 2), *bounded([], [("iid", 2)])],
)
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_runs_of_the_campaign_get_the_numbers_of_the_application(
    tmp_path: Path, method: str, rounds: int
) -> None:
    campaign = evaluation.with_material(slug=method)
    for seed in "st"[:rounds]:
        row = evaluation.drawn(
            campaign, method=method, seed=seed, with_earlier=seed == "t", budget=80, batch_size=40
        )
    while selectors.latest_estimates(row) is None:
        assert evaluation.judge(campaign, 45)
    assert_same_numbers(Round.objects.get(pk=row.pk), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "rounds"), [("iid", 1), ("poisson", 2), *bounded([], [("poisson", 1)])]
)
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_rounds_of_preferences(tmp_path: Path, method: str, rounds: int) -> None:
    """Of runs of the round and, with a warning, of one that joins later."""
    campaign = evaluation.with_material()
    for seed in "st"[:rounds]:
        row = evaluation.drawn(
            campaign, **SWAPS, method=method, seed=seed, with_earlier=seed == "t", budget=40,
            batch_size=40,
        )  # fmt: skip
        judge_preferences(campaign)
    row.refresh_from_db()
    assert_same_numbers(row, tmp_path)
    late = tmp_path / "late.run"
    late.write_bytes(with_news("late", known=3))
    said = score(collection_file(row), late, "--format", "json")
    swaps, weighted = json.loads(said.out)
    assert (swaps["measure"], weighted["measure"]) == ("#ofSwaps", "wSwaps")
    assert swaps["support"] == pytest.approx(3 / 6, abs=1e-12)
    told = "late: #ofSwaps is a lower bound: 50 % of its weight is on pairs of documents that could"
    assert told in said.err
    with pytest.raises(CommandError, match="P@10 is judged on documents, not on pairs"):
        score(collection_file(row), late, "--measure", "P@10")


BEYOND = {
    "query": (
        ("MSE", "MSE cannot be computed from topics that are judged whole"),
        ("#ofSwaps", "#ofSwaps cannot be computed from topics that are judged whole"),
        ("AP", "AP needs every document of a topic judged; here 12 documents of the pool"),
        ("DCG@12", "DCG@12 looks deeper than the 10 judged ranks"),
    ),
    "active": (
        ("nDCG@10", "an active sample has no estimator for 'nDCG@10', only for AP"),
        ("#ofSwaps", "an active sample has no estimator for '#ofSwaps', only for AP"),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("method", BEYOND)
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_rounds_of_topics_and_active_ones(tmp_path: Path, method: str) -> None:
    """What is said of a run that joins later, and what such a round cannot say."""
    campaign = evaluation.with_material(slug=method)
    row = evaluation.drawn(campaign, method=method, budget=80, batch_size=40)
    while selectors.latest_estimates(row) is None:
        assert evaluation.judge(campaign, 45)
    kept, late = collection_file(row), tmp_path / "late.run"
    late.write_bytes(with_news("late"))
    said = score(kept, late, "--format", "json", "--per-topic")
    found = json.loads(said.out)
    assert [each["measure"] for each in found] == selectors.measures_of(row)
    for each in found:
        assert 0.0 < each["support"] < 1.0
        assert each["lower_bound"] is True
        assert np.mean(list(each["topics"].values())) == pytest.approx(each["value"], rel=1e-12)
        missing = f"{100 * (1 - each['support']):.3g} %"
        assert f"late: {each['measure']} is a lower bound: {missing} of its weight" in said.err
    with pytest.raises(CommandError, match="must be one of student for this collection, not 'be"):
        score(kept, late, "--interval", "bernstein")
    for measure, message in BEYOND[method]:
        with pytest.raises(CommandError) as refused:
            score(kept, late, "--measure", measure)
        assert str(refused.value).startswith(message)


def collection_file(row: Round) -> Path:
    (report,) = evaluation.made_reports(row, "collection.zip")
    return files.path_of(report.file)


def scored_without_a_database(*files: Path, data: Path) -> str:
    """By the command in this process, which must ask nothing; at length in one of its own."""
    if LONG:
        done = manage("score", *files, "--format", "json", data=data)
        assert done.returncode == 0, done.stderr
        return done.stdout
    with connection.execute_wrapper(refuse):
        return score(*files, "--format", "json").out


def refuse(_execute: object, sql: str, *_: object) -> None:
    raise AssertionError(f"score asks the database: {sql}")


def assert_same_numbers(row: Round, folder: Path, *, later: Mapping[str, bytes] = {}) -> None:
    """What the command says of the campaign's runs is what the application says of them."""
    shown = selectors.latest_estimates(row)
    assert shown is not None
    kept = collection_file(row)
    every = {**evaluation.SMALL.runs, **later}
    for name, content in every.items():
        (folder / name).write_bytes(content)
    runs = sorted(folder.glob("*.run"))
    said = scored_without_a_database(kept, *runs, data=folder / "data")
    told = {(each["tag"], each["measure"]): each for each in json.loads(said)}
    stored = Estimate.objects.filter(estimate_set=shown, primary=True).select_related("run")
    assert len(told) == len(stored) == len(every) * len(selectors.measures_of(row))
    for estimate in stored:
        found = told[estimate.run.tag, estimate.measure]
        for name in ("value", "se", "low", "high", "support"):
            assert found[name] == getattr(estimate, name), name
        assert found["effective_sample_size"] == estimate.sample_size

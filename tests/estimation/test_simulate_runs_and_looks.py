"""``manage.py simulate``: of which runs the pool is, how often one looks, in how many processes."""

import gzip
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError

from tests.estimation.simulations import Simulate, rows, simulated, write_collection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_collection(tmp_path)


@pytest.fixture
def simulate(folder: Path) -> Simulate:
    return simulated(folder)


# ------------------------------------------------------------------------- all runs, or some only


@pytest.mark.parametrize("goal", ["single", "pair", "baseline", "absolute"])
def test_the_pool_is_of_all_runs_whatever_the_goal(simulate: Simulate, goal: str) -> None:
    """With every pair judged, and with a budget that the goal's runs alone do not have."""
    systems = {"single": "beta", "pair": "beta,alpha"}.get(goal, "beta,alpha,gamma")
    options = ("--goal", goal, "--systems", systems, "--method", "poisson,top", "--budget", "35")
    poisson, top = rows(simulate, *options)
    assert (poisson["judged_pairs"], top["judged_pairs"]) == (35.0, 35.0)
    assert (poisson["rmse"], top["rmse"]) == (pytest.approx(0.0), pytest.approx(0.0))
    assert (poisson["true_verdicts"], poisson["rank_coverage"]) == (3.0, 1.0)
    with pytest.raises(CommandError, match="--budget must be at most 35, not 36: the pool has 35"):
        simulate(*options[:-1], "36")


@pytest.mark.slow
def test_some_runs_are_as_a_folder_of_these(folder: Path, simulate: Simulate) -> None:
    """Also the topics are those that they answer; the twin names them as systems."""
    add_a_topic(folder)
    options = ("--budget", "14", "--goal", "single,pair", "--method", "poisson,iid,mtf")
    whole = rows(simulate, *options)
    restricted = rows(simulate, *options, "--runs", "gamma,alpha")
    assert simulate("--runs", "gamma,alpha").startswith("DCG@8, 2 runs, 3 topics,")
    named = rows(simulate, *options[:3], "pair", *options[4:], "--systems", "alpha,gamma")
    assert named != restricted[3:]
    (folder / "runs" / "beta.run.gz").unlink()
    assert rows(simulate, *options) == restricted
    assert restricted != whole
    assert simulate().startswith("DCG@8, 2 runs, 3 topics,")


def test_one_of_each_is_said_in_the_singular(simulate: Simulate) -> None:
    options = ("--runs", "alpha", "--trials", "1", "--budget", "14", "--method", "poisson")
    heading = simulate(*options).splitlines()[0]
    assert heading == "DCG@8, 1 run, 3 topics, depth 8, 1 trial"


def add_a_topic(folder: Path) -> None:
    """Topic 5, which beta alone answers."""
    path = folder / "runs" / "beta.run.gz"
    lines = gzip.decompress(path.read_bytes()) + b"5 Q0 d1 1 2.0 beta\n"
    path.write_bytes(gzip.compress(lines))
    with (folder / "qrels.txt").open("a") as qrels:
        qrels.write("5 0 d1 1\n")


@pytest.mark.slow
def test_some_runs_and_those_fully_judged(folder: Path, simulate: Simulate) -> None:
    path = folder / "runs" / "alpha.run.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    chosen = ("--runs", "alpha,beta", "--fully-judged")
    assert rows(simulate, *chosen)[0]["systems"] == ["beta"]
    assert "--fully-judged left out 1 of 2 runs." in simulate(*chosen)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "alpha,delta"], "--runs: there is no run 'delta'; there are alpha, beta, gam"),
        (["--runs", "alpha,alpha"], "--runs has 'alpha' twice"),
        (
            ["--runs", "alpha,beta", "--systems", "gamma"],
            "--systems: there is no run 'gamma'; there are alpha, beta",
        ),
        (["--looks", "0"], "--looks must be a whole number of at least 1, not '0'"),
        (["--jobs", "two"], "--jobs must be a whole number of at least 1, not 'two'"),
        (
            ["--looks", "2", "--method", "poisson,top", "--budget", "12"],
            "--method top, --goal absolute, --budget 12: looks must be 1 for the method top, which",
        ),
        (
            ["--looks", "12", "--method", "iid", "--budget", "12"],
            "--method iid, --goal absolute, --budget 12: Draws with replacement need at least 2",
        ),
    ],
)
def test_bad_runs_looks_and_jobs(simulate: Simulate, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        simulate(*arguments)


def test_runs_that_answer_no_judged_topic(folder: Path, simulate: Simulate) -> None:
    run = b"77 Q0 d1 1 2.0 elsewhere\n"
    (folder / "runs" / "elsewhere.run.gz").write_bytes(gzip.compress(run))
    with pytest.raises(CommandError, match="--runs elsewhere: they answer no topic of the qrels"):
        simulate("--runs", "elsewhere")


# ---------------------------------------------------------------------------------- looks and jobs


@pytest.mark.slow
def test_several_looks(simulate: Simulate) -> None:
    """Methods without batches are left out: of the default, and of all with a note."""
    options = ("--budget", "24", "--trials", "20")
    once, more = (rows(simulate, *options, "--method", "poisson,iid", "--looks", looks)
                  for looks in ("1", "3"))  # fmt: skip
    for first, second in zip(once, more, strict=True):
        assert (first["looks"], second["looks"]) == (1, 3)
        assert second["rmse"] == first["rmse"]
        assert second["withheld"] == first["withheld"]
        assert second["value_coverage"] < first["value_coverage"]
    options = (*options[:2], "--trials", "2")
    adaptive, *others = rows(simulate, *options, "--looks", "3")
    more = rows(simulate, *options, "--method", "poisson,iid", "--looks", "3")
    assert (adaptive["method"], others) == ("adaptive", more)
    errors = io.StringIO()
    every = json.loads(simulate("--json", *options, "--method", "all", "--looks", "2", err=errors))
    assert [row["method"] for row in every] == [
        "poisson", "priority", "iid", "per-query", "adaptive", "active"
    ]  # fmt: skip
    assert (
        "Left out: --method uniform, --goal absolute, --budget 24: looks must" in errors.getvalue()
    )
    heading = simulate("--looks", "3", *options).splitlines()[0]
    assert heading == "DCG@8, 3 runs, 3 topics, depth 8, 2 trials, 3 looks"


@pytest.mark.slow
def test_the_numbers_do_not_depend_on_the_jobs(simulate: Simulate) -> None:
    options = ("--method", "all", "--budget", "26", "--goal", "ranking,single", "--trials", "3")
    alone = rows(simulate, *options)
    assert rows(simulate, *options, "--jobs", "2") == alone
    assert rows(simulate, *options, "--jobs", "9") == alone


@pytest.mark.slow
def test_what_holds_at_all_looks_stands_beside_what_holds_at_one(simulate: Simulate) -> None:
    options = ("--budget", "24", "--trials", "20", "--looks", "3")
    (plain,) = rows(simulate, *options, "--method", "poisson")
    once = ("--budget", "24", "--trials", "20", "--method", "poisson,top", "--anytime")
    at_one, without = rows(simulate, *once)
    assert at_one["anytime"]["times_as_wide"] == 1.0
    assert at_one["anytime"]["value_coverage"] == at_one["value_coverage"]
    assert without["anytime"]["value_coverage"] is None
    (both,) = rows(simulate, *options, "--method", "poisson", "--anytime")
    assert plain["anytime"] is None
    assert {**both, "anytime": None} == plain
    always = both["anytime"]
    assert always["value_coverage"] > both["value_coverage"]
    assert always["median_half_width"] > both["median_half_width"]
    wide = always["median_half_width"] / both["median_half_width"]
    assert always["times_as_wide"] == pytest.approx(wide)
    lines = simulate(*options, "--method", "poisson", "--anytime").splitlines()
    header = next(line for line in lines if line.endswith("times"))
    row = lines[lines.index(header) + 1].split()
    assert (row[0], row[-1]) == ("poisson", f"{always['times_as_wide']:.3f}")
    assert not any(
        line.endswith("times") for line in simulate(*options, "--method", "poisson").splitlines()
    )

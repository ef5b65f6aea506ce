"""``manage.py simulate`` with predicted grades: for the prior, the estimate, or both."""

import re
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


@pytest.mark.slow
def test_a_good_prediction_helps(folder: Path, simulate: Simulate) -> None:
    """True grades go with the ranks, and so they raise the chances of relevant documents."""
    predicted = folder / "predicted.txt"
    predicted.write_text(
        "".join(
            line if line.endswith("0\n") else line.replace("\n", ".0\n")
            for line in (folder / "qrels.txt").read_text().splitlines(keepends=True)[:-2]
        )
    )
    options = ("--method", "iid", "--budget", "12", "--trials", "100")
    scores = rows(simulate, *options, "--prior", f"scores:{predicted}")[0]
    usual = rows(simulate, *options)[0]
    assert scores["rmse"] < 0.9 * usual["rmse"]


def graded(folder: Path) -> str:
    """The option with a file of the true grades as predictions."""
    predicted = folder / "predicted.txt"
    predicted.write_text((folder / "qrels.txt").read_text())
    return f"scores:{predicted}"


@pytest.mark.slow
def test_predicted_grades_help_the_estimate(simulate: Simulate, folder: Path) -> None:
    options = ("--budget", "20", "--trials", "30", "--prior", graded(folder))
    plain, helped = rows(simulate, *options, "--method", "poisson,difference")
    assert (plain["method"], helped["method"]) == ("poisson", "difference")
    assert helped["rmse"] < 0.5 * plain["rmse"]
    assert list(helped) == list(plain)
    elsewhere = (*options[:4], "--method", "difference", "--predictions", graded(folder)[7:])
    (apart,) = rows(simulate, *elsewhere)
    (usual,) = rows(simulate, *options[:4], "--method", "poisson")
    assert apart["rmse"] < 0.5 * usual["rmse"]
    assert apart["judged_pairs"] == usual["judged_pairs"] != helped["judged_pairs"]
    every = ("--method", "all", "--trials", "1")
    assert "difference" not in {row["method"] for row in rows(simulate, *options[:2], *every)}
    assert "difference" in {row["method"] for row in rows(simulate, *options, *every)}


@pytest.mark.slow
def test_an_adaptive_round_learns_from_several_predictions(
    simulate: Simulate, folder: Path
) -> None:
    """The first file is nonsense: the other helps all the same, and more for the prior as well."""
    nonsense = folder / "nonsense.txt"
    nonsense.write_text(
        "".join(f"{line[:-1]}1\n" for line in (folder / "qrels.txt").read_text().split("\n")[:-1])
    )
    files = ("--predictions", str(nonsense), "--predictions", graded(folder)[7:])
    options = ("--method", "adaptive", "--budget", "30", "--trials", "40")
    usual, several, also = (
        rows(simulate, *options, *given)[0]["rmse"]
        for given in ((), files, (*files, "--prior", "scores"))
    )
    assert several < 0.9 * usual
    assert also < 0.9 * usual
    assert also != several


def test_predictions_that_are_of_no_pair_are_refused(simulate: Simulate, folder: Path) -> None:
    """As when document numbers are written otherwise than in the runs."""
    predicted = folder / "predicted.txt"
    lines = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    predicted.write_text("".join(f"{t} 0 b'{d}' {g}\n" for t, _, d, g in lines))
    with pytest.raises(CommandError, match="are of none of the pool's pairs: topic and docno"):
        simulate("--budget", "20", "--trials", "2", "--predictions", str(predicted))


def test_pairs_without_a_prediction_are_counted(simulate: Simulate, folder: Path) -> None:
    predicted = folder / "predicted.txt"
    line = (folder / "qrels.txt").read_text().splitlines()[0]
    predicted.write_text(f"{line}\n")
    shown = simulate(
        "--budget", "20", "--trials", "2", "--method", "adaptive", "--predictions", str(predicted)
    )
    assert re.search(r"\d+ of the \d+ pairs of the pool have no predicted grade\.", shown)

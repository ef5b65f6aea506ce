"""``manage.py simulate`` as somebody types it."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from estimation.core.measures.table import parse_measure
from estimation.core.sampling import goals
from estimation.management.judged_collections import grades_of, read_collection
from estimation.research.trials.settings import Setting
from tests.core.length import bounded
from tests.estimation.simulations import TAGS, Simulate, rows, simulated, write_collection

HONESTY = [
    "worst_run_coverage", "value_coverage", "coverage_error", "difference_coverage", "withheld",
    "worst_run", "median_half_width", "familywise_error", "reversed_verdicts", "rank_coverage",
    "true_verdicts",
]  # fmt: skip
KEYS = [
    "method", "goal", "measure", "budget", "trials", "looks", "systems", "judged_pairs", "rmse",
    "bias", "sd", "coverage", "half_width", "kendall_tau", *HONESTY, "anytime", "stops",
    "seconds_per_trial",
]  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_collection(tmp_path)


@pytest.fixture
def simulate(folder: Path) -> Simulate:
    return simulated(folder)


# ----------------------------------------------------------------------------------------- output


@pytest.mark.slow
def test_json_has_one_object_per_method_goal_and_budget(simulate: Simulate) -> None:
    found = json.loads(
        simulate("--json", "--method", "iid,top", "--goal", "absolute,pair", "--budget", "16,18")
    )
    assert [list(row) for row in found] == [KEYS] * 8
    assert [(row["goal"], row["budget"], row["method"]) for row in found] == [
        (goal, budget, method)
        for goal in ("absolute", "pair")
        for budget in (16, 18)
        for method in ("iid", "top")
    ]
    first = found[0]
    assert first["measure"] == "DCG@8"
    assert (first["trials"], first["systems"]) == (3, TAGS)
    assert found[-1]["systems"] == ["alpha", "beta"]
    for key in ("judged_pairs", "rmse", "bias", "sd", "coverage", "half_width", "kendall_tau"):
        assert isinstance(first[key], float)
    assert first["seconds_per_trial"] > 0
    assert (found[1]["method"], found[1]["coverage"], found[1]["half_width"]) == ("top", None, None)
    assert first["worst_run"] in TAGS
    assert all(isinstance(first[key], float) for key in HONESTY if key != "worst_run")
    assert [found[1][key] for key in HONESTY] == [None] * len(HONESTY)


def test_the_table(simulate: Simulate) -> None:
    lines = simulate("--method", "poisson,top", "--goal", "single", "--budget", "12").splitlines()
    assert lines[0] == "DCG@8, 3 runs, 3 topics, depth 8, 3 trials"
    assert lines[2].split() == [
        "method", "goal", "budget", "judged", "rmse", "bias", "sd", "coverage", "half", "width",
        "tau", "s/trial",
    ]  # fmt: skip
    assert lines[3].split()[:3] == ["poisson", "single", "12"]
    assert lines[4].split()[:4] == ["top", "single", "12", "12.0"]
    assert lines[4].split()[7:10] == ["-", "-", "-"]
    assert lines[6].split() == [
        "method", "goal", "budget", "worst", "run", "covered", "all", "runs", "±",
        "differences", "withheld", "half", "width", "any", "false", "reversed", "ranks", "true",
    ]  # fmt: skip
    assert lines[7].split()[:3] == ["poisson", "single", "12"]
    assert lines[7].split()[3] in TAGS
    assert len(lines[7].split()) == 14
    assert lines[8].split() == ["top", "single", "12", *["-"] * 11]
    assert lines[10].startswith("rmse, sd: over all trials and systems.")
    assert "not judged" not in lines[-1]


@pytest.mark.slow
def test_the_table_and_the_list_say_the_same(simulate: Simulate) -> None:
    options = ("--method", "poisson", "--budget", "30", "--trials", "20")
    (row,) = rows(simulate, *options)
    cells = simulate(*options).splitlines()[6].split()
    assert cells[3:] == [
        row["worst_run"],
        *(f"{row[key]:.3f}" for key in HONESTY[:5]),
        f"{row['median_half_width']:.4g}",
        *(f"{row[key]:.3f}" for key in ("familywise_error", "reversed_verdicts", "rank_coverage")),
        f"{row['true_verdicts']:.1f}",
    ]


def test_help_explains_every_number(capsys) -> None:
    with pytest.raises(SystemExit):
        call_command("simulate", "--help")
    told = capsys.readouterr().out.replace(",", ":")
    for key in KEYS:
        assert f" {key}: " in told, key
    for option in ("--runs", "--systems", "--looks", "--jobs"):
        assert f"\n  {option} " in told


@pytest.mark.slow
def test_defaults_are_sensible(simulate: Simulate) -> None:
    found = rows(simulate)
    assert [row["method"] for row in found] == ["adaptive", "poisson", "iid", "uniform"]
    assert {row["goal"] for row in found} == {"absolute"}
    assert {row["budget"] for row in found} == {4}  # a tenth of 35 pairs
    assert [row["method"] for row in rows(simulate, "--measure", "ERR@4", "--budget", "24")] == [
        "query"
    ]
    assert rows(simulate, "--goal", "baseline")[0]["systems"] == ["beta", "gamma", "alpha"]


@pytest.mark.slow
def test_results_do_not_depend_on_the_other_methods(simulate: Simulate) -> None:
    options = ("--budget", "26", "--goal", "ranking", "--seed", "some text")
    together = rows(simulate, "--method", "all", *options)
    assert len(together) == 13
    for row in together[::3]:
        assert rows(simulate, "--method", row["method"], *options) == [row]
    other = rows(simulate, "--method", "iid", *options, "--seed", "another")
    assert other != [row for row in together if row["method"] == "iid"]


@pytest.mark.slow
def test_all_leaves_out_what_cannot_work_and_says_so(simulate: Simulate) -> None:
    errors = io.StringIO()
    printed = simulate("--json", "--method", "all", "--budget", "5", err=errors)
    methods = [row["method"] for row in json.loads(printed)]
    assert "query" not in methods
    assert "uniform" in methods
    assert errors.getvalue().startswith("Left out: --method query, --goal absolute, --budget 5: ")
    assert "Left out: --method query" in simulate("--method", "all", "--budget", "5")
    with pytest.raises(CommandError, match=r"--budget 5: batch size .* must be at least"):
        simulate("--method", "query", "--budget", "5")


@pytest.mark.slow
def test_unjudged_documents_are_counted(folder: Path, simulate: Simulate) -> None:
    path = folder / "qrels.txt"
    kept = [line for line in path.read_text().splitlines() if " d3 " not in line]
    path.write_text("\n".join(kept) + "\n")
    said = "3 of the 35 pairs of the pool are not judged and count as grade 0."
    assert simulate("--goal", "absolute,pair").count(said) == 1
    errors = io.StringIO()
    simulate("--json", err=errors)
    assert "are not judged" in errors.getvalue()


@pytest.mark.slow
def test_only_fully_judged_runs(folder: Path, simulate: Simulate) -> None:
    path = folder / "runs" / "alpha.run.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    assert rows(simulate)[0]["systems"] == TAGS
    assert rows(simulate, "--fully-judged")[0]["systems"] == ["beta", "gamma"]
    assert "--fully-judged left out 1 of 3 runs." in simulate("--fully-judged")
    with pytest.raises(CommandError, match="--systems alpha: its top is not full and judged"):
        simulate("--fully-judged", "--systems", "alpha,beta")
    with pytest.raises(CommandError, match="of no run the top 9 is full and judged"):
        simulate("--fully-judged", "--depth", "9")


def test_progress_on_a_terminal_only(simulate: Simulate) -> None:
    terminal, pipe = Terminal(), io.StringIO()
    simulate("--method", "top", "--budget", "9", err=terminal)
    simulate("--method", "top", "--budget", "9", err=pipe)
    shown = terminal.getvalue()
    assert f"\r[{'#' * 20}{' ' * 10}]  66 % reading runs" in shown
    assert f"\r[{'#' * 30}] 100 % trials" in shown
    assert shown.endswith("\r")
    assert pipe.getvalue() == ""


# ---------------------------------------------------------------------------------------- options


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "measure"),
    [
        (["--log-base", "e"], "DCG(dcg='ln')@8"),
        (["--log-base", "2"], "DCG@8"),
        (["--gain", "exp"], "DCG(dcg='exp-log2')@8"),
        (["--log-base", "e", "--gain", "exp"], "DCG(dcg='exp-ln')@8"),
        (["--measure", "nDCG@8", "--log-base", "e", "--method", "iid"], "nDCG(dcg='ln')@8"),
        (["--measure", "Gain@3", "--gain", "exp"], "Gain(gain='exp')@3"),
        (["--measure", "dcg(dcg='exp-ln')@5", "--gain", "exp"], "DCG(dcg='exp-ln')@5"),
    ],
)
def test_variants_of_measures(simulate: Simulate, options: list[str], measure: str) -> None:
    assert rows(simulate, *options)[0]["measure"] == measure


@pytest.mark.slow
def test_options_change_what_they_are_about(simulate: Simulate) -> None:
    plain = ("--method", "iid", "--budget", "12", "--trials", "20")
    usual = rows(simulate, *plain)[0]
    for option in (
        ["--prior", "constant"],
        ["--prior", "fusion"],
        ["--prior-rule", "second"],
        ["--budget-unit", "pairs"],
        ["--assessor-noise", "0.4"],
        ["--systems", "gamma,alpha"],
        ["--gain", "exp"],
    ):
        assert rows(simulate, *plain, *option)[0]["rmse"] != usual["rmse"], option
    assert rows(simulate, *plain, "--labels-per-pair", "2")[0]["rmse"] == usual["rmse"]
    shallow = ("--measure", "P@3", "--method", "uniform", "--budget", "15")
    assert rows(simulate, *shallow)[0]["sd"] < rows(simulate, *shallow, "--depth", "8")[0]["sd"]
    noisy = ("--assessor-noise", "0.4", "--labels-per-pair")
    assert rows(simulate, *plain, *noisy, "8")[0] != rows(simulate, *plain, *noisy, "1")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "method"), [("empirical-bernstein", "iid"), ("chernoff", "poisson")]
)
def test_guaranteed_intervals(simulate: Simulate, kind: str, method: str) -> None:
    """The methods that have them are the default, and are all that can work."""
    options = ("--goal", "ranking", "--budget", "20")
    (usual,) = rows(simulate, "--method", method, *options)
    for choice in ((), ("--method", "all")):
        (found,) = rows(simulate, "--interval", kind, *options, *choice)
        assert found["method"] == method
        assert found["half_width"] > usual["half_width"]
        same = ("rmse", "bias", "sd", "kendall_tau", "judged_pairs", "withheld")
        assert [found[key] for key in same] == [usual[key] for key in same]
    heading = simulate("--interval", kind, "--budget", "20").splitlines()[0]
    assert heading == f"DCG@8, 3 runs, 3 topics, depth 8, 3 trials, {kind} intervals"


@pytest.mark.slow
def test_budgets_in_pairs(simulate: Simulate) -> None:
    options = ("--method", "iid", "--budget", "20", "--trials", "100")
    assert rows(simulate, *options)[0]["judged_pairs"] < 17
    pairs = rows(simulate, *options, "--budget-unit", "pairs")[0]
    assert pairs["judged_pairs"] == pytest.approx(20, abs=1)
    assert pairs["budget"] == 20


METHOD_NAMES = (
    "poisson, priority, iid, per-query, adaptive, difference, query, active, uniform, stratified, "
    "top, deep"
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--measure", "DCG"], None),
        (["--measure", "XYZ"], r"--measure 'XYZ': 'XYZ' is not a known measure; known are P@10,"),
        (["--measure", "P(rel=3)@5"], r"--measure P\(rel=3\)@5: No grade from 0 to 2 counts"),
        (["--goal", "best"], "--goal must be one of single, absolute, pair, .*, not 'best'"),
        (["--method", "magic"], f"--method must be one of {METHOD_NAMES}, mtf, mab, all, not 'm"),
        (["--method", "iid,,top"], "--method must be parts with commas between them, not 'iid,,"),
        (["--method", "iid,iid"], "--method has 'iid' twice"),
        (["--measure", "ERR@5", "--method", "iid"], "--method iid does not .* ERR@5; query can"),
        (["--measure", "Mean", "--method", "query"], "--method query .* Mean; poisson"),
        (
            ["--prior", "scores:a", "--predictions", "b"],
            "--predictions b is for other priors than scores:a",
        ),
        (
            ["--predictions", "a", "--predictions", "b", "--method", "difference"],
            "--method difference needs predicted grades, of one alone: --predictions FILE, once",
        ),
        (["--prior", "scores"], "--prior must be one of constant, .*, scores:FILE, not 'scores'"),
        (["--predictions", "/nowhere"], "predicted grades /nowhere cannot be read: No such file"),
        (["--method", "iid,difference"], "--method difference needs .* or --prior scores:FILE"),
        (["--measure", "AP", "--method", "difference"], "--method difference does not estimate AP"),
        (["--interval", "wide"], "--interval must be one of student, .*, chernoff, not 'wide'"),
        (
            ["--interval", "chernoff", "--method", "poisson,iid"],
            "--method iid has the intervals student, .*-bernstein, not 'chernoff'; poisson can",
        ),
        (
            ["--interval", "chernoff", "--measure", "AP"],
            "--interval must be student for AP, not 'c",
        ),
        (["--log-base", "10"], "--log-base must be one of e, 2, not '10'"),
        (["--gain", "log"], "--gain must be one of linear, exp, not 'log'"),
        (["--measure", "P@5", "--log-base", "2"], "--log-base 2: P@5 has no such choice"),
        (["--measure", "ERR@5", "--gain", "exp"], "--gain exp: ERR@5 has no such choice"),
        (
            ["--measure", "DCG(dcg='ln')@5", "--log-base", "2"],
            r"--log-base 2 contradicts --measure DCG\(dcg='ln'\)@5",
        ),
        (["--measure", "DCG(dcg='ln')@5", "--gain", "exp"], "--gain exp contradicts --measure"),
        (["--prior", "magic"], "--prior must be one of constant, .*, scores:FILE, not 'magic'"),
        (["--prior", "scores"], "--prior must be one of .* not 'scores'"),
        (["--prior", "rank:x"], "--prior must be one of .* not 'rank:x'"),
        (["--prior", "scores:/nowhere"], "predicted grades /nowhere cannot be read: No such file"),
        (["--prior-rule", "third"], "--prior-rule must be one of first, second, not 'third'"),
        (["--budget", "0"], "--budget must be a whole number of at least 1, not '0'"),
        (["--budget", "ten"], "--budget must be a whole number of at least 1, not 'ten'"),
        (["--budget", "12,99"], "--budget must be at most 35, not 99: the pool has 35 pairs"),
        (["--budget", "1", "--method", "iid"], "--method iid, --goal absolute, --budget 1: "),
        (["--budget-unit", "euros"], "--budget-unit must be one of draws, pairs, not 'euros'"),
        (["--trials", "0"], "--trials must be a whole number of at least 1, not '0'"),
        (["--trials", "1.5"], "--trials must be a whole number of at least 1, not '1.5'"),
        (["--depth", "9" * 10], "--depth must be at most 999999999, not '9999999999'"),
        (["--depth", "5"], "--depth must be at least the cutoff of DCG@8, not 5"),
        (["--labels-per-pair", "-1"], "--labels-per-pair must be .* at least 1, not '-1'"),
        (["--assessor-noise", "2"], "--assessor-noise must be a number between 0 and 1, not '2'"),
        (["--assessor-noise", "nan"], "--assessor-noise must be .* not 'nan'"),
        (["--systems", "alpha,delta"], "--systems: there is no run 'delta'; there are alpha, beta"),
        (["--systems", "alpha,alpha"], "--systems has 'alpha' twice"),
        (["--systems", "alpha", "--goal", "pair"], "--goal pair: the goal .* 2 runs, not 1"),
        (
            ["--systems", "alpha,beta", "--goal", "single"],
            r"'single' needs exactly 1 run, not 2 .alpha, beta.",
        ),
        (["--baseline", "alpha"], "--baseline alpha is for --goal baseline only"),
        (["--baseline", "delta", "--goal", "baseline"], "--baseline: there is no run 'delta'"),
        (
            ["--baseline", "gamma", "--goal", "baseline", "--systems", "alpha,beta"],
            "--baseline gamma is not among the systems alpha, beta",
        ),
        (
            ["--baseline", "alpha", "--goal", "baseline", "--systems", "alpha"],
            "--systems alpha, --goal baseline: the goal 'baseline' needs at least 1 run, not 0",
        ),
    ],
)
def test_bad_options(simulate: Simulate, arguments: list[str], message: str | None) -> None:
    if message is None:
        assert simulate(*arguments)
        return
    with pytest.raises(CommandError, match=message):
        simulate(*arguments)


# ------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("runs/notes.txt", "nothing here\n", r"notes\.txt:1: columns: expected 6 columns"),
        (
            "runs/x.run",
            "1 Q0 d1 1 2.0 x\n1 Q0 d2 2 high x\n",
            r"x\.run:2: score: expected a finite",
        ),
        ("runs/x.run", "1 Q0 d1 1 2.0 beta\n", r"x\.run: another file has the run beta already"),
        ("qrels.txt", "1 0 d1\n", r"qrels\.txt:1: columns: expected 4 columns"),
        ("qrels.txt", "1 0 d1 1\n1 0 d2 99\n", r"qrels\.txt:2: grade: expected a grade of at most"),
        ("qrels.txt", "", r"qrels\.txt:-: file: expected judgments, found none"),
        ("qrels.txt", "7 0 d1 1\n", r"qrels\.txt has no topic that a run in .* answers"),
        ("scores.txt", "1 0 d1\n", r"scores\.txt:1: columns: expected 4 columns .*, found 3"),
        ("scores.txt", "1 0 d1 2.5\n", r"scores\.txt:1: grade: expected a number from 0 to 2, f"),
        ("scores.txt", "1 0 d1 nan\n", r"scores\.txt:1: grade: expected a number from 0 to 2, f"),
        ("scores.txt", "1 0 d1 1\n1 0 d1 0\n", r"scores\.txt:2: docno: topic '1' has 'd1' twice"),
        ("scores.txt", "", r"scores\.txt:-: file: expected predicted grades, found none"),
    ],
)
def test_bad_files(folder: Path, simulate: Simulate, name: str, content: str, message: str) -> None:
    (folder / name).write_text(content)
    options = ["--prior", f"scores:{folder / name}"] if name == "scores.txt" else []
    with pytest.raises(CommandError, match=message):
        simulate(*options)


@pytest.mark.parametrize(
    ("runs", "qrels", "message"),
    [
        ("nowhere", "qrels.txt", r"RUNS_DIR .*nowhere is no folder"),
        ("empty", "qrels.txt", r"RUNS_DIR .*empty has no files"),
        ("runs", "nowhere", r"QRELS .*nowhere cannot be read: No such file"),
        ("runs", "runs", r"QRELS .*runs cannot be read: Is a directory"),
    ],
)
def test_files_that_are_not_there(folder: Path, runs: str, qrels: str, message: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(CommandError, match=message):
        call_command("simulate", str(folder / runs), str(folder / qrels))


@pytest.mark.slow
def test_hidden_files_and_grades_below_zero(folder: Path, simulate: Simulate) -> None:
    before = rows(simulate)
    (folder / "runs" / ".DS_Store").write_bytes(b"\0\1")
    path = folder / "qrels.txt"
    path.write_text(path.read_text().replace(" 0\n", " -1\n"))
    assert rows(simulate) == before


# ---------------------------------------------------------------------------------------- TREC-8


def trec8(data_dir: Path, *options: str) -> dict[str, dict[str, Any]]:
    out = io.StringIO()
    files = (str(data_dir / "trec8" / "runs"), str(data_dir / "trec8" / "qrels.txt"))
    usual = ("--measure", "DCG@100", "--log-base", "e", "--fully-judged", "--json")
    call_command("simulate", *files, *usual, *options, stdout=out)
    return {row["method"]: row for row in json.loads(out.getvalue())}


@pytest.mark.slow
def test_the_published_setting(data_dir: Path) -> None:
    """Schnabel et al. 2016, TREC-8: U 6.96; sd of 250 draws, exactly, 0.789."""
    found = trec8(
        data_dir, "--goal", "single", "--runs", "mds08a3", "--budget", "250",
        "--trials", "600", "--method", "iid,top",
    )  # fmt: skip
    # The sd of 600 trials has a standard error of 3 %.
    assert found["iid"]["sd"] == pytest.approx(0.789, rel=0.1)
    assert found["iid"]["bias"] < 4 * 0.789 / 600**0.5
    assert found["iid"]["judged_pairs"] < 250
    assert 0.90 < found["iid"]["coverage"] < 0.97
    # TOP-5 finds 1.93 of 6.96.
    assert found["top"]["bias"] == pytest.approx(6.96 - 1.93, abs=0.01)


@pytest.mark.slow
def test_methods_in_their_order(data_dir: Path) -> None:
    """All 65 runs: Poisson sampling beats draws, and draws beat the uniform sample."""
    methods = "--method", "poisson,iid,uniform"
    found = trec8(data_dir, "--budget", "1800", "--trials", str(bounded(20, 40)), *methods)
    assert list(found) == ["poisson", "iid", "uniform"]
    assert len(found["iid"]["systems"]) == 65
    poisson, iid, uniform = (found[name]["rmse"] for name in found)
    assert poisson < 0.8 * iid
    assert iid < 0.8 * uniform
    assert poisson > 0.3
    assert all(row["coverage"] > 0.8 for row in found.values())
    assert found["poisson"]["coverage"] < 0.99


@pytest.mark.slow
def test_the_truth_of_trec8(data_dir: Path) -> None:
    folder = data_dir / "trec8"
    collection = read_collection(folder / "runs", folder / "qrels.txt").only_fully_judged(100)
    assert (len(collection.runs), len(collection.not_full)) == (65, 64)
    pool = collection.only(["mds08a3", "nttd8ale", "weaver2"]).pool(depth=100)
    grades, unjudged = grades_of(pool, collection.grades)
    setting = Setting(
        pool, grades, 1, goals.absolute(*pool.runs), parse_measure("DCG(dcg='ln')@100"), 250
    )
    assert unjudged == 0
    assert setting.truth() == pytest.approx([6.96, 9.01, 7.48], abs=0.005)

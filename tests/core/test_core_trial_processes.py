"""Trials in several processes: the same report, and nothing left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.pool import build_pool
from estimation.core.measures.table import parse_measure
from estimation.core.sampling import goals
from estimation.research.trials.methods import Outcome, prepare
from estimation.research.trials.processes import in_processes
from estimation.research.trials.reports import Contest, TrialReport, play_contests, play_trials
from estimation.research.trials.settings import Assessors, Setting

REPO = Path(__file__).resolve().parents[2]
TAGS = ("r0", "r1", "r2")


@pytest.fixture
def setting(ranked) -> Setting:
    """Three topics, three runs with eight of twelve documents, noisy assessors, three looks."""
    rng = np.random.default_rng(4)
    runs = {
        tag: ranked({f"t{t}": "".join(rng.permutation(list("abcdefghijkl"))[:8]) for t in range(3)})
        for tag in TAGS
    }
    pool = build_pool([f"t{t}" for t in range(3)], runs, depth=8)
    grades, goal = rng.integers(0, 3, size=len(pool)), goals.ranking(*TAGS)
    noisy = Assessors(labels=2, noise=0.2)
    return Setting(pool, grades, 2, goal, parse_measure("DCG@8"), 18, assessors=noisy)


def facts(found: TrialReport) -> dict[str, object]:
    return {**asdict(found), "seconds_per_trial": None}


def contests(setting: Setting) -> list[Contest]:
    looked = replace(setting, looks=3)
    chosen = [(looked, "poisson"), (looked, "iid"), (setting, "uniform"), (setting, "mtf")]
    return [Contest(each, method, prepare(each, method)) for each, method in chosen]


@pytest.mark.slow
def test_a_report_does_not_depend_on_the_number_of_processes(setting: Setting) -> None:
    """To the last bit; also where there are more processes than trials."""
    alone = [facts(each) for each in play_contests(contests(setting), trials=5, seed="s")]
    for jobs in (2, 3, 7):
        found = play_contests(contests(setting), trials=5, seed="s", jobs=jobs)
        assert [facts(each) for each in found] == alone


def test_a_method_with_a_memory_is_noticed(setting: Setting) -> None:
    """The twin: what a trial gives depends on what the process played before."""
    before: list[str] = []

    def forgetful(seed: str) -> Outcome:
        before.append(seed)
        return Outcome(setting.truth() * len(before), 1, None)

    alone = play_trials(setting, "made up", forgetful, trials=4, seed="s")
    before.clear()
    assert facts(play_trials(setting, "made up", forgetful, trials=4, seed="s", jobs=2)) != facts(
        alone
    )


@pytest.mark.slow
def test_contests_of_a_trial_share_numbers_but_not_results(setting: Setting) -> None:
    together = play_contests(contests(setting), trials=3, seed="s")
    for each, found in zip(contests(setting), together, strict=True):
        by_itself = play_trials(each.setting, each.method, each.player, trials=3, seed="s")
        assert facts(by_itself) == facts(found)


@pytest.mark.slow
def test_every_trial_is_told_of(setting: Setting) -> None:
    steps: list[None] = []
    (contest, *_) = contests(setting)
    play_contests([contest], trials=5, seed="s", jobs=2, after_each=lambda: steps.append(None))
    assert len(steps) == 5


# -------------------------------------------------------------------------------------- processes


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2, 3, 20])
def test_results_come_in_their_order(jobs: int) -> None:
    assert list(in_processes(lambda turn: turn**2, 8, jobs=jobs)) == [n**2 for n in range(8)]
    assert list(in_processes(lambda turn: turn, 0, jobs=jobs)) == []
    assert multiprocessing.active_children() == []


def test_the_work_is_shared_out() -> None:
    found = list(in_processes(lambda turn: os.getpid(), 6, jobs=3))
    assert len(set(found)) == 3
    assert found[:3] == found[3:]
    assert os.getpid() not in found
    assert set(in_processes(lambda turn: os.getpid(), 3, jobs=1)) == {os.getpid()}


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_work_is_raised(jobs: int) -> None:
    def work(turn: int) -> int:
        if turn == 3:
            raise ValueError(f"turn {turn} went wrong")
        return turn

    results = in_processes(work, 8, jobs=jobs)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="turn 3 went wrong"):
        next(results)
    assert multiprocessing.active_children() == []


def test_a_process_that_was_killed_is_noticed() -> None:
    def work(turn: int) -> int:
        if turn == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return turn

    with pytest.raises(RuntimeError, match="a process of the trials ended early"):
        list(in_processes(work, 8, jobs=2))
    assert multiprocessing.active_children() == []


def test_who_has_seen_enough_leaves_nothing_running() -> None:
    results = in_processes(lambda turn: turn, 1_000_000, jobs=2)
    assert next(results) == 0
    results.close()
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("jobs", [0, 1.5])
def test_bad_jobs(jobs: object) -> None:
    with pytest.raises(ValueError, match="jobs must be a whole number of at least 1, not"):
        list(in_processes(lambda turn: turn, 3, jobs=jobs))


ENDLESS = """
import os, signal, time
from estimation.research.trials.processes import in_processes

signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs tests may ignore it

def work(turn):
    if turn < 2:
        os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(0.01)
    return b"." * 10_000

for _ in in_processes(work, 1_000_000, jobs=2):
    pass
"""


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # who is dead already, but not yet buried


@pytest.mark.slow
def test_ctrl_c_or_the_end_of_the_parent_ends_all() -> None:
    """Ctrl-C reaches the whole group; a parent that is killed cannot end its children."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    for ending in ("ctrl-c", "killed"):
        parent = subprocess.Popen(
            [sys.executable, "-c", ENDLESS],
            cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert parent.stdout is not None
        children = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(is_running, children))
        if ending == "ctrl-c":
            os.killpg(parent.pid, signal.SIGINT)
        else:
            parent.kill()
        assert parent.wait(timeout=30) != 0
        deadline = time.monotonic() + 30
        while any(map(is_running, children)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(is_running, children)), ending
        parent.stdout.close()
        assert parent.stderr is not None
        parent.stderr.close()

"""Commands that are stopped, or whose output nobody can keep or read: no tracebacks."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.estimation.simulations import write_collection
from tests.support.site import REPO, base_environment

FULL = Path("/dev/full")
CTRL_C = """
import signal, django.core.management, manage

def stopped(_words):
    signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
django.core.management.execute_from_command_line = stopped
manage.main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="Linux has it")
def test_output_that_does_not_fit_on_the_disk(tmp_path: Path) -> None:
    folder = write_collection(tmp_path)
    files = [str(folder / "runs"), str(folder / "qrels.txt")]
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "manage.py", "simulate", *files, "--trials", "1"],
            cwd=REPO, env=base_environment(tmp_path / "data"), stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "Not all could be written: [Errno 28] No space left on device\n"


def test_ctrl_c() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CTRL_C], cwd=REPO, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "Stopped.\n")


@pytest.mark.slow
def test_names_that_the_encoding_of_the_output_lacks(tmp_path: Path) -> None:
    folder = write_collection(tmp_path)
    other = folder / "runs" / "delta.run"
    other.write_text("1 Q0 d1 1 1.0 d\N{GREEK SMALL LETTER DELTA}\n", encoding="utf-8")
    command = [
        sys.executable, "manage.py", "shards", str(tmp_path / "\N{GREEK SMALL LETTER DELTA}"),
        str(other), "--qrels", str(folder / "qrels.txt"), "--workers", "0",
    ]  # fmt: skip
    env = base_environment(tmp_path / "data", PYTHONIOENCODING="ascii")
    done = subprocess.run(
        command, cwd=REPO, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{tmp_path}/\\u03b4/values.tsv: 3 rows" in done.stdout

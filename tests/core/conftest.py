"""Collections and small pools that the tests of the core share."""

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists, rank_lines
from estimation.core.rounds.adaptive import grades

Reader = Callable[[Path], RankedLists]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the public test collections."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("EVALSITE_TEST_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no test collections in {folder}; set EVALSITE_TEST_DATA")
    return folder


@pytest.fixture(scope="session")
def no_disk_waits() -> Iterator[None]:
    """Files are not forced to the disk one by one, which takes longer than all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _file: None)
        yield


@pytest.fixture
def estimates_alone() -> Iterator[None]:
    """See `plain_estimates`."""
    from tests.core import plain_estimates

    with plain_estimates.estimates_alone():
        yield


@pytest.fixture
def guarantees_alone() -> Iterator[None]:
    """See `plain_estimates`."""
    from tests.core import plain_estimates

    with plain_estimates.guarantees_alone():
        yield


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn from the very first judgment, so that a tiny round is as adaptive as a large one."""
    monkeypatch.setattr(grades, "LEAST_JUDGED", 1)
    monkeypatch.setattr(grades, "LEAST_FOUND", 0)


@pytest.fixture
def values_alone() -> Iterator[None]:
    """See `plain_estimates`."""
    from tests.core import plain_estimates

    with plain_estimates.values_alone():
        yield


def read_run(path: Path, depth: int | None = None) -> RankedLists:
    with gzip.open(path, "rb") as lines:
        columns = np.array(lines.read().split(), dtype=np.bytes_).reshape(-1, 6)
    return rank_lines(columns[:, 0], columns[:, 2], columns[:, 4].astype(float), depth=depth)


def read_grades(path: Path, pool: Pool) -> np.ndarray:
    """Return the grade of every pair of a pool; pairs that the qrels do not list have 0."""
    listed = {}
    for line in path.read_bytes().splitlines():
        topic, _, docno, grade = line.split()
        listed[topic.decode(), docno] = max(int(grade), 0)
    keys = zip((pool.topics[t] for t in pool.topic), pool.docno.tolist(), strict=True)
    return np.array([listed.get(key, 0) for key in keys], dtype=np.int64)


def topic_ids(folder: Path) -> list[str]:
    lines = (folder / "topics.tsv").read_text().splitlines()
    return [line.split("\t")[0] for line in lines]


class Collection:
    """A folder with topics.tsv, qrels.txt and runs/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.topics = topic_ids(folder)
        self.tags = sorted(path.name.removesuffix(".run.gz") for path in folder.glob("runs/*.gz"))
        self._runs: dict[str, RankedLists] = {}

    def run(self, tag: str) -> RankedLists:
        if tag not in self._runs:
            self._runs[tag] = read_run(self.folder / "runs" / f"{tag}.run.gz")
        return self._runs[tag]

    def pool(self, *tags: str, depth: int) -> Pool:
        wanted = {tag: self.run(tag) for tag in tags or self.tags}
        return build_pool(self.topics, wanted, depth=depth)

    def grades(self, pool: Pool) -> np.ndarray:
        return read_grades(self.folder / "qrels.txt", pool)


@pytest.fixture(scope="session")
def trec8(data_dir: Path) -> Collection:
    return Collection(data_dir / "trec8")


@pytest.fixture(scope="session")
def cranfield(data_dir: Path) -> Collection:
    return Collection(data_dir / "cranfield")


def lists(ranking: dict[str, str]) -> RankedLists:
    """Ranked lists from a topic and its docnos, one letter each: {"t1": "abc"}."""
    docnos = [letter.encode() for row in ranking.values() for letter in row]
    bounds = np.cumsum([0, *map(len, ranking.values())])
    return RankedLists(tuple(ranking), bounds, np.array(docnos, dtype=np.bytes_))


@pytest.fixture
def tiny_pool() -> Pool:
    """Two topics (a third without pairs), three runs, five pairs."""
    runs = {
        "alpha": lists({"t1": "ab", "t2": "xy"}),
        "beta": lists({"t1": "bc", "t2": "x"}),
        "gamma": lists({"t2": "yx"}),
    }
    return build_pool(["t1", "t2", "t3"], runs, depth=2)


@pytest.fixture
def ranked() -> Callable[[dict[str, str]], RankedLists]:
    return lists

"""What a run's digest is of: tag, topics and docnos in order, each with its end."""

import hashlib

import numpy as np
import pytest

from estimation.core.data.ranked_lists import RankedLists
from estimation.formats.runs import RunFile
from estimation.services import runs


def run_of(lengths: list[int]) -> RunFile:
    docnos = np.array([f"dé{n}" * (1 + n % 3) for n in range(sum(lengths))])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    topics = tuple(f"t{n}" for n in range(len(lengths)))
    lists = RankedLists(topics, indptr, np.char.encode(docnos, "utf-8"))
    return RunFile("tag", lists, np.zeros(len(docnos)), len(docnos), 0)


@pytest.mark.parametrize("lengths", [[1], [3, 0, 4], [7, 7], [2, 13]])
def test_the_digest_is_that_of_every_docno_with_its_end(
    lengths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(lengths)
    digest = hashlib.sha256()
    for text in ("tag", *run.lists.topics):
        digest.update(text.encode() + b"\0")
    digest.update(run.lists.indptr.astype("<i8").tobytes())
    for docno in run.lists.docnos.tolist():
        digest.update(docno + b"\0")

    for hashed in (1, 7, 1 << 13):
        monkeypatch.setattr(runs, "HASHED", hashed)
        assert runs._digest(run) == digest.hexdigest()

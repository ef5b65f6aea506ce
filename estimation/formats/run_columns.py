"""Stored runs as columns, for those who need no ranked lists: web processes can read them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimation.core.archives import ArchiveError, ArchiveFile, read_archive
from estimation.core.arrays import frozen
from estimation.core.data.scores import first_unusable, refusal

FORMAT = "evalsite-run-1"
COLUMNS = ("indptr", "docnos", "scores")


def read_columns(
    file: ArchiveFile, names: Sequence[str] = COLUMNS
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read facts and columns of a stored run; ValueError if it is damaged or something else.

    They are copied: a mapping holds its file open, and a campaign has more runs than that.
    """
    facts, arrays = read_archive(file, FORMAT, names, mapped=False)
    columns = {name: frozen(array) for name, array in arrays.items()}
    if "scores" in columns and columns["scores"].shape != columns["docnos"].shape:
        raise ArchiveError("the run file is damaged: its columns differ in length")
    return facts, columns


def score_fault(file: ArchiveFile, *, depth: int) -> str | None:
    """Return why measures of predictions cannot take a stored run, None if they can.

    Only the first `depth` documents of each topic count, as in a pool.
    """
    facts, arrays = read_archive(file, FORMAT, ("indptr", "scores"))
    starts, lengths = arrays["indptr"][:-1], np.diff(arrays["indptr"])
    place = np.arange(len(arrays["scores"])) - np.repeat(starts, lengths)
    pooled = np.flatnonzero(place < depth)
    first = first_unusable(arrays["scores"][pooled])
    if first is None:
        return None
    at = int(pooled[first])
    topic = facts["topics"][int(np.searchsorted(arrays["indptr"], at, side="right")) - 1]
    docno = read_columns(file)[1]["docnos"][at].decode()
    return refusal(facts["tag"], topic=topic, docno=docno, score=float(arrays["scores"][at]))

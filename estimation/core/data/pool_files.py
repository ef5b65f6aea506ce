"""How a pool is written and what it is called: from columns at hand, or from their pieces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from ..archives import ArchiveFile, write_archive
from ..arrays import Pieces, content_digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Columns: TypeAlias = Mapping[str, NDArray[Any]] | Mapping[str, Pieces]

FORMAT = "evalsite-pool-1"
COLUMNS = ("topic", "docno", "indptr", "run", "rank")
OPTIONAL = ("score", "other", "other_rank")
NAMES = (*COLUMNS, *OPTIONAL)


def digest_of(topics: Sequence[str], runs: Sequence[str], depth: int, columns: Columns) -> str:
    """Return the SHA-256 (hex) of a pool: equal for equal pools on every machine.

    `columns` are those of `NAMES` that there are, in this order.
    """
    optional = [name for name in OPTIONAL if name in columns]
    head = json.dumps([FORMAT, topics, runs, depth, *optional])
    return content_digest([head.encode(), *columns.values()])


def write_pool(
    file: ArchiveFile,
    topics: Sequence[str],
    runs: Sequence[str],
    depth: int,
    columns: Columns,
    *,
    digest: str,
) -> None:
    """Write a pool to a path or a binary file; `digest` is what `digest_of` returns."""
    facts = {"topics": topics, "runs": runs, "depth": depth, "digest": digest}
    write_archive(file, FORMAT, facts, columns)

"""What judging each pair of a pool costs, in the unit of its round's budget."""

from collections.abc import Iterable

import numpy as np

from estimation.core.arrays import BytesArray, FloatArray
from estimation.core.data.pool import Pool
from estimation.models import Prediction, Round
from estimation.services import predictions
from judging.errors import UserError
from judging.models import Campaign
from judging.selectors import documents

FIXED_WORDS = 433
"""Words that could be read while a document is opened and graded: 7.8 s, at 0.018 s a word
(Smucker and Clarke 2012)."""
CHUNK = 2000


def costs_of(row: Round, pool: Pool) -> FloatArray | None:
    """The cost of every pair, shape (N,); None if all cost the same.

    Raises UserError ``design_impossible`` (409) where a cost is not known.
    """
    if row.costs == Round.Costs.LENGTH:
        return _by_length(row.campaign, pool)
    return _from_table(row.cost_table, pool) if row.cost_table else None


def _by_length(campaign: Campaign, pool: Pool) -> FloatArray:
    """Reading times, 1 on average. A document without text counts as one of average length."""
    sides = [pool.docno] if pool.other is None else [pool.docno, pool.other]
    docnos, place = np.unique(np.concatenate(sides), return_inverse=True)
    words = _words(campaign, docnos)
    known = words > 0.0
    if not known.any():
        message = (
            "No document of the pool has a text, so nobody knows how long it takes to read them. "
            "Choose equal costs, or upload a table of costs."
        )
        raise UserError("design_impossible", message, status=409)
    words[~known] = words[known].mean()
    times = FIXED_WORDS + words[place].reshape(len(sides), len(pool)).sum(axis=0)
    return np.asarray(times / times.mean(), dtype=np.float64)


def _words(campaign: Campaign, docnos: BytesArray) -> FloatArray:
    """Words between blanks in title and text; 0 where there is no text."""
    places = {docno.decode(): place for place, docno in enumerate(docnos.tolist())}
    words = np.zeros(len(docnos))
    for wanted in _chunks(list(places)):
        rows = documents(campaign).filter(docno__in=wanted).values_list("docno", "title", "text")
        for docno, title, text in rows.iterator(CHUNK):
            words[places[docno]] = len(title.split()) + len(text.split())
    return words


def _chunks(names: list[str]) -> Iterable[list[str]]:
    return (names[start : start + CHUNK] for start in range(0, len(names), CHUNK))


def _from_table(table: Prediction, pool: Pool) -> FloatArray:
    """The costs that were uploaded; nothing stands in for one that is missing."""
    if pool.is_of_preferences:
        raise ValueError("costs are of documents; pool has pairs of documents")
    found = predictions.read_back(table)
    rows = predictions.rows_in(found, pool)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        raise UserError("design_impossible", _lacks(table, pool, missing), status=409)
    return np.asarray(found.values[rows], dtype=np.float64)


def _lacks(table: Prediction, pool: Pool, missing: np.ndarray) -> str:
    first = int(missing[0])
    docno, topic = pool.docno[first].decode(), pool.topics[pool.topic[first]]
    rest = len(missing) - 1
    others = f", and none for {rest:,} further pairs" if rest else ""
    return (
        f"“{table.name}” has no cost for the document {docno} of topic {topic}{others}. "
        "Upload a table with a line for every pair of the pool."
    )

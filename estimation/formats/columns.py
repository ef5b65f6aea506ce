"""What readers of long (topic, docno, …) files share: numbers, duplicates, unknown topics."""

import math
from collections.abc import Collection, Sequence

import numpy as np

from estimation.core.arrays import BoolArray, BytesArray, IntArray
from judging.formats.lines import MEBIBYTE
from judging.formats.problems import Problems, show

MAX_TOPICS = 100_000
MAX_DOCNO_BYTES = 256 * MEBIBYTE
"""Size of the column of docnos, in which the longest docno sets the width of all."""
MAX_NUMBER = 400
"""Characters of a number; parsing longer ones takes its time."""

_NAMED = 5


def parsed_number(text: str) -> float:
    """Return a number, or NaN for what is none (Python's underscores and digits included)."""
    if len(text) > MAX_NUMBER or "_" in text or not text.isascii():
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def report_duplicates(
    topic: IntArray, docno: BytesArray, line: IntArray, names: Sequence[str], problems: Problems
) -> None:
    """Report each docno that its topic has already, with both lines; `topic` counts `names`."""
    order = np.lexsort((docno, topic))
    topic, docno, line = topic[order], docno[order], line[order]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (topic[1:] != topic[:-1]) | (docno[1:] != docno[:-1])
    original = line[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    repeated = np.flatnonzero(~starts)
    for place in repeated[np.argsort(line[repeated])]:
        pair = f"docno {show(docno[place].decode())} of topic {show(names[topic[place]])}"
        message = f"expected {pair} once, found it on line {original[place]} already"
        problems.error(int(line[place]), "docno", message)


def known_topics(
    topic: IntArray,
    line: IntArray,
    names: Sequence[str],
    wanted: Collection[str] | None,
    problems: Problems,
    *,
    missing: str,
) -> BoolArray:
    """Tell which lines belong to a wanted topic (all when None), and warn of the others.

    `missing` says what it means that a wanted topic is not there: "3 topics (…) are <missing>".
    """
    if wanted is None or not names:
        return np.ones(len(line), dtype=np.bool_)
    asked = frozenset(wanted)
    known = np.array([name in asked for name in names], dtype=np.bool_)[topic]
    unknown = [name for name in names if name not in asked]
    if unknown:
        at = line[~known]
        message = f"{_named(unknown)} not among the known topics; {len(at)} lines are left out"
        problems.warning(int(at[0]), "topic", message)
    if len(unknown) == len(names):
        problems.error(None, "topic", "expected lines of known topics, found none")
    elif absent := sorted(asked.difference(names)):
        problems.warning(None, "topic", f"{_named(absent)} {missing}")
    return known


def _named(topics: Sequence[str]) -> str:
    shown = ", ".join(map(show, topics[:_NAMED])) + (", …" if len(topics) > _NAMED else "")
    return f"topic {shown} is" if len(topics) == 1 else f"{len(topics)} topics ({shown}) are"

"""Files of TREC: runs, judgments, and judgments of samples that somebody else drew.

==================  ==========================================  ================================
file                columns                                     read by
==================  ==========================================  ================================
run                 topic Q0 docno rank score tag               `read_runs`
qrels               topic 0 docno grade                         `read_qrels`
prels               topic docno grade method probability        `read_prels`
qrels with strata   topic 0 docno stratum grade                 `read_strata`
==================  ==========================================  ================================

Prels are what NIST published for the Million Query tracks of 2007 to 2009 and the Web track of
2009 (the method statAP behind them: Aslam and Pavlu, *A Practical Sampling Strategy for Efficient
Retrieval Evaluation*, 2007). Qrels with strata are what ``sample_eval.pl`` of NIST takes for infAP
and infNDCG (Yilmaz, Kanoulas and Aslam, *A Simple and Efficient Sampling Method for Estimating AP
and NDCG*, SIGIR 2008), for example those of the tracks Clinical Decision Support and Precision
Medicine.

These readers are for people at their own desk: they read a file whole, and the first thing that is
wrong raises an error. The server has readers of its own (`estimation.formats.runs`), which read
hostile uploads in little memory and collect what is wrong into a report; the core may not import
them. Both order runs by `ranked_lists.trec_eval_order`.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ..arrays import IntArray, check_whole, frozen, listed
from ..measures.kinds import MAX_GRADE
from .qrels import Qrels, SampledQrels
from .ranked_lists import PoolError, RankedLists, rank_lines
from .trec_lines import TrecError, TrecLines

Place: TypeAlias = str | os.PathLike[str]
Runs: TypeAlias = dict[str, RankedLists]

RUN = ("topic", "Q0", "docno", "rank", "score", "tag")
QRELS = ("topic", "iteration", "docno", "grade")
PRELS = ("topic", "docno", "grade", "method", "probability")
STRATA = ("topic", "iteration", "docno", "stratum", "grade")
NOT_SAMPLED = "0"  # the method of prels whose documents were chosen, not sampled


# -------------------------------------------------------------------------------- the readers


def read_runs(
    places: Place | Iterable[Place] | Mapping[str, Place], *, depth: int | None = None
) -> Runs:
    """Read runs in TREC's six columns, plain or ``.gz``, each in trec_eval's order.

    Parameters
    ----------
    places : path, iterable of paths, or mapping of str to path
        A file, several, or a folder, of which all files are read whose names do not begin with a
        dot. A file may hold several runs. Runs are called by their tags; of a mapping by its keys,
        each file being one run.
    depth : int, optional
        Keep at most this many documents per topic.

    Returns
    -------
    dict of str to RankedLists
        By tag, sorted.

    Raises
    ------
    TrecError
        If a file cannot be read or a line is no line of a run, a docno comes twice in a topic, two
        files have runs of one tag, or the depth is no whole number of at least 1.

    Examples
    --------
    >>> runs = read_runs("demo/collection/runs")
    >>> len(runs), runs["bm25"].docnos[:2].tolist()
    (20, [b'str.count', b'inspect.indentsize'])
    """
    if depth is not None:
        check_whole(depth, name="depth", error=TrecError)
    if isinstance(places, Mapping):
        named = {tag: [_ranked(Path(place), depth, tag)] for tag, place in places.items()}
        return {tag: run for tag, (runs,) in sorted(named.items()) for run in runs.values()}
    found: Runs = {}
    origin: dict[str, Path] = {}
    for path in _files(places):
        for tag, lists in _ranked(path, depth).items():
            if tag in found:
                both = f"{origin[tag]} and {path} both have a run of the tag {tag!r}"
                raise TrecError(f"{both}; give a mapping of names to files to tell them apart")
            found[tag], origin[tag] = lists, path
    return dict(sorted(found.items()))


def read_qrels(place: Place, *, below_zero: int | None = None, once: bool = False) -> Qrels:
    """Read judgments in TREC's four columns, plain or ``.gz``.

    Several rows of a pair are several judgments of it.

    Parameters
    ----------
    place : path
    below_zero : int, optional
        The grade of rows whose grade is below 0: 0 if that means junk. By default they are taken
        for pairs that were not judged, and left out.
    once : bool
        Refuse two rows of a pair, as complete judgments have none.

    Raises
    ------
    TrecError
        If the file cannot be read, a line is no judgment, or a pair comes twice and must not.

    Examples
    --------
    >>> qrels = read_qrels("demo/collection/qrels.txt.gz")
    >>> len(qrels), len(qrels.topics), int(qrels.grade.max())
    (1042, 50, 3)
    """
    lines = TrecLines.of(Path(place), QRELS)
    if once:
        lines.refuse_twice()
    grade = _negative(lines.grades(), below_zero)
    kept = grade >= 0
    return Qrels(lines.names("topic")[kept], lines.names("docno")[kept], frozen(grade[kept]))


def read_prels(
    place: Place, *, methods: Collection[int] | None = None, below_zero: int | None = None
) -> SampledQrels:
    """Read prels: judged pairs with the probabilities with which they were sampled.

    Rows of the method 0 were chosen, not sampled: their probability of 1 is not that of being
    judged, and to count them beside the sample would count too much. They are left out, as statAP
    does, and counted in `SampledQrels.left_out`.

    Parameters
    ----------
    place : path
    methods : collection of int, optional
        Rows of these methods are the sample; by default of all but 0.
    below_zero : int, optional
        As for `read_qrels`.

    Raises
    ------
    TrecError
        If the file cannot be read, a line is no line of prels, or a pair comes twice.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("mine.prels").write_text("1 d1 1 1 0.5\\n1 d2 0 0 1\\n")
    >>> prels = read_prels("mine.prels")
    >>> prels.docno.tolist(), prels.probability.tolist(), prels.left_out
    ([b'd1'], [0.5], 1)
    """
    lines = TrecLines.of(Path(place), PRELS)
    lines.refuse_twice()
    chance = lines.probabilities()
    method = lines.integers("method", 9999)
    sampled = method != int(NOT_SAMPLED) if methods is None else np.isin(method, list(methods))
    grade = _negative(lines.grades(), below_zero)
    kept = sampled & (grade >= 0)
    nothing = np.array([], dtype=np.bytes_)
    return SampledQrels(
        lines.names("topic")[kept],
        lines.names("docno")[kept],
        frozen(grade[kept]),
        frozen(chance[kept]),
        others=(nothing, nothing, np.array([])),
        lists_all=False,
        left_out=int(np.count_nonzero(~sampled)),
    )


def read_strata(place: Place) -> SampledQrels:
    """Read qrels with strata: pairs of a pool cut into strata, of each of which some were judged.

    A grade below 0 says that the pair was in the stratum and not judged. Judged pairs are taken for
    a simple random sample of their stratum of the topic: each had the probability (judged pairs of
    the stratum) / (pairs of the stratum).

    Raises
    ------
    TrecError
        If the file cannot be read, a line is none of such a file, or a pair comes twice.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("strata").write_text("1 0 d1 1 2\\n1 0 d2 2 0\\n1 0 d3 2 -1\\n")
    >>> strata = read_strata("strata")
    >>> strata.docno.tolist(), strata.probability.tolist()
    ([b'd1', b'd2'], [1.0, 0.5])
    """
    lines = TrecLines.of(Path(place), STRATA)
    lines.refuse_twice()
    grade, topic, docno = lines.grades(), lines.names("topic"), lines.names("docno")
    _, topic_code = np.unique(topic, return_inverse=True)
    _, stratum_code = np.unique(lines.names("stratum"), return_inverse=True)
    _, stratum = np.unique(
        np.stack([topic_code, stratum_code], axis=1), axis=0, return_inverse=True
    )
    stratum = stratum.ravel()
    judged = grade >= 0
    chance = np.bincount(stratum, weights=judged)[stratum] / np.bincount(stratum)[stratum]
    rest = ~judged & (chance > 0.0)
    return SampledQrels(
        topic[judged],
        docno[judged],
        frozen(grade[judged]),
        frozen(chance[judged]),
        others=(topic[rest], docno[rest], frozen(chance[rest])),
        lists_all=True,
    )


def _negative(grade: IntArray, instead: int | None) -> IntArray:
    if instead is None:
        return grade
    check_whole(instead, name="below_zero", least=0, most=MAX_GRADE, error=TrecError)
    return np.where(grade < 0, instead, grade)


# ---------------------------------------------------------------------- files and their runs


def _files(places: Place | Iterable[Place]) -> Iterator[Path]:
    if not isinstance(places, str | os.PathLike | Iterable):
        raise TrecError(f"places must be a path, or several, of files of runs, not {places!r}")
    several = [places] if isinstance(places, str | os.PathLike) else list(places)
    if not several:
        raise TrecError("there must be a file of a run; places holds none")
    for path in map(Path, several):
        if not path.is_dir():
            yield path
            continue
        inside = [each for each in sorted(path.iterdir()) if each.is_file()]
        shown = [each for each in inside if not each.name.startswith(".")]
        if not shown:
            raise TrecError(f"{path}: expected run files in this folder, found none")
        yield from shown


def _ranked(path: Path, depth: int | None, name: str | None = None) -> Runs:
    """The runs of a file by their tags, or its one run under another name."""
    lines = TrecLines.of(path, RUN)
    topic, docno, score = lines.names("topic"), lines.names("docno"), lines.scores()
    tags = lines.names("tag")
    found: Runs = {}
    different = np.unique(tags[np.append(True, tags[1:] != tags[:-1])]).tolist()
    for tag in different:
        rows = slice(None) if len(different) == 1 else tags == tag
        try:
            found[tag.decode()] = rank_lines(topic[rows], docno[rows], score[rows], depth=depth)
        except PoolError as error:
            raise TrecError(f"{path}: run {tag.decode()!r}: {error}") from None
    if name is not None and len(found) > 1:
        raise TrecError(f"{path}: expected one run, {name!r}, found {listed(map(repr, found))}")
    return found if name is None else {name: next(iter(found.values()))}

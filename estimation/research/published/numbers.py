"""Published numbers about sampled evaluation, and how close a reproduction must come.

Sources: [A] Schnabel, Swaminathan, Frazier, Joachims, Unbiased Comparative Evaluation of Ranking
Functions, ICTIR 2016. [B] Schnabel, Swaminathan, Joachims, Unbiased Concurrent Evaluation on a
Budget. [D] the same, Unbiased Ranking Evaluation on a Budget, WWW 2015. Tables 3 and 4 of [B] and
Table 4 of [A] print the numbers of A2, A3 and B9 again.

Variances of limits are those of a mean over as many draws as there are inputs (users or topics).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from estimation.core.arrays import FloatArray, check_whole

CollectionName: TypeAlias = Literal["SYNTH", "TREC-8"]
SPREAD_ERROR = 0.001  # two-sided


@dataclass(frozen=True)
class Tolerance:
    """Which measured values agree with a printed one.

    Attributes
    ----------
    relative : float
        Share of the printed value by which the measured one may differ.
    digit : bool
        Whether it is enough that the measured value rounds to the printed digits.
    trials : int
        Positive: the printed value is the standard deviation of so many trials. It agrees if it
        lies in the central 99.9 % range of such a standard deviation around the measured one.
    """

    relative: float = 0.0
    digit: bool = False
    trials: int = 0

    def accepted(self, printed: str) -> tuple[float, float]:
        """Return the smallest and the largest measured value that agrees."""
        value = float(printed)
        if self.trials:
            low, high = spread_factors(self.trials)
            return value / high, value / low
        if self.digit:
            decimals = len(printed.partition(".")[2])
            return self.around(value, at_least=0.5 * 10.0**-decimals)
        return self.around(value)

    def around(self, value: float, *, at_least: float = 0.0) -> tuple[float, float]:
        """Return the ends of the relative margin around a value."""
        margin = max(self.relative * abs(value), at_least)
        return value - margin, value + margin


def spread_factors(trials: int) -> tuple[float, float]:
    """Return the central 99.9 % range of sample sd / sd for normal values (chi square).

    Raises
    ------
    ValueError
        If there are fewer than 2 trials.
    """
    check_whole(trials, name="trials", least=2)
    half = (trials - 1) / 2.0
    tails: FloatArray = np.array([SPREAD_ERROR / 2.0, 1.0 - SPREAD_ERROR / 2.0])
    low, high = np.sqrt(special.gammaincinv(half, tails) / half).tolist()
    return low, high


@dataclass(frozen=True)
class PublishedTable:
    """One table for one collection.

    Attributes
    ----------
    key : str
        Name on the command line: the source's letter and the table's number.
    collection : {"SYNTH", "TREC-8"}
    title : str
    columns : mapping of str to Tolerance
    rows : mapping of str to sequence of str
        Printed values in the order of the columns; "-" where nothing is printed.
    misses : mapping of (row, column) to str
        Values that are known not to agree, and why.
    reference : str
        Where the printed values are from.
    """

    key: str
    collection: CollectionName
    title: str
    columns: Mapping[str, Tolerance]
    rows: Mapping[str, Sequence[str]]
    misses: Mapping[tuple[str, str], str] = field(default_factory=dict)
    reference: str = "published"


def _rows(text: str) -> dict[str, tuple[str, ...]]:
    """Rows as printed: a name, then the values, separated by white space or a bar."""
    parted = (line.partition("|") for line in text.strip().splitlines())
    return {name.strip(): tuple(values.split()) for name, _, values in parted}


def _columns(tolerance: Tolerance, *names: str) -> dict[str, Tolerance]:
    return dict.fromkeys(names, tolerance)


TRUTH = Tolerance(0.001)
PRINTED = Tolerance(digit=True)
FEW_RANKS = Tolerance(0.01)
LIMIT = Tolerance(0.04, digit=True)
LIMIT_TRUE_UTILITY = Tolerance(0.01, digit=True)
WIDTH = Tolerance(0.02)
SPREAD_100 = Tolerance(trials=100)
SPREAD_25 = Tolerance(trials=25)
EXACT = Tolerance(0.005)
EXACT_LIMIT = Tolerance(0.005, digit=True)
OTHER_POPULATION = Tolerance(0.01, digit=True)

SYNTH_LIMITS = _columns(LIMIT, "prior p", "true u")
TREC_LIMITS = {"prior p": LIMIT, "true u": LIMIT_TRUE_UTILITY}

TABLES: tuple[PublishedTable, ...] = (
    PublishedTable(
        "A2",
        "SYNTH",
        "[A] Table 2: DCG@2000, its value in the top 5, sd from 15 fully judged users",
        {"U": TRUTH, "TOP-5": FEW_RANKS, "DEEP sd": SPREAD_100},
        _rows("""
            OPT     | 284.40 16.98 1.69
            REV-75  | 277.63 10.00 1.75
            REV-150 | 271.32  8.51 1.59
            SHIFT-5 | 274.94  4.72 1.69
            SHIFT-7 | 269.87  0.00 1.75
        """),
    ),
    PublishedTable(
        "A2",
        "TREC-8",
        "[A] Table 2: DCG@100, its value in the top 5, sd from one fully judged topic",
        {"U": PRINTED, "TOP-5": PRINTED, "DEEP sd": SPREAD_100},
        _rows("""
            mds08a3  | 6.96 1.93 5.05
            nttd8ale | 9.01 2.41 5.30
            weaver2  | 7.48 1.94 6.59
        """),
    ),
    PublishedTable(
        "A3",
        "SYNTH",
        "[A] Table 3: sd of 30 000 draws from Q*, from P and uniform",
        _columns(SPREAD_100, "Q*", "P", "uniform"),
        _rows("""
            OPT     | 1.22 1.98 3.05
            REV-75  | 1.07 1.45 2.64
            REV-150 | 0.97 1.33 2.20
            SHIFT-5 | 1.10 1.67 2.63
            SHIFT-7 | 1.12 1.45 2.45
        """),
        misses={("REV-150", "P"): "the printed column P is low by up to 23 %"},
    ),
    PublishedTable(
        "A3",
        "TREC-8",
        "[A] Table 3: sd of 250 draws from Q*, from P and uniform",
        _columns(SPREAD_100, "Q*", "P", "uniform"),
        _rows("""
            mds08a3  | 0.76 0.84 0.97
            nttd8ale | 0.87 0.98 1.18
            weaver2  | 0.83 0.92 1.05
        """),
    ),
    PublishedTable(
        "A5",
        "SYNTH",
        "[A] Table 5: variance of a difference, mean over adjacent systems",
        SYNTH_LIMITS,
        _rows("""
            naive   | 2.15 1.13
            pair Q* | 0.24 0.21
        """),
    ),
    PublishedTable(
        "A6",
        "SYNTH",
        "[A] Table 6: variance of differences from a baseline, the middle system",
        SYNTH_LIMITS,
        _rows("""
            naive   | 1.31 0.70
            comp Q* | 0.18 0.15
        """),
    ),
    PublishedTable(
        "A7",
        "SYNTH",
        "[A] Table 7: variance of differences from the mean of the systems",
        SYNTH_LIMITS,
        _rows("""
            naive   | 0.86 0.46
            rank Q* | 0.11 0.09
        """),
    ),
    PublishedTable(
        "B6",
        "SYNTH",
        "[B] Table 6: variance of values, mean over the systems",
        SYNTH_LIMITS,
        _rows("""
            SQRT | 6.11 0.42
            MEAN | 6.43 0.46
        """),
    ),
    PublishedTable(
        "B6",
        "TREC-8",
        "[B] Table 6: variance of values, mean over the systems (64 runs, here 65)",
        TREC_LIMITS,
        _rows("""
            SQRT | 38.29 1.74
            MEAN | 16.56 2.80
        """),
    ),
    PublishedTable(
        "B8",
        "SYNTH",
        "[B] Table 8: variance of differences from the mean of the systems",
        SYNTH_LIMITS,
        _rows("""
            SQRT | 0.74 0.40
            KREL | 0.11 0.09
        """),
    ),
    PublishedTable(
        "B8",
        "TREC-8",
        "[B] Table 8: variance of differences from the mean of the systems (64 runs, here 65)",
        TREC_LIMITS,
        _rows("""
            SQRT | 35.32 1.56
            KREL | 25.21 1.46
        """),
    ),
    PublishedTable(
        "B9",
        "SYNTH",
        "[B] Table 9: half widths of 95 % intervals; Hoeffding also without the stray factor 2",
        _columns(WIDTH, "CLT", "Hoeffding as printed", "Hoeffding"),
        _rows("""
            OPT     | 2.21 367.79 183.895
            REV-75  | 2.10 367.79 183.895
            REV-150 | 2.05 367.79 183.895
            SHIFT-5 | 2.18 367.79 183.895
            SHIFT-7 | 2.18 367.79 183.895
        """),
    ),
    PublishedTable(
        "B9",
        "TREC-8",
        "[B] Table 9: half widths of 95 % intervals; Hoeffding also without the stray factor 2",
        _columns(WIDTH, "CLT", "Hoeffding as printed", "Hoeffding"),
        _rows("""
            mds08a3  | 1.50 7.71 3.855
            nttd8ale | 1.65 7.71 3.855
            weaver2  | 1.58 7.71 3.855
        """),
    ),
    PublishedTable(
        "D1",
        "SYNTH",
        "[D] Table 1: value, sd of 1 or 5 draws per user, uniform, and from 3 or 15 whole users",
        {"TRUE": TRUTH}
        | _columns(SPREAD_25, "UBIS-1", "UNI-1", "DEEP-1")
        | {"TOP-1": FEW_RANKS}
        | _columns(SPREAD_25, "UBIS-5", "UNI-5", "DEEP-5")
        | {"TOP-5": FEW_RANKS},
        _rows("""
            OPT     | 284.4  2.85 6.03 3.05 -    -    -    1.58 16.98
            REV-75  | 277.63 3.00 4.58 4.19 3.30 1.02 2.57 1.70 10.00
            SHIFT-5 | 274.94 2.48 6.25 3.46 0.00 1.00 2.67 1.50  4.72
            REV-150 | 271.32 2.00 4.81 3.40 2.89 0.84 2.32 1.35  8.51
            SHIFT-7 | 269.87 2.05 6.16 3.42 0.00 0.90 2.33 1.48  0.00
        """),
    ),
    PublishedTable(
        "exact",
        "SYNTH",
        "analytic sd of 30 000 draws, computed by others on a population of their own",
        _columns(OTHER_POPULATION, "Q*", "P", "uniform"),
        _rows("""
            OPT     | 1.13 1.88 3.13
            REV-75  | 1.07 1.80 2.61
            REV-150 | 1.05 1.73 2.35
            SHIFT-5 | 1.12 1.83 2.57
            SHIFT-7 | 1.11 1.80 2.41
        """),
        reference="independent",
    ),
    PublishedTable(
        "exact",
        "TREC-8",
        "analytic sd of 250 draws, and of 1 or 3 whole topics",
        _columns(EXACT, "Q*", "P", "uniform", "1 topic", "3 topics"),
        _rows("""
            mds08a3  | 0.789 0.805 1.103 5.12 2.96
            nttd8ale | 0.866 0.874 1.217 5.27 3.04
            weaver2  | 0.833 0.825 1.106 5.96 3.44
        """),
        reference="independent",
    ),
    PublishedTable(
        "exact65",
        "TREC-8",
        "variances of [B] Tables 6 and 8 on the 65 runs",
        _columns(EXACT_LIMIT, "prior p", "true u"),
        _rows("""
            SQRT          | 39.5 1.73
            MEAN          | -    2.80
            SQRT relative | 36.5 1.56
            KREL          | 26.0 1.46
        """),
        reference="independent",
    ),
)

TRIALS = "trials"
KEYS: tuple[str, ...] = (*dict.fromkeys(table.key for table in TABLES), TRIALS)


def coverage_range(trials: int, *, confidence: float) -> tuple[float, float]:
    """Return the central 99.9 % range of the share of `trials` intervals that cover."""
    below = special.bdtr(np.arange(trials + 1), trials, confidence)
    low = int(np.searchsorted(below, SPREAD_ERROR / 2.0))
    high = int(np.searchsorted(below, 1.0 - SPREAD_ERROR / 2.0))
    return low / trials, min(high, trials) / trials


def mean_range(truth: float, *, sd: float, trials: int) -> tuple[float, float]:
    """Return the central 99.9 % range of the mean of `trials` unbiased estimates."""
    margin = float(special.ndtri(1.0 - SPREAD_ERROR / 2.0)) * sd / math.sqrt(trials)
    return truth - margin, truth + margin

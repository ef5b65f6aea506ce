"""How good the labels are, in words and as lines of tables: for pages and reports.

The worker has worked it out (`services.label_quality`); nothing is computed here but places of runs
by their values.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimation.agreement_figures import (
    AlphaLine,
    GradeAlphaLine,
    alpha_lines,
    bounded,
    grade_lines,
)
from estimation.charts import confusions
from estimation.charts.forests import Forest, ForestRow, ForestValue, forest
from estimation.core.inference.orders import places
from estimation.figures import number, signed
from estimation.findings import LIMIT, NOTE, OPEN, SURE, Finding
from estimation.scales import decimals

RELIABLE, TENTATIVE = 0.8, 0.667
"""Alpha from which conclusions about single items are usual, and from which tentative ones are
(Krippendorff 2019)."""
WAYS = {
    "majority": "Majority",
    "likely": "Most likely grade",
    "adjusted": "Mean without leniency",
    "senior": "With senior grades",
    "people": "Without senior grades",
}
"""Other ways to make one label of several, in the order of the table."""
UNTOLD = {
    "few": "fewer than 20 pairs in common with others",
    "one": "pairs in common with one person only",
    "two": "fewer than three people cannot tell who is right",
}
NARROW = 0.5
"""Grades: charts of biases reach at least so far to either side."""


@dataclass(frozen=True)
class AssessorLine:
    """``place`` in the chart, None where no bias is told. ``why``: what keeps the model's word."""

    name: str
    labels: int
    shared: int
    same: float | None
    bias: str
    spread: float | None
    competence: float | None
    informed: float | None
    why: str
    place: ForestRow | None
    machine: bool = False


@dataclass(frozen=True)
class OtherPlaces:
    """A run's place and value by each way, the mean first; "–" where its value is not known."""

    run: str
    places: list[str]
    values: list[str]
    moved: bool

    @property
    def both(self) -> list[tuple[str, str]]:
        """Place and value by each way."""
        return list(zip(self.places, self.values, strict=True))


@dataclass(frozen=True)
class QualityFigure:
    """All that is shown of the labels. ``chart`` of severity is None for preferences.

    Only ``of_people`` and ``people`` name anybody.
    """

    of_agreement: list[Finding]
    of_people: list[Finding]
    alphas: list[AlphaLine]
    people: list[AssessorLine]
    chart: Forest | None
    beside: confusions.Confusion | None
    grades: list[GradeAlphaLine]
    topics: list[dict[str, Any]]
    batches: list[dict[str, Any]]
    couples: list[dict[str, Any]]
    weighted: bool
    ways: list[str]
    otherwise: list[OtherPlaces]
    otherwise_findings: list[Finding]
    measure: str

    @property
    def findings(self) -> list[Finding]:
        return [*self.of_agreement, *self.of_people]

    @property
    def untold(self) -> list[tuple[str, int]]:
        """Why competence is untold, and of how many people."""
        return sorted(Counter(each.why for each in self.people if each.why).items())


def quality_figure(
    found: Mapping[str, Any],
    scale: Sequence[Mapping[str, str]],
    machines: Sequence[tuple[str, Mapping[str, Any]]] = (),
) -> QualityFigure | None:
    """Of stored facts; None without any of labels."""
    if "labels" not in found:
        return None
    names = [str(grade["name"]) for grade in scale]
    grades = found["grades"]
    chart, people = _people(found, machines)
    other = found.get("otherwise") or {}
    if other and not any(_ranks(other, "mean")):  # of no run anything is known
        other = {}
    several = found["plain"]["pairs"] > 0
    return QualityFigure(
        of_agreement=_alpha_findings(found),
        of_people=_severity_findings(found),
        alphas=alpha_lines(found),
        people=people,
        chart=chart,
        beside=confusions.beside(names, grades["table"], grades["counts"]) if several else None,
        grades=grade_lines(names, grades) if several else [],
        topics=found["topics"],
        batches=found["batches"],
        couples=found["couples"],
        weighted=found["drawn"] is not None,
        ways=["As estimated", *(WAYS[way] for way in WAYS if way in other.get("values", {}))],
        otherwise=_places(other) if other else [],
        otherwise_findings=_otherwise_findings(other) if other else [],
        measure=other.get("measure", ""),
    )


# ------------------------------------------------------------------------------------- agreement


def _alpha_findings(found: Mapping[str, Any]) -> list[Finding]:
    plain, drawn = found["plain"], found["drawn"]
    value = plain["ordinal"][0]
    cautions = [Finding(LIMIT, text) for text in _cautions(plain)]
    if value is None:
        return cautions
    told = [
        Finding(
            _kind(plain),
            f"{_alpha_sentence(plain['ordinal'])} {_meaning(value, plain['ordinal'][1])}",
        )
    ]
    if drawn and drawn["ordinal"][0] is not None:
        text = (
            f"Weighted by the draw, as an estimate for all pairs of the pool, alpha is "
            f"{bounded(drawn['ordinal'])}: judged pairs are drawn where they tell most, and are "
            "no fair sample of all."
        )
        told.append(Finding(NOTE, text))
    elif not drawn:
        text = (
            "The pairs of this round were chosen while it was judged, so that alpha is told of "
            "just these pairs, and cannot be weighted by the draw."
        )
        told.append(Finding(NOTE, text))
    return told + cautions


def _kind(plain: Mapping[str, Any]) -> str:
    """Sure where the whole interval is on one side of what its sentence says."""
    value, low, high = plain["ordinal"]
    if plain["cautions"] or low is None:
        return OPEN
    bands = [sum(each >= bound for bound in (TENTATIVE, RELIABLE)) for each in (value, low, high)]
    return SURE if len(set(bands)) == 1 else OPEN


def _alpha_sentence(interval: Sequence[float | None]) -> str:
    value = interval[0] or 0.0
    gone = (
        f"of the disagreement that chance alone would bring, {100 * value:.0f} % is not there"
        if value > 0
        else "people disagree as much as chance alone would have it, or more"
    )
    return f"Krippendorff's alpha (ordinal) is {bounded(interval)}: {gone}."


def _meaning(value: float, low: float | None) -> str:
    if value >= RELIABLE and (low is None or low < RELIABLE):
        return (
            "That is usually called reliable (0.8 or more), but it may as well be less than that."
        )
    if value >= RELIABLE:
        return "That is usually called reliable (0.8 or more): a single label can be relied on."
    if value >= TENTATIVE:
        return (
            "That allows tentative conclusions about single documents (0.67 to 0.8); means over "
            "many, which the estimates are, rest on more."
        )
    return (
        "That is below 0.67, so rely on no single label; means over many pairs, which the "
        "estimates are, still hold, with the disagreement in their intervals where pairs have two "
        "labels."
    )


def _cautions(plain: Mapping[str, Any]) -> list[str]:
    pairs = plain["pairs"]
    words = {
        "none": "No pair has labels by two people yet, so that nothing is known of agreement.",
        "constant": "All of these labels are one grade, so that agreement cannot be told from "
        "chance.",
        "few": f"This rests on {pairs} pair{'' if pairs == 1 else 's'} with two labels or more; "
        "below 30 it may change a lot.",
        "skewed": "Nine of ten labels or more are one grade: chance explains most of any "
        "agreement then, and alpha says little.",
    }
    return [words[each] for each in plain["cautions"]]


# ---------------------------------------------------------------------------------------- people


def _severity_findings(found: Mapping[str, Any]) -> list[Finding]:
    if not found["heights"]:
        return []
    lenient, severe, told = [], [], 0
    for each in found["people"]:
        _, low, high = each["bias"]
        told += low is not None
        if low is not None and low > 0:
            lenient.append(each["name"])
        elif high is not None and high < 0:
            severe.append(each["name"])
    if not told:
        return []
    parts = [
        f"{_listed(names)} {'is' if len(names) == 1 else 'are'} more {word} than the others"
        for names, word in ((lenient, "lenient"), (severe, "severe"))
        if names
    ]
    if not parts:
        return [Finding(OPEN, "Nobody is surely more lenient or more severe than the others.")]
    return [Finding(NOTE, f"{'; '.join(parts)}: the interval of each leaves out 0.")]


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:4]) + ([f"{len(names) - 4} more"] if len(names) > 4 else [])
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _people(
    found: Mapping[str, Any], machines: Sequence[tuple[str, Mapping[str, Any]]]
) -> tuple[Forest | None, list[AssessorLine]]:
    """By leniency, the most lenient first; those of whom none is told come last, by name."""
    rows: list[tuple[dict[str, Any], bool]] = [(dict(each), False) for each in found["people"]]
    rows += [(_of_machine(name, said), True) for name, said in machines if said]
    rows.sort(key=lambda row: (row[0]["bias"][0] is None, -(row[0]["bias"][0] or 0.0)))
    told = [row for row, _ in rows if row["bias"][0] is not None]
    chart: Forest | None = None
    places: Iterator[ForestRow] = iter(())
    if told and found["heights"]:
        values = [ForestValue(row["name"], *row["bias"]) for row in told]
        edges = [ForestValue("", None, -NARROW, NARROW)]
        chart = forest(
            [*values, *edges],
            title="Severe and lenient",
            description=(
                f"By how many grades each of {len(told)} is above the mean of the others for the "
                "same pairs, with its 95 % interval; right of 0 is lenient, left of it severe."
            ),
        )
        places = iter(chart.rows)
    lines = [
        _line(row, machine, next(places, None) if row["bias"][0] is not None else None)
        for row, machine in rows
    ]
    return chart, lines


def _line(row: Mapping[str, Any], machine: bool, place: ForestRow | None) -> AssessorLine:
    value, low, high = row["bias"]
    digits = decimals((high - low) / 2) if low is not None else 2
    return AssessorLine(
        name=row["name"],
        labels=row["labels"],
        shared=row["shared"],
        same=row["same"],
        bias=signed(value, min(digits, 2)),
        spread=row["spread"],
        competence=row["competence"],
        informed=row["informed"],
        why=UNTOLD.get(row["untold"], ""),
        place=place,
        machine=machine,
    )


def _of_machine(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """A machine judge beside people: held against what they said, and never among them."""
    return {
        "name": name, "labels": said["labels"], "shared": said["pairs"], "same": said["equal"],
        "bias": said["bias"], "spread": None, "competence": None, "informed": None, "untold": "",
    }  # fmt: skip


# ----------------------------------------------------------------------------------- other labels


def _ranks(other: Mapping[str, Any], way: str) -> list[int | None]:
    """Places of the runs whose values are known."""
    values: Sequence[float | None] = other["values"][way]
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    found = iter(places(known, lower_is_better=other["lower"]).tolist())
    return [None if value is None else next(found) for value in values]


def _places(other: Mapping[str, Any]) -> list[OtherPlaces]:
    ways = ["mean", *(way for way in WAYS if way in other["values"])]
    values = {way: other["values"][way] for way in ways}
    ranks = {way: _ranks(other, way) for way in ways}
    order = sorted(
        range(len(other["runs"])),
        key=lambda at: (ranks["mean"][at] or len(other["runs"]) + 1, other["runs"][at]),
    )
    return [
        OtherPlaces(
            other["runs"][at],
            [str(ranks[way][at] or "–") for way in ways],
            ["–" if values[way][at] is None else f"{values[way][at]:.3f}" for way in ways],
            len({ranks[way][at] for way in ways}) > 1,
        )
        for at in order
    ]


def _otherwise_findings(other: Mapping[str, Any]) -> list[Finding]:
    runs, mean = other["runs"], _ranks(other, "mean")
    first = _best(runs, mean)
    found = []
    for way, name in WAYS.items():
        if way not in other["values"]:
            continue
        ranks = _ranks(other, way)
        both = [(one, two) for one, two in zip(mean, ranks, strict=True) if one and two]
        moved = [abs(one - two) for one, two in both if one != two]
        best = _best(runs, ranks)
        leads = f"{best} leads as before" if best == first else f"{best} leads instead of {first}"
        change = (
            f"{len(moved)} of {len(both)} runs change places, by {max(moved)} at most"
            if moved
            else "no run changes its place"
        )
        kind = NOTE if best == first else OPEN
        tau = other["tau"][way]
        order = "" if tau is None else f" (Kendall's tau {number(tau, 2)})"
        found.append(Finding(kind, f"{name}: {leads}; {change}{order}."))
    return found


def _best(runs: Sequence[str], ranks: Sequence[int | None]) -> str:
    return next((run for run, rank in zip(runs, ranks, strict=True) if rank == 1), "nobody")

"""Figures of the benchmarks of time and memory: told as they are found, and kept for one table.

A figure stands beside a reference that was measured in the same run, as absolute times say little
about another machine. `python -m benchmarks` runs all and collects what they tell.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KEPT = "EVALSITE_FIGURES"  # the environment's name of a file that figures are added to
HEADER = ("work", "figure", "beside", "times", "should be at most", "")


@dataclass(frozen=True)
class Figure:
    """What some work took, and what it should take at most.

    ``reference`` is what the same took in another way, named by ``beside``, in the same unit.
    ``most`` is in that unit as well, ``most_times`` in references. Where there is no ``value``,
    ``why`` says why.
    """

    work: str
    value: float | None
    unit: str
    beside: str = ""
    reference: float | None = None
    most: float | None = None
    most_times: float | None = None
    why: str = ""

    @property
    def times(self) -> float | None:
        return self.value / self.reference if self.reference and self.value is not None else None

    @property
    def met(self) -> bool | None:
        """Whether it is as good as it should be; None if nothing is asked of it."""
        asked = [(self.value, self.most), (self.times, self.most_times)]
        known = [found <= most for found, most in asked if found is not None and most is not None]
        return all(known) if known else None

    @property
    def cells(self) -> tuple[str, ...]:
        beside = "" if self.reference is None else f"{self.reference:.3g} {self.beside}"
        times = "" if self.times is None else f"{self.times:.2f}"
        bars = [f"{self.most:g} {self.unit}" if self.most is not None else ""]
        bars += [f"{self.most_times:g} times" if self.most_times is not None else ""]
        verdict = {True: "met", False: "missed", None: ""}[self.met]
        said = " and ".join(filter(None, bars))
        value = self.why if self.value is None else f"{self.value:.3g} {self.unit}"
        return self.work, value, beside, times, said, verdict


def tell(figure: Figure) -> None:
    """Print a figure, and keep it if somebody collects them."""
    print("   ".join(filter(None, figure.cells)), flush=True)
    if kept := os.environ.get(KEPT):
        with Path(kept).open("a") as file:
            file.write(json.dumps(asdict(figure)) + "\n")


def read_figures(path: Path) -> list[Figure]:
    return [Figure(**json.loads(line)) for line in path.read_text().splitlines()]


def table(figures: Iterable[Figure]) -> list[str]:
    """The figures as a table in Markdown."""
    lines = [HEADER, ("---", "--:", "--:", "--:", "--:", "---"), *(each.cells for each in figures)]
    return [f"| {' | '.join(line)} |" for line in lines]


def as_json(figures: Iterable[Figure], machine: Mapping[str, Any]) -> str:
    rows = [asdict(each) | {"times": each.times, "met": each.met} for each in figures]
    return json.dumps({"machine": machine, "figures": rows}, indent=1) + "\n"

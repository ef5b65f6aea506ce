"""Play ways of judging against one another on collections with complete judgments.

    python -m benchmarks.judgments                       every cell, from EVALSITE_TEST_DATA
    python -m benchmarks.judgments --methods adaptive    play these cells again, keep all others
    python -m benchmarks.judgments --from FILE           play nothing: tables of what is there

Each cell, of a collection, a budget and a method, is a line of JSON in --out as soon as it is
played. Cells that are there, with the same seed and as many trials, are not played again unless
their methods are named: an interrupted run goes on where it was. --page FILE writes the tables
between the marks of docs/benchmarks.md, and the charts beside it.
"""

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from benchmarks.judgments.cells import BUDGETS, Results, play
from benchmarks.judgments.material import COLLECTIONS, REPEATED, Material, read
from benchmarks.judgments.page import tables, write_page
from benchmarks.judgments.players import METHODS
from benchmarks.public import FOLDER

HERE = Path(__file__).resolve().parents[2]
RESULTS = HERE / "docs" / "benchmarks.jsonl"


def main(arguments: Sequence[str] | None = None) -> None:
    given = _options().parse_args(arguments)
    results = Results(given.source or given.out)
    if given.source is None:
        for material in read(given.collections, given.data, seed=given.seed):
            _play(results, material, given)
    print("\n".join(tables(list(results))))
    if given.page is not None:
        write_page(given.page, list(results))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.judgments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--trials", type=_count, default=30, help="of every cell (default %(default)s)")
    add("--collections", type=_listed(COLLECTIONS), default=list(COLLECTIONS), metavar="NAME,NAME")
    add("--methods", type=_listed(METHODS), metavar="NAME,NAME", help=", ".join(METHODS))
    add("--budgets", type=_counts, default=list(BUDGETS), metavar="N,N", help="judged pairs")
    add("--seed", default="2026", help="any text (default %(default)s)")
    add("--data", type=Path, default=FOLDER, help="folder of the collections")
    add("--out", type=Path, default=RESULTS, help="default docs/benchmarks.jsonl")
    add("--from", dest="source", type=Path, metavar="FILE", help="show this, play nothing")
    add("--page", type=Path, metavar="FILE")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _counts(text: str) -> list[int]:
    return [_count(part) for part in text.split(",")]


def _listed(known: Collection[str]) -> Callable[[str], list[str]]:
    def read_names(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                listed = ", ".join(known)
                raise argparse.ArgumentTypeError(f"{name!r} is none of {listed}")
        return names

    return read_names


def _play(results: Results, material: Material, given: argparse.Namespace) -> None:
    for budget, method in _wanted(results, material, given):
        try:
            row = play(material, method, budget, trials=given.trials, seed=given.seed)
        except ValueError as error:
            print(f"left out: {material.name}, {budget}, {method}: {error}", file=sys.stderr)
            continue
        results.put(row)
        print(f"{material.name} {budget} {method}: {100 * row.error:.2f} %", file=sys.stderr)


def _wanted(
    results: Results, material: Material, given: argparse.Namespace
) -> Iterator[tuple[int, str]]:
    for budget in given.budgets:
        if budget >= len(material.pool):
            continue
        for method in given.methods or METHODS:
            repeated = material.name in REPEATED and not METHODS[method].asks
            key, played = (material.name, budget, method), {"trials": given.trials}
            kept = given.methods is None and results.has(key, seed=given.seed, **played)
            if not (repeated or kept):
                yield budget, method


if __name__ == "__main__":
    main()

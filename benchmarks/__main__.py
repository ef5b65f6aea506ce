"""All benchmarks of time and memory, one after the other, and one table of what they told.

    make bench                                   every figure beside its reference
    .venv/bin/python -m benchmarks --only drawing,judging

Each runs in a process of its own. What evalsite is measured against (`benchmarks/peers.txt`) is
installed once into an environment of its own. Machine and versions stand at the head; `--json FILE`
keeps the figures with them, `--page FILE` writes both between the marks of docs/benchmarks.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.figures import KEPT, Figure, as_json, read_figures, table
from benchmarks.machine import in_words, machine
from benchmarks.peers import peers_python

HERE = Path(__file__).resolve().parent
BEGINS, ENDS = "<!-- speed: begins -->", "<!-- speed: ends -->"
PEERS = "{peers}"
COMMANDS: Mapping[str, Sequence[str]] = {
    "reading": ("benchmarks.reading", "--peers", PEERS),
    "reading-letters": ("benchmarks.reading", "--letters"),
    "uploading": ("benchmarks.uploading",),
    "whole": ("benchmarks.whole", "--peers", PEERS),
    "drawing": ("benchmarks.drawing",),
    "judging": ("benchmarks.judging",),
    "judging-postgres": ("benchmarks.judging", "--postgres"),
    "clients": ("benchmarks.clients",),
    "clients-postgres": ("benchmarks.clients", "--postgres"),
    "desks": ("benchmarks.desks",),
    "writers": ("benchmarks.writers",),
    "pages": ("benchmarks.pages",),
    "paint": ("benchmarks.paint",),
    "site": ("benchmarks.site",),
    "core": ("benchmarks.core",),
    "recompute": ("benchmarks.recompute",),
    "recompute-million": (
        *("benchmarks.recompute", "--methods", "poisson"),
        *("--judgments", "1000000"),
    ),
    "recompute-postgres": ("benchmarks.recompute", "--postgres"),
    "recompute-single": (
        *("benchmarks.recompute", "--methods", "iid"),
        *("--goal", "single", "--judgments", "10000"),
    ),
    "scaling": ("benchmarks.scaling",),
}


def main(arguments: Sequence[str] | None = None) -> int:
    given = _options().parse_args(arguments)
    peers, failed = given.peers, []
    if peers is None and any(PEERS in COMMANDS[name] for name in given.only):
        peers = peers_python(HERE.parent / ".peers")
    told = machine(peers)
    print(in_words(told))
    with tempfile.NamedTemporaryFile() as kept:
        for name in given.only:
            command = COMMANDS[name]
            print(f"\n{name}", flush=True)
            asked = [str(peers) if each == PEERS else each for each in command]
            environment = os.environ | {KEPT: kept.name, "OMP_NUM_THREADS": "1"}
            done = subprocess.run([sys.executable, "-m", *asked], env=environment, check=False)
            failed += [name] if done.returncode else []
        figures = read_figures(Path(kept.name))
    print("\n".join(["", *table(figures)]))
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(as_json(figures, told))
    if given.page is not None:
        write_page(given.page, figures, told)
    if failed:
        print(f"\nThese did not end well: {', '.join(failed)}.")
    return 1 if failed else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", type=_names, default=list(COMMANDS), metavar="NAME,NAME")
    parser.add_argument("--peers", type=Path, metavar="PYTHON", help="that has them installed")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--page", type=Path, metavar="FILE")
    return parser


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in COMMANDS]:
        known = ", ".join(COMMANDS)
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: there are only {known}")
    return names


def write_page(path: Path, figures: Sequence[Figure], told: Mapping[str, object]) -> None:
    """Put the table in the place of the one that stands between the marks."""
    before, _, rest = path.read_text().partition(BEGINS)
    _, mark, after = rest.partition(ENDS)
    if not mark:
        raise SystemExit(f"{path} has no place between {BEGINS} and {ENDS}")
    lines = "\n".join([BEGINS, "", in_words(told), "", *table(figures), "", ENDS])
    path.write_text(before + lines + after)


if __name__ == "__main__":
    sys.exit(main())

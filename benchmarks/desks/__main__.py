"""What one judgment costs at the desks of others beside ours, where 8 people judge at once.

    python -m benchmarks.desks                  all of them
    python -m benchmarks.desks --only potato    one of them, and ours

Each is a real server of this machine with the same topics and documents and a grade from 0 to 3,
one label wanted of each item, and 8 clients who sign in, judge and fetch what comes next by the
least requests with which its own pages do so. All run at the same time, and take turns in blocks of
judgments. Processor time is that of all processes of the server; all labels must be stored. What
cannot be installed (`desk-peers/*.txt`, into `.desk-peers`) or started, or has lost labels, has a
row that says why; all but the first end the command with 1.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.desks import doccano, label_studio, own, potato
from benchmarks.desks.desk import Desk
from benchmarks.desks.table import rows
from benchmarks.desks.trials import NotInstalled, Took, measured
from benchmarks.figures import table, tell
from benchmarks.peers import peers_python, pinned

FOLDER = Path(__file__).resolve().parents[2] / ".desk-peers"


@dataclass(frozen=True)
class Peer:
    """A tool of others: the package that it is, its name, and what starts its server."""

    package: str
    title: str
    start: Callable[[Path, Path], AbstractContextManager[Desk]]


PEERS: Mapping[str, Peer] = {
    "potato": Peer("potato-annotation", "Potato", potato.started),
    "doccano": Peer("doccano", "doccano", doccano.started),
    "label-studio": Peer("label-studio", "Label Studio", label_studio.started),
}


def main(arguments: Sequence[str] | None = None) -> int:
    names = _options().parse_args(arguments).only
    found = measured(own.started, {title(name): partial(begun, name) for name in names})
    figures = list(rows(found))
    for each in figures:
        tell(each)
    print("\n".join(["", *table(figures)]))
    return 0 if all(isinstance(each, Took | NotInstalled) for each in found.values()) else 1


def title(name: str) -> str:
    """What a tool is called, with the version that is asked for."""
    peer = PEERS[name]
    return f"{peer.title} {pinned(f'desk-peers/{name}')[peer.package]}"


@contextmanager
def begun(name: str) -> Iterator[Desk]:
    """A tool that runs, installed first where it is not. Raises NotInstalled if it cannot be."""
    try:
        python = peers_python(FOLDER / name, f"desk-peers/{name}")
    except (subprocess.CalledProcessError, OSError) as error:
        raise NotInstalled(f"pip could not install it ({type(error).__name__})") from error
    with (
        tempfile.TemporaryDirectory() as folder,
        PEERS[name].start(python, Path(folder)) as desk,
    ):
        yield desk


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.desks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", type=_names, default=list(PEERS), metavar="NAME,NAME")
    return parser


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        known = ", ".join(PEERS)
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: there are only {known}")
    return names


if __name__ == "__main__":
    Path(os.environ["EVALSITE_DATA"]).mkdir(parents=True, exist_ok=True)
    sys.exit(main())

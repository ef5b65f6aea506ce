"""Files that are cut all at once are read as line by line, and what is unusual is left to that."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from estimation import core as ev
from estimation.core.data import plain_cells, ranked_lists, trec_lines
from estimation.core.data.plain_cells import MOST_BYTES, cut_plain
from estimation.core.data.ranked_lists import PoolError, rank_lines

Told = tuple[object, ...]

CHANGES = [
    b"", b" ", b"\t", b"  ", b"\n", b"\n\n", b"\r\n", b"\r", b"\x0b", b"\x00", b"\x1c", b"\x7f",
    b"#", b"1e5", b"nan", b"inf", b"1_0", b"-", b".", "ä".encode(), b"\xff", b"x" * 30,
    b"x" * (MOST_BYTES + 1), b"\x85", "\x85".encode(), "\xa0".encode(), "東".encode(), b"\xc3",
]  # fmt: skip


def by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec_lines, "cut_plain", lambda content, columns: None)


def told_of(path: Path) -> list[Told]:
    """What the readers say of a file, or why they do not."""
    found: list[Told] = []
    for read in (ev.read_runs, ev.read_qrels, ev.read_prels, ev.read_strata):
        try:
            found.append(shown(read(path)))
        except ValueError as error:
            found.append((type(error), str(error)))
    return found


def shown(read: object) -> Told:
    if isinstance(read, dict):
        runs = read.items()
        return tuple(
            (tag, run.topics, run.indptr.tolist(), run.docnos.tolist(), run.scores.tolist())
            for tag, run in runs
        )
    kept = [read.topic.tolist(), read.docno.tolist(), read.grade.tolist()]
    return (*kept, getattr(read, "probability", np.zeros(0)).tolist())


def file_at_random(rng: random.Random) -> bytes:
    """Lines of one of the four kinds, in most files with something unusual somewhere."""
    columns, lines = rng.choice((4, 5, 6)), []
    for number in range(rng.randint(1, 6)):
        docno = f"{rng.choice(('d', 'd', 'd', 'ü'))}{rng.randint(0, 40)}" * rng.randint(1, 3)
        score, tag = f"{rng.uniform(-9, 9):.{rng.randint(0, 17)}f}", rng.choice("ab")
        lines.append({
            4: f"{rng.randint(1, 3)} 0 {docno} {rng.randint(-1, 3)}",
            5: rng.choice((f"1 {docno} {number % 3} 1 0.5", f"1 0 {docno} s1 {number % 3}")),
            6: f"{rng.randint(1, 3)} Q0 {docno} {number} {score} {tag}",
        }[columns])  # fmt: skip
    content = "\n".join(lines).encode() + rng.choice((b"", b"\n", b"\n\n"))
    for _ in range(rng.choice((0, 1, 1, 2))):
        at = rng.randint(0, len(content))
        content = content[:at] + rng.choice(CHANGES) + content[at + rng.randint(0, 1) :]
    return content


@pytest.mark.slow
def test_both_ways_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []
    for seed in range(1500):
        paths.append(tmp_path / f"{seed}")
        paths[-1].write_bytes(file_at_random(random.Random(seed)))
    plain = [told_of(path) for path in paths]
    cut = sum(
        cut_plain(path.read_bytes(), columns) is not None for path in paths for columns in (4, 6)
    )
    assert 200 < cut < 1200, "files of both kinds are tried"
    by_line(monkeypatch)
    for path, told in zip(paths, plain, strict=True):
        assert told == told_of(path), path.read_bytes()


def longer(cells: plain_cells.PlainCells, column: int) -> np.ndarray:
    """Leaves what stands behind a cell that is shorter than others."""
    end, length, text = cells.end[:, column], cells.length[:, column], bytes(cells.text)
    return np.array([text[at : at + length.max()] for at in (end - length).tolist()])


def any_lines(content: bytes, columns: int) -> plain_cells.PlainCells | None:
    """Begins a line after every so many cells, wherever lines end."""
    cells = content.split()
    lines = (b" ".join(cells[at : at + columns]) for at in range(0, len(cells), columns))
    return cut_plain(b"\n".join(lines), columns)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "twin"),
    [(plain_cells.PlainCells, "__getitem__", longer), (trec_lines, "cut_plain", any_lines)],
)
def test_the_comparison_catches_what_is_wrong(
    where: object,
    name: str,
    twin: Callable[..., object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(where, name, twin)
        with pytest.raises((AssertionError, ValueError, IndexError)):
            test_both_ways_say_the_same(tmp_path, broken)


def test_plain_files_are_not_read_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither Python nor a sort of docnos goes through the lines of a sound file."""
    lexsorts: list[int] = []
    lexsort = np.lexsort

    def counting(keys: object) -> object:
        lexsorts.append(1)
        return lexsort(keys)

    monkeypatch.setattr(ranked_lists.np, "lexsort", counting)
    topics = np.repeat([b"1", b"2"], 50)
    docnos = np.array([f"d{number}".encode() for number in range(50)] * 2)
    rank_lines(topics, docnos, -np.arange(100.0))
    assert lexsorts == []
    with pytest.raises(PoolError, match="docno 'd3' occurs twice in topic '2'"):
        rank_lines(topics, np.where(np.arange(100) == 77, b"d3", docnos), -np.arange(100.0))
    assert lexsorts


@pytest.mark.parametrize("docno", ["d", "ü", "東\u00a0"])
@pytest.mark.parametrize("blank", [" ", "  ", " \t "])
def test_letters_and_blanks_are_cut_all_at_once(docno: str, blank: str) -> None:
    rows = [["1", "Q0", f"{docno}{number}", "1", "0.5", "Müller"] for number in range(30)]
    content = "".join(f"{blank[1:]}{blank.join(row)}{blank[1:]}\n" for row in rows).encode()
    for ending in (content, content.removesuffix(b"\n"), content.replace(b"\n", b"\r\n")):
        cells = cut_plain(ending, 6)
        assert cells is not None
        read = [[cell.decode() for cell in cells[column].tolist()] for column in range(6)]
        assert list(map(list, zip(*read, strict=True))) == rows


@pytest.mark.parametrize("piece", range(1, 9))
def test_letters_are_looked_at_across_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_cells, "_PIECE", piece)
    content = "ü 東\n😀 é".encode()
    assert cut_plain(content, 2) is not None
    for wrong in (content[:-1], content[1:], content + b"\xc3", content.replace(b"\x9d", b" ")):
        with pytest.raises(UnicodeDecodeError):
            wrong.decode()
        assert cut_plain(wrong, 2) is None


@pytest.mark.parametrize("topics", [[], ["b"], ["b", "a", "a", "b", "c", "c", "a"]])
def test_names_are_numbered_as_sorted(topics: list[str]) -> None:
    names = np.array([each.encode() for each in topics], dtype=np.bytes_)
    different, number = ranked_lists._numbered(names)
    expected = np.unique(names, return_inverse=True)
    assert different.tolist() == expected[0].tolist()
    assert number.tolist() == expected[1].tolist()

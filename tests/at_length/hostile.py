"""Files that are made to stop a site: each is refused or read within bounds, while people judge."""

import gzip
import io
import itertools
import time
import zipfile
from collections.abc import Iterator

import psutil

from tests.at_length.ground import Ground, embedded, family, p95, prepare, production
from tests.at_length.tally import Tally
from tests.support.crowd import Organizer, got
from tests.support.site import Site

BOUNDS = {"UPLOAD_CPU_SECONDS": "20", "UPLOAD_SECONDS": "60"}
LONGEST_READ = 180.0  # several wait for one another, and for the machine
MOST_GROWTH = 600 * 2**20
TOP = "<top>\n<num> 1\n<title> one\n"
MEGABYTE = 2**20
ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 30))


def _zipped(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return packed.getvalue()


def _bomb(line: bytes, megabytes: int) -> bytes:
    """Gzip of so many megabytes of one line."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9) as file:
        piece = line * (MEGABYTE // len(line))
        for _ in range(megabytes):
            file.write(piece)
    return packed.getvalue()


def files() -> Iterator[tuple[str, str, bytes]]:
    """Names, kinds and contents; one after the other, as some are large."""
    yield "sections.topics", "topics", (TOP + "<a>\n" * 800_000 + "</top>\n").encode()
    yield "open.topics", "topics", (TOP + "<desc><narr " * 300_000).encode()
    yield "entities.topics", "topics", f"<!DOCTYPE x [{ENTITIES}]>\n{TOP}&e29;</top>".encode()
    yield "outside.topics", "topics", b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    yield "many.tsv", "topics", b"".join(b"q%d\tt\n" % n for n in range(100_000))
    yield "packed.tsv.gz", "topics", _bomb(b"1\tone\n", 1000)
    yield "line.run", "run", b"t1 Q0 d1 1 1.0 " + b"x" * (100 * MEGABYTE)
    yield "line.run.gz", "run", _bomb(b"0", 2000)
    yield "wide.run", "run", b"t1 " * (10 * MEGABYTE)
    yield "repeated.qrels.gz", "qrels", _bomb(b"t1 0 d1 1\n", 1000)
    yield "paths.jsonl", "documents", b'{"docno": "../../etc/passwd", "text": "x"}\n'
    yield "deep.jsonl", "documents", b'{"docno": "a", "text": ' + b"[" * 5_000_000
    tags = b"<div>" * 2_000_000
    yield "tags.jsonl", "documents", b'{"docno": "a", "text": "' + tags + b'"}\n'
    yield "nul.jsonl", "documents", b"\x00" * (10 * MEGABYTE)
    half = b'{"docno": "a", "text": "\\ud800"}\n'
    yield "surrogates.jsonl", "documents", half * 100_000
    yield "sections.sgml", "documents", b"<DOC>\n<DOCNO>a</DOCNO>\n" + b"<TEXT>" * 800_000
    yield "packed.zip", "run", _zipped("x.run", b"0" * (200 * MEGABYTE))
    yield "nested.zip", "run", _zipped("y.zip", _zipped("x.run", b"0" * (50 * MEGABYTE)))
    yield "slip.zip", "documents", _zipped("../../../tmp/slip", b"x")


def on_production() -> Tally:
    with production(**BOUNDS) as site:
        ground = prepare(site, "hostile files, production", people=4)
        drill(ground)
        return ground.tally


def on_up() -> Tally:
    with embedded(**BOUNDS) as site:
        ground = prepare(site, "hostile files, up", people=4)
        drill(ground)
        return ground.tally


def drill(ground: Ground) -> None:
    """They are brought to another campaign of the same site, one after the other, then at once."""
    tally, site = ground.tally, ground.site
    other = Organizer(site, ground.organizer.api, f"{ground.organizer.slug}-hostile")
    other.create()
    with ground.judging():
        ground.go_on(8)
        quiet = p95(ground.seconds(0, time.monotonic()))
        began, before = time.monotonic(), _memory(site)
        seen: list[int] = []
        rows: dict[str, int] = {}
        for name, kind, content in files():
            tally.faults += 1
            rows |= _send(other, name, kind, content)
            ground.go_on(0.5, lambda: seen.append(_memory(site)))
        for left in _unread(ground, other, rows):
            seen.append(_memory(site))
            assert time.monotonic() - began < LONGEST_READ + 20 * tally.faults, f"unread: {left}"
        loaded = p95(ground.seconds(began, time.monotonic()))
    tally.notes.append(f"p95 of judging {quiet:.3f} s before, {loaded:.3f} s beside them")
    growth = max(seen) - before
    tally.expect(growth < MOST_GROWTH, f"the largest process grew by {growth >> 20} MB")
    tally.notes.append(f"read in {time.monotonic() - began:.0f} s: {_verdicts(other, rows)}")


def _send(organizer: Organizer, name: str, kind: str, content: bytes) -> dict[str, int]:
    """The upload by the file's name; 0 if it was refused at once."""
    parts = [("files", name, content)]
    answer = organizer.api.upload(f"{organizer.base}uploads/", {"kind": kind}, parts)
    if answer.status in (400, 413):
        return {name: 0}
    return {name: got(answer, 201)[0]["id"]}


def _unread(ground: Ground, organizer: Organizer, rows: dict[str, int]) -> Iterator[list[str]]:
    """The names of those that are not yet read, again and again until all are."""
    while left := [name for name, row in rows.items() if row and not organizer.read_already(row)]:
        yield left
        ground.go_on(0.5)


def _verdicts(organizer: Organizer, rows: dict[str, int]) -> str:
    states = {name: organizer.read_already(row)["state"] for name, row in rows.items() if row}
    by_state = itertools.groupby(sorted(states, key=lambda name: states[name]), states.__getitem__)
    at_once = [name for name, row in rows.items() if not row]
    told = [f"{state}: {', '.join(names)}" for state, names in by_state]
    return "; ".join([*told, f"refused at once: {', '.join(at_once) or 'none'}"])


def _memory(site: Site) -> int:
    """Resident bytes of the largest worker process, or of all under `up`."""
    sizes = []
    for process in (*site.workers, site.web):
        for each in family(process.pid) if process.running() else []:
            try:
                sizes.append(each.memory_info().rss)
            except psutil.NoSuchProcess:
                continue
    return max(sizes, default=0)

"""A file that cannot be read is named by what it is, with what to do; never by its lines."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from judging.formats.guess import guess_kind, unknown_kind
from judging.formats.lines import read_lines
from judging.formats.magic import foreign
from judging.formats.problems import Problems, UnreadableError
from judging.formats.topics import read_topics


def tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in ("a.run", "b.run"):
            content = b"401 Q0 FT-1 1 2.5 tag\n" * 4000
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def zipped(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, b"<xml/>" * 100)
    return made.getvalue()


PICTURE = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 40
FOREIGN = [
    (zipped("[Content_Types].xml", "xl/workbook.xml"), "a spreadsheet", "tabs"),
    (zipped("[Content_Types].xml", "word/document.xml"), "word processor", "JSON lines"),
    (bz2.compress(b"401 Q0 FT-1 1 2.5 tag\n"), "a bzip2 archive", "gzip"),
    (lzma.compress(b"401 Q0 FT-1 1 2.5 tag\n"), "an xz archive", "gzip"),
    (gzip.compress(gzip.compress(b"x")), "gzip inside gzip", "once"),
    (PICTURE, "a picture (PNG)", "only text"),
    (b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(999), "a picture (JPEG)", "only text"),
    (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "a PDF document", "JSON lines"),
    (b"{\\rtf1\\ansi topics", "word processor", "JSON lines"),
    (b"SQLite format 3\x00" + bytes(999), "a SQLite database", "tabs"),
    ("topic\tone".encode("utf-16"), "UTF-16 text", "UTF-8"),
    (b"<!DOCTYPE html>\n<html><body>", "a web page", "JSON lines"),
    (bytes(range(32)) * 99, "binary data", "only text"),
]


ARCHIVES = [
    (tar(), "a tar archive", "as an archive of files"),
    (gzip.compress(tar()), "a tar archive", "as an archive of files"),
    (zipped("a.run"), "a zip archive", "as an archive of files"),
]


@pytest.mark.parametrize(("content", "what", "advice"), [*FOREIGN, *ARCHIVES])
def test_a_file_of_another_kind_is_one_error_that_names_it(
    content: bytes, what: str, advice: str
) -> None:
    problems = Problems("f")

    with pytest.raises(UnreadableError):
        list(read_topics(io.BytesIO(content), problems))

    assert problems.error_count == 1
    assert what in problems.errors[0].message
    assert advice in problems.errors[0].message


@pytest.mark.parametrize(("content", "what", "advice"), FOREIGN)
def test_a_file_of_another_kind_is_not_asked_about_but_named(
    content: bytes, what: str, advice: str
) -> None:
    assert guess_kind("topics.run", content[:65536]) is None
    said = unknown_kind("topics.run", content[:65536])
    assert what in said
    assert advice in said


@pytest.mark.parametrize("content", [zipped(), *(content for content, _, _ in ARCHIVES)])
def test_an_archive_is_known_for_one(content: bytes) -> None:
    guess = guess_kind("topics.run", content[:65536])
    assert guess is not None
    assert guess.kind == "archive"


@pytest.mark.parametrize(
    "text",
    [
        b"BM25 is what\n",
        b"PK is a key\n",
        b"MZ\n",
        b"GIF\n",
        b"<top>\n",
        b"<DOC>\n",
        b'<?xml version="1.0"?>\n',
        b"",
        b"a\x00b",
        "Ünïcödé ".encode() * 99,
    ],
)
def test_text_is_not_foreign(text: bytes) -> None:
    assert foreign(text) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("401 FT-1 1\n401 FT-2 0\n", ["predicted grades", "topic 0 docno grade"]),
        ("401\tFT-1\t1\n401\tFT-2\t3\n", ["predicted grades", "topic 0 docno grade"]),
        ("401,FT-1,1\n401,FT-2,0\n", ["commas", "tabs"]),
        ("[\n", ["JSON", "one object"]),
        ("hello world\n", ["say whether this holds topics"]),
        ("", ["empty"]),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_is_not_clear_is_asked_with_what_was_seen(
    text: str, words: list[str], pack: Callable[[bytes], bytes]
) -> None:
    head = pack(text.encode())

    assert guess_kind("f.txt", head) is None
    said = unknown_kind("f.txt", head)
    assert all(word in said for word in words), said


def test_lines_before_it_is_known_are_not_read() -> None:
    assert list(read_lines(io.BytesIO(b"a\nb"), Problems("f"))) == [(1, "a"), (2, "b")]

import gzip
from collections.abc import Callable

import pytest

from judging.formats.guess import Guess, guess_kind

CASES = [
    ("x", "<top>\n<num> 1\n", "topics", "trec"),
    ("x", '<?xml version="1.0"?>\n<topics>\n<TOP>\n', "topics", "trec"),
    ("x", "<DOC>\n<DOCNO> 1 </DOCNO>\n", "documents", "trec"),
    ("x", '{"docno": "1", "title": "t", "text": "x"}\n', "documents", "jsonl"),
    ("x", '{"id": "1", "contents": "x"}\n', "documents", "jsonl"),
    ("x", '{"id": "1", "title": "x", "narrative": "y"}\n', "topics", "jsonl"),
    ("x", '{"qid": "1", "text": "x"}\n', "topics", "jsonl"),
    ("topics.jsonl", '{"id": "1", "title": "x"}\n', "topics", "jsonl"),
    ("Queries.jsonl", '{"id": "1", "text": "x"}\n', "topics", "jsonl"),
    ("corpus.jsonl", '{"id": "1", "text": "x"}\n', "documents", "jsonl"),
    ("topics.jsonl", '{"docno": "1", "text": "' + "x" * 9000, "documents", "jsonl"),
    ("x", "401 Q0 FT-1 1 2.5 tag\n401 Q0 FT-2 2 -1e3 tag\n", "run", "trec"),
    ("x", "401\tQ0\tFT-1\t1\t2.5\ttag\r\n", "run", "trec"),
    ("x", "401 Q0 FT-1 1 2.5 tag\n401 Q0 FT-2 2 1.5 t", "run", "trec"),
    ("x", "401 Q0 FT-1 1 2.5 tag\n" * 5 + "401 Q0 FT-1\n", "run", "trec"),
    ("x", "401 0 FT-1 1\n401 0 FT-2 -1\n", "qrels", "trec"),
    ("x", "401\t0\tFT-1\t1\n", "qrels", "trec"),
    ("x", "401 FT-1 1\n401 FT-2 0.25\n", "predictions", "trec"),
    ("x", "401\tFT-1\t2.5\r\n", "predictions", "trec"),
    ("x", "401 FT-1 0 1\n401 FT-2 1 0\n", "predictions", "trec"),
    ("x", "401 FT-1 0.1 0.2 0.7\n", "predictions", "trec"),
    ("x", "401 FT-1 0.1 0.2 0.3 0.4\n401 FT-2 0 0 0 1\n", "predictions", "trec"),
    ("x", "401 FT-1 0.1 0.2 0.3 0.4\n" * 5 + "401 FT-2 0 0 nan 1\n", "predictions", "trec"),
    ("qrels.run", "401\tFT-1\t.25\t.25\t.25\t.25\n", "predictions", "trec"),
    (
        "x",
        "401 a .1 .9 0 0\n401 b .5 .6 0 0\n402 c nan 1 0 0\n402 d 2 0 0 0\n",
        "predictions",
        "trec",
    ),
    ("x", "401 a 10 20 70 0\n401 b 100 0 0 0\n", "predictions", "trec"),
    ("x", "topic docno cost\n401 a 45\n401 b 300.5\n", "predictions", "trec"),
    ("x", "Topic\tDocno\tCost\n401\ta\t45\n401\tb\t300.5\n", "predictions", "trec"),
    ("judge", "401 q0 1 1 0.5 7\n401 q0 2 2 0.25 7\n", "run", "trec"),
    ("judge", "401 1 8123456 1 12.5 tag\n401 1 8123457 2 12.1 tag\n", "run", "trec"),
    ("judge", "401 1 8123456 1\n401 1 8123457 0\n", "qrels", "trec"),
    ("judge", "401 Q0 0 0 0.5 0.5\n401 Q0 1 0 0 0\n", "run", "trec"),
    ("judge", "401 0 1 0\n402 0 0 1\n", "qrels", "trec"),
    ("judge", "401 0 0 1\n", "qrels", "trec"),
    ("judge", "1\tTitanic\t1997\n2\tAlien\t1979\n", "topics", "tsv"),
    ("judge", "1\tapollo 11\n2\tboeing 7\n", "topics", "tsv"),
    ("x", "401\tforeign minorities, Germany\n", "topics", "tsv"),
    ("x", "401\tthe year 1969\n402\tapollo landing 1969\n", "topics", "tsv"),
    ("x", "401\tfive words in the title\n", "topics", "tsv"),
    ("x", "101\twho won the 2018 cup\n102\tbest phone under 300 euro\n", "topics", "tsv"),
    ("x", "101\tmost goals in 2018 cup\r\n", "topics", "tsv"),
    ("x", "401\t1\tFT-1\t1\t2.5\ttag\n402\t1\tFT-2\t1\t0\ttag\n", "run", "trec"),
    ("x", "401\tQ0 FT-1 1 2.5 tag\n401\tQ0 FT-2 2 1.5 tag\n", "run", "trec"),
    ("qrels.txt", "\ufeff401\ta b\tc d\te f\n", "topics", "tsv"),
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(("name", "text", "kind", "form"), CASES)
def test_a_file_is_told_by_its_content(
    pack: Callable[[bytes], bytes], name: str, text: str, kind: str, form: str
) -> None:
    guess = guess_kind(name, pack(text.encode()))
    assert guess is not None
    assert (guess.kind, guess.format) == (kind, form)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"hello world\n", b"<html>", b"\x1f\x8bbad", b"PK"])
def test_what_fits_nothing_is_not_guessed(data: bytes) -> None:
    assert guess_kind("x", data) is None


def test_a_head_cut_off_in_the_middle_of_gzip_is_enough() -> None:
    text = "".join(f"401 Q0 FT-{n * 7919 % 10007} {n} {10_000 - n} tag\n" for n in range(10_000))
    assert guess_kind("x", gzip.compress(text.encode())[:4096]) == Guess("run", "trec")

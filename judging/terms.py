"""Where a text speaks of a title: its words, and pieces of it in scripts without blanks.

Chinese, Japanese, Korean, Thai and their like do not part words, or not from what belongs to them.
Of a run of such letters every piece counts: two letters, or three where letters stand for sounds.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache


def _marks() -> str:
    """Accents and vowel signs, which belong to the letter before them, as ranges for a pattern."""
    marks = [
        sign for sign in map(chr, range(0x300, 0xFE30)) if unicodedata.category(sign)[0] == "M"
    ]
    ranges: list[list[str]] = []
    for sign in marks:
        if ranges and ord(sign) == ord(ranges[-1][1]) + 1:
            ranges[-1][1] = sign
        else:
            ranges.append([sign, sign])
    return "".join(f"{first}-{last}" for first, last in ranges)


MARKS = _marks()
HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
BY_TWO = HAN + "\u3041-\u3096\u309d-\u309f\uac00-\ud7a3"
"""Han, Hiragana, Hangul."""
BY_THREE = (
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e80-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf"
    "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081"
    "\u1780-\u17b3"
)
"""Katakana, Thai, Lao, Burmese, Khmer."""
UNIT = re.compile(rf"[{BY_TWO}{BY_THREE}][{MARKS}]*+")
RUN = re.compile(rf"(?P<two>(?:[{BY_TWO}][{MARKS}]*+)++)|(?:[{BY_THREE}][{MARKS}]*+)++")
LETTER = rf"(?:(?![{BY_TWO}{BY_THREE}])[\w{MARKS}])"
WORD = re.compile(rf"(?![{BY_TWO}{BY_THREE}])\w(?:{LETTER}|['’-])*")
COMMON_WORDS = """
a about after all an and any are as at be been between but by can could do does for from had has
have how i if in into is it its may not of on or our over should so such than that the their them
then there these they this those to under up use used using was we were what when where which while
who whom whose why will with would you your
"""
COMMON_RUNS = """
什么 什麼 怎么 怎麼 为什么 為什麼 如何 哪些 是否 以及 关于 關於 有关 有關 一个 一個
的 了 和 与 與 在 是 之
です ます とは から まで する した ある いる こと もの この その について による において
무엇 어떤 어떻게 대한 관한 그리고 에서 으로 การ ความ ของ และ เป็น
"""
STOP_WORDS = frozenset(COMMON_WORDS.split())
ENDINGS = ("ings", "ing", "ies", "ied", "es", "ed", "s", "y", "e")
TITLE_READ = 1000
LONGEST = 3
"""Letters of a piece."""


@dataclass(frozen=True)
class TitleTerms:
    """What is looked for: ``pattern`` finds words, and runs that may have some of the pieces."""

    pattern: re.Pattern[str] | None
    pieces: frozenset[str]

    def found(self, text: str) -> Iterator[tuple[int, int]]:
        """Where they are, in order, in one pass over the text."""
        for match in self.pattern.finditer(text) if self.pattern else ():
            if match.lastgroup == "run":
                yield from self._stretches(text, *match.span())
            else:
                yield match.span()

    def _stretches(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """What pieces cover of a run; where they touch or overlap they are one."""
        edges = [*(unit.start() for unit in UNIT.finditer(text, start, end)), end]
        begin = reach = 0
        for at, edge in enumerate(edges[:-1], start=1):
            ends = (to for to in edges[at : at + LONGEST] if text[edge:to] in self.pieces)
            furthest = max(ends, default=0)
            if furthest and edge > reach:
                if reach:
                    yield begin, reach
                begin = edge
            reach = max(reach, furthest)
        if reach:
            yield begin, reach


@lru_cache(maxsize=256)
def terms_of(title: str) -> TitleTerms:
    """The title's words with their near inflections, and its pieces, without the common ones."""
    title = title[:TITLE_READ]
    words = (word.casefold() for word in WORD.findall(title))
    stems = sorted({_stem(word) for word in words if word not in STOP_WORDS and len(word) > 1})
    pieces = frozenset(_pieces(title)) - COMMON_PIECES
    ways = [*_words(stems), *_runs(pieces)]
    return TitleTerms(re.compile("|".join(ways), re.IGNORECASE) if ways else None, pieces)


def _words(stems: list[str]) -> Iterator[str]:
    if stems:
        alternatives = "|".join(re.escape(stem) + _tail(stem) for stem in stems)
        yield rf"(?<!{LETTER})(?:{alternatives})(?!{LETTER})"


def _runs(pieces: frozenset[str]) -> Iterator[str]:
    """Letters of pieces one after the other, of which few are looked at more closely."""
    letters = {unit[0] for piece in pieces for unit in UNIT.findall(piece)}
    if letters:
        yield rf"(?P<run>(?:[{''.join(sorted(letters))}][{MARKS}]*+)++)"


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def _tail(stem: str) -> str:
    return LETTER + "{0,3}" if len(stem) >= 4 else "s?"


def _pieces(text: str) -> Iterator[str]:
    """Pieces of its runs, of two or three letters; a shorter run is one, if it means something."""
    for run in RUN.finditer(text):
        size = 2 if run["two"] else LONGEST
        units = UNIT.findall(run.group())
        if len(units) > 1 or re.match(f"[{HAN}]", units[0]):
            for at in range(max(1, len(units) - size + 1)):
                yield "".join(units[at : at + size])


COMMON_PIECES = frozenset(_pieces(COMMON_RUNS))

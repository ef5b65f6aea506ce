"""Texts on the judging page: paragraphs as meant, topic terms marked, everything escaped."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from judging.models import Topic

register = template.Library()


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


LETTER = rf"[\w{_marks()}]"
WORD = re.compile(rf"\w(?:{LETTER}|['’-])*")
COMMON_WORDS = """
a about after all an and any are as at be been between but by can could do does for from had has
have how i if in into is it its may not of on or our over should so such than that the their them
then there these they this those to under up use used using was we were what when where which while
who whom whose why will with would you your
"""
STOP_WORDS = frozenset(COMMON_WORDS.split())
ENDINGS = ("ings", "ing", "ies", "ied", "es", "ed", "s", "y", "e")
WRAPPED_LINE = 40
ARROWS = {"ArrowLeft": "←", "ArrowRight": "→"}
TITLE_READ = 1000
ROW = re.compile(r"\s*\|.*\|$|.*\S\t")
ITEM = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s")
INDENTED = re.compile(r"(?:\t| {2,})\S|\s*(?:>>>|\.\.\.) ")
SEEN = re.compile(
    r"[^\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""A sign that is drawn: no blank, nor what only joins, parts, turns or varies others."""


@dataclass(frozen=True)
class Passage:
    """A paragraph: ``prose`` may wrap anew, ``lines`` keeps its breaks, ``code`` all blanks."""

    kind: str
    html: SafeString


@register.filter
def key_name(key: str) -> str:
    """A key as keyboards show it."""
    return ARROWS.get(key, key)


@register.filter
def blocks(text: str, topic: Topic) -> Iterator[Passage]:
    """The text's paragraphs, with the words of the topic's title marked."""
    pattern = _pattern(topic.title)
    for lines in _paragraphs(text):
        kind = _kind(lines)
        shown = "\n".join(lines)
        yield Passage(kind, _marked(shown if kind == "code" else shown.strip(), pattern))


@register.filter
def marked(text: str, topic: Topic) -> SafeString:
    """One line of text, with the words of the topic's title marked."""
    return _marked(text, _pattern(topic.title))


def _paragraphs(text: str) -> Iterator[list[str]]:
    """The lines between blank lines; in one pass, as the text may be long and hostile."""
    for blank, lines in groupby(text.splitlines(), key=lambda line: not SEEN.search(line)):
        if not blank:
            yield [line.rstrip() for line in lines]


def _kind(lines: list[str]) -> str:
    if any(INDENTED.match(line) for line in lines[1:]) or lines[0].lstrip().startswith(">>>"):
        return "code"
    if len(lines) > 1 and all(map(ROW.match, lines)):
        return "code"
    wrapped = all(len(line) >= WRAPPED_LINE for line in lines[:-1])
    return "prose" if wrapped and not any(map(ITEM.match, lines[1:])) else "lines"


@lru_cache(maxsize=256)
def _pattern(title: str) -> re.Pattern[str] | None:
    """Finds the title's words and their near inflections; None if it has only stop words."""
    words = (word.casefold() for word in WORD.findall(title[:TITLE_READ]))
    stems = sorted({_stem(word) for word in words if word not in STOP_WORDS and len(word) > 1})
    if not stems:
        return None
    alternatives = "|".join(re.escape(stem) + _tail(stem) for stem in stems)
    return re.compile(rf"(?<!{LETTER})(?:{alternatives})(?!{LETTER})", re.IGNORECASE)


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def _tail(stem: str) -> str:
    return LETTER + "{0,3}" if len(stem) >= 4 else "s?"


def _marked(text: str, pattern: re.Pattern[str] | None) -> SafeString:
    if pattern is None:
        return conditional_escape(text)
    return mark_safe("".join(_pieces(text, pattern)))  # noqa: S308  (every piece is escaped)


def _pieces(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    end = 0
    for match in pattern.finditer(text):
        yield conditional_escape(text[end : match.start()])
        yield format_html("<mark>{}</mark>", match.group())
        end = match.end()
    yield conditional_escape(text[end:])

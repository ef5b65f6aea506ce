"""Texts on the judging page: paragraphs as meant, topic terms marked, everything escaped."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from judging.models import Topic
from judging.terms import TitleTerms, terms_of

register = template.Library()

WRAPPED_LINE = 40
ARROWS = {"ArrowLeft": "←", "ArrowRight": "→"}
ROW = re.compile(r"\s*\|.*\|$|.*\S\t")
ITEM = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s")
INDENTED = re.compile(r"(?:\t| {2,})\S|\s*(?:>>>|\.\.\.) ")
PIECE = 10_000
"""Characters of a passage at most: browsers lay one out in its length squared."""
PIECES = re.compile(
    rf".{{1,{PIECE}}}\Z|.{{1,{PIECE - 1}}}\n|.{{1,{PIECE - 1}}}[\s。]|.{{1,{PIECE}}}", re.DOTALL
)
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
def blocks(text: str, topic: Topic | None = None) -> Iterator[Passage]:
    """The text's paragraphs, with the words of the topic's title marked."""
    terms = terms_of(topic.title if topic else "")
    for lines in _paragraphs(text):
        kind = _kind(lines)
        for shown in PIECES.findall("\n".join(lines)):
            yield Passage(kind, _marked(shown.rstrip() if kind == "code" else shown.strip(), terms))


@register.filter
def marked(text: str, topic: Topic) -> SafeString:
    """One line of text, with the words of the topic's title marked."""
    return _marked(text, terms_of(topic.title))


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


def _marked(text: str, terms: TitleTerms) -> SafeString:
    return mark_safe("".join(_pieces(text, terms)))  # noqa: S308  (every piece is escaped)


def _pieces(text: str, terms: TitleTerms) -> Iterator[str]:
    end = 0
    for start, stop in terms.found(text):
        yield conditional_escape(text[end:start])
        yield format_html("<mark>{}</mark>", text[start:stop])
        end = stop
    yield conditional_escape(text[end:])

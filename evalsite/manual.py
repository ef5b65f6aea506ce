"""The documentation, served by the site itself: every page's "?" opens its chapter of the guide."""

import itertools
import posixpath
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(settings.BASE_DIR) / "docs"
PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
HEADINGS = ("h2", "h3")
CODE = ("fence", "code_block")
"""Between fences, or further in: formulas are written so."""


def page(request: HttpRequest, path: str) -> HttpResponseBase:
    """One file of docs/, as it is named there: only what stands in that folder can be asked for."""
    if path not in _files():
        raise Http404("No such page of the documentation.")
    kind = PICTURES.get(Path(path).suffix)
    if kind is not None:
        return FileResponse((ROOT / path).open("rb"), content_type=kind)
    title, contents, text = _rendered(path)
    context = {"title": title, "contents": contents, "text": text, "path": path}
    return render(request, "manual.html", context)


def start(request: HttpRequest) -> HttpResponseBase:
    return page(request, "guide.md")


@lru_cache(maxsize=1)
def _files() -> frozenset[str]:
    kinds = {".md", *PICTURES}
    files = (each for each in ROOT.rglob("*") if each.suffix in kinds and each.is_file())
    return frozenset(each.relative_to(ROOT).as_posix() for each in files)


@lru_cache(maxsize=64)
def _rendered(path: str) -> tuple[str, list[tuple[str, str]], SafeString]:
    """Its title, its chapters as (anchor, words), and the page as HTML.

    What Markdown would take for HTML is shown as text, and comments are left out.
    """
    source = re.sub(r"<!--.*?-->", "", (ROOT / path).read_text("utf-8"), flags=re.S)
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(source)
    headings = _anchored(tokens)
    _linked(tokens, path)
    title = next((words for tag, _, words in headings if tag == "h1"), path)
    contents = [(anchor, words) for tag, anchor, words in headings if tag in HEADINGS]
    made = markdown.renderer.render(_in_regions(tokens), markdown.options, {})
    return title, contents, mark_safe(made)  # noqa: S308  (our own files, their HTML escaped)


def _anchored(tokens: list[Token]) -> list[tuple[str, str, str]]:
    """Gives headings their anchors, as GitHub does, and (tag, anchor, words) of each."""
    found: list[tuple[str, str, str]] = []
    for token, inner in itertools.pairwise(tokens):
        if token.type == "heading_open":
            words = "".join(each.content for each in inner.children or [])
            token.attrSet("id", anchor(words))
            found.append((token.tag, anchor(words), words))
    return found


def _in_regions(tokens: list[Token]) -> list[Token]:
    """Tables and code in what scrolls, which keyboards must reach, and which has a name."""
    found: list[Token] = []
    numbers = itertools.count(1)
    for token in tokens:
        if token.type in ("table_open", *CODE):
            kind = "Code" if token.type in CODE else "Table"
            named = {"role": "region", "tabindex": "0", "aria-label": f"{kind} {next(numbers)}"}
            found.append(Token("region_open", "div", 1, attrs={"class": "table-wrap", **named}))
        found.append(token)
        if token.type in ("table_close", *CODE):
            found.append(Token("region_close", "div", -1))
    return found


def anchor(words: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")


def _linked(tokens: list[Token], path: str) -> None:
    """Links to files that are not served lose their address; columns of numbers get a class."""
    for token in tokens:
        style = str(token.attrs.pop("style", ""))
        if "right" in style:
            token.attrSet("class", "num")
        for inner in token.children or []:
            if inner.type == "link_open" and not _served(str(inner.attrs["href"]), path):
                del inner.attrs["href"]


def _served(address: str, path: str) -> bool:
    parts = urlsplit(address)
    if parts.scheme in ("http", "https") or not parts.path:
        return True
    there = posixpath.normpath(posixpath.join(posixpath.dirname(path), parts.path))
    return there in _files()

"""Text that is written from right to left, as assessors read it."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from playwright.sync_api import Page, expect

from estimation.charts.matrices import verdict_matrix
from judging.templatetags.assessing import Passage

pytestmark = [pytest.mark.services, pytest.mark.slow]

ARABIC, ENGLISH = "مرحبا بالعالم.", "Hello, world."


def passage(kind: str) -> str:
    """As the judging page has it, to be filled."""
    passages = [Passage(kind, mark_safe("{}"))]
    return str(render_to_string("judging/_text.html", {"passages": passages}))


def written(template: str, pattern: str, **values: str) -> str:
    """A part of a template, filled."""
    source = (Path(settings.BASE_DIR) / "templates" / template).read_text()
    found = re.search(pattern, source)
    assert found
    return re.sub(r"{{ (\S+) }}", lambda name: values.get(name[1].split(".")[-1], "{}"), found[0])


def styled(page: Page, content: str) -> None:
    page.set_content(content)
    for name in ("tokens", "base", "components", "assess"):
        page.add_style_tag(path=Path(settings.BASE_DIR) / f"static/css/{name}.css")


REPORT = "estimation/report_document.html"
PLACES = {
    "title of a topic": '<section class="desk-topic"><h1>{}</h1></section>',
    "its narrative": '<section class="desk-topic"><div class="prose"><p>{}</p></div></section>',
    "title of a document": '<div class="sheet"><h2>{}</h2></div>',
    "its text": f'<div class="sheet">{passage("prose")}</div>',
    "lines of it": f'<div class="sheet">{passage("lines")}</div>',
    "the page of a document": '<article class="prose reading"><h2>{}</h2></article>',
    "its text there": f'<article class="prose reading">{passage("prose")}</article>',
    "a grade": '<button class="grade-button"><span class="name">{}</span></button>',
    "what it means": '<button class="grade-button"><span class="meaning">{}</span></button>',
    "what it means in the guide": '<dl class="facts"><dd>{}</dd></dl>',
    "what it means in a report": written(REPORT, r"<td[^>]*>{{ grade.meaning }}</td>"),
    "a reason in a report": written(REPORT, r"<td[^>]*>{{ decision.reason }}</td>"),
    "a comment": '<blockquote class="prose">{}</blockquote>',
}
ENDS = """text => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  let node = walker.nextNode();
  while (node.data !== text) node = walker.nextNode();
  const place = (at) => {
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    return range.getBoundingClientRect().left;
  };
  return [place(0), place(text.length - 1)];
}"""


@pytest.mark.parametrize("place", PLACES)
def test_a_sentence_ends_on_the_side_to_which_it_is_read(page: Page, place: str) -> None:
    """Else the full stop of an Arabic one stands before its first word."""
    for text, leftwards in ((ARABIC, True), (ENGLISH, False)):
        shown = PLACES[place].format(text)
        in_table = f"<table><tr>{shown}</table>" if shown.startswith("<td") else shown
        styled(page, f"<html lang=en><main>{in_table}</main>")
        begin, end = page.evaluate(ENDS, text)
        assert (end < begin) == leftwards


def test_a_number_after_a_title_is_no_part_of_it(page: Page) -> None:
    heading = written("judging/norming_pair.html", r"<h1>.*?</h1>", title=ARABIC, topic_id="101")
    styled(page, f"<html lang=en><main>{heading}</main>")
    title, number = page.locator("h1 bdi").bounding_box(), page.locator("h1 span").bounding_box()
    assert title
    assert number
    assert title["x"] + title["width"] <= number["x"]


def test_the_stroke_before_the_name_of_a_campaign_is_no_part_of_it(page: Page) -> None:
    """It stood behind a Hebrew one."""
    styled(
        page,
        '<html lang=en><header class="site-head"><a class="brand"><span>evalsite</span></a>'
        f'<a class="where">{ARABIC}</a></header>',
    )
    sign = "(e, at) => getComputedStyle(e, at).content"
    assert "/" in page.locator(".brand").evaluate(sign, "::after")
    assert page.locator(".where").evaluate(sign, "::before") == "none"


def test_what_is_typed_begins_where_it_is_read_from(page: Page) -> None:
    """Where a field has a limit: of megabytes in one line a browser looks for minutes."""
    page.set_content(
        f'<textarea maxlength="9">{ARABIC}</textarea><input maxlength="9" value="{ARABIC}">'
        '<input type="number" maxlength="9"><textarea class="any"></textarea><input class="any">'
    )
    page.add_style_tag(path=Path(settings.BASE_DIR) / "static/css/components.css")
    for field in ("textarea[maxlength]", "input:not([type], .any)"):
        expect(page.locator(field)).to_have_css("unicode-bidi", "plaintext")
    for field in ("[type=number]", "textarea.any", "input.any"):
        expect(page.locator(field)).to_have_css("unicode-bidi", "normal")


def test_the_place_of_a_run_stands_beside_its_row(page: Page) -> None:
    """It stood before a Hebrew name, far from the row and next to a number of the name."""
    drawn = verdict_matrix(
        ["bm25", "\u05d7\u05d9\u05e4\u05d5\u05e9-1"], [[0, 0], [0, 0]], measure="AP"
    )
    page.set_content(render_to_string("charts/matrix.svg", {"chart": drawn}))
    ends = page.locator("svg svg:last-child text").evaluate_all(
        "rows => rows.map(e => [0, e.getNumberOfChars() - 1].map(n => e.getExtentOfChar(n).x))"
    )
    assert len(ends) == 2
    assert all(place > name for name, place in ends)


def test_long_prose_asks_no_line_for_the_direction_of_its_paragraph(page: Page) -> None:
    """Chromium looks for it from the first word on, for every line: seconds for 1 MB of text."""
    page.set_content(passage("prose"))
    page.add_style_tag(path=Path(settings.BASE_DIR) / "static/css/components.css")
    expect(page.locator(".text-prose")).not_to_have_css("unicode-bidi", "plaintext")

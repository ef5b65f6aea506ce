"""Text that is written from right to left, as assessors read it."""

from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Page

pytestmark = [pytest.mark.services, pytest.mark.slow]

ARABIC, ENGLISH = "مرحبا بالعالم.", "Hello, world."
PLACES = {
    "title of a topic": '<section class="desk-topic"><h1>{}</h1></section>',
    "its narrative": '<section class="desk-topic"><div class="prose"><p>{}</p></div></section>',
    "title of a document": '<div class="sheet"><h2>{}</h2></div>',
    "its text": '<div class="sheet"><div class="text-prose">{}</div></div>',
    "lines of it": '<div class="sheet"><div class="text-lines">{}</div></div>',
    "the page of a document": '<article class="prose reading"><h2>{}</h2></article>',
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
        page.set_content(f"<html lang=en><main>{PLACES[place].format(text)}</main>")
        for name in ("tokens", "base", "components", "assess"):
            page.add_style_tag(path=Path(settings.BASE_DIR) / f"static/css/{name}.css")
        begin, end = page.evaluate(ENDS, text)
        assert (end < begin) == leftwards

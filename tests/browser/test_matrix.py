"""The matrix of verdicts by pointer and keys: one stop of the Tab key, a link for every pair."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.html import escape
from playwright.sync_api import Page, expect

from estimation.charts import matrices

pytestmark = [pytest.mark.services, pytest.mark.slow]

TAGS = {count: [f"run <{n}> & more" for n in range(count)] for count in (5, 129)}


def shown(page: Page, count: int) -> None:
    """The drawing and the script of the page, without the site around them."""
    table: list[list[matrices.Verdict]] = [
        [(j - i >= 3) - (i - j >= 3) for j in range(count)] for i in range(count)
    ]
    table[0][count - 1] = table[count - 1][0] = None
    drawn = matrices.verdict_matrix(TAGS[count], table, measure="DCG@10")
    context = {"chart": drawn, "compare": "/compare/", "measure": "DCG@10"}
    rows = "".join(f"<tr><th>{escape(tag)}</th></tr>" for tag in TAGS[count])
    page.set_content(
        f'<figure><p class="cell-said" role="status"></p><div class="matrix-box">'
        f"{render_to_string('charts/matrix.svg', context)}</div></figure>"
        f"<div><table><tbody>{rows}</tbody></table></div>"
    )
    for name in ("tokens", "charts"):
        page.add_style_tag(path=Path(settings.BASE_DIR) / f"static/css/{name}.css")
    page.add_script_tag(path=Path(settings.BASE_DIR) / "static/js/matrix.js")


def pair(page: Page) -> tuple[int, int]:
    """The runs to which the link leads that has the focus."""
    asked = parse_qs(urlsplit(page.evaluate("document.activeElement.getAttribute('href')")).query)
    assert asked["measure"] == ["DCG@10"]
    (first,), (second,) = asked["first"], asked["second"]
    tags = TAGS[129]
    return tags.index(first), tags.index(second)


@pytest.mark.parametrize("count", [5, 129])
def test_arrows_go_from_cell_to_cell_past_the_diagonal(page: Page, count: int) -> None:
    shown(page, count)
    page.keyboard.press("Tab")
    assert pair(page) == (0, 1)
    last = count - 1
    for key, there in [
        ("ArrowDown", (2, 1)),  # nobody is compared with oneself
        ("ArrowRight", (2, 3)),
        ("ArrowLeft", (2, 1)),
        ("ArrowUp", (0, 1)),
        ("ArrowUp", (0, 1)),
        ("End", (0, last)),
        ("ArrowRight", (0, last)),
        ("PageDown", (min(10, last - 1), last)),
        ("Home", (min(10, last - 1), 0)),
    ]:
        page.keyboard.press(key)
        assert pair(page) == there, key
    row = min(10, last - 1)
    expect(page.locator(".cell-said")).to_contain_text(f"run <{row}> & more is surely worse than")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('svg')") is None, "one stop for all cells"


def test_the_link_is_where_the_pointer_is(page: Page) -> None:
    shown(page, 129)
    side = float(page.locator("a.cell").get_attribute("data-side") or 0)
    box = page.locator("rect.ground").bounding_box()
    assert box is not None
    link = page.locator("a.cell")
    for (row, column), said in {
        (3, 100): "run <3> & more is surely better than run <100> & more",
        (100, 3): "run <100> & more is surely worse than run <3> & more",
        (50, 51): "run <50> & more cannot be told from run <51> & more",
        (0, 128): "run <0> & more against run <128> & more: not known",
    }.items():
        page.mouse.move(box["x"] + side * (column + 0.5), box["y"] + side * (row + 0.5))
        expect(link).to_have_attribute("aria-label", said)
        expect(page.locator(".cell-said")).to_have_text(said)
    assert page.evaluate("document.querySelectorAll('a.cell:hover').length") == 1
    page.mouse.move(box["x"] + side * 7.5, box["y"] + side * 7.5)
    assert page.evaluate("document.querySelectorAll('a.cell:hover').length") == 0, "the diagonal"


def test_names_keep_their_room_beside_the_counts_on_a_phone(page: Page) -> None:
    """Long heads of numbers are broken, and not the names of runs."""
    heads = "".join(
        f'<th class="num">{name}</th>' for name in ("Better than", "Open", "Worse than")
    )
    row = '<th scope="row"><span>later.colbert</span></th>' + '<td class="num">13</td>' * 3
    page.set_viewport_size({"width": 390, "height": 844})
    page.set_content(
        f'<table class="verdicts"><thead><tr><th>Run</th>{heads}</tr></thead>'
        f"<tbody><tr>{row}</tr></tbody></table>"
    )
    for name in ("tokens", "base", "components", "charts"):
        page.add_style_tag(path=Path(settings.BASE_DIR) / f"static/css/{name}.css")
    lines = page.locator("tbody span").evaluate("name => name.getClientRects().length")
    assert lines == 1
    assert page.locator("table").evaluate("table => table.scrollWidth") <= 390

"""Small checks of a page as it stands in the browser."""

from playwright.sync_api import Page

NAMELESS = """() => {
  const shown = (e) => e.checkVisibility && e.checkVisibility() && e.type !== "hidden";
  const text = (e) => (e.checkVisibility() ? e.innerText ?? e.textContent : e.textContent).trim();
  const referred = (e, name) => (e.getAttribute(name) || "").split(/\\s+/).filter(Boolean)
    .map((id) => document.getElementById(id)).map((r) => r ? text(r) : "").join(" ").trim();
  const images = (e) => [...e.querySelectorAll("img[alt], svg")].map(
    (i) => i.getAttribute("alt") || i.getAttribute("aria-label") || text(i)).join("").trim();
  const label = (e) => e.getAttribute("aria-label") || referred(e, "aria-labelledby");
  const controls = [...document.querySelectorAll("input, select, textarea")].filter(shown)
    .filter((e) => !label(e) && ![...(e.labels || [])].some((l) => l.textContent.trim()));
  const pressed = [...document.querySelectorAll("button, a[href], summary")].filter(shown)
    .filter((e) => !label(e) && !text(e) && !images(e) && !e.title);
  const graphics = [...document.querySelectorAll("img")].filter((e) => !e.hasAttribute("alt"))
    .concat([...document.querySelectorAll("svg")].filter((e) => !e.parentElement.closest("svg"))
      .filter((e) => !e.closest("[aria-hidden=true]") && !label(e) && !e.querySelector("title")));
  return [...controls, ...pressed, ...graphics].map((e) => e.outerHTML.slice(0, 200));
}"""
UNREACHED = """() => {
  const scrolls = (e) => { const s = getComputedStyle(e), on = ["auto", "scroll"];
    return on.includes(s.overflowX) && e.scrollWidth > e.clientWidth + 1
      || on.includes(s.overflowY) && e.scrollHeight > e.clientHeight + 1; };
  const inside = "a[href], button, input, select, textarea, summary, [tabindex]";
  return [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && scrolls(e))
    .filter((e) => e.tabIndex < 0 && ![...e.querySelectorAll(inside)].some((i) => i.tabIndex >= 0))
    .map((e) => e.outerHTML.slice(0, 120));
}"""
BARE_HEADERS = """() => [...document.querySelectorAll("th")].filter((e) => e.checkVisibility())
  .filter((e) => { const copy = e.cloneNode(true);
    copy.querySelectorAll("[aria-hidden=true]").forEach((h) => h.remove());
    return !copy.textContent.trim() && !copy.querySelector("img[alt]:not([alt=''])"); })
  .map((e) => e.outerHTML.slice(0, 120))"""
LOW_BUTTONS = """() => [...document.querySelectorAll(".btn:not(.link)")]
  .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 36)
  .map((e) => e.outerHTML.slice(0, 120))"""
BEYOND = """() => [...document.querySelectorAll("td.actions :is(a, button)")]
  .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth)
  .map((e) => e.outerHTML.slice(0, 120))"""
BROKEN = """() => {
  const places = "button, .btn, nav a, h1, h2, h3, th, td, label, legend, dt, summary, .chip";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange(), found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode, around = node.parentElement;
    if (!around.closest(places) || !around.checkVisibility()) continue;
    if (around.getBoundingClientRect().width < 2) continue;  // for screen readers alone
    for (const word of node.data.matchAll(/(?<![\\w.{\\/-])[A-Za-z]{2,14}(?![\\w}\\/-])/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
      if (lines.size > 1) found.push(`${word[0]} in ${around.outerHTML.slice(0, 100)}`);
    }
  }
  return found;
}"""
UNSIGNED = """() => [...document.querySelectorAll("body *")]
  .filter((e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowY))
  .filter((e) => e.checkVisibility() && e.scrollHeight > e.clientHeight + 1)
  .filter((e) => e.querySelector("tr, li") && !e.matches("[popover], nav"))
  .filter((e) => getComputedStyle(e).backgroundImage === "none")
  .map((e) => e.outerHTML.slice(0, 120))"""
COVERED = """() => {
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  return [...document.querySelectorAll("svg.chart")].filter((e) => e.checkVisibility())
    .flatMap((chart) => {
      const texts = [...chart.querySelectorAll("text:not(.on)")]
        .map((e) => [e.textContent, e.getBoundingClientRect()]);
      const drawn = chart.matches(".history") ? [chart] : chart.querySelectorAll(".line, .band");
      const lines = [...drawn].map((e) => e.getBoundingClientRect());
      const over = texts.filter(([, box], n) => texts.slice(n + 1).some(([, b]) => meet(box, b))
        || lines.some((b) => meet(box, b)));
      return over.map(([words]) => `${words} in ${chart.getAttribute("aria-label")}`);
    });
}"""
APART = """() => [...document.querySelectorAll("table:has(svg.axis)")]
  .filter((e) => e.checkVisibility()).filter((table) => {
    const ends = (e) => { const box = e.getBoundingClientRect(); return [box.left, box.right]; };
    const axis = ends(table.querySelector("svg.axis"));
    return [...table.querySelectorAll("td svg.chart")].filter((row) => row.checkVisibility())
      .some((row) => ends(row).some((end, n) => Math.abs(end - axis[n]) > 2));
  }).map((e) => e.outerHTML.slice(0, 120))"""
SPILLED = """() => [...document.querySelectorAll(".chip, .btn")].filter((e) => e.checkVisibility())
  .filter((e) => { const around = e.parentElement.closest("td, th, li, dd, p, div, section, body");
    return getComputedStyle(around).overflowX === "visible"
      && e.getBoundingClientRect().right > around.getBoundingClientRect().right + 1; })
  .map((e) => e.outerHTML.slice(0, 120))"""
SIDEWAYS = """() => {
  const page = document.scrollingElement, width = page.clientWidth;
  if (page.scrollWidth <= width) return [];
  const own = (e) => { for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
    if (getComputedStyle(p).overflowX !== "visible") return true;
    return false; };
  const out = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !own(e))
    .filter((e) => e.getBoundingClientRect().right + scrollX > width + 1);
  return (out.length ? out : [page]).slice(0, 3).map((e) => e.outerHTML.slice(0, 120));
}"""
OVERRUN = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange(), found = [];
  while (walker.nextNode()) {
    const text = walker.currentNode;
    let around = text.parentElement;
    if (!text.data.trim() || !around.checkVisibility()) continue;
    if (around.closest("svg, option, pre")) continue;  // code scrolls with what is around it
    while (["inline", "contents"].includes(getComputedStyle(around).display))
      around = around.parentElement;
    const box = around.getBoundingClientRect();
    if (box.width < 2 || getComputedStyle(around).overflowX !== "visible") continue;
    range.selectNodeContents(text);
    if ([...range.getClientRects()].some((each) => each.right > box.right + 1))
      found.push(`${text.data.trim().slice(0, 60)} in ${around.outerHTML.slice(0, 60)}`);
  }
  return found;
}"""
HEADINGS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((e) => e.checkVisibility()).map((e) => Number(e.tagName[1]))"""


def nameless(page: Page) -> list[str]:
    """Controls, links and pictures that a screen reader could not name."""
    return list(page.evaluate(NAMELESS))


def unreached(page: Page) -> list[str]:
    """What scrolls, but not by the keyboard."""
    return list(page.evaluate(UNREACHED))


def bare_headers(page: Page) -> list[str]:
    """Headers of tables that say nothing."""
    return list(page.evaluate(BARE_HEADERS))


def low_buttons(page: Page) -> list[str]:
    """Buttons that a thumb misses."""
    return list(page.evaluate(LOW_BUTTONS))


def beyond(page: Page) -> list[str]:
    """What can be done with a line of a table, but only by whoever scrolls it sideways."""
    return list(page.evaluate(BEYOND))


def broken_words(page: Page) -> list[str]:
    """Short words of headings, buttons and the like that go on in the next line."""
    return list(page.evaluate(BROKEN))


def unsigned(page: Page) -> list[str]:
    """Lists that hide a part of themselves, without a sign that they scroll."""
    return list(page.evaluate(UNSIGNED))


def covered_labels(page: Page) -> list[str]:
    """Labels of charts that stand on one another, or on what is drawn; in a panel, anywhere."""
    return list(page.evaluate(COVERED))


def apart(page: Page) -> list[str]:
    """Tables of plots whose axis is not as wide as their rows, or stands elsewhere."""
    return list(page.evaluate(APART))


def spilled(page: Page) -> list[str]:
    """Chips and buttons that stick out of what they stand in, maybe over its neighbor."""
    return list(page.evaluate(SPILLED))


def sideways(page: Page) -> list[str]:
    """What is wider than the window, and scrolls not in a box of its own but with the page."""
    return list(page.evaluate(SIDEWAYS))


def overrun(page: Page) -> list[str]:
    """Words that run out of what they stand in, over what is beside it."""
    return list(page.evaluate(OVERRUN))


def heading_problems(page: Page) -> list[str]:
    """One first heading, and no level left out on the way down."""
    levels = page.evaluate(HEADINGS)
    found = [] if levels.count(1) == 1 else [f"{levels.count(1)} headings of level 1"]
    steps = zip([0, *levels], levels, strict=False)
    return found + [
        f"level {after} after {before}" for before, after in steps if after > before + 1
    ]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the screen that was asked for.

    On a phone `innerWidth` grows with what does not fit.
    """
    if page.viewport_size is None:
        raise ValueError("the page has no size of its own")
    return int(page.evaluate("document.documentElement.scrollWidth")) - page.viewport_size["width"]

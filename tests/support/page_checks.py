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


def heading_problems(page: Page) -> list[str]:
    """One first heading, and no level left out on the way down."""
    levels = page.evaluate(HEADINGS)
    found = [] if levels.count(1) == 1 else [f"{levels.count(1)} headings of level 1"]
    steps = zip([0, *levels], levels, strict=False)
    return found + [
        f"level {after} after {before}" for before, after in steps if after > before + 1
    ]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))

"""Small checks of a page as it stands in the browser."""

from playwright.sync_api import Page

NAMELESS = """() => {
  const shown = (e) => e.checkVisibility && e.checkVisibility() && e.type !== "hidden";
  const text = (e) => (e.innerText || e.textContent || "").trim();
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
HEADINGS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((e) => e.checkVisibility()).map((e) => Number(e.tagName[1]))"""


def nameless(page: Page) -> list[str]:
    """Controls, links and pictures that a screen reader could not name."""
    return list(page.evaluate(NAMELESS))


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

"""axe-core in a page of the browser: what would keep people out who use other means than most."""

from functools import cache
from importlib.resources import files

from playwright.sync_api import Page

BLOCKING = ("critical", "serious", "moderate")
RUN = """async () => {
  const found = await axe.run(document, {
    preload: false, resultTypes: ["violations"], elementRef: false,
  });
  return found.violations.flatMap((rule) => rule.nodes.map((node) => [
    node.impact || rule.impact, rule.id, node.target.join(" "), node.html.slice(0, 160),
    (node.any[0] || node.all[0] || node.none[0] || rule).message || rule.help,
  ]));
}"""


@cache
def source() -> str:
    """axe-core as the Python package brings it; nothing is loaded from elsewhere."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Page) -> list[str]:
    """What is critical, serious or moderate on the page as it stands."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(source())
    return [" | ".join(map(str, each)) for each in page.evaluate(RUN) if each[0] in BLOCKING]

"""When Chromium painted the page that is open, and how far what stood there was moved since."""

from dataclasses import dataclass

from playwright.sync_api import Page

ASK = """async () => {
  const told = { "first-paint": 0, "first-contentful-paint": 0, largest: 0, shift: 0 };
  const observe = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take))
    .observe({ type, buffered: true });
  observe("paint", (each) => { told[each.name] = each.startTime; });
  observe("largest-contentful-paint", (each) => { told.largest = each.startTime; });
  observe("layout-shift", (each) => { if (!each.hadRecentInput) told.shift += each.value; });
  for (let frame = 0; frame < 3 || (frame < 300 && !told["first-contentful-paint"]); frame++)
    await new Promise(requestAnimationFrame);
  return told;
}"""
SHIFTED = 0.1
"""From here on people notice: text moves away that they read, a button from under their hand."""


@dataclass(frozen=True)
class Painted:
    """Milliseconds since the page was asked for; ``shift`` is the sum of all layout shifts."""

    first: float
    contentful: float
    largest: float
    shift: float


def painted(page: Page) -> Painted:
    """The page must be in sight: Chromium tells no paints of others."""
    told = page.evaluate(ASK)
    return Painted(
        told["first-paint"], told["first-contentful-paint"], told["largest"], told["shift"]
    )

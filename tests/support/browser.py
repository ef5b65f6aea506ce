"""Chromium for tests: the system's, or the one playwright installed."""

import shutil
from pathlib import Path

from playwright.sync_api import ConsoleMessage, Page, Playwright

MISSING = "Chromium is not installed (apt-get install chromium)"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
TELL_VIOLATIONS = """document.addEventListener("securitypolicyviolation", (violation) =>
  console.error(`CSP violation: ${violation.violatedDirective} ${violation.blockedURI}`));"""


def executable(playwright: Playwright) -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found and "snap" not in str(Path(found).resolve()):
        return found
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else found


def watch(page: Page, errors: list[str]) -> None:
    """Collects console errors, uncaught exceptions and CSP violations of the page."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(f"{page.url}: {message.text} ({message.location.get('url', '')})")

    page.on("console", on_console)
    page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
    page.add_init_script(TELL_VIOLATIONS)

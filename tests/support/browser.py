"""Chromium for tests: the system's, or the one playwright installed."""

import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    WebError,
)

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
    """The system's, else Playwright's own. The shell has no windows, whose toolbars are pages too:
    a context costs a fifth of the time in it."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found and "snap" not in str(Path(found).resolve()):
        return found
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else found


class Watched:
    """A browser of which every page is watched, whoever opens it: console errors, uncaught
    exceptions and violations of the content security policy end up in ``errors``."""

    def __init__(self, running: Browser, errors: list[str]) -> None:
        self.running = running
        self.errors = errors
        self.opened: list[BrowserContext] = []

    def new_context(self, **options: Any) -> BrowserContext:
        context = self.running.new_context(**options)
        self.opened.append(context)
        context.on("console", self._console)
        context.on("weberror", lambda found: self.errors.append(f"{_place(found)}: {found.error}"))
        context.add_init_script(TELL_VIOLATIONS)
        return context

    def new_page(self, **options: Any) -> Page:
        return self.new_context(**options).new_page()

    def close(self) -> None:
        for context in self.opened:
            context.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(
                f"{_place(message)}: {message.text} ({message.location.get('url', '')})"
            )


def _place(told: ConsoleMessage | WebError) -> str:
    return told.page.url if told.page else "a page that is gone"

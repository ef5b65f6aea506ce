"""A site with the demo campaign, for tests that look at its pages."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.site import Site
from tests.support.up import loaded_demo

DEMO = "python-functions"
DEMO_PASSWORD = "evalsite-demo"

expect.set_options(timeout=60_000)  # a busy machine takes longer than the default of 5 s


@pytest.fixture(scope="module")
def demo() -> Iterator[Site]:
    """One for all tests of a file, as what is judged in one changes the numbers of another."""
    site = Site("sqlite", like=loaded_demo())
    try:
        yield site.start()
    finally:
        site.stop()


def sign_in(page: Page, site: Site, username: str, password: str = DEMO_PASSWORD) -> None:
    page.goto(f"{site.url}/sign-in/")
    page.get_by_label("User name").fill(username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/")

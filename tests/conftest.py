"""Fixtures that every test may use, and the two modes of a run: PostgreSQL, and skips forbidden."""

import gc
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test import TransactionTestCase
from hypothesis import settings as hypothesis_settings
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support import browser, postgres, site, tables
from tests.support.browser import Watched
from tests.support.kept import Kept, keeping
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer
from tests.support.site import Site

FORBID_SKIPS = bool(os.environ.get("EVALSITE_FORBID_SKIPS"))
ON_POSTGRES = os.environ.get("EVALSITE_TEST_DATABASE") == "postgres"
DATA = Path(os.environ.get("EVALSITE_TEST_DATA") or site.REPO.parent / "shared" / "data")
NOT_ON_POSTGRES = {Path(__file__).parent / name for name in ("browser", "core", "formats")}
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_reset_sequences"}

hypothesis_settings.register_profile("local", deadline=None)
hypothesis_settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis_settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Names that all xdist workers agree on: gzip puts the time of day into its bytes."""
    return argname if isinstance(val, bytes) and len(val) > 16 else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Ten thousand tests and their modules stay: no later search for garbage goes through them.

    Later it is looked for less often than every 700 objects, which took a thirtieth of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On PostgreSQL only what uses the database: everything else runs under SQLite.

    Files that take long come first, or one process would be busy with one when the others are done.
    """
    if ON_POSTGRES:
        chosen = [item for item in items if _uses_database(item)]
    else:
        chosen = [item for item in items if item.get_closest_marker("postgres_only") is None]
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = sorted(chosen, key=_late(chosen))


def _late(items: list[pytest.Item]) -> Callable[[pytest.Item], float]:
    """Files that start servers by turns with others in which something is slow, then the rest.

    The former wait for much of their time: side by side they would leave cores with nothing to do.
    """
    marks = ("services", "slow")
    first, then = ([i.path for i in items if i.get_closest_marker(mark)] for mark in marks)
    serving = list(dict.fromkeys(first))
    others = [path for path in dict.fromkeys(then) if path not in set(serving)]
    turns = {path: 2 * turn for turn, path in enumerate(serving)}
    turns |= {path: 2 * turn + 1 for turn, path in enumerate(others)}
    return lambda item: turns.get(item.path, math.inf)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """The core and the formats know no database (import contracts); browsers look at sites."""
    return True if ON_POSTGRES and collection_path in NOT_ON_POSTGRES else None


def _uses_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    marked = item.get_closest_marker("django_db") is not None or fixtures & DATABASE_FIXTURES
    if item.get_closest_marker("services"):
        return False
    sqlite_only = item.get_closest_marker("sqlite_only") and not item.get_closest_marker("on_both")
    return bool(marked) and not sqlite_only


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[pytest.TestReport]:
    report = yield
    if FORBID_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and skips are forbidden here: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[pytest.CollectReport]:
    report = yield
    if FORBID_SKIPS and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, and skips are forbidden here: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """The database of the tests is there already (and goes with the folder, or the cluster)."""
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """It is a copy of one that the migrations made once in the run."""
    if ON_POSTGRES:
        tables.copy_in_cluster(connection.creation._get_test_db_name())
    else:
        tables.copy_file(Path(connection.creation._get_test_db_name()))


@pytest.fixture(scope="session", autouse=True)
def _emptied_again() -> Iterator[None]:
    """After each test that commits."""

    def empty(_: TransactionTestCase) -> None:
        tables.empty()

    with mock.patch.object(TransactionTestCase, "_fixture_teardown", empty):
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The test collections: Cranfield, TREC-8 and others."""
    if not DATA.is_dir():
        pytest.skip(f"no test collections in {DATA} (set EVALSITE_TEST_DATA)")
    return DATA


@pytest.fixture
def kept(db: None) -> Iterator[Kept]:
    """``kept(name, make)`` for fixtures: what many tests begin with is made once, then put back."""
    with keeping() as states:
        yield states


@pytest.fixture
def on_paper(settings: Any) -> None:
    """Reports are made as PDF too, as on any site; the settings of the tests leave that out."""
    settings.REPORT_PDF = True


@pytest.fixture(scope="session", name="postgres")
def _postgres() -> Iterator[Postgres]:
    if postgres.bin_dir() is None:
        pytest.skip(postgres.MISSING)
    cluster = Postgres()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    yield from _redis()


@pytest.fixture(scope="module")
def _site_redis() -> Iterator[RedisServer]:
    yield from _redis()


def _redis() -> Iterator[RedisServer]:
    try:
        server = RedisServer()
    except RuntimeError as missing:
        pytest.skip(str(missing))
    try:
        server.start()
        yield server
    finally:
        server.stop()


MakeSite = Callable[..., Site]


@pytest.fixture(scope="module")
def make_site(request: pytest.FixtureRequest) -> Iterator[MakeSite]:
    """``make_site(stack, workers=1, env={})``: a started Site, stopped with the module.

    With ``start=False`` only what it needs is there: its data folder, its database, its broker.
    """
    made: list[Site] = []

    def make(
        stack: str,
        *,
        workers: int = 1,
        processes: int = 1,
        env: dict[str, str] | None = None,
        start: bool = True,
    ) -> Site:
        services = {}
        if stack == "postgres":
            services["postgres"] = request.getfixturevalue("postgres")
            services["redis"] = request.getfixturevalue("_site_redis")
        new = Site(stack, workers=workers, processes=processes, env=env, **services)
        made.append(new)
        return new.start() if start else new

    try:
        yield make
    finally:
        for each in made:
            each.stop()


@pytest.fixture(scope="module")
def sqlite_site(make_site: MakeSite) -> Site:
    return make_site("sqlite")


@pytest.fixture(scope="module")
def postgres_site(make_site: MakeSite) -> Site:
    return make_site("postgres")


@pytest.fixture(scope="module", params=["sqlite", "postgres"], name="site")
def _site(request: pytest.FixtureRequest) -> Site:
    """The same test on both stacks."""
    started: Site = request.getfixturevalue(f"{request.param}_site")
    return started


@pytest.fixture(scope="session")
def _chromium() -> Iterator[Browser]:
    # Playwright keeps an event loop in this thread; Django must not take it for an async view.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        program = browser.executable(playwright)
        if program is None:
            pytest.skip(browser.MISSING)
        running = playwright.chromium.launch(executable_path=program, args=browser.ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def console_errors() -> list[str]:
    """What went wrong in pages so far; a test that provokes errors takes them out."""
    return []


@pytest.fixture
def chromium(_chromium: Browser, console_errors: list[str]) -> Iterator[Watched]:
    """All pages of it must stay without console errors and CSP violations."""
    watched = Watched(_chromium, console_errors)
    yield watched
    watched.close()
    assert not console_errors, "\n".join(console_errors)


@pytest.fixture
def page(chromium: Watched) -> Page:
    context = chromium.new_context(locale="en-US", viewport={"width": 1280, "height": 800})
    context.set_default_timeout(60_000)
    return context.new_page()

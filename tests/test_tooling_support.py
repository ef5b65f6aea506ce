"""The test bed itself: both stacks start, answer, are killed and come back."""

from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from playwright.sync_api import Page

from evalsite.management import diagnosis
from tests.conftest import MakeSite
from tests.support.browser import Watched
from tests.support.crowd import supervise
from tests.support.redis import RedisServer
from tests.support.site import PASSWORD, Site
from tests.test_tooling_doctor import doctor


def test_a_test_run_has_a_data_directory_of_its_own() -> None:
    assert Path(settings.DATA_DIR).name.startswith("evalsite-tests-")


@pytest.mark.slow
@pytest.mark.django_db
def test_the_database_is_the_one_asked_for() -> None:
    from tests.conftest import ON_POSTGRES

    assert connection.vendor == ("postgresql" if ON_POSTGRES else "sqlite")


@pytest.mark.services
def test_of_a_running_site_the_doctor_finds_that_all_is_right(site: Site) -> None:
    supervise(site)
    site.wait_ready()
    code, found = doctor(site.env)
    assert code == 0
    assert {name for name, status in found.items() if status != diagnosis.OK} == set()
    assert ("Redis persistence" in found) == (site.stack == "postgres")


@pytest.mark.services
def test_web_and_worker_come_back_after_a_kill(site: Site) -> None:
    assert site.api().get("/health/live").json() == {"status": "ok"}
    site.web.kill()
    assert not site.ready()
    site.web.start()
    site.wait_ready()
    site.workers[0].restart()
    site.workers[0].kill_child()
    site.wait_ready()


@pytest.mark.services
def test_a_site_is_not_ready_because_another_server_answers_on_its_port(
    sqlite_site: Site, make_site: MakeSite
) -> None:
    waiting = make_site("sqlite", start=False)
    waiting.url = sqlite_site.url
    assert sqlite_site.ready()
    assert not waiting.ready()


@pytest.mark.services
def test_people_of_a_site_have_keys_and_passwords(site: Site) -> None:
    keys = site.add_users("anna", "ben", organizer=True)
    assert set(keys) == {"anna", "ben"}
    code = f"""
from judging.models import User
anna = User.objects.get(username="anna")
print(anna.is_organizer, anna.check_password({PASSWORD!r}))
"""
    assert site.python(code).split() == ["True", "True"]


@pytest.mark.services
def test_redis_keeps_what_it_acknowledged(redis_server: RedisServer) -> None:
    redis_server.client().set("kept", "yes")
    redis_server.restart()
    assert redis_server.client().get("kept") == b"yes"


@pytest.mark.services
def test_the_page_notices_script_errors_and_csp_violations(
    page: Page, console_errors: list[str]
) -> None:
    page.route(
        "http://watched.test/",
        lambda route: route.fulfill(
            body="<script>1</script><p>text",
            content_type="text/html",
            headers={"content-security-policy": "default-src 'none'"},
        ),
    )
    page.goto("http://watched.test/")
    assert page.inner_text("p") == "text"
    assert any("CSP violation: script-src" in error for error in console_errors)
    console_errors.clear()
    with page.expect_event("pageerror"):
        page.evaluate("setTimeout(() => { throw new Error('seen') })")
    assert any("seen" in error for error in console_errors)
    console_errors.clear()


@pytest.mark.services
@pytest.mark.parametrize("opens", ["new_page", "new_context"])
def test_every_page_that_a_test_opens_is_watched(
    chromium: Watched, console_errors: list[str], opens: str
) -> None:
    made = getattr(chromium, opens)()
    page = made if isinstance(made, Page) else made.new_page()
    page.evaluate("console.error('seen')")
    assert [each for each in console_errors if "seen" in each]
    console_errors.clear()

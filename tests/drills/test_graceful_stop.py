"""SIGTERM under load: every request has an answer, or is refused before it was taken."""

import signal
import time
from collections.abc import Iterator

import pytest

from tests.conftest import MakeSite
from tests.core.length import bounded
from tests.support.crowd import Organizer, got
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer
from tests.support.site import Site
from tests.support.stopping import CUT, REFUSED, Outcomes, load
from tests.support.topology import NGINX, NGINX_MISSING, Embedded, Production

pytestmark = [pytest.mark.services, pytest.mark.slow]
CLIENTS = bounded(16, 40)  # more than there are threads


@pytest.fixture
def production(postgres: Postgres, redis_server: RedisServer) -> Iterator[Production]:
    if NGINX is None:
        pytest.skip(NGINX_MISSING)
    site = Production(postgres=postgres, redis=redis_server)
    try:
        yield site.start()
    finally:
        site.stop()


@pytest.fixture
def up() -> Iterator[Embedded]:
    site = Embedded()
    try:
        site.start()
        yield site
    finally:
        site.stop()


def stopped_under_load(site: Production | Embedded) -> Outcomes:
    key = site.add_users("ann")["ann"]
    with load(site.url, key, CLIENTS) as outcomes:
        while outcomes.answered < 5 * CLIENTS:
            time.sleep(0.01)
        assert site.web.stop() == 0
        time.sleep(0.3)  # what comes afterwards
    print(outcomes.counts)
    return outcomes


def test_behind_the_proxy_everybody_has_an_answer(production: Production) -> None:
    outcomes = stopped_under_load(production)

    assert set(outcomes.counts) == {200, 503}
    assert outcomes.without_time == 0


def test_of_up_nobody_is_cut_off(up: Embedded) -> None:
    outcomes = stopped_under_load(up)

    assert outcomes.counts[CUT] == 0
    assert set(outcomes.counts) <= {200, 503, REFUSED}


JOB = """
from judging.models import Job
from judging.services import jobs
job = Job.objects.get(kind="upload")
print(job.state, job.attempts, Job.objects.filter(jobs.due(), pk=job.pk).exists())
"""


def state_of_the_job(site: Site) -> list[str]:
    return site.python(JOB).split()


@pytest.fixture
def reading(make_site: MakeSite, request: pytest.FixtureRequest) -> Site:
    """A site whose worker has begun to read a long file."""
    site = make_site(request.param)
    organizer = Organizer(site, site.api(site.add_users("olga", organizer=True)["olga"]), "stop")
    organizer.create()
    rows = (f'{{"docno": "d{n}", "text": "{"words of it " * 40}"}}\n' for n in range(40_000))
    upload = organizer.send({"docs.jsonl": "".join(rows).encode()}, "documents")[0]
    path = f"{organizer.base}uploads/{upload}/"
    site.wait_until(
        lambda: got(organizer.api.get(path))["state"] == "reading", what="the file is being read"
    )
    return site


@pytest.mark.parametrize("reading", ["sqlite", "postgres"], indirect=True)
def test_a_worker_that_must_end_at_once_gives_its_job_back(reading: Site) -> None:
    """Whoever comes next can begin at once, and what was broken off counts as no failure."""
    worker = reading.workers[0]
    worker.signal(signal.SIGQUIT)
    assert worker.process is not None
    worker.process.wait(60)

    assert state_of_the_job(reading) == ["queued", "0", "True"]

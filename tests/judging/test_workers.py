"""What waits because no worker serves its queue is explained where it waits."""

import html
import re
import socket

import pytest
from django.test import Client
from django.urls import reverse

from evalsite.administration import overviews
from evalsite.management import diagnosis
from judging import workers
from judging.clock import seconds_from_now
from judging.models import Campaign, WorkerHeartbeat
from judging.services import steward
from tests.support import factories

pytestmark = pytest.mark.django_db
NONE, LACK = "No worker is alive", "No worker serves the queue “{}”"
BOTH = "celery,uploads"


@pytest.fixture
def campaign() -> Campaign:
    return factories.campaign(topics=1)


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def said(client: Client, name: str, *args: object) -> str:
    page = client.get(reverse(name, args=args)).content.decode()
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())


@pytest.mark.parametrize(
    ("heartbeats", "uploads", "recomputes"),
    [
        ([], NONE, NONE),
        (["celery"], LACK, ""),
        (["uploads"], "", LACK),
        (["celery", "celery,other"], LACK, ""),
        (["uploads,celery"], "", ""),
        (["celery", "uploads"], "", ""),
        (["celery", ""], "", ""),  # one from before workers said what they serve
        (["uploads2"], LACK, LACK),
    ],
)
def test_a_queue_is_served_by_a_worker_that_says_so(
    heartbeats: list[str], uploads: str, recomputes: str
) -> None:
    for n, queues in enumerate(heartbeats):
        steward.beat(f"worker {n}", queues)

    assert workers.serving("upload").missing == uploads.format("uploads")
    assert workers.serving("recompute").missing == recomputes.format("celery")
    assert len(workers.unserved()) == bool(uploads) + bool(recomputes)


def test_a_worker_that_fell_silent_serves_nothing() -> None:
    steward.beat("reader", BOTH)
    WorkerHeartbeat.objects.update(seen="2020-01-01T00:00:00Z")
    steward.beat("worker", "celery")

    assert workers.serving("upload").missing == LACK.format("uploads")


def test_a_worker_of_a_clock_that_was_ahead_does_not_live_until_then() -> None:
    steward.beat("reader", BOTH)
    WorkerHeartbeat.objects.update(seen=seconds_from_now(86_400))

    assert workers.alive() == 0
    assert workers.serving("upload").missing == NONE
    assert [worker.alive for worker in overviews.work().workers] == [False]

    steward.beat("worker", BOTH)
    assert WorkerHeartbeat.objects.count() == 1


def test_a_worker_started_anew_with_other_queues_says_the_new_ones() -> None:
    steward.beat("worker", "celery")
    steward.beat("worker", BOTH)

    assert workers.unserved() == []


def test_workers_of_before_are_forgotten_where_a_site_starts_and_nowhere_else() -> None:
    for name in (f"{socket.gethostname()}:1", f"{socket.gethostname()}:77", "elsewhere:1"):
        steward.beat(name, BOTH)

    steward.forget_those_of_this_machine()

    assert list(WorkerHeartbeat.objects.values_list("name", flat=True)) == ["elsewhere:1"]


@pytest.mark.slow
def test_an_upload_that_waits_for_a_reader_says_so(campaign: Campaign, organizer: Client) -> None:
    upload = factories.stored(campaign, b"{}\n", name="d.jsonl", kind="documents")
    pages = [("material", campaign.slug), ("upload-detail", campaign.slug, upload.pk)]
    steward.beat("worker", "celery")
    told = f"{LACK.format('uploads')}, so"
    mend = "celery -A evalsite worker --queues uploads,celery"

    for page in (*pages, ("upload-list", campaign.slug)):
        assert told in said(organizer, *page)
        assert mend in said(organizer, *page)
    for page in (("campaign-home", campaign.slug), ("home",)):
        assert f"{LACK.format('uploads')}: files are not read" in said(organizer, *page)
        assert NONE not in said(organizer, *page)
    seen = organizer.get(reverse("material", args=[campaign.slug])).context["token"]
    steward.beat("reader", "uploads")

    listed = organizer.get(reverse("upload-list", args=[campaign.slug]), {"seen": seen})
    assert listed.status_code == 200  # a page that waits is told
    for page in (*pages, ("campaign-home", campaign.slug), ("home",)):
        assert "No worker" not in said(organizer, *page)


def test_numbers_that_wait_for_a_worker_are_no_matter_of_uploads(
    campaign: Campaign, organizer: Client
) -> None:
    factories.stored(campaign, b"{}\n", name="d.jsonl", kind="documents")
    steward.beat("reader", "uploads")

    assert "No worker" not in said(organizer, "material", campaign.slug)
    home = said(organizer, "campaign-home", campaign.slug)
    assert f"{LACK.format('celery')}: nothing is drawn or computed" in home


def test_health_and_doctor_name_the_queue_that_nobody_serves() -> None:
    def answers() -> tuple[int, str, list[diagnosis.Diagnosis]]:
        ready = Client().get("/health/ready")
        return (
            ready.status_code,
            ready.json()["checks"]["worker"],
            list(diagnosis.CHECKS["Worker"]()),
        )

    steward.beat("worker", "celery")
    status, check, [finding] = answers()
    assert status == 503
    assert LACK.format("uploads") in check
    assert finding.status == diagnosis.WARNING
    assert finding.seen == f"{LACK.format('uploads')}: files are not read"
    assert "--queues uploads,celery" in finding.mend

    steward.beat("reader", "uploads")
    _, check, [finding] = answers()
    assert (check, finding.status) == ("ok", diagnosis.OK)

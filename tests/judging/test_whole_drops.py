"""What is done to all files of a drop at once: taken in, dismissed; checks are no open tasks."""

import io
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from estimation.next_step import next_step
from estimation.overview import attention
from estimation.situation import Situation
from judging import cards, drops
from judging.clock import seconds_from_now
from judging.models import AuditEntry, Campaign, Job, Upload
from judging.selectors import CANCELED
from judging.services import jobs, taking_in, uploads
from tests.support import evaluation, factories, rest
from tests.support.pages import address, text
from tests.support.races import Other, at_once

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

TOPICS = ("mine.tsv", b"t1\tA title\n")
RUNS = [(f"r{n}.run", f"t1 Q0 d{n} 1 2.0 r{n}\n".encode()) for n in (1, 2)]
ODD = ("odd.run", b"t1 Q0 d1 9 2.0 odd\nt1 Q0 d2 1 1.0 odd\n")
BAD = ("bad.run", b"t1 Q0 d1 1 2.0 bad\nt1 Q0 d1 2 1.0 bad\n")


@pytest.fixture
def campaign() -> Campaign:
    return factories.campaign(topics=0, slug="empty")


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def read_all() -> None:
    """Runs have waited for the topics."""
    for _ in range(2):
        factories.run_due_jobs()
        Job.objects.update(due=seconds_from_now(-1))


def dropped(
    client: Client, campaign: Campaign, *files: tuple[str, bytes], check_only: bool = True
) -> str:
    """Runs come before the topics, which the worker meets last."""
    given = [io.BytesIO(content) for _, content in files]
    for each, (name, _) in zip(given, files, strict=True):
        each.name = name
    body = {"given": given} | ({"check_only": "on"} if check_only else {})
    client.post(reverse("material", args=[campaign.slug]), body)
    read_all()
    return campaign.uploads.latest("pk").drop


def states(campaign: Campaign) -> dict[str, str]:
    return dict(campaign.uploads.exclude(file="none").values_list("name", "state"))


def take_in(client: Client, campaign: Campaign, drop: str) -> str:
    page = client.post(reverse("drop-take-in", args=[campaign.slug, drop]), follow=True)
    return text(page)


def test_a_check_that_failed_is_no_open_task(campaign: Campaign, organizer: Client) -> None:
    evaluation.worker_alive()
    dropped(organizer, campaign, TOPICS, BAD)
    assert states(campaign)["bad.run"] == "rejected"
    facts = Situation(campaign)
    assert not [each.text for each in attention(facts) if "rejected" in each.text]
    assert next_step(facts).state == "checked"  # and not "rejected"
    assert not [each for row in cards.home(campaign.created_by) for each in row.needs]
    shown = text(organizer.get(address("material", campaign)))
    assert "would be rejected" in shown, "the result stays where the files are"
    dropped(organizer, campaign, TOPICS, BAD, check_only=False)
    facts = Situation(campaign)
    assert [each.text for each in attention(facts) if "rejected" in each.text] == [
        "1 file was rejected."
    ]
    (needed,) = [each for row in cards.home(campaign.created_by) for each in row.needs]
    assert (needed.count, needed.name) == (1, "rejected file")


def test_all_good_files_of_a_drop_are_taken_in_topics_before_runs(
    campaign: Campaign, organizer: Client
) -> None:
    drop = dropped(organizer, campaign, *RUNS, ODD, BAD, TOPICS)
    assert "Take in all 4, 1 with warnings" in text(organizer.get(address("material", campaign)))
    assert "4 files are read once more and taken in." in take_in(organizer, campaign, drop)
    read_all()
    assert states(campaign) == {
        **dict.fromkeys(["r1.run", "r2.run", "odd.run", "mine.tsv"], "accepted"),
        "bad.run": "rejected",
    }
    assert campaign.runs.count() == 3
    assert "None of these files is left" in take_in(organizer, campaign, drop)
    assert AuditEntry.objects.filter(campaign=campaign, action="take files in").count() == 1
    page = text(organizer.get(address("material", campaign)))
    assert "Take in" not in page
    assert "Dismiss the rejected one" in page


@pytest.mark.on_both
def test_runs_are_not_taken_in_before_there_are_topics(
    campaign: Campaign, organizer: Client
) -> None:
    """They would be rejected, and would have to be uploaded again."""
    topics = dropped(organizer, campaign, TOPICS)
    runs = dropped(organizer, campaign, *RUNS)
    assert "has no topics yet" in take_in(organizer, campaign, runs)
    run = campaign.uploads.get(name="r1.run")
    organizer.post(reverse("upload-take-in", args=[campaign.slug, run.pk]))
    assert set(states(campaign).values()) == {"checked"}
    take_in(organizer, campaign, topics)
    take_in(organizer, campaign, runs)
    read_all()
    assert set(states(campaign).values()) == {"accepted"}


@pytest.mark.on_both
def test_what_a_worker_or_somebody_else_took_meanwhile_is_left_alone(
    campaign: Campaign, organizer: Client
) -> None:
    drop = dropped(organizer, campaign, *RUNS, TOPICS)
    one = campaign.uploads.get(name="mine.tsv")
    taking_in.take_in(upload=one, by=campaign.created_by)
    jobs.run(Job.objects.get(kind="upload", target=one.pk).pk)
    by = campaign.created_by
    assert taking_in.take_in_drop(campaign=campaign, by=by, drop=drop) == 2
    read_all()
    assert set(states(campaign).values()) == {"accepted"}
    done = Job.objects.filter(kind="upload").values_list("requested", "done")
    assert set(done) == {(2, 2)}, "each was asked for twice: checked, and taken in"


def test_a_closed_campaign_takes_nothing_in(campaign: Campaign, organizer: Client) -> None:
    drop = dropped(organizer, campaign, *RUNS, TOPICS)
    Campaign.objects.update(state="closed")
    assert "This campaign is closed." in take_in(organizer, campaign, drop)
    assert set(states(campaign).values()) == {"checked"}
    assert "Take in" not in text(organizer.get(address("material", campaign)))


def test_a_drop_is_dismissed_by_one_click(campaign: Campaign, organizer: Client) -> None:
    other = dropped(organizer, campaign, ODD, BAD, TOPICS)
    drop = dropped(organizer, campaign, *RUNS, BAD, TOPICS)
    paths = [
        Path(settings.MEDIA_ROOT) / row.file.name for row in campaign.uploads.filter(drop=drop)
    ]
    there = reverse("drop-dismiss", args=[campaign.slug, drop])
    assert all(path.exists() for path in paths)
    assert "Dismiss all 4" in text(organizer.get(address("material", campaign)))
    assert "4 files are dismissed." in text(organizer.post(there, follow=True))
    assert set(campaign.uploads.exclude(file="none").values_list("drop", flat=True)) == {other}
    assert "None of these files is left" in text(organizer.post(there, follow=True))


def packed(*files: tuple[str, bytes]) -> tuple[str, bytes]:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files:
            archive.writestr(name, content)
    return "all.zip", buffer.getvalue()


def test_an_archive_that_is_dismissed_counts_as_its_files(
    campaign: Campaign, organizer: Client
) -> None:
    drop = dropped(organizer, campaign, packed(TOPICS, *RUNS))
    assert "Dismiss all 3" in text(organizer.get(address("material", campaign)))
    there = reverse("drop-dismiss", args=[campaign.slug, drop])
    assert "3 files are dismissed." in text(organizer.post(there, follow=True))
    assert AuditEntry.objects.latest("pk").data["files"] == 3
    assert not campaign.uploads.filter(drop=drop).exists()


@pytest.mark.parametrize("check_only", [True, False])
def test_a_run_waits_for_the_archive_beside_it_that_may_have_the_topics(
    campaign: Campaign, organizer: Client, check_only: bool
) -> None:
    dropped(organizer, campaign, RUNS[0], packed(RUNS[1], TOPICS), check_only=check_only)
    read_all()
    state = "checked" if check_only else "accepted"
    assert states(campaign) == dict.fromkeys(["r1.run", "r2.run", "mine.tsv", "all.zip"], state)


@pytest.mark.on_both
def test_what_was_taken_in_or_is_read_is_not_dismissed(
    campaign: Campaign, organizer: Client
) -> None:
    drop = dropped(organizer, campaign, *RUNS, BAD, TOPICS)
    topics, run = (campaign.uploads.get(name=name) for name in ("mine.tsv", "r1.run"))
    for row in (topics, run):
        taking_in.take_in(upload=row, by=campaign.created_by)
    jobs.run(Job.objects.get(kind="upload", target=topics.pk).pk)
    assert taking_in.dismiss(campaign=campaign, by=campaign.created_by, drop=drop) == 2
    assert states(campaign) == {"mine.tsv": "accepted", "r1.run": "stored"}
    read_all()
    assert states(campaign) == {"mine.tsv": "accepted", "r1.run": "accepted"}


def test_an_archive_is_taken_in_by_its_files(campaign: Campaign, organizer: Client) -> None:
    drop = dropped(organizer, campaign, packed(*RUNS, BAD, TOPICS))
    archived = campaign.uploads.get(name="all.zip")
    found = drops.drop_of(campaign, drop)
    assert found is not None
    assert (found.files, found.to_take_in, found.to_dismiss) == (4, 3, 4)
    alone = organizer.post(
        reverse("upload-take-in", args=[campaign.slug, archived.pk]), follow=True
    )
    assert "Take those in." in text(alone)
    assert '<button class="btn primary">Take it in' not in alone.content.decode()
    take_in(organizer, campaign, drop)
    read_all()
    assert states(campaign) == {
        **dict.fromkeys(["r1.run", "r2.run", "mine.tsv", "all.zip"], "accepted"),
        "bad.run": "rejected",
    }
    organizer.post(reverse("drop-dismiss", args=[campaign.slug, drop]))
    assert "bad.run" not in states(campaign)


def test_earlier_drops_keep_their_buttons(campaign: Campaign, organizer: Client) -> None:
    first = dropped(organizer, campaign, *RUNS, BAD)
    taking = dropped(organizer, campaign, TOPICS, BAD)
    dropped(organizer, campaign, BAD)
    found = drops.earlier(campaign, drops.latest(campaign))
    assert [each.id for each in found] == [taking, first]
    page = organizer.get(address("material", campaign)).content.decode()
    assert reverse("drop-dismiss", args=[campaign.slug, first]) in page
    assert reverse("drop-take-in", args=[campaign.slug, taking]) in page


def test_canceled_files_of_earlier_drops_are_not_told_as_rejected(
    campaign: Campaign, organizer: Client
) -> None:
    first = dropped(organizer, campaign, BAD, BAD)
    dropped(organizer, campaign, BAD)
    assert [each.id for each in drops.earlier(campaign, drops.latest(campaign))] == [first]
    campaign.uploads.filter(drop=first).update(summary={CANCELED: True})
    assert drops.earlier(campaign, drops.latest(campaign)) == []


def test_programs_take_in_and_dismiss(campaign: Campaign, organizer: Client) -> None:
    drop = dropped(organizer, campaign, *RUNS, BAD, TOPICS)
    client = rest.client_of(campaign.created_by)
    there = f"/api/campaigns/{campaign.slug}/uploads/drops/{drop}/"
    told = client.get(there).json()
    assert (told["to_take_in"], told["to_dismiss"]) == (3, 4)
    for expected in (3, 3):  # asked again, it does nothing
        answer = client.post(f"{there}take-in/")
        assert (answer.status_code, answer.json()["waiting"]) == (202, expected)
    read_all()
    assert client.delete(there).status_code == 204
    assert client.get(there).json()["refused"] == 0
    assert client.delete(there).status_code == 204
    dropped(organizer, campaign, BAD, check_only=True)
    last = campaign.uploads.latest("pk").drop
    assert client.delete(there.replace(drop, last)).status_code == 204
    assert client.delete(there.replace(drop, last)).status_code == 404


@pytest.mark.slow
def test_the_list_of_many_drops_takes_no_more_statements(
    campaign: Campaign, organizer: Client
) -> None:
    dropped(organizer, campaign, TOPICS, BAD)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as sent:
            organizer.get(address("upload-list", campaign))
        counts.append(len(sent))
        for _ in range(3):
            dropped(organizer, campaign, *RUNS, BAD)
    assert counts[0] == counts[1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.on_both
def test_two_organizers_take_in_the_same_drop() -> None:
    made = factories.campaign(topics=1)
    by, drop = made.created_by, uploads.new_drop()
    for name, content in RUNS:
        factories.stored(made, content, name=name)
    made.uploads.filter(kind="run").update(drop=drop, check_only=True)
    read_all()

    def take() -> int:
        return taking_in.take_in_drop(campaign=made, by=by, drop=drop)

    assert sorted(at_once([take] * 4)) == [0, 0, 0, 2]
    assert set(Job.objects.filter(kind="upload").values_list("requested", flat=True)) == {2}


@pytest.mark.django_db(transaction=True)
@pytest.mark.on_both
def test_a_drop_that_is_being_taken_in_is_not_dismissed() -> None:
    made = factories.campaign(topics=1)
    by, drop = made.created_by, uploads.new_drop()
    for name, content in [*RUNS, BAD]:
        factories.stored(made, content, name=name)
    made.uploads.filter(kind="run").update(drop=drop, check_only=True)
    read_all()
    with transaction.atomic():
        assert taking_in.take_in_drop(campaign=made, by=by, drop=drop) == 2
        other = Other(lambda: taking_in.dismiss(campaign=made, by=by, drop=drop)).until_it_waits()
    assert other.outcome() == 1
    read_all()
    assert made.runs.count() == 2
    assert not Upload.objects.filter(state="rejected").exists()

"""Material: files come in, are read, are shown with what is wrong with them, and go again."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from judging.models import Campaign, Document, Job, Topic, Upload
from judging.services import campaigns, uploads
from tests.support import evaluation, factories

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

TOPICS = b"1\tairport security\n2\tsolar power\n"
DOCUMENTS = b'{"docno": "D-1", "title": "On <wings>", "text": "A <b>bold</b> text"}\n'
HTMX = {"HX-Request": "true"}


def empty_campaign(slug: str = "test") -> Campaign:
    organizer = factories.user(f"organizer-{slug}", is_organizer=True)
    return campaigns.create(by=organizer, plan=campaigns.CampaignPlan(name=slug, slug=slug))


@pytest.fixture
def campaign() -> Campaign:
    return empty_campaign()


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def address(name: str, campaign: Campaign, *more: int) -> str:
    return reverse(name, args=[campaign.slug, *more])


def send(
    client: Client, campaign: Campaign, *files: tuple[str, bytes], **fields: Any
) -> HttpResponse:
    given = [SimpleUploadedFile(name, content) for name, content in files]
    data = {"given": given, "kind": "guess"} | fields
    return client.post(address("material", campaign), data, follow=True)


def content(response: HttpResponse) -> str:
    return response.content.decode()


@pytest.mark.slow
@pytest.mark.on_both
def test_many_files_come_in_at_once_and_their_kinds_are_guessed(
    campaign: Campaign, organizer: Client
) -> None:
    page = send(organizer, campaign, ("topics.tsv", TOPICS), ("docs.jsonl", DOCUMENTS))
    assert "2 files are stored" in content(page)
    assert "waits to be read" in content(page)
    factories.run_due_jobs()
    assert Topic.objects.count() == 2
    assert Document.objects.get().docno == "D-1"
    said = content(organizer.get(address("material", campaign)))
    assert "2 topics" in said
    assert "1 document" in said


def test_every_file_may_be_given_its_own_kind(campaign: Campaign, organizer: Client) -> None:
    files = ("a.txt", TOPICS), ("b.txt", b"1 0 D-1 2\n"), ("topics.tsv", TOPICS)
    send(organizer, campaign, *files, kinds=["topics", "qrels", "guess"])
    kinds = Upload.objects.order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["topics", "qrels", "topics"]


def test_one_kind_holds_for_all_without_script(campaign: Campaign, organizer: Client) -> None:
    send(organizer, campaign, ("a.txt", TOPICS), ("b.txt", TOPICS), kind="topics")
    assert set(Upload.objects.values_list("kind", flat=True)) == {"topics"}


def test_a_file_that_cannot_be_guessed_does_not_keep_the_others_out(
    campaign: Campaign, organizer: Client
) -> None:
    page = send(organizer, campaign, ("what", b"\x00\x01"), ("topics.tsv", TOPICS))
    assert "what: say whether this holds" in content(page)
    assert "1 file is stored" in content(page)
    assert Upload.objects.get().name == "topics.tsv"


ODD = [
    (b"Rar!\x1a\x07" + bytes(range(256)), "is a RAR archive"),
    (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "is a picture (PNG)"),
    (b"401 FT-1 1\n401 FT-2 0\n", "has three columns with whole numbers"),
]


@pytest.mark.parametrize(("odd", "told"), ODD)
def test_a_file_of_another_kind_is_named_before_it_is_stored(
    campaign: Campaign, organizer: Client, odd: bytes, told: str
) -> None:
    page = send(organizer, campaign, ("runs.gz", odd))
    assert f"runs.gz {told}" in content(page)
    assert not Upload.objects.exists()


@pytest.mark.parametrize(("odd", "told"), ODD[:2])
def test_a_file_of_another_kind_whose_kind_was_given_is_one_error(
    campaign: Campaign, organizer: Client, odd: bytes, told: str
) -> None:
    send(organizer, campaign, ("runs.tar.gz", odd), kind="documents")
    factories.run_due_jobs()
    why = f"Expected UTF-8 text, plain or gzip, found {told.removeprefix('is ')}: "
    assert why in content(organizer.get(address("material", campaign)))
    page = content(organizer.get(address("upload-detail", campaign, Upload.objects.get().pk)))
    assert why in page
    assert "Mend it" not in page


def test_no_file_at_all_is_said(campaign: Campaign, organizer: Client) -> None:
    response = organizer.post(address("material", campaign), {"kind": "guess"})
    assert response.status_code == 422
    assert "Choose at least one file." in content(response)


def test_checking_only_takes_nothing_in(campaign: Campaign, organizer: Client) -> None:
    send(organizer, campaign, ("topics.tsv", TOPICS), check_only="on")
    factories.run_due_jobs()
    assert not Topic.objects.exists()
    assert "good, not taken in" in content(organizer.get(address("material", campaign)))


def test_a_rejected_file_opens_to_its_errors_and_counts_those_not_shown(
    campaign: Campaign, organizer: Client
) -> None:
    factories.stored_upload(campaign, TOPICS, name="topics.tsv", kind="topics")
    lines = b"1 Q0 D-1 1 nan tag\n" + b"only three columns\n" * 70
    upload = factories.stored_upload(campaign, lines, name="<bad>.run", kind="run")
    assert upload.state == Upload.State.REJECTED
    said = content(organizer.get(address("material", campaign)))
    assert "rejected: 71 errors" in said
    assert "&lt;bad&gt;.run" in said
    page = content(organizer.get(address("upload-detail", campaign, upload.pk)))
    assert "of 71 errors the first 50 are shown" in page
    assert "<code>score</code>" in page
    assert "finite number" in page
    assert page.count("<tr>") == 51
    assert "Warnings" not in page


def test_warnings_stand_apart_from_errors(campaign: Campaign, organizer: Client) -> None:
    factories.stored_upload(campaign, TOPICS, name="topics.tsv", kind="topics")
    run = b"1 Q0 D-1 1 1.0 tag\n77 Q0 D-1 1 1.0 tag\n"
    upload = factories.stored_upload(campaign, run, name="a.run", kind="run")
    assert upload.state == Upload.State.ACCEPTED
    page = content(organizer.get(address("upload-detail", campaign, upload.pk)))
    assert '<section class="stack tight" id="warnings">' in page
    assert "<h2>Errors</h2>" not in page
    assert f"{upload.warning_count} warning" in content(
        organizer.get(address("material", campaign))
    )


def test_the_list_polls_while_something_is_pending_and_then_stops(
    campaign: Campaign, organizer: Client
) -> None:
    send(organizer, campaign, ("topics.tsv", TOPICS))
    there = address("upload-list", campaign)
    page = organizer.get(address("material", campaign))
    assert "every 2s" in content(page)
    assert "No worker is alive" in content(page)
    seen = {"seen": page.context["token"]}
    assert organizer.get(there, seen, headers=HTMX).status_code == 204
    Job.objects.update(state=Job.State.RUNNING, progress=40, note="12 of 30")
    Upload.objects.update(state=Upload.State.READING)
    reading = organizer.get(there, seen, headers=HTMX)
    assert 'value="40"' in content(reading)
    assert "12 of 30" in content(reading)
    Job.objects.update(state=Job.State.QUEUED)
    factories.run_due_jobs()
    done = organizer.get(there, seen, headers=HTMX)
    assert "accepted" in content(done)
    assert "every 2s" not in content(done)


def test_a_file_whose_reading_failed_says_so_and_is_not_waited_for(
    campaign: Campaign, organizer: Client
) -> None:
    send(organizer, campaign, ("topics.tsv", TOPICS))
    Job.objects.update(state=Job.State.FAILED, error="disk full")
    Upload.objects.update(state=Upload.State.READING)
    said = content(organizer.get(address("material", campaign)))
    assert "disk full" in said
    assert "every 2s" not in said


@pytest.mark.slow
def test_a_file_that_is_being_read_can_be_canceled(campaign: Campaign, organizer: Client) -> None:
    send(organizer, campaign, ("topics.tsv", TOPICS))
    upload = campaign.uploads.get()
    assert "Cancel reading topics.tsv" in content(organizer.get(address("material", campaign)))
    page = organizer.post(address("upload-cancel", campaign, upload.pk), follow=True)
    assert "topics.tsv is not read any further" in content(page)
    assert "Cancel reading" not in content(page)
    said = content(organizer.get(address("upload-detail", campaign, upload.pk)))
    assert f"The reading of this file was canceled by {campaign.created_by}." in said
    page = organizer.post(address("upload-cancel", campaign, upload.pk), follow=True)
    assert "has been read, or its reading canceled, already" in content(page)


def test_a_file_that_was_refused_as_a_whole_says_why_and_is_not_to_be_mended(
    campaign: Campaign, organizer: Client
) -> None:
    send(organizer, campaign, ("one.tsv", TOPICS), ("two.tsv", TOPICS))
    two, one = campaign.uploads.all()
    organizer.post(address("upload-cancel", campaign, one.pk))
    Job.objects.filter(target=two.pk).update(state=Job.State.FAILED, error="a lost connection")
    uploads.give_up(two.pk, "a lost connection")

    listed = content(organizer.get(address("material", campaign)))
    assert "1 error" not in listed
    for upload, why in ((one, "was canceled by organizer-test"), (two, "a lost connection")):
        page = content(organizer.get(address("upload-detail", campaign, upload.pk)))
        assert why in listed
        assert page.count(why) == 1
        assert "Nothing was taken in" in page
        assert "Mend it" not in page
        assert ("Try again</button>" in page) == (upload == two)


def test_a_file_is_removed_with_what_it_brought(campaign: Campaign, organizer: Client) -> None:
    upload = factories.stored_upload(campaign, TOPICS, name="topics.tsv", kind="topics")
    assert organizer.get(address("upload-remove", campaign, upload.pk)).status_code == 405
    page = organizer.post(address("upload-remove", campaign, upload.pk), follow=True)
    assert "topics.tsv is removed" in content(page)
    assert not Topic.objects.exists()


@pytest.mark.slow
def test_material_of_a_drawn_round_stays() -> None:
    made = evaluation.with_material(slug="drawn")
    evaluation.drawn(made)
    client = Client()
    client.force_login(made.created_by)
    upload = made.uploads.filter(kind="topics").get()
    assert "in use" in content(client.get(address("material", made)))
    page = client.post(address("upload-remove", made, upload.pk), follow=True)
    assert "can no longer be removed" in content(page)
    assert made.topics.exists()


def test_files_of_another_campaign_are_not_reached(campaign: Campaign, organizer: Client) -> None:
    other = empty_campaign("other")
    theirs = factories.stored_upload(other, TOPICS, name="theirs.tsv", kind="topics")
    for made, status in ((campaign, 302), (other, 404)):
        assert organizer.get(address("upload-detail", made, theirs.pk)).status_code == 404
        for name in ("upload-remove", "upload-cancel", "upload-take-in"):
            answer = organizer.post(address(name, made, theirs.pk), follow=False)
            assert answer.status_code == status
            assert "theirs" not in organizer.get(address("material", campaign)).content.decode()
    assert Upload.objects.filter(pk=theirs.pk).exists()


@pytest.mark.parametrize(("role", "status"), [("anonymous", 302), ("assessor", 403)])
def test_files_are_for_organizers(role: str, status: int, campaign: Campaign) -> None:
    upload = factories.stored_upload(campaign, TOPICS, name="topics.tsv", kind="topics")
    client = Client()
    if role == "assessor":
        client.force_login(factories.assessors(campaign, "the-assessor")[0])
    for name in ("upload-detail", "upload-remove", "upload-cancel"):
        assert client.post(address(name, campaign, upload.pk)).status_code == status
    assert send(client, campaign, ("a.tsv", TOPICS)).status_code in (200, 403)
    assert Upload.objects.get() == upload


def test_a_closed_campaign_takes_no_files(campaign: Campaign, organizer: Client) -> None:
    Campaign.objects.update(state=Campaign.State.CLOSED)
    assert "takes no more files" in content(organizer.get(address("material", campaign)))
    send(organizer, campaign, ("topics.tsv", TOPICS))
    assert not Upload.objects.exists()


@pytest.mark.slow
@pytest.mark.on_both
def test_topics_and_documents_are_listed_searched_and_escaped(
    campaign: Campaign, organizer: Client
) -> None:
    factories.stored_upload(campaign, TOPICS, name="topics.tsv", kind="topics")
    factories.stored_upload(campaign, DOCUMENTS, name="docs.jsonl", kind="documents")
    topics, documents = address("topic-list", campaign), address("document-list", campaign)
    assert "solar power" in content(organizer.get(topics))
    assert "solar power" not in content(organizer.get(topics, {"q": "airport"}))
    assert "No topic fits" in content(organizer.get(topics, {"q": "\x00zzz"}))
    for asked in ("", "D-", "WINGS"):
        assert "On &lt;wings&gt;" in content(organizer.get(documents, {"q": asked}))
    assert "No document fits" in content(organizer.get(documents, {"q": "1"}))
    page = organizer.get(address("document-detail", campaign, Document.objects.get().pk))
    assert "A &lt;b&gt;bold&lt;/b&gt; text" in content(page)


@pytest.mark.slow
@pytest.mark.on_both
def test_long_lists_come_in_pages_that_keep_the_search(
    campaign: Campaign, organizer: Client
) -> None:
    lines = b"".join(b'{"docno": "d%d", "title": "x & y"}\n' % n for n in range(250))
    factories.stored_upload(campaign, lines, name="docs.jsonl", kind="documents")
    there = address("document-list", campaign)
    page = content(organizer.get(there, {"q": "x & y", "page": "2"}))
    assert "101–200 of 250" in page
    assert "?q=x%20%26%20y&amp;page=3" in page
    assert organizer.get(there, {"page": "nonsense"}).status_code == 200

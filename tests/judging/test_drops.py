"""Files that come at once: one summary of what is wrong with them; answers in three colors."""

import io

import pytest
from django.test import Client
from django.urls import reverse

from judging import drops
from judging.answers import AnswersApart
from judging.clock import seconds_from_now
from judging.models import Campaign, Job, Upload
from tests.support import evaluation, factories, rest
from tests.support.kept import Kept
from tests.support.later import lines_of
from tests.support.pages import text

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("material", evaluation.with_material)


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def file(name: str, content: bytes) -> io.BytesIO:
    given = io.BytesIO(content)
    given.name = name
    return given


SHORT = b"t1 Q0 d1 1 2.0 %b\nt1 Q0 d2 2\nt1 Q0 d3\n"
WORD = b"t1 Q0 d1 1 2.0 %b\nt1 Q0 d2 2 what %b\n"
ODD = b"t1 Q0 d1 9 2.0 odd\nt1 Q0 d2 1 1.0 odd\n"


def dropped(organizer: Client, campaign: Campaign, *, check_only: bool = False) -> list[Upload]:
    files = [
        file("good.run", lines_of("run2", "good")),
        file("odd.run", ODD),
        file("short1.run", SHORT % b"short1"),
        file("short2.run", SHORT % b"short2"),
        file("word.run", WORD % (b"word", b"word")),
    ]
    body = {"given": files, "kind": "run"} | ({"check_only": "on"} if check_only else {})
    organizer.post(reverse("material", args=[campaign.slug]), body)
    factories.run_due_jobs()
    return list(campaign.uploads.order_by("pk"))[-5:]


@pytest.mark.slow
def test_problems_of_all_files_are_told_by_kind(campaign: Campaign, organizer: Client) -> None:
    rows = dropped(organizer, campaign)
    found = drops.latest(campaign)
    assert found is not None
    assert (found.files, found.good, found.warned, found.refused) == (5, 1, 1, 3)
    errors = [each for each in found.problems if each.severity == "error"]
    first = errors[0]  # that of most files
    assert (first.field, first.count) == ("columns", 4)
    assert [each.pk for each in first.files] == [rows[2].pk, rows[3].pk]
    assert first.message == "expected 6 columns (topic, Q0, docno, rank, score, tag), found 4"
    assert [(each.field, each.count) for each in errors[1:]] == [("score", 1)]
    kinds = [each.severity for each in found.problems]
    assert kinds == sorted(kinds)


@pytest.mark.slow
def test_the_page_has_the_summary_and_the_guess(campaign: Campaign, organizer: Client) -> None:
    rows = dropped(organizer, campaign)
    address = reverse("material", args=[campaign.slug])
    page = text(organizer.get(address))
    assert "3 of the last 5 files need mending" in page
    assert "4 like this, in 2 files: short1.run, short2.run" in page
    organizer.post(address, {"given": [file("x", lines_of("run2", "guessed"))]})
    upload = campaign.uploads.latest("pk")
    assert (upload.kind, upload.kind_why) == ("run", "six columns, the fifth of them a number")
    shown = text(organizer.get(reverse("upload-detail", args=[campaign.slug, upload.pk])))
    assert "guessed: six columns, the fifth of them a number" in shown
    assert rows[0].kind_why == ""  # somebody has said it


def test_one_file_alone_needs_no_summary(campaign: Campaign, organizer: Client) -> None:
    dropped(organizer, campaign)
    organizer.post(
        reverse("material", args=[campaign.slug]), {"given": [file("a.run", b"t1 Q0 d\n" * 3)]}
    )
    assert drops.latest(campaign) is not None
    organizer.post(
        reverse("material", args=[campaign.slug]),
        {"given": [file("a.run", b"t1 Q0 d\n" * 3)], "kind": "run"},
    )
    assert drops.latest(campaign) is None


def test_check_only_answers_in_three_colors(campaign: Campaign, organizer: Client) -> None:
    rows = dropped(organizer, campaign, check_only=True)
    assert [row.state for row in rows] == ["checked", "checked", *["rejected"] * 3]
    assert campaign.runs.count() == 4
    page = organizer.get(reverse("upload-list", args=[campaign.slug])).content.decode()
    assert '<span class="chip ok">good, not taken in</span>' in page
    assert '<span class="chip warn">good but for warnings, not taken in</span>' in page
    assert page.count("would be rejected: ") == 3


def test_runs_are_checked_against_topics_that_are_only_checked_as_well() -> None:
    made = factories.campaign(topics=0, slug="empty")
    client = Client()
    client.force_login(made.created_by)
    files = [
        file("good.run", b"t1 Q0 d1 1 2.0 good\n"),
        file("other.run", b"t9 Q0 d1 1 2.0 other\n"),
        file("topics.tsv", b"t1\tA title\n"),
    ]
    client.post(reverse("material", args=["empty"]), {"given": files, "check_only": "on"})
    factories.run_due_jobs()
    Job.objects.update(due=seconds_from_now(-1))  # runs have waited for the topics
    factories.run_due_jobs()
    found = {row.name: row.state for row in made.uploads.exclude(file="none")}
    assert found == {"good.run": "checked", "other.run": "rejected", "topics.tsv": "checked"}
    assert not made.topics.exists()
    later = factories.stored_upload(made, b"t1 Q0 d1 1 2.0 later\n", name="l.run", kind="run")
    assert later.state == "rejected", "what was only checked is not there for what is taken in"


def test_files_of_an_archive_are_one_drop(campaign: Campaign, organizer: Client) -> None:
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.run", lines_of("run2", "a"))
        archive.writestr("b.run", lines_of("run3", "b"))
    organizer.post(
        reverse("material", args=[campaign.slug]), {"given": [file("x.zip", packed.getvalue())]}
    )
    factories.run_due_jobs()
    found = drops.latest(campaign)
    assert found is not None
    assert (found.files, found.good) == (2, 2)


def test_programs_read_the_same(campaign: Campaign) -> None:
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/uploads/"
    files = [file("a.run", SHORT % b"a"), file("b.run", SHORT % b"b")]
    stored = client.post(base, {"files": files, "kind": "run"}, format="multipart").json()
    factories.run_due_jobs()
    drop = {each["drop"] for each in stored}
    assert len(drop) == 1
    told = client.get(f"{base}drops/{drop.pop()}/").json()
    assert (told["files"], told["refused"]) == (2, 2)
    assert told["problems"][0]["files"] == [each["id"] for each in stored]
    assert client.get(f"{base}drops/nothing/").status_code == 404


@pytest.mark.parametrize(
    ("double", "differ", "usual", "noisy"),
    [
        (10, 8, 0.2, True),
        (10, 3, 0.2, False),
        (2, 2, 0.2, False),  # chance brings that in one topic of 25
        (10, 0, 0.0, False),
        (100, 20, 0.2, False),
        (10, 1, 0.9, False),
    ],
)
def test_a_topic_is_noisy_beyond_chance(
    double: int, differ: int, usual: float, noisy: bool
) -> None:
    assert AnswersApart(double, differ, usual).noisy is noisy

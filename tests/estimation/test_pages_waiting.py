"""Pages that wait for files say what is awaited, and are right once it is there."""

import io
import re

import pytest
from django.core.files.base import File
from django.test import Client

from estimation.activity import lately
from estimation.models import Run
from estimation.next_step import next_step
from estimation.services import replacing, rounds
from estimation.situation import Situation
from judging.models import AuditEntry, Campaign, KnownGrade, Pair, Upload
from judging.services import audit, duplicates, known_grades
from tests.support import evaluation, factories
from tests.support.kept import Kept
from tests.support.pages import address, text

pytestmark = pytest.mark.django_db

COPYING = "The files of the campaign from which this one was made are being copied."


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("material", evaluation.with_material)


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def test_files_that_are_being_copied_are_not_missing(campaign: Campaign, organizer: Client) -> None:
    evaluation.worker_alive()
    by = campaign.created_by
    made = duplicates.duplicate(campaign=campaign, by=by, name="Another", with_files=True)
    home = organizer.get(address("campaign-home", made))
    assert "Still missing" not in text(home)
    assert text(home).count(COPYING) == 2, "in the bar and on the card"
    card = home.content.decode().split('<ol class="steps"')[1].split("</li>")[0]
    assert "<a " not in card, "nothing else is offered"
    step = next_step(Situation(made))
    assert (step.state, step.waits, step.action) == ("reading", True, None)
    files = organizer.get(address("upload-list", made))
    assert COPYING in text(files)
    assert "Nothing here yet" not in text(files)
    assert "every 2s" in files.content.decode()
    factories.run_due_jobs()
    after = organizer.get(address("campaign-home", made))
    assert COPYING not in text(after)
    assert "every 2s" not in after.content.decode()
    assert COPYING not in text(organizer.get(address("upload-list", made)))


def test_files_that_are_being_read_are_not_missing(campaign: Campaign, organizer: Client) -> None:
    evaluation.worker_alive()
    Run.objects.filter(campaign=campaign).delete()
    assert "Still missing: runs" in text(organizer.get(address("campaign-home", campaign)))
    factories.stored(campaign, evaluation.SMALL.runs["run1.run"], name="r.run", kind="run")
    home = organizer.get(address("campaign-home", campaign))
    assert "Still missing" not in text(home)
    assert "1 file is being read." in text(home)
    assert 'hx-select="#steps"' in home.content.decode()


def replace(campaign: Campaign, content: bytes) -> Run:
    run = campaign.runs.get(tag="run2")
    file: File[bytes] = File(io.BytesIO(content), name="new.run")
    replacing.replace(run=run, by=campaign.created_by, file=file, name="new.run")
    return run


def test_all_that_a_new_version_changes_is_brought_by_the_poll(
    campaign: Campaign, organizer: Client
) -> None:
    run = replace(campaign, evaluation.SMALL.runs["run2.run"])
    page = organizer.get(address("run-detail", campaign, run.pk)).content.decode()
    asked = re.findall(r'hx-select-oob="([^"]*)"', page)
    assert len(asked) == 1
    parts = asked[0].replace("#", "").split(",")
    assert "version-list" in parts
    assert all(page.count(f'id="{part}"') == 1 for part in parts)
    (versions,) = re.findall(r'<ol class="versions" id="version-list">.*?</ol>', page, re.S)
    assert '<span class="chip">reading</span>' in versions
    assert "<form" not in versions, "what is typed meanwhile stays"
    factories.run_due_jobs()
    page = organizer.get(address("run-detail", campaign, run.pk)).content.decode()
    assert "hx-select-oob" not in page
    assert '<span class="chip">reading</span>' not in page


def test_a_file_that_was_read_is_not_to_be_canceled(campaign: Campaign, organizer: Client) -> None:
    content = evaluation.SMALL.runs["run1.run"]
    row = factories.stored(campaign, content, name="r.run", kind="run")
    there = address("upload-detail", campaign, row.pk)
    page = organizer.get(there).content.decode()
    assert 'hx-select-oob="#file-head"' in page
    assert "Cancel" in page.split('id="file-head"')[1].split("</div>")[0]
    factories.run_due_jobs()
    assert "Cancel" not in organizer.get(there).content.decode()


def test_a_new_version_that_was_rejected_is_told(campaign: Campaign, organizer: Client) -> None:
    run = replace(campaign, b"t1 Q0 d1 1 2.0 x\nt1 Q0 d1 2 1.0 x\n")
    factories.run_due_jobs()
    page = organizer.get(address("run-detail", campaign, run.pk))
    assert "The new version new.run was rejected, and nothing has changed." in text(page)
    bad = Upload.objects.get(campaign=campaign, name="new.run")
    assert address("upload-detail", campaign, bad.pk) in page.content.decode()
    factories.run_due_jobs()
    replace(campaign, evaluation.SMALL.runs["run2.run"])
    factories.run_due_jobs()
    assert "was rejected" not in text(organizer.get(address("run-detail", campaign, run.pk)))


@pytest.mark.slow
def test_nothing_is_judged_by_0_assessors(campaign: Campaign, organizer: Client) -> None:
    evaluation.drawn(campaign, extra_share=0.0)
    upload = campaign.uploads.all()[0]
    KnownGrade.objects.bulk_create(
        KnownGrade(campaign=campaign, upload=upload, topic=pair.topic, docno=pair.docno, grade=1)
        for pair in Pair.objects.filter(campaign=campaign).order_by("pk")[::2]
    )
    known_grades.answer(campaign=campaign, by=campaign.created_by)
    factories.run_due_jobs()
    campaign.memberships.filter(role="assessor").delete()
    rounds.draft(campaign=campaign, by=campaign.created_by, plan=evaluation.plan())
    home = text(organizer.get(address("campaign-home", campaign)))
    assert re.search(r"\d+ a day in the last week\.", home)
    assert "0 assessor" not in home


@pytest.mark.parametrize(
    ("count", "words"), [(0, "no pairs"), (1, "1 pair"), (1200, "1,200 pairs")]
)
def test_counts_are_words_in_what_happened(campaign: Campaign, count: int, words: str) -> None:
    AuditEntry.objects.create(
        campaign=campaign, actor=campaign.created_by, action="judge from qrels",
        target="", data={"pairs": count},
    )  # fmt: skip
    assert lately(campaign)[0].what == f"had {words} judged from the qrels"


def test_what_a_rule_did_and_what_ended_well_is_told_as_such(campaign: Campaign) -> None:
    by, said = campaign.created_by, {"by": None, "campaign": campaign, "target": campaign}
    audit.record("machine judge ended", **said, why="")
    assert lately(campaign)[0].what == "A machine judge ended"
    audit.record("machine judge ended", **said, why="Its ceiling of 1 call is reached.")
    assert lately(campaign)[0].what == "A machine judge ended: Its ceiling of 1 call is reached."
    for by_rule, who in ((False, by.username), (True, "")):
        audit.record("exclude work", **said | {"by": by}, user="ann", by_rule=by_rule)
        assert lately(campaign)[0].who == who
    assert lately(campaign)[0].what == "A rule has excluded the work of ann"

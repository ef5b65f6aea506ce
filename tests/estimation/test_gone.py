"""What somebody else removes while one is about to act on it: a plain answer, wherever it is asked.

The removal stands in a transaction that has not ended when the other one comes. Under PostgreSQL he
still sees what is removed, and waits for a lock; SQLite may also have him come after it.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from estimation.models import Round, Run
from estimation.services import choices, rounds
from estimation.views import runs as run_views
from judging.models import ApiToken, AuditEntry, Campaign, Job, Membership, Upload
from judging.services import members, uploads
from tests.support import evaluation, factories
from tests.support.races import Other
from tests.support.rest import client_of

pytestmark = pytest.mark.django_db(transaction=True)
Ask = Callable[[], HttpResponse]
API = "/api/campaigns/test/"
FORM = {
    "goal": "absolute", "measure": "P@10", "budget": 40, "batch_size": 20, "labels": 1,
    "extra_share": 0.5, "prior": "rank", "method": "poisson", "floor": 0.1, "seed": "s",
}  # fmt: skip


class Stage:
    """What can be removed, and two organizers: `first` removes it, `second` acts on it."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign, self.first = campaign, campaign.created_by
        made = members.add(campaign=campaign, by=self.first, username="ben", role="organizer")
        self.second = made[0].user
        self.page = Client(raise_request_exception=False)
        self.page.force_login(self.second)

    def upload(self) -> Upload:
        """One that waits to be read."""
        return factories.stored(self.campaign, b"t9\tnine\n", name="more.tsv", kind="topics")

    def failed_upload(self) -> Upload:
        upload = self.upload()
        Job.objects.filter(kind="upload", target=upload.pk).update(state=Job.State.FAILED)
        Upload.objects.filter(pk=upload.pk).update(state=Upload.State.REJECTED)
        return upload

    def round(self) -> Round:
        return evaluation.drafted(self.campaign)

    def failed_round(self) -> Round:
        row = self.round()
        Job.objects.filter(kind="preview", target=row.pk).update(state=Job.State.FAILED)
        return row

    def membership(self) -> Membership:
        added = members.add(
            campaign=self.campaign, by=self.first, username="cleo", role=Membership.Role.ASSESSOR
        )
        return added[0]

    def key(self) -> ApiToken:
        members.create_token(user=self.second, name="nightly")
        return ApiToken.objects.get(name="nightly")

    def remove(self, row: Any) -> None:
        if isinstance(row, Upload):
            uploads.remove(upload=row, by=self.first)
        elif isinstance(row, Round):
            rounds.discard(row=row, by=self.first)
        elif isinstance(row, Membership):
            members.remove(membership=row, by=self.first)
        else:
            members.revoke_token(token=row, by=self.second)


@pytest.fixture
def stage(campaign: Campaign) -> Stage:
    return Stage(campaign)


def job_of(row: Upload | Round) -> int:
    kind = "upload" if isinstance(row, Upload) else "preview"
    return Job.objects.get(kind=kind, target=row.pk).pk


REST: dict[str, tuple[str, str, str, Any]] = {
    "remove an upload": ("upload", "delete", f"{API}uploads/{{pk}}/", None),
    "cancel an upload": ("upload", "post", f"{API}uploads/{{pk}}/cancel/", None),
    "read it again": ("failed_upload", "post", f"{API}work/{{job}}/retry/", None),
    "change a round": ("round", "patch", f"{API}rounds/{{number}}/", {"budget": 50}),
    "draw a round": ("round", "post", f"{API}rounds/{{number}}/draw/", {"design": "x"}),
    "discard a round": ("round", "delete", f"{API}rounds/{{number}}/", None),
    "work it out again": ("failed_round", "post", f"{API}work/{{job}}/retry/", None),
    "remove a member": ("membership", "delete", f"{API}members/{{pk}}/", None),
    "revoke a key": ("key", "delete", "/api/tokens/{pk}/", None),
}
PAGES = {
    "remove an upload": ("upload", "upload-remove", ("test", "pk")),
    "cancel an upload": ("upload", "upload-cancel", ("test", "pk")),
    "read it again": ("failed_upload", "work-again", ("test", "job")),
    "change a round": ("round", "round-change", ("test", "number")),
    "draw a round": ("round", "round-draw", ("test", "number")),
    "discard a round": ("round", "round-discard", ("test", "number")),
    "work it out again": ("failed_round", "work-again", ("test", "job")),
    "remove a member": ("membership", "member-remove", ("test", "pk")),
    "revoke a key": ("key", "token-revoke", ("pk",)),
}


def places(row: Any) -> dict[str, Any]:
    """What addresses name it by."""
    kind = "upload" if isinstance(row, Upload) else "preview"
    job = Job.objects.filter(kind=kind, target=row.pk).first()
    number = getattr(row, "number", None)
    return {"pk": row.pk, "job": job and job.pk, "number": number, "test": "test"}


def name_of(row: Any, act: str) -> str:
    """How an answer to the act names it."""
    if act in ("read it again", "work it out again"):
        return "What this work was for"
    if isinstance(row, Round):
        return f"Round {row.number}"
    return {Upload: "more.tsv", Membership: "cleo", ApiToken: "nightly"}[type(row)]


def meanwhile_removed(stage: Stage, row: Any, ask: Ask) -> HttpResponse:
    with transaction.atomic():
        stage.remove(row)
        other = Other(ask).until_it_waits()
    answer: HttpResponse = other.outcome()
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("act", REST)
def test_the_rest_interface_says_what_is_gone(stage: Stage, act: str) -> None:
    what, method, address, body = REST[act]
    row = getattr(stage, what)()
    path, client = address.format(**places(row)), client_of(stage.second)
    audited = AuditEntry.objects.count()

    answer = meanwhile_removed(
        stage, row, lambda: getattr(client, method)(path, body, format="json")
    )

    said = answer.json()
    if said["code"] != "not_found" or connection.vendor == "postgresql":
        code = ("not_a_member", 409) if what == "membership" else ("gone", 404)
        assert (said["code"], answer.status_code) == code
        assert name_of(row, act) in said["message"]
    assert AuditEntry.objects.count() == audited + 1  # the removal, once


@pytest.mark.slow
@pytest.mark.parametrize("act", PAGES)
def test_pages_say_what_is_gone(stage: Stage, act: str) -> None:
    what, address, named = PAGES[act]
    row = getattr(stage, what)()
    path = reverse(address, args=[places(row)[name] for name in named])
    data = {**FORM, "design": choices.digest_of(row)} if what == "round" else {}

    answer = meanwhile_removed(stage, row, lambda: stage.page.post(path, data, follow=True))

    assert answer.status_code < 500
    text = answer.content.decode()
    if connection.vendor == "postgresql":
        assert name_of(row, act) in text
        assert "any more" in text


def run_of(stage: Stage) -> Upload:
    return stage.campaign.uploads.get(name="run1.run")


NAMING = {"goal": "single", "run": "run1"}


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("there", [False, True], ids=["draft", "change"])
def test_a_round_that_names_a_run_which_is_removed_meanwhile_is_refused(
    stage: Stage, there: bool
) -> None:
    client, path, body = client_of(stage.second), f"{API}rounds/", NAMING
    if there:
        path = f"{path}{stage.round().number}/"
    else:
        body = {"measure": "P@10", "budget": 40, "batch_size": 20, **NAMING}
    send = client.patch if there else client.post

    answer = meanwhile_removed(stage, run_of(stage), lambda: send(path, body, format="json"))

    assert (answer.status_code, answer.json()["code"]) == (400, "round_invalid")
    assert [line["field"] for line in answer.json()["errors"]] == ["run"]


def test_a_run_that_a_round_names_since_a_moment_ago_is_kept(stage: Stage) -> None:
    upload, client = run_of(stage), client_of(stage.second)
    plan = rounds.RoundPlan(measure="P@10", budget=40, batch_size=20, **NAMING)
    with transaction.atomic():
        rounds.draft(campaign=stage.campaign, by=stage.first, plan=plan)
        other = Other(lambda: client.delete(f"{API}uploads/{upload.pk}/")).until_it_waits()

    answer = other.outcome()

    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")


@pytest.mark.slow
def test_a_page_about_what_is_gone_leads_to_what_is_there(stage: Stage) -> None:
    key, upload = stage.key(), stage.upload()
    uploads.remove(upload=upload, by=stage.first)
    members.revoke_token(token=key, by=stage.second)
    account, home = reverse("account"), reverse("campaign-home", args=["test"])

    job = reverse("work-again", args=["test", 999_999])
    acted = stage.page.post(job, headers={"Referer": home})
    revoked = stage.page.post(reverse("token-revoke", args=[key.pk]))
    looked = stage.page.get(reverse("upload-detail", args=["test", upload.pk]))
    nowhere = stage.page.get("/c/none/")

    assert [each.status_code for each in (acted, looked, nowhere)] == [404] * 3
    assert f'href="{home}">See what is there now' in acted.content.decode()
    assert (revoked.status_code, revoked["Location"]) == (302, account)
    assert f'href="{home}">To the campaign<' in looked.content.decode()
    assert "To the campaign<" not in nowhere.content.decode()


@pytest.mark.slow
def test_no_way_leads_back_to_the_page_of_what_is_gone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = run_of(stage)
    run = Run.objects.select_related("campaign", "upload").get(upload=upload)
    own = reverse("run-detail", args=["test", run.pk])
    monkeypatch.setattr(run_views, "_run", lambda *_: run)  # as looked up a moment ago
    uploads.remove(upload=Upload.objects.get(pk=upload.pk), by=stage.first)

    about = reverse("run-about", args=["test", run.pk])
    answer = stage.page.post(about, {}, headers={"Referer": f"http://testserver{own}"})

    assert answer.status_code == 404
    page = answer.content.decode()
    assert "<h1>No longer there</h1>" in page
    assert f'href="{reverse("campaign-home", args=["test"])}">See what is there now' in page

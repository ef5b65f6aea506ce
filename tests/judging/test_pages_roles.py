"""Every page of the judging side as each role; the organizer's forms; what every page sends."""

import re
from typing import Any

import pytest
from django.apps import apps
from django.db.models.functions import Now
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from judging.models import (
    ApiToken,
    Assignment,
    AuditEntry,
    Campaign,
    Decision,
    Job,
    KnownGrade,
    Membership,
    User,
)
from judging.services import assignments, batches, members
from judging.services.campaigns import DEFAULT_GRADES
from judging.stuck import stuck_pairs
from tests.support import factories
from tests.support.pages import as_role

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

SIGN_IN, OK, FORBIDDEN, MISSING = 302, 200, 403, 404
EVERYBODY = {"anonymous": SIGN_IN, "assessor": OK, "organizer": OK, "other": OK, "admin": OK}
ORGANIZING = {**EVERYBODY, "assessor": FORBIDDEN, "other": MISSING}
ASSESSING = {**EVERYBODY, "organizer": FORBIDDEN, "other": MISSING, "admin": FORBIDDEN}
PAGES = {
    "home": EVERYBODY,
    "account": EVERYBODY,
    "password": EVERYBODY,
    "campaign-new": {**EVERYBODY, "assessor": FORBIDDEN},
    "campaign-settings": ORGANIZING,
    "campaign-delete": ORGANIZING,
    "people": ORGANIZING,
    "queue": ORGANIZING,
    "decisions": ORGANIZING,
    "comments": ORGANIZING,
    "comments-file": ORGANIZING,
    "judgment-list": ORGANIZING,
    "audit-log": ORGANIZING,
    "audit-file": ORGANIZING,
    "judge": ASSESSING,
    "own-work": ASSESSING,
}
POSTS = {
    "campaign-open": ORGANIZING,
    "campaign-pause": ORGANIZING,
    "campaign-close": ORGANIZING,
    "campaign-archive": ORGANIZING,
    "campaign-unarchive": ORGANIZING,
    "campaign-duplicate": ORGANIZING,
    "judge-from-qrels": ORGANIZING,
    "decide-rest": ORGANIZING,
    "member-remove": ORGANIZING,
    "decide": ORGANIZING,
    "judge-save": {**ASSESSING, "assessor": MISSING},
    "judge-skip": {**ASSESSING, "assessor": MISSING},
    "judge-later": {**ASSESSING, "assessor": MISSING},
    "judge-correct": {**ASSESSING, "assessor": MISSING},
}
OF_THE_SITE = {"home", "account", "password", "campaign-new"}
WITH_ROW = {"member-remove", "decide", "judge-save", "judge-skip", "judge-later", "judge-correct"}


def address(name: str, campaign: Campaign) -> str:
    slug = [] if name in OF_THE_SITE else [campaign.slug]
    return reverse(name, args=[*slug, *([99999] if name in WITH_ROW else [])])


def text_of(response: HttpResponse) -> str:
    return response.getvalue().decode()  # of files as well, which are streamed


@pytest.mark.slow
@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize("name", PAGES)
def test_who_sees_which_page(name: str, role: str) -> None:
    campaign = factories.campaign()
    response = as_role(role, campaign).get(address(name, campaign))
    assert response.status_code == PAGES[name][role]
    if response.status_code == SIGN_IN:
        assert response.headers["Location"].startswith("/sign-in/?next=")


@pytest.mark.slow
@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize("name", POSTS)
def test_who_may_send_what(name: str, role: str) -> None:
    campaign = factories.campaign()
    client = as_role(role, campaign)
    before = AuditEntry.objects.count()
    status = client.post(address(name, campaign), {"grade": 0, "key": "k"}).status_code
    expected = POSTS[name][role]
    if expected == OK:
        missing = {302} if name == "member-remove" else {MISSING}  # what is gone is so already
        assert status in (missing if name in WITH_ROW else {200, 302, 400, 409})
    else:
        assert status == expected
        assert AuditEntry.objects.count() == before


@pytest.mark.parametrize("name", POSTS)
def test_a_change_needs_a_post_and_its_token(name: str) -> None:
    campaign = factories.campaign()
    client = Client(enforce_csrf_checks=True)
    client.force_login(campaign.created_by)
    assert client.post(address(name, campaign), {}).status_code == FORBIDDEN
    if name != "judge-correct":
        found = client.get(address(name, campaign))
        assert (found.status_code, found["Allow"]) == (405, "POST")
        assert "press the button there" in found.content.decode()
        assert "To your campaigns" in found.content.decode()


def test_who_was_signed_out_comes_back_to_the_page_with_the_button() -> None:
    campaign = factories.campaign()
    campaign.created_by.set_password("pw")
    campaign.created_by.save()
    client, page = Client(), f"{address('people', campaign)}?q=anna"
    there = client.post(
        address("campaign-close", campaign), headers={"Referer": f"http://testserver{page}#main"}
    )
    assert there.status_code == 302
    assert "nothing was changed" in client.get(there["Location"]).content.decode()
    who = {"username": campaign.created_by.username, "password": "pw"}
    assert client.post(there["Location"], who)["Location"] == page


@pytest.mark.parametrize("before", ["", "http://elsewhere.example/c/", "http://testserver"])
def test_who_was_signed_out_elsewhere_comes_to_their_campaigns(before: str) -> None:
    campaign = factories.campaign()
    headers = {"Referer": before} if before else {}
    there = Client().post(address("campaign-close", campaign), headers=headers)["Location"]
    assert there == f"{reverse('sign-in')}?next=/"


def test_a_script_that_is_signed_out_is_sent_to_sign_in_without_a_word() -> None:
    client, campaign = Client(), factories.campaign()
    headers = {"Sec-Fetch-Mode": "cors"}
    there = client.post(address("campaign-close", campaign), headers=headers)["Location"]
    assert there == f"{reverse('sign-in')}?next={address('campaign-close', campaign)}"
    assert "nothing was changed" not in client.get(there).content.decode()


@pytest.mark.slow
def test_pages_carry_the_policy_and_nothing_that_it_forbids() -> None:
    campaign = factories.campaign()
    factories.released_batch(campaign, "ab")
    seen = 0
    for role in EVERYBODY:
        client = as_role(role, campaign)
        for name in [*PAGES, "sign-in"]:
            url = reverse("sign-in") if name == "sign-in" else address(name, campaign)
            response = client.get(url, follow=role == "anonymous")
            policy = response.headers["Content-Security-Policy"]
            assert "script-src 'self';" in policy + ";"
            assert "unsafe" not in policy
            page = text_of(response)
            assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|hx-on", page)
            assert not re.search(r"<script(?![^>]*\ssrc=)", page)
            seen += len(page) > 0

    assert seen > 40


@pytest.mark.slow
def test_the_sign_in_page_leads_in_and_counts_tries() -> None:
    user = factories.user("anna")
    user.set_password("right-password")
    user.save()
    url = reverse("sign-in")
    wrong = {"username": "anna", "password": "wrong"}

    assert "do not fit together" in text_of(Client().post(url, wrong))
    right = Client().post(url + "?next=/account/", {**wrong, "password": "right-password"})
    assert right.headers["Location"] == "/account/"
    elsewhere = {**wrong, "password": "right-password", "next": "https://evil.example/"}
    assert Client().post(url, elsewhere).headers["Location"] == "/"
    no_path = (client := Client()).post(url, {**elsewhere, "next": "judge"})
    assert no_path.headers["Location"] == "/"
    again = client.post(
        reverse("confirm-it-is-you") + "?next=judge", {"password": "right-password"}
    )
    assert again.headers["Location"] == "/"
    for _ in range(10):
        page = text_of(Client().post(url, wrong))
    assert "Too many tries" in text_of(Client().post(url, elsewhere)), page


def test_demo_accounts_are_shown_only_while_they_work(settings: Any) -> None:
    settings.DEMO_SIGN_INS = [("anna", "demo-password", "judges"), ("ben", "demo-password", "—")]
    assert "demo-password" not in text_of(Client().get(reverse("sign-in")))
    user = factories.user("anna")
    user.set_password("demo-password")
    user.save()
    page = text_of(Client().get(reverse("sign-in")))
    assert "demo-password" in page
    assert "ben" not in page
    user.set_password("changed")
    user.save()
    assert "demo-password" not in text_of(Client().get(reverse("sign-in")))


@pytest.mark.slow
def test_an_invited_member_sets_a_password_once_and_is_signed_in() -> None:
    campaign = factories.campaign()
    organizer = Client()
    organizer.force_login(campaign.created_by)
    people = reverse("people", args=[campaign.slug])
    organizer.post(people, {"username": "anna", "role": "assessor"})
    link = re.search(r"http://testserver(/join/[^\"]+)", text_of(organizer.get(people)))
    assert link

    client = Client()
    assert "Welcome, anna" in text_of(client.get(link.group(1)))
    differ = {"password": "long-enough-1", "again": "long-enough-2"}
    assert "differ" in text_of(client.post(link.group(1), differ))
    weak = {"password": "password", "again": "password"}
    assert "too common" in text_of(client.post(link.group(1), weak))
    good = {"password": "long-enough-1", "again": "long-enough-1"}
    assert client.post(link.group(1), good, follow=True).context["user"].username == "anna"

    used = Client().get(link.group(1))
    assert used.status_code == 404
    assert "was used or is out of date" in text_of(used)
    assert link.group(1) not in text_of(organizer.get(people))


def test_adding_and_removing_people() -> None:
    campaign = factories.campaign()
    client = Client()
    client.force_login(campaign.created_by)
    people = reverse("people", args=[campaign.slug])
    bad = client.post(people, {"username": "a b/c", "role": "assessor"})
    assert "Use letters, digits" in text_of(bad)
    client.post(people, {"username": "anna", "role": "assessor"})

    anna = campaign.memberships.get(user__username="anna")
    client.post(reverse("member-remove", args=[campaign.slug, anna.pk]))
    assert not campaign.memberships.filter(pk=anna.pk).exists()

    last = campaign.memberships.get(role=Membership.Role.ORGANIZER)
    refused = client.post(reverse("member-remove", args=[campaign.slug, last.pk]))
    assert refused.status_code == 409
    assert "at least one organizer" in text_of(refused)


def test_a_key_is_shown_once_works_and_can_be_revoked() -> None:
    user = factories.user("anna")
    client = Client()
    client.force_login(user)
    sent = {"name": "nightly", "scope": "full", "days": "90"}
    page = text_of(client.post(reverse("account"), sent))
    key = re.search(r"evs_[\w-]{40,}", page)
    assert key
    assert key.group() not in text_of(client.get(reverse("account")))
    token = ApiToken.objects.get(digest=ApiToken.digest_of(key.group()))

    stranger = Client()
    stranger.force_login(factories.user("ben"))
    revoke = reverse("token-revoke", args=[token.pk])
    assert stranger.post(revoke)["Location"] == reverse("account")  # to their own keys
    assert ApiToken.objects.filter(pk=token.pk).exists()
    client.post(revoke)
    assert not ApiToken.objects.exists()


def rows(*grades: str) -> dict[str, str]:
    data = {"grades-TOTAL_FORMS": str(len(grades)), "grades-INITIAL_FORMS": "0"}
    for number, name in enumerate(grades):
        data |= {f"grades-{number}-name": name, f"grades-{number}-meaning": ""}
    return data


PLAN = {"name": "New one", "slug": "", "depth": 50, "lease_minutes": 5}


def test_a_campaign_is_made_with_its_scale() -> None:
    client = Client()
    client.force_login(factories.user("olga", is_organizer=True))
    response = client.post(reverse("campaign-new"), {**PLAN, **rows("no", "", "yes", "")})
    assert response.headers["Location"] == "/c/new-one/material/"
    campaign = Campaign.objects.get(slug="new-one")
    assert [grade["name"] for grade in campaign.grades] == ["no", "yes"]

    again = client.post(reverse("campaign-new"), {**PLAN, **rows("no", "yes")})
    assert "is taken" in text_of(again)
    reserved = client.post(reverse("campaign-new"), {**PLAN, "name": "New", **rows("no", "yes")})
    assert "is taken" in text_of(reserved)
    single = client.post(reverse("campaign-new"), {**PLAN, "name": "x", **rows("no")})
    assert "Expected 2 to 21 grades" in text_of(single)
    assert Campaign.objects.count() == 1


def test_a_form_without_a_scale_leaves_it_and_half_a_scale_is_told() -> None:
    client = Client()
    client.force_login(factories.user("olga", is_organizer=True))
    half = {"grades-0-name": "no", "grades-TOTAL_FORMS": "x"}
    told = text_of(client.post(reverse("campaign-new"), {**PLAN, **half}))
    assert "did not arrive whole" in told
    assert "bug report" not in told
    assert "Hidden field" not in told
    client.post(reverse("campaign-new"), PLAN)
    assert Campaign.objects.get().grades == DEFAULT_GRADES
    changed = {**PLAN, "name": "Other"}
    client.post(reverse("campaign-settings", args=["new-one"]), changed)
    campaign = Campaign.objects.get()
    assert (campaign.name, campaign.grades) == ("Other", DEFAULT_GRADES)


def test_settings_change_but_not_what_drawn_rounds_rest_on() -> None:
    campaign = factories.campaign()
    client = Client()
    client.force_login(campaign.created_by)
    url = reverse("campaign-settings", args=[campaign.slug])
    client.post(url, {**PLAN, "guidelines": "Read well.", **rows("no", "yes")})
    campaign.refresh_from_db()
    assert (campaign.name, campaign.depth, len(campaign.grades)) == ("New one", 50, 2)

    factories.released_batch(campaign, "a")
    client.post(url, {**PLAN, "name": "Later", "depth": 7, **rows("a", "b", "c")})
    campaign.refresh_from_db()
    assert (campaign.name, campaign.depth, len(campaign.grades)) == ("Later", 50, 2)


def test_opening_and_closing_tell_when_they_come_too_late() -> None:
    campaign = factories.campaign()
    client = Client()
    client.force_login(campaign.created_by)
    batches.release([batches.new_batch(campaign).pk])
    opening = reverse("campaign-open", args=[campaign.slug])
    assert client.post(opening).status_code == 302
    late = client.post(opening, follow=True)
    assert late.redirect_chain == [(reverse("campaign-home", args=[campaign.slug]), 302)]
    assert "The campaign is open already." in text_of(late)
    client.post(reverse("campaign-close", args=[campaign.slug]))
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.CLOSED


@pytest.mark.slow
@pytest.mark.on_both
def test_a_stuck_pair_is_asked_again_then_decided_with_its_reason() -> None:
    campaign = factories.campaign(topics=1)
    factories.released_batch(campaign, "a")
    (anna,) = factories.assessors(campaign, "anna")
    assignment = assignments.claim_next(campaign=campaign, by=anna)
    assert assignment
    assignments.skip(assignment=assignment, by=anna, reason="cannot <read> it")
    client = Client()
    client.force_login(campaign.created_by)
    page = reverse("decisions", args=[campaign.slug])
    decide = reverse("decide", args=[campaign.slug, assignment.pair_id])
    assert "cannot &lt;read&gt; it" in text_of(client.get(page))

    assert client.post(decide, {"action": "grade", "grade": "0"}).status_code == 400
    assert client.post(decide, {"action": "grade", "reason": "why"}).status_code == 400
    assert client.post(decide, {"action": "as_is", "reason": "why"}).status_code == 409
    assert not Decision.objects.exists()
    client.post(decide, {"action": "ask"})
    assert stuck_pairs(campaign) == []
    client.post(decide, {"action": "grade", "grade": "2", "reason": "It is a heading."})

    decision = Decision.objects.get()
    assert (decision.grade, decision.decided_by) == (2, campaign.created_by)
    done = reverse("queue", args=[campaign.slug]) + "?kind=done"
    assert "It is a heading." in text_of(client.get(done))


@pytest.mark.slow
def test_known_grades_and_the_rest_are_decided_by_the_worker_when_confirmed() -> None:
    campaign = factories.campaign(topics=1)
    factories.released_batch(campaign, "abc")
    topic = campaign.topics.get()
    upload = topic.upload
    KnownGrade.objects.create(campaign=campaign, upload=upload, topic=topic, docno="b", grade=3)
    client = Client()
    client.force_login(campaign.created_by)
    client.post(reverse("judge-from-qrels", args=[campaign.slug]))
    factories.run_due_jobs()
    assert Assignment.objects.get().pair.docno == "b"

    rest = reverse("decide-rest", args=[campaign.slug])
    unsure = client.post(rest, {"grade": "0", "reason": "outside the pool"})
    assert unsure.status_code == 400
    assert not Decision.objects.exists()
    client.post(rest, {"grade": "0", "reason": "outside the pool", "sure": "on"})
    assert not Decision.objects.exists()
    factories.run_due_jobs()
    assert "2 pairs decided" in text_of(client.get(reverse("decisions", args=[campaign.slug])))
    assert sorted(d.pair.docno for d in Decision.objects.all()) == ["a", "c"]


@pytest.mark.on_both
def test_the_first_page_asks_each_for_what_is_theirs(django_assert_max_num_queries: Any) -> None:
    campaign = factories.campaign()
    factories.released_batch(campaign, "ab")
    (anna,) = factories.assessors(campaign, "anna")
    factories.judge_next(campaign, anna, grade=1)
    assignment = assignments.claim_next(campaign=campaign, by=anna)
    assert assignment
    assignments.skip(assignment=assignment, by=anna, reason="no")
    for number in range(5):
        factories.campaign(by=campaign.created_by, slug=f"c{number}")

    client = Client()
    client.force_login(anna)
    page = text_of(client.get("/"))
    assert reverse("judge", args=[campaign.slug]) in page
    assert reverse("people", args=[campaign.slug]) not in page
    client.force_login(campaign.created_by)
    with django_assert_max_num_queries(13):
        page = text_of(client.get("/"))
    assert ">1 skipped pair</a>" in page
    assert "3 pairs left in open batches" in page
    client.force_login(factories.user("nobody"))
    assert "No campaign yet" in text_of(client.get("/"))


def test_the_first_page_tells_all_that_waits_for_an_organizer() -> None:
    campaign = factories.campaign()
    factories.assessors(campaign, "anna", "ben")
    gone, failed = 10_000, Job.State.FAILED
    Job.objects.create(kind="recompute", target=1, campaign=campaign, state=failed)
    Job.objects.create(kind="upload", target=gone, campaign=campaign, state=failed)
    Job.objects.create(kind="recompute", target=2, campaign=campaign)
    Membership.objects.filter(user__username="anna").update(held=Now())
    client = Client()
    client.force_login(campaign.created_by)
    page = text_of(client.get("/"))
    assert ">1 failed job</a>" in page
    assert ">1 held assessor</a>" in page
    Campaign.objects.update(state=Campaign.State.CLOSED)
    assert "failed job" not in text_of(client.get("/"))


def test_error_pages_say_what_is_wrong_where_htmx_finds_it() -> None:
    client = Client()
    client.force_login(factories.user("anna"))
    page = client.get("/c/none/settings/")
    assert page.status_code == 404
    assert 'id="problem"' in text_of(page)


def first_row(model: str) -> int:
    return apps.get_model("judging", model).objects.values_list("pk", flat=True)[0]


@pytest.mark.slow
@pytest.mark.on_both
def test_admins_look_up_rows_and_change_none() -> None:
    campaign = factories.campaign(topics=1)
    factories.released_batch(campaign, "a")
    (anna,) = factories.assessors(campaign, "anna")
    factories.judge_next(campaign, anna, grade=1)
    members.create_token(user=anna, name="k")
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    for model in ("judgment", "assignment", "decision", "auditentry", "campaign", "pair", "batch"):
        assert client.get(f"/admin/judging/{model}/").status_code == 200
        assert client.get(f"/admin/judging/{model}/add/").status_code == 403
    for model in ("judgment", "assignment", "auditentry", "pair"):
        row = first_row(model)
        assert client.get(f"/admin/judging/{model}/{row}/change/").status_code == 200
        assert client.post(f"/admin/judging/{model}/{row}/change/", {}).status_code == 403
        assert client.post(f"/admin/judging/{model}/{row}/delete/", {}).status_code == 403
    assert "digest" not in text_of(
        client.get(f"/admin/judging/apitoken/{first_row('apitoken')}/change/")
    )
    client.force_login(campaign.created_by)
    assert client.get("/admin/judging/judgment/").status_code == 302


@pytest.mark.parametrize("method", ["get", "post"])
def test_who_is_signed_out_already_has_nothing_to_sign_in_for(method: str, client: Client) -> None:
    """A second tab said to sign in and do it again, and the address led to a page of no page."""
    answer = getattr(client, method)(reverse("sign-out"), headers={"referer": "http://testserver/"})
    assert answer["Location"] == reverse("sign-in")
    assert "nothing was changed" not in client.get(answer["Location"]).content.decode()


def test_who_signs_in_to_sign_out_comes_to_their_campaigns(client: Client) -> None:
    user = factories.user("anna")
    user.set_password("pw")
    user.save()
    who = {"username": "anna", "password": "pw"}
    assert client.post(f"{reverse('sign-in')}?next={reverse('sign-out')}", who)["Location"] == "/"

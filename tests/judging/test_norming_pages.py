"""Norming on pages and by REST: who finds what, in which state, and what each is told."""

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from judging import norming
from judging.models import Campaign, NormingAnswer, NormingComment, NormingSession, User
from judging.services import norming as services
from tests.support import factories, norms, rest
from tests.support.norms import comment, named, talk
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
State = NormingSession.State
TOKEN = re.compile(r"\b\w{64}\b")
"""Against forged forms: drawn at random, it may have any short word in it."""


@pytest.fixture
def made() -> Campaign:
    return norms.campaign("anna", "ben")


def page_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def there(response: HttpResponse) -> str:
    assert response.status_code == 200
    return text(response)


# ------------------------------------------------------------------------------- who takes part


@pytest.mark.slow
def test_an_open_session_stands_on_the_first_page_and_where_one_judges(made: Campaign) -> None:
    anna = page_of(named("anna"))
    assert "No session for you yet" in there(anna.get(address("norming", made)))
    draft = norms.session(made, begin=False)
    assert "First talk" not in there(anna.get("/"))
    services.begin(session=draft, by=made.created_by)
    desk = address("norming-desk", made, draft.pk)
    for place in ("/", address("judge", made), address("norming", made)):
        page = anna.get(place)
        assert "First talk" in there(page)
        assert f'href="{desk}"' in page.content.decode()
    norms.answers(draft, {named("anna"): (0, 0, 0)})
    assert "First talk" not in there(anna.get("/")), "there is nothing to do before others answer"
    norms.answers(draft, {named("ben"): (0, 0, 0)})
    assert "Talk about: First talk" in there(anna.get(address("judge", made)))
    services.close(session=draft, by=made.created_by)
    assert "First talk" not in there(anna.get("/"))
    assert "Closed" in there(anna.get(address("norming", made)))


def test_alpha_of_who_differ_throughout_has_the_sign_of_other_numbers(made: Campaign) -> None:
    row = norms.session(made)
    norms.answers(row, {named("anna"): (0, 3, 0), named("ben"): (3, 0, 3)})
    shown = page_of(made.created_by).get(address("norming-session", made, row.pk))
    assert "−0.67" in there(shown)


@pytest.mark.slow
def test_one_pair_after_the_other_alone_and_then_to_the_discussion(made: Campaign) -> None:
    row, anna = norms.session(made), page_of(named("anna"))
    norms.answers(row, {named("ben"): (3, 3, 3)})
    desk = address("norming-desk", made, row.pk)
    for number in range(3):
        page = anna.get(desk)
        assert f"{number} of 3" in there(page)
        for theirs in ("grade 3</span><span", "ben", "Assessor", "circle"):
            assert theirs not in TOKEN.sub("", page.content.decode()).replace("grade-3", "")
        pair = page.context["pair"]
        for _ in range(2):
            anna.post(desk, {"pair": pair.pk, "grade": number})
        anna.post(desk, {"pair": pair.pk, "grade": 3})
    row.refresh_from_db()
    assert row.state == State.DISCUSSION
    grades = NormingAnswer.objects.filter(person__user__username="anna")
    assert sorted(grades.values_list("grade", flat=True)) == [0, 1, 2]
    assert anna.get(desk).url == address("norming-discussion", made, row.pk)
    wrong = anna.post(desk, {"pair": pair.pk, "grade": "x"}, follow=True)
    assert wrong.redirect_chain[-1][0] == address("norming-discussion", made, row.pk)


@pytest.mark.slow
def test_before_it_is_discussed_nothing_shows_it_to_anybody(made: Campaign) -> None:
    row = norms.session(made, by_itself=False)
    norms.answers(row, {named("anna"): (0, 1, 2), named("ben"): (3, 1, 2)})
    pair = row.pairs.all()[0].pk
    for user in (named("anna"), made.created_by):
        client = page_of(user)
        for place in (
            address("norming-discussion", made, row.pk),
            address("norming-pair", made, row.pk, pair),
        ):
            assert client.get(place).status_code == 409
        sent = client.post(
            address("norming-comment", made, row.pk, pair), {"text": "x", "key": "k"}
        )
        assert sent.status_code == 409
    organizer = page_of(made.created_by)
    assert organizer.get(address("norming-file", made, row.pk)).status_code == 409
    shown = organizer.get(address("norming-session", made, row.pk))
    assert "2 of 2 people have answered all" in there(shown)
    assert "circle" not in shown.content.decode()
    assert "grade 3" not in text(shown)


def test_a_page_that_does_not_ask_whether_it_is_blind_is_caught(
    made: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = norms.session(made, by_itself=False)
    norms.answers(row, {named("anna"): (0, 1, 2), named("ben"): (3, 1, 2)})
    monkeypatch.setattr(norming, "refuse_blind", lambda session: None)
    page = page_of(named("anna")).get(address("norming-discussion", made, row.pk))
    assert page.status_code != 409, "the test above looks for this"
    assert "circle" not in page.content.decode(), "and the selectors still say nothing"
    monkeypatch.setattr(NormingSession, "is_blind", False)
    assert norming.findings(norms.seat(row)) is not None


@pytest.mark.slow
def test_people_talk_change_their_grade_and_nothing_they_write_is_markup(made: Campaign) -> None:
    row = talk(made, (0, 1, 2), (3, 1, 2))
    anna, pair = page_of(named("anna")), row.pairs.all()[0].pk
    place = address("norming-pair", made, row.pk, pair)
    listed = anna.get(address("norming-discussion", made, row.pk))
    assert listed.context["found"][0].pair.pk == pair, "the widest spread comes first"
    assert listed.content.decode().count("<circle") == 4
    sent = {"text": "<script>x</script> & more", "key": "k"}
    for _ in range(2):
        done = anna.post(address("norming-comment", made, row.pk, pair), sent)
        assert done.url == f"{place}#last"
    assert NormingComment.objects.count() == 1
    assert "&lt;script&gt;x&lt;/script&gt; &amp; more" in anna.get(place).content.decode()
    anna.post(address("norming-revise", made, row.pk, pair), {"grade": 2})
    shown = there(page_of(named("ben")).get(place))
    number = row.people.get(user=named("anna")).number
    assert f"Assessor {number}" in shown
    assert "after discussion" in shown
    assert "anna" not in shown
    assert "anna" in there(page_of(made.created_by).get(place))
    empty = anna.post(address("norming-comment", made, row.pk, pair), {"text": " ", "key": "n"})
    assert empty.status_code == 400
    services.close(session=row, by=made.created_by)
    assert "<textarea" not in anna.get(place).content.decode()
    sent = {"text": "What <I> think of it", "key": "late"}
    late = anna.post(address("norming-comment", made, row.pk, pair), sent)
    assert (late.status_code, NormingComment.objects.count()) == (400, 1)
    assert "closed" in text(late)
    assert "What &lt;I&gt; think of it" in late.content.decode(), "nobody writes it twice"


@pytest.mark.slow
@pytest.mark.on_both
def test_comments_come_in_pages_the_newest_last(
    made: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judging.views import norming as views

    monkeypatch.setattr(views, "COMMENTS_PER_PAGE", 2)
    row = talk(made, (0, 1, 2), (3, 1, 2))
    for number in range(5):
        comment(row, named("anna"), f"said {number}", f"k{number}")
    place = address("norming-pair", made, row.pk, row.pairs.all()[0].pk)
    client = page_of(named("ben"))
    assert [each.row.text for each in client.get(place).context["thread"]] == ["said 4"]
    first = client.get(f"{place}?page=1").context["thread"]
    assert [each.row.text for each in first] == ["said 0", "said 1"]


@pytest.mark.slow
def test_pages_take_so_many_statements_however_much_there_is(made: Campaign) -> None:
    def counted(row: NormingSession, user: User) -> list[int]:
        found = []
        pair = row.pairs.all()[0].pk
        for name, who, more in (
            ("norming-sessions", row.created_by, ()),
            ("norming-session", row.created_by, (row.pk,)),
            ("norming-discussion", user, (row.pk,)),
            ("norming-pair", user, (row.pk, pair)),
            ("norming", user, ()),
        ):
            client, place = page_of(who), address(name, row.campaign, *more)
            client.get(place)
            with CaptureQueriesContext(connection) as captured:
                client.get(place)
            found.append(len(captured))
        return found

    few = talk(made, (0, 1, 2), (3, 1, 2))
    comment(few, named("anna"), "said")
    large = norms.campaign(*(f"p{n}" for n in range(6)), slug="large")
    pairs = [f"{topic},{docno}\n" for topic in ("t1", "t2") for docno in "abcd"]
    row = norms.session(large, lines="topic,docno\n" + "".join(pairs))
    people = list(User.objects.filter(username__startswith="p"))
    norms.answers(row, {user: [(n + k) % 4 for k in range(8)] for n, user in enumerate(people)})
    for n, user in enumerate(people):
        comment(row, user, f"said {n}")
    assert counted(row, people[0]) == counted(few, named("anna"))


# ------------------------------------------------------------------------------- who organizes


@pytest.mark.slow
def test_an_organizer_makes_a_session_and_moves_it_on(made: Campaign) -> None:
    client = page_of(made.created_by)
    assert "No session yet" in there(client.get(address("norming-sessions", made)))
    assert "Norming" in there(client.get(address("training-set", made)))
    refused = client.post(address("norming-sessions", made), {"title": ""})
    assert refused.status_code == 400
    sent = {"title": "First <talk>", "by_itself": "on"}
    page = client.post(address("norming-sessions", made), sent, follow=True)
    row = NormingSession.objects.get()
    assert "First &lt;talk&gt;" in page.content.decode()
    assert "No pairs yet" in text(page)
    wrong = client.post(address("norming-add", made, row.pk), {"text": "topic,docno\nt1,a\nt9,z\n"})
    assert wrong.status_code == 400
    assert "no such topic" in text(wrong)
    assert row.pairs.count() == 0
    client.post(address("norming-add", made, row.pk), {"text": "topic,docno\nt1,a\nt1,b\n"})
    gone = row.pairs.all()[1].pk
    client.post(address("norming-remove", made, row.pk, gone))
    assert row.pairs.count() == 1
    begun = client.post(address("norming-begin", made, row.pk), follow=True)
    assert "0 of 2 people have answered the one pair." in text(begun)
    nobody = client.post(address("norming-discuss", made, row.pk), follow=True)
    assert "Nobody has answered yet" in text(nobody)
    norms.answers(row, {named("anna"): [1]})
    client.post(address("norming-discuss", made, row.pk))
    closed = client.post(address("norming-close", made, row.pk), follow=True)
    assert "it can be read" in text(closed)
    kept = client.post(address("norming-delete", made, row.pk), follow=True)
    assert "what was said stays" in text(kept)


@pytest.mark.slow
@pytest.mark.on_both
def test_an_organizer_chooses_people_and_deletes_what_nobody_answered(made: Campaign) -> None:
    client, row = page_of(made.created_by), norms.session(made)
    people = address("norming-people", made, row.pk)
    alone = client.post(people, {"people": [named("anna").pk]})
    assert (alone.status_code, "At least two people" in text(alone)) == (400, True)
    (cara,) = factories.assessors(made, "cara")
    client.post(people, {"people": [named("anna").pk, cara.pk]})
    assert set(row.people.values_list("user__username", flat=True)) == {"anna", "cara"}
    client.post(address("norming-delete", made, row.pk))
    assert not NormingSession.objects.exists()


@pytest.mark.slow
def test_the_organizer_is_told_of_agreement_and_of_who_deviates(made: Campaign) -> None:
    row = talk(made, (0, 1, 2), (3, 1, 2))
    client = page_of(made.created_by)
    page = there(client.get(address("norming-session", made, row.pk)))
    assert "What the guidelines should say" in page
    assert "67 % → 67 %" in page
    answer = client.get(address("norming-file", made, row.pk))
    lines = b"".join(answer.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 7
    assert lines[0].startswith("topic,docno,assessor,first")


@pytest.mark.slow
@pytest.mark.on_both
def test_a_judged_pair_is_taken_into_a_draft_from_its_page(made: Campaign) -> None:
    factories.released_batch(made, "ab")
    factories.judge_next(made, named("anna"), 2)
    pair = made.pairs.get(judged=1)
    row, client = norms.session(made, lines="", begin=False), page_of(made.created_by)
    page = client.get(address("pair-detail", made, pair.pk))
    assert "Take it into “First talk”" in there(page)
    for told in ("1 pair taken over", "Nothing is taken over"):
        sent = client.post(address("norming-take", made, row.pk), {"judged": pair.pk}, follow=True)
        assert told in text(sent)
    assert "Take it into" not in there(client.get(address("pair-detail", made, pair.pk)))
    odd = client.post(address("norming-take", made, row.pk), {"judged": "x"}, follow=True)
    assert "Choose pairs" in text(odd)


# ------------------------------------------------------------------------------- by REST


@pytest.mark.slow
@pytest.mark.on_both
def test_by_rest_from_the_draft_to_the_end(made: Campaign) -> None:
    base = f"/api/campaigns/{made.slug}/norming/"
    organizer, anna, ben = (
        rest.client_of(user) for user in (made.created_by, named("anna"), named("ben"))
    )
    for title in ("First\ntalk", "First\u202etalk"):
        assert organizer.post(base, {"title": title}, format="json").status_code == 400
    one = organizer.post(base, {"title": "First talk"}, format="json").json()
    there = f"{base}{one['id']}/"
    assert (one["state"], one["people"], one["findings"]) == ("draft", 2, None)
    bad = {"pairs": [{"topic": "t1", "docno": "a"}, {"topic": "t9", "docno": "a"}]}
    refused = organizer.post(f"{there}pairs/", bad, format="json")
    assert (refused.status_code, refused.json()["code"]) == (400, "norming_invalid")
    assert [(each["line"], each["field"]) for each in refused.json()["errors"]] == [(2, "topic")]
    good = {"pairs": [{"topic": "t1", "docno": name} for name in "abc"]}
    pairs = organizer.post(f"{there}pairs/", good, format="json").json()
    assert organizer.delete(f"{there}pairs/{pairs[2]['id']}/").status_code == 204
    lacking = organizer.post(f"{there}people/", {"people": ["nobody"]}, format="json")
    assert lacking.json()["code"] == "norming_invalid"
    assert anna.get(f"{there}next/").status_code == 404, "a draft is not there yet"
    assert organizer.post(f"{there}begin/").json()["state"] == "judging"
    assert anna.get(f"{there}discussion/").json()["code"] == "still_blind"
    for client, grades in ((anna, (0, 1)), (ben, (2, 1))):
        for pair, grade in zip(pairs[:2], grades, strict=True):
            turn = client.get(f"{there}next/").json()
            assert turn["document"]["text"] == "A text."
            body = {"pair": pair["id"], "grade": grade}
            said = client.post(f"{there}answers/", body, format="json")
            assert said.json()["grade"] == grade
    assert anna.get(f"{base}mine/").json()["results"][0]["state"] == "discussion"
    assert anna.get(f"{there}next/").json()["pair"] is None
    body = {"pair": pairs[0]["id"], "grade": 2}
    assert anna.post(f"{there}revisions/", body, format="json").json()["revised"] == 2
    thread = f"{there}pairs/{pairs[0]['id']}/comments/"
    for _ in range(2):
        assert anna.post(thread, {"text": "I see."}, format="json").status_code == 201
    found = ben.get(f"{there}discussion/").json()["results"]
    assert [(each["spread"], each["comments"]) for each in found] == [(2, 1), (0, 0)]
    assert "anna" not in json.dumps(found)
    (said,) = ben.get(thread).json()["results"]
    assert said["name"].startswith("Assessor ")
    assert organizer.post(f"{there}close/").json()["findings"]["after"]["equal"] == 2
    late = organizer.post(thread, {"text": "Late."}, format="json")
    assert (late.status_code, late.json()["code"]) == (409, "wrong_state")
    assert organizer.delete(there).json()["code"] == "norming_answered"


def test_addresses_are_where_they_are_said_to_be(made: Campaign) -> None:
    names: dict[str, tuple[Any, ...]] = {"norming": (), "norming-sessions": ()}
    assert [reverse(name, args=[made.slug, *more]) for name, more in names.items()] == [
        f"/c/{made.slug}/norming/", f"/c/{made.slug}/norming/sessions/",
    ]  # fmt: skip

"""The judging page: pair after pair, by plain forms and by htmx, each answer stored once."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from judging.clock import seconds_from_now
from judging.models import (
    Assignment,
    Campaign,
    Document,
    Judgment,
    Membership,
    Pair,
    Topic,
    User,
)
from judging.services import campaigns, members
from judging.templatetags.assessing import blocks, marked
from tests.support import factories
from tests.support.growth import LINEAR, growth
from tests.support.pages import address

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
HTMX = {"HX-Request": "true"}
HOSTILE = '<script>alert(1)</script> & "quoted" <img src=x onerror=alert(1)> topic\'s <b>end</b>'


class Desk:
    """An assessor at the judging page of a campaign."""

    def __init__(self, campaign: Campaign, user: User) -> None:
        self.campaign, self.user = campaign, user
        self.client = Client()
        self.client.force_login(user)

    def url(self, name: str, *args: int) -> str:
        return reverse(name, args=[self.campaign.slug, *args])

    def look(self, **headers: str) -> HttpResponse:
        return self.client.get(self.url("judge"), headers=headers)

    def held(self) -> Assignment:
        return Assignment.objects.get(assessor=self.user, state=Assignment.State.LEASED)

    def save(self, assignment: Assignment, grade: int, key: str = "", **more: Any) -> HttpResponse:
        htmx = HTMX if more.pop("htmx", False) else {}
        data = {"grade": grade, "key": key or uuid.uuid4().hex, **more}
        return self.client.post(self.url("judge-save", assignment.pk), data, headers=htmx)


def desk(docnos: str = "abcd", *, topics: int = 2, labels: int = 1) -> Desk:
    campaign = factories.campaign(topics=topics)
    factories.released_batch(campaign, docnos, labels=labels)
    (anna,) = factories.assessors(campaign, "anna")
    return Desk(campaign, anna)


def text_of(response: HttpResponse) -> str:
    return response.content.decode()


def key_in(page: str) -> str:
    found = re.search(r'name="key" value="([0-9a-f]{32})"', page)
    assert found
    return found.group(1)


def add_document(campaign: Campaign, docno: str, **values: str) -> Document:
    upload = campaign.topics.first().upload  # type: ignore[union-attr]
    return Document.objects.create(campaign=campaign, upload=upload, docno=docno, **values)


@pytest.mark.slow
def test_the_whole_queue_is_judged_with_plain_forms() -> None:
    anna = desk()
    for _ in range(8):
        page = text_of(anna.look())
        assignment = anna.held()
        assert assignment.pair.docno in page
        response = anna.save(assignment, 2, key_in(page), seconds="3.5", comment="one\r\ntwo")
        assert response.headers["Location"] == anna.url("judge")

    assert Judgment.objects.count() == 8
    stored = Judgment.objects.latest("pk")
    assert (stored.grade, stored.comment, stored.seconds) == (2, "one\ntwo", 3.5)
    assert "All judged" in text_of(anna.look())


@pytest.mark.slow
def test_with_htmx_one_request_saves_and_brings_the_next_pair() -> None:
    anna = desk()
    anna.look()
    first = anna.held()

    fragment = text_of(anna.save(first, 1, htmx=True))

    assert "<html" not in fragment
    assert anna.held() != first
    assert anna.held().pair.docno in fragment
    assert 'data-announce="Saved.' in fragment


def test_what_was_judged_last_evening_is_not_told_to_be_of_today() -> None:
    """Where it is midnight for somebody, the site does not know."""
    anna = desk()
    anna.look()
    anna.save(anna.held(), 1)
    Assignment.objects.filter(state="judged").update(created=seconds_from_now(-23 * 3600))
    assert "<b>1</b> in 24 h</span>" in text_of(anna.look())
    Assignment.objects.filter(state="judged").update(created=seconds_from_now(-25 * 3600))
    assert "<b>0</b> in 24 h</span>" in text_of(anna.look())


@pytest.mark.slow
def test_a_double_submit_stores_once() -> None:
    anna = desk()
    key = key_in(text_of(anna.look()))
    first = anna.held()

    for htmx in (False, False, True):
        assert anna.save(first, 3, key, htmx=htmx).status_code in (200, 302)

    assert Judgment.objects.filter(assignment=first).count() == 1
    assert Pair.objects.get(pk=first.pair_id).judged == 1


@pytest.mark.slow
def test_another_grade_under_the_same_key_changes_nothing_and_says_how_to_change_it() -> None:
    anna = desk()
    key = key_in(text_of(anna.look()))
    first = anna.held()
    anna.save(first, 3, key)

    page = text_of(anna.save(first, 0, key, htmx=True))

    assert Judgment.objects.get(assignment=first).grade == 3
    assert "Press undo to change it" in page


def test_a_grade_outside_the_scale_is_refused_and_the_pair_stays() -> None:
    anna = desk()
    anna.look()
    held = anna.held()

    page = text_of(anna.save(held, 4, htmx=True))

    assert "No such grade" in page
    assert not Judgment.objects.exists()
    assert anna.held() == held


@pytest.mark.parametrize("grade", ["", "x", "-1", "2.5", "99999999999999999999"])
def test_nonsense_is_refused_and_the_pair_stays(grade: str) -> None:
    anna = desk()
    anna.look()
    response = anna.client.post(
        anna.url("judge-save", anna.held().pk), {"grade": grade, "key": "k"}, headers=HTMX
    )
    assert "could not be saved" in text_of(response)
    assert not Judgment.objects.exists()


@pytest.mark.slow
def test_a_skip_needs_a_reason_and_gives_the_pair_to_somebody_else() -> None:
    anna = desk("a", topics=1)
    (ben,) = factories.assessors(anna.campaign, "ben")
    anna.look()
    held = anna.held()

    page = text_of(anna.client.post(anna.url("judge-skip", held.pk), {}, headers=HTMX))
    assert "Say in a few words" in page
    assert anna.held() == held

    anna.client.post(anna.url("judge-skip", held.pk), {"reason": "Too long", "words": ""})
    held.refresh_from_db()
    assert (held.state, held.skip_reason) == (Assignment.State.SKIPPED, "Too long")
    assert "Nothing for you at the moment" in text_of(anna.look())
    assert "a" in text_of(Desk(anna.campaign, ben).look())
    assert Assignment.objects.filter(assessor=ben, pair=held.pair).exists()


@pytest.mark.parametrize("htmx", [True, False])
def test_later_says_when_the_topic_has_no_other(htmx: bool) -> None:
    anna = desk("ab", topics=2)
    anna.look()
    held = anna.held()
    headers = {"HX-Request": "true"} if htmx else {}
    url = anna.url("judge-later", held.pk)
    said = anna.client.post(url, headers=headers, follow=True).content.decode()
    assert anna.held().pk != held.pk
    assert "It is here again" not in said
    last = anna.held()
    anna.save(last, 1)
    anna.look()
    only = anna.held()
    assert only.pk == held.pk
    url = anna.url("judge-later", only.pk)
    said = anna.client.post(url, headers=headers, follow=True).content.decode()
    assert anna.held().pk == only.pk
    assert "It is here again: you have no other of this topic left" in said
    assert "It is here again" not in text_of(anna.look())


def test_later_brings_the_pair_after_the_others_of_its_topic() -> None:
    anna = desk("abc", topics=1)
    anna.look()
    put_off = anna.held()

    anna.client.post(anna.url("judge-later", put_off.pk))

    order = []
    for _ in range(3):
        anna.look()
        order.append(anna.held().pair_id)
        anna.save(anna.held(), 1)
    assert order[-1] == put_off.pair_id
    assert len(set(order)) == 3


@pytest.mark.on_both
def test_undo_leads_to_the_last_judgment_and_back_to_the_queue() -> None:
    anna = desk()
    anna.look()
    first = anna.held()
    anna.save(first, 1, comment="hasty")

    undo = f"{anna.url('judge-correct', first.pk)}?back=judge"
    assert undo in text_of(anna.look())
    page = text_of(anna.client.get(undo))
    assert "<b>1</b> of 4 judged" in page, "with the one in hand, as before and after"
    assert 'value="1" data-key="1" aria-keyshortcuts="1" aria-pressed="true"' in page
    assert "hasty" in page
    response = anna.client.post(
        anna.url("judge-correct", first.pk),
        {"grade": 3, "key": key_in(page), "revision": 1, "back": "judge", "comment": "hasty"},
    )

    assert response.headers["Location"] == anna.url("judge")
    grades = Judgment.objects.filter(assignment=first).order_by("revision")
    assert list(grades.values_list("revision", "grade")) == [(1, 1), (2, 3)]


def test_own_work_lists_what_counts_and_leads_to_corrections() -> None:
    anna = desk()
    anna.look()
    first = anna.held()
    anna.save(first, 1)
    correct = anna.url("judge-correct", first.pk)
    assert correct in text_of(anna.client.get(anna.url("own-work")))

    data = {"grade": 0, "key": "other", "revision": 1}
    assert anna.client.post(correct, data).headers["Location"] == anna.url("own-work")
    stale = anna.client.post(correct, {**data, "key": "third", "grade": 2}, follow=True)

    page = text_of(stale)
    assert "corrected meanwhile" in page
    assert "0 grade 0" in page
    assert list(Judgment.objects.values_list("grade", flat=True).order_by("pk")) == [1, 0]


def test_nobody_reaches_the_assignment_of_somebody_else() -> None:
    anna = desk()
    anna.look()
    theirs = anna.held()
    (ben,) = factories.assessors(anna.campaign, "ben")
    other = Desk(anna.campaign, ben)

    for name in ("judge-save", "judge-skip", "judge-later", "judge-correct"):
        data = {"grade": 1, "key": "k", "reason": "r", "revision": 1}
        assert other.client.post(other.url(name, theirs.pk), data).status_code == 404
    assert not Judgment.objects.exists()
    assert anna.held() == theirs


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("draft", "Not open yet"),
        ("closed", "This campaign is closed"),
        ("open", "Nothing is drawn"),
    ],
)
def test_an_empty_queue_says_why(state: str, words: str) -> None:
    campaign = factories.campaign()
    (anna,) = factories.assessors(campaign, "anna")
    Campaign.objects.update(state=state)
    assert words in text_of(Desk(campaign, anna).look())


def test_a_judgment_for_a_closed_campaign_is_refused_with_its_reason() -> None:
    anna = desk()
    anna.look()
    campaigns.close(campaign=anna.campaign, by=anna.campaign.created_by)
    page = text_of(anna.save(anna.held(), 1, htmx=True))
    assert "not open for judging" in page
    assert "This campaign is closed" in page


def test_a_new_topic_announces_itself_and_the_next_pair_of_it_does_not() -> None:
    anna = desk("ab", topics=2)
    announced = []
    for _ in range(4):
        announced.append("New topic" in text_of(anna.look()))
        anna.save(anna.held(), 0)
    assert announced == [True, False, True, False]


def test_nothing_secret_is_on_the_page() -> None:
    anna = desk("a", topics=1, labels=2)
    ben, cleo = factories.assessors(anna.campaign, "ben-the-other", "cleo-the-other")
    factories.judge_next(anna.campaign, ben, grade=3)
    page = text_of(anna.look())
    assert anna.held().pair.judged == 1
    for secret in ("ben-the-other", "probabil", "weight", "rank", "wanted", "2 labels", "run"):
        assert secret not in re.sub(r"<head>.*?</head>", "", _shape(page), flags=re.DOTALL).lower()
    assert "aria-pressed" not in page

    alone = factories.campaign(slug="alone", topics=1)
    factories.released_batch(alone, "a", labels=1)
    (dora,) = factories.assessors(alone, "dora")
    assert _shape(page) == _shape(text_of(Desk(alone, dora).look()))
    assert cleo.assignments.count() == 0


def _shape(page: str) -> str:
    """The page without what differs by campaign, person and request."""
    page = re.sub(r"[0-9a-f]{32}|/judge/\d+/|value=\"[\w-]{64}\"", "·", page)
    return re.sub(r"\b(anna|dora|test|alone)\b", "·", page)


@pytest.mark.parametrize("docnos", [10, 300])
def test_the_number_of_queries_is_bounded_whatever_the_number_of_pairs(docnos: int) -> None:
    anna = desk([f"d{n}" for n in range(docnos)], topics=3)  # type: ignore[arg-type]
    anna.look()
    anna.save(anna.held(), 1)

    first_look = queries(anna.look)
    look_again = queries(anna.look)
    held = anna.held()
    plain_save = queries(lambda: anna.save(held, 1))
    anna.look()
    next_held = anna.held()
    save_and_next = queries(lambda: anna.save(next_held, 1, htmx=True))

    # The last one does the work of two requests, a save and a look.
    assert first_look <= 23
    assert look_again <= 12
    assert plain_save <= 18
    assert save_and_next <= 36
    assert Judgment.objects.count() == 3


def queries(action: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        action()
    return len(captured)


def test_hostile_text_is_escaped_and_topic_words_are_marked() -> None:
    anna = desk("a", topics=1)
    Topic.objects.update(title="alert <i>topic</i>", description=HOSTILE, narrative=HOSTILE)
    add_document(anna.campaign, "a", title=HOSTILE, text=f"{HOSTILE}\n\nThe alerting text.")
    Campaign.objects.update(guidelines=HOSTILE)

    page = text_of(anna.look())

    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "<i>" not in page
    assert "<b>end" not in page
    assert "&lt;script&gt;<mark>alert</mark>(1)&lt;/script&gt;" in page
    assert "<mark>alerting</mark> text" in page


def test_a_missing_text_is_said() -> None:
    assert "was not uploaded" in text_of(desk().look())


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff \u2060", "\u00ad\n\n\u200e", "\u2800\u3164"])
def test_a_text_of_which_nothing_is_seen_is_told_to_be_none(unseen: str) -> None:
    """An assessor cannot tell a blank page from one that did not load."""
    anna = desk("a", topics=1)
    add_document(anna.campaign, "a", text=unseen)
    assert "This document has no text." in text_of(anna.look())
    parted = blocks(f"One.\n{unseen}\nT{unseen}wo.", Topic(title="none"))
    assert next(block.html for block in parted) == "One."


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("airport security", "Airports, secured", "<mark>Airports</mark>, secured"),
        ("airport security", "Securities", "<mark>Securities</mark>"),
        ("sorting lists", "sort a sorted listing", "<mark>sort</mark> a <mark>sorted</mark> "),
        ("what is it", "what is it & why", "what is it &amp; why"),
        ("cat", "cats concatenate", "<mark>cats</mark> concatenate"),
        ("a+b (c)*", "a+b (c)*", "a+b (c)*"),
        ("ümlaut", "Ümlaute", "<mark>Ümlaute</mark>"),
        ("cafe\u0301", "cafe\u0301s, cafe", "<mark>cafe\u0301s</mark>, cafe"),
        ("हिन्दी इतिहास", "हिन्दी का इतिहास", "<mark>हिन्दी</mark> का <mark>इतिहास</mark>"),
    ],
)
def test_words_of_the_title_are_marked(title: str, text: str, expected: str) -> None:
    assert marked(text, Topic(title=title)).startswith(expected)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("| a system that has a long name | 0.812 |", "code"),
        ("the length of the road from here\t12.5\tkilometers", "code"),
        ("- an item of a list, with as many words as a line has", "lines"),
        ("2. an item of a list, with as many words as a line has", "lines"),
        ("words of a text that a machine has wrapped, | \u2013 in", "prose"),
    ],
)
def test_long_rows_of_tables_and_items_of_lists_stay_apart(row: str, kind: str) -> None:
    (shown,) = blocks("\n".join([row] * 3), Topic(title="none"))
    assert (shown.kind, shown.html.count("\n")) == (kind, 2)


def test_paragraphs_keep_code_and_let_prose_wrap() -> None:
    prose = "A line of running text that was wrapped by a machine\nand goes on here."
    text = f"{prose}\r\n\r\nfirst\nsecond\n\n\n    >>> f(1)\n      2\n\n"
    kinds = [(block.kind, block.html) for block in blocks(text, Topic(title="none"))]
    assert kinds == [
        ("prose", prose),
        ("lines", "first\nsecond"),
        ("code", "    &gt;&gt;&gt; f(1)\n      2"),
    ]


@pytest.mark.parametrize(
    "text", ["x" * 35_000, "\u05d7\u05d9 " * 12_000, "- a\n" * 9_000 + "b" * 9_999]
)
def test_a_long_line_is_shown_in_passages(text: str) -> None:
    """Browsers took seconds for one from left to right, and a minute for one of a megabyte in
    Hebrew: they lay out each in its length squared."""
    anna = desk("a", topics=1)
    document = add_document(anna.campaign, "a", text=text)
    organizer = Client()
    organizer.force_login(anna.campaign.created_by)
    there = {
        "document": organizer.get(address("document-detail", anna.campaign, document.pk)),
        "pair": organizer.get(address("pair-detail", anna.campaign, Pair.objects.get().pk)),
        "desk": anna.look(),
    }
    for page in there.values():
        passages = re.findall(r'<div class="text-[^>]*>([^<]*)</div>', text_of(page))
        assert max(map(len, passages)) <= 10_000
        assert "".join("".join(passages).split()) == "".join(text.split())


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.parametrize("text", ["\n ", " ", "a\n\n", "\u200b", "a\n", "-" * 9_999 + "\n"])
def test_hostile_blanks_take_no_longer_than_their_length(text: str) -> None:
    topic = Topic(title="a " * 50_000)

    def shown(size: int) -> object:
        return list(blocks(text * (size // len(text)) + "x", topic))

    assert growth(shown, 60_000) < LINEAR


def test_the_first_page_offers_work_where_there_is_some() -> None:
    """What waits stands first; where all is judged, nothing looks as if it waited."""
    done, waiting = factories.campaign(slug="done"), factories.campaign(slug="waiting")
    anna = factories.assessors(done, "anna")[0]
    factories.judged_batch(done, ["d1"], anna)
    role = Membership.Role.ASSESSOR
    members.add(campaign=waiting, by=waiting.created_by, username="anna", role=role)
    factories.released_batch(waiting, ["d1"])
    client = Client()
    client.force_login(anna)
    page = client.get(reverse("home"))
    cards = page.context["assessed"]
    assert [(card.campaign, card.waits) for card in cards] == [(waiting, True), (done, False)]
    said = page.content.decode()
    assert said.count("All that was drawn so far is judged.") == 1
    assert said.count("btn primary large") == 1

"""Preferences: which of two documents is better? Stored by document, however they are shown."""

import re
from collections.abc import Callable, Iterator
from math import sqrt

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from judging import selectors
from judging.errors import UserError
from judging.models import (
    Assignment,
    Batch,
    BatchPair,
    Campaign,
    Document,
    Judgment,
    KnownGrade,
    Pair,
    User,
)
from judging.services import assignments, batches, decisions, gold, judgments, known_grades
from judging.services.batches import WantedPair
from judging.services.judgments import Saying
from judging.stuck import stuck_pairs
from judging.views import desk
from tests.support import factories, pages, rest

database = pytest.mark.django_db
DOCUMENTS = ("a", "b"), ("a", "c"), ("b", "c")


def campaign_of(*documents: tuple[str, str], grades: int = 4, labels: int = 1) -> Campaign:
    made = factories.campaign(topics=1, grades=grades)
    factories.preference_batch(made, documents or [("a", "b")], labels=labels)
    return made


def held(made: Campaign, by: User) -> Assignment:
    assignment = assignments.claim_next(campaign=made, by=by)
    assert assignment is not None
    return assignment


def labels(made: Campaign) -> dict[tuple[str, str], list[int]]:
    """The grades of every pair, as the estimating side gets them."""
    found: dict[tuple[str, str], list[int]] = {
        (pair.docno, pair.other): [] for pair in made.pairs.all()
    }
    named = {pair.pk: (pair.docno, pair.other) for pair in made.pairs.all()}
    for label in selectors.labels(made.pairs.values("pk")):
        found[named[label.pair]].append(label.grade)
    return found


@database
@pytest.mark.parametrize(
    ("docno", "other"), [("b", "a"), ("a", "a"), ("é", "z"), ("\U0001f600", "\uff5e")]
)
def test_documents_stand_in_the_order_of_their_bytes(docno: str, other: str) -> None:
    made = factories.campaign(topics=1)
    batch, topic = batches.new_batch(made), made.topics.get().pk
    with pytest.raises(ValueError, match="docno must come before other"):
        batches.prepare(batch, [WantedPair(topic, "a", 1), WantedPair(topic, docno, 1, other)])
    assert not made.pairs.exists()
    assert docno == other or batches.prepare(batch, [WantedPair(topic, other, 1, docno)])


@database
@pytest.mark.sqlite_only
def test_a_batch_holds_documents_and_preferences_side_by_side() -> None:
    made = factories.campaign(topics=1)
    topic = made.topics.get().pk
    wanted = [
        WantedPair(topic, "a", 1),
        WantedPair(topic, "a", 2, "b"),
        WantedPair(topic, "b", 1),
        WantedPair(topic, "a", 1, "c"),
    ]
    first, second = batches.new_batch(made), batches.new_batch(made)
    ids = batches.prepare(first, wanted)
    again = batches.prepare(second, [*reversed(wanted), WantedPair(topic, "b", 3, "c")])

    assert again[:4] == ids[::-1]
    rows = Pair.objects.in_bulk()
    assert [(rows[pk].docno, rows[pk].other, rows[pk].wanted) for pk in ids] == [
        (w.docno, w.other, w.labels) for w in wanted
    ]
    assert Pair.objects.count() == 5
    assert BatchPair.objects.count() == 9


@database
def test_the_database_refuses_what_is_no_preference() -> None:
    made = campaign_of()
    pair = Pair.objects.get()

    def refused(docno: str, other: str) -> bool:
        try:
            with transaction.atomic():
                Pair.objects.create(
                    campaign=made, topic=pair.topic, docno=docno, other=other, wanted=1
                )
        except IntegrityError:
            return True
        return False

    assert refused("a", "b")
    assert refused("a", "a")
    assert not refused("a", "")
    assert refused("a", "")
    assert not refused("a", "c")


@database
@pytest.mark.parametrize("grades", [2, 4])
def test_the_scale_of_a_preference_is_its_own(grades: int) -> None:
    made = campaign_of(grades=grades, labels=2)
    anna, ben = factories.assessors(made, "anna", "ben")

    with pytest.raises(UserError) as refused:
        factories.judge_next(made, anna, grade=3)
    factories.judge_next(made, anna, grade=2)
    assignment = Assignment.objects.get(assessor=anna)
    said = Saying(0, "second thoughts")
    judgments.correct(assignment=assignment, by=anna, saying=said, revision=1)
    factories.judge_next(made, ben, grade=2)

    assert (refused.value.code, refused.value.field) == ("grade_out_of_scale", "grade")
    assert set(Judgment.objects.values_list("max_grade", flat=True)) == {2}
    assert {key: sorted(given) for key, given in labels(made).items()} == {("a", "b"): [0, 2]}
    assert Batch.objects.get().state == Batch.State.COMPLETE


@database
@pytest.mark.sqlite_only
def test_grades_of_documents_do_not_answer_a_preference() -> None:
    made = campaign_of(("a", "b"))
    topic = made.topics.get()
    factories.released_batch(made, ["a"])
    for docno in "ab":
        KnownGrade.objects.create(
            campaign=made, upload=topic.upload, topic=topic, docno=docno, grade=3
        )

    assert known_grades.answer(campaign=made, by=made.created_by) == 1
    factories.released_batch(made, ["z"])
    rest_of = {"campaign": made, "by": made.created_by, "grade": 0, "reason": "outside"}
    assert decisions.decide_rest(**rest_of) == 1  # type: ignore[arg-type]

    assert labels(made) == {("a", ""): [3], ("z", ""): [0], ("a", "b"): []}
    assert list(Batch.objects.values_list("state", flat=True)) == ["open", "complete", "complete"]


@pytest.mark.slow
@database
def test_the_organizer_decides_on_a_preference_in_its_own_scale() -> None:
    made = campaign_of(("a", "b"), grades=2)
    (anna,) = factories.assessors(made, "anna")
    assignments.skip(assignment=held(made, anna), by=anna, reason="both in Greek")
    (stuck,) = stuck_pairs(made)
    organizer = pages.as_role("organizer", made)
    page = pages.text(organizer.get(pages.address("decisions", made)))
    assert Pair.objects.get(pk=stuck.pair).documents in page
    assert "Give this answer" in page
    decide = pages.address("decide", made, stuck.pair)

    refused = organizer.post(decide, {"action": "grade", "grade": "3", "reason": "x"})
    assert refused.status_code == 400
    organizer.post(decide, {"action": "grade", "grade": "2", "reason": "read them"})

    assert (stuck.docno, stuck.other) == ("a", "b")
    assert labels(made) == {("a", "b"): [2]}
    told = pages.text(organizer.get(pages.address("decisions", made)))
    assert "a and b for topic t1 are decided" in told
    done = organizer.get(pages.address("queue", made), {"kind": "done"})
    assert "a is better" in pages.text(done)


def is_balanced(swapped: Callable[[int], bool], count: int = 6000) -> bool:
    """Whether both orders are as frequent as with a fair coin, also among every second, third, …
    of the ids, which is what a place in a batch, an assessor's turn or a rank may amount to.
    """
    for stride in (1, 2, 3, 4, 5, 10):
        for start in range(1, stride + 1):
            thrown = [swapped(pk) for pk in range(start, count + 1, stride)]
            if abs(sum(thrown) - len(thrown) / 2) > 4 * sqrt(len(thrown)) / 2:
                return False
    return True


@pytest.mark.slow
def test_which_document_stands_first_is_a_fair_coin() -> None:
    pair = Pair(docno="a", other="b")
    assert is_balanced(lambda pk: Assignment(pk=pk, pair=pair).swapped)
    assert not any(Assignment(pk=pk, pair=Pair(docno="a")).swapped for pk in range(1, 50))

    assert not is_balanced(lambda pk: False)
    assert not is_balanced(lambda pk: True)
    assert not is_balanced(lambda pk: pk % 2 == 0)
    assert not is_balanced(lambda pk: pk % 5 < 2)


class Desk:
    """An assessor at the judging page."""

    def __init__(self, made: Campaign, name: str = "anna") -> None:
        self.campaign = made
        (self.user,) = factories.assessors(made, name)
        self.client = Client()
        self.client.force_login(self.user)

    def look(self) -> str:
        return self.client.get(pages.address("judge", self.campaign)).content.decode()

    def held(self) -> Assignment:
        return Assignment.objects.get(assessor=self.user, state=Assignment.State.LEASED)

    def press(self, sign: str, page: str) -> None:
        """Sends what the button with the sign on it would send."""
        found = re.search(r'name="key" value="(\w+)"', page)
        assert found
        url = pages.address("judge-save", self.campaign, self.held().pk)
        answer = self.client.post(url, {"grade": buttons(page)[sign], "key": found[1]})
        assert answer.status_code == 302

    def judge_all(self, answer: Callable[[str, str], str]) -> Iterator[bool]:
        """Answers every pair by (docno of A, docno of B) → sign; yields whether it was swapped."""
        while "Which one is better" in (page := self.look()):
            swapped = self.held().swapped
            self.press(answer(*shown(page)), page)
            yield swapped


def shown(page: str) -> list[str]:
    """The docnos of A and B."""
    return re.findall(r'<b class="letter">[AB]</b> <span class="docno mono">(.*?)</span>', page)


def buttons(page: str) -> dict[str, int]:
    """The grade that each button sends, by the sign on it."""
    pattern = r'name="grade" value="(\d+)".*?<span class="number letter".*?>(.)</span>'
    found = re.findall(pattern, page, re.DOTALL)
    return {sign: int(grade) for grade, sign in found}


def misread(made: Campaign, name: str) -> list[tuple[str, str]]:
    """Pairs whose label is not that the document with the lower number is better.

    The assessor sees A and B, and answers by what stands there.
    """
    anna = Desk(made, name)
    orders = set(anna.judge_all(lambda a, b: "A" if a < b else "B"))
    assert orders == {False, True}
    return [pair for pair, given in labels(made).items() if given != [2]]


@pytest.mark.slow
@database
@pytest.mark.sqlite_only
def test_the_label_says_which_document_is_better_wherever_it_stood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = [(f"d{n:02}", f"d{n + 1:02}") for n in range(30)]
    assert misread(campaign_of(*documents), "anna") == []

    def by_side(*, swapped: bool, chosen: int | None) -> list[desk.GradeButton]:
        return real(swapped=False, chosen=chosen)

    real = desk._preferences
    monkeypatch.setattr(desk, "_preferences", by_side)
    other = factories.campaign(slug="other", topics=1)
    factories.preference_batch(other, documents)
    assert misread(other, "ben")


@pytest.mark.slow
@database
@pytest.mark.sqlite_only
def test_equally_good_is_the_middle_wherever_they_stand() -> None:
    made = campaign_of(*DOCUMENTS)
    list(Desk(made).judge_all(lambda a, b: "="))
    assert labels(made) == {pair: [1] for pair in DOCUMENTS}


@pytest.mark.slow
@database
@pytest.mark.sqlite_only
def test_a_reload_a_lapse_and_a_correction_do_not_swap_the_documents() -> None:
    made = campaign_of(*[(f"d{n}", f"e{n}") for n in range(8)])
    anna = Desk(made)
    for _ in range(8):
        page = anna.look()
        first = shown(page)
        assignment = anna.held()
        assert shown(anna.look()) == first
        assignments.put_off(assignment=assignment, by=anna.user)
        assert assignments.claim(pair=assignment.pair, by=anna.user) == assignment
        page = anna.look()
        assert shown(page) == first
        anna.press("A", page)
        again = anna.client.get(pages.address("judge-correct", made, assignment.pk))
        assert shown(again.content.decode()) == first
        assert again.content.decode().count('aria-pressed="true"') == 1


@database
@pytest.mark.sqlite_only
def test_both_texts_are_shown_and_escaped() -> None:
    made = campaign_of()
    upload = made.topics.get().upload
    hostile = '<script>alert("x")</script> <b>bold</b>'
    for docno in "ab":
        Document.objects.create(
            campaign=made, upload=upload, docno=docno, title=hostile, text=f"{docno}{docno} text"
        )
    page = Desk(made).look()

    assert "aa text" in page
    assert "bb text" in page
    assert "<script>alert" not in page
    assert "<b>bold" not in page
    assert page.count("&lt;script&gt;") == 2
    assert page.count("was not uploaded") == 0


@database
@pytest.mark.sqlite_only
def test_own_work_and_the_last_answer_name_the_better_document() -> None:
    made = campaign_of(("doc1", "doc2"), ("doc1", "doc3"))
    anna = Desk(made)
    page = anna.look()
    answered = anna.held()
    better = shown(page)[1]
    anna.press("B", page)

    listed = pages.text(anna.client.get(pages.address("own-work", made)))
    assert f"{better} is better" in listed
    assert answered.pair.docno in listed
    assert answered.pair.other in listed
    assert f"{better} is better" in anna.look()


@database
@pytest.mark.sqlite_only
def test_the_organizer_is_told_no_grades_of_who_compared_alone() -> None:
    made = campaign_of(*((f"d{n}", f"d{n + 1}") for n in range(10, 30)), labels=2)
    for each in (anna := Desk(made), Desk(made, "ben")):
        for _ in range(20):
            each.press("A", each.look())
    organizer = pages.as_role("organizer", made)
    person = pages.text(organizer.get(pages.address("person", made, anna.user.pk)))
    assert "of 0 labels" not in person
    assert "None: which of two documents is better is no grade" in person
    assert "From first to last" in person
    assert "Pairs in common" not in person, "of these none has a height"


@database
@pytest.mark.sqlite_only
def test_the_organizer_looks_for_answers_and_not_for_grades() -> None:
    """As long as nothing else is judged: documents have the scale of the campaign."""
    made = campaign_of()
    organizer = pages.as_role("organizer", made)
    listed = organizer.get(pages.address("judgment-list", made)).content.decode()
    assert "2 first is better" in listed
    assert "3 or more" not in listed
    factories.released_batch(made, ["a"])
    listed = organizer.get(pages.address("judgment-list", made)).content.decode()
    assert "3 or more" in listed
    assert "first is better" not in listed


@database
@pytest.mark.sqlite_only
def test_the_organizer_is_told_that_no_gold_comes_among_comparisons() -> None:
    made = campaign_of()
    upload = made.topics.all()[0].upload
    Document.objects.create(campaign=made, upload=upload, docno="a", title="", text="A text.")
    found, problems = gold.read(made, "topic,docno,grade\nt1,a,2\n", "gold.csv")
    gold.add(campaign=made, by=made.created_by, found=found, problems=problems)
    gold.mix(campaign=made, by=made.created_by, every=4)
    organizer = pages.as_role("organizer", made)
    told = "one alone would be known for gold"
    assert told in pages.text(organizer.get(pages.address("gold", made)))
    factories.released_batch(made, ["b"])
    assert told not in pages.text(organizer.get(pages.address("gold", made)))


@database
@pytest.mark.sqlite_only
def test_nothing_secret_is_on_the_page() -> None:
    """What others said, how many are asked and what was drawn beside it leave no trace."""
    made = campaign_of(labels=2)
    (ben,) = factories.assessors(made, "ben-the-other")
    factories.judge_next(made, ben, grade=2)
    page = Desk(made).look()
    alone = factories.campaign(slug="alone", topics=1)
    factories.preference_batch(alone, [("a", "b")])
    other = Desk(alone, "dora").look()

    body = re.sub(r"<head>.*?</head>", "", shape(page), flags=re.DOTALL).lower()
    for secret in ("ben-the-other", "probabil", "weight", "rank", "wanted", "2 labels", "run"):
        assert secret not in body
    assert "aria-pressed" not in page
    assert shape(page) == shape(other)


def shape(page: str) -> str:
    """The page without what differs by campaign, person, request and the order of documents."""
    page = re.sub(r"[0-9a-f]{32}|/judge/\d+/|value=\"[\w-]{64}\"", "·", page)
    page = re.sub(r"\b(anna|dora|test|alone)\b", "·", page)
    page = re.sub(r'(class="docno mono">|: |, )[ab]\b', r"\1·", page)
    return re.sub(r'name="grade" value="\d"', "·", page)


NEXT, JUDGMENTS = (f"/api/campaigns/test/{path}/" for path in ("assignments/next", "judgments"))


@database
def test_a_preference_over_http() -> None:
    made = campaign_of(("a", "b"), grades=2)
    upload = made.topics.get().upload
    Document.objects.create(campaign=made, upload=upload, docno="b", title="B", text="bb")
    (anna,) = factories.assessors(made, "anna")
    client = rest.client_of(anna)

    got = client.post(NEXT).json()["assignment"]
    assert (got["docno"], got["document"]) == ("a", None)
    assert (got["other"], got["other_document"]) == ("b", {"title": "B", "text": "bb"})
    assert got["swapped"] == Assignment.objects.get().swapped
    assert [grade["name"] for grade in got["grades"]] == [
        "b is better", "Equally good", "a is better",
    ]  # fmt: skip
    refused = client.post(JUDGMENTS, {"assignment": got["id"], "grade": 3})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "grade")
    said = client.post(JUDGMENTS, {"assignment": got["id"], "grade": 2})
    assert said.status_code == 201
    for row in (said.json()["judgment"], client.get(JUDGMENTS).json()["results"][0]):
        assert (row["docno"], row["other"], row["grade"]) == ("a", "b", 2)
    (listed,) = client.get("/api/campaigns/test/assignments/").json()["results"]
    assert (listed["docno"], listed["other"]) == ("a", "b")
    assert labels(made) == {("a", "b"): [2]}


@database
@pytest.mark.sqlite_only
def test_a_stuck_preference_over_http() -> None:
    made = campaign_of(grades=2)
    (anna,) = factories.assessors(made, "anna")
    assignments.skip(assignment=held(made, anna), by=anna, reason="no")
    client, url = rest.client_of(made.created_by), "/api/campaigns/test/decisions/"
    (stuck,) = client.get(url).json()["stuck"]
    assert (stuck["docno"], stuck["other"]) == ("a", "b")

    body = {"pair": stuck["pair"], "reason": "read them"}
    assert client.post(url, {**body, "grade": 3}).status_code == 400
    assert client.post(url, {**body, "grade": 2}).json()["other"] == "b"
    (taken,) = client.get(url).json()["taken"]["results"]
    assert (taken["docno"], taken["other"], taken["grade"]) == ("a", "b", 2)

"""People: what is told of each, lists that are added whole or not at all, links made anew."""

import random
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.db.models import Count, OuterRef, Subquery
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from judging import person
from judging.errors import UserError
from judging.manners import PAUSE, manners
from judging.models import (
    Assignment,
    AuditEntry,
    Campaign,
    Document,
    Exclusion,
    Judgment,
    Membership,
    Pair,
    User,
)
from judging.people import people
from judging.person import look_at
from judging.services import assignments, exclusions, invitations, judgments, members
from tests.support import factories, rest
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign(topics=2)
    factories.released_batch(made, "abcd", labels=2)
    made.refresh_from_db()
    return made


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def judge(made: Campaign, user: User, *, seconds: float = 10.0, lean: int = 0) -> int:
    count = 0
    while held := assignments.claim_next(campaign=made, by=user):
        saying = judgments.Saying(1 + lean, f"{user.pk}-{held.pk}", seconds=seconds)
        judgments.record(assignment=held, by=user, saying=saying)
        count += 1
    return count


def refused(campaign: Campaign, listed: str, **values: Any) -> UserError:
    count, accounts = campaign.memberships.count(), User.objects.count()
    with pytest.raises(UserError) as error:
        invite(campaign, listed, **values)
    assert campaign.memberships.count() == count, "nothing is half done"
    assert User.objects.count() == accounts
    return error.value


def invite(campaign: Campaign, listed: str, **values: Any) -> list[Membership]:
    chosen = {"role": "assessor"} | values
    return invitations.invite_many(campaign=campaign, by=campaign.created_by, text=listed, **chosen)


# ------------------------------------------------------------------------------------ lists


def test_a_list_is_added_in_its_order_with_roles(campaign: Campaign) -> None:
    made = invite(campaign, "\ufeffName;Role\nanna@x.org\n\n ben ; Organizer \r\ncara;\n")
    rows = [(row.user.username, row.role) for row in made]
    assert rows == [("anna@x.org", "assessor"), ("ben", "organizer"), ("cara", "assessor")]
    assert AuditEntry.objects.get(action="invite many").data["people"] == 3


@pytest.mark.parametrize(
    ("listed", "line", "words"),
    [
        ("anna\nb en", 2, "letters, digits"),
        ("anna\nben, boss", 2, "a role"),
        ("anna, ben, cara", 1, "One person a line"),
        ("anna\nAnna", 2, "comes twice"),
        ("anna\n\nаnna", 3, "mixes letters"),
        ("anna\nfirst", 2, "is a member as assessor already"),
        ("anna\nqrels", 2, "qrels"),
        ('anna\n"ben', 2, "letters, digits"),
        ("anna\nf\x00o", 2, "letters, digits"),
        ("anna\n" + "x" * 151, 2, "at most 150"),
    ],
)
def test_one_bad_line_keeps_all_out_and_is_named(
    campaign: Campaign, listed: str, line: int, words: str
) -> None:
    factories.assessors(campaign, "first")
    error = refused(campaign, listed)
    (problem,) = error.data["errors"]
    assert problem["line"] == line
    assert words in problem["message"]


@pytest.mark.on_both
def test_whoever_is_blocked_is_not_waited_for(campaign: Campaign, organizer: Client) -> None:
    person = factories.user("blocked", is_active=False)
    asked = {"username": "blocked", "role": "assessor"}
    assert "blocked is blocked and" in text(organizer.post(address("people", campaign), asked))
    answer = rest.client_of(campaign.created_by).post(
        f"/api/campaigns/{campaign.slug}/members/", asked
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "is_blocked")
    assert not campaign.memberships.filter(user=person).exists()


@pytest.mark.on_both
def test_every_bad_line_is_told_at_once(campaign: Campaign) -> None:
    error = refused(campaign, "a b\nanna\nanna\nx, y\n")
    assert [problem["line"] for problem in error.data["errors"]] == [1, 3, 4]


@pytest.mark.on_both
def test_an_account_that_looks_alike_is_found_by_line(campaign: Campaign) -> None:
    factories.user("anna")
    error = refused(campaign, "ben\nАnnа".replace("n", "n"))
    assert error.data["errors"][0]["line"] == 2


def test_members_can_be_passed_over(campaign: Campaign) -> None:
    factories.assessors(campaign, "first")
    made = invite(campaign, "FIRST\nnew", leave_out_members=True)
    assert [row.user.username for row in made] == ["new"]
    assert refused(campaign, "first\n", leave_out_members=True).code == "people_invalid"


def test_too_many_and_nobody(campaign: Campaign) -> None:
    assert "at most 500" in refused(campaign, "\n".join(f"p{n}" for n in range(501))).message
    assert "nobody in the list" in refused(campaign, "\n ,\n").message
    assert "Divide it" in refused(campaign, "x" * 200_001).message
    assert refused(campaign, "anna", role="boss").code == "role_unknown"


@pytest.mark.slow
def test_a_file_or_a_pasted_list_on_the_page(campaign: Campaign, organizer: Client) -> None:
    many = address("people-many", campaign)
    file = SimpleUploadedFile("people.csv", b"name,role\nanna,assessor\nben,organizer\n")
    assert organizer.post(many, {"file": file, "role": "assessor"}).status_code == 302
    shown = organizer.get(address("people", campaign)).content.decode()
    assert len(re.findall(r"value=\"http://testserver/join/", shown)) == 2
    both = SimpleUploadedFile("people.csv", b"cara\n")
    answer = organizer.post(many, {"file": both, "people": "dora", "role": "assessor"})
    assert "not both" in text(answer)
    bad = SimpleUploadedFile("people.csv", b"\xff\xfe\x00")
    assert "no text in UTF-8" in text(organizer.post(many, {"file": bad, "role": "assessor"}))
    answer = organizer.post(many, {"people": "cara\n<b>x</b>", "role": "assessor"})
    assert answer.status_code == 400
    assert "Nobody has been added" in text(answer)
    assert "cara\n&lt;b&gt;x&lt;/b&gt;" in answer.content.decode(), "what was typed is kept"
    assert not User.objects.filter(username__in=["cara", "dora"]).exists()


@pytest.mark.parametrize("list_of_people", ["cara\n<b>x</b>\n", " \n\n", "cara\ncara\n"])
def test_faults_of_a_list_are_told_where_it_was_given(
    campaign: Campaign, organizer: Client, list_of_people: str
) -> None:
    many = address("people-many", campaign)
    file = SimpleUploadedFile("people.csv", list_of_people.encode())
    for sent, field in (({"file": file}, "file"), ({"people": list_of_people}, "people")):
        answer = organizer.post(many, {**sent, "role": "assessor"})
        assert answer.status_code == 400
        assert list(answer.context["many"].errors) == [field]


# ------------------------------------------------------------------------------------ links


def test_a_new_link_makes_the_earlier_one_void(campaign: Campaign, organizer: Client) -> None:
    (row,) = invite(campaign, "anna")
    old = members.invitation(row.user, by=campaign.created_by)
    assert old is not None
    answer = organizer.post(address("member-again", campaign, row.pk))
    assert answer.status_code == 302
    with pytest.raises(UserError) as error:
        members.invited(*old)
    assert error.value.code == "invitation_invalid"
    row.user.refresh_from_db()
    new = members.invitation(row.user, by=campaign.created_by)
    assert new is not None
    members.accept(uid=new[0], token=new[1], password="correct-horse-7")
    assert organizer.post(address("member-again", campaign, row.pk)).status_code == 409


def test_nobody_makes_a_link_for_what_others_invited(campaign: Campaign) -> None:
    (row,) = invite(campaign, "anna")
    other, _ = members.add(
        campaign=campaign, by=campaign.created_by, username="ben", role="organizer"
    )
    with pytest.raises(UserError) as error:
        invitations.invite_again(membership=row, by=other.user)
    assert error.value.code == "not_invited"
    client = Client()
    client.force_login(other.user)
    shown = client.get(address("people", campaign)).content.decode()
    assert "/join/" not in shown
    assert "Another organizer invited them" in shown


# ------------------------------------------------------------------------------------ figures


@pytest.mark.slow
@pytest.mark.on_both
def test_what_is_told_of_somebody(campaign: Campaign) -> None:
    anna, ben, _cara = factories.assessors(campaign, "anna", "ben", "cara")
    judge(campaign, anna)
    judge(campaign, ben, lean=1)
    start = timezone.now() - timedelta(hours=3)
    for n, row in enumerate(Judgment.objects.filter(assessor=anna).order_by("pk")):
        away = timedelta(hours=1) if n >= 4 else timedelta()
        at = start + n * timedelta(seconds=36) + away
        Judgment.objects.filter(pk=row.pk).update(created=at)
    found = {person.user.username: person for person in people(campaign)}
    told = found["anna"]
    assert (told.judged, told.left, told.manner.seconds) == (8, 0, 10.0)
    assert told.manner.per_hour == pytest.approx(100.0), "the hour away does not count"
    assert told.manner.agreement is not None
    assert (
        told.manner.agreement.pairs,
        told.manner.agreement.share,
        told.manner.agreement.above,
    ) == (8, 0.0, -1.0)
    assert found["ben"].manner.agreement is not None
    assert found["ben"].manner.agreement.above == 1.0
    assert found["cara"].manner.agreement is None, "untold where there is nothing to tell from"
    assert found["cara"].left == 0
    assert [person.user.username for person in people(campaign, words="AN")] == [
        "anna",
        campaign.created_by.username,
    ]


@pytest.mark.slow
def test_agreement_holds_excluded_work_against_what_counts(campaign: Campaign) -> None:
    anna, ben = factories.assessors(campaign, "anna", "ben")
    judge(campaign, anna)
    judge(campaign, ben)
    by = campaign.created_by
    exclusions.exclude(campaign=campaign, assessor=ben, by=by, ground="time", reason="r")
    found = {each.user.pk: each.manner.agreement for each in people(campaign)}
    theirs = found[ben.pk]
    assert theirs is not None
    assert theirs.share == 1.0, "theirs is held against others"
    assert found[anna.pk] is None, "and others are not held against theirs"


def with_texts(made: Campaign, lengths: dict[str, int]) -> None:
    upload = made.topics.all()[0].upload
    for docno, length in lengths.items():
        Document.objects.create(campaign=made, upload=upload, docno=docno, text="x" * length)


@pytest.mark.slow
def test_haste_is_told_from_length_and_own_times_and_never_from_grades() -> None:
    made = factories.campaign(topics=1)
    docnos = [f"d{n:02}" for n in range(20)]
    factories.released_batch(made, docnos)
    made.refresh_from_db()
    with_texts(made, {name: 400 if n % 2 else 9400 for n, name in enumerate(docnos)})
    (anna,) = factories.assessors(made, "anna")
    while held := assignments.claim_next(campaign=made, by=anna):
        number = int(held.pair.docno[1:])
        usual = 1.0 if number % 2 else 10.0
        seconds = 2.0 if number == 2 else 0.2 if number == 3 else usual
        saying = judgments.Saying(number % 4, f"k{held.pk}", seconds=seconds)
        judgments.record(assignment=held, by=anna, saying=saying)
    factories.judged_apart(made)
    shown = look_at(made, anna)
    quick = {each.judgment.assignment.pair.docno: round(each.usual, 6) for each in shown.quick}
    assert quick == {"d02": 10.0, "d03": 1.0}, "two seconds are little for a long text alone"
    Judgment.objects.update(grade=0)
    assert [q.judgment.pk for q in look_at(made, anna).quick] == [
        q.judgment.pk for q in shown.quick
    ]
    factories.judged_apart(made, seconds=PAUSE + 1.0)  # too long to tell how long they read
    Judgment.objects.filter(pk__gt=Judgment.objects.order_by("pk")[8].pk).update(seconds=None)
    assert not look_at(made, anna).tells_haste


@pytest.mark.slow
@pytest.mark.parametrize("told", [45.0, None])
@pytest.mark.on_both
def test_what_a_program_says_of_its_time_is_believed_as_far_as_the_clock_allows(
    told: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that says nothing, or a time that has not passed, exempts nobody."""
    made = factories.campaign(topics=1)
    docnos = [f"d{n:02}" for n in range(20)]
    factories.released_batch(made, docnos, labels=2)
    made.refresh_from_db()
    with_texts(made, dict.fromkeys(docnos, 3000))
    anna, ben = factories.assessors(made, "anna", "ben")
    for who in (anna, ben):
        while held := assignments.claim_next(campaign=made, by=who):
            saying = judgments.Saying(1, f"k{held.pk}", seconds=told)
            judgments.record(assignment=held, by=who, saying=saying)
    at = timezone.now()
    for before, pk in enumerate(anna.judgments.order_by("-pk").values_list("pk", flat=True)):
        Judgment.objects.filter(pk=pk).update(created=at - timedelta(seconds=0.05 * before))
    for before, pk in enumerate(ben.judgments.order_by("-pk").values_list("pk", flat=True)):
        Judgment.objects.filter(pk=pk).update(created=at - timedelta(seconds=60 * before))
    found = manners(made)
    assert found[anna.pk].is_hasty
    assert found[anna.pk].quick == 19, "of the first nothing but what was told is known"
    assert found[ben.pk].quick == 0
    shown = look_at(made, anna)
    assert (shown.quick_count, len(shown.quick)) == (19, 19)
    monkeypatch.setattr(person, "QUICK_MOST", 5)
    few = look_at(made, anna)
    assert (few.quick_count, few.quick) == (19, shown.quick[:5])
    factories.judged_apart(made)
    assert not manners(made)[anna.pk].is_hasty


@pytest.mark.slow
def test_the_page_of_somebody(campaign: Campaign, organizer: Client) -> None:
    anna, ben = factories.assessors(campaign, "anna", "ben")
    judge(campaign, anna)
    judge(campaign, ben, lean=2)
    shown = organizer.get(address("person", campaign, anna.pk))
    said = text(shown)
    assert "Others, of the same 8 pairs" in said
    assert "Where they differ most from others" in said
    assert f"?assessor={anna.pk}" in shown.content.decode()
    stranger = factories.user("stranger")
    assert organizer.get(address("person", campaign, stranger.pk)).status_code == 404
    made = text(organizer.get(address("person", campaign, campaign.created_by_id)))
    assert "Organizers do not judge" in made


@pytest.mark.slow
@pytest.mark.on_both
def test_excluding_and_taking_back_on_the_page(campaign: Campaign, organizer: Client) -> None:
    anna, ben = factories.assessors(campaign, "anna", "ben")
    judge(campaign, anna)
    judge(campaign, ben)
    exclude = address("person-exclude", campaign, anna.pk)
    assert organizer.post(exclude, {"reason": "why"}).status_code == 400
    assert not Exclusion.objects.exists()
    organizer.post(exclude, {"ground": "grades", "reason": "too kind <b>"})
    row = Exclusion.objects.get()
    said = text(organizer.get(address("person", campaign, anna.pk)))
    assert "Nothing they said counts" in said
    assert "estimates may be biased" in said
    assert "for grades" in text(organizer.get(address("people", campaign)))
    assert "excluded" in text(organizer.get(address("judgment-list", campaign)))
    only = organizer.get(address("judgment-list", campaign), {"excluded": "only"})
    assert "8 judgments" in text(only)
    without = organizer.get(address("judgment-list", campaign), {"excluded": "without"})
    assert "8 judgments" in text(without)
    pair = Pair.objects.filter(assignments__assessor=anna)[0]
    assert "excluded" in text(organizer.get(address("pair-detail", campaign, pair.pk)))
    client = Client()
    client.force_login(anna)
    assert "No documents for you here" in text(client.get(address("judge", campaign)))
    assert "do not count" in text(client.get(address("judge", campaign)))
    back = address("exclusion-back", campaign, row.pk)
    assert organizer.post(back, {}).status_code == 400
    organizer.post(back, {"reason": "talked to her"})
    assert "taken back" in text(organizer.get(address("person", campaign, anna.pk)))
    assert not Assignment.objects.filter(state="excluded").exists()


def many_judgments(made: Campaign, names: list[str], *, each: int, among: int) -> list[User]:
    """Written as rows: what is looked at is reading."""
    drawn = random.Random(7)
    users = factories.assessors(made, *names)
    pairs = list(Pair.objects.filter(campaign=made).order_by("pk")[:among])
    now = timezone.now()
    rows = Assignment.objects.bulk_create(
        Assignment(
            campaign=made, pair=pair, assessor=user, state="judged", revision=1,
            grade=drawn.randrange(4), lease_until=now,
        )
        for user in users
        for pair in drawn.sample(pairs, each)
    )  # fmt: skip
    Judgment.objects.bulk_create(
        Judgment(
            assignment=row,
            assessor_id=row.assessor_id,
            grade=row.grade,
            max_grade=3,
            seconds=drawn.uniform(1, 60),
            comment="odd" if row.pair_id % 20 == 0 else "",
            key=f"k{row.pk}",
        )
        for row in rows
    )
    given = Assignment.objects.filter(pair=OuterRef("pk"), state="judged").order_by()
    count = Subquery(given.values("pair").annotate(n=Count("pk")).values("n"))
    Pair.objects.filter(assignments__in=rows).update(judged=count, held=count)
    return users


@pytest.mark.slow
def test_the_statements_are_as_many_for_fifty_people_and_ten_thousand_judgments() -> None:
    made = factories.campaign(topics=20)
    factories.released_batch(made, [f"d{n}" for n in range(50)], labels=50)
    made.refresh_from_db()
    client = Client()
    client.force_login(made.created_by)
    first, _ = many_judgments(made, ["first", "second"], each=20, among=20)

    def counts() -> list[int]:
        found = []
        for page in ("people", "queue", "judgment-list"):
            with CaptureQueriesContext(connection) as counted:
                assert client.get(address(page, made)).status_code == 200
            found.append(len(counted))
        with CaptureQueriesContext(connection) as counted:
            assert client.get(address("person", made, first.pk)).status_code == 200
        return [*found, len(counted)]

    few = counts()
    many_judgments(made, [f"person{n:02}" for n in range(50)], each=200, among=1000)
    assert Judgment.objects.count() == 10_040
    assert all(more <= before for more, before in zip(counts(), few, strict=True))

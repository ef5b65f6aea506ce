"""Training: what it asks, whom it keeps from judging, and that nothing of it is a label."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from judging import lessons, payments, selectors
from judging.errors import UserError
from judging.models import (
    AuditEntry,
    Campaign,
    CrowdGuest,
    CrowdLink,
    Document,
    Judgment,
    Membership,
    Pair,
    TrainingAnswer,
    TrainingTry,
    Upload,
    User,
)
from judging.services import (
    assignments,
    campaigns,
    crowd_links,
    desk,
    entering,
    gold,
    members,
    training,
    uploads,
)
from judging.services.judgments import Saying
from judging.services.training import TrainingPlan
from tests.support import factories, rest
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
LINES = """topic,docno,grade,reason
t1,a,2,It says so in the first line.
t1,b,0,Another thing of the same name.
t2,a,1|2,
"""
RIGHT = {("t1", "a"): 2, ("t1", "b"): 0, ("t2", "a"): 1}


@pytest.fixture
def made() -> Campaign:
    """With pairs to judge, texts, and three training pairs."""
    campaign = factories.campaign()
    upload = Upload.objects.create(
        campaign=campaign, kind=Upload.Kind.DOCUMENTS, name="d", file="none", size=0, sha256="",
        state=Upload.State.ACCEPTED, created_by=campaign.created_by,
    )  # fmt: skip
    for docno in "abcd":
        Document.objects.create(
            campaign=campaign, upload=upload, docno=docno, title=f"of {docno}", text="A text."
        )
    factories.released_batch(campaign, "cd")
    bring(campaign)
    return campaign


def bring(campaign: Campaign, lines: str = LINES) -> None:
    found, problems = gold.read(campaign, lines, "training.csv")
    training.add(campaign=campaign, by=campaign.created_by, found=found, problems=problems)


def ask(campaign: Campaign, **plan: object) -> None:
    chosen = TrainingPlan(**{"obligatory": True, **plan})  # type: ignore[arg-type]
    training.set_plan(campaign=campaign, by=campaign.created_by, plan=chosen)


def joined(campaign: Campaign, name: str) -> User:
    (user,) = factories.assessors(campaign, name)
    return user


def walk(campaign: Campaign, by: User, *, right: int) -> None:
    """A try with so many right answers, the first ones."""
    lesson = training.begin(campaign=campaign, by=by)
    while lesson.pair is not None:
        pair = lesson.pair
        grade = RIGHT[pair.topic.topic_id, pair.docno] if lesson.done < right else 3
        training.answer(campaign=campaign, by=by, pair=pair.pk, grade=grade)
        lesson = lessons.lesson(campaign, by)


def learns(campaign: Campaign, user: User) -> bool:
    return lessons.is_learning(campaign, user)


def test_whoever_has_not_passed_is_handed_nothing_and_then_everything(made: Campaign) -> None:
    ask(made, threshold=0.6)
    anna = joined(made, "anna")
    assert assignments.claim_next(campaign=made, by=anna) is None
    assert selectors.empty_queue(made, anna) == "training"

    walk(made, anna, right=2)

    assert not learns(made, anna)
    assert assignments.claim_next(campaign=made, by=anna) is not None
    assert lessons.lesson(made, anna).state == "passed"
    assert AuditEntry.objects.filter(action="pass training", actor=anna).count() == 1


@pytest.mark.slow
def test_whoever_fails_tries_again_in_another_order_as_often_as_is_allowed(made: Campaign) -> None:
    ask(made, threshold=1.0, tries=2)
    anna = joined(made, "anna")
    walk(made, anna, right=2)
    assert lessons.lesson(made, anna).state == "again"
    assert lessons.lesson(made, anna).left == 1
    walk(made, anna, right=0)
    found = lessons.lesson(made, anna)
    assert (found.state, found.right, found.needed, found.left) == ("failed", 0, 3, 0)
    with pytest.raises(UserError, match="used all tries"):
        training.begin(campaign=made, by=anna)
    assert assignments.claim_next(campaign=made, by=anna) is None

    member = made.memberships.get(user=anna)
    training.admit(membership=member, by=made.created_by)
    assert assignments.claim_next(campaign=made, by=anna) is not None
    with pytest.raises(UserError, match="need not pass"):
        training.admit(membership=member, by=made.created_by)

    orders = set()
    for number in range(1, 30):
        row = TrainingTry(campaign=made, user=anna, number=number)
        orders.add(tuple(pair.docno for pair in lessons.ordered(made, row)))
    assert len(orders) > 1


@pytest.mark.slow
@pytest.mark.parametrize(("threshold", "needed"), [(0.01, 1), (0.66, 2), (2 / 3, 2), (0.7, 3)])
def test_so_many_must_be_right(made: Campaign, threshold: float, needed: int) -> None:
    ask(made, threshold=threshold)
    anna, ben = joined(made, "anna"), joined(made, "ben")
    walk(made, anna, right=needed)
    walk(made, ben, right=needed - 1)
    assert (learns(made, anna), learns(made, ben)) == (False, True)


def test_nothing_that_is_said_is_a_label_and_the_first_answer_stays(made: Campaign) -> None:
    ask(made)
    anna = joined(made, "anna")
    pairs = Pair.every.count()
    lesson = training.begin(campaign=made, by=anna)
    assert lesson.pair is not None
    first = training.answer(campaign=made, by=anna, pair=lesson.pair.pk, grade=0)
    again = training.answer(campaign=made, by=anna, pair=lesson.pair.pk, grade=3)
    assert (first.pk, first.grade) == (again.pk, again.grade)
    walk(made, anna, right=3)
    assert TrainingAnswer.objects.count() == 3
    assert (Judgment.objects.count(), Pair.every.count()) == (0, pairs)


def test_it_is_asked_of_new_people_and_of_those_who_judged_nothing(made: Campaign) -> None:
    anna, ben = joined(made, "anna"), joined(made, "ben")
    factories.judge_next(made, anna, 1)
    ask(made)
    cara = joined(made, "cara")
    assert [learns(made, each) for each in (anna, ben, cara)] == [False, True, True]
    (organizer,) = (made.memberships.get(role=Membership.Role.ORGANIZER),)
    assert not organizer.learns
    ask(made, obligatory=False)
    assert not made.memberships.filter(learns=True).exists()


def test_what_is_wrong_is_told_and_changes_nothing(made: Campaign) -> None:
    with pytest.raises(UserError) as refused:
        bring(made, "topic,docno,grade\nt1,c,1\nt1,a,2\nt2,b,9\n")
    told = [(each["line"], each["field"]) for each in refused.value.data["errors"]]
    assert sorted(told) == [(3, "docno"), (4, "grade")]
    assert made.training_pairs.count() == 3
    for plan in ({"threshold": 0.0}, {"threshold": 1.1}, {"tries": -1}, {"tries": 101}):
        with pytest.raises(UserError):
            ask(made, **plan)
    anna = joined(made, "anna")
    for grade in (-1, 4):
        with pytest.raises(UserError, match="from 0 to 3"):
            training.answer(campaign=made, by=anna, pair=1, grade=grade)
    with pytest.raises(UserError, match="not in the training"):
        training.answer(campaign=made, by=anna, pair=1, grade=1)
    with pytest.raises(UserError, match="Only assessors"):
        training.begin(campaign=made, by=made.created_by)


@pytest.mark.on_both
def test_pairs_that_go_while_somebody_learns_end_the_try(made: Campaign) -> None:
    ask(made, threshold=1.0)
    anna = joined(made, "anna")
    lesson = training.begin(campaign=made, by=anna)
    assert lesson.pair is not None
    grade = RIGHT[lesson.pair.topic.topic_id, lesson.pair.docno]
    training.answer(campaign=made, by=anna, pair=lesson.pair.pk, grade=grade)
    for pair in made.training_pairs.exclude(pk=lesson.pair.pk):
        training.remove(pair=pair, by=made.created_by)
    with pytest.raises(UserError, match="last pair"):
        training.remove(pair=made.training_pairs.get(), by=made.created_by)
    client = Client()
    client.force_login(anna)
    told = text(client.get(address("training", made)))
    assert "All answered" in told
    assert "Not passed" not in told
    assert "1 of 1 right" in text(client.post(address("training-begin", made), follow=True))
    assert lessons.lesson(made, anna).state == "passed"
    assert not learns(made, anna)


def guest_of(campaign: Campaign, **plan: object) -> tuple[CrowdLink, CrowdGuest]:
    chosen = {"name": "link", "most_people": 1, "judgments": 2, "consent": "Be kind."}
    made = crowd_links.LinkPlan(**chosen | {"out_code": "SCREENED"} | plan)  # type: ignore[arg-type]
    link = crowd_links.make(campaign=campaign, by=campaign.created_by, plan=made)
    return link, arrived(link, "p1")


def arrived(link: CrowdLink, participant: str) -> CrowdGuest:
    who = entering.visitor([("PROLIFIC_PID", participant)], f"device of {participant}")
    now = CrowdLink.objects.select_related("campaign").get(pk=link.pk)
    return entering.enter(link=now, who=who, answer="", address="10.0.0.1")


@pytest.mark.on_both
def test_who_failed_and_is_let_in_takes_a_place_again_if_there_is_one(made: Campaign) -> None:
    ask(made, threshold=1.0, tries=1)
    link, guest = guest_of(made)
    assert guest.account is not None
    walk(made, guest.account, right=2)
    member = made.memberships.get(user=guest.account)
    who = entering.visitor([("PROLIFIC_PID", "p2")], "another")
    link = CrowdLink.objects.select_related("campaign").get(pk=link.pk)
    entering.enter(link=link, who=who, answer="", address="192.0.2.1")

    with pytest.raises(UserError) as refused:
        training.admit(membership=member, by=made.created_by)

    assert refused.value.code == "link_full"
    guest.refresh_from_db()
    assert guest.is_out
    CrowdLink.objects.filter(pk=link.pk).update(most_people=2)
    training.admit(membership=member, by=made.created_by)
    guest.refresh_from_db()
    link.refresh_from_db()
    assert (guest.is_out, link.people) == (False, 2)


@pytest.mark.on_both
def test_a_guest_who_fails_is_told_the_code_of_who_is_out_and_frees_the_place(
    made: Campaign,
) -> None:
    ask(made, threshold=1.0, tries=1)
    link, guest = guest_of(made)
    assert guest.account is not None
    assert learns(made, guest.account)
    walk(made, guest.account, right=2)
    guest.refresh_from_db()
    link.refresh_from_db()
    assert (guest.is_out, guest.told_code, link.people) == (True, "SCREENED", 0)
    assert entering.finish(guest=guest) is False
    client = Client()
    client.force_login(guest.account)
    page = client.get(reverse("work-done", args=[link.token]), follow=True)
    assert "SCREENED" in page.content.decode()
    assert entering.why_not(link) is None, "somebody else may come"


def learned(guest: CrowdGuest, *, agreed: float, minutes: list[float]) -> datetime:
    """They agreed so many minutes ago, and answered the training so long after that."""
    began = timezone.now() - timedelta(minutes=agreed)
    CrowdGuest.objects.filter(pk=guest.pk).update(agreed=began)
    answers = TrainingAnswer.objects.filter(attempt__user=guest.account).order_by("pk")
    for row, after in zip(answers, minutes, strict=True):
        TrainingAnswer.objects.filter(pk=row.pk).update(created=began + timedelta(minutes=after))
    return began


@pytest.mark.on_both
def test_minutes_of_the_training_are_paid_work(made: Campaign) -> None:
    """Of 31 minutes the judgments alone would tell ten, as of a pause."""
    ask(made, threshold=0.6)
    link, guest = guest_of(made, most_people=3, per_hour=Decimal(12), per_judgment=Decimal("0.1"))
    learner, idle = arrived(link, "p2"), arrived(link, "p3")
    for each in (guest, learner):
        assert each.account is not None
        walk(made, each.account, right=2)
    began = learned(guest, agreed=40, minutes=[9, 18, 27])
    learned(learner, agreed=40, minutes=[4, 8, 38])  # away before the last: ten minutes count
    assert guest.account is not None
    pair = factories.judge_next(made, guest.account, 1)
    said = Judgment.objects.filter(assessor=guest.account, assignment__pair=pair)
    assert said.update(created=began + timedelta(minutes=31)) == 1

    table = payments.payments(CrowdLink.objects.select_related("campaign").get(pk=link.pk))

    first, second, third = table.rows
    assert (first.minutes, first.judgments, first.pay) == (Decimal("31.0"), 1, Decimal("6.30"))
    assert first.last == began + timedelta(minutes=31)
    assert (second.minutes, second.judgments, second.pay) == (
        Decimal("18.0"), 0, Decimal("3.60"),
    )  # fmt: skip
    assert second.last == began_of(learner) + timedelta(minutes=38)
    assert (third.guest, third.minutes, third.total) == (idle, Decimal("0.0"), Decimal("0.00"))
    assert (table.minutes, table.total) == (Decimal("49.0"), Decimal("9.90"))
    client = rest.client_of(made.created_by)
    told = client.get(f"/api/campaigns/{made.slug}/links/{link.pk}/payments/").json()
    assert [row["minutes"] for row in told["guests"]] == ["31.0", "18.0", "0.0"]
    assert (told["minutes"], told["total"]) == ("49.0", "9.90")


def began_of(guest: CrowdGuest) -> datetime:
    guest.refresh_from_db()
    return guest.agreed


def test_who_fails_the_training_gets_what_those_get_who_do_not_fit(made: Campaign) -> None:
    """And no minutes beside it, though the organizer sees how long they tried."""
    ask(made, threshold=1.0, tries=1)
    link, guest = guest_of(made, per_hour=Decimal(12), out_pay=Decimal("0.35"))
    assert guest.account is not None
    walk(made, guest.account, right=2)
    learned(guest, agreed=20, minutes=[5, 10, 15])

    (row,) = payments.payments(CrowdLink.objects.select_related("campaign").get(pk=link.pk)).rows

    assert (row.state, row.minutes, row.pay) == ("screened out", Decimal("15.0"), Decimal("0.35"))


@pytest.mark.slow
def test_pages_lead_from_the_desk_through_the_training_to_the_desk(made: Campaign) -> None:
    ask(made, threshold=0.3)
    anna = joined(made, "anna")
    client = Client()
    client.force_login(anna)
    page = client.get(address("judge", made), follow=True)
    assert "Some examples first" in text(page)
    client.post(address("training-begin", made))
    seen = []
    for _ in range(3):
        page = client.get(address("training", made))
        pair = page.context["pair"]
        shown = text(page)
        assert pair.reason not in shown or not pair.reason
        assert "give this grade" in shown
        assert "undo: correct" not in shown, "of that nothing is offered here"
        grade = RIGHT[pair.topic.topic_id, pair.docno]
        told = client.post(
            address("training", made), {"pair": pair.pk, "grade": grade}, follow=True
        )
        assert "Right." in text(told)
        assert pair.reason in text(told)
        seen.append(pair.pk)
    assert len(set(seen)) == 3
    assert "Passed" in text(client.get(address("training", made)))
    assert "Judge" in text(client.get(address("judge", made)))
    for wrong in ({"pair": seen[0]}, {"pair": "x", "grade": 1}, {"grade": 1}):
        page = client.post(address("training", made), wrong, follow=True)
        assert "Choose one of the grades" in text(page)


@pytest.mark.slow
@pytest.mark.on_both
def test_organizers_see_how_it_goes_and_let_somebody_judge(made: Campaign) -> None:
    ask(made, threshold=1.0, tries=1)
    anna = joined(made, "anna")
    walk(made, anna, right=1)
    client = Client()
    client.force_login(made.created_by)
    page = text(client.get(address("training-set", made)))
    assert "1 of 3" in page
    client.post(reverse("training-admit", args=[made.slug, anna.pk]))
    assert not learns(made, anna)
    sent = {"percent": "80", "tries": "0"}
    client.post(address("training-ask", made), sent)
    row = lessons.training_of(made)
    assert (row.obligatory, row.threshold, row.tries) == (False, 0.8, 0)
    refused = client.post(address("training-add", made), {"text": "topic,docno,grade\nt9,z,1\n"})
    assert refused.status_code == 400
    assert "no such topic" in text(refused)


@pytest.mark.slow
@pytest.mark.on_both
def test_by_rest(made: Campaign) -> None:
    base = f"/api/campaigns/{made.slug}/"
    organizer, anna = Client(), joined(made, "anna")
    organizer.force_login(made.created_by)
    json = {"content_type": "application/json"}
    told = organizer.patch(f"{base}training/", {"obligatory": True, "threshold": 0.3}, **json)
    assert told.json()["learners"][0]["username"] == "anna"
    rows = organizer.get(f"{base}training/pairs/").json()["results"]
    assert {(row["topic"], row["docno"]): row["grades"] for row in rows}["t2", "a"] == [1, 2]
    learner = Client()
    learner.force_login(anna)
    assert learner.post(f"{base}assignments/next/", {}, **json).json()["reason"] == "training_first"
    lesson = learner.post(f"{base}training/lesson/begin/", {}, **json).json()
    assert lesson["document"]["text"] == "A text."
    assert "accepted" not in str(lesson)
    assert "grades" not in lesson["pair"]
    said = learner.post(
        f"{base}training/lesson/answer/", {"pair": lesson["pair"]["id"], "grade": 3}, **json
    ).json()
    assert (said["right"], said["done"], said["asked"]) == (False, 1, 3)
    assert said["grades"]
    assert learner.get(f"{base}training/lesson/").json()["state"] == "learning"
    assert learner.get(f"{base}training/pairs/").status_code == 403
    admitted = organizer.post(f"{base}people/{anna.pk}/admit/", {}, **json).json()
    assert admitted["learners"][0]["learns"] is False
    gone = organizer.delete(f"{base}training/pairs/{rows[0]['id']}/")
    assert gone.status_code == 204
    new = {"pairs": [{"topic": "t1", "docno": "d", "grades": [3]}]}
    assert organizer.post(f"{base}training/pairs/", new, **json).status_code == 201


def test_the_desk_looks_in_the_statement_that_takes_a_place(made: Campaign) -> None:
    """Whoever is asked to learn meanwhile saves what is in hand, and gets nothing more."""
    anna = joined(made, "anna")
    held = assignments.claim_next(campaign=made, by=anna)
    assert held is not None
    made.memberships.filter(user=anna).update(learns=True)  # as if asked just now
    held.pair.campaign = made
    _, sheet = desk.judge(assignment=held, by=anna, saying=Saying(1, "k"))
    assert sheet is None, "it is seen by the very statement"
    assert Judgment.objects.count() == 1, "and what was in hand is saved"


def test_an_invited_member_is_asked_too(made: Campaign) -> None:
    ask(made)
    row, _ = members.add(campaign=made, by=made.created_by, username="dora", role="assessor")
    assert row.learns
    assert learns(made, row.user)


@pytest.mark.slow
def test_who_has_passed_before_need_not_again(made: Campaign) -> None:
    ask(made, threshold=0.3)
    anna = joined(made, "anna")
    walk(made, anna, right=3)
    members.remove(membership=made.memberships.get(user=anna), by=made.created_by)
    assert not learns(made, joined(made, "anna"))


def test_material_that_is_taught_from_stays(made: Campaign) -> None:
    made.batches.all().delete()
    Pair.objects.all().delete()
    topics = made.uploads.get(kind=Upload.Kind.TOPICS)
    with pytest.raises(UserError, match="the training or a norming session names"):
        uploads.remove(upload=topics, by=made.created_by)
    assert made.topics.count() == 2


def test_the_scale_keeps_the_grades_that_are_taught(made: Campaign) -> None:
    """Else nobody could pass, and nobody new would be handed anything."""
    made.batches.all().delete()
    by = made.created_by
    with pytest.raises(UserError, match="right for a training pair"):
        campaigns.amend(campaign=made, by=by, chosen={"grades": made.grades[:2]})
    campaigns.amend(campaign=made, by=by, chosen={"grades": made.grades[:3]})
    made.refresh_from_db()
    assert made.max_grade == 2

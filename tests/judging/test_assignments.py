"""Claims, leases, skips: who gets what, and that no pair gets more than it wants."""

import itertools
import threading

import pytest
from django.db import connection

from judging import selectors
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import Assignment, Batch, Judgment, Pair
from judging.services import assignments, batches, decisions, desk, judgments, known_grades
from judging.services.judgments import Saying
from judging.stuck import stuck_pairs
from tests.support import factories

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_every_pair_of_a_batch_is_served_and_judged_once() -> None:
    campaign = factories.campaign(topics=3)
    (anna,) = factories.assessors(campaign, "anna")
    batch = factories.released_batch(campaign, ["a", "b", "c", "d"])

    judged = []
    while pair := factories.judge_next(campaign, anna, grade=1):
        judged.append((pair.topic.topic_id, pair.docno))

    assert sorted(judged) == [(f"t{t}", d) for t in (1, 2, 3) for d in "abcd"]
    batch.refresh_from_db()
    assert (batch.state, batch.remaining) == (Batch.State.COMPLETE, 0)


@pytest.mark.slow
def test_an_assignment_is_of_the_campaign_of_its_pair_however_it_came() -> None:
    made = factories.campaign(topics=1)
    (anna,) = factories.assessors(made, "anna")
    factories.released_batch(made, "abc")
    claimed = assignments.claim_next(campaign=made, by=anna)
    assert claimed is not None
    _, sheet = desk.judge(assignment=claimed, by=anna, saying=Saying(1, "k"), topic=True)
    assert sheet is not None
    factories.stored_upload(made, b"t1 0 a 1\nt1 0 b 1\nt1 0 c 1\n", name="q.txt", kind="qrels")
    assert known_grades.answer(campaign=made, by=made.created_by) > 0
    found = list(Assignment.objects.values_list("campaign", flat=True))
    assert (len(found), set(found)) == (3, {made.pk})


def test_the_pairs_of_a_topic_come_in_a_row_and_shuffled_between_assessors() -> None:
    campaign = factories.campaign(topics=4)
    people = factories.assessors(campaign, "anna", "ben", "chris", "dora")
    factories.released_batch(campaign, [f"d{n}" for n in range(6)], labels=4)

    orders = {}
    for person in people:
        pairs = [factories.judge_next(campaign, person, grade=0) for _ in range(24)]
        topics = [pair.topic_id for pair in pairs if pair]
        changes = sum(a != b for a, b in itertools.pairwise(topics))
        assert changes == 3
        orders[person.username] = tuple(pair.pk for pair in pairs if pair)

    assert len(set(orders.values())) == 4


def test_a_pair_gets_as_many_labels_as_wanted_from_different_assessors() -> None:
    campaign = factories.campaign(topics=1)
    people = factories.assessors(campaign, "anna", "ben", "chris")
    factories.released_batch(campaign, ["a", "b"], labels=2)

    for _ in range(3):
        for person in people:
            factories.judge_next(campaign, person, grade=2)

    assert Judgment.objects.count() == 4
    assert set(Pair.objects.values_list("judged", "held", "wanted")) == {(2, 2, 2)}
    for pair in Pair.objects.all():
        assert pair.assignments.values("assessor").distinct().count() == 2


def test_a_batch_that_is_given_up_leaves_no_wish_for_labels_behind() -> None:
    campaign = factories.campaign(topics=1)
    factories.released_batch(campaign, ["a", "b"])
    topic, given_up = campaign.topics.get(), batches.new_batch(campaign)
    batches.prepare(given_up, [batches.WantedPair(topic.pk, docno, 3) for docno in "abc"])
    Pair.objects.filter(docno="a").update(held=2)  # two people took a place while three were wanted

    batches.discard([given_up])

    wanted = dict(Pair.objects.values_list("docno", "wanted"))
    assert (wanted["a"], wanted["b"]) == (2, 1)
    assert not Batch.objects.filter(pk=given_up.pk).exists()


def test_the_next_batch_opens_before_the_last_stragglers_are_in() -> None:
    campaign = factories.campaign(topics=1)
    anna, ben = factories.assessors(campaign, "anna", "ben")
    first = factories.released_batch(campaign, ["a"])
    second = factories.released_batch(campaign, ["b"])

    held = assignments.claim_next(campaign=campaign, by=anna)
    assert held is not None
    other = assignments.claim_next(campaign=campaign, by=ben)

    assert other is not None
    assert other.pair.docno == "b"
    first.refresh_from_db()
    second.refresh_from_db()
    assert [first.state, second.state] == [Batch.State.OPEN, Batch.State.OPEN]


def test_claiming_again_gives_the_pair_in_hand() -> None:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    factories.released_batch(campaign, ["a", "b"])

    first = assignments.claim_next(campaign=campaign, by=anna)
    again = assignments.claim_next(campaign=campaign, by=anna)

    assert first == again
    assert Assignment.objects.count() == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_assessor_in_many_tabs_holds_one_pair() -> None:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    factories.released_batch(campaign, [f"d{n}" for n in range(20)])
    batches.open_next(campaign.pk)
    claimed: list[int | None] = []

    def ask() -> None:
        try:
            assignment = assignments.claim_next(campaign=campaign, by=anna)
            claimed.append(assignment.pk if assignment else None)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert claimed == [Assignment.objects.get().pk] * 12


def test_a_lapsed_lease_goes_to_somebody_else_and_the_late_save_is_refused() -> None:
    campaign = factories.campaign(topics=1)
    anna, ben = factories.assessors(campaign, "anna", "ben")
    factories.released_batch(campaign, ["a"])
    late = assignments.claim_next(campaign=campaign, by=anna)
    assert late is not None
    Assignment.objects.update(lease_until=seconds_from_now(-1))

    taken = assignments.claim_next(campaign=campaign, by=ben)
    assert taken is not None
    assert taken.pair == late.pair
    with pytest.raises(UserError) as refused:
        judgments.record(assignment=late, by=anna, saying=judgments.Saying(1, "late"))

    assert refused.value.code == "pair_full"
    assert Judgment.objects.count() == 0
    judgments.record(assignment=taken, by=ben, saying=judgments.Saying(2, "ben"))
    assert Judgment.objects.get().grade == 2


def test_a_late_save_is_accepted_while_the_place_is_free() -> None:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    batch = factories.released_batch(campaign, ["a"])
    late = assignments.claim_next(campaign=campaign, by=anna)
    assert late is not None
    Assignment.objects.update(lease_until=seconds_from_now(-1))
    assert assignments.release_lapsed() == 1

    judgments.record(assignment=late, by=anna, saying=judgments.Saying(1, "late"))

    assert Pair.objects.get().judged == 1
    batch.refresh_from_db()
    assert batch.state == Batch.State.COMPLETE


def test_a_skip_keeps_the_draw_and_gives_the_place_to_another_assessor() -> None:
    campaign = factories.campaign(topics=1)
    anna, ben = factories.assessors(campaign, "anna", "ben")
    factories.released_batch(campaign, ["a"])
    mine = assignments.claim_next(campaign=campaign, by=anna)
    assert mine is not None

    with pytest.raises(UserError, match="why"):
        assignments.skip(assignment=mine, by=anna, reason="  ")
    assignments.skip(assignment=mine, by=anna, reason="cannot read it")

    assert assignments.claim_next(campaign=campaign, by=anna) is None
    theirs = assignments.claim_next(campaign=campaign, by=ben)
    assert theirs is not None
    assert theirs.pair == mine.pair


def test_a_pair_put_off_comes_back_after_the_others_of_its_topic() -> None:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    factories.released_batch(campaign, ["a", "b", "c"])
    first = assignments.claim_next(campaign=campaign, by=anna)
    assert first is not None
    assignments.put_off(assignment=first, by=anna)

    order = []
    while pair := factories.judge_next(campaign, anna, grade=0):
        order.append(pair.pk)

    assert len(order) == 3
    assert order[-1] == first.pair_id


def test_pairs_that_nobody_can_judge_wait_for_the_organizer() -> None:
    campaign = factories.campaign(topics=1)
    anna, ben = factories.assessors(campaign, "anna", "ben")
    batch = factories.released_batch(campaign, ["a"])
    for person in (anna, ben):
        held = assignments.claim_next(campaign=campaign, by=person)
        assert held is not None
        assignments.skip(assignment=held, by=person, reason=f"{person} cannot")

    (stuck,) = stuck_pairs(campaign)
    assert stuck.nobody_left
    assert sorted(stuck.skips) == ["anna cannot", "ben cannot"]
    pair = Pair.objects.get()
    with pytest.raises(UserError):
        decisions.decide(pair=pair, by=campaign.created_by, grade=None, reason="as it is")
    decisions.decide(pair=pair, by=campaign.created_by, grade=0, reason="unreadable")

    batch.refresh_from_db()
    assert batch.state == Batch.State.COMPLETE
    assert stuck_pairs(campaign) == []
    (label,) = selectors.labels(Pair.objects.values("pk"))
    assert (label.grade, label.decided) == (0, True)


def test_asking_again_offers_the_pair_to_those_who_skipped_it() -> None:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    factories.released_batch(campaign, ["a"])
    held = assignments.claim_next(campaign=campaign, by=anna)
    assert held is not None
    assignments.skip(assignment=held, by=anna, reason="no")

    decisions.ask_again(pair=held.pair, by=campaign.created_by)

    again = assignments.claim_next(campaign=campaign, by=anna)
    assert again is not None
    assert again.pair == held.pair


def test_a_half_labeled_pair_can_be_used_as_it_is() -> None:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    batch = factories.released_batch(campaign, ["a"], labels=3)
    factories.judge_next(campaign, anna, grade=3)
    pair = Pair.objects.get()

    with pytest.raises(UserError):
        decisions.decide(pair=pair, by=campaign.created_by, grade=0, reason="no")
    decisions.decide(pair=pair, by=campaign.created_by, grade=None, reason="nobody else")

    batch.refresh_from_db()
    assert batch.state == Batch.State.COMPLETE
    assert [
        (label.grade, label.decided) for label in selectors.labels(Pair.objects.values("pk"))
    ] == [(3, False)]


@pytest.mark.slow
def test_a_later_batch_that_wants_more_labels_of_a_judged_pair_gets_them() -> None:
    campaign = factories.campaign(topics=1)
    anna, ben = factories.assessors(campaign, "anna", "ben")
    first = factories.released_batch(campaign, ["a"])
    factories.judge_next(campaign, anna, grade=1)
    second = factories.released_batch(campaign, ["a", "b"], labels=2)

    for person in (anna, ben, anna, ben):
        factories.judge_next(campaign, person, grade=1)

    for batch in (first, second):
        batch.refresh_from_db()
        assert batch.state == Batch.State.COMPLETE
    assert Judgment.objects.count() == 4


def test_a_batch_of_pairs_that_have_their_labels_is_complete_when_it_opens() -> None:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    factories.released_batch(campaign, ["a"])
    factories.judge_next(campaign, anna, grade=1)
    again = factories.released_batch(campaign, ["a"])

    batches.open_next(campaign.pk)

    again.refresh_from_db()
    assert again.state == Batch.State.COMPLETE


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("labels", [1, 3])
def test_assessors_who_claim_at_the_same_time_never_get_more_places_than_wanted(
    labels: int,
) -> None:
    campaign = factories.campaign(topics=3)
    people = factories.assessors(campaign, *(f"a{n}" for n in range(6)))
    factories.released_batch(campaign, [f"d{n}" for n in range(8)], labels=labels)
    errors: list[BaseException] = []

    def work(index: int) -> None:
        try:
            while factories.judge_next(campaign, people[index], grade=index % 4):
                pass
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert set(Pair.objects.values_list("held", "judged")) == {(labels, labels)}
    assert Judgment.objects.count() == 24 * labels
    assert Batch.objects.get().state == Batch.State.COMPLETE

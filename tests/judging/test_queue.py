"""The queue of what needs an organizer: in the order in which it matters, seen things apart."""

import pytest
from django.test import Client

from estimation.models import Draw
from judging.errors import UserError
from judging.models import Assignment, Campaign, Judgment, User
from judging.queue import APART, COMMENT, WAITING, in_full, queue
from judging.services import assignments, exclusions, judgments, quality, seen
from judging.stuck import stuck_pairs
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign(topics=1)
    factories.released_batch(made, "abc", labels=2)
    made.refresh_from_db()
    return made


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def judge(made: Campaign, user: User, grades: dict[str, int], comment: str = "") -> None:
    while held := assignments.claim_next(campaign=made, by=user):
        if held.pair.docno not in grades:
            assignments.skip(assignment=held, by=user, reason=f"no text of {held.pair.docno}")
            continue
        saying = judgments.Saying(
            grades[held.pair.docno],
            f"{user.pk}-{held.pk}",
            comment=comment if held.pair.docno == "a" else "",
        )
        judgments.record(assignment=held, by=user, saying=saying)


@pytest.fixture
def judged(campaign: Campaign) -> Campaign:
    """a: 0 and 3, with a comment; b: 1 and 2; c: skipped by ben."""
    anna, ben = factories.assessors(campaign, "anna", "ben")
    judge(campaign, anna, {"a": 0, "b": 1, "c": 1}, comment="<b>odd</b>")
    judge(campaign, ben, {"a": 3, "b": 2})
    return campaign


def told(made: Campaign) -> list[tuple[str, str]]:
    items = in_full(made, queue(made).todo)
    return [(item.key.kind, item.pair.docno) for item in items]


@pytest.mark.slow
def test_what_waits_comes_first_then_disagreements_then_comments(judged: Campaign) -> None:
    assert told(judged) == [(WAITING, "c"), (APART, "a"), (COMMENT, "a")]
    items = in_full(judged, queue(judged).todo)
    assert items[0].waits is not None
    assert items[0].waits.skips == ["no text of c"]
    assert items[1].labels == [("anna", 0), ("ben", 3)]
    assert items[2].said is not None


@pytest.mark.slow
def test_disagreements_weigh_by_what_they_stand_for() -> None:
    made = evaluation.with_material()
    evaluation.drawn(made, labels=2, extra_share=0.0)
    anna, ben = User.objects.filter(username__in=["anna", "ben"]).order_by("username")
    made.refresh_from_db()
    for user, grade in ((anna, 0), (ben, 3)):
        while held := assignments.claim_next(campaign=made, by=user):
            saying = judgments.Saying(grade, f"{user.pk}-{held.pk}")
            judgments.record(assignment=held, by=user, saying=saying)
    keys = queue(made).of(APART)
    chances = dict(Draw.objects.values_list("pair", "probability"))
    assert len(keys) == len(chances)
    weights = [1 / chances[key.pair] for key in keys]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] > weights[-1]


@pytest.mark.slow
@pytest.mark.on_both
def test_what_was_seen_stands_apart_until_it_changes(judged: Campaign) -> None:
    by = judged.created_by
    for key in queue(judged).todo[1:]:
        seen.mark(campaign=judged, by=by, kind=key.kind, target=key.target, version=key.version)
        seen.mark(campaign=judged, by=by, kind=key.kind, target=key.target, version=key.version)
    assert told(judged) == [(WAITING, "c")]
    assert len(queue(judged).done) == 2
    held = Assignment.objects.get(assessor__username="ben", pair__docno="a")
    saying = judgments.Saying(2, "again")
    judgments.correct(assignment=held, by=held.assessor, saying=saying, revision=1)
    assert told(judged) == [(WAITING, "c"), (APART, "a")], "the labels are others now"
    (comment, _mark) = queue(judged).done[0]
    seen.unmark(campaign=judged, by=by, kind=COMMENT, target=comment.target)
    assert told(judged)[-1] == (COMMENT, "a")


@pytest.mark.slow
def test_nothing_in_the_queue_changes_a_label(judged: Campaign, organizer: Client) -> None:
    before = list(Assignment.objects.order_by("pk").values_list("state", "revision"))
    stored = Judgment.objects.count()
    for key in queue(judged).todo[1:]:
        body = {"kind": key.kind, "target": key.target, "version": key.version, "from": key.kind}
        answer = organizer.post(address("queue-seen", judged), body)
        assert answer["Location"] == f"{address('queue', judged)}?kind={key.kind}#next"
    assert list(Assignment.objects.order_by("pk").values_list("state", "revision")) == before
    assert Judgment.objects.count() == stored
    shown = organizer.get(address("queue", judged), {"kind": "apart"})
    assert "Ask again" not in text(shown), "what came apart is looked at, and nothing else"


@pytest.mark.slow
def test_excluded_work_makes_no_disagreement_and_its_comments_say_so(judged: Campaign) -> None:
    anna = User.objects.get(username="anna")
    by = judged.created_by
    exclusions.exclude(campaign=judged, assessor=anna, by=by, ground="time", reason="r")
    assert [kind for kind, _ in told(judged)].count(APART) == 0
    (item,) = in_full(judged, queue(judged).of(COMMENT))
    assert item.said is not None
    assert item.said.is_excluded


@pytest.mark.slow
def test_the_page_filters_counts_and_escapes(judged: Campaign, organizer: Client) -> None:
    page = organizer.get(address("queue", judged))
    said = text(page)
    for words in ("All 3", "Waiting 1", "Disagreements 1", "Comments 1", "Done 0"):
        assert words in said
    assert "&lt;b&gt;odd&lt;/b&gt;" in page.content.decode()
    assert "To do 3" in text(organizer.get(address("people", judged))), "the tab counts"
    for name, kind in (("decisions", "c"), ("comments", "a")):
        assert f">{kind}</a>" in organizer.get(address(name, judged)).content.decode()
    only = organizer.get(address("queue", judged), {"kind": "apart"}).content.decode()
    assert only.count("data-item") == 1
    assert organizer.get(address("queue", judged), {"kind": "\x00", "page": "x"}).status_code == 200


def test_items_of_another_campaign_are_not_there(judged: Campaign, organizer: Client) -> None:
    other = factories.campaign(slug="other")
    factories.released_batch(other, "z")
    pair = other.pairs.all()[0]
    with pytest.raises(UserError) as error:
        seen.mark(campaign=judged, by=judged.created_by, kind="apart", target=pair.pk, version="1")
    assert error.value.status == 404
    with pytest.raises(UserError) as error:
        seen.mark(
            campaign=judged, by=judged.created_by, kind="waiting", target=pair.pk, version="1"
        )
    assert error.value.code == "kind_unknown"


def test_two_labels_of_a_yes_or_no_scale_are_far_apart_and_preferences_by_both_ways() -> None:
    made = factories.campaign(topics=1, grades=2)
    factories.preference_batch(made, [("d1", "d2"), ("d3", "d4")], labels=2)
    made.refresh_from_db()
    anna, ben = factories.assessors(made, "anna", "ben")
    for user, of_d1, of_d3 in ((anna, 0, 0), (ben, 2, 1)):
        while held := assignments.claim_next(campaign=made, by=user):
            grade = of_d1 if held.pair.docno == "d1" else of_d3
            saying = judgments.Saying(grade, f"{user.pk}-{held.pk}")
            judgments.record(assignment=held, by=user, saying=saying)
    assert told(made) == [(APART, "d1")]


def test_where_one_has_judged_and_waits_and_the_other_is_excluded_the_organizer_is_asked() -> None:
    made = factories.campaign(topics=1)
    factories.released_batch(made, "ab", labels=2)
    anna, ben = factories.assessors(made, "anna", "ben")
    factories.judge_next(made, anna, 1)
    factories.judge_next(made, anna, 1)
    factories.judge_next(made, ben, 1)
    by = made.created_by
    exclusions.exclude(campaign=made, assessor=ben, by=by, ground="identity", reason="a robot")
    assert [each.nobody_left for each in stuck_pairs(made)] == [True, True]
    quality.hold(campaign=made, assessor=anna, by=by, reason="let us talk")
    assert len(stuck_pairs(made)) == 2, "to wait makes no difference: she has judged them"
    cara = factories.assessors(made, "cara")[0]
    assert stuck_pairs(made) == []
    quality.hold(campaign=made, assessor=cara, by=by, reason="let us talk")
    assert stuck_pairs(made) == [], "she may still take them"

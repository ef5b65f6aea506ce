"""What waits for guests of crowd links, and what for the organizer."""

import pytest

from judging.services import assignments, crowd_links
from judging.stuck import stuck_ids, stuck_pairs
from tests.judging.test_crowd_links import account, campaign_of, enter, link_of
from tests.support import factories

pytestmark = pytest.mark.django_db


def test_whoever_is_done_is_nobody_who_could_still_judge_what_others_skipped() -> None:
    """Else the pair would wait for them for ever, and no organizer would be asked."""
    made = campaign_of("ab", labels=2)
    first, second = (enter(link_of(made, judgments=most, most_people=1)) for most in (1, 9))
    assert factories.judge_next(made, account(first), 1)
    while factories.judge_next(made, account(second), 1):
        pass

    waiting = stuck_pairs(made)

    first.refresh_from_db()
    assert first.finished is not None
    assert [(pair.judged, pair.nobody_left) for pair in waiting] == [(1, True)]


def test_pairs_wait_for_who_may_still_come_and_for_no_organizer() -> None:
    made = campaign_of("ab", labels=2)
    link = link_of(made, judgments=9, most_people=2)
    first = enter(link)
    while factories.judge_next(made, account(first), 1):
        pass

    assert stuck_ids(made) == []
    assert stuck_pairs(made) == []

    crowd_links.close(link=link, by=made.created_by)
    assert len(stuck_ids(made)) == 2
    assert [pair.nobody_left for pair in stuck_pairs(made)] == [True, True]


def test_others_can_still_judge_what_was_skipped_where_places_are_free() -> None:
    made = campaign_of("a", labels=1)
    held = assignments.claim_next(campaign=made, by=account(enter(link_of(made, most_people=2))))
    assert held is not None
    assignments.skip(assignment=held, by=held.assessor, reason="no text")

    assert [pair.nobody_left for pair in stuck_pairs(made)] == [False]

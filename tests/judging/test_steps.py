"""How many instructions SQLite carries out where there is more: nothing is looked through anew.

Statements are counted elsewhere; one of them alone may compare everything with everything.
"""

from collections.abc import Callable

import pytest

from judging.models import Campaign, Document, Pair, User
from judging.services import batches, desk, gold
from judging.stuck import stuck
from tests.judging.test_desk_statements import one
from tests.support import factories
from tests.support.steps import counted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sqlite_only,
    pytest.mark.django_db(transaction=True),
]


def test_a_judgment_in_a_large_batch_takes_the_database_no_more_steps() -> None:
    """As many documents of each topic, and twenty times as many topics."""
    few, many = (steps_of_a_judgment(topics) for topics in (2, 40))
    assert many < 1.25 * few


def steps_of_a_judgment(topics: int) -> int:
    """For a judgment and the next pair."""
    campaign = factories.campaign(slug=f"of{topics}", topics=topics)
    (by,) = factories.assessors(campaign, f"anna{topics}")
    factories.released_batch(campaign, [f"d{n}" for n in range(25)])
    assert desk.next_sheet(campaign=campaign, by=by, topic=True)
    one(by)
    return steps_of(lambda: one(by))


def steps_of(work: Callable[[], object]) -> int:
    found: list[int] = []
    with counted(found):
        work()
    return found[0]


def test_pairs_that_wait_for_the_organizer_are_found_in_as_many_steps_whatever_was_judged() -> None:
    """As many pairs of an open batch; of those before, which are judged, sixteen times as many."""
    few, many = (steps_to_find_what_is_stuck(judged) for judged in (25, 400))
    assert many < 1.25 * few


def steps_to_find_what_is_stuck(judged: int) -> int:
    campaign, _ = after(judged, f"after{judged}")
    waits: list[Pair] = []
    steps = steps_of(lambda: waits.extend(stuck(campaign)))
    assert not waits
    return steps


def after(judged: int, name: str) -> tuple[Campaign, User]:
    """An open batch of 50 pairs, after twice as many were judged as told, by one person."""
    campaign = factories.campaign(slug=name, topics=2)
    (by,) = factories.assessors(campaign, name)
    before = factories.judged_batch(campaign, [f"d{n}" for n in range(judged)], by)
    factories.released_batch(campaign, [f"e{n}" for n in range(25)])
    assert batches.open_next(campaign.pk) != before
    return campaign, by


@pytest.mark.parametrize(("every", "most"), [(0, 12), (3, 22)])
def test_of_what_somebody_judged_before_hardly_anything_is_looked_at(every: int, most: int) -> None:
    """Ten pairs of each of the other topics; a look at each row and pair takes 24 and 32 steps."""
    few, many = (steps_after_other_topics(topics, every) for topics in (5, 45))
    assert many - few < most * 400


def steps_after_other_topics(topics: int, every: int) -> int:
    campaign = factories.campaign(slug=f"of{topics}e{every}", topics=topics)
    (by,) = factories.assessors(campaign, f"anna{topics}")
    factories.judged_batch(campaign, [f"d{n}" for n in range(10)], by)
    factories.released_batch(campaign, [f"e{n}" for n in range(12)])
    batches.open_next(campaign.pk)
    return steps_with_gold(campaign, by, every)


def test_a_judgment_among_gold_does_not_look_through_own_work_for_every_pair() -> None:
    plain, mixed = (steps_after_much_work(every) for every in (0, 3))
    assert mixed < 2.5 * plain  # own work is counted once more, for the rate


def steps_after_much_work(every: int) -> int:
    campaign, by = after(400, f"every{every}")
    return steps_with_gold(campaign, by, every)


def steps_with_gold(campaign: Campaign, by: User, every: int) -> int:
    lines = "topic,docno,grade\nt1,g,1\nt2,g,1\n"
    Document.objects.create(campaign=campaign, upload=campaign.uploads.get(), docno="g", text="A.")
    found, problems = gold.read(campaign, lines, "gold.csv")
    gold.add(campaign=campaign, by=campaign.created_by, found=found, problems=problems)
    gold.mix(campaign=campaign, by=campaign.created_by, every=every)
    assert desk.next_sheet(campaign=campaign, by=by, topic=True)
    one(by)
    return steps_of(lambda: one(by))

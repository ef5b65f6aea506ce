"""Pairs of a topic together, and the reading of topics in the hours of work."""

import numpy as np
import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client

from estimation.core.planning.sittings import expected_sittings
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.topic_choice import TopicChoice, choice_of
from estimation.models import Draw, Round
from estimation.services import collections, reaching
from judging.errors import UserError
from judging.models import Campaign
from tests.support import evaluation
from tests.support.choices import pool_of
from tests.support.kept import Kept
from tests.support.later import file_of, latest, report_of
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
ADAPTIVE = {
    "method": "adaptive", "measure": "DCG@5", "reported": ["P@5"], "extra_share": 0.0,
    "budget": 80, "batch_size": 20,
}  # fmt: skip


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("plain", evaluation.with_material)


def judged_to_the_end(row: Round) -> Round:
    for _ in range(20):
        row.refresh_from_db()
        if row.state == Round.State.COMPLETE:
            return row
        evaluation.judge(row.campaign, 200)
    raise AssertionError(f"still {row.state}")


def topics_of(row: Round, batch: int) -> int:
    drawn = Draw.objects.filter(round=row, batch_number=batch)
    return drawn.values("pair__topic").distinct().count()


@pytest.mark.slow
def test_later_batches_have_few_topics_and_the_numbers_follow_from_rows(
    campaign: Campaign, tmp_path
) -> None:
    row = judged_to_the_end(evaluation.drawn(campaign, **ADAPTIVE, topic_minimum=10))
    plain = judged_to_the_end(evaluation.drawn(campaign, **ADAPTIVE))
    batches = range(1, 5)
    assert sum(topics_of(row, each) for each in batches) < sum(
        topics_of(plain, each) for each in batches
    )
    drawn = collections.columns_of(row)[1]
    assert isinstance(drawn, AdaptiveRound)
    assert drawn.design.topic_minimum == 10.0
    assert drawn.design.even_topics
    call_command("recompute")
    evaluation.made_reports(row)
    assert "it had about 10 pairs of each that did, on average" in report_of(row)
    told = collections.collection_of(row, latest(row))
    assert told.drawn.design.topic_minimum == 10.0
    assert told.drawn.design.even_topics
    assert ",ad," in file_of(row, "estimates.csv")
    assert latest(row).reports.filter(name="collection.zip").exists()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"method": "poisson", "topic_minimum": 5}, "topic_minimum"),
        ({"reported": ["AP"], "topic_minimum": 5}, "topic_minimum"),
        ({"measure": "nDCG@5", "topic_minimum": 2}, "topic_minimum"),
        ({"topic_minimum": 0}, "topic_minimum"),
        ({"topic_minimum": 1001}, "topic_minimum"),
        ({"topic_seconds": -1}, "topic_seconds"),
        ({"topic_seconds": 86_401}, "topic_seconds"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    campaign: Campaign, values: dict, field: str
) -> None:
    with pytest.raises(UserError) as refused:
        evaluation.drafted(campaign, **ADAPTIVE | values)
    assert (refused.value.code, refused.value.field) == ("round_invalid", field)


@pytest.mark.on_both
def test_the_database_knows_which_method_has_it(campaign: Campaign) -> None:
    row = evaluation.drafted(campaign)
    with pytest.raises(IntegrityError), transaction.atomic():
        Round.objects.filter(pk=row.pk).update(topic_minimum=2)


@pytest.mark.slow
def test_reading_topics_is_a_part_of_the_hours(campaign: Campaign, client: Client) -> None:
    plain = evaluation.drafted(campaign, **ADAPTIVE).preview
    row = evaluation.drafted(campaign, **ADAPTIVE, topic_seconds=60)
    more = row.preview
    assert more["sittings"] == plain["sittings"]
    assert 4 * 5 < more["sittings"] <= 4 * 6  # four batches of six topics
    assert more["hours"] - plain["hours"] == pytest.approx(more["sittings"] / 60)
    together = evaluation.drafted(campaign, **ADAPTIVE, topic_seconds=60, topic_minimum=10)
    assert together.preview["sittings"] < 0.7 * more["sittings"]
    client.force_login(campaign.created_by)
    page = text(client.get(address("round-detail", campaign, row.number)))
    assert "30 s a judgment, 60 s a topic" in page
    assert "times somebody begins with a topic" in page


@pytest.mark.slow
def test_hours_buy_less_where_topics_are_to_be_read(campaign: Campaign) -> None:
    plain, dear = (
        evaluation.drafted(campaign, **ADAPTIVE, topic_seconds=seconds) for seconds in (0, 60)
    )
    asked = [reaching.answered(row, "hours", 0.5).budget or 0 for row in (plain, dear)]
    assert asked[1] < 0.8 * asked[0]
    own = reaching.of_budget(dear)
    assert own.hours == pytest.approx(dear.preview["hours"], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("batches", "minimum"), [(1, 0.0), (5, 0.0), (5, 4.0)])
def test_sittings_are_what_draws_show(campaign: Campaign, batches: int, minimum: float) -> None:
    pool = pool_of(campaign)
    chance = np.random.default_rng(1).random(len(pool)) * 0.4
    random, found = np.random.default_rng(2), []
    each, every = chance / batches, TopicChoice.independent(np.ones(len(pool.topics)))
    asked = {"topics": len(pool.topics), "even": True}
    choice = choice_of(pool.topic, each, minimum, **asked) if minimum else every
    for _ in range(2000):
        total = 0
        for _batch in range(batches):
            numbers = random.random(len(pool.topics))
            taken = choice.taking_part(numbers, random.random(choice.classes))
            drawn = random.random(len(pool)) < each / choice.chance[pool.topic]
            total += len(np.unique(pool.topic[drawn & taken[pool.topic]]))
        found.append(total)
    told = expected_sittings(pool, chance, batches=batches, minimum=minimum)
    assert told == pytest.approx(np.mean(found), rel=0.03)

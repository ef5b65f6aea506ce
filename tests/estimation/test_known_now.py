"""What is known already beside what a further round buys: on its page, and by REST."""

from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from estimation.core.planning.reached import Reached, ReachedByBudget
from estimation.known_now import KnownNow, known_now, less_than_known
from estimation.models import Estimate, Round
from estimation.services import extending, reaching, rounds, stopping
from judging.models import Batch, Campaign
from judging.services import campaigns
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]

TABLE = ReachedByBudget(
    (
        Reached(50.0, 50.0, 0.8, 1.2, 0.0, 0.1),
        Reached(100.0, 100.0, 0.4, 0.6, 0.1, 0.3),
        Reached(300.0, 300.0, 0.2, 0.4, 0.3, 0.5),
    )
)


def row(**values: object) -> Round:
    return Round(budget=100, method="poisson", top_up=True, **values)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("half_width", "said"),
    [
        (
            0.3,
            "Less than round 1 knows now: ±\N{NO-BREAK SPACE}0.30 for the middle run there, "
            "±\N{NO-BREAK SPACE}0.40 to 0.60 here.",
        ),
        (
            0.5,
            "Maybe less than round 1 knows now, if much more is relevant than found: "
            "±\N{NO-BREAK SPACE}0.50",
        ),
        (0.6, ""),
        (0.7, ""),
    ],
)
def test_it_is_told_where_a_round_may_know_less(half_width: float, said: str) -> None:
    known = KnownNow(round=1, batches=2, half_width=half_width)
    assert less_than_known(row(), known, TABLE).startswith(said)
    assert bool(less_than_known(row(), known, TABLE)) == bool(said)
    assert less_than_known(row(), None, TABLE) == ""


def test_a_round_that_learns_is_told_in_its_own_words() -> None:
    learns = row(preview={"learns": True})
    maybe, narrow = (less_than_known(learns, KnownNow(1, 2, width), TABLE) for width in (0.5, 0.3))
    assert maybe.startswith("Maybe less than round 1 knows now: ")
    assert narrow.endswith("From about 200 new pairs on it is as narrow, at best.")


def test_from_which_budget_on_it_is_as_narrow() -> None:
    said = [
        less_than_known(row(), KnownNow(1, 1, width), TABLE).rsplit(". ", 1)[1]
        for width in (0.3, 0.15, 0.59)
    ]
    assert said == [
        "From about 200 new pairs on it is as narrow, if all is as the prior expects.",
        "No budget of this design makes it as narrow.",
        "From about 77 to 110 new pairs on it is as narrow.",
    ]


def test_what_is_known_exactly_asks_for_everything() -> None:
    said = less_than_known(row(), KnownNow(1, 3, 0.0), TABLE)
    assert said.startswith(
        "Less than round 1 knows now: ±\N{NO-BREAK SPACE}0 for the middle run there, "
    )
    assert said.endswith(" Only where everything is judged it is as narrow.")


def test_why_it_knows_less_follows_the_way_it_is_estimated() -> None:
    known = KnownNow(1, 1, 0.3)
    together = less_than_known(row(with_earlier=True, preview={"of_all": True}), known, TABLE)
    assert together
    assert less_than_known(row(with_earlier=True), known, TABLE) == "", "the others are not in it"
    assert "drawn anew" not in together
    assert "alone" not in together
    alone = Round(budget=100, method="poisson")
    assert "This round is estimated alone." in less_than_known(alone, known, TABLE)


def test_an_extension_that_is_too_small_is_told_beside_what_is_known(
    campaign: Campaign, organizer: Client
) -> None:
    first = evaluation.drawn(campaign, budget=80, batch_size=20, extra_share=0.0)
    evaluation.judge(campaign, 45)
    stopping.by_hand(row=first, by=campaign.created_by)
    factories.run_due_jobs()
    first.refresh_from_db()
    more = extending.extend(row=first, by=campaign.created_by, budget=2)
    factories.run_due_jobs()
    more.refresh_from_db()

    known = known_now(more)
    assert known is not None
    shown = Estimate.objects.filter(
        estimate_set__round=first, measure=first.measure, primary=True, unknown=0
    )
    last = shown.order_by("-estimate_set__number").first()
    assert last is not None
    rows = shown.filter(estimate_set=last.estimate_set)
    Estimate.objects.filter(pk=rows[0].pk).update(low=F("value") - 50, high=F("value") + 1)
    known = known_now(more)
    assert known is not None
    assert known.half_width == pytest.approx(
        median(max(each.high - each.value, each.value - each.low) for each in rows)
    ), "the longer side, as the ranking has it"
    assert (known.round, known.batches) == (first.number, last.estimate_set.batches)

    answer = organizer.get(address("round-detail", campaign, more.number))
    assert f"<dd>{known.width}</dd><dt>known now, by round 1</dt>" in answer.content.decode()
    page = text(answer)
    assert "ess than round 1 knows now" in page
    assert "drawn anew, and the draws before say nothing of it" in page
    there = f"/api/campaigns/{campaign.slug}/rounds/{more.number}/reach/"
    told = organizer.get(there).json()
    assert told["known"] == pytest.approx(vars(known))
    assert "ess than round 1 knows now" in told["text"]

    enough = reaching.reach(
        row=more, by=campaign.created_by, target="half_width", wanted=known.half_width
    )
    factories.run_due_jobs()
    more.refresh_from_db()
    assert enough.budget is not None
    assert enough.budget > 2
    assert "knows now" not in organizer.get(there).json()["text"]


@pytest.mark.on_both
def test_after_everything_was_judged_a_smaller_round_is_planned_and_ends_by_itself(
    campaign: Campaign, organizer: Client, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    """Nobody has to come for pairs that were judged for the round before."""
    every = {"budget": 2000, "batch_size": 2000, "extra_share": 0.0, "method": "poisson"}
    evaluation.drawn(campaign, **every)
    evaluation.judge(campaign, 2000)
    later = evaluation.drafted(campaign, budget=30, batch_size=10, extra_share=0.0)
    known = known_now(later)
    assert known is not None
    assert known.half_width == 0.0
    page = text(organizer.get(address("round-detail", campaign, later.number)))
    assert "Only where everything is judged it is as narrow." in page
    there = f"/api/campaigns/{campaign.slug}/rounds/{later.number}/reach/"
    assert "±\N{NO-BREAK SPACE}0 for the middle run there" in organizer.get(there).json()["text"]
    with django_capture_on_commit_callbacks(execute=True):
        rounds.request_draw(row=later, by=campaign.created_by)
        factories.run_due_jobs()
    factories.run_due_jobs()
    states = set(later.round_batches.values_list("batch__state", flat=True))
    assert states == {Batch.State.COMPLETE}
    assert later.estimate_sets.exists()


@pytest.mark.on_both
def test_a_draft_campaign_opens_no_batch_before_it_is_opened(
    campaign: Campaign, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    evaluation.drawn(campaign, budget=2000, batch_size=2000, extra_share=0.0, method="poisson")
    evaluation.judge(campaign, 2000)
    campaigns.pause(campaign=campaign, by=campaign.created_by)
    later = evaluation.drafted(campaign, budget=30, batch_size=10, extra_share=0.0)
    with django_capture_on_commit_callbacks(execute=True):
        rounds.request_draw(row=later, by=campaign.created_by)
        factories.run_due_jobs()
    waiting = later.round_batches.filter(batch__state=Batch.State.WAITING)
    assert waiting.count() == later.round_batches.count() > 1
    with django_capture_on_commit_callbacks(execute=True):
        campaigns.open_for_judging(campaign=campaign, by=campaign.created_by)
    assert not waiting.exists()


def test_nothing_is_known_of_another_measure_nor_before_a_batch_is_judged(
    campaign: Campaign,
) -> None:
    first = evaluation.drawn(campaign, budget=60, batch_size=20)
    later = evaluation.drafted(campaign)
    assert known_now(later) is None
    evaluation.judge(campaign, 60)
    assert known_now(later) is not None
    assert known_now(replace_measure(later, "nDCG@5")) is None
    assert known_now(first) is None, "of a round itself"


def replace_measure(row: Round, measure: str) -> Round:
    row.measure = measure
    return row

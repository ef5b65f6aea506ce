"""Rounds one after another: what was judged, what counts where, and what can be done."""

import re
from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from estimation import selectors
from estimation.models import Round
from estimation.scales import ticks_between
from estimation.services import pausing, rounds, stopping
from estimation.timeline import timeline
from judging.errors import UserError
from judging.models import Assignment, AuditEntry, Batch, Campaign
from judging.services import campaigns
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def test_each_round_is_counted_once(judged: Round, campaign: Campaign) -> None:
    evaluation.drafted(campaign, seed="t")
    lines = {line.round.number: line for line in timeline(campaign).lines}
    progress = selectors.round_progress(judged)
    line = lines[judged.number]
    assert (line.pairs, line.finished) == (progress.pairs, progress.finished)
    assert (line.complete, line.batches) == (progress.used, len(progress.batches))
    assert (lines[2].pairs, lines[2].start) == (0, None)
    assert list(lines) == [2, 1], "latest first"


@pytest.mark.slow
def test_what_counts_where_is_said_of_both_rounds(campaign: Campaign, organizer: Client) -> None:
    evaluation.drawn(campaign, extra_share=0.0)
    while evaluation.judge(campaign, 1000):
        pass
    evaluation.drawn(campaign, seed="u", with_earlier=True, extra_share=0.0)
    alone = {"top_up": True, "budget": 10, "batch_size": 10, "extra_share": 0.0}
    evaluation.drawn(campaign, seed="v", **alone)
    evaluation.drafted(campaign, seed="w", **alone)
    lines = {line.round.number: line for line in timeline(campaign).lines}
    batches = lines[1].complete
    assert [each.number for each in lines[4].counts] == [1], "a draft would, and does not yet"
    assert [(e.number, e.certain) for e in lines[2].counts] == [(1, False)]
    assert [(e.number, e.batches, e.certain) for e in lines[3].counts] == [(1, batches, True)]
    assert {(e.number, e.certain) for e in lines[1].counted} == {(2, False), (3, True)}
    evaluation.judge(campaign, 1000)
    told = {line.round.number: line for line in timeline(campaign).lines}[2].counts
    assert [(each.number, each.batches) for each in told] == [(1, batches)]
    said = text(organizer.get(address("round-list", campaign)))
    many = f"round 1 ({batches} batches)"
    assert f"Estimated together with {many}: what is judged there counts here too." in said
    assert f"Tops up {many}: what is judged there is in its sample for certain" in said
    assert "Its judgments count in round 2, which is estimated together with it." in said
    assert "Its judgments count in round 3, which tops it up: they are in that sample" in said
    assert said.count("top-up") == 2, "the drawn one and the draft"


@pytest.mark.slow
def test_rounds_that_a_top_up_fills_up_are_named(campaign: Campaign, organizer: Client) -> None:
    evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 1000)
    chosen = {"top_up": True, "with_earlier": True, "budget": 20, "extra_share": 0.0}
    rounds.draft(
        campaign=campaign, by=campaign.created_by, plan=evaluation.plan(**chosen, seed="x")
    )
    there = address("round-list", campaign)
    assert "Tops up what is judged." in text(organizer.get(there)), "before it is worked out"
    factories.run_due_jobs()
    said = text(organizer.get(there))
    assert "Tops up round 1: the chances of pairs there are filled up, and what is judged" in said


@pytest.mark.slow
def test_what_can_be_done_follows_from_the_state(campaign: Campaign, organizer: Client) -> None:
    there = address("round-list", campaign)

    def shown() -> tuple[str, ...]:
        said = organizer.get(there).content.decode()
        doing = {"Go on planning": "Go on planning", "Pause": "/pause/", "Go on": "/resume/"}
        doing |= {"End early": "/end/", "Extend": "/extend/"}
        return tuple(name for name, sign in doing.items() if sign in said.split("timeline")[-1])

    draft = evaluation.drafted(campaign)
    assert shown() == ("Go on planning",)
    rounds.discard(row=draft, by=draft.created_by)
    row = evaluation.drawn(campaign, extra_share=0.0)
    assert shown() == ("Pause",), "nothing is judged yet"
    evaluation.judge(campaign, 30)
    assert shown() == ("Pause", "End early", "Extend")
    pausing.pause(row=row, by=row.created_by)
    assert shown() == ("Go on", "End early", "Extend")
    assert "Paused since" in text(organizer.get(there))
    pausing.resume(row=row, by=row.created_by)
    while evaluation.judge(campaign, 1000):
        pass
    assert shown() == ("Extend",)


@pytest.mark.slow
def test_a_draft_in_a_campaign_that_is_over_is_looked_at_or_discarded(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign)
    draft, by = evaluation.drafted(campaign, seed="more"), campaign.created_by
    campaigns.close(campaign=campaign, by=by)
    there, plan = address("round-list", campaign), address("round-detail", campaign, draft.number)
    draw = address("round-draw", campaign, draft.number)
    for over in ("closed", "archived"):
        if over == "archived":
            campaigns.archive(campaign=campaign, by=by)
        said = organizer.get(there).content.decode()
        assert "Go on planning" not in said
        assert "See the plan" in said
        assert address("round-discard", campaign, draft.number) in said
        shown = organizer.get(plan).content.decode()
        assert f"Nothing is drawn while the campaign is {over}" in shown
        assert draw not in shown
        with pytest.raises(UserError, match=over):
            rounds.request_draw(row=draft, by=by)
        draft.refresh_from_db()
        assert draft.state == "drafted"
    campaigns.unarchive(campaign=campaign, by=by)
    organizer.post(address("campaign-open", campaign), {"next": plan})
    assert draw in organizer.get(plan).content.decode()


@pytest.mark.slow
@pytest.mark.parametrize(("state", "why"), [("paused", "is paused"), ("closed", "is closed")])
def test_a_round_stands_still_with_its_campaign(
    campaign: Campaign, organizer: Client, state: str, why: str
) -> None:
    """Everywhere: on its line, its own page, the overview and by REST."""
    evaluation.worker_alive()
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 30)
    there, single = address("round-list", campaign), address("round-detail", campaign, 1)
    asked = f"/api/campaigns/{campaign.slug}/rounds/"
    assert "Goes on" in text(organizer.get(there))
    assert organizer.get(f"{asked}1/").json()["stands_still"] == ""
    {"paused": campaigns.pause, "closed": campaigns.close}[state](
        campaign=campaign, by=campaign.created_by
    )
    said, line = text(organizer.get(there)), timeline(campaign).lines[0]
    assert f"Stands still: the campaign {why}" in said
    assert "Goes on" not in said
    assert (line.state, line.end) == (state, Assignment.objects.latest("created").created)
    assert f"It stands still: the campaign {why}." in text(organizer.get(single))
    for told in (organizer.get(f"{asked}1/").json(), organizer.get(asked).json()["results"][0]):
        assert told["stands_still"] == f"the campaign {why}"
    home = text(organizer.get(address("campaign-home", campaign)))
    assert f"Nothing: the campaign {why}." in home
    assert "under way" not in home
    assert ("would" if state == "closed" else "will") in re.findall(
        r"What more judgments (\w+) bring", home
    )
    if state == "paused":
        pausing.pause(row=row, by=row.created_by)
        answer = organizer.post(address("round-resume", campaign, 1), follow=True)
        assert "pauses no more, but stands still: the campaign is paused." in text(answer)


@pytest.mark.slow
def test_a_round_that_pauses_says_so_by_rest_and_on_its_page(
    judged: Round, organizer: Client
) -> None:
    evaluation.worker_alive()
    pausing.pause(row=judged, by=judged.created_by)
    single = organizer.get(address("round-detail", judged.campaign, 1))
    assert "It stands still: round 1 is paused." in text(single)
    assert "Nothing: round 1 is paused." in text(
        organizer.get(address("campaign-home", judged.campaign))
    )
    told = organizer.get(f"/api/campaigns/{judged.campaign.slug}/rounds/1/").json()
    assert told["stands_still"] == "round 1 is paused"


@pytest.mark.slow
def test_a_round_ends_when_it_is_ended(judged: Round, organizer: Client) -> None:
    """Not when its last complete batch was: days may lie between."""
    there = address("round-list", judged.campaign)
    days_ago = timezone.now() - timedelta(days=5)
    Round.objects.update(drawn=days_ago)
    Batch.objects.filter(state=Batch.State.COMPLETE).update(completed=days_ago)
    stopping.by_hand(row=judged, by=judged.created_by)
    said = text(organizer.get(there))
    assert "Is being ended" in said
    assert "Goes on" not in said
    begun = timezone.now()
    factories.run_due_jobs()
    end = timeline(judged.campaign).lines[0].end
    assert end is not None
    assert begun <= end <= timezone.now()
    assert f"Ended {end:%-d %b %Y, %H:%M}" in text(organizer.get(there))
    told = organizer.get(f"/api/campaigns/{judged.campaign.slug}/rounds/1/").json()["stopping"]
    assert (told["rule"], datetime.fromisoformat(told["ended"])) == ("hand", end)


@pytest.mark.slow
def test_rounds_that_ended_before_this_was_noted_have_the_time_of_the_log(judged: Round) -> None:
    stopping.by_hand(row=judged, by=judged.created_by)
    factories.run_due_jobs()
    judged.refresh_from_db()
    noted = judged.stopping.pop("ended")
    judged.save()
    migration = import_module("estimation.migrations.0029_when_rounds_ended")
    migration.fill(apps, None)
    judged.refresh_from_db()
    logged = AuditEntry.objects.get(action="stop round").created
    assert datetime.fromisoformat(judged.stopping["ended"]) == logged
    assert abs(logged - datetime.fromisoformat(noted)) < timedelta(minutes=1)


@pytest.mark.slow
def test_more_rounds_and_batches_are_no_more_statements(
    campaign: Campaign, organizer: Client
) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert timeline(campaign).lines
        return len(seen)

    evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 30)
    assert statements() == 3
    evaluation.drawn(campaign, seed="u", with_earlier=True, batch_size=6, extra_share=0.0)
    few = statements()
    evaluation.drawn(campaign, seed="v", with_earlier=True, batch_size=6, extra_share=0.0)
    evaluation.drawn(campaign, seed="w", method="adaptive", batch_size=6, extra_share=0.0)
    evaluation.drafted(campaign, seed="x")
    assert statements() == few == 5
    campaigns.pause(campaign=campaign, by=campaign.created_by)
    assert statements() == 6


@pytest.mark.slow
def test_bars_lie_on_the_axis(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    evaluation.drawn(campaign, seed="u")
    for line in timeline(campaign).lines:
        assert 0.0 <= line.x <= line.x + line.width <= 100.001
        assert line.width >= 1.5


@pytest.mark.parametrize(
    ("begin", "lasts", "labels"),
    [
        ("2026-03-28T22:58:30", timedelta(minutes=4), ["22:59", "23:00", "23:01", "23:02"]),
        ("2026-03-28T21:30", timedelta(hours=4), ["22:00", "23:00", "00:00", "01:00"]),
        ("2026-03-28T10:00", timedelta(days=4), ["29 Mar", "30 Mar", "31 Mar", "1 Apr"]),
        ("2026-12-20T10:00", timedelta(days=60), ["3 Jan", "17 Jan", "31 Jan", "14 Feb"]),
        ("2026-01-31T10:00", timedelta(days=120), ["Feb 2026", "Mar 2026", "Apr 2026", "May 2026"]),
        ("2026-12-30T20:00", timedelta(hours=44), ["31 Dec", "12:00", "1 Jan", "12:00"]),
        ("2028-02-28T12:00", timedelta(hours=54), ["12:00", "29 Feb", "12:00", "1 Mar", "12:00"]),
        ("1990-06-01T00:00", timedelta(days=14_610), ["Jan 2000", "Jan 2010", "Jan 2020"]),
        ("2026-01-31T10:00", timedelta(0), []),
    ],
)  # fmt: skip
def test_dates_on_the_axis_are_round_and_where_they_belong(
    begin: str, lasts: timedelta, labels: list[str]
) -> None:
    first = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    ticks = ticks_between(first, first + lasts)
    assert [tick.label for tick in ticks][: len(labels)] == labels
    assert all(0.0 <= tick.at <= 100.0 for tick in ticks)
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)


def test_every_round_stands_under_one_axis(judged: Round, organizer: Client) -> None:
    assert judged.drawn is not None
    Round.objects.update(drawn=judged.drawn - timedelta(days=30))
    shown = organizer.get(address("round-list", judged.campaign))
    ticks = shown.context["found"].ticks
    assert 2 <= len(ticks) <= 5
    content = shown.content.decode()
    assert all(content.count(f'x1="{tick.at}%"') == 2 for tick in ticks)

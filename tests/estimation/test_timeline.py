"""Rounds one after another: what was judged, what counts where, and what can be done."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import selectors
from estimation.models import Round
from estimation.services import pausing, rounds
from estimation.timeline import timeline
from judging.models import Campaign
from tests.support import evaluation
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
    assert "Takes what was judged in round 1 for certain" in said
    assert "Its judgments count in round 2." in said


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
    assert statements() == few == 4


def test_bars_lie_on_the_axis(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    evaluation.drawn(campaign, seed="u")
    for line in timeline(campaign).lines:
        assert 0.0 <= line.x <= line.x + line.width <= 100.001
        assert line.width >= 1.5

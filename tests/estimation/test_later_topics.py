"""Runs that are accepted after a round of whole topics was drawn."""

import re

import pytest
from django.test import Client

from judging.models import Campaign
from tests.support import evaluation
from tests.support.later import (
    assert_a_copy_takes_part,
    assert_half_a_run_takes_part,
    report_of,
    table_of,
)
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]
WHOLE = {"method": "query", "measure": "ERR@5", "budget": 60, "batch_size": 40, "extra_share": 0.0}


@pytest.mark.parametrize("reported", [["P@3", "DCG@5"], ["AP", "nDCG@5"]])
def test_whole_topics_take_a_copy_at_the_value_of_its_twin(
    campaign: Campaign, reported: list[str]
) -> None:
    costly = {"budget": 100, "batch_size": 60} if "AP" in reported else {}
    row = evaluation.drawn(campaign, reported=reported, **WHOLE | costly)
    evaluation.judge(campaign, 10_000)
    assert_a_copy_takes_part(campaign, row, measures=["ERR@5", *reported])


def test_of_whole_topics_documents_that_are_not_judged_make_a_lower_bound(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign, reported=["DCG@5"], **WHOLE)
    evaluation.judge(campaign, 10_000)
    assert_half_a_run_takes_part(campaign, row)
    there = address("live", campaign, 1)
    said = text(organizer.get(there))
    assert re.search(
        r"copy joined after the sample was drawn; all that ERR@5 counts for it is judged where "
        r"its topic is drawn \(effective sample size \d+\)\.", said
    )  # fmt: skip
    assert re.search(
        r"late joined after the sample was drawn, which reaches \d\d(\.\d)? % of what ERR@5 "
        r"counts for it \(effective sample size \d+\)\. Its value is a lower bound, and it is "
        r"called worse than another run only where the documents out of reach could not "
        r"change that\.", said
    )  # fmt: skip
    assert "not in this round" not in said
    evaluation.made_reports(row)
    said = report_of(row)
    named = " and ".join(each.tag for each in table_of(row).late)
    assert f"After the sample was drawn 2 further runs joined: {named}." in said
    assert "Their documents that are not judged in a drawn topic count as useless." in said
    assert "Not in this round" not in said

"""Runs that are accepted after a round of whole topics was drawn."""

import re

import numpy as np
import pytest
from django.test import Client

from estimation import selectors
from estimation.services import estimates
from judging.models import Campaign
from judging.services import jobs
from tests.estimation.test_later_runs import (
    join,
    latest,
    lines_of,
    numbers,
    of_run,
    ranked,
    report_of,
    table_of,
    with_news,
)
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
WHOLE = {"method": "query", "measure": "ERR@5", "budget": 60, "batch_size": 40, "extra_share": 0.0}


@pytest.mark.parametrize("reported", [["P@3", "DCG@5"], ["AP", "nDCG@5"]])
def test_whole_topics_take_a_copy_at_the_value_of_its_twin(
    campaign: Campaign, reported: list[str]
) -> None:
    costly = {"budget": 100, "batch_size": 60} if "AP" in reported else {}
    row = evaluation.drawn(campaign, reported=reported, **WHOLE | costly)
    evaluation.judge(campaign, 10_000)
    before = latest(row)

    join(campaign, lines_of("run2", "copy"))

    now = latest(row)
    assert (now.number, now.batches, now.left_out) == (before.number + 1, before.batches, [])
    assert (now.pair_count, now.label_count) == (before.pair_count, before.label_count)
    assert now.provenance["joined_pool"] != estimates.columns_of(row)[0].digest
    kept = numbers(now)
    assert {key: kept[key] for key in numbers(before)} == numbers(before)
    for measure in ("ERR@5", *reported):
        twin, copy = of_run(now, "run2", measure), of_run(now, "copy", measure)
        assert (copy.late, copy.support, copy.value) == (True, 1.0, twin.value)
        assert copy.sample_size == twin.sample_size
        pairs = selectors.pairwise(now, measure)
        assert pairs.verdicts[pairs.runs.index("run2"), pairs.runs.index("copy")] == 0
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    assert outcome.digest == now.digest
    jobs.request("recompute", row.pk, campaign=campaign)
    factories.run_due_jobs()
    assert latest(row) == now


def test_of_whole_topics_documents_that_are_not_judged_make_a_lower_bound(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign, reported=["DCG@5"], **WHOLE)
    evaluation.judge(campaign, 10_000)
    before = numbers(latest(row))
    join(campaign, with_news("late", known=3))
    join(campaign, lines_of("run2", "copy"), "copy.run")

    shown = latest(row)
    late = of_run(shown, "late", "DCG@5")
    gains = 1 / np.log2(np.arange(2, 7))
    assert late.support == pytest.approx(gains[:3].sum() / gains.sum(), abs=1e-12)
    assert late.value > 0
    assert {key: each for key, each in numbers(shown).items() if key in before} == before
    assert ranked(row, "late").open_part
    assert not ranked(row, "copy").open_part
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

"""Made-up crowds: what excluding by gold, by time and by agreement does to estimates."""

import io

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from estimation.research.crowd_errors import (
    GoldPlan,
    _turns_of_gold,
    expected,
    measure_errors,
)
from estimation.research.crowds import CrowdPlan

PLAN = CrowdPlan(judgments=120)
pytestmark = pytest.mark.sqlite_only


@pytest.mark.slow
def test_by_gold_and_time_the_error_is_a_clean_crowds_and_by_agreement_it_is_not() -> None:
    """With few crowds, so with room for luck; `docs/methods/labels.md` has what 400 give."""
    found = measure_errors(PLAN, GoldPlan(), crowds=40, seed=1000)
    clean, gold = found["clean"], found["gold and time"]
    assert gold.error <= 1.2 * clean.error
    assert abs(gold.bias) < 3.0 * gold.bias_error
    assert gold.spammers > 4.5
    assert gold.readers < 0.5
    # What must be caught: nobody is excluded, or those who agree least.
    for rule in ("nobody", "agreement"):
        assert abs(found[rule].bias) > 5.0 * found[rule].bias_error
        assert found[rule].error > 1.5 * clean.error


@pytest.mark.slow
def test_who_judges_forty_pairs_is_known_by_gold_where_one_in_four_is() -> None:
    """A score takes ten answers. With one in eight nobody has them after 40 pairs, so that only
    haste is found: that is what the twin must show."""
    plan = CrowdPlan(judgments=40)
    found, twin = (
        measure_errors(plan, GoldPlan(every=every), crowds=40, seed=2000) for every in (4, 8)
    )
    gold = found["gold and time"]
    assert gold.error <= 1.15 * found["clean"].error
    assert abs(gold.bias) < 3.0 * gold.bias_error
    assert gold.spammers > 4.5
    assert gold.readers < 0.5
    assert 0.27 < gold.gold < 1 / 3  # nobody judges on who is out
    assert twin["gold and time"].spammers < 3.5
    # Whoever is out stops there, so that less is in vain than all that five people give.
    assert 0.0 < gold.in_vain < 0.09


def test_gold_comes_at_the_products_rate_or_earlier() -> None:
    """One in 12 of all pairs; with ``first`` so many within three times as many, and some."""
    random, plan = np.random.default_rng(9), CrowdPlan(judgments=120)
    turns = [_turns_of_gold(plan, GoldPlan(every=12), random) for _ in range(400)]
    assert np.mean([len(each) for each in turns]) == pytest.approx(120 / 11, abs=0.5)
    early = [_turns_of_gold(plan, GoldPlan(every=12, first=12), random) for _ in range(400)]
    assert np.mean([each[11] for each in early]) == pytest.approx(24, abs=1.5)
    assert np.mean([len(each) for each in early]) < 17


@pytest.mark.slow
def test_what_readers_say_of_all_pairs_is_what_many_draws_say() -> None:
    random, plan = np.random.default_rng(3), CrowdPlan(lenient=0.2, severe=0.0, drifting=0.0)
    level = np.clip(random.normal(0.5, 1.2, 400_000), 0, 3)
    shift = np.where(random.random(len(level)) < 0.2 / 0.9, 0.8, 0.0)
    seen = np.clip(np.round(level + shift + random.normal(0, plan.noise, len(level))), 0, 3)
    assert abs(seen.mean() - expected(plan)) < 4 * seen.std() / np.sqrt(len(level))


@pytest.mark.slow
def test_the_command_prints_a_row_for_each_rule_and_refuses_what_is_none() -> None:
    out = io.StringIO()
    asked = ["--errors", "--judgments", "80", "--crowds", "2"]
    call_command("crowd", *asked, stdout=out)
    rows = out.getvalue().splitlines()[1:]
    assert [row[:14].strip() for row in rows] == ["clean", "nobody", "gold and time", "agreement"]
    with pytest.raises(CommandError, match="--below"):
        call_command("crowd", *asked, "--below", "2", stdout=out)
    with pytest.raises(CommandError, match="--first"):
        call_command("crowd", *asked, "--first", "-1", stdout=out)

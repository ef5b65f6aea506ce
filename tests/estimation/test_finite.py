"""What is no number is never stored: the job fails, its error says which, and the log too."""

import logging
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from estimation import selectors
from estimation.core.collections.base import RoundCollection
from estimation.core.rounds.results import Evaluation
from estimation.services import drawing, finite, previews, rounds
from judging.errors import UserError
from judging.models import Campaign, Job
from tests.core.length import bounded
from tests.support import evaluation, factories

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
evaluate = RoundCollection.evaluate


def with_one_wrong(field: str, number: float) -> Any:
    def spoiled(*given: Any, **options: Any) -> Evaluation:
        found = evaluate(*given, **options)
        result = found.results[0]
        values = np.array(getattr(result.estimate, field))
        values.flat[1] = number
        estimators = {
            **result.estimators,
            result.primary: replace(result.estimate, **{field: values}),
        }
        return replace(found, results=(replace(result, estimators=estimators), *found.results[1:]))

    return spoiled


NUMBERS = (np.nan, np.inf, -np.inf)
FIELDS = ("value", "se", "df", "low", "high", "covariance")
WRONG = bounded(list(zip(FIELDS, NUMBERS * 2, strict=True)), list(product(FIELDS, NUMBERS)))
"""Each field once, each number twice; at length all of them."""


@pytest.mark.slow
@pytest.mark.parametrize(("field", "number"), WRONG)
def test_no_estimate_is_stored_that_is_no_number(
    campaign: Campaign,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    field: str,
    number: float,
) -> None:
    row = evaluation.drawn(campaign)
    monkeypatch.setattr(RoundCollection, "evaluate", with_one_wrong(field, number))
    with caplog.at_level(logging.ERROR):
        evaluation.judge(campaign, 45)
    job = Job.objects.get(kind="recompute")
    assert job.state == Job.State.FAILED
    assert (
        f"ht.{field} of DCG@10 came out as {number} (item 1), so nothing was stored." in job.error
    )
    assert "not finite" in caplog.text
    assert selectors.latest_estimates(row) is None


def test_nor_a_preview(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previews, "_hours", lambda *_: np.inf)
    row = evaluation.drafted(campaign)
    assert row.preview["error"].startswith("hours came out as inf (item 0), so nothing was stored.")


@pytest.mark.slow
def test_nor_a_probability(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    row = evaluation.drafted(campaign)
    draw = drawing.draw

    class Spoiled:
        def __init__(self, drawn: Any) -> None:
            self.drawn = drawn

        def served(self, pool: Any) -> Any:
            served = self.drawn.served(pool)
            return replace(served, probability=served.probability * np.nan)

    monkeypatch.setattr(drawing, "draw", lambda *a, **k: Spoiled(draw(*a, **k)))
    rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    assert "probability came out as nan" in Job.objects.get(kind="draw").error
    assert not row.draws.exists()


def test_margins_may_be_infinite_but_must_be_numbers() -> None:
    finite.check({"margin": [1.0, np.inf]}, may_be_infinite=["margin"])
    with pytest.raises(UserError, match="margin came out as nan"):
        finite.check({"margin": [1.0, np.nan]}, may_be_infinite=["margin"])


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "choices",
    [
        {"eps": 1.7e308, "method": "iid"},
        {"eps": 5e-324, "method": "iid"},
        {"measure": "RBP(p=5e-324)", "method": "iid"},
        {"measure": "RBP(p=5e-324)", "floor": 0.0},
        {"measure": "RBP(p=1e-30)", "method": "per-query", "budget": 60},
        {"measure": "RBP(p=0.9999999999999999)"},
        {"measure": "DCG@1000000"},
        {"measure": "AP@1000000"},
    ],
    ids=str,
)
def test_extreme_choices_give_numbers_throughout(
    campaign: Campaign, choices: dict[str, Any]
) -> None:
    row = evaluation.drawn(campaign, **choices)
    assert row.preview["error"] is None
    evaluation.judge(campaign, 60)
    assert list(Job.objects.exclude(error="").values_list("kind", "error")) == []
    shown = selectors.latest_estimates(row)
    assert shown is not None
    assert all(np.isfinite([e.value, e.se, e.low, e.high]).all() for e in shown.estimates.all())

"""Predicted grades and tables of costs as things of their own: the list of them, and each."""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from django.conf import settings
from django.db.models import QuerySet

from estimation.formats.predictions import load_predictions
from estimation.machine_versions import Origin, origins_of
from estimation.material import Prediction
from estimation.models import Round
from judging.models import Campaign


@dataclass(frozen=True)
class GradeSpread:
    """What its rows say: the least, mean and greatest value; of grades how many are next to each
    grade of the scale, as ``counts``."""

    low: float
    mean: float
    high: float
    counts: list[int]


@dataclass(frozen=True)
class PredictedFacts:
    """``origin``: the machine judge that asked a model for them; None where somebody uploaded a
    file.

    ``rounds`` are learned from it, drawn or drafted; ``topics_missing`` are topics of the campaign
    of which it says nothing.
    """

    prediction: Prediction
    origin: Origin | None
    rounds: list[int]
    topics: int
    spread: GradeSpread | None = field(default=None)

    @property
    def topics_missing(self) -> int:
        return max(0, self.topics - self.prediction.topic_count)


def predictions_of(campaign: Campaign) -> list[PredictedFacts]:
    """All of a campaign, without what their rows say, in five statements; and one for each file of
    an earlier version of a machine judge, the first time."""
    rows = list(_rows(campaign))
    origins, used, topics = origins_of(campaign), _used(campaign), campaign.topics.count()
    return [
        PredictedFacts(row, origins.get(row.upload_id), used.get(row.name, []), topics)
        for row in rows
    ]


def predicted_facts(row: Prediction) -> PredictedFacts:
    """One, with what its rows say."""
    campaign = row.campaign
    used, topics = _used(campaign).get(row.name, []), campaign.topics.count()
    origin = origins_of(campaign).get(row.upload_id)
    return PredictedFacts(row, origin, used, topics, _spread(row.file))


def _rows(campaign: Campaign) -> "QuerySet[Prediction]":
    rows = Prediction.objects.filter(campaign=campaign)
    return rows.select_related("upload__created_by").defer("upload__errors", "upload__warnings")


def _used(campaign: Campaign) -> dict[str, list[int]]:
    """Numbers of rounds by the names of what they learn from, or reckon costs with."""
    rows = Round.objects.filter(campaign=campaign).order_by("number")
    named = ("number", "predictions__name", "cost_table__name", "more_predictions")
    found: dict[str, list[int]] = {}
    for number, one, costs, more in rows.values_list(*named):
        for name in dict.fromkeys([one, costs, *more]):
            if name:
                found.setdefault(name, []).append(number)
    return found


@lru_cache(maxsize=64)
def _spread(name: str) -> GradeSpread | None:
    """A file never changes: its name is the digest of its content."""
    with (Path(settings.MEDIA_ROOT) / name).open("rb") as file:
        found = load_predictions(file)
    values = found.values
    if not len(values):
        return None
    if found.form == "probabilities":
        values = (values / values.sum(axis=1, keepdims=True)) @ np.arange(values.shape[1])
    counts: list[int] = []
    if found.form != "costs":
        near = np.rint(values).astype(np.int64)
        counts = np.bincount(near, minlength=found.max_grade + 1).tolist()
    low, mean, high = (float(each) for each in (values.min(), values.mean(), values.max()))
    return GradeSpread(low, mean, high, counts)

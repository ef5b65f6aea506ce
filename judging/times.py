"""How long people took over pairs, by both clocks: what the work on some of them has taken."""

from datetime import datetime
from typing import NamedTuple

import numpy as np
from django.db.models import Case, F, FloatField, Q, When
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from judging.accounts import QRELS
from judging.labels import EpochSeconds, number_columns
from judging.manners import PAUSE, UNTOLD, by_both_clocks, in_all
from judging.models import Campaign, Judgment


class WorkTime(NamedTuple):
    """Of ``judgments`` by people ``timed`` have a known time, and took ``seconds`` together."""

    judgments: int
    timed: int
    seconds: float


def work_time(campaign: Campaign, pairs: NDArray[np.int64], *, since: datetime) -> WorkTime:
    """What the judgments of pairs (row ids) have taken that count and were given since then.

    A judgment took what all answers of its assessor to the pair took, as `manners` tells it, and no
    more than a `PAUSE`: whoever takes longer was away. Judgments that do not count, as excluded
    ones, and answers to gold took time that is no part of it; grades that were known before took
    nobody any. No grade has a part in it. One statement.
    """
    rows = Judgment.objects.filter(assignment__campaign=campaign)
    told = rows.annotate(
        at=EpochSeconds("created"),
        took=Coalesce("seconds", UNTOLD),
        person=_flag(~Q(assessor__username=QRELS)),
        counts=_flag(Q(revision=F("assignment__revision"))),
        before=_flag(Q(created__lt=since)),
    )
    names = "pk", "assignment__pair_id", "assessor_id", "at", "took"
    columns = number_columns(told, *names, "person", "counts", "before")
    pk, pair, who, at, took, *flags = columns
    person, counts, before = (each > 0 for each in flags)
    seconds = in_all(who, pair, by_both_clocks(who, pk, at, took, person=person))
    key = pair.astype(np.int64) << 32 | who.astype(np.int64)
    new = ~np.isin(key, key[before])
    own = person & counts & new & np.isin(pair.astype(np.int64), pairs)
    known = seconds[own & (seconds != UNTOLD)]
    return WorkTime(
        int(np.count_nonzero(own)), len(known), float(np.sort(np.minimum(known, PAUSE)).sum())
    )


def _flag(condition: Q) -> Case:
    return Case(When(condition, then=1.0), default=0.0, output_field=FloatField())

"""Files of a report where some of what was judged are preferences between two documents."""

import csv
import io

import pytest

from estimation import selectors
from estimation.models import Draw, Round
from estimation.services.report_files import judgments as judgments_file
from estimation.services.report_files import qrels
from estimation.services.report_files.kinds import NotForThisRound
from judging.models import Judgment, Pair

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def test_the_qrels_leave_preferences_out_and_the_judgments_name_both_documents(
    judged: Round,
) -> None:
    shown = selectors.latest_estimates(judged)
    assert shown is not None
    before = qrels.make(judged, shown).splitlines()
    drawn = Draw.objects.filter(round=judged, batch_number__lte=shown.batches)
    pair = Pair.objects.filter(pk__in=drawn.values("pair")).order_by("pk")[0]
    Pair.objects.filter(pk=pair.pk).update(other="zz-the-other")

    after = qrels.make(judged, shown).splitlines()
    rows = list(csv.DictReader(io.StringIO(judgments_file.make(judged, shown))))

    gone = set(before) - set(after)
    assert len(gone) == len(before) - len(after) == 1
    assert gone.pop().split()[:3] == [pair.topic.topic_id, "0", pair.docno]
    named = [row for row in rows if row["other"]]
    assert {(row["docno"], row["other"]) for row in named} == {(pair.docno, "zz-the-other")}
    assert len(named) == Judgment.objects.filter(assignment__pair=pair).count()


def test_there_are_no_qrels_of_preferences_alone(judged: Round) -> None:
    shown = selectors.latest_estimates(judged)
    assert shown is not None
    Pair.objects.update(other="zz-the-other")
    with pytest.raises(NotForThisRound, match="a preference is no grade"):
        qrels.make(judged, shown)

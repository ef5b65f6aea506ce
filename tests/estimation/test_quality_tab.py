"""What the quality tab says of labels: the same as one by one, and nothing of nobody."""

from collections import defaultdict
from itertools import permutations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import report_data
from estimation.models import EstimateSet, Round
from estimation.selectors import draws_behind
from judging import selectors as judging
from judging.models import Assignment
from judging.services import judgments
from tests.estimation.test_corrections import correct, judgment_of_batch
from tests.support import evaluation
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def disagreeing(judged: Round) -> EstimateSet:
    correct(judgment_of_batch(judged, 1), 0)
    doubled = Assignment.objects.filter(pair__judged=2, revision=1).order_by("pk")
    for assignment in doubled[:3]:
        saying = judgments.Saying(grade=3, key=f"higher-{assignment.pk}")
        judgments.correct(assignment=assignment, by=assignment.assessor, saying=saying, revision=1)
    shown = judged.estimate_sets.last()
    assert shown is not None
    return shown


def test_labels_are_counted_and_compared_as_one_by_one(disagreeing: EstimateSet) -> None:
    found = report_data.label_facts(disagreeing.round, disagreeing)
    said = [
        each for each in judging.labels(draws_behind(disagreeing).values("pair")) if each.assessor
    ]
    assert sum(found.grades) == len(said) == sum(found.assessors.values())
    assert found.grades == [
        sum(each.grade == grade for each in said) for grade in range(len(found.scale))
    ]
    of_pairs = defaultdict(list)
    for each in said:
        of_pairs[each.pair].append(each)
    both = [two for given in of_pairs.values() for two in permutations(given, 2)]
    apart = [abs(one.grade - other.grade) for one, other in both]
    assert any(apart)
    assert found.agreement is not None
    assert found.agreement.pairs == sum(len(given) > 1 for given in of_pairs.values())
    assert found.agreement.same == pytest.approx(apart.count(0) / len(apart))
    assert found.agreement.mean_distance == pytest.approx(sum(apart) / len(apart))
    for person in found.people:
        own = [one.grade - other.grade for one, other in both if one.assessor == person.name]
        given = [each.grade for each in said if each.assessor == person.name]
        assert person.mean == pytest.approx(sum(given) / len(given))
        assert person.shared == len(own)
        assert person.above == pytest.approx(sum(own) / len(own))
        assert person.same == pytest.approx(own.count(0) / len(own))


def test_who_shares_no_pair_with_anybody_is_not_said_to_agree(judged: Round) -> None:
    shown = judged.estimate_sets.last()
    assert shown is not None
    Assignment.objects.filter(assessor__username="ben").update(revision=0, state="skipped")
    found = report_data.label_facts(judged, shown)
    (anna,) = found.people
    assert (anna.shared, anna.same, anna.above) == (0, None, None)
    assert found.agreement is None


@pytest.mark.slow
def test_the_number_of_statements_does_not_grow_with_the_labels(
    judged: Round, organizer: Client
) -> None:
    there = address("live-labels", judged.campaign, 1)
    organizer.get(there)
    with CaptureQueriesContext(connection) as few:
        said = text(organizer.get(there))
    assert "By assessor" in said
    evaluation.judge(judged.campaign, 1000)
    with CaptureQueriesContext(connection) as many:
        organizer.get(there)
    assert len(many) <= len(few)

"""A campaign with one topic, one run and one label a pair: pages and report say *1 run*."""

import re

import pytest

from estimation.models import Round
from tests.support import evaluation, factories
from tests.support.material import small_material
from tests.support.pages import address, as_role, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

MANY = "(?:new |pooled )?(?:labels|runs|topics|documents|pairs|draws|batches|people|judgments)"
ONE_OF_MANY = re.compile(rf"\b1 (?:{MANY})\b|\b1 run .{{0,30}} were\b")


def test_what_there_is_one_of_is_told_in_the_singular() -> None:
    material = small_material(topics=1, documents=1, runs=1, depth=1)
    made = evaluation.with_material(material=material, slug="one")
    row = evaluation.drawn(made, measure="P@1", budget=1, batch_size=1, method="poisson")
    evaluation.judge(made, 1, truth=material.truth)
    factories.run_due_jobs()
    (report,) = evaluation.made_reports(row, "report.html")
    organizer = as_role("organizer", made)
    pair = made.pairs.get()
    draft = evaluation.drafted(made, measure="P@1", budget=1, batch_size=1, method="poisson")
    factories.run_due_jobs()
    (anna,) = made.memberships.filter(user__username="anna")
    places = {
        "person": address("person", made, anna.user_id),
        "rounds": address("round-list", made),
        "topics of the ranking": address("live-topics", made, row.number),
        "history": address("live-history", made, row.number),
        "batches": address("live-batches", made, row.number),
        "people": address("people", made),
        "report": address("report-view", made, row.number, report.pk),
        "round": address("round-detail", made, row.number),
        "ranking": address("live", made, row.number),
        "pair": address("pair-detail", made, pair.pk),
        "topic": address("topic-detail", made, pair.topic_id),
        "topics": address("topic-list", made),
        "documents": address("document-list", made),
    }
    answers = {name: organizer.get(place) for name, place in places.items()}
    pages = {name: text(answer) for name, answer in answers.items()}
    drawn = {name: answer.content.decode() for name, answer in answers.items()}
    assert {name: told for name, page in drawn.items() if (told := ONE_OF_MANY.findall(page))} == {}
    assert {name: told for name, page in pages.items() if (told := ONE_OF_MANY.findall(page))} == {}
    planned = organizer.get(address("round-detail", made, draft.number)).content.decode()
    review = planned.partition('<section id="preview"')[2]
    assert "of 1 pooled pair" in review
    assert ONE_OF_MANY.findall(review) == []
    assert "1 run over 1 topic was evaluated" in pages["report"]
    assert "1 of 1 label;" in pages["pair"]
    assert "of 1 label." in pages["topic"]


def test_thousands_are_more_than_one() -> None:
    made = evaluation.with_material(material=small_material(topics=1), slug="many")
    draft = evaluation.drafted(made, measure="P@1", budget=1, batch_size=1, method="poisson")
    factories.run_due_jobs()
    draft.refresh_from_db()
    draft.preview |= {"expected_labels": 1234.4, "expected_pairs": 1233.6}
    draft.save()
    page = as_role("organizer", made).get(address("round-detail", made, draft.number))
    assert "judgments of 1,234 pairs" in text(page)


def test_one_run_that_is_left_is_one_run() -> None:
    material = small_material(topics=1, documents=2, runs=2, depth=1)
    made = evaluation.with_material(material=material, slug="two")
    evaluation.drawn(made, measure="P@1", budget=2, batch_size=2, method="poisson")
    evaluation.judge(made, 1000, truth=material.truth)
    factories.run_due_jobs()
    page = as_role("organizer", made).get(address("run-withdraw", made, made.runs.all()[0].pk))
    assert "has 1 run instead of 2." in text(page)


@pytest.mark.parametrize(
    ("chosen", "one", "two"),
    [
        ({"method": "poisson"}, "1 pair", "2 pairs"),
        ({"method": "iid"}, "1 draw", "2 draws"),
        ({"costs": "length"}, "1 document of average length", "2 documents of average length"),
        ({"costs": "uploaded"}, "1 unit of cost", "2 units of cost"),
    ],
)
def test_budgets_are_told_in_their_unit(chosen: dict[str, str], one: str, two: str) -> None:
    row = Round(**chosen)
    assert (row.in_units(1), row.in_units(2)) == (one, two)

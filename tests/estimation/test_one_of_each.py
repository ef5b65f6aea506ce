"""A campaign with one topic, one run and one label a pair: pages and report say *1 run*."""

import re

import pytest

from tests.support import evaluation, factories
from tests.support.material import small_material
from tests.support.pages import address, as_role, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

ONE_OF_MANY = re.compile(r"\b1 (?:labels|runs|topics|documents)\b|\b1 run .{0,30} were\b")


def test_what_there_is_one_of_is_told_in_the_singular() -> None:
    material = small_material(topics=1, documents=1, runs=1, depth=1)
    made = evaluation.with_material(material=material, slug="one")
    row = evaluation.drawn(made, measure="P@1", budget=1, batch_size=1, method="poisson")
    evaluation.judge(made, 1, truth=material.truth)
    factories.run_due_jobs()
    (report,) = evaluation.made_reports(row, "report.html")
    organizer = as_role("organizer", made)
    pair = made.pairs.get()
    places = {
        "report": address("report-view", made, row.number, report.pk),
        "round": address("round-detail", made, row.number),
        "ranking": address("live", made, row.number),
        "pair": address("pair-detail", made, pair.pk),
        "topic": address("topic-detail", made, pair.topic_id),
        "topics": address("topic-list", made),
        "documents": address("document-list", made),
    }
    pages = {name: text(organizer.get(place)) for name, place in places.items()}
    assert {name: told for name, page in pages.items() if (told := ONE_OF_MANY.findall(page))} == {}
    assert "1 run over 1 topic was evaluated" in pages["report"]
    assert "1 of 1 label;" in pages["pair"]
    assert "of 1 label." in pages["topic"]

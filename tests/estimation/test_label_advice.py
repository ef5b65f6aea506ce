"""How many labels per pair: computed by the worker, stored with the matrices, said on the page."""

from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings
from django.test import Client

from estimation import selectors
from estimation.core.archives import read_archive, write_archive
from estimation.core.measures.table import parse_measure
from estimation.core.planning import label_advice as core
from estimation.core.planning.label_advice import compare_labels
from estimation.core.sampling.random_numbers import extra_labels
from estimation.figures import label_figure
from estimation.models import EstimateSet, Round
from estimation.services import estimates, files
from estimation.services import label_advice as service
from estimation.stored import MATRICES_FORMAT
from judging.models import Campaign
from tests.core.length import bounded
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]
QUESTION = "How many labels per pair?"


def latest(row: Round) -> EstimateSet:
    found = selectors.latest_estimates(row)
    assert found is not None
    return found


def noisy() -> dict[tuple[str, str], int]:
    """The truth, but assessors find something relevant in every third other document too."""
    truth = evaluation.SMALL.truth
    return {
        key: grade or (1 if at % 3 == 0 else 0) for at, (key, grade) in enumerate(truth.items())
    }


def complete(campaign: Campaign, **values: object) -> Round:
    row = evaluation.drawn(campaign, **values)
    evaluation.judge(campaign, 1000, truth=noisy())
    return row


@pytest.mark.parametrize("method", ["poisson", "priority", "iid"])
def test_what_is_stored_is_what_the_core_compares(campaign: Campaign, method: str) -> None:
    row = complete(campaign, method=method, eps=0.1 if method == "iid" else 0.0)
    collection = estimates.gather(row).collection
    sample = collection.drawn.sample
    for name in ("DCG@10", "P@10"):
        (found,) = compare_labels(
            collection.pool,
            collection.drawn,
            labels=collection.labels,
            wanted=extra_labels(collection.pool, seed="s", pairs=sample.pair, labels=1, share=0.5),
            measures=[parse_measure(name)],
            max_grade=campaign.max_grade,
        )
        stored = selectors.label_comparison(latest(row), name)
        assert stored is not None
        assert stored["choices"] == [asdict(choice) for choice in found.choices]
        assert stored["work"] == latest(row).label_count
        assert 0 < stored["repeated_pairs"] == found.repeated_pairs < latest(row).pair_count


def test_the_labels_tab_recommends_a_number(campaign: Campaign, organizer: Client) -> None:
    row = complete(campaign)
    stored = selectors.label_comparison(latest(row), "DCG@10")
    assert stored is not None
    figure = label_figure(stored)
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert QUESTION in said
    assert " ".join(figure.sentence.split()) in said
    assert "1 label per pair gives the narrowest intervals for the same work: ± " in said
    for line in figure.lines:
        best = " narrowest" if line.best else ""
        assert f"{line.labels}{best}{line.pairs}± {line.half_width}" in said, "cells of one line"
    assert f"for the {stored['work']} labels there are" in said
    assert "Let a share of the pairs have one label more all the same" in said
    other = text(organizer.get(address("live-labels", campaign, 1), {"measure": "P@10"}))
    assert figure.sentence not in other
    assert "half widths of the middle run by P@10" in other


def test_the_number_in_use_is_among_those_compared(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, labels=4, extra_share=0.0)
    factories.assessors(campaign, "carl", "dora")
    evaluation.judge(campaign, 1000, truth=noisy())
    stored = selectors.label_comparison(latest(row), "DCG@10")
    assert stored is not None
    assert [choice["labels"] for choice in stored["choices"]] == [1, 2, 3, 4]
    assert stored["repeated_pairs"] == latest(row).pair_count


def test_without_second_labels_the_tab_says_how_to_get_them(
    campaign: Campaign, organizer: Client
) -> None:
    row = complete(campaign, extra_share=0.0)
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert "This round asks for one label per pair" in said
    assert "set “Share with one label more” above 0" in said
    assert "narrowest" not in said
    assert "by another round" not in said

    complete(campaign, labels=2, extra_share=0.0)
    assert latest(row).noise_measured
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert "The second labels above were asked for by another round" in said
    assert "nobody knows" not in said


def test_second_labels_that_are_still_to_come_are_waited_for(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign, extra_share=0.01)
    evaluation.judge(campaign, 1000)
    stored = selectors.label_comparison(latest(row), "DCG@10")
    assert stored is not None
    assert stored["repeated_pairs"] == 0
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert "As soon as one has, the numbers appear here" in said


@pytest.mark.parametrize(
    "values",
    [
        {"measure": "AP"},
        {"method": "active", "measure": "AP"},
        {"method": "per-query"},
        {"method": "adaptive"},
    ],
)
def test_rounds_that_labels_are_not_compared_for_say_nothing(
    campaign: Campaign, organizer: Client, values: dict[str, object]
) -> None:
    row = complete(campaign, reported=[], **values)
    assert selectors.label_comparison(latest(row), row.measure) is None
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert "Agreement" in said
    assert QUESTION not in said


@pytest.mark.on_both
def test_estimates_from_before_the_comparison_are_still_shown(
    campaign: Campaign, organizer: Client
) -> None:
    shown = latest(complete(campaign))
    path = Path(settings.MEDIA_ROOT) / shown.matrices_file
    fields = ("covariance", "by_topic", "margin", "adjusted_p", "verdicts")
    facts, arrays = read_archive(
        path, MATRICES_FORMAT, [f"{f}_{i}" for f in fields for i in (0, 1)]
    )
    del facts["labels"]
    older = files.keep_written(
        "matrices", lambda file: write_archive(file, MATRICES_FORMAT, facts, arrays)
    )
    EstimateSet.objects.filter(pk=shown.pk).update(matrices_file=older)
    response = organizer.get(address("live-labels", campaign, 1))
    assert response.status_code == 200
    assert QUESTION not in text(response)


def choice(labels: int, half_width: float | None) -> dict[str, object]:
    return {"labels": labels, "pairs": 60.0 / labels, "half_width": half_width}


def test_the_narrowest_is_recommended_and_unknown_ones_are_left_out() -> None:
    figure = label_figure(
        {"work": 60, "repeated_pairs": 20,
         "choices": [choice(1, 0.0412), choice(2, 0.0333), choice(3, None)]}
    )  # fmt: skip
    assert figure.best == 2
    assert figure.sentence == (
        "With judgments as consistent as these, 2 labels per pair give the narrowest intervals "
        "for the same work: ±\N{NO-BREAK SPACE}0.041 with 1, ±\N{NO-BREAK SPACE}0.033 with 2."
    )
    assert [line.half_width for line in figure.lines] == ["0.041", "0.033", "–"]
    assert [line.pairs for line in figure.lines] == ["60", "30", "20"]


def test_labels_that_do_not_tell_recommend_nothing(campaign: Campaign, organizer: Client) -> None:
    figure = label_figure({"work": 4, "repeated_pairs": 1, "choices": [choice(1, None)]})
    assert (figure.sentence, figure.best) == ("", 0)
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 1000, truth=dict.fromkeys(evaluation.SMALL.truth, 0))
    assert selectors.label_comparison(latest(row), "DCG@10") is not None
    said = text(organizer.get(address("live-labels", campaign, 1)))
    assert "too few, or too often not relevant" in said
    assert "narrowest" not in said


METHODS = [
    ("poisson", "DCG@10"),
    ("iid", "P@5"),
    ("query", "ERR@5"),
    ("query", "AP"),
    ("active", "AP"),
    ("adaptive", "P@5"),
]


@pytest.mark.parametrize(
    ("method", "measure", "labels"),
    [(*each, 2) for each in METHODS] + [(*each, 1) for each in METHODS[:: bounded(4, 1)]],
)
def test_disagreement_counts_where_pairs_have_two_labels(
    campaign: Campaign, method: str, measure: str, labels: int
) -> None:
    asked = {"method": method, "measure": measure, "labels": labels, "batch_size": 60}
    row = complete(campaign, **asked, reported=[], extra_share=0.0)
    assert latest(row).noise_measured == (labels == 2)


def test_what_does_not_depend_on_labels_is_worked_out_once(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = complete(campaign)
    collection = estimates.gather(row).collection
    collection.pool.kept.clear()
    hashed, scaled = (counted(monkeypatch, *each) for each in PARTS)

    first = service.compared(row, collection)
    assert (len(hashed), len(scaled)) == (1, 3)  # 1, 2 and 3 labels, of both measures
    assert len(first) == 2
    assert service.compared(row, collection) == first
    assert (len(hashed), len(scaled)) == (1, 6)

    row.seed = "another"
    service.compared(row, collection)
    assert len(hashed) == 2


PARTS = (service, "extra_labels"), (core, "_scaled")


def counted(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[str]:
    """One item for each call."""
    calls: list[str] = []
    work = getattr(module, name)

    def noted(*args: object, **options: object) -> object:
        calls.append(name)
        return work(*args, **options)

    monkeypatch.setattr(module, name, noted)
    return calls

"""``manage.py score`` with the judged collection of an adaptive round."""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError

from estimation.core.data.ranked_lists import RankedLists
from estimation.core.sampling import goals
from estimation.management.purposes import purpose_of
from tests.core.test_core_adaptive_collection import MEASURES, Case
from tests.core.test_core_later_runs import LATE, RUNS, pool_of
from tests.estimation.test_score_command import score
from tests.formats.collection_files import cell, repacked, written


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(budget=80)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, case: Case) -> Path:
    made = tmp_path_factory.mktemp("adaptive")
    (made / "collection.zip").write_bytes(written(case.collected()))
    for tag, lists in (RUNS | LATE).items():
        (made / f"{tag}.run").write_text(lines_of(tag, lists))
    return made


def lines_of(tag: str, lists: RankedLists) -> str:
    rows = []
    for topic, start, stop in zip(lists.topics, lists.indptr, lists.indptr[1:], strict=False):
        docnos = lists.docnos[start:stop].tolist()
        rows += [f"{topic} Q0 {each.decode()} {n} {99 - n} {tag}" for n, each in enumerate(docnos)]
    return "\n".join(rows) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("tags", [("run0", "run1", "run2"), ("another",), ("run2", "another")])
def test_the_numbers_are_those_of_the_round(
    case: Case, folder: Path, tags: tuple[str, ...]
) -> None:
    then = case.asked(joined=pool_of(RUNS | LATE))
    said = score(
        folder / "collection.zip", *(folder / f"{tag}.run" for tag in tags), "--format", "json"
    )
    rows = json.loads(said.out)
    assert len(rows) == len(tags) * len(MEASURES)
    results = {str(result.measure): result for result in then.results}
    for row in rows:
        result = results[row["measure"]]
        at = result.runs.index(row["tag"])
        known = result.estimate.unknown[at] == 0
        value = float(result.estimate.value[at])
        assert row["value"] == (pytest.approx(value, rel=1e-12) if known else None)
        for end in ("low", "high"):
            wanted = float(getattr(result.estimate, end)[at])
            assert row[end] == pytest.approx(wanted, rel=1e-9)
    assert any(row["value"] is not None for row in rows)


def test_what_it_was_drawn_for_is_the_goal_of_the_plan() -> None:
    collection = Case(goal=goals.pair("run0", "run1")).collected()
    found = collection.evaluate(RUNS | LATE, measures=MEASURES)
    purpose = purpose_of(collection, found.results[0])
    assert (purpose.goal, purpose.run, purpose.baseline) == ("pair", "run0", "run1")


def test_what_it_does_not_estimate_is_refused(folder: Path) -> None:
    with pytest.raises(CommandError, match="ERR@5 is not estimated from adaptive rounds"):
        score(folder / "collection.zip", folder / "run0.run", "--measure", "ERR@5")
    with pytest.raises(CommandError, match="must be one of student for this collection"):
        score(folder / "collection.zip", folder / "run0.run", "--interval", "chernoff")


def test_a_chance_that_the_steps_do_not_give_ends_the_command(folder: Path, tmp_path: Path) -> None:
    good = (folder / "collection.zip").read_bytes()
    (tmp_path / "bad.zip").write_bytes(repacked(good, "draws.tsv.gz", cell(2, 3, "0.25")))
    with pytest.raises(CommandError, match=r"draws.tsv.gz:2: chance: expected .* found 0.25"):
        score(tmp_path / "bad.zip", folder / "run0.run")

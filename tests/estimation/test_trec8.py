"""TREC-8 as real input: accepted whole, and a census gives trec_eval's numbers.

With a third of the runs, at length with all; under PostgreSQL with some. What is read from files
and computed is the same there; what is not is how some ten thousand rows are written and found
again.
"""

import gzip
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from django.core.management import call_command

from estimation import selectors
from estimation.models import Draw, Estimate, Round, Run, StoredPool
from estimation.services import estimates, rounds
from estimation.services.importing import finish
from judging.models import Campaign, Decision, Job, Judgment, Upload, User
from judging.services import campaigns, decisions, known_grades
from tests.conftest import ON_POSTGRES
from tests.core.length import LONG

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

Ranking = list[tuple[str, float, int]]
NATURAL = {"mds08a3": 6.96, "nttd8ale": 9.01, "weaver2": 7.48}
"""DCG of some runs, as others have published it."""
WHOLE = LONG and not ON_POSTGRES
OTHERS = 9 if ON_POSTGRES else 40
"""How many more there are where not all are."""


def ranked_runs(folder: Path) -> Iterator[tuple[str, dict[str, Ranking], list[str]]]:
    """(tag, topic -> [(docno, score, printed rank)] in file order, lines), read independently."""
    for path in sorted((folder / "runs").glob("*.run.gz")):
        with gzip.open(path, "rt") as file:
            lines = file.read().splitlines()
        topics: dict[str, Ranking] = defaultdict(list)
        for line in lines:
            topic, _, docno, rank, score, _tag = line.split()
            topics[topic].append((docno, float(score), int(rank)))
        yield path.name.removesuffix(".run.gz"), topics, lines


def contradicts(ranking: Ranking) -> bool:
    """Whether a line with a better printed rank has a lower score than one with a worse rank."""
    by_rank = sorted(ranking, key=lambda line: line[2])
    return any(a[2] < b[2] and a[1] < b[1] for a, b in itertools.pairwise(by_rank))


@pytest.fixture(scope="module")
def truth(data_dir: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (data_dir / "trec8" / "qrels.txt").read_text().splitlines():
        topic, _, docno, grade = line.split()
        grades[topic][docno] = int(grade)
    return grades


@pytest.fixture
def folder(data_dir: Path, tmp_path: Path) -> Path:
    """All of it, or a part."""
    whole = data_dir / "trec8"
    if WHOLE:
        return whole
    for name in ("topics.tsv", "qrels.txt"):
        (tmp_path / name).symlink_to(whole / name)
    named = [whole / "runs" / f"{tag}.run.gz" for tag in NATURAL]
    every = sorted(set((whole / "runs").glob("*.run.gz")) - set(named))
    (tmp_path / "runs").mkdir()
    for run in [*named, *every[:: len(every) // OTHERS]]:
        (tmp_path / "runs" / run.name).symlink_to(run)
    return tmp_path


def census(folder: Path) -> Round:
    User.objects.create(username="olga", is_organizer=True)
    call_command("import_campaign", folder, organizer="olga", slug="trec8")
    campaign = Campaign.objects.get(slug="trec8")
    olga = campaign.created_by
    plan = rounds.RoundPlan(
        measure="P@10",
        reported=["DCG(dcg='ln')@100", "DCG@100", "RBP(p=0.8)"],
        budget=10_000_000,
        batch_size=10_000_000,
        method="poisson",
    )
    row = rounds.draft(campaign=campaign, by=olga, plan=plan)
    rounds.request_draw(row=row, by=olga)
    finish(Job.objects.get(kind="draw", target=row.pk))
    campaigns.open_for_judging(campaign=campaign, by=olga)
    known_grades.answer(campaign=campaign, by=olga)
    decisions.decide_rest(campaign=campaign, by=olga, grade=0, reason="never pooled at TREC")
    finish(Job.objects.get(kind="recompute", target=row.pk))
    row.refresh_from_db()
    return row


@pytest.mark.timeout(900)
def test_a_census_judged_from_the_qrels_equals_trec_eval(
    folder: Path, truth: dict[str, dict[str, int]]
) -> None:
    row = census(folder)
    runs = list(ranked_runs(folder))

    check_what_was_imported(row.campaign, runs)
    check_that_it_is_a_census(row)
    check_values(row, runs, truth)
    check_the_recompute(row)


def check_what_was_imported(
    campaign: Campaign, runs: list[tuple[str, dict[str, Ranking], list[str]]]
) -> None:
    assert set(campaign.uploads.values_list("state", flat=True)) == {Upload.State.ACCEPTED}
    lines = sum(len(lines) for _, _, lines in runs)
    assert Run.objects.count() == len(runs) > len(NATURAL)
    assert sum(run.line_count for run in Run.objects.all()) == lines > 50_000
    warned = set(campaign.uploads.filter(warning_count__gt=0).values_list("name", flat=True))
    expected = {
        f"{tag}.run.gz" for tag, topics, _ in runs if any(map(contradicts, topics.values()))
    }
    assert warned == expected
    if WHOLE:
        assert (len(runs), lines, len(expected)) == (129, 640_467, 8)


def check_that_it_is_a_census(row: Round) -> None:
    assert row.state == Round.State.COMPLETE
    assert Draw.objects.count() == StoredPool.objects.get().pair_count
    assert set(Draw.objects.values_list("probability", flat=True)) == {1.0}
    assert Judgment.objects.count() + Decision.objects.count() == Draw.objects.count()


def check_values(
    row: Round,
    runs: list[tuple[str, dict[str, Ranking], list[str]]],
    truth: dict[str, dict[str, int]],
) -> None:
    found: dict[tuple[str, str], Estimate] = {
        (e.measure, e.run.tag): e for e in Estimate.objects.select_related("run")
    }
    evaluator = pytrec_eval.RelevanceEvaluator(truth, {"P_10"})
    for tag, topics, _ in runs:
        scores = {t: {docno: score for docno, score, _ in lines} for t, lines in topics.items()}
        per_topic = evaluator.evaluate(scores)
        p10 = sum(per_topic[t]["P_10"] for t in truth if t in per_topic) / 50
        assert found["P@10", tag].value == pytest.approx(p10, abs=1e-9)
        gains = [gains_in_order(topics.get(t, []), truth[t]) for t in truth]
        dcg = sum(sum(g / math.log2(1 + r) for r, g in enumerate(gs, 1)) for gs in gains) / 50
        assert found["DCG@100", tag].value == pytest.approx(dcg, abs=1e-9)
        rbp = sum(sum(0.2 * 0.8 ** (r - 1) * g for r, g in enumerate(gs, 1)) for gs in gains) / 50
        assert found["RBP(p=0.8)", tag].value == pytest.approx(rbp, abs=1e-9)
        assert found["P@10", tag].se == 0
        assert found["P@10", tag].low == found["P@10", tag].high
    natural = {tag: found["DCG(dcg='ln')@100", tag].value for tag in NATURAL}
    assert {tag: round(value, 2) for tag, value in natural.items()} == NATURAL


def gains_in_order(lines: Ranking, grades: dict[str, int]) -> list[int]:
    """Grades of the top 100: score in single precision descending, ties by docno descending."""
    ordered = sorted(lines, key=lambda line: line[0], reverse=True)
    ordered.sort(key=lambda line: np.float32(line[1]), reverse=True)
    return [grades.get(docno, 0) for docno, _, _ in ordered[:100]]


def check_the_recompute(row: Round) -> None:
    outcome = estimates.from_scratch(row)
    stored = selectors.latest_estimates(row)
    assert outcome is not None
    assert stored is not None
    assert outcome.digest == stored.digest
    estimates.recompute(_again(row))
    assert row.estimate_sets.count() == 1


def _again(row: Round) -> "estimates.jobs.Running":
    job = estimates.jobs.request("recompute", row.pk)
    running = estimates.jobs.claim(job.pk)
    assert running is not None
    return running

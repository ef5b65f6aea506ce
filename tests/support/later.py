"""Runs that are accepted after a round was drawn, and what is then said of them."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from estimation import selectors
from estimation.models import Estimate, EstimateSet, Report, Round
from estimation.selectors import RankedRun, RankingTable
from estimation.services import collections, estimates, files
from judging.models import Campaign, Upload
from judging.services import jobs
from tests.support import evaluation, factories

NUMBERS = ("value", "se", "df", "low", "high", "support", "sample_size")


def lines_of(name: str, tag: str) -> bytes:
    """One of the material's runs under another tag."""
    given = evaluation.SMALL.runs[f"{name}.run"]
    return given.replace(f" {name}\n".encode(), f" {tag}\n".encode())


def with_news(tag: str, *, known: int = 4) -> bytes:
    """A run whose every list has so many documents of the pool, then as many that it lacks."""
    pooled: dict[bytes, list[bytes]] = {}
    for line in evaluation.SMALL.runs["run1.run"].splitlines():
        topic, _, docno, *_rest = line.split()
        pooled.setdefault(topic, []).append(docno)
    lines = []
    for topic, docnos in pooled.items():
        ranked = [*docnos[:known], *(b"new%d" % n for n in range(known))]
        lines += [
            b"%s Q0 %s %d %d %s\n" % (topic, docno, rank, 100 - rank, tag.encode())
            for rank, docno in enumerate(ranked, 1)
        ]
    return b"".join(lines)


def join(campaign: Campaign, content: bytes, name: str = "late.run") -> None:
    upload = factories.stored_upload(campaign, content, name=name, kind="run")
    assert upload.state == Upload.State.ACCEPTED, upload.errors


def latest(row: Round) -> EstimateSet:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    return shown


class Numbers(tuple[float, ...]):
    """Equal but for rounding: with later runs sums may be added up in another order."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == pytest.approx(other, rel=1e-11, abs=1e-12)


def numbers(shown: EstimateSet) -> dict[tuple[str, str, str], Numbers]:
    rows = shown.estimates.select_related("run")
    return {
        (e.run.tag, e.measure, e.estimator): Numbers(getattr(e, n) for n in NUMBERS) for e in rows
    }


def of_run(shown: EstimateSet, tag: str, measure: str = "DCG@10") -> Estimate:
    return shown.estimates.get(run__tag=tag, measure=measure, primary=True)


def table_of(row: Round, measure: str | None = None) -> RankingTable:
    table = selectors.ranking_table(row, measure)
    assert table is not None
    return table


def ranked(row: Round, tag: str) -> RankedRun:
    return next(each for each in table_of(row).rows if each.tag == tag)


def file_of(row: Round, name: str) -> str:
    report = Report.objects.filter(estimate_set=latest(row)).get(name=name)
    return files.path_of(report.file).read_text()


def report_of(row: Round) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", file_of(row, "report.html")))


def assert_a_copy_takes_part(
    campaign: Campaign, row: Round, *, measures: Sequence[str]
) -> EstimateSet:
    """A copy of run2 that joins has its value, other runs keep their numbers; as a recompute says.

    Returns the estimates with the copy.
    """
    before = latest(row)
    join(campaign, lines_of("run2", "copy"))
    now = latest(row)
    assert (now.number, now.batches, now.left_out) == (before.number + 1, before.batches, [])
    assert (now.pair_count, now.label_count) == (before.pair_count, before.label_count)
    assert now.provenance["joined_pool"] != collections.columns_of(row)[0].digest
    kept = numbers(now)
    assert {key: kept[key] for key in numbers(before)} == numbers(before)
    for measure in measures:
        twin, copy = of_run(now, "run2", measure), of_run(now, "copy", measure)
        assert (copy.late, twin.late) == (True, False)
        assert (copy.value, copy.support) == (twin.value, 1.0)
        assert copy.sample_size == twin.sample_size
        assert copy.unknown == twin.unknown
        assert copy.unknown or {copy.rank, twin.rank} <= set(range(1, 6))
        pairs = selectors.pairwise(now, measure)
        assert pairs.verdicts[pairs.runs.index("run2"), pairs.runs.index("copy")] == 0
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    assert outcome.digest == now.digest
    jobs.request("recompute", row.pk, campaign=campaign)
    factories.run_due_jobs()
    assert latest(row) == now
    return now


def assert_half_a_run_takes_part(campaign: Campaign, row: Round) -> Estimate:
    """A run with 3 known documents to a list is a lower bound under DCG@5, a copy is none.

    Returns what is said of the first.
    """
    before = numbers(latest(row))
    join(campaign, with_news("late", known=3))
    join(campaign, lines_of("run2", "copy"), "copy.run")
    shown = latest(row)
    late = of_run(shown, "late", "DCG@5")
    gains = 1 / np.log2(np.arange(2, 7))
    assert late.support == pytest.approx(gains[:3].sum() / gains.sum(), abs=1e-12)
    assert 0 < late.value < np.inf
    assert {key: each for key, each in numbers(shown).items() if key in before} == before
    assert ranked(row, "late").open_part
    assert not ranked(row, "copy").open_part
    return late

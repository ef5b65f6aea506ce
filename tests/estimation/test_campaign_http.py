"""A whole campaign on the Cranfield collection, by HTTP alone, on both stacks.

The site's numbers must be those of the core, bit for bit, run here on the same files, seed and
labels. The crowd's labels are fixed beforehand (see Crowd), so both stacks must arrive at one and
the same result, and killing the worker in the middle must change nothing.
"""

import csv
import gzip
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists, rank_lines
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation, MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.random_numbers import extra_labels
from estimation.core.sampling.samples import Sample
from tests.conftest import MakeSite
from tests.core.length import bounded
from tests.support.client import Api
from tests.support.crowd import Crowd, Organizer, Shift, assessors, got, rows_of
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

DEPTH = 20
GRADES = ["not relevant", "minimum interest", "useful", "high degree", "complete answer"]
MEASURES = ("DCG@10", "P@5", "RBP(p=0.8)")
SEED = "cranfield"
BUDGET, SIZE = bounded((120, 24), (300, 60))
"""Pairs in all, and in a batch."""
EVERY = bounded(2, 1)
"""Which of the 40 runs of the collection take part."""
ROUND = {
    "goal": "absolute",
    "measure": MEASURES[0],
    "reported": list(MEASURES[1:]),
    "prior": "rank",
    "method": "poisson",
    "budget": BUDGET,
    "batch_size": SIZE,
    "labels": 2,
    "extra_share": 0.2,
    "seed": SEED,
}
NUMBERS = ("value", "se", "df", "low", "high")
RANKS = ("rank", "rank_low", "rank_high")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Direct:
    """The campaign without a site: the core on the files."""

    pool: Pool
    design: Design
    sample: Sample
    wanted: dict[Pair, int]
    crowd: Crowd

    def pair(self, index: int) -> Pair:
        return self.pool.topics[self.pool.topic[index]], self.pool.docno[index].decode()

    def labels(self) -> dict[Pair, list[int]]:
        """All labels of every drawn pair, ascending."""
        return {
            pair: sorted(self.crowd.label(*pair, number=n) for n in range(wanted))
            for pair, wanted in self.wanted.items()
        }

    def evaluate(self, labels: dict[Pair, list[int]]) -> Evaluation:
        rows = [
            (index, grade)
            for index in self.sample.pair.tolist()
            for grade in labels[self.pair(index)]
        ]
        return evaluate(
            self.pool,
            PairRound(self.design, self.sample),
            labels=LabelRows(*np.array(rows, dtype=np.int64).T.copy()),
            measures=[parse_measure(text) for text in MEASURES],
            max_grade=len(GRADES) - 1,
        )


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, make_site: MakeSite) -> Site:
    """One of the two makes the report of 40 runs as PDF too, which nobody reads here."""
    return make_site(request.param, env={"REPORT_PDF": "off"} if request.param == "sqlite" else {})


@pytest.fixture(scope="module")
def folder(data_dir: Path) -> Path:
    return data_dir / "cranfield"


@pytest.fixture(scope="module")
def direct(folder: Path) -> Direct:
    topics = [line.split("\t")[0] for line in (folder / "topics.tsv").read_text().splitlines()]
    runs = {path.name.removesuffix(".run.gz"): ranked(path) for path in sorted_runs(folder)}
    pool = build_pool(topics, runs, depth=DEPTH)
    goal, measure = goals.absolute(*pool.runs), parse_measure(MEASURES[0])
    design = make_design(
        pool,
        goal=goal,
        measure=measure,
        reported=[parse_measure(text) for text in MEASURES[1:]],
        prior=make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=4),
        budget=BUDGET,
        batch_size=SIZE,
    )
    sample = draw(pool, design, seed=SEED)
    wanted = extra_labels(pool, seed=SEED, pairs=sample.pair, labels=2, share=0.2)
    crowd = Crowd(truth_of(folder), max_grade=4, seed=SEED)
    known = Direct(pool, design, sample, {}, crowd)
    pairs = map(known.pair, sample.pair.tolist())
    known.wanted.update(zip(pairs, wanted.tolist(), strict=True))
    return known


def sorted_runs(folder: Path) -> list[Path]:
    return sorted((folder / "runs").glob("*.run.gz"))[::EVERY]


def ranked(path: Path) -> RankedLists:
    columns = np.array(gzip.decompress(path.read_bytes()).split(), dtype=np.bytes_).reshape(-1, 6)
    return rank_lines(columns[:, 0], columns[:, 2], columns[:, 4].astype(float))


def truth_of(folder: Path) -> dict[Pair, int]:
    lines = (line.split() for line in (folder / "qrels.txt").read_text().splitlines())
    return {(topic, docno): int(grade) for topic, _, docno, grade in lines}


@dataclass(frozen=True)
class Judged:
    """A campaign of one site whose last batch is complete."""

    organizer: Organizer
    crowd: Crowd
    preview: dict[str, Any]
    estimates: dict[str, Any]

    @property
    def api(self) -> Api:
        return self.organizer.api

    @property
    def base(self) -> str:
        return self.organizer.base


@pytest.fixture(scope="module")
def judged(site: Site, folder: Path, direct: Direct) -> Judged:
    """Five assessors judge everything; the worker is killed when they are half way."""
    key = site.add_users("olga", organizer=True)["olga"]
    organizer = Organizer(site, site.api(key), "cranfield")
    preview = prepare(organizer, folder)
    crowd = Crowd(direct.crowd.truth, max_grade=4, seed=SEED)
    people = assessors(organizer, organizer.invite("ann", "bob", "cy", "dot", "eve"), crowd)
    with Shift(people) as shift:
        shift.wait_acknowledged(sum(direct.wanted.values()) // 2)
        site.workers[0].kill()
        shift.wait_acknowledged(shift.acknowledged + 30)
        site.workers[0].start()
    assert shift.acknowledged == sum(direct.wanted.values())
    return Judged(organizer, crowd, preview, organizer.final_estimates(direct.design.batches))


def prepare(organizer: Organizer, folder: Path) -> dict[str, Any]:
    """Creates the campaign, brings the material, plans, draws and opens; returns the preview."""
    organizer.create(
        grades=[{"name": name, "meaning": f"grade {name}"} for name in GRADES], depth=DEPTH
    )
    organizer.upload({"topics.tsv": (folder / "topics.tsv").read_bytes()}, "topics")
    documents = (folder / "docs.jsonl.gz").read_bytes()
    waiting = organizer.send({"docs.jsonl.gz": documents}, "documents")
    organizer.upload({path.name: path.read_bytes() for path in sorted_runs(folder)}, "run")
    organizer.wait_accepted(waiting)
    preview = organizer.draft(**ROUND)["preview"]
    organizer.draw()
    organizer.open()
    return dict(preview)


def test_the_preview_foresees_the_draw(judged: Judged, direct: Direct) -> None:
    assert not judged.preview["error"]
    assert len(direct.sample) == pytest.approx(BUDGET, abs=4 * math.sqrt(BUDGET))
    assert [batch["pairs"] for batch in judged.organizer.batches()] == [
        int((direct.sample.batch == number).sum()) for number in range(1, direct.design.batches + 1)
    ]


def test_every_drawn_pair_has_the_labels_of_the_crowd(judged: Judged, direct: Direct) -> None:
    assert labels_of(judged) == direct.labels()


def labels_of(judged: Judged) -> dict[Pair, list[int]]:
    found: dict[Pair, list[int]] = {}
    for row in rows_of(judged.api, f"{judged.base}judgments/"):
        found.setdefault((row["topic"], row["docno"]), []).append(row["grade"])
    return {pair: sorted(grades) for pair, grades in found.items()}


def test_the_assessors_disagree(judged: Judged) -> None:
    several = [grades for grades in labels_of(judged).values() if len(set(grades)) > 1]
    assert len(several) > BUDGET / 6


def test_estimates_are_those_of_the_core_bit_for_bit(judged: Judged, direct: Direct) -> None:
    assert judged.estimates["estimate_set"]["provenance"]["pool"] == direct.pool.digest
    expected = lines(direct.evaluate(labels_of(judged)))
    assert len(expected) == 40 // EVERY * len(MEASURES)
    assert {row_key(row): row_bits(row) for row in judged.estimates["estimates"]} == expected


def test_estimates_are_those_of_labels_fixed_beforehand(judged: Judged, direct: Direct) -> None:
    """As this holds on both stacks, they agree with each other, kill or no kill."""
    expected = lines(direct.evaluate(direct.labels()))
    assert {row_key(row): row_bits(row) for row in judged.estimates["estimates"]} == expected


def row_key(row: dict[str, Any]) -> tuple[str, str]:
    assert row["estimator"] == "ht"
    return row["measure"], row["run"]


def row_bits(row: dict[str, Any]) -> list[str]:
    return [bits(row[name]) for name in NUMBERS] + [str(row[name]) for name in RANKS]


def bits(number: float | None) -> str:
    """Every bit of a number; the interface has null for what is infinite."""
    return "none" if number is None or not math.isfinite(number) else float(number).hex()


def lines(evaluation: Evaluation) -> dict[tuple[str, str], list[str]]:
    return {
        (str(result.measure), tag): core_bits(result, index)
        for result in evaluation.results
        for index, tag in enumerate(result.runs)
    }


def core_bits(result: MeasureResult, index: int) -> list[str]:
    numbers = [bits(float(getattr(result.estimate, name)[index])) for name in NUMBERS]
    return numbers + [str(int(getattr(result.ranking, name)[index])) for name in RANKS]


def test_one_label_changed_changes_the_bits(judged: Judged, direct: Direct) -> None:
    """The comparison can fail: one grade of one pair is visible in the numbers."""
    labels = labels_of(judged)
    pair = min(pair for pair, grades in labels.items() if grades[-1] < 4)
    labels[pair][-1] += 1
    found = {row_key(row): row_bits(row) for row in judged.estimates["estimates"]}
    assert lines(direct.evaluate(labels)) != found


@pytest.mark.parametrize("number", range(len(MEASURES)))
def test_comparisons_are_those_of_the_core(judged: Judged, direct: Direct, number: int) -> None:
    expected = direct.evaluate(direct.labels()).results[number]
    asked = f"{judged.base}ranking/?pairs=1&measure={MEASURES[number]}"
    found = got(judged.api.get(asked))
    in_order = [int(index) for index in expected.ranking.order]
    known = [expected.runs[i] for i in in_order if not expected.estimate.unknown[i]]
    told = [row["run"] for row in found["ranking"]]
    assert set(told[: len(known)]) == set(known)  # what is not known stands last
    assert set(told) == set(expected.runs)
    place = {tag: at for at, tag in enumerate(told)}
    for better, worse in np.argwhere(expected.ranking.verdicts == 1).tolist():
        assert place[expected.runs[better]] < place[expected.runs[worse]]
    assert tuple(found["pairs"]["runs"]) == expected.runs
    for name in ("adjusted_p", "verdicts"):
        assert_same_matrix(found["pairs"][name], getattr(expected.ranking, name))
    unknown = expected.ranking.unknown != 0
    margin = [
        [np.nan if each is None else each for each in row] for row in found["pairs"]["margin"]
    ]
    assert np.isnan(np.array(margin))[unknown].all()
    assert np.array(margin)[~unknown].tolist() == expected.ranking.margin[~unknown].tolist()
    assert_same_matrix(found["pairs"]["covariance"], expected.estimate.covariance)


def assert_same_matrix(found: list[list[float]], expected: np.ndarray) -> None:
    assert [list(map(bits, row)) for row in found] == [
        list(map(bits, row)) for row in expected.tolist()
    ]


def test_a_recompute_from_scratch_agrees(judged: Judged) -> None:
    digest = judged.estimates["estimate_set"]["digest"]
    told = judged.organizer.site.manage("recompute", judged.organizer.slug)
    assert told.strip() == f"cranfield round 1: equal {digest}"


@pytest.fixture(scope="module")
def reports(judged: Judged) -> dict[str, bytes]:
    got(judged.api.post(f"{judged.base}reports/"), 202)
    ready = judged.organizer.site.wait_until(lambda: made(judged), what="the reports")
    return {row["name"]: judged.api.get(f"{judged.base}reports/{row['id']}/").body for row in ready}


def made(judged: Judged) -> list[dict[str, Any]]:
    answer = got(judged.api.get(f"{judged.base}reports/"))
    return list(answer["reports"]) if answer["job"]["state"] == "done" else []


def test_reports_of_estimates_agree(judged: Judged, reports: dict[str, bytes]) -> None:
    expected = {row_key(row): row_bits(row) for row in judged.estimates["estimates"]}
    told = json.loads(reports["estimates.json"])
    assert told["digest"] == judged.estimates["estimate_set"]["digest"]
    assert {row_key(row): row_bits(row) for row in told["estimates"]} == expected
    table = csv.DictReader(io.StringIO(reports["estimates.csv"].decode()))
    assert {row_key(row): row_bits(as_numbers(row)) for row in table} == expected


def as_numbers(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: float(row[name]) for name in NUMBERS}


def test_reports_of_judgments_agree(
    judged: Judged, direct: Direct, reports: dict[str, bytes]
) -> None:
    probability = dict(
        zip(map(direct.pair, direct.sample.pair.tolist()), direct.sample.probability, strict=True)
    )
    found: dict[Pair, list[int]] = {}
    for row in csv.DictReader(io.StringIO(reports["judgments.csv"].decode())):
        pair = (row["topic"], row["docno"])
        found.setdefault(pair, []).append(int(row["grade"]))
        assert float(row["probability"]).hex() == float(probability[pair]).hex()
    assert {pair: sorted(grades) for pair, grades in found.items()} == direct.labels()


def test_qrels_hold_the_mean_grades(direct: Direct, reports: dict[str, bytes]) -> None:
    rows = [line.split() for line in reports["qrels.txt"].decode().splitlines()]
    assert {(topic, docno): int(grade) for topic, _, docno, grade in rows} == {
        pair: math.floor(sum(grades) / len(grades) + 0.5)
        for pair, grades in direct.labels().items()
    }


def test_the_html_report_names_every_run(direct: Direct, reports: dict[str, bytes]) -> None:
    document = reports["report.html"].decode()
    assert all(tag in document for tag in direct.pool.runs)

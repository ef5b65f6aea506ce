"""What is told of labels, recomputed by the packages that people know, to 1e-9.

    .venv/bin/python -m benchmarks.labels                    (EVALSITE_TEST_DATA)

The votes of the TREC 2011 crowd: means, majorities and Dawid and Skene's model by crowd-kit, alpha
by krippendorff. The passages of DL 2019 that two people, or eight, judged again: drawn and judged
in a campaign of a throw-away site, whose answer `label-quality/` and page *Quality* are held
against krippendorff and scikit-learn; what is weighted by the draw, which no package has, against
sums over every two judgments.
Packages are installed once into an environment of their own (`label-peers.txt`), and see rows of
judgments and chances alone. It ends with 1 where anything is off by more.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["EVALSITE_DATA"] = tempfile.mkdtemp(prefix="evalsite-benchmark-")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import django

django.setup()

import numpy as np  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db.models import F  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import setup_test_environment  # noqa: E402

from benchmarks.peers import peers_python  # noqa: E402
from benchmarks.public import FOLDER, collection_in  # noqa: E402
from estimation.core.data.labels import LabelRows, pair_labels  # noqa: E402
from estimation.core.labels.aggregates import majority  # noqa: E402
from estimation.core.labels.alpha import METRICS, reliability  # noqa: E402
from estimation.core.labels.dawid_skene import dawid_skene  # noqa: E402
from estimation.core.measures.table import parse_measure  # noqa: E402
from estimation.models import Round  # noqa: E402
from estimation.services import rounds  # noqa: E402
from judging.models import Assignment, Batch, Campaign, Judgment, Pair  # noqa: E402
from judging.services import bulk, campaigns, jobs  # noqa: E402
from tests.core.rated import crowd  # noqa: E402
from tests.support import evaluation, factories, rest  # noqa: E402
from tests.support.pages import address, text  # noqa: E402

HERE = Path(__file__).resolve().parent
SAME = 1e-9
MET = 1.0  # pairs of a grade, by the model, that somebody judged
DEPTH, BATCHES = 250, 5
LATER = "9999-01-01T00:00:00+00:00"
Told = Iterator[tuple[str, float]]
"""What is compared, and by how much it is off; of several numbers the most."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.labels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=FOLDER, metavar="FOLDER")
    parser.add_argument("--peers", type=Path, metavar="PYTHON", help="that has them installed")
    parser.add_argument("--steps", type=int, default=100, help="of Dawid and Skene's model")
    given = parser.parse_args()
    collection_in(given.data, "dl2019")
    peers = given.peers or peers_python(HERE.parent / ".label-peers", "label-peers")
    setup_test_environment()
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    print(f"{'':<34} {'compared':<56} {'off by':>9}")
    worst = 0.0
    for name, told in (
        ("crowd of TREC 2011", of_crowd(given.data, peers, given.steps)),
        ("passages judged by two", of_passages(given.data, peers, "main", labels=2, budget=2000)),
        (
            "passages judged by eight",
            of_passages(given.data, peers, "agreement", labels=8, budget=120),
        ),
    ):
        for what, off in told:
            print(f"{name:<34} {what:<56} {off:>9.1e}", flush=True)
            worst = max(worst, off)
    print(f"off by {worst:.1e} at most: {'as it must be' if worst <= SAME else 'too much'}")
    return int(worst > SAME)


def asked(peers: Path, what: str, **given: Any) -> dict[str, Any]:
    """What the packages say; they run in a process of their environment, and know no evalsite."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [peers, HERE / "label_peers.py"], input=json.dumps(given | {"what": what}), text=True,
        stdout=subprocess.PIPE, check=True, env=environment, cwd=HERE.anchor,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference; infinite where only one of the two knows a number."""
    one, other = (np.array(each, dtype=np.float64).ravel() for each in (ours, theirs))
    if one.shape != other.shape or (np.isnan(one) != np.isnan(other)).any():
        return float("inf")
    return float(np.nanmax(np.abs(one - other), initial=0.0))


# ------------------------------------------------------------------------------------- the crowd


def of_crowd(data: Path, peers: Path, steps: int) -> Told:
    ratings = crowd(data)
    columns = (ratings.pair, ratings.rater, ratings.grade)
    rows = list(zip(*(each.tolist() for each in columns), strict=True))
    theirs = asked(peers, "crowd", rows=rows, steps=steps)
    labels = LabelRows(ratings.pair, ratings.grade)
    mean = pair_labels(labels, pairs=ratings.pairs, measure=parse_measure("P@10")).mean
    yield (
        f"mean label of {ratings.pairs:,} pairs, {len(rows):,} votes: crowd-kit",
        apart(mean, theirs["mean"]),
    )
    clear = np.abs(mean - 0.5) > SAME
    given = majority(ratings.counts)[clear]
    yield "majority where it is clear: crowd-kit", apart(given, np.array(theirs["majority"])[clear])
    found = reliability(ratings)
    for metric in METRICS:
        value = found.by_metric[metric].value
        yield f"alpha, {metric}: {value:.6f}, krippendorff", apart(value, theirs[metric])
    model = dawid_skene(ratings, tolerance=0.0, steps=steps)
    shares = ", ".join(f"{each:.6f}" for each in model.prior)
    yield f"Dawid–Skene, prior: {shares}, crowd-kit", apart(model.prior, theirs["prior"])
    yield (
        f"Dawid–Skene, posterior after {model.steps} steps",
        apart(model.posterior, theirs["posterior"]),
    )
    # Of whoever met no pair that is likely of a grade, either says something else by convention.
    mass = np.zeros((ratings.raters, ratings.grades))
    np.add.at(mass, ratings.rater, model.posterior[ratings.pair])
    met = mass > MET
    told = f"Dawid–Skene, confusion of people, {np.count_nonzero(met):,} rows of {met.size:,}"
    yield told, apart(model.confusion[met], np.array(theirs["confusion"])[met])


# ------------------------------------------------------------------------------------ the passages


@dataclass(frozen=True)
class Passages:
    """Who said what of which passage; ``rows`` by topic and passage."""

    rows: dict[tuple[str, str], dict[str, int]]

    @classmethod
    def of(cls, data: Path, kind: str) -> "Passages":
        rows: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        with gzip.open(data / "dl2019" / "annotators.tsv.gz", "rt") as lines:
            next(lines)
            for each, topic, docno, who, grade in (line.rstrip("\n").split("\t") for line in lines):
                if each == kind:
                    rows[topic, docno][who] = int(grade)
        return cls(dict(sorted(rows.items())))

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.rows})

    @property
    def people(self) -> list[str]:
        return sorted({who for said in self.rows.values() for who in said})


def of_passages(data: Path, peers: Path, kind: str, *, labels: int, budget: int) -> Told:
    passages = Passages.of(data, kind)
    row = drawn(campaign(passages, kind), labels, budget)
    judged(row, passages)
    jobs.run(jobs.request("recompute", row.pk, campaign=row.campaign).pk)
    factories.run_due_jobs()
    client = rest.client_of(row.campaign.created_by)
    ours = client.get(f"/api/campaigns/{row.campaign.slug}/label-quality/").json()
    theirs = asked(peers, "page", **rows_of(row))
    yield (
        f"labels {ours['labels']:,}, pairs {ours['pairs']:,}",
        apart([ours["labels"], ours["pairs"]], theirs["counts"]),
    )
    for name, words in (("plain", "as judged, krippendorff"), ("drawn", "by the draw, one by one")):
        for metric in METRICS:
            value = ours[name][metric][0]
            told = f"alpha, {metric}: {value:.6f} {words}"
            yield told, apart(value, theirs[name][metric])
    yield from _by(ours, theirs)
    couples = {(each["first"], each["second"]): each for each in ours["couples"]}
    for name in ("linear", "quadratic", "drawn", "counts"):
        expected = [theirs["couples"][f"{one} {other}"][name] for one, other in couples]
        found = [each[name] for each in couples.values()]
        what = "confusion" if name == "counts" else f"kappa, {name},"
        yield f"{what} of {len(couples)} couples: scikit-learn", apart(found, expected)
    same = _page_says(row, theirs)
    yield "page Quality: all six alphas as printed", 0.0 if same else float("inf")


def _by(ours: dict[str, Any], theirs: dict[str, Any]) -> Told:
    for group, name in (("topics", "topic"), ("batches", "batch")):
        keys = [str(each[name]) for each in ours[group]]
        for kind in ("alpha", "drawn") if group == "topics" else ("alpha",):
            expected = [theirs[group][key][kind] for key in keys]
            words = f"alpha by {name}, {len(keys)}, {'as judged' if kind == 'alpha' else 'drawn'}"
            yield words, apart([each[kind] for each in ours[group]], expected)
    for kind in ("alpha", "drawn"):
        words = f"alpha by grade, {'as judged' if kind == 'alpha' else 'drawn'}"
        yield words, apart(ours["grades"][kind], theirs["grades"][kind])


def _page_says(row: Round, theirs: dict[str, Any]) -> bool:
    browser = Client()
    browser.force_login(row.campaign.created_by)
    said = text(browser.get(address("live-labels", row.campaign, row.number)))
    values = [theirs[name][metric] for name in ("plain", "drawn") for metric in METRICS]
    return all(f"{value:.2f} (".replace("-", "−") in said for value in values)


def campaign(passages: Passages, kind: str) -> Campaign:
    """Two runs, one from the first passage of each topic on, one from the last."""
    organizer = factories.user(f"organizer-{kind}", is_organizer=True)
    scale = [{"name": f"grade {grade}", "meaning": ""} for grade in range(4)]
    plan = campaigns.CampaignPlan(name=kind, slug=kind, depth=DEPTH, grades=scale)
    made = campaigns.create(by=organizer, plan=plan)
    topics = "".join(f"{topic}\t{topic}\n" for topic in passages.topics)
    factories.stored_upload(made, topics.encode(), name="topics.tsv", kind="topics")
    for tag, step in (("first", 1), ("last", -1)):
        lists = {t: [d for of, d in passages.rows if of == t][::step] for t in passages.topics}
        lines = (
            f"{topic} Q0 {docno} {rank} {DEPTH - rank} {tag}\n"
            for topic, docnos in lists.items()
            for rank, docno in enumerate(docnos[:DEPTH], start=1)
        )
        factories.stored_upload(made, "".join(lines).encode(), name=tag, kind="run")
    Campaign.objects.filter(pk=made.pk).update(state=Campaign.State.OPEN)
    made.refresh_from_db()
    factories.assessors(made, *passages.people)
    return made


def drawn(made: Campaign, labels: int, budget: int) -> Round:
    """Some of the pairs, by chances that differ."""
    plan = evaluation.plan(
        measure="DCG@100", budget=budget, batch_size=budget // BATCHES, labels=labels,
        extra_share=0.0,
    )  # fmt: skip
    row = rounds.draft(campaign=made, by=made.created_by, plan=plan)
    factories.run_due_jobs()
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    return row


def judged(row: Round, passages: Passages) -> None:
    """Everybody's grades of the drawn pairs, as they stand in the file."""
    people = dict(row.campaign.memberships.values_list("user__username", "user"))
    said = [
        (pair, people[who], grade)
        for pair, topic, docno in row.draws.values_list(
            "pair", "pair__topic__topic_id", "pair__docno"
        )
        for who, grade in passages.rows[topic, docno].items()
    ]
    pairs, who, grades = (list(each) for each in zip(*said, strict=True))
    bulk.insert(Assignment, {
        "campaign": row.campaign_id, "pair": pairs, "assessor": who, "skip_reason": "",
        "state": Assignment.State.JUDGED, "lease_until": LATER, "revision": 1,
        "grade": grades,
    })  # fmt: skip
    ids = bulk.find(Assignment, {"pair": pairs, "assessor": who})
    bulk.insert(Judgment, {
        "assignment": ids, "assessor": who, "grade": grades, "max_grade": 3, "seconds": 9.0,
        "comment": "", "key": [f"key-{pk}" for pk in ids],
    })  # fmt: skip
    Pair.objects.filter(pk__in=pairs).update(held=F("wanted"), judged=F("wanted"))
    ours = Batch.objects.filter(round_batch__round=row)
    ours.update(state=Batch.State.COMPLETE, remaining=0)


def rows_of(row: Round) -> dict[str, Any]:
    """What the packages see: judgments of pairs, and with which chance each of these was drawn."""
    draws = row.draws.values_list("pair", "pair__topic__topic_id", "batch_number", "probability")
    of_pairs = {pair: (topic, batch, chance) for pair, topic, batch, chance in draws}
    said = Judgment.objects.filter(assignment__pair__in=list(of_pairs))
    rows = said.values_list("assignment__pair", "assessor__username", "grade")
    return {"pairs": {str(pair): each for pair, each in of_pairs.items()}, "rows": list(rows)}


if __name__ == "__main__":
    sys.exit(main())

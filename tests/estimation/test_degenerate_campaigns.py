"""Campaigns with next to nothing in them have sane pages, answers, files and charts throughout."""

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from estimation import selectors
from estimation.core.sampling.draws import draw
from estimation.models import Estimate, Report, Round
from estimation.services import designing, estimates, files
from estimation.services.report_files.table import REPORTS
from judging.models import Campaign, Job, Upload
from tests.core.length import LONG
from tests.support import evaluation, factories
from tests.support.material import Material
from tests.support.pages import TABS, address, text
from tests.support.rest import client_of

pytestmark = pytest.mark.django_db
BEST = 3
Lists = Mapping[str, Mapping[str, list[str]]]

NO_NUMBER = re.compile(r"\b(?:nan|NaN|inf|Infinity|None(?!: every pair))\b")
NEGATIVE_ZERO = re.compile(r"(?<![\w.,])[-−](?=0(?:\.0+)?(?![\d.]))")
NO_PLACE = re.compile(
    r'\b(?:points|width|height|r|[cd]?[xy]|[xy][12])="[^"]*(?:nan|inf|None)[^"]*"'
    r'|points="[^" ]*"'  # no line has a single point
    r'|\b(?:width|height|c[xy]|[xy][12])="-[^"]*"'
)
NOTHING = re.compile(r"±\s+(?=[.;,)]|to about)")
DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)


def docnos(first: int, last: int) -> list[str]:
    return [f"d{n}" for n in range(first, last + 1)]


def same(*topics: str, **ranked: list[str]) -> Lists:
    """Runs that return the same for every topic."""
    return {
        tag: dict.fromkeys(topics or ("t1", "t2", "t3"), found) for tag, found in ranked.items()
    }


THREE = same(one=docnos(1, 8), two=docnos(3, 10), three=docnos(8, 1 + 8)[::-1] + docnos(1, 4))


@dataclass(frozen=True)
class Case:
    """Topics with or without runs, what the runs return, how pairs are judged, and the round."""

    lists: Lists = field(default_factory=lambda: THREE)
    grade: Callable[[int], int] = lambda n: n % (BEST + 1)
    topics: tuple[str, ...] = ("t1", "t2", "t3")
    plan: Mapping[str, object] = field(default_factory=dict)


CASES = {
    "all grades 0": Case(grade=lambda _: 0),
    "all grades are the best": Case(grade=lambda _: BEST),
    "no grade is relevant": Case(grade=lambda _: 1, plan={"reported": ["P(rel=2)@10"]}),
    "one topic": Case(
        same("t1", **{tag: each["t1"] for tag, each in THREE.items()}), topics=("t1",)
    ),
    "one run": Case(same(one=docnos(1, 8))),
    "one run, one topic, one document": Case(same("t1", one=["d1"]), topics=("t1",)),
    "two identical runs": Case(same(one=docnos(1, 8), two=docnos(1, 8))),
    "nothing shared": Case(same(one=docnos(1, 8), two=docnos(11, 18), three=docnos(21, 28))),
    "a topic without any document": Case(topics=("t1", "t2", "t3", "t4")),
    "a run with a single topic": Case({**THREE, "three": {"t2": ["d9"]}}),
    "budget 1": Case(plan={"budget": 1, "batch_size": 1}),
    "a census": Case(plan={"budget": 10_000, "batch_size": 10_000}),
    "a census of one grade": Case(
        grade=lambda _: BEST, plan={"budget": 10_000, "batch_size": 10_000}
    ),
    "a census of zeros, judged once": Case(
        grade=lambda _: 0, plan={"budget": 10_000, "batch_size": 10_000, "extra_share": 0}
    ),
}
METHODS: dict[str, dict[str, object]] = {
    "poisson": {},
    "ratio": {"measure": "AP", "reported": ["nDCG@10", "Rprec", "RBP(p=0.8)"]},
    "priority": {"method": "priority"},
    "iid": {"method": "iid", "budget": 16, "batch_size": 8},
    "per-query": {"method": "per-query", "budget": 16, "batch_size": 8},
    "query": {"method": "query", "measure": "ERR@10", "budget": 60, "batch_size": 60},
    "active": {"method": "active", "measure": "AP", "reported": ["P@10"]},
    "adaptive": {"method": "adaptive", "budget": 16, "batch_size": 4},
    "guaranteed": {"interval": "chernoff"},
    "ranking": {"goal": "ranking"},
    "pair": {"goal": "pair", "run": "one", "baseline": "two"},
}


def material(case: Case) -> Material:
    everything = sorted({d for run in case.lists.values() for found in run.values() for d in found})
    return Material(
        topics="".join(f"{topic}\tabout {topic}\n" for topic in case.topics).encode(),
        documents="".join(
            json.dumps({"docno": docno, "title": docno, "text": f"What {docno} says."}) + "\n"
            for docno in everything
        ).encode(),
        runs={
            f"{tag}.run": "".join(
                f"{topic} Q0 {docno} {rank} {-rank} {tag}\n"
                for topic, found in run.items()
                for rank, docno in enumerate(found, start=1)
            ).encode()
            for tag, run in case.lists.items()
        },
        truth={
            (topic, docno): case.grade(int(docno[1:]))
            for topic in case.topics
            for docno in everything
        },
    )


def problems_of(markup: str) -> list[str]:
    """What no page should have, where it stands."""
    visible = re.sub(r"<(script|style|select).*?</\1>|<[^>]*>", " ", markup, flags=re.DOTALL)
    found = [visible[max(0, m.start() - 40) : m.end() + 20] for m in NO_NUMBER.finditer(visible)]
    found += [
        visible[max(0, m.start() - 40) : m.end() + 20] for m in NEGATIVE_ZERO.finditer(visible)
    ]
    found += [visible[max(0, m.start() - 40) : m.end() + 20] for m in NOTHING.finditer(visible)]
    if 'aria-labelledby="outcome"' in markup and 'class="findings"' not in markup:
        found.append("nothing is concluded, nor why")
    for drawing in DRAWING.findall(markup):
        found += [drawing[max(0, m.start() - 60) : m.end()] for m in NO_PLACE.finditer(drawing)]
    return found


@pytest.mark.parametrize(
    "markup",
    [
        "<p>to ± <b></b>, and to about ± .</p>", '<section aria-labelledby="outcome"></section>',
        "<td>nan</td>", "<td>± inf</td>", "<td>None</td>", "<td>−0.000</td>", "<td>-0</td>",
        '<svg><rect x="nan%"/></svg>', '<svg><polygon points=""/></svg>',
        '<svg><polyline points="50,50"/></svg>', '<svg><rect width="-3"/></svg>',
        '<svg><circle cx="None%"/></svg>', '<svg><polyline points="0,1 inf,2"/></svg>',
    ],
)  # fmt: skip
def test_what_no_page_should_have_is_found(markup: str) -> None:
    assert problems_of(f"<p>Between 0 and -0.5, in 2020-01-01.</p>{markup}")
    assert problems_of("<p>Between 0 and -0.5, in 2020-01-01.</p>") == []


def refuse_constant(name: str) -> float:
    raise AssertionError(f"{name} is no JSON")


def assert_pages_are_sane(
    campaign: Campaign, number: int, *, numbers: bool = True, whole: bool = True
) -> None:
    """Without ``numbers`` there are none yet, and every tab and measure says the same. If not
    ``whole``, of the tabs alone, and before there are numbers of the round itself. Where an address
    leads to another one here, that one is enough."""
    client = Client()
    client.force_login(campaign.created_by)
    tabs = TABS if numbers else TABS[:1]
    of_round = tabs if numbers and not whole else ("round-detail", *tabs)
    addresses = [address(name, campaign, number) for name in of_round]
    row = campaign.rounds.get(number=number)
    live = address("live", campaign, number)
    if whole:
        addresses.append(address("reports", campaign, number))
        reported = row.reported if numbers else []
        addresses += [f"{live}?measure={each.replace('#', '%23')}" for each in reported]
        pages = ("campaign-home", "run-list", "round-list")
        addresses += [address(name, campaign) for name in pages]
    for there in addresses:
        page = client.get(there)
        if page.status_code == 302 and page["Location"] in addresses:
            continue
        assert page.status_code == 200, there
        assert problems_of(page.content.decode()) == [], there


def assert_answers_are_sane(campaign: Campaign) -> None:
    client = client_of(campaign.created_by)
    start = f"/api/campaigns/{campaign.slug}"
    for name in ("runs", "rounds", "rounds/1", "rounds/1/batches", "estimates", "ranking"):
        answer = client.get(f"{start}/{name}/")
        assert answer.status_code == 200, (name, answer.content)
        json.loads(answer.content, parse_constant=refuse_constant)


def assert_files_are_sane(row: Round, folder: Path) -> None:
    made = {report.name: files.path_of(report.file).read_bytes() for report in reports_of(row)}
    refused = set(Report.objects.exclude(refused="").values_list("name", flat=True))
    assert set(made) | refused == set(REPORTS)
    assert problems_of(made["report.html"].decode()) == []
    json.loads(made["estimates.json"], parse_constant=refuse_constant)
    assert not NO_NUMBER.search(made["estimates.csv"].decode())
    if "collection.zip" not in made:
        return
    assert zipfile.ZipFile(io.BytesIO(made["collection.zip"])).testzip() is None
    (folder / "collection.zip").write_bytes(made["collection.zip"])


def reports_of(row: Round) -> list[Report]:
    evaluation.made_reports(row)
    shown = selectors.latest_estimates(row)
    return list(Report.objects.filter(estimate_set=shown, refused=""))


def assert_it_scores_the_runs(row: Round, case: Case, folder: Path) -> None:
    """`score` gives the runs of the round the values that they have there, known or not."""
    paths = []
    for name, content in material(case).runs.items():
        (folder / name).write_bytes(content)
        paths.append(str(folder / name))
    out = io.StringIO()
    archive = str(folder / "collection.zip")
    call_command("score", archive, *paths, "--format", "json", stdout=out, stderr=io.StringIO())
    records = json.loads(out.getvalue(), parse_constant=refuse_constant)
    scored = {(each["tag"], each["measure"]): each["value"] for each in records}
    shown = Estimate.objects.filter(
        estimate_set=selectors.latest_estimates(row), primary=True
    ).select_related("run")
    told = {(e.run.tag, e.measure): None if e.unknown else e.value for e in shown}
    assert told == scored


def assert_numbers_are_sane(row: Round) -> None:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    for estimate in shown.estimates.all():
        assert estimate.low <= estimate.high
        assert estimate.low >= 0.0
        assert 0.0 <= estimate.value < float("inf")
        lowest, highest = estimate.rank_low or 1, estimate.rank_high or 99
        assert 1 <= lowest <= (estimate.rank or lowest) <= highest
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    assert outcome.digest == shown.digest


def failed_jobs() -> Iterator[tuple[str, str]]:
    for job in Job.objects.exclude(error=""):
        yield job.kind, job.error


def usable(case: Case, plan: Mapping[str, object]) -> bool:
    return plan.get("goal") not in ("pair", "ranking") or len(case.lists) > 1


HARD = (
    "all grades 0", "one run, one topic, one document", "two identical runs", "nothing shared",
    "a topic without any document", "budget 1", "a census of one grade",
)  # fmt: skip
"""With every method; the others only with the usual one."""
FAST = ("all grades 0", "one run, one topic, one document")
MET = "a topic without any document"
"""The hard case that every method meets."""
ON_BOTH = {("budget 1", "poisson"), *((MET, method) for method in ("query", "active", "adaptive"))}
"""Under PostgreSQL what is refused, and the methods that store rows of their own."""


def marks(name: str, method: str) -> list[pytest.MarkDecorator]:
    usual = method == "poisson"
    return [
        *([] if usual and name in FAST else [pytest.mark.slow]),
        *([] if (name, method) in ON_BOTH else [pytest.mark.sqlite_only]),
    ]


def chosen(name: str, method: str) -> bool:
    """Of other methods than the usual one every fourth hard case, another one for each of them, and
    one that all have; at length, all."""
    if method == "poisson" or name == MET or LONG:
        return True
    return (list(CASES).index(name) + list(METHODS).index(method)) % 4 == 0


PAIRS = [
    pytest.param(name, method, marks=marks(name, method))
    for method in METHODS
    for name in (CASES if method in ("poisson", "ratio") else HARD)
    if usable(CASES[name], METHODS[method]) and chosen(name, method)
]


def test_every_method_meets_several_hard_cases_and_every_case_several_methods() -> None:
    met = [pair.values for pair in PAIRS]
    for method in METHODS:
        assert sum(method == of for _, of in met) >= 2, method
    for name in HARD:
        assert sum(name == of for of, _ in met) >= 3, name


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_it_goes_from_the_draft_to_the_score(name: str, method: str, tmp_path: Path) -> None:
    case, usual = CASES[name], method == "poisson"
    small = {"budget": 12, "batch_size": 6}
    plan = small | METHODS[method] | case.plan
    if not usual and "reported" in case.plan:
        plan["reported"] = METHODS[method].get("reported", [])
    if method in ("iid", "per-query", "query") and case.plan.get("budget") == 1:
        plan |= {"budget": 60, "batch_size": 60}
    campaign = evaluation.with_material(material=material(case))
    row = evaluation.drafted(campaign, **plan, seed="drawn")
    assert list(failed_jobs()) == []
    assert_pages_are_sane(campaign, row.number, numbers=False, whole=usual or LONG)
    json.loads(json.dumps(row.preview), parse_constant=refuse_constant)
    if row.preview["error"]:
        assert row.preview["error"] in REFUSED, row.preview["error"]
        return
    evaluation.draw(campaign, row)
    if usual:
        evaluation.drafted(campaign, **plan)  # which stands beside it from here on
    assert_pages_are_sane(campaign, row.number, numbers=False, whole=usual or LONG)
    truth = material(case).truth
    evaluation.judge(campaign, 8, truth=truth)
    counted = usual or LONG or selectors.latest_estimates(row) is not None
    assert_pages_are_sane(campaign, row.number, numbers=counted, whole=LONG)
    while evaluation.judge(campaign, 10_000, truth=truth):
        pass
    assert_pages_are_sane(campaign, row.number)
    row.refresh_from_db()
    assert list(failed_jobs()) == []
    assert row.state == Round.State.COMPLETE
    assert_numbers_are_sane(row)
    assert_answers_are_sane(campaign)
    assert_files_are_sane(row, tmp_path)
    assert_it_scores_the_runs(row, case, tmp_path)


REFUSED = (
    "budget must be at least 3, a pair a topic, not 1",
    "There is nothing to sample: one, two do not differ under DCG@10.",
)
"""What no round can be made of is said by the preview."""


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_sample_that_happens_to_be_empty_is_complete_and_says_next_to_nothing() -> None:
    campaign = evaluation.with_material(material=material(CASES["nothing shared"]))
    row = evaluation.drafted(campaign, budget=1, batch_size=1)
    _, pool = designing.pool_for(row)
    design = designing.design_of(row, pool)
    empty = next(str(n) for n in range(100) if not len(draw(pool, design, seed=str(n)).pair))
    row = evaluation.drawn(campaign, budget=1, batch_size=1, seed=empty)
    assert_pages_are_sane(campaign, row.number)
    evaluation.judge(campaign, 10, truth={})
    row.refresh_from_db()
    assert (row.draws.count(), row.state) == (0, Round.State.COMPLETE)
    assert_numbers_are_sane(row)
    assert_pages_are_sane(campaign, row.number)
    evaluation.made_reports(row)
    for estimate in selectors.latest_estimates(row).estimates.all():
        assert (estimate.value, estimate.low) == (0.0, 0.0)
        assert estimate.high > 0.0


@pytest.mark.slow
def test_draws_that_only_repeat_earlier_ones_complete_the_round() -> None:
    one = CASES["one run, one topic, one document"]
    campaign = evaluation.with_material(material=material(one))
    row = evaluation.drawn(campaign, method="iid", budget=8, batch_size=2)
    evaluation.judge(campaign, 10, truth=material(one).truth)
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    assert selectors.latest_estimates(row).batches == 4


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"\n", b"t9 Q0 d1 1 1.0 none\n"])
def test_a_run_that_returns_nothing_is_refused(content: bytes) -> None:
    campaign = evaluation.with_material(material=material(CASES["one run"]))
    upload = factories.stored_upload(campaign, content, name="none.run", kind="run")
    assert upload.state == Upload.State.REJECTED
    assert "found none" in str(upload.errors)
    assert "found none" in text(
        client_in(campaign).get(address("upload-detail", campaign, upload.pk), follow=True)
    )


def client_in(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client

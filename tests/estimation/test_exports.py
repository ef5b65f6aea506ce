"""Files to take along: pseudonyms, chances, workbooks, and files that other programs read."""

import csv
import hashlib
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from django.test import Client

from estimation import selectors
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.trec import read_prels, read_strata
from estimation.core.library.estimating import evaluate, given_round
from estimation.models import EstimateSet, Report, Round
from estimation.numbers import estimate_lines
from estimation.services import pools
from estimation.services.report_files import estimates_xlsx, sampled
from estimation.services.report_files.kinds import NotForThisRound
from estimation.services.report_files.table import REPORTS
from judging.models import AuditEntry, Campaign, Judgment, User
from judging.services import judgments, pseudonyms
from tests.support import evaluation, factories
from tests.support.pages import address, as_role, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
JUDGED_BY = {"anna", "ben"}


def latest(row: Round) -> EstimateSet:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    return shown


def file_of(row: Round, name: str) -> str:
    made = REPORTS[name].make(row, latest(row))
    assert isinstance(made, str)
    return made


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# ---------------------------------------------------------------------------------- who is who


@pytest.mark.parametrize("name", ["judgments.csv", "labels.csv", "pairs.csv", "report.html"])
def test_no_file_names_an_assessor(judged: Round, name: str) -> None:
    made = file_of(judged, name)
    assert not [user for user in JUDGED_BY if f">{user}<" in made or f",{user}," in made]
    assert ("assessor-" in made) is (name != "pairs.csv")


def test_pseudonyms_stay_whatever_people_are_called_then(judged: Round) -> None:
    before = file_of(judged, "judgments.csv")
    User.objects.filter(username="anna").update(username="zoe")
    judged.campaign.memberships.filter(user__username="ben").delete()
    assert file_of(judged, "judgments.csv") == before


def test_the_same_people_have_other_pseudonyms_in_another_campaign(judged: Round) -> None:
    users = list(User.objects.filter(username__in=JUDGED_BY).values_list("pk", flat=True))
    other = factories.campaign(slug="other")
    here, there = (pseudonyms.pseudonyms(made, users) for made in (judged.campaign, other))
    assert not set(here.values()) & set(there.values())
    assert len(set(here.values())) == 2


def test_who_asks_for_names_gets_them_and_stands_in_the_log(judged: Round) -> None:
    made = judged.campaign
    client = as_role("organizer", made)
    answer = client.post(address("report-names", made, 1))
    known = {row["username"]: row["pseudonym"] for row in rows_of(answer.content.decode())}
    assert set(known) == JUDGED_BY
    assert set(known.values()) == {
        row["assessor"] for row in rows_of(file_of(judged, "judgments.csv"))
    }
    entry = AuditEntry.objects.get(action="reveal names")
    assert (entry.actor, entry.campaign) == (made.created_by, made)
    rest = client.post(
        f"/api/campaigns/{made.slug}/reports/names/", content_type="application/json"
    )
    assert {row["username"]: row["pseudonym"] for row in rest.json()} == known
    assert AuditEntry.objects.filter(action="reveal names").count() == 2


# --------------------------------------------------------------------------- what files hold


def test_labels_have_what_was_said_also_what_was_corrected(judged: Round) -> None:
    said = Judgment.objects.filter(assessor__username="anna").order_by("pk")[0]
    given = judgments.Saying(grade=3, key="again", comment="=HYPERLINK(1)", seconds=7.5)
    judgments.correct(assignment=said.assignment, by=said.assessor, saying=given, revision=1)
    rows = rows_of(file_of(judged, "labels.csv"))
    pair = said.assignment.pair
    place = (pair.topic.topic_id, pair.docno)
    called = pseudonyms.pseudonyms(judged.campaign, [said.assessor_id])[said.assessor_id]
    mine = [
        row for row in rows if (row["topic"], row["docno"], row["assessor"]) == (*place, called)
    ]
    assert [row["counts"] for row in mine] == ["false", "true"]
    assert (mine[1]["grade"], mine[1]["seconds"]) == ("3", "7.5")
    assert mine[1]["comment"] == "'=HYPERLINK(1)"  # no spreadsheet computes it
    assert mine[1]["time"].endswith("+00:00")


def test_pairs_have_their_probabilities_and_mean_grades(judged: Round) -> None:
    rows = rows_of(file_of(judged, "pairs.csv"))
    shown = latest(judged)
    assert len(rows) == shown.pair_count
    assert sum(int(row["labels"]) for row in rows) == shown.label_count
    draws = {
        (draw.pair.topic.topic_id, draw.pair.docno): draw.probability
        for draw in judged.draws.select_related("pair__topic")
    }
    for row in rows:
        assert float(row["probability"]) == draws[row["topic"], row["docno"]]
    (row,) = [
        each
        for each in rows
        if (each["topic"], each["docno"]) == (rows[0]["topic"], rows[0]["docno"])
    ]
    given = [int(each["grade"]) for each in rows_of(file_of(judged, "judgments.csv"))
             if (each["topic"], each["docno"]) == (row["topic"], row["docno"])]  # fmt: skip
    assert (int(row["labels"]), float(row["mean_grade"])) == (len(given), np.mean(given))


def workbook(row: Round) -> openpyxl.Workbook:
    made = REPORTS["estimates.xlsx"].make(row, latest(row))
    assert isinstance(made, bytes)
    return openpyxl.load_workbook(io.BytesIO(made))


def test_the_workbook_has_the_same_numbers(judged: Round) -> None:
    book = workbook(judged)
    assert book.sheetnames == ["About", "Estimates", "1 DCG@10", "2 P@10"]
    head, *rows = book["Estimates"].iter_rows(values_only=True)
    lines = estimate_lines(judged, latest(judged))
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        told = dict(zip(head, row, strict=True))
        assert (told["run"], told["measure"], told["rank"]) == (line.run, line.measure, line.rank)
        assert (told["value"] is None) is (line.value is None)
        for name in ("value", "low", "high", "support"):
            if told[name] is not None:
                assert told[name] == pytest.approx(getattr(line, name), rel=1e-14)
    compared = list(book["1 DCG@10"].iter_rows(min_row=2, values_only=True))
    assert len(compared) == 4 * 3 / 2
    value = {line.run: line.value for line in lines if line.primary and line.measure == "DCG@10"}
    for first, second, difference, margin, verdict, _ in compared:
        if difference is not None:
            assert difference == pytest.approx((value[first] or 0) - (value[second] or 0))
            assert margin > 0
        assert verdict in {"better", "worse", "not decided", "not known"}


def test_the_workbook_is_the_same_whenever_it_is_made(judged: Round) -> None:
    kind = REPORTS["estimates.xlsx"]
    assert kind.make(judged, latest(judged)) == kind.make(judged, latest(judged))


HOSTILE = ["=1+1", "+A1", "-A1", "@SUM(A1)", "{=A1}", "http://x.example/", "\t=1", "1e5", "a\x01b"]


def test_no_cell_of_a_workbook_is_a_formula_or_a_link(judged: Round) -> None:
    runs = list(judged.campaign.runs.order_by("pk"))
    for run, tag in zip(runs, ("=cmd|' /C calc'!A0", "+1", "@x", "http://x.example/"), strict=True):
        judged.campaign.runs.filter(pk=run.pk).update(tag=tag)
    judged.campaign.name = "=HYPERLINK(1)"
    book = workbook(judged)
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not [cell for cell in cells if cell.data_type == "f" or cell.hyperlink]
    assert "=cmd|' /C calc'!A0" in {cell.value for cell in cells}


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_any_kind_comes_back_as_text(text: str) -> None:
    from xlsxwriter import Workbook

    buffer = io.BytesIO()
    with Workbook(buffer, {"in_memory": True}) as book:
        estimates_xlsx._sheet(book, "s", ("x",), [(text,)])
    cell = openpyxl.load_workbook(buffer)["s"]["A2"]
    assert cell.data_type in ("s", "inlineStr")
    assert cell.hyperlink is None


# ------------------------------------------------------------------- for programs of others


def one_label(campaign: Campaign, **values: object) -> Round:
    row = evaluation.drawn(campaign, extra_share=0.0, **values)
    evaluation.judge(campaign, 200)
    row.refresh_from_db()
    return row


def estimated(row: Round, kind: str, tmp_path: Path) -> dict[str, float]:
    """DCG@10 of every run, as somebody else estimates it from the file."""
    place = tmp_path / "theirs"
    place.write_text(file_of(row, kind))
    given = read_prels(place) if kind == "prels.txt" else read_strata(place)
    assert row.pool is not None
    pool = pools.load(row.pool)
    drawn = given_round(pool, given)
    found = evaluate(pool, drawn, labels=given, measures="DCG@10", max_grade=3)
    return dict(zip(pool.runs, found["DCG@10"].estimate.value.tolist(), strict=True))


def ours(row: Round, estimator: str = "ht") -> dict[str, float]:
    rows = latest(row).estimates.filter(measure="DCG@10", estimator=estimator)
    return dict(rows.values_list("run__tag", "value"))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "priority"])
@pytest.mark.parametrize("labels", [0, 45])
def test_prels_give_the_same_values(
    campaign: Campaign, tmp_path: Path, method: str, labels: int
) -> None:
    """Of the whole round, and of its first batches, whose probabilities are smaller."""
    if labels:
        row = evaluation.drawn(campaign, method=method, extra_share=0.0, interval="student")
        evaluation.judge(campaign, labels)
        row.refresh_from_db()
        assert latest(row).batches < 3
    else:
        row = one_label(campaign, method=method)
    assert estimated(row, "prels.txt", tmp_path) == pytest.approx(ours(row), rel=1e-12)


@pytest.mark.slow
def test_strata_give_what_counting_gives(campaign: Campaign, tmp_path: Path) -> None:
    """By hand: every judged pair counts (pairs of the topic) / (judged pairs of the topic)."""
    row = one_label(campaign, rule="uniform", budget=60, batch_size=60, reported=[])
    assert row.pool is not None
    text = file_of(row, "qrels-strata.txt")
    lines = [line.split() for line in text.splitlines()]
    pool = pools.load(row.pool)
    assert {len(line) for line in lines} == {5}
    assert {line[3] for line in lines} == {"1"}
    judged = [line for line in lines if line[4] != "-1"]
    assert len(judged) == latest(row).pair_count < len(lines)
    factor = {
        topic: sum(line[0] == topic for line in lines) / sum(line[0] == topic for line in judged)
        for topic in pool.topics
    }
    counted = LabelRows(*_positions(pool, judged))
    gains = _gains(pool, counted, [factor[line[0]] for line in judged])
    assert estimated(row, "qrels-strata.txt", tmp_path) == pytest.approx(gains, rel=1e-9)


def _positions(pool: Pool, judged: Iterable[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    place = {
        (pool.topics[topic], docno.decode()): at
        for at, (topic, docno) in enumerate(
            zip(pool.topic.tolist(), pool.docno.tolist(), strict=True)
        )
    }
    found = [(place[line[0], line[2]], int(line[4])) for line in judged]
    return np.array([at for at, _ in found]), np.array([grade for _, grade in found])


def _gains(pool: Pool, labels: LabelRows, factors: list[float]) -> dict[str, float]:
    """DCG@10 by its formula, each judged pair multiplied by its factor."""
    totals = dict.fromkeys(pool.runs, 0.0)
    for pair, grade, factor in zip(
        labels.pair.tolist(), labels.grade.tolist(), factors, strict=True
    ):
        for at in range(int(pool.indptr[pair]), int(pool.indptr[pair + 1])):
            if pool.rank[at] <= 10:
                gain = grade / np.log2(pool.rank[at] + 1)
                totals[pool.runs[pool.run[at]]] += factor * gain / len(pool.topics)
    return totals


@pytest.mark.slow
@pytest.mark.usefixtures("on_paper")
def test_unequal_chances_have_no_strata_and_it_is_said_why(judged: Round) -> None:
    made = {report.name: report for report in evaluation.made_reports(judged)}
    refused = made["qrels-strata.txt"]
    assert (refused.file, refused.size) == ("", 0)
    assert "different chances" in refused.refused
    client = as_role("organizer", judged.campaign)
    page = text(client.get(address("reports", judged.campaign, 1)))
    assert refused.refused in page.replace("&quot;", '"')
    assert client.get(address("report-file", judged.campaign, 1, refused.pk)).status_code == 404
    told = client.get(f"/api/campaigns/{judged.campaign.slug}/reports/").json()
    assert {row["name"]: row["why"] for row in told["refused"]} == {
        "qrels-strata.txt": refused.refused
    }
    assert "qrels-strata.txt" not in {row["name"] for row in told["reports"]}
    assert told["job"]["state"] == "done"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["prels.txt", "qrels-strata.txt"])
def test_adaptive_rounds_have_neither(campaign: Campaign, kind: str) -> None:
    row = evaluation.drawn(campaign, method="adaptive", extra_share=0.0)
    evaluation.judge(campaign, 25)
    row.refresh_from_db()
    with pytest.raises(NotForThisRound, match="judgments before it"):
        REPORTS[kind].make(row, latest(row))


def test_of_several_labels_a_fair_die_takes_one() -> None:
    """On average over keys it is their mean; the best, or the first, would be off."""
    pool = Pool.__new__(Pool)
    object.__setattr__(pool, "topics", ("t",))
    object.__setattr__(pool, "topic", np.array([0, 0], dtype=np.int32))
    object.__setattr__(pool, "docno", np.array([b"d1", b"d2"]))
    labels = LabelRows(np.array([0, 0, 0, 1]), np.array([3, 0, 0, 2]))
    reach = [sampled.one_of_each(labels, _Pair(pool), key=str(k)) for k in range(3000)]
    taken = np.array(reach)
    assert set(taken[:, 0]) == {0.0, 3.0}
    assert taken[:, 0].mean() == pytest.approx(1.0, abs=4 * np.sqrt(2 / 3000))
    assert set(taken[:, 1]) == {2.0}
    again = LabelRows(labels.pair[::-1].copy(), labels.grade[::-1].copy())
    assert np.array_equal(sampled.one_of_each(again, _Pair(pool), key="7"), taken[7])


class _Pair:
    """Two pairs, as far as the die looks at a pool."""

    def __init__(self, pool: Pool) -> None:
        self.topics, self.topic, self.docno = pool.topics, pool.topic, pool.docno

    def __len__(self) -> int:
        return 2


@pytest.mark.slow
@pytest.mark.on_both
def test_a_file_refused_before_is_made_once_it_can_be(
    judged: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where Pango was installed meanwhile."""
    Report.objects.create(estimate_set=latest(judged), name="pairs.csv", size=0, refused="Not yet.")
    evaluation.made_reports(judged)
    made = Report.objects.get(name="pairs.csv")
    assert (made.refused, made.size > 0) == ("", True)


@pytest.mark.slow
@pytest.mark.usefixtures("on_paper")
def test_files_stand_in_groups(judged: Round, organizer: Client) -> None:
    evaluation.made_reports(judged)
    page = organizer.get(address("reports", judged.campaign, 1)).content.decode()
    places = [page.index(f">{group}<") for group in ("To read", "For a paper", "Numbers")]
    assert places == sorted(places)
    assert page.index("report.pdf") < page.index("tables.tex") < page.index("estimates.xlsx")


def test_the_menu_has_every_file_whether_it_is_made_or_not(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign)

    def menu() -> str:
        page = organizer.get(address("live", campaign, 1)).content.decode()
        shown = page[page.index('id="export-menu"') : page.index("menu-foot")]
        assert [name for name in REPORTS if f">{name}<" not in shown] == []
        assert address("comments-file", campaign) in shown
        assert address("audit-file", campaign) in shown
        return shown

    assert "When the first batch is complete" in (before := menu())
    assert "not made yet" not in before
    assert "<form" not in before
    evaluation.judge(campaign, 45)
    assert menu().count("not made yet") == len(REPORTS)
    assert "Make the files" in menu()
    made = evaluation.made_reports(row, "estimates.csv", "qrels-strata.txt")
    whole = menu()
    assert whole.count("not made yet") == len(REPORTS) - 2
    assert "Make what is missing" in whole
    assert whole.count("Why not?") == 1, "of strata of unequal chances"
    (one,) = [each for each in made if each.file]
    there = address("report-file", campaign, 1, one.pk)
    assert f'href="{there}"' in whole
    assert one.digest in whole
    content = b"".join(organizer.get(there))
    assert hashlib.sha256(content).hexdigest() == one.digest

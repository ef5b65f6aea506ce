"""The tables for papers: every one of the report, with its numbers, whatever they say."""

from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from estimation import report_data, selectors
from estimation.figures import pairwise_figure, ranking_figure
from estimation.forecasts import forecast_figure
from estimation.formats import latex
from estimation.listings import race
from estimation.models import Round
from estimation.topic_figures import topic_figure
from judging.models import Campaign
from tests.support import evaluation
from tests.support.latex import NotLatex, Table, printed, tables

ODD = "a_b&c{x}50%$x^2$#1~<z>|--é"


def made(row: Round) -> str:
    report = max(evaluation.made_reports(row, "tables.tex"), key=lambda each: each.pk)
    return (Path(settings.MEDIA_ROOT) / report.file).read_text("utf-8")


def of(found: list[Table], begin: str) -> list[Table]:
    return [each for each in found if each.caption.startswith(begin)]


def ranking_of(row: Round, measure: str | None = None) -> selectors.RankingTable:
    table = selectors.ranking_table(row, measure or row.measure)
    assert table is not None
    return table


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_every_table_of_the_report_stands_there_with_its_numbers(judged: Round) -> None:
    found, table = tables(made(judged)), ranking_of(judged)
    ranking = of(found, "Estimates")[0]
    lines = ranking_figure(table).lines
    assert [row[1] for row in ranking.rows] == [line.run.tag for line in lines]
    assert [row[4] for row in ranking.rows] == [line.ranks for line in lines]
    told = [row[2] for row in ranking.rows]
    assert told == ["not known" if line.run.unknown else line.value for line in lines]
    assert len(of(found, "Estimates")) == 2  # of both measures

    assert table.pairs is not None
    verdicts = of(found, "To how many")[0]
    known = {line.tag: line for line in pairwise_figure(table, table.pairs).lines}
    for tag, better, still_open, worse, *rest in verdicts.rows:
        line = known[tag]
        assert (int(better), int(still_open), int(worse)) == (line.better, line.open, line.worse)
        assert sum(map(int, (better, still_open, worse, *rest))) == len(lines) - 1

    (foretold,) = of(found, "Half width")
    figure = forecast_figure(table)
    assert figure is not None
    assert [row[1] for row in foretold.rows] == [line.pairs for line in figure.lines]
    assert [row[2].removeprefix("± ") for row in foretold.rows] == [
        line.came for line in figure.lines
    ]

    topics = of(found, "Topics")[0]
    told_of = topic_figure(table, "topic")
    assert [row[0] for row in topics.rows] == [line.topic.topic_id for line in told_of.lines]
    assert [row[1] for row in topics.rows] == [str(line.topic.judged) for line in told_of.lines]
    assert [row[-1] for row in topics.rows] == [line.uncertainty for line in told_of.lines]

    shown = selectors.latest_estimates(judged)
    assert shown is not None
    facts = report_data.report(judged, shown)
    (grades,) = of(found, "The scale")
    assert [int(row[3]) for row in grades.rows] == facts.grades
    (people,) = of(found, "Who judged")
    assert sorted(int(row[1]) for row in people.rows) == sorted(p.labels for p in facts.people)
    assert sum(int(row[3]) for row in people.rows) == sum(p.shared for p in facts.people) > 0
    assert all(row[0].startswith("assessor-") for row in people.rows)
    assert facts.agreement is not None
    assert f"{facts.agreement.pairs} pairs had two labels" in people.caption
    assert facts.quality is not None
    (alphas,) = of(found, "Krippendorff")
    assert [row[1:] for row in alphas.rows] == [[a.judged, a.pool] for a in facts.quality.alphas]
    assert facts.quality.of_agreement[0].text.replace("'", "’") in alphas.caption


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_no_column_of_a_forecast_is_empty_or_too_wide_for_a_page(campaign: Campaign) -> None:
    """Of a round that has ended nothing is foretold now; seven columns fit with short heads."""
    row = evaluation.drawn(campaign)
    for judgments, has_ended in ((45, False), (1000, True)):
        evaluation.judge(campaign, judgments)
        row.refresh_from_db()
        assert row.has_ended == has_ended
        (foretold,) = of(tables(made(row)), "Half width")
        assert ("Foretold now" not in foretold.header) == has_ended
        assert all(any(cells) for cells in zip(*foretold.rows, strict=True))
        assert sum(map(len, foretold.header)) <= 60


@pytest.mark.slow
@pytest.mark.django_db
def test_the_race_is_a_table_of_rounds_that_look_for_the_best(campaign: Campaign) -> None:
    asked = {"method": "adaptive", "goal": "winner", "extra_share": 0.0}
    row = evaluation.drawn(campaign, **asked, budget=60, batch_size=20)
    for _ in range(2):
        evaluation.judge(campaign, row.draws.count())
    (table,) = of(tables(made(row)), "Runs to which no other")
    moments = race(row)
    assert [row[:3] for row in table.rows] == [
        [str(each.batches), str(each.pairs), str(len(each.runs))] for each in moments
    ]
    assert [row[3] for row in table.rows] == [", ".join(each.runs) for each in moments]


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_no_name_of_a_run_breaks_out_of_its_cell() -> None:
    small = evaluation.SMALL
    runs = {
        name: content.replace(b" run1\n", f" {ODD}\n".encode()).replace(b" run2\n", b" [t]\n")
        for name, content in small.runs.items()
    }
    campaign = evaluation.with_material(material=replace(small, runs=runs), slug="odd")
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 45)
    found = tables(made(row))
    for begin, column in (("Estimates", 1), ("To how many", 0)):
        assert {ODD, "[t]"} <= {line[column] for line in of(found, begin)[0].rows}


@pytest.mark.slow
@given(st.lists(st.lists(st.text(max_size=12), min_size=2, max_size=2), min_size=1, max_size=60))
def test_whatever_cells_say_is_printed_in_its_place(rows: list[list[str]]) -> None:
    (found,) = tables(latex.table("A caption of 5 %", ["l", latex.WIDE], ["One", "Two"], rows))
    assert found.caption == "A caption of 5 %"
    assert found.long == (len(rows) > latex.A_PAGE)
    assert found.header == ["One", "Two"]
    assert found.rows == [[_plain(cell) for cell in row] for row in rows]


def _plain(text: str) -> str:
    """One line, as it is read back; what looks alike in print is not told apart."""
    kept = "".join(c if c.isprintable() or c in latex.KEPT else " " for c in text)
    same = " ".join(filter(None, kept.split(" "))).replace("''", "”").replace("``", "“")
    return same.replace("'", "’").replace("‘", "`").strip()


def test_tables_of_many_rows_go_over_pages_with_their_header() -> None:
    rows = [[f"run{number}", "0.5"] for number in range(43)]  # too many below a long caption
    (found,) = tables(latex.table("Many", ["l", "r"], ["Run", "AP"], rows))
    assert found.long
    assert found.rows == rows


def test_a_row_of_too_few_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells in a table of 2"):
        latex.table("x", ["l", "r"], ["One", "Two"], [["alone"]])


@pytest.mark.parametrize(
    "body",
    [
        "a & b & c \\\\", "a_1 & b \\\\", "50% & b \\\\\n", "{a & b \\\\", "a & \\input{x} \\\\",
        "a & b \\\\\n[t] & c \\\\", "a & b \\\\\n*x & c \\\\", "a\n\nb & c \\\\", "$x & b \\\\",
    ],
)  # fmt: skip
def test_the_grammar_finds_what_breaks_a_table(body: str) -> None:
    good = latex.table("x", ["l", "r"], ["One", "Two"], [["HERE", "b"]])
    assert tables(good)
    with pytest.raises(NotLatex):
        tables(good.replace("HERE & b \\\\", body))


def test_backslashes_are_printed() -> None:
    assert latex.escaped("\\input{x}") == "\\textbackslash{}input\\{x\\}"
    assert printed(latex.escaped("a--b---c")) == "a--b---c"


def test_long_names_are_broken_where_their_parts_end() -> None:
    names = ["bm25", "bm25_rerank-v2.monoT5_large"]
    assert latex.column_of_names(names[:1], 0.2) == "l"
    column = latex.column_of_names(names, 0.2)
    text = latex.table("C", [column, "r"], ["Run", "n"], [[latex.breakable(n), "1"] for n in names])
    (found,) = tables(text)
    assert found.columns == ["p", "r"]
    assert [row[0] for row in found.rows] == names
    assert text.count(r"\allowbreak") == 4
    assert latex.breakable("-a_") == "-\u200ba_"  # not at an end

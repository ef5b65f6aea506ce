"""The tables for papers: every run once, with the numbers of the page, whatever runs are called."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from estimation import selectors
from estimation.figures import ranking_figure
from estimation.models import Round
from estimation.services.report_files.tables_tex import escaped
from tests.support import evaluation

pytestmark = pytest.mark.django_db


def made(row: Round) -> str:
    report = next(each for each in evaluation.made_reports(row) if each.name == "tables.tex")
    return (Path(settings.MEDIA_ROOT) / report.file).read_text("utf-8")


def rows(table: str) -> list[list[str]]:
    body = table.partition("\\midrule")[2].partition("\\bottomrule")[0]
    return [line.removesuffix(" \\\\").split(" & ") for line in body.strip().splitlines()]


def test_every_run_stands_there_with_the_numbers_of_the_page(judged: Round) -> None:
    shown = selectors.latest_estimates(judged)
    assert shown is not None
    table = selectors.ranking_table(judged, judged.measure, shown)
    assert table is not None
    ranking, verdicts = made(judged).split("\\begin{table}")[1:3]
    lines = ranking_figure(table).lines
    assert [row[1] for row in rows(ranking)] == [escaped(line.run.tag) for line in lines]
    assert [row[4] for row in rows(ranking)] == [escaped(line.ranks) for line in lines]
    known = [line.value for line in lines if not line.run.unknown]
    assert [row[2] for row in rows(ranking) if row[2] != "not known"] == known
    others = len(lines) - 1
    assert all(sum(map(int, row[1:])) == others for row in rows(verdicts))


def test_no_name_of_a_run_breaks_out_of_its_cell() -> None:
    odd = "a_b&c{x}50%$x^2$#1~"
    small = evaluation.SMALL
    runs = {
        name: content.replace(b" run1\n", f" {odd}\n".encode())
        for name, content in small.runs.items()
    }
    campaign = evaluation.with_material(material=replace(small, runs=runs), slug="odd")
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 45)
    text = made(row)
    assert escaped(odd) in text
    for table in text.split("\\begin{table}")[1:]:
        columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", table)
        assert columns is not None
        cells = [re.split(r"(?<!\\)&", " & ".join(row)) for row in rows(table)]
        assert {len(row) for row in cells} == {len(columns[1])}
    plain = re.sub(r"\\[&%$#_{}]", "", escaped(odd))
    assert not re.search(r"[&%$#_^~]", plain.replace(r"\textasciitilde", ""))


def test_backslashes_are_printed() -> None:
    assert escaped("\\input{x}") == "\\textbackslash{}input\\{x\\}"

"""The report as PDF and its plots: from the same HTML, whole, and from nothing else."""

import io
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from dataclasses import replace
from typing import Any

import pypdfium2
import pytest
from django.template.loader import render_to_string

from estimation import selectors
from estimation.charts import bars
from estimation.formats import pdf
from estimation.formats.svg_styles import Room, drawings_in, standing_alone
from estimation.models import Report, Round
from estimation.services.report_files import pdf as pdf_report
from estimation.services.report_files.kinds import NotForThisRound
from estimation.services.report_files.table import REPORTS
from judging.errors import UserError
from tests.support import evaluation
from tests.support.material import small_material

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("on_paper"), pytest.mark.sqlite_only]
SHEET = """
:root { --accent: #0a6672; --deep: var(--accent); }
@media (prefers-color-scheme: dark) { :root { --accent: #ffffff; } }
.chart .bar { fill: var(--deep); }
.chart .line { fill: none; stroke: var(--accent); stroke-width: 2; }
.chart text { fill: #58626e; }
"""
DRAWING = """<svg class="chart" width="100%" height="40"><title>A &amp; B</title>
<rect class="bar" x="25%" y="5" width="50%" height="12"/>
<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">
<polyline class="line" points="0,0 50,100" vector-effect="non-scaling-stroke"/></svg>
<text x="100%" y="50%">&lt;b&gt;</text></svg>"""


def page(body: str) -> str:
    return f"<html><head><style></style></head><body>{body}</body></html>"


def words(content: bytes) -> list[str]:
    """The text of every page."""
    document = pypdfium2.PdfDocument(content)
    return [each.get_textpage().get_text_range() for each in document]


@pytest.mark.slow
def test_it_says_what_the_page_says_and_nothing_is_cut(judged: Round) -> None:
    shown = selectors.latest_estimates(judged)
    assert shown is not None
    made = REPORTS["report.pdf"].make(judged, shown)
    assert isinstance(made, bytes)
    text = " ".join(words(made))
    for told in ("Findings", "How the sample was drawn", "Limits", "Seed", judged.campaign.name,
                 shown.digest[:20], "Results by DCG@10", "Results by P@10", "run1"):  # fmt: skip
        assert told in text
    document = pypdfium2.PdfDocument(made)
    for sheet in document:
        width, height = sheet.get_size()
        assert (round(width), round(height)) == (595, 842)  # A4
        for thing in sheet.get_objects(max_depth=1):
            left, _, right, _ = thing.get_pos() if hasattr(thing, "get_pos") else thing.get_bounds()
            assert -1 <= left <= right <= width + 1
    # and no process that made it so has loaded what makes PDFs
    assert "weasyprint" not in sys.modules


@pytest.mark.slow
@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "http://127.0.0.1:9/x.png", "ftp://x/y", "FILE:///etc/hosts"]
)
def test_it_fetches_nothing(address: str) -> None:
    with pytest.raises(pdf.NotFetched):
        pdf.refuse(address)
    for body in (f'<img src="{address}">', f'<link rel="stylesheet" href="{address}">'):
        made = pdf_report.printed(page(f"{body}<p>the rest</p>"))
        assert "the rest" in words(made)[0]


@pytest.mark.slow
def test_a_file_of_this_machine_is_not_in_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("secret") / "secret.css"
    secret.write_text("p::after { content: 'leaked' }")
    body = f'<style>@import url("file://{secret}");</style><p>here</p>'
    text = " ".join(words(pdf_report.printed(page(body))))
    assert "here" in text
    assert "leaked" not in text


@pytest.mark.slow
@pytest.mark.on_both
def test_without_pango_it_says_what_to_install(
    judged: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_report.pdf, "__name__", "tests.support.no_pango")
    with pytest.raises(NotForThisRound, match="apt-get install libpango"):
        pdf_report.printed(page("x"))
    reports = {report.name: report for report in evaluation.made_reports(judged)}
    assert "Pango" in reports["report.pdf"].refused
    assert not [name for name, row in reports.items() if row.refused and name == "report.html"]
    assert Report.objects.filter(refused="").count() >= len(REPORTS) - 2


@pytest.mark.slow
def test_a_site_may_make_none_and_says_so(judged: Round, settings: Any) -> None:
    """The other files are made, and the PDF with them once it is wanted again."""
    settings.REPORT_PDF = False
    reports = {report.name: report for report in evaluation.made_reports(judged)}
    assert "REPORT_PDF" in reports["report.pdf"].refused
    assert {"report.html", "plots.zip"} <= {n for n, row in reports.items() if not row.refused}
    settings.REPORT_PDF = True
    reports = {report.name: report for report in evaluation.made_reports(judged)}
    assert (reports["report.pdf"].refused, reports["report.pdf"].size > 1000) == ("", True)


def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(UserError, match=r"it took longer than 0\.05 s"):
        pdf_report.printed(page("x"), seconds=0.05)


@pytest.mark.slow
def test_what_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_report, "MOST_BYTES", 10)
    with pytest.raises(UserError, match="too large"):
        pdf_report.printed(page("x"))


@pytest.mark.slow
def test_a_hundred_and_fifty_runs_can_be_read() -> None:
    """Each row of a long table is whole on one of the pages, under its header."""
    rows = "".join(
        f'<tr><td class="num">1</td><th class="run">run-{at}-{"x" * 60}</th><td class="plot"></td>'
        f'<td class="num">0.5</td><td class="num">0.4 – 0.6</td><td class="num">1–{at}</td></tr>'
        for at in range(150)
    )
    names = ("Tier", "Run", "", "AP", "95 %", "Ranks")
    head = f"<tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>"
    table = f"<table class='ranking'><thead>{head}</thead><tbody>{rows}</tbody></table>"
    pages = words(pdf_report.printed(page(table)))
    assert len(pages) > 2
    assert all("Tier" in text for text in pages)
    joined = " ".join(pages)
    assert all(f"run-{at}-" in joined for at in range(150))


# ---------------------------------------------------------------------------------- drawings


def test_a_drawing_stands_alone_in_light_colors() -> None:
    made = standing_alone(DRAWING, SHEET, Room(200, 40, left=10))
    root = ET.fromstring(made)
    kinds = {each.tag.rsplit("}", 1)[-1]: each for each in root.iter()}
    assert kinds["rect"].attrib == {
        "x": "50", "y": "5", "width": "100", "height": "12", "fill": "#0a6672"
    }  # fmt: skip
    assert kinds["polyline"].get("points") == "0,0 100,40"
    assert (kinds["polyline"].get("stroke"), kinds["polyline"].get("fill")) == ("#0a6672", "none")
    assert (kinds["text"].get("x"), kinds["text"].get("y")) == ("200", "20")
    assert kinds["text"].text == "<b>"
    assert kinds["title"].text == "A & B"
    assert root.get("viewBox") == "-10 0 210 40"
    assert "var(" not in made
    assert "%" not in made


def test_the_outermost_drawings_of_a_page_are_found() -> None:
    text = f"<p>{DRAWING}</p><svg width='1'/>{DRAWING}"
    found = [text[start:end] for start, end in drawings_in(text)]
    assert found == [DRAWING, "<svg width='1'/>", DRAWING]


@pytest.mark.slow
def test_every_plot_of_the_report_is_a_drawing_for_papers(judged: Round) -> None:
    shown = selectors.latest_estimates(judged)
    assert shown is not None
    made = REPORTS["plots.zip"].make(judged, shown)
    assert isinstance(made, bytes)
    archive = zipfile.ZipFile(io.BytesIO(made))
    names = set(archive.namelist())
    assert {"ranking-dcg-10.svg", "ranking-p-10.svg", "verdicts-dcg-10.svg", "grades.svg"} <= names
    for name in names:
        text = archive.read(name).decode()
        root = ET.fromstring(text)
        assert float(root.attrib["width"]) > 100
        assert not [word for word in ("var(", "class=", '%"', "<a ", "href") if word in text]
        assert "title" in {each.tag.rsplit("}", 1)[-1] for each in root.iter()}
    assert "run1" in archive.read("ranking-dcg-10.svg").decode()
    assert REPORTS["plots.zip"].make(judged, shown) == made


@pytest.mark.slow
def test_the_history_is_among_the_plots(judged: Round) -> None:
    """A panel for every run, with its name and its line, once there is more than one batch."""
    evaluation.judge(judged.campaign, 1000)
    shown = selectors.latest_estimates(judged)
    table = selectors.ranking_table(judged)
    assert shown is not None
    assert table is not None
    assert shown.batches > 1
    made = REPORTS["plots.zip"].make(judged, shown)
    assert isinstance(made, bytes)
    archive = zipfile.ZipFile(io.BytesIO(made))
    for name in ("history-dcg-10", "history-p-10"):
        root = ET.fromstring(archive.read(f"{name}.svg").decode())
        told = [each.text for each in root.iter() if each.tag.endswith("}text")]
        assert {row.tag for row in table.known} <= set(told)
        kinds = Counter(each.tag.rsplit("}", 1)[-1] for each in root.iter())
        assert kinds["circle"] == len(table.known)
        assert kinds["polyline"] > 0
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        moved = [each.get("transform", "")[10:-1] for each in root.iter() if each.get("transform")]
        places = [tuple(map(float, each.split())) for each in moved]
        assert all(0 <= x < width and 0 <= y < height for x, y in places)
        assert "polyline" in archive.read(f"{name}-all.svg").decode()


@pytest.mark.slow
def test_long_names_of_plots_end_where_their_room_ends() -> None:
    """Before the next panel and within the drawing; a title has the whole of them."""
    name = "bm25-default-anserini-0.22.1-porter-stemmer-k1-0.9-b-0.4"
    small = small_material(topics=4, documents=20, runs=2, depth=10)
    runs = {at: each.replace(b" run1\n", f" {name}\n".encode()) for at, each in small.runs.items()}
    made = evaluation.with_material(material=replace(small, runs=runs))
    row = evaluation.drawn(made, budget=40, batch_size=10, extra_share=0.0)
    for count in (30, 200):
        evaluation.judge(made, count, truth=small.truth)
    shown = selectors.latest_estimates(row)
    assert shown is not None
    plots = REPORTS["plots.zip"].make(row, shown)
    assert isinstance(plots, bytes)
    archive = zipfile.ZipFile(io.BytesIO(plots))
    for drawing, most in (("history-dcg-10", 28), ("ranking-dcg-10", 40)):
        root = ET.fromstring(archive.read(f"{drawing}.svg").decode())
        words = {each: each.findtext("{*}title") for each in root.iter() if "text" in each.tag}
        assert max(len(each.text or "") for each in words) <= most
        assert name in words.values()


def test_hostile_names_stay_text() -> None:
    """Whatever a run or a grade is called, it is a word in the drawing."""
    name = '"><script>alert(1)</script>&\x01\x0c'
    chart = bars.grade_bars([(name, 3)])
    context = {"chart": chart, "rows": [(chart.rows[0], 0)], "height": 24}
    drawing = render_to_string("charts/shares_whole.svg", context)
    made = standing_alone(drawing, SHEET, Room(560, 24))
    assert "<script" not in made
    (told,) = [e.text for e in ET.fromstring(made).iter() if e.text and "alert(1)" in e.text]
    assert told.startswith('"><script>')


def test_the_program_needs_no_django() -> None:
    program = "import sys, estimation.formats.pdf; print('django' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"


@pytest.mark.slow
def test_what_depends_on_grades_stands_on_one_line() -> None:
    """A chip is as wide as its words, and not as those of findings are."""
    way = {"name": "Grades", "people": 2, "labels": 9, "looks_at_grades": True, "measures": []}
    body = render_to_string("estimation/_without_grounds.html", {"without": {"ways": [way]}})
    document = pypdfium2.PdfDocument(pdf_report.printed(page(body)))
    lines = document[0].get_textpage().get_text_bounded().splitlines()
    assert any("depends on grades" in line for line in lines), lines

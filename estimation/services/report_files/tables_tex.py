"""The tables of the report for a paper, in LaTeX with booktabs; to be read by \\input."""

from collections.abc import Iterator, Sequence

from estimation import report_data
from estimation.figures import PairwiseLine, RankingFigure, pairwise_figure, ranking_figure
from estimation.models import EstimateSet, Round
from estimation.selectors import RankingTable
from estimation.services.report_files.kinds import ReportKind

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip
HEAD = "% Needs \\usepackage{booktabs}.\n"


def make(row: Round, shown: EstimateSet) -> str:
    """For every measure the ranking, and how often each run is surely better or worse; the scale
    with how often each grade was given, and what was decided by the organizer."""
    report = report_data.report(row, shown)
    results = [part for table in report.tables for part in _tables(row, shown, table)]
    return "\n".join([HEAD, *results, *_labels(report)])


def _labels(report: report_data.ReportData) -> Iterator[str]:
    given = zip(report.scale, report.grades, strict=True)
    yield _table(
        "The scale of grades, and how often each was given.",
        "rllr",
        ["Grade", "Name", "Meaning", "Given"],
        [
            [str(grade), known["name"], known["meaning"], f"{count:,}"]
            for grade, (known, count) in enumerate(given)
        ],
    )
    if report.decisions:
        yield _table(
            "Pairs that the organizer decided.",
            "lllll",
            ["Topic", "Document", "Decision", "Grade", "Reason"],
            [
                [
                    decision.pair.topic.topic_id,
                    decision.pair.documents,
                    decision.get_kind_display(),
                    "--" if decision.grade is None else str(decision.grade),
                    decision.reason,
                ]
                for decision in report.decisions
            ],
        )


def _tables(row: Round, shown: EstimateSet, table: RankingTable) -> Iterator[str]:
    about = f"{table.measure}, round {row.number}, {shown.label_count:,} labels of {_pairs(shown)}"
    yield _table(
        f"Estimates with 95\\,\\% intervals: {escaped(about)}. {_words(table)}",
        "rlrrr",
        ["Tier", "Run", table.measure, "95 % interval", "Possible ranks"],
        _ranked(ranking_figure(table)),
    )
    if table.pairs is not None and len(table.rows) > 1:
        yield _table(
            f"Runs that are surely worse or better than each: {escaped(about)}.",
            "lrrr",
            ["Run", "Better than", "Worse than", "Not decided"],
            [_compared(line) for line in pairwise_figure(table, table.pairs).lines],
        )


def _pairs(shown: EstimateSet) -> str:
    return f"{shown.pair_count:,} pairs"


def _words(table: RankingTable) -> str:
    kind = f"{table.interval_name} intervals" if table.guaranteed else "Intervals"
    return escaped(
        f"{kind} hold for each run taken alone; tiers and possible ranks for all runs at once. "
        f"{table.validity.why}"
    )


def _ranked(figure: RankingFigure) -> list[list[str]]:
    return [
        [
            str(line.run.tier or "--"),
            line.run.tag,
            "not known" if line.run.unknown else line.value,
            f"{line.low} -- {line.high}",
            line.ranks,
        ]
        for line in figure.lines
    ]


def _compared(line: PairwiseLine) -> list[str]:
    return [line.tag, str(line.better), str(line.worse), str(line.open + line.unknown)]


def _table(caption: str, columns: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"{_cells(row)} \\\\" for row in rows]
    return "\n".join(
        [
            "\\begin{table}",
            f"\\caption{{{caption}}}",
            "\\centering",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            f"{_cells(head)} \\\\",
            "\\midrule",
            *lines,
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
            "",
        ]
    )


def _cells(cells: Sequence[str]) -> str:
    return " & ".join(map(escaped, cells))


def escaped(text: str) -> str:
    """As LaTeX prints it, whatever a run is called; signs and dashes of ours as LaTeX has them."""
    safe = "".join(SPECIAL.get(c, c) for c in text)
    return safe.replace("–", "--").replace("−", "$-$").replace("±", "$\\pm$").replace("≥", "$\\ge$")


TABLES_TEX = ReportKind(
    "tables.tex",
    "The tables of the report for a paper, in LaTeX.",
    content_type="application/x-tex; charset=utf-8",
    make=make,
    group="For a paper",
)

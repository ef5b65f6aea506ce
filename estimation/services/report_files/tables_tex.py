"""The tables of the report for a paper, in LaTeX with booktabs; to be read by \\input."""

from collections.abc import Iterator

from estimation import listings, report_data
from estimation.figures import pairwise_figure, ranking_figure, signed
from estimation.forecasts import forecast_figure
from estimation.formats.latex import QUARTER, WIDE, breakable, column_of_names, head, table
from estimation.label_figures import QualityFigure
from estimation.models import EstimateSet, Round
from estimation.scales import share_reached
from estimation.selectors import RankingTable
from estimation.services.report_files.kinds import ReportKind
from estimation.topic_figures import topic_figure
from judging.services import pseudonyms


def make(row: Round, shown: EstimateSet) -> str:
    """For every measure the ranking, how often each run is surely better or worse, the race, the
    forecast and the topics; then what people said, how they agreed, what was decided, whose work
    is excluded, and how far the numbers move without that.

    Assessors are told of by their pseudonyms.
    """
    report = report_data.report(row, shown)
    of_measures = [part for each in report.tables for part in _of_measure(row, shown, each)]
    excluded = _of_exclusions(row, report)
    return "\n".join([head(), *of_measures, *_of_people(row, report), *excluded])


def _of_measure(row: Round, shown: EstimateSet, found: RankingTable) -> Iterator[str]:
    labels, pairs = f"{shown.label_count:,} labels", f"{shown.pair_count:,} pairs"
    about = f"{found.measure}, round {row.number}, {labels} of {pairs}"
    yield _ranking(found, about)
    if found.pairs is not None and len(found.rows) > 1:
        yield _verdicts(found, about)
    yield from _race(row, found, about)
    yield from _forecast(found, about)
    yield _topics(found, about)


def _ranking(found: RankingTable, about: str) -> str:
    kind = f"{found.interval_name} intervals" if found.guaranteed else "Intervals"
    words = f"The smallest {found.measure} is the best. " if found.lower_is_better else ""
    words += (
        f"{kind} hold for each run taken alone; tiers and possible ranks for all runs at once. "
        f"{found.validity.why}"
    )
    lines = ranking_figure(found).lines
    return table(
        f"Estimates with 95\u2009% intervals: {about}. {words}",
        ["r", column_of_names((line.run.tag for line in lines), 0.24), "r", "r", "r"],
        ["Tier", "Run", found.measure, "95\u2009% interval", "Possible ranks"],
        [
            [
                str(line.run.tier or "–"),
                breakable(line.run.tag),
                "not known" if line.run.unknown else line.value,
                f"{line.low} – {line.high}",
                line.ranks,
            ]
            for line in lines
        ],
    )


def _verdicts(found: RankingTable, about: str) -> str:
    assert found.pairs is not None  # noqa: S101 (its caller has looked)
    figure = pairwise_figure(found, found.pairs)
    names = ["Better than", "Open", "Worse than"]
    names += ["Equivalent"] if figure.within else []
    names += ["Not known"] if figure.matrix.unknown else []
    rows = []
    for line in figure.lines:
        cells = [breakable(line.tag), str(line.better), str(line.open), str(line.worse)]
        cells += [str(line.alike)] if figure.within else []
        rows.append(cells + ([str(line.unknown)] if figure.matrix.unknown else []))
    return table(
        f"To how many runs each is surely better or worse: {about}. {figure.matrix.description}",
        [column_of_names((line.tag for line in figure.lines), 0.22), *("r" for _ in names)],
        ["Run", *names],
        rows,
    )


def _race(row: Round, found: RankingTable, about: str) -> Iterator[str]:
    """As the report, of the measure that looks for the best run."""
    if row.goal != Round.Goal.WINNER or found.measure != row.measure:
        return
    moments = listings.race(row)
    if len(moments) > 1:
        yield table(
            f"Runs to which no other one was surely better after each batch: {about}.",
            ["r", "r", "r", WIDE],
            ["Batch", "Judged pairs", "In the race", "Runs"],
            [
                [str(each.batches), f"{each.pairs:,}", str(len(each.runs)), ", ".join(each.runs)]
                for each in moments
            ],
        )


def _forecast(found: RankingTable, about: str) -> Iterator[str]:
    figure = forecast_figure(found)
    if figure is None or len(figure.lines) < 2:
        return
    early = ["Foretold early"] if figure.early else []
    now = ["Foretold now"] if any(line.now for line in figure.lines) else []
    verdicts = ["Decided", "Best known"] if figure.said else []
    names = ["Batch", "Pairs", "Came", *early, *now, *verdicts]
    rows = []
    for line in figure.lines:
        foretold = [line.early] * len(early) + [line.now] * len(now)
        widths = map(_off_by, (line.came, *foretold))
        told = [line.decided, line.best] if verdicts else []
        rows.append([line.batch, line.pairs, *widths, *told])
    after = f" Foretold early: after batch {figure.early}." if early else ""
    said = " ".join(each.text for each in figure.said)
    yield table(
        f"Half width of {found.measure} of the middle run against judged pairs, come and foretold"
        f"{', and how many differences are decided' if verdicts else ''}: {about}.{after} {said}",
        ["l", *("r" for _ in names[1:])],
        names,
        rows,
    )


def _off_by(width: str) -> str:
    return f"± {width}" if width else ""


def _topics(found: RankingTable, about: str) -> str:
    figure = topic_figure(found, "topic")
    names = ["Topic", "Judged", "Pairs", "Runs differ by"]
    names += ["Uncertainty"] if figure.told else []
    rows = []
    for line in figure.lines:
        pairs = "–" if line.topic.pairs is None else f"{line.topic.pairs:,}"
        cells = [line.topic.topic_id, f"{line.topic.judged:,}", pairs, line.spread]
        rows.append(cells + ([line.uncertainty] if figure.told else []))
    share = " Uncertainty is the share of the sampling variance of all runs." if figure.told else ""
    return table(
        f"Topics: judged pairs, and the standard deviation among runs of what each adds to their "
        f"values: {about}. Numbers of one topic come from few judged pairs.{share}",
        ["l", *("r" for _ in names[1:])],
        names,
        rows,
    )


def _of_people(row: Round, report: report_data.ReportData) -> Iterator[str]:
    given = zip(report.scale, report.grades, strict=True)
    yield table(
        "The scale of grades, and how often each was given.",
        ["r", "l", WIDE, "r"],
        ["Grade", "Name", "Meaning", "Given"],
        [
            [str(grade), known["name"], known["meaning"], f"{count:,}"]
            for grade, (known, count) in enumerate(given)
        ],
    )
    yield _agreement(row, report)
    if report.quality is not None and report.quality.beside:
        yield _alphas(report.quality)
    if report.decisions:
        yield table(
            "Pairs that the organizer decided.",
            ["l", "l", "l", "r", WIDE],
            ["Topic", "Document", "Decision", "Grade", "Reason"],
            [
                [
                    decision.pair.topic.topic_id,
                    decision.pair.documents,
                    decision.get_kind_display(),
                    "–" if decision.grade is None else str(decision.grade),
                    decision.reason,
                ]
                for decision in report.decisions
            ],
        )


def _agreement(row: Round, report: report_data.ReportData) -> str:
    called = pseudonyms.by_name(row.campaign, [each.name for each in report.people])
    both, told = report.agreement, "No pair had labels by two assessors."
    if both is not None:
        told = (
            f"{both.pairs:,} pairs had two labels or more: two assessors gave the same grade in "
            f"{share_reached(both.same)} of the cases, and were {both.mean_distance:.2f} grades "
            "apart on average."
        )
    rows = [
        [
            called[each.name],
            f"{each.labels:,}",
            f"{each.mean:.2f}",
            f"{each.shared:,}",
            "–" if each.same is None else share_reached(each.same),
            signed(each.above, 2),
        ]
        for each in report.people
    ]
    return table(
        f"Who judged, and how they agreed. {told} Compared are labels of the same pair by two "
        "assessors; above is by how many grades the assessor’s own are higher on average.",
        ["l", "r", "r", "r", "r", "r"],
        ["Assessor", "Labels", "Mean grade", "Compared", "Same grade", "Above"],
        sorted(rows),
    )


def _alphas(quality: QualityFigure) -> str:
    pool = ["Whole pool"] if quality.weighted else []
    return table(
        f"Krippendorff’s alpha. {' '.join(each.text for each in quality.of_agreement)}",
        [WIDE, "r", *("r" for _ in pool)],
        ["Alpha", "As judged", *pool],
        [
            [f"{line.name}: {line.meaning}", line.judged, *([line.pool] if pool else [])]
            for line in quality.alphas
        ],
    )


def _of_exclusions(row: Round, report: report_data.ReportData) -> Iterator[str]:
    if not report.exclusions:
        return
    called = pseudonyms.by_name(row.campaign, [each.who for each in report.exclusions])
    yield table(
        "Assessors whose work is excluded and counts nowhere. Estimates stay unbiased only if who "
        "is excluded does not depend on the grades that were given.",
        ["l", WIDE, QUARTER],
        ["Assessor", "Ground", "Reason"],
        [[called[each.who], each.why, each.reason] for each in report.exclusions],
    )
    without = report.without_exclusions
    if without is None:
        return
    said = " ".join(each.text for each in without.findings)
    yield table(
        f"How far the numbers move if excluded work counts. {said}",
        [QUARTER, "r", "r", "l", "r", "r", "r", "l"],
        ["If this counted", "People", "Labels", "Measure", "Move", "Half widths", "Places",
         "Verdicts"],
        [
            [way.name, f"{way.people:,}", f"{way.labels:,}", moved.measure, moved.most,
             moved.half_widths, f"{moved.places:,}", moved.verdicts]
            for way in without.ways
            for moved in way.measures
        ],
    )  # fmt: skip
    for moved in without.all.measures if without.all else ():
        yield table(
            f"{moved.measure} if excluded work counted: places and values of all runs.",
            [column_of_names((each.run for each in moved.runs), 0.13), *6 * "r"],
            ["Run", "Place", moved.measure, "Place then", "Then", "Move", "Half widths"],
            [
                [breakable(each.run), each.place, each.value, each.other_place, each.other_value,
                 each.move, each.half_widths]
                for each in moved.runs
            ],
        )  # fmt: skip


TABLES_TEX = ReportKind(
    "tables.tex",
    "The tables for a paper, in LaTeX: rankings, verdicts, forecasts, topics, and people.",
    content_type="application/x-tex; charset=utf-8",
    make=make,
    group="For a paper",
)

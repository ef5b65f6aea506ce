"""What ``manage.py simulate`` prints: two tables of its reports, one JSON list, what all means."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from estimation.research.trials.honesty import Honesty
from estimation.research.trials.reports import TrialReport

HEADER = (
    "method", "goal", "budget", "judged", "rmse", "bias", "sd", "coverage", "half width", "tau",
    "s/trial",
)  # fmt: skip
HONESTY_HEADER = (
    "method", "goal", "budget", "worst run", "covered", "all runs", "±", "differences", "withheld",
    "half width", "any false", "reversed", "ranks", "true",
)  # fmt: skip
LEGEND = """\
rmse, sd: over all trials and systems. bias: root mean square over systems of the mean error, of
which sd / sqrt(trials) is chance. Errors are those of the values (single, absolute), the
difference (pair), the differences from the baseline, or value less mean over systems (others).
The second table is about what is told of all runs of the pool, whatever the goal. worst run,
covered: the run whose interval held the truth least often, and how often; all runs: how often on
average; ±: its standard error, as trials differ; differences: how often the intervals of those that
were shown held; withheld: share of values that were not shown; half width: median. any false,
reversed: share of trials with a false verdict, ties included, and with one the wrong way round;
ranks: with all true ranks possible; true: true verdicts per trial.
--help explains every number."""

ANYTIME_LEGEND = """\
The same of intervals, verdicts and ranks that hold at all looks at once; times: their median half
width at the last look over that of intervals for one look."""

STOPS_LEGEND = """\
Rounds that stop by the rule: early: share of trials that stopped before the last look; pairs:
judged until then. The others are of what is told then, in numbers that hold at all looks at once,
as in the application; in the line below, of numbers for one look, by which the rule is looked at
as well."""

GOAL_KEYS: Mapping[str, str] = {
    "method, goal, measure, budget, trials, looks": "as asked for",
    "systems": "the goal's runs, the baseline last",
    "judged_pairs": "distinct pairs that a trial judged, on average",
    "rmse": "root of the mean squared error over trials and systems",
    "bias": "root of the mean over systems of the squared mean error; sd / sqrt(trials) is chance",
    "sd": "root of the mean over systems of the variance over trials",
    "coverage": "share of the 95 % intervals of what the goal asks for that hold the truth",
    "half_width": "their mean half width",
    "kendall_tau": "tau-b between estimated and true values of the systems, mean over trials",
}
HONESTY_KEYS: Mapping[str, str] = {
    "worst_run_coverage": "the least, over runs, of the share of trials in which the interval of "
    "the run's value held the truth, of those in which the value was shown",
    "value_coverage": "the same share, over all runs together",
    "coverage_error": "standard error of value_coverage; runs of a trial err together, so that it "
    "is by how trials differ",
    "difference_coverage": "share of the differences of all runs, of those shown, whose interval, "
    "each taken alone, held the truth",
    "withheld": "share of the values that were not shown because too little was known of them",
    "worst_run": "the run of worst_run_coverage",
    "median_half_width": "median half width of the intervals of the values that were shown",
    "familywise_error": "share of trials with any false verdict: for the run that is truly worse, "
    "or on two that are truly tied",
    "reversed_verdicts": "share of trials with any verdict for the run that is truly worse",
    "rank_coverage": "share of trials in which all true ranks, all that tied runs share, lay "
    "within the possible ranks at once",
    "true_verdicts": "true verdicts per trial, each pair of runs counted once",
}
TIME_KEYS: Mapping[str, str] = {
    "seconds_per_trial": "time to draw, judge and estimate, in the process that did it; of methods "
    "that share their random numbers the first has their time",
}
KEYS_HELP = "\n".join(
    [
        "numbers of each method, goal and budget (keys of --json), of what the goal asks for:",
        *(f"  {key}: {meaning}" for key, meaning in GOAL_KEYS.items()),
        "",
        "of what is told about all runs of the pool, whatever the goal (null for methods without "
        "intervals, from familywise_error on for those without verdicts):",
        *(f"  {key}: {meaning}" for key, meaning in HONESTY_KEYS.items()),
        *(f"  {key}: {meaning}" for key, meaning in TIME_KEYS.items()),
        "",
        "With --looks above 1 an interval, a verdict or a range of ranks that is false at any look "
        "is false; errors, half widths, withheld and true_verdicts are of the last look.",
        "  anytime: with --anytime the same numbers of what is told so that it holds at all looks "
        "at once, and times_as_wide, its median half width over the other; else null",
        "  stops: with --stop what the rule did: the share of trials that it ended early, their "
        "judged_pairs, and the honesty of what was told then, so that it holds at all looks (told) "
        "and at one (one_look); else null",
    ]
)


def flat(report: TrialReport) -> dict[str, Any]:
    """Return a report with the keys of its honesty among its own."""
    facts: dict[str, Any] = {}
    for key, value in asdict(report).items():
        facts.update(value if key == "honesty" else {key: value})
    if report.anytime is not None:
        facts["anytime"] |= {"times_as_wide": _times_as_wide(report)}
    return facts


def errors_table(reports: Sequence[TrialReport]) -> list[str]:
    """Return lines about the errors of what the goals ask for."""
    return _aligned([HEADER, *map(_errors, reports)], left=2)


def honesty_table(reports: Sequence[TrialReport]) -> list[str]:
    """Return lines about what is told of all runs."""
    return _aligned([HONESTY_HEADER, *map(_honesty, reports)], left=2)


def anytime_table(reports: Sequence[TrialReport]) -> list[str]:
    """Return lines about what is told of all runs so that it holds at all looks at once."""
    lines = [(*_told(each, each.anytime), _share(_times_as_wide(each))) for each in reports]
    return _aligned([(*HONESTY_HEADER, "times"), *lines], left=2)


def stops_table(reports: Sequence[TrialReport]) -> list[str]:
    """Return lines about rounds that stop by a rule, and the twin of each."""
    lines = [
        (*_told(each, found.honesty), _share(found.early), f"{found.judged_pairs:.1f}", numbers)
        for each in reports
        if each.stops is not None
        for found, numbers in ((each.stops.told, "all looks"), (each.stops.one_look, "one look"))
    ]
    return _aligned([(*HONESTY_HEADER, "early", "pairs", "numbers"), *lines], left=2)


def _times_as_wide(report: TrialReport) -> float | None:
    wide = None if report.anytime is None else report.anytime.median_half_width
    narrow = report.honesty.median_half_width
    return wide / narrow if wide and narrow else None


def _errors(report: TrialReport) -> tuple[str, ...]:
    return (
        *_named(report),
        f"{report.judged_pairs:.1f}",
        *(_number(value) for value in (report.rmse, report.bias, report.sd)),
        _share(report.coverage),
        _number(report.half_width),
        _share(report.kendall_tau),
        f"{report.seconds_per_trial:.3f}",
    )


def _honesty(report: TrialReport) -> tuple[str, ...]:
    return _told(report, report.honesty)


def _told(report: TrialReport, found: Honesty | None) -> tuple[str, ...]:
    found = found or Honesty()
    return (
        *_named(report),
        found.worst_run or "-",
        *map(_share, _covered(found)),
        _number(found.median_half_width),
        *map(_share, (found.familywise_error, found.reversed_verdicts, found.rank_coverage)),
        "-" if found.true_verdicts is None else f"{found.true_verdicts:.1f}",
    )


def _covered(found: Honesty) -> tuple[float | None, ...]:
    every = found.value_coverage, found.coverage_error
    return found.worst_run_coverage, *every, found.difference_coverage, found.withheld


def _named(report: TrialReport) -> tuple[str, str, str]:
    return report.method, report.goal, str(report.budget)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _aligned(lines: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Columns side by side: the first ones flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]

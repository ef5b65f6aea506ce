"""``manage.py simulate``: how would each way of choosing what to judge have done?"""

import argparse
import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    DjangoHelpFormatter,
    OutputWrapper,
)

from estimation.core.arrays import FloatArray, IntArray
from estimation.core.data.pool import Pool
from estimation.core.data.preferences import preference_pool
from estimation.core.measures.kinds import PREFERENCE_MAX_GRADE, MeasureError
from estimation.core.sampling import goals
from estimation.core.sampling.goals import Goal, GoalError
from estimation.core.sampling.interval_kinds import INTERVAL_KINDS
from estimation.management.judged_collections import (
    JudgedCollection,
    grades_of,
    predicted_of,
    preferences_of,
    read_collection,
    read_predicted,
)
from estimation.management.simulation_options import (
    ALL,
    DEFAULT_DEPTH,
    DEFAULT_METHODS,
    GAINS,
    LOGARITHMS,
    PRIORS,
    RULES,
    SimulationPlan,
    read_plan,
)
from estimation.management.simulation_tables import (
    ANYTIME_LEGEND,
    KEYS_HELP,
    LEGEND,
    STOPS_LEGEND,
    anytime_table,
    errors_table,
    flat,
    honesty_table,
    stops_table,
)
from estimation.research.trials.methods import METHODS, prepare
from estimation.research.trials.reports import Contest, TrialReport, play_contests
from estimation.research.trials.settings import UNITS, Setting

DEFAULT_SHARE = 10  # a budget of one pair in so many
BAR = 30
UNIT_HELP = (
    "of budgets of draws with replacement: draws, or distinct judged pairs, which a number of "
    "draws fixed beforehand is expected to give (default %(default)s)"
)
METHOD_HELP = (
    f"any of {', '.join(METHODS)} (difference: poisson, estimated with the help of predicted "
    f"grades); or {ALL} that can work (default: those of "
    f"{', '.join(DEFAULT_METHODS)} that have an estimator, else all that have one)"
)
PREDICTIONS_HELP = (
    "predicted grades for the methods adaptive, which learns from several such files, and "
    "difference, columns as for scores:FILE (default: those of the prior)"
)
INTERVAL_HELP = (
    f"one of {', '.join(INTERVAL_KINDS)}; the guaranteed ones are for the methods iid or poisson "
    "(default %(default)s)"
)
RUNS_HELP = "leave out all other runs, as if the folder did not have them (default: all runs)"
SYSTEMS_HELP = (
    "what the goal is about; the pool is of all runs all the same (default all; single: the "
    "first, pair: the first two)"
)
LOOKS_HELP = (
    "how often the estimates are looked at while the budget is spent: it is cut into N equal "
    "batches, for methods that have batches (default %(default)s)"
)
ANYTIME_HELP = (
    "also tell, in a table of its own, how often what is told so that it holds at all looks at "
    "once is true"
)
STOP_HELP = (
    "also tell when a round would stop by a rule, and whether what it is told then is true: best "
    "(the best run is known), top=M (the first M are), width=W (all half widths are at most W)"
)
NEGLIGIBLE_HELP = "differences up to D do not matter: runs may be equivalent (default: all matter)"
JOBS_HELP = "processes to play the trials in; the numbers are the same (default %(default)s)"
PRIOR_HELP = (
    f"one of {', '.join(PRIORS)}, FILE holding topic, iteration, docno, predicted grade "
    "(default %(default)s); scores alone takes those of --predictions"
)


class _Paragraphs(DjangoHelpFormatter):
    """Fills the text before and after the options line by line."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = (
            textwrap.fill(line, width, initial_indent=indent, subsequent_indent=indent + "    ")
            for line in text.splitlines()
        )
        return "\n".join(filled)


class Command(BaseCommand):
    help = (
        "Has a judged collection judged again, as often as wanted, by each method, and reports "
        "how far the estimates are from the truth, and how often what is told about the runs is "
        "true.\n"
        "What can be judged is what any run returns down to the depth, as in a round; --systems "
        "and --baseline only say what the sample is made for. The topics are those of the qrels "
        "that a run answers. Documents without a judgment count as grade 0, and so do grades "
        "below 0. Under a measure of preferences every two documents of a list can be judged: who "
        "judges them prefers the one of the better grade."
    )
    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Explain after the options what is reported."""
        more = {"epilog": KEYS_HELP, "formatter_class": _Paragraphs}
        return super().create_parser(prog_name, subcommand, **{**more, **kwargs})

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("runs", metavar="RUNS_DIR", help="folder of runs in TREC's six columns, plain or gzip")
        add("qrels", metavar="QRELS", help="judgments in TREC's four columns, plain or gzip")
        add("--measure", default="DCG@100", help="as ir-measures writes it (default %(default)s)")
        add("--log-base", metavar="|".join(LOGARITHMS), help="of DCG and nDCG (default 2)")
        add("--gain", metavar="|".join(GAINS), help="of DCG, nDCG and Gain (default linear)")
        add("--goal", default="absolute", help=f"any of {', '.join(goals.KINDS)} (%(default)s)")
        add("--runs", dest="only_runs", metavar="TAG,TAG", help=RUNS_HELP)
        add("--systems", metavar="TAG,TAG", help=SYSTEMS_HELP)
        add("--baseline", metavar="TAG", help="of the goal baseline (default: the first system)")
        add("--method", metavar="NAME,NAME", help=METHOD_HELP)
        add("--prior", default="rank", help=PRIOR_HELP)
        add("--predictions", metavar="FILE", action="append", default=[], help=PREDICTIONS_HELP)
        add("--prior-rule", metavar="|".join(RULES), help="default: first for draws, else second")
        add("--budget", metavar="N,N", help="default: a tenth of the pool")
        add("--budget-unit", default=UNITS[0], metavar="|".join(UNITS), help=UNIT_HELP)
        add("--trials", default=100, metavar="T", help="default %(default)s")
        add("--looks", default=1, metavar="N", help=LOOKS_HELP)
        add("--anytime", action="store_true", help=ANYTIME_HELP)
        add("--stop", metavar="RULE", help=STOP_HELP)
        add("--negligible", default=0, metavar="D", help=NEGLIGIBLE_HELP)
        add("--jobs", default=1, metavar="N", help=JOBS_HELP)
        add("--seed", default="2016", help="any text (default %(default)s)")
        add("--depth", metavar="D", help=f"default: the measure's cutoff, else {DEFAULT_DEPTH}")
        add("--fully-judged", action="store_true", help="only runs whose top is full and judged")
        add("--labels-per-pair", default=1, metavar="R", help="assessors of each pair (1)")
        add("--assessor-noise", default=0, metavar="P", help="share of wrong judgments (0)")
        add("--interval", default=INTERVAL_KINDS[0], metavar="KIND", help=INTERVAL_HELP)
        add("--json", action="store_true", help="one JSON list instead of a table")

    def handle(self, *_args: Any, **options: Any) -> None:
        plan = read_plan(options)
        bar = _Bar(self.stderr, "reading runs")
        collection = read_collection(
            Path(options["runs"]), Path(options["qrels"]), after_each=bar.step
        )
        bar.clear()
        if plan.runs is not None:
            collection = collection.only(plan.runs)
        if options["fully_judged"]:
            collection = collection.only_fully_judged(plan.depth)
        field = _Field.of(plan, collection)
        contests, left_out = _contests(plan, field.settings(plan, collection))
        bar = _Bar(self.stderr, "trials")
        reports = play_contests(
            contests,
            trials=plan.trials,
            seed=plan.seed,
            jobs=plan.jobs,
            after_each=lambda: bar.step(plan.trials),
        )
        bar.clear()
        notes = [*_notes(collection, field), *left_out]
        if options["json"]:
            self.stdout.write(json.dumps([flat(report) for report in reports], indent=1))
            for note in notes:
                self.stderr.write(note, str)
        else:
            self._print(plan, collection, reports, notes)

    def _print(
        self,
        plan: SimulationPlan,
        collection: JudgedCollection,
        reports: Sequence[TrialReport],
        notes: Sequence[str],
    ) -> None:
        runs, topics = _many(len(collection.runs), "run"), _many(len(collection.topics), "topic")
        about = f"{runs}, {topics}, depth {plan.depth}, {_many(plan.trials, 'trial')}"
        if plan.looks > 1:
            about += f", {plan.looks} looks"
        if plan.interval != INTERVAL_KINDS[0]:
            about += f", {plan.interval} intervals"
        self.stdout.write(f"{plan.measure}, {about}\n\n")
        lines = [*errors_table(reports), "", *honesty_table(reports), ""]
        if plan.anytime:
            lines += [ANYTIME_LEGEND, "", *anytime_table(reports), ""]
        if plan.stop:
            lines += [STOPS_LEGEND, "", *stops_table(reports), ""]
        for line in [*lines, LEGEND, *notes]:
            self.stdout.write(line)


# ------------------------------------------------------------------------------ what is simulated


@dataclass(frozen=True, eq=False)
class _Field:
    """The pool of all runs, with grades and predictions of its pairs."""

    pool: Pool
    grades: IntArray
    unjudged: int
    max_grade: int
    predicted: FloatArray | None
    documents: int

    @classmethod
    def of(cls, plan: SimulationPlan, collection: JudgedCollection) -> "_Field":
        scores, best = plan.measure.family == "prediction", collection.max_grade
        pool = collection.pool(depth=plan.depth, scores=scores)
        grades, unjudged = grades_of(pool, collection.grades)
        if plan.measure.family == "preference":
            return cls._of_two(pool, collection, unjudged)
        try:
            if not scores:
                plan.measure.max_utility(best)
        except MeasureError as error:
            raise CommandError(f"--measure {plan.measure}: {error}.") from None
        read = [_predicted(pool, path, max_grade=best) for path in plan.predicted]
        predicted = None
        if read:
            predicted = read[0] if len(read) == 1 else np.stack(read, axis=1)
        return cls(pool, grades, unjudged, best, predicted, documents=len(pool))

    @classmethod
    def _of_two(cls, pool: Pool, collection: JudgedCollection, unjudged: int) -> "_Field":
        """Every two documents of a list: the one of the better grade is preferred."""
        of_two = preference_pool(pool, depth=pool.depth)
        grades, best = preferences_of(of_two, collection.grades), PREFERENCE_MAX_GRADE
        return cls(of_two, grades, unjudged, best, None, documents=len(pool))

    def settings(self, plan: SimulationPlan, collection: JudgedCollection) -> list[Setting]:
        """One for each goal and budget."""
        goals = [_goal(plan, collection, kind) for kind in plan.goals]
        return [
            Setting(
                pool=self.pool,
                grades=self.grades,
                max_grade=self.max_grade,
                goal=goal,
                measure=plan.measure,
                budget=budget,
                unit=plan.unit,
                prior=plan.prior,
                predicted=self.predicted,
                rule=plan.rule,
                assessors=plan.assessors,
                interval=plan.interval,
                looks=plan.looks,
                anytime=plan.anytime,
                stop=plan.stop,
                negligible=plan.negligible,
            )
            for goal in goals
            for budget in _budgets(plan, self.pool)
        ]


def _predicted(pool: Pool, path: Path, *, max_grade: int) -> FloatArray:
    found = predicted_of(pool, read_predicted(path, max_grade=max_grade))
    if np.isnan(found).all():
        about = "topic and docno must be those of the runs"
        raise CommandError(f"predicted grades {path} are of none of the pool's pairs: {about}.")
    return found


def _goal(plan: SimulationPlan, collection: JudgedCollection, kind: str) -> Goal:
    tags = plan.systems or tuple(collection.runs)
    for tag in tags:
        _check_tag("--systems", tag, collection)
    if plan.baseline is not None:
        _check_tag("--baseline", plan.baseline, collection)
        if plan.baseline not in tags:
            listed = ", ".join(tags)
            raise CommandError(f"--baseline {plan.baseline} is not among the systems {listed}.")
    if plan.systems is None:
        tags = tags[: {"single": 1, "pair": 2}.get(kind, len(tags))]
    try:
        if kind != "baseline":
            return Goal(kind, tags)
        against = plan.baseline or tags[0]
        return Goal(kind, tuple(tag for tag in tags if tag != against), against)
    except GoalError as error:
        raise CommandError(f"--systems {','.join(tags)}, --goal {kind}: {error}.") from None


def _check_tag(option: str, tag: str, collection: JudgedCollection) -> None:
    if tag in collection.not_full:
        raise CommandError(f"{option} {tag}: its top is not full and judged (--fully-judged).")
    if tag not in collection.runs:
        listed = ", ".join(collection.runs)
        raise CommandError(f"{option}: there is no run {tag!r}; there are {listed}.")


def _budgets(plan: SimulationPlan, pool: Pool) -> tuple[int, ...]:
    pairs = len(pool)
    for budget in plan.budgets or ():
        if budget > pairs:
            about = f"the pool has {pairs} pairs"
            raise CommandError(f"--budget must be at most {pairs}, not {budget}: {about}.")
    least = min(pairs, max(2, len(pool.topics)))
    return plan.budgets or (max(least, -(-pairs // DEFAULT_SHARE)),)


def _contests(plan: SimulationPlan, settings: Sequence[Setting]) -> tuple[list[Contest], list[str]]:
    """What is to be played, all of it prepared, and what cannot be and may be left out."""
    contests, left_out = [], []
    for setting in settings:
        for method in plan.methods:
            try:
                contests.append(Contest(setting, method, prepare(setting, method)))
            except ValueError as error:
                named = f"--method {method}, --goal {setting.goal.kind}, --budget {setting.budget}"
                if not plan.takes_what_works:
                    raise CommandError(f"{named}: {error}") from None
                left_out.append(f"Left out: {named}: {error}")
    if not contests:
        raise CommandError("\n".join(["No method can work.", *left_out]))
    return contests, left_out


# ------------------------------------------------------------------------------------- what is said


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _notes(collection: JudgedCollection, field: _Field) -> Iterator[str]:
    if collection.not_full:
        many = f"{len(collection.not_full)} of {len(collection.not_full) + len(collection.runs)}"
        yield f"--fully-judged left out {many} runs."
    if field.unjudged:
        pairs = f"{field.unjudged} of the {field.documents} pairs of the pool"
        yield f"{pairs} are not judged and count as grade 0."
    if field.predicted is not None:
        missing = np.isnan(field.predicted.reshape(len(field.pool), -1)).sum(axis=0)
        for number in missing[missing > 0].tolist():
            yield f"{number} of the {len(field.pool)} pairs of the pool have no predicted grade."


class _Bar:
    """A bar on a terminal, nothing elsewhere."""

    def __init__(self, out: OutputWrapper, what: str) -> None:
        self._out, self._what = out, what
        self._is_shown = out.isatty()
        self._done, self._percent = 0, -1

    def step(self, total: int) -> None:
        """One more of so many is done."""
        self._done += 1
        percent = 100 * self._done // total
        if self._is_shown and percent != self._percent:
            self._percent = percent
            filled = ("#" * (BAR * self._done // total)).ljust(BAR)
            self._write(f"\r[{filled}] {percent:3d} % {self._what}")

    def clear(self) -> None:
        """Leave the line empty."""
        if self._is_shown:
            self._write("\r" + " " * (BAR + len(self._what) + 10) + "\r")

    def _write(self, text: str) -> None:
        self._out.write(text, str, ending="")
        self._out.flush()

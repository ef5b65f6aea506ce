"""``manage.py score``: what a judged collection says about any runs."""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeVar

from django.core.management.base import BaseCommand, CommandError

from estimation.core.collections.base import RoundCollection
from estimation.core.data.ranked_lists import PoolError, RankedLists
from estimation.core.inference.single import ends
from estimation.core.inference.unknown import Reason
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.results import Evaluation, MeasureResult
from estimation.core.sampling.interval_kinds import INTERVAL_KINDS, IntervalKind
from estimation.formats.collections.files import read_collection
from estimation.formats.runs import read_run
from estimation.management.arguments import named
from estimation.management.purposes import purpose_of
from estimation.unknown import Purpose, continued, name_of
from estimation.validity import of_a_file
from judging.formats.problems import Problem, Problems, UnreadableError

FORMATS = ("trec_eval", "json")
SHOWN_ERRORS = 10
Read = TypeVar("Read")


class Command(BaseCommand):
    help = (
        "Estimates runs from a judged collection (collection.zip, one of the reports of a round), "
        "with intervals. Needs no server and no database."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("collection", type=Path, metavar="COLLECTION")
        parser.add_argument("run", type=Path, nargs="+", metavar="RUN", help="plain or .gz")
        parser.add_argument(
            "--measure", action="append", metavar="M",
            help="e.g. DCG@10; may be repeated; by default the measures of the round",
        )  # fmt: skip
        parser.add_argument(
            "--format", type=named(FORMATS), default=FORMATS[0], metavar="FORM",
            help=f"one of {', '.join(FORMATS)}",
        )  # fmt: skip
        parser.add_argument("--confidence", type=float, default=0.95, help="of the intervals")
        parser.add_argument(
            "--interval", type=named(INTERVAL_KINDS), default=INTERVAL_KINDS[0], metavar="KIND",
            help=f"one of {', '.join(INTERVAL_KINDS)}; the guaranteed ones are for draws with "
            "replacement (iid) or Poisson samples, and for measures that are sums of gains",
        )  # fmt: skip
        parser.add_argument(
            "--per-topic", action="store_true", help="also the estimated value of every topic"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        confidence = options["confidence"]
        if not 0.0 < confidence < 1.0:
            raise CommandError(f"--confidence must lie between 0 and 1, not {confidence}.")
        chosen = [_measure(text) for text in options["measure"] or ()]
        collection = self._read(options["collection"], read_collection)
        measures = tuple(dict.fromkeys(chosen)) or collection.measures
        interval = options["interval"]
        if interval not in collection.intervals:
            allowed = f"one of {', '.join(collection.intervals)} for this collection"
            raise CommandError(f"--interval must be {allowed}, not {interval!r}.")
        runs = self._runs(options["run"], collection)
        try:
            evaluation = collection.evaluate(
                runs, measures=measures, confidence=confidence, interval=interval
            )
        except (MeasureError, PoolError) as error:
            raise CommandError(str(error)) from None
        for warning in _warnings(evaluation, collection, interval):
            self.stderr.write(f"warning: {warning}", self.style.WARNING)
        if evaluation.look is not None:
            holds = of_a_file(evaluation.look, confidence=confidence)
            self.stderr.write(f"note: {holds.why}", str)
        topics = collection.topics if options["per_topic"] else ()
        if options["format"] == "json":
            records = list(_records(evaluation, collection, tuple(runs), topics))
            self.stdout.write(json.dumps(records, indent=1, allow_nan=False))
        else:
            for line in _lines(evaluation, tuple(runs), topics):
                self.stdout.write(line)

    def _runs(self, paths: Sequence[Path], collection: RoundCollection) -> dict[str, RankedLists]:
        """Runs by their tag, in the order in which they were given."""
        topics = frozenset(collection.topics)
        runs: dict[str, RankedLists] = {}
        for path in paths:
            run = self._read(path, lambda file, seen: read_run(file, seen, topics=topics))
            if run.tag in runs:
                raise CommandError(f"{path}: another file has the run {run.tag} already.")
            runs[run.tag] = replace(run.lists, scores=run.scores)
        return runs

    def _read(self, path: Path, reader: Callable[[IO[bytes], Problems], Read | None]) -> Read:
        """Read a file whole; errors in it end the command, warnings are told."""
        problems, content = Problems(str(path)), None
        try:
            with path.open("rb") as file:
                content = reader(file, problems)
        except UnreadableError:
            pass
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
        for problem in problems.warnings:
            self.stderr.write(f"warning: {_told(problem)}", self.style.WARNING)
        if content is None or not problems.ok:
            raise CommandError("\n".join(_errors(problems)))
        return content


def _measure(text: str) -> Measure:
    try:
        return parse_measure(text)
    except MeasureError as error:
        raise CommandError(f"--measure {text}: {error}") from None


def _told(problem: Problem) -> str:
    return f"{problem.file}:{problem.line or '-'}: {problem.field or 'file'}: {problem.message}"


def _errors(problems: Problems) -> Iterator[str]:
    shown = problems.errors[:SHOWN_ERRORS]
    yield from map(_told, shown)
    if problems.error_count > len(shown):
        yield f"… and {problems.error_count - len(shown)} more errors"


def _warnings(
    evaluation: Evaluation, collection: RoundCollection, interval: IntervalKind
) -> Iterator[str]:
    """What keeps a number from being an unbiased estimate of what its name says."""
    for result in evaluation.results:
        measure, depth = result.measure, collection.depth
        if result.interval != interval:
            yield f"{measure} has no {interval} intervals; they are {result.interval} ones"
        if measure.cutoff is not None and measure.cutoff > depth:
            yield f"{measure} is cut at rank {depth}, the depth of the collection's pool"
        yield from _not_known(result, purpose_of(collection, result))
        reached, unknown = result.support.tolist(), result.estimate.unknown.tolist()
        for tag, support, reason in zip(result.runs, reached, unknown, strict=True):
            if support == 1.0 or reason:
                continue
            missing = f"{100.0 * (1.0 - support):.3g} % of its"
            if measure.family == "ratio":
                yield (
                    f"{tag}: {measure} may be too high or too low: {missing} weight, or of the "
                    "documents that it depends on, could not be sampled"
                )
            else:
                what = "pairs of documents" if collection.is_of_preferences else "documents"
                yield (
                    f"{tag}: {measure} is a lower bound: {missing} weight is on {what} that "
                    "could not be sampled"
                )


def _not_known(result: MeasureResult, purpose: Purpose) -> Iterator[str]:
    """Values that are not known, each with why and what would mend it."""
    for tag, reason in zip(result.runs, result.estimate.unknown.tolist(), strict=True):
        if why := purpose.of_value(reason, tag):
            yield f"{tag}: {result.measure} is {continued(why)}"


def _numbers(result: MeasureResult, place: int) -> dict[str, float | None]:
    """The numbers of a run, the value first; what is not known has no value and no error."""
    shown, known = result.estimate, result.estimate.unknown[place] == Reason.KNOWN
    return {
        "value": float(shown.value[place]) if known else None,
        "low": float(shown.low[place]),
        "high": float(shown.high[place]),
        "se": float(shown.se[place]) if known else None,
        "support": float(result.support[place]),
        "effective_sample_size": float(result.effective_sample_size[place]),
    }


def _topic_values(result: MeasureResult, place: int) -> list[float]:
    """The estimated value of every topic; their mean is the value. None if that is not known."""
    if result.estimate.unknown[place]:
        return []
    values: list[float] = (result.by_topic[:, place] * len(result.by_topic)).tolist()
    return values


SUFFIXES = {
    "value": "", "low": "_low", "high": "_high", "se": "_se", "support": "_support",
    "effective_sample_size": "_ess",
}  # fmt: skip


def _lines(evaluation: Evaluation, tags: Sequence[str], topics: Sequence[str]) -> Iterator[str]:
    """Lines in trec_eval's columns: name, topic, value; topics before all, as its -q does."""
    for tag in tags:
        yield f"{'runid':<22}\tall\t{tag}"
        for result in evaluation.results:
            place = result.runs.index(tag)
            for topic, of_topic in zip(topics, _topic_values(result, place), strict=False):
                yield f"{result.measure!s:<22}\t{topic}\t{of_topic:6.4f}"
            for name, value in _numbers(result, place).items():
                said = "unknown" if value is None else f"{value:6.4f}"
                yield f"{f'{result.measure}{SUFFIXES[name]}':<22}\tall\t{said}"
            if len(tags) > 1 and (tier := int(result.tiers[place])):
                yield f"{f'{result.measure}_tier':<22}\tall\t{tier}"
            if reason := name_of(result.estimate.unknown[place]):
                yield f"{f'{result.measure}_unknown':<22}\tall\t{reason}"


def _records(
    evaluation: Evaluation, collection: RoundCollection, tags: Sequence[str], topics: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for tag in tags:
        for result in evaluation.results:
            place, purpose = result.runs.index(tag), purpose_of(collection, result)
            reason = int(result.estimate.unknown[place])
            record: dict[str, Any] = {"tag": tag, "measure": str(result.measure)}
            record |= {name: _known(v) for name, v in _numbers(result, place).items()}
            why = purpose.of_value(reason, tag)
            record |= {"unknown": name_of(reason), "unknown_why": why}
            bounded = 0.0 < result.support[place] < 1.0 and result.measure.family != "ratio"
            record |= {"lower_bound": bool(bounded), "confidence": evaluation.confidence}
            record["interval"] = result.interval
            record["validity"] = vars(of_a_file(evaluation.look, confidence=evaluation.confidence))
            if len(tags) > 1:
                record["tier"] = int(result.tiers[place]) or None
                record["differences"] = [
                    _difference(result, purpose, place, other)
                    for other in map(result.runs.index, tags)
                    if other != place
                ]
            if topics:
                values = map(_known, _topic_values(result, place))
                record["topics"] = None if reason else dict(zip(topics, values, strict=True))
            yield record


def _difference(result: MeasureResult, purpose: Purpose, place: int, other: int) -> dict[str, Any]:
    """The run's value less another's, with the interval of this difference alone, if known."""
    ranking, reason = result.ranking, int(result.ranking.unknown[place, other])
    value, margin = float(ranking.difference[place, other]), float(ranking.margin[place, other])
    se = float(ranking.difference_se[place, other])
    adjusted = float(ranking.adjusted_p[place, other])
    low, high = ends(value, margin, adjusted)
    numbers = {"value": value, "low": low, "high": high, "se": se}
    return {
        "tag": result.runs[other],
        **{name: None if reason else _known(number) for name, number in numbers.items()},
        "adjusted_p": _known(adjusted),
        "verdict": int(ranking.verdicts[place, other]),
        "settled": bool(ranking.verdicts[place, other]) and adjusted == 0.0,
        **_equivalent(result, place, other),
        "unknown": name_of(reason),
        "unknown_why": purpose.of_difference(reason, result.runs[place], result.runs[other]),
    }


def _equivalent(result: MeasureResult, place: int, other: int) -> dict[str, Any]:
    """Whether two runs are as good as equal, where the round says which differences matter."""
    found = result.equivalence
    if found is None:
        return {}
    alike = bool(found.pairs(result.ranking.unknown)[place, other])
    return {"negligible": found.within, "equivalent": alike}


def _known(value: float | None) -> float | None:
    """JSON has no infinity: null instead."""
    return value if value is not None and math.isfinite(value) else None

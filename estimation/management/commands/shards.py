"""``manage.py shards``: collections that are too large for one process, in shards by topic."""

import argparse
import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from estimation.core.archives import ArchiveError
from estimation.core.arrays import check_fraction, check_whole
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.sampling.allocation import check_budget
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.priors import PRIORS
from estimation.core.shards.building import ShardedPool, build_shards
from estimation.core.shards.designing import ShardedSample, design_shards, draw_shards
from estimation.core.shards.executors import open_executor
from estimation.core.shards.frames import MOST_SHARDS
from estimation.core.shards.places import Place, place_of
from estimation.core.shards.running import do_steps
from estimation.core.shards.values import (
    COMPLETE,
    SAMPLED,
    check_families,
    estimate_shards,
    evaluate_shards,
    judged_topics,
)
from estimation.formats.shard_inputs import QrelsFileLines, RunFileLines, refuse_shared_lists
from estimation.management.arguments import named

MOST_ATTEMPTS = 3
GOALS = ("absolute", "ranking")
LEAST = {"depth": 1, "shards": 1, "workers": 0, "budget": 1, "batch_size": 1}
MEASURES = ("P@10", "nDCG@100", "AP")
HELD = "each process holds a file, or one of the --shards, whole"


class Command(BaseCommand):
    help = (
        "Pools, samples and evaluates runs of any size, in shards by topic: by processes of this "
        "machine, or by the Dask cluster of DASK_SCHEDULER. What is done is kept in FOLDER and not "
        "done again. Needs no server and no database."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "folder", type=place_of, metavar="FOLDER",
            help="of results, which all workers see; or an address that fsspec knows, such as "
            "s3://BUCKET/PREFIX (pip install s3fs)",
        )  # fmt: skip
        parser.add_argument("run", type=Path, nargs="+", metavar="RUN", help="file, plain or .gz")
        parser.add_argument(
            "--depth", type=int, default=1000,
            help="documents per topic and run: lists are cut there, for AP and Rprec too",
        )  # fmt: skip
        parser.add_argument(
            "--shards", type=int, default=8, help="at most one a topic; changes no number"
        )
        parser.add_argument("--workers", type=int, default=2, help="processes; 0: this one alone")
        parser.add_argument(
            "--qrels", type=Path, help="complete judgments, one line a document; unlisted are 0"
        )
        parser.add_argument(
            "--measure",
            action="append",
            metavar="M",
            help=f"to evaluate; may be repeated; by default {', '.join(MEASURES)}",
        )
        parser.add_argument("--budget", type=int, help="pairs to draw, as expected")
        parser.add_argument("--batch-size", type=int, help="by default the budget")
        parser.add_argument("--design-measure", default="DCG@100", metavar="M")
        parser.add_argument(
            "--goal", type=named(GOALS), default=GOALS[0],
            help=f"of all runs: one of {', '.join(GOALS)}",
        )  # fmt: skip
        parser.add_argument(
            "--prior", type=named(tuple(PRIORS)), default="rank",
            help=f"one of {', '.join(PRIORS)}",
        )  # fmt: skip
        parser.add_argument("--floor", type=float, default=0.1)
        parser.add_argument("--seed", default="evalsite")
        parser.add_argument("--judged", type=Path, help="qrels of the sample, to estimate from")

    def handle(self, *_args: Any, **options: Any) -> None:
        workers, scheduler = options["workers"], settings.DASK_SCHEDULER
        try:
            measures, design_measure = _checked(options)
            for attempt in range(MOST_ATTEMPTS):
                try:
                    with open_executor(workers, scheduler=scheduler) as executor:
                        self._work(executor, measures, design_measure, options)
                    return
                except BrokenExecutor:
                    if attempt == MOST_ATTEMPTS - 1:
                        told = f"Workers ended {MOST_ATTEMPTS} times, perhaps for want of memory"
                        raise CommandError(f"{told}: {HELD}.") from None
                    self.stderr.write("A worker ended. What was done is kept; the rest goes on.")
        except ArchiveError as error:
            told = "What is damaged is a result, or a copy of one: delete it, and it is made again."
            raise CommandError(f"{error}. {told}") from None
        except MemoryError:
            raise CommandError(f"There was not enough memory: {HELD}.") from None
        except (ValueError, OSError, ImportError) as error:
            raise CommandError(str(error)) from None

    def _work(
        self,
        executor: Executor,
        measures: Sequence[Measure],
        design_measure: Measure,
        options: dict[str, Any],
    ) -> None:
        root = options["folder"]
        runs = _different(options["run"])
        # What people judged is little, and read first: runs may take hours.
        judged = {
            name: do_steps(
                executor, [QrelsFileLines(root, *_named(options[name]), once=name == "qrels")]
            )
            for name in ("qrels", "judged")
            if options[name]
        }
        inputs = do_steps(executor, [RunFileLines(root, *named) for named in runs])
        refuse_shared_lists([path for path, _ in runs], inputs)
        pool = build_shards(
            executor, root, inputs, shards=options["shards"], depth=options["depth"]
        )
        frame = pool.frame
        self.stdout.write(
            f"{pool.pairs} pairs and {pool.entries} entries of {len(frame.topics)} topics and "
            f"{len(frame.runs)} runs"
        )
        if "qrels" in judged:
            self._evaluate(executor, root, pool, judged["qrels"], measures)
        if options["budget"] is not None:
            sample = self._sample(executor, root, pool, measures, design_measure, options)
            if "judged" in judged:
                self._estimate(executor, root, pool, sample, measures, judged["judged"])

    def _evaluate(
        self,
        executor: Executor,
        root: Place,
        pool: ShardedPool,
        judgments: Sequence[Place],
        measures: Sequence[Measure],
    ) -> None:
        values = evaluate_shards(executor, pool, judgments, measures=measures).mean(axis=1)
        judged = judged_topics(judgments)
        if judged != pool.frame.topics:
            of_runs = len(set(judged).intersection(pool.frame.topics))
            told = f"values are means over the {len(judged)} topics that are judged"
            self.stdout.write(f"{told}, of which runs return {of_runs}")
        rows = [
            (tag, measure, repr(value))
            for measure, of_runs in zip(measures, values.tolist(), strict=True)
            for tag, value in zip(pool.frame.runs, of_runs, strict=True)
        ]
        self._write(root / "values.tsv", ("run", "measure", "value"), rows)

    def _sample(
        self,
        executor: Executor,
        root: Place,
        pool: ShardedPool,
        measures: Sequence[Measure],
        design_measure: Measure,
        options: dict[str, Any],
    ) -> ShardedSample:
        design = design_shards(
            executor,
            pool,
            goal=Goal(options["goal"], pool.frame.runs),
            measure=design_measure,
            budget=options["budget"],
            batch_size=options["batch_size"] or options["budget"],
            prior=options["prior"],
            reported=measures,
            floor=options["floor"],
        )
        sample = draw_shards(executor, design, seed=options["seed"])
        self._write(
            root / "sample.tsv", ("topic", "docno", "batch", "probability"), _rows(pool, sample)
        )
        return sample

    def _estimate(
        self,
        executor: Executor,
        root: Place,
        pool: ShardedPool,
        sample: ShardedSample,
        measures: Sequence[Measure],
        judgments: Sequence[Place],
    ) -> None:
        rows = []
        for measure in measures:
            if measure.family not in SAMPLED:
                self.stderr.write(f"note: {measure} is not estimated from shards yet")
                continue
            if (measure.cutoff or 0) > pool.frame.depth:
                told = f"{measure} is cut at rank {pool.frame.depth}, the --depth of the pool"
                self.stderr.write(f"note: {told}")
            found = estimate_shards(executor, pool, sample, judgments, measure=measure)
            errors = np.sqrt(np.diag(found.covariance)).tolist()
            shown = zip(pool.frame.runs, found.value.tolist(), errors, strict=True)
            rows += [(tag, measure, repr(value), repr(error)) for tag, value, error in shown]
        self._write(root / "estimates.tsv", ("run", "measure", "value", "se"), rows)

    def _write(self, file: Place, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        lines = ["\t".join(map(str, row)) + "\n" for row in (columns, *rows)]
        content = "".join(lines).encode()
        if isinstance(file, Path):
            draft = file.with_name(f".{file.name}")
            draft.write_bytes(content)
            draft.replace(file)
        else:
            file.write(content)
        self.stdout.write(f"{file}: {len(lines) - 1} rows")


def _checked(options: dict[str, Any]) -> tuple[list[Measure], Measure]:
    """The measures, and that of the design; whatever is wrong is said before runs are read."""
    for name, least in LEAST.items():
        if options[name] is not None and options[name] < least:
            option = f"--{name.replace('_', '-')}"
            raise CommandError(f"{option} must be at least {least}, not {options[name]}.")
    check_whole(options["shards"], name="--shards", most=MOST_SHARDS)
    check_fraction(options["floor"], name="--floor")
    measures = [parse_measure(text) for text in options["measure"] or MEASURES]
    design_measure = parse_measure(options["design_measure"])
    if options["qrels"]:
        check_families(measures, COMPLETE)
        _check_depth(measures, options["depth"])
    if options["budget"] is not None:
        _check_sample([*measures, design_measure], options)
    elif options["judged"]:
        raise CommandError("--judged is of a sample: give the --budget that it was drawn with.")
    return measures, design_measure


def _check_sample(measures: Sequence[Measure], options: dict[str, Any]) -> None:
    budget = options["budget"]
    check_budget(budget, options["batch_size"] or budget, None, pairs=budget, again=False)
    for measure in measures:
        measure.check_pooled(preferences=False, scores=False)
    if options["goal"] == "ranking" and len(options["run"]) == 1:
        raise CommandError("--goal ranking needs at least 2 runs, not 1.")


def _check_depth(measures: Sequence[Measure], depth: int) -> None:
    for measure in measures:
        if measure.cutoff is not None and measure.cutoff > depth:
            told = f"--depth must be at least the cutoff of {measure}, not {depth}"
            raise CommandError(f"{told}; --measure says what is evaluated.")


def _rows(pool: ShardedPool, sample: ShardedSample) -> Iterable[tuple[object, ...]]:
    columns = (sample.topic, sample.docno, sample.batch, sample.probability)
    for topic, docno, batch, chance in zip(*(each.tolist() for each in columns), strict=True):
        yield pool.frame.topics[topic], docno.decode(), batch, repr(chance)


def _different(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """The files, none of them twice: that every docno comes twice would name no file."""
    named = [_named(path) for path in paths]
    first: dict[str, Path] = {}
    for path, (_, digest) in zip(paths, named, strict=True):
        if digest in first:
            raise CommandError(f"{path} has the same content as {first[digest]}.")
        first[digest] = path
    return named


def _named(path: Path) -> tuple[Path, str]:
    """A file, and the SHA-256 of what is in it."""
    with path.open("rb") as file:
        return path.resolve(), hashlib.file_digest(file, "sha256").hexdigest()

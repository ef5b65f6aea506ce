"""The options of ``manage.py simulate``, checked as far as they can be without the collection."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from django.core.management.base import CommandError

from estimation.core.arrays import nearest
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.stopping import StoppingRule
from estimation.core.sampling import goals
from estimation.core.sampling.designs import Rule
from estimation.core.sampling.interval_kinds import INTERVAL_KINDS, IntervalKind
from estimation.core.sampling.methods import interval_kinds
from estimation.core.sampling.priors import NAMES
from estimation.research.trials.methods import METHODS, methods_for
from estimation.research.trials.settings import UNITS, Assessors, Unit

LOGARITHMS = {"e": "ln", "2": "log2"}
GAINS = ("linear", "exp")
RULES = ("first", "second")
UNAIDED = tuple(name for name in NAMES if name != "scores")
PRIORS = (*UNAIDED, "scores:FILE")
ALL = "all"
DEFAULT_METHODS = ("adaptive", "poisson", "iid", "uniform")
HELPED_METHOD = "difference"
DEFAULT_DEPTH, PREFERENCE_DEPTH = 100, 10


@dataclass(frozen=True)
class SimulationPlan:
    """What is to be simulated; None where the collection decides.

    `takes_what_works`: methods that cannot work with a goal or budget are left out, not refused.
    """

    measure: Measure
    goals: tuple[str, ...]
    runs: tuple[str, ...] | None
    systems: tuple[str, ...] | None
    baseline: str | None
    methods: tuple[str, ...]
    takes_what_works: bool
    prior: str
    predicted: tuple[Path, ...]
    rule: Rule | None
    budgets: tuple[int, ...] | None
    unit: Unit
    trials: int
    looks: int
    anytime: bool
    stop: StoppingRule | None
    negligible: float
    jobs: int
    seed: str
    depth: int
    assessors: Assessors
    interval: IntervalKind


def read_plan(options: Mapping[str, Any]) -> SimulationPlan:
    """Check options as typed; raise CommandError with option, value and what is accepted."""
    measure = _measure(options["measure"], options["log_base"], options["gain"])
    kinds = _names("--goal", options["goal"], goals.KINDS)
    if options["baseline"] and "baseline" not in kinds:
        raise CommandError(f"--baseline {options['baseline']} is for --goal baseline only.")
    prior, predicted = _prior(str(options["prior"]), options["predictions"])
    if measure.is_by_run:
        prior = _prior_by_run(prior, measure, predicted)
    rule = options["prior_rule"] and _name("--prior-rule", options["prior_rule"], RULES)
    labels = _whole("--labels-per-pair", options["labels_per_pair"])
    interval = _interval(options["interval"], measure)
    looks = _whole("--looks", options["looks"])
    able = _able(measure, interval, predictors=len(predicted))
    return SimulationPlan(
        measure=measure,
        goals=kinds,
        runs=options["only_runs"] and _split("--runs", options["only_runs"]),
        systems=options["systems"] and _split("--systems", options["systems"]),
        baseline=options["baseline"],
        methods=_methods(
            options["method"], measure, interval, _serving(able, options, kinds), looks
        ),
        takes_what_works=options["method"] == ALL,
        prior=prior,
        predicted=predicted,
        rule=cast(Rule | None, rule),
        budgets=options["budget"] and _budgets(options["budget"]),
        unit=cast(Unit, _name("--budget-unit", options["budget_unit"], UNITS)),
        trials=_whole("--trials", options["trials"]),
        looks=looks,
        anytime=bool(options["anytime"]),
        stop=_stop(options["stop"], looks),
        negligible=_negligible(options["negligible"]),
        jobs=_whole("--jobs", options["jobs"]),
        seed=str(options["seed"]),
        depth=_depth(options["depth"], measure),
        assessors=Assessors(labels, _noise(options["assessor_noise"])),
        interval=interval,
    )


def _stop(text: str | None, looks: int) -> StoppingRule | None:
    """A rule, as best, top=3 or width=0.2."""
    if text is None:
        return None
    if looks == 1:
        raise CommandError("--stop needs several looks; say how many with --looks.")
    kind, _, number = text.partition("=")
    try:
        if kind == "top":
            return StoppingRule("top", top=_whole("--stop top=M", number))
        if kind == "width":
            return StoppingRule("width", width=float(number))
    except ValueError:
        raise CommandError(f"--stop width=W needs a number above 0, not {number!r}.") from None
    if text != "best":
        raise CommandError(f"--stop must be best, top=M or width=W, not {text!r}.")
    return StoppingRule("best")


def _negligible(text: object) -> float:
    try:
        found = float(str(text))
    except ValueError:
        found = math.nan
    if not 0.0 <= found < math.inf:
        raise CommandError(f"--negligible must be 0, or a difference above 0, not {text!r}.")
    return found


# --------------------------------------------------------------------------------- kinds of values


def _split(option: str, text: object) -> tuple[str, ...]:
    """The parts of a list with commas; none empty, none twice."""
    parts = tuple(part.strip() for part in str(text).split(","))
    if not all(parts):
        raise CommandError(f"{option} must be parts with commas between them, not {text!r}.")
    for place, part in enumerate(parts):
        if part in parts[:place]:
            raise CommandError(f"{option} has {part!r} twice.")
    return parts


def _name(option: str, text: object, accepted: Sequence[str]) -> str:
    if text not in accepted:
        meant = nearest(text, accepted)
        raise CommandError(f"{option} must be one of {', '.join(accepted)}, not {text!r}{meant}.")
    return str(text)


def _names(option: str, text: object, accepted: Sequence[str]) -> tuple[str, ...]:
    return tuple(_name(option, part, accepted) for part in _split(option, text))


def _whole(option: str, text: object) -> int:
    if re.fullmatch(r"[1-9][0-9]{9,}", str(text)):
        raise CommandError(f"{option} must be at most 999999999, not {text!r}.")
    if not re.fullmatch(r"[0-9]{1,9}", str(text)) or int(str(text)) < 1:
        raise CommandError(f"{option} must be a whole number of at least 1, not {text!r}.")
    return int(str(text))


def _budgets(text: object) -> tuple[int, ...]:
    return tuple(_whole("--budget", part) for part in _split("--budget", text))


# ------------------------------------------------------------------------------------- the measure


def _measure(text: str, log_base: str | None, gain: str | None) -> Measure:
    """The measure, in the variant that the options ask for."""
    try:
        measure = parse_measure(text)
    except MeasureError as error:
        raise CommandError(f"--measure {text!r}: {error}.") from None
    measure = _varied(measure, text, "--log-base", log_base, tuple(LOGARITHMS), _with_logarithm)
    return _varied(measure, text, "--gain", gain, GAINS, _with_gain)


def _varied(
    measure: Measure,
    text: str,
    option: str,
    value: str | None,
    accepted: Sequence[str],
    variant: Callable[[Measure, str], Measure | None],
) -> Measure:
    if value is None:
        return measure
    changed = variant(measure, _name(option, value, accepted))
    if changed is None:
        raise CommandError(f"{option} {value}: {measure} has no such choice.")
    if "(" in text and changed != measure:
        raise CommandError(f"{option} {value} contradicts --measure {text}.")
    return changed


def _with_logarithm(measure: Measure, base: str) -> Measure | None:
    params = dict(measure.params)
    if "dcg" not in params:
        return None
    exponential = "exp-" if str(params["dcg"]).startswith("exp-") else ""
    return replace(measure, params=(("dcg", exponential + LOGARITHMS[base]),))


def _with_gain(measure: Measure, gain: str) -> Measure | None:
    params = dict(measure.params)
    if "gain" in params:
        return replace(measure, params=(("gain", gain),))
    if "dcg" not in params:
        return None
    logarithm = str(params["dcg"]).removeprefix("exp-")
    return replace(measure, params=(("dcg", ("exp-" if gain == "exp" else "") + logarithm),))


def _depth(text: object, measure: Measure) -> int:
    of_two = measure.family == "preference"
    if text is None:
        return measure.cutoff or (PREFERENCE_DEPTH if of_two else DEFAULT_DEPTH)
    depth = _whole("--depth", text)
    if of_two and depth < 2:
        raise CommandError(f"--depth must be at least 2 for {measure}, not {depth}.")
    if depth < (measure.cutoff or 1):
        raise CommandError(f"--depth must be at least the cutoff of {measure}, not {depth}.")
    return depth


# ------------------------------------------------------------------------------ the other options


def _interval(text: object, measure: Measure) -> IntervalKind:
    kind = cast(IntervalKind, _name("--interval", text, INTERVAL_KINDS))
    if kind != "student" and not methods_for(measure, interval=kind):
        raise CommandError(f"--interval must be student for {measure}, not {kind!r}.")
    return kind


def _able(measure: Measure, interval: IntervalKind, *, predictors: int) -> tuple[str, ...]:
    names = methods_for(measure, interval=interval)
    return tuple(name for name in names if predictors == 1 or name != HELPED_METHOD)


def _methods(
    text: object, measure: Measure, interval: IntervalKind, able: tuple[str, ...], looks: int
) -> tuple[str, ...]:
    if text is None:
        able = tuple(name for name in able if looks == 1 or METHODS[name].has_batches)
        return tuple(name for name in DEFAULT_METHODS if name in able) or able
    if text == ALL:
        return able
    methods = _names("--method", text, (*METHODS, ALL))
    for name in methods:
        if name not in able:
            raise CommandError(_unable(name, measure, interval, able))
    return methods


def _serving(
    able: tuple[str, ...], options: Mapping[str, Any], kinds: Sequence[str]
) -> tuple[str, ...]:
    """Those that can have the goals, where no method is named; who names one is told why not."""
    if options["method"] is not None:
        return able
    return tuple(name for name in able if {*kinds} <= {*goals.kinds_for(name)})


def _unable(name: str, measure: Measure, interval: IntervalKind, able: Sequence[str]) -> str:
    listed = ", ".join(able)
    if name not in methods_for(measure):
        return f"--method {name} does not estimate {measure}; {listed} can."
    if interval not in interval_kinds(name):
        allowed = ", ".join(interval_kinds(name))
        return f"--method {name} has the intervals {allowed}, not {interval!r}; {listed} can."
    needed = "--predictions FILE, once, or --prior scores:FILE"
    return f"--method {name} needs predicted grades, of one alone: {needed}."


def _prior(text: str, predictions: Sequence[str]) -> tuple[str, tuple[Path, ...]]:
    """The name of the prior, and the files of predicted grades, for the prior or the estimate."""
    kind, separator, path = text.partition(":")
    if kind == "scores" and path:
        if predictions:
            listed = " ".join(predictions)
            raise CommandError(
                f"--predictions {listed} is for other priors than {text}; with --prior scores "
                "all of them serve for the prior as well."
            )
        return kind, (Path(path),)
    if separator or kind not in (UNAIDED + ("scores",) * bool(predictions)):
        told = f"--prior must be one of {', '.join(PRIORS)}, not {text!r}"
        raise CommandError(f"{told}{nearest(text, PRIORS)}.")
    return kind, tuple(map(Path, predictions))


def _prior_by_run(prior: str, measure: Measure, predicted: Sequence[Path]) -> str:
    """How much a pair matters is known from the runs; predicted grades are of single documents."""
    if predicted and measure.family == "preference":
        raise CommandError(f"--predictions are of single documents; {measure} compares two.")
    if prior not in ("rank", "constant"):
        raise CommandError(f"--prior must be constant for {measure}, not {prior!r}.")
    return "constant"


def _noise(text: object) -> float:
    try:
        noise = float(str(text))
    except ValueError:
        noise = math.nan
    if not 0.0 <= noise <= 1.0:
        raise CommandError(f"--assessor-noise must be a number between 0 and 1, not {text!r}.")
    return noise

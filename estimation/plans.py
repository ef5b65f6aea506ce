"""What a round is made of: the one declaration of its options.

The form, the bodies and answers of the REST interface, the checks of the service, the name of a
design and what is quoted of it follow from here. A column of the same name in `models.Round` keeps
the choice.
"""

from dataclasses import dataclass, fields, replace

from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.sampling.goals import kinds_for
from estimation.core.sampling.methods import MOST_FURTHER, MOST_TOGETHER, SAMPLING_METHODS
from estimation.material import taking_part
from estimation.models import Prediction, Round
from estimation.options import NamedRows, Option, declared, having, option

MAX_MEASURES = 10
LONGEST_MEASURE = 60
MAX_PREDICTIONS = 10
"""Columns of predicted grades of a round."""
RUNS = NamedRows("tag", taking_part)
GRADES = NamedRows(
    "name", lambda campaign: campaign.predictions.exclude(form=Prediction.Form.COSTS)
)
TABLES = NamedRows("name", lambda campaign: campaign.predictions.filter(form=Prediction.Form.COSTS))
OWN = "The method's own"
SHARE = "Expected a share from 0 to 1."
EPS = (
    "Only for draws with replacement: added to every pair's weight times its chance of relevance, "
    "so that no pair is left out."
)


USUAL, OTHERWISE = "adaptive", "poisson"
"""The method of a round for which none is chosen, and that where the first one cannot do it."""
BATCHES, LEAST_BATCH, FEWEST = 10, 10, 60
"""Of those that are chosen: how many batches, how many pairs in one, and how large a budget is from
which the usual method is never worse than the other (docs/decisions/0044)."""


@dataclass(frozen=True)
class RoundPlan:
    """The choices of a round.

    Runs are named by their tags, predicted grades and tables of costs by their name. Empty means:
    the usual method and batches, a fresh seed, the method's own rule and estimator; no depth means
    that of the campaign. With costs other than equal, budget and batch size are in their unit.
    """

    measure: str = option(
        help="The measure that the sample is made for, written as ir-measures writes it.",
        asked="As ir-measures writes it: P@10, DCG@10, AP, nDCG@10, ERR@20, #ofSwaps …",
        required=True, initial="DCG@10", longest=LONGEST_MEASURE,
        attrs={"list": "measures", "autocomplete": "off"},
    )  # fmt: skip
    budget: int = option(
        help="How many (topic, document) pairs to judge, as expected over all batches.",
        asked="Pairs to draw, in expectation; with costs what they cost together.",
        answered="In the unit of the costs; batch_size as well.",
        required=True, initial=1000, wide=False, least=1, most=10_000_000,
    )  # fmt: skip
    batch_size: int | None = option(
        default=None,
        help="The estimates are computed anew after each batch, and adaptive rounds learn. Left "
        "empty: a tenth of the budget.",
        asked="Null or left out: a tenth of the budget, and ten pairs at least.",
        answered="Never null.",
        wide=False, least=1, attrs={"placeholder": "a tenth"},
    )  # fmt: skip
    goal: str = option(
        default=Round.Goal.ABSOLUTE,
        help="What the sample shall be best at. Other numbers are estimated all the same. An "
        "adaptive round can look for the best run: its batches go to whoever is still in the race.",
        asked="What the sample shall be best at; winner: adaptive rounds alone.",
        required=True, choices=Round.Goal, of_method=lambda method: kinds_for(method.name),
        refusal="Only a round that learns from its batches can look for the best run: {methods}. "
        "With {method}, choose the ranking of all runs.",
    )  # fmt: skip
    run: str = option(
        default="",
        help="The run whose value, or difference, is wanted.",
        asked="Tag of the run that the goals single and pair are about.",
        named=RUNS, only="run", wide=False,
    )  # fmt: skip
    baseline: str = option(
        default="",
        help="The run that it is compared with.",
        asked="Tag of the run that the goals baseline and pair compare with.",
        named=RUNS, only="baseline", wide=False,
    )  # fmt: skip
    reported: list[str] = option(  # noqa: RUF009
        "Further measures", default=[],
        help="Estimated from the same judgments, as far as they reach. At most 10.",
        asked="Further measures to estimate.",
        longest=MAX_MEASURES * LONGEST_MEASURE,
        attrs={"placeholder": "P@10, RBP(p=0.8)", "autocomplete": "off"},
    )  # fmt: skip
    prior: str = option(
        default=Round.Prior.RANK,
        help="Which documents are expected to be relevant before anybody has judged. "
        "It decides how precise the numbers are, never whether they are right.",
        required=True, choices=Round.Prior,
    )  # fmt: skip
    method: str = option(
        default="",
        help="Adaptive learns from every batch and needs several, ten or so. Poisson is planned "
        "once and never draws a pair twice. Independent draws are simpler to describe. Whole "
        "topics serve ERR and RR as well; active sampling serves AP, R-precision and P.",
        asked="Empty or left out: adaptive where it estimates all measures and can do what else is "
        "chosen, with two batches or more of a budget of 60 or more; otherwise poisson.",
        answered="Never empty.",
        required=True, initial=USUAL, choices=Round.Method,
    )  # fmt: skip
    predictions: str = option(
        "Predicted grades", default="",
        help="For the prior of that name, to choose whole topics by, for an adaptive round to "
        "learn from, or to estimate with.",
        asked="Name of uploaded predicted grades: for the prior scores, the methods adaptive and "
        "query, and the estimator difference.",
        named=GRADES, empty="None", only="grades",
    )  # fmt: skip
    more_predictions: list[str] = option(  # noqa: RUF009
        "More predicted grades", default=[],
        help="The model learns what each of them is worth. Several machine judges who err in "
        "their own ways tell more than one.",
        asked="Names of further uploaded predicted grades that an adaptive round learns from, "
        "besides predictions; at most 9, each once.",
        answered="Of other methods empty.",
        named=GRADES, longest=MAX_PREDICTIONS - 1, needs="predictions",
        refusal="{method} does not learn from more predicted grades; take none. Methods that do: "
        "{methods}.",
    )  # fmt: skip
    depth: int | None = option(
        default=None,
        help="How far down the runs are looked at. Left empty: as far as the campaign does; "
        "ten ranks for preferences between documents.",
        asked="Ranks that are looked at.",
        answered="Null: the campaign's.",
        least=1,
    )  # fmt: skip
    eps: float = option(
        "Smoothing", default=0.0,
        help=EPS,
        asked=EPS,
        attrs={"step": "any"}, needs="eps", least=0,
        expected="Expected 0 or a small positive number.",
    )  # fmt: skip
    rule: str = option(
        "Chance of a pair", default="",
        help="How the prior becomes the chance to be drawn. The root is better when the prior "
        "is unsure, and what adaptive, Poisson and priority do by themselves.",
        asked="How priors become sizes; empty: the method's own.",
        answered="Empty: the method's own.",
        choices=Round.Rule, empty=OWN, needs="rule", fact=True,
        refusal="{method} has no rule of sizes. Methods that do: {methods}.",
    )  # fmt: skip
    floor: float = option(
        "Spread evenly", default=0.1,
        help="From 0 to 1: this share of the chances goes to all pairs alike, whatever the "
        "prior says, so that surprises are found. Of adaptive rounds for nDCG, or for some of the "
        "runs, a part of it goes where the values of all runs need it.",
        asked=f"Share of the sizes spread evenly, by {having('floor')}.",
        attrs={"step": "0.05"}, needs="floor", least=0, most=1, expected=SHARE,
    )  # fmt: skip
    costs: str = option(
        "Cost of a pair", default=Round.Costs.EQUAL,
        help="Unequal costs buy more of the cheap pairs and fewer of the dear ones. Budget "
        "and batch size are then counted in costs.",
        asked=f"Of judging a pair, for {having('costs')}. Budget and batch size are "
        "counted in their unit: length: documents of average length; uploaded: that of the table.",
        choices=Round.Costs, needs="costs",
        refusal="{method} takes equal costs only. Methods that take others: {methods}.",
    )  # fmt: skip
    cost_table: str = option(
        "Table of costs", default="",
        help="Every pair of the pool needs a line: topic, docno, cost.",
        asked="Name of an uploaded table of costs: for the costs uploaded.",
        named=TABLES, empty="None", only="uploaded",
    )  # fmt: skip
    interval: str = option(
        "Intervals", default=Round.Interval.STUDENT,
        help="Student's hold if enough pairs carry each estimate. Guaranteed ones hold for "
        "any sample and are far wider.",
        asked="What the method allows; see the guide.",
        choices=Round.Interval, of_method=lambda method: method.intervals, fact=True,
    )  # fmt: skip
    estimator: str = option(
        default="",
        help="Good predicted grades narrow the intervals, bad ones cost nothing; both leave "
        "the estimates unbiased.",
        asked=f"Empty: the method's own; difference: {having('difference')}, with predictions.",
        answered="Empty: the method's own.",
        choices=Round.Estimator, empty=OWN, needs="difference", fact=True,
        refusal="The difference estimator is one for {methods}.",
    )  # fmt: skip
    topic_minimum: int = option(
        "Pairs of a topic together", default=1,
        help="About so many pairs of a topic, on average, in a batch that has any of it. Fewer "
        "topics are to be read, batches are as large as planned, and intervals hardly widen; 5 is "
        "a good number where topics are many. 1: as it comes.",
        asked="Pairs of a topic, about and on average, in a batch that has any of it; "
        f"{having('topic_minimum')}, for sums of gains.",
        needs="topic_minimum", least=1, most=MOST_TOGETHER, fact=True,
        refusal="{method} has no pairs of a topic together. Methods that do: {methods}.",
    )  # fmt: skip
    with_earlier: bool = option(
        "Estimate together with the earlier rounds", default=False,
        help="Uses the judgments of all earlier rounds with the same method, topics and "
        "depth, also if runs came since then; an adaptive round continues the latest one, where it "
        "tops up. Valid if this round was not planned because of what they found.",
        asked="Estimate together with the earlier rounds by the same method, "
        f"{having('with_earlier', last='or')}, whose pool is in this one; adaptive with top_up, of "
        "the latest round alone. preview.earlier names those that count, and why others do not.",
        needs="with_earlier",
        refusal="Rounds of these methods can be estimated together: {methods}.",
    )  # fmt: skip
    top_up: bool = option(
        "Top up what is judged", default=False,
        help="The budget is for new pairs, where earlier judgments say least, as of runs that came "
        "since. Estimated together with earlier Poisson rounds, it fills their chances up; with an "
        "adaptive one it goes on where that ended; otherwise it takes every judged pair of any "
        "round for certain, at no cost.",
        asked="Spend the budget on pairs that are not judged, where earlier judgments say least; "
        f"{having('top_up')}. With with_earlier the chances of the rounds that count are filled "
        "up, or the latest adaptive round is continued; without, every pair in a complete batch of "
        "any round is taken for certain.",
        needs="top_up",
        refusal="Rounds of these methods can top up what is judged: {methods}.",
    )  # fmt: skip
    labels: int = option(
        "Labels per pair", default=1,
        help="So many assessors judge each pair; their labels are averaged.",
        asked="Judgments per pair.",
        required=True, wide=False, least=1, most=20,
    )  # fmt: skip
    extra_share: float = option(
        "Share with one label more", default=0.0,
        help="From 0 to 1. Pairs judged twice show how far assessors agree.",
        asked="Share of pairs that get one judgment more.",
        required=True, initial=0.2, wide=False, attrs={"step": "0.05"}, least=0, most=1,
        expected=SHARE,
    )  # fmt: skip
    further: float = option(
        "Further labels where they pay", default=0.0,
        help="So many more for a pair, on average, to pairs where they lessen the error most. Pays "
        "where nearly all pairs are judged; otherwise a larger budget is better.",
        asked="Labels beyond these, on average of all pairs, that go where they take most off the "
        f"variance; {having('further')}, for sums of gains. With one label per pair, extra_share "
        "must be 0.05 at least.",
        wide=False, attrs={"step": "0.1"}, needs="further", least=0, most=MOST_FURTHER,
        expected=f"Expected 0 to {MOST_FURTHER}.",
        refusal="{method} has no further labels where they pay. Methods that do: {methods}.",
    )  # fmt: skip
    seconds: int = option(
        "Seconds per judgment", default=30,
        help="How long a judgment takes, for the hours of work. No estimate depends on it.",
        asked="Seconds that a judgment takes; of a document of average length where these are what "
        "pairs cost.",
        wide=False, least=1, most=86_400,
    )  # fmt: skip
    keeps_hours: bool = option(
        "Keep to the hours", default=False,
        help="The hours that the budget takes at these seconds are what is kept to. After every "
        "batch the pace of the judgments so far is measured, and later batches have fewer pairs "
        "where people are slower, or more where they are faster, from a quarter to four times as "
        "many as planned.",
        asked="Whether the hours that the budget takes, at so many seconds per judgment and per "
        "topic, are kept: later batches have as many pairs as the hours that are left pay for, by "
        f"the measured pace; {having('keeps_hours')}, with equal costs, without further labels, in "
        "two batches or more.",
        needs="keeps_hours",
        refusal="{method} does not keep to hours by the pace. Methods that do: {methods}.",
    )  # fmt: skip
    topic_seconds: int = option(
        "Seconds per topic", default=0, initial=30,
        help="To read a topic, once in every batch that has some of it; for the hours of work.",
        asked="Seconds that somebody takes to read a topic, once in every batch that has some of "
        "it; for the hours of work alone.",
        wide=False, least=0, most=86_400,
    )  # fmt: skip
    negligible: float = option(
        "Negligible difference", default=0.0,
        help="In units of the measure: two runs that differ by no more are as good as equal, and "
        "the ranking says which are. 0: every difference matters.",
        asked="Differences under the round's measure up to this one do not matter; 0: all do.",
        attrs={"step": "any"}, least=0, fact=True,
        expected="Expected 0, or a difference above 0 in the measure's unit.",
    )  # fmt: skip
    stop_when: str = option(
        "Stop early", default="",
        help="Looked at after every batch, with numbers that hold at every look, so that stopping "
        "makes none of them wrong. What is not judged by then is saved. If the whole budget is "
        "spent, intervals are about 1.14 times as wide as the preview says.",
        asked="When the round ends before its budget is spent: best, top (with stop_top) or width "
        "(with stop_width); empty: never.",
        answered="Empty: never.",
        choices=Round.Stop, empty="When the budget is spent",
    )  # fmt: skip
    stop_top: int = option(
        "First runs", default=3,
        help="How many: each of them known to be better than every other run.",
        asked="For the rule top: how many runs are the first; fewer than there are runs.",
        only="top", wide=False, least=1, most=1000,
    )  # fmt: skip
    stop_width: float = option(
        "Half width", default=0.0,
        help="In units of the measure: the intervals of all runs reach so far to either side.",
        asked="For the rule width: the half width, in the measure's unit, above 0 and at most the "
        "largest value of the measure.",
        attrs={"step": "any"}, only="width", wide=False, least=0,
        expected="Expected 0, or a half width above 0 in the measure's unit.",
    )  # fmt: skip
    seed: str = option(
        default="",
        help="Decides the draw; with it anybody can repeat it. Left empty: a random one.",
        asked="Left out: a fresh one.",
        longest=100, expected="Expected at most 100 printable characters.",
    )  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A part of the form; ``only``: where it is shown, as of options; ``step``: one of the wizard,
    by its name, which is never folded away."""

    title: str
    names: tuple[str, ...]
    only: str = ""
    step: str = ""


SECTIONS = (
    Section("Question", ("goal", "run", "baseline", "measure"), step="question"),
    Section("Target", ("budget",), step="target"),
    Section(
        "Labels", ("labels", "extra_share", "further", "seconds", "topic_seconds", "keeps_hours"),
        step="labels",
    ),
    Section("What is told", ("reported", "negligible")),
    Section("Batches and the end", ("batch_size", "stop_when", "stop_top", "stop_width")),
    Section("What is expected", ("prior", "predictions", "more_predictions")),
    Section("How pairs are drawn", (
        "method", "topic_minimum", "rule", "floor", "eps", "depth", "seed",
    )),
    Section("Costs", ("costs", "cost_table"), only="costs"),
    Section(
        "How the numbers are estimated",
        ("estimator", "interval", "with_earlier", "top_up"),
        only="intervals",
    ),
)  # fmt: skip
"""The form from top to bottom; what is no step of the wizard is folded away."""
QUESTIONS = {
    Round.Goal.ABSOLUTE: "How good is each run?",
    Round.Goal.RANKING: "Which runs are better than which?",
    Round.Goal.WINNER: "Which run is best?",
    Round.Goal.BASELINE: "Which runs are better than the baseline?",
    Round.Goal.PAIR: "Which of two runs is better?",
    Round.Goal.SINGLE: "How good is one run?",
}
"""What a goal answers, as the wizard asks."""


OPTIONS = {each.name: declared(each) for each in fields(RoundPlan)}
"""By name, as `RoundPlan` has them."""
NAMED = {
    name: option.named
    for name, option in OPTIONS.items()
    if option.named and option.kind == "named"
}
"""Those that are a row of the campaign, told by its name."""


def plan_of(row: Round) -> RoundPlan:
    """The choices of a round's row."""
    chosen = {name: getattr(row, name) for name in OPTIONS}
    return RoundPlan(**chosen | {name: str(chosen[name] or "") for name in NAMED})


def facts_of(row: Round) -> list[tuple[str, str]]:
    """The options that a design's facts have a line of, with what was chosen."""
    return [
        (option.label, _said(row, option))
        for name, option in OPTIONS.items()
        if option.fact and getattr(row, name) != option.default
    ]


def _said(row: Round, option: Option) -> str:
    if option.kind == "choice":
        return str(getattr(row, f"get_{option.name}_display")())
    value = getattr(row, option.name)
    return "yes" if value is True else str(value)


def completed(plan: RoundPlan) -> RoundPlan:
    """The plan with the batches and the method that it has where none were chosen.

    Both follow from the other choices alone, before anything is drawn or judged.
    """
    size = plan.batch_size
    if size is None:
        size = min(plan.budget, max(LEAST_BATCH, -(-plan.budget // BATCHES)))
    plan = replace(plan, batch_size=size)
    if plan.method:
        return plan
    other = plan.goal in kinds_for(OTHERWISE) and why_not_usual(plan)
    return replace(plan, method=OTHERWISE if other else USUAL)


def has_usual_batches(plan: RoundPlan) -> bool:
    """Whether its batches are those that it would have if none were chosen."""
    return plan.batch_size == completed(replace(plan, batch_size=None)).batch_size


def with_budget(plan: RoundPlan, budget: int) -> RoundPlan:
    """The same with another budget: usual batches follow it, chosen ones stay as far as it goes."""
    size = None if has_usual_batches(plan) else min(plan.batch_size or budget, budget)
    return completed(replace(plan, budget=budget, batch_size=size))


def why_not_usual(plan: RoundPlan) -> str:
    """Why a plan with batches has not the usual method, if none is chosen; empty if it has."""
    able, does = SAMPLING_METHODS[USUAL].short, "top up what is judged for" * plan.top_up
    for text in (plan.measure, *plan.reported):
        if not is_learned(text, on_top=plan.top_up):
            return (
                f"{able} rounds do not {does if is_learned(text) and does else 'estimate'} {text}"
            )
    if plan.budget < FEWEST and not plan.top_up:
        return f"there is little to learn from fewer than {FEWEST} pairs"
    if plan.budget == plan.batch_size and not plan.top_up:
        return "there is nothing to learn from in a single batch"
    if plan.with_earlier:
        return f"{able} rounds count earlier ones only where they continue the latest of their kind"
    others = (each for name, each in OPTIONS.items() if name != "method")
    for other in others:
        if other.fault(getattr(plan, other.name), method=USUAL):
            return f"{able} rounds cannot do what “{other.label}” says"
    return ""


def is_learned(text: str, *, on_top: bool = False) -> bool:
    """Whether the usual method estimates a measure, also ``on_top`` of what is judged; what is none
    is told elsewhere."""
    try:
        measure = parse_measure(text)
    except MeasureError:
        return True
    return SAMPLING_METHODS[USUAL].estimates(measure.name) and not (on_top and measure.is_by_run)

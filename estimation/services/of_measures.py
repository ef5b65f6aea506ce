"""What the measures of a round ask of its other choices."""

from collections.abc import Iterable

from estimation.core.measures.kinds import KINDS
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.sampling.methods import LEAST_SHARE, SAMPLING_METHODS, estimating
from estimation.models import Round
from estimation.options import label_of, labels_of
from estimation.plans import OTHERWISE, RoundPlan, is_learned
from estimation.services import limits, scores
from estimation.services.limits import require as _require
from judging.models import Campaign


def check(campaign: Campaign, plan: RoundPlan, measure: str, reported: list[str]) -> None:
    """Raises UserError ``round_invalid`` with the field at fault."""
    for text in (measure, *reported):
        _check_measure(plan, parse_measure(text), "measure" if text == measure else "reported")
    limits.check_in_unit(campaign, plan, measure)
    _check_alike(measure, reported)
    _check_of_several_draws(plan, [measure, *reported])
    _check_of_gains(plan, parse_measure(measure))
    _check_by_topics(plan, [measure, *reported])
    _check_on_top(plan, [measure, *reported])
    _check_further(plan, parse_measure(measure))
    _check_scores(campaign, plan, [measure, *reported])


def _check_measure(plan: RoundPlan, measure: Measure, field_name: str) -> None:
    """Whether the method can estimate the measure, and the prior says something about it."""
    names = SAMPLING_METHODS[plan.method].measures
    message = (
        f"{label_of(plan.method)} estimates {', '.join(names)}, not {measure}. Methods that do: "
        f"{labels_of(estimating(measure.name))}."
    )
    _require(measure.name in names, field_name, message)
    by_run = measure.family in ("prediction", "preference")
    message = f"{measure} compares grades with what runs say: it needs the constant prior."
    _require(not by_run or plan.prior == Round.Prior.CONSTANT, "prior", message)


def _check_alike(measure: str, reported: list[str]) -> None:
    """A round is judged on documents or on pairs of documents, not on both."""
    on_pairs = [parse_measure(text).family == "preference" for text in (measure, *reported)]
    message = "Preferences between documents need a round of their own."
    _require(len(set(on_pairs)) == 1, "reported", message)


def _check_of_several_draws(plan: RoundPlan, measures: Iterable[str]) -> None:
    refused = SAMPLING_METHODS[plan.method].refused_together(map(parse_measure, measures))
    message = f"Several rounds of independent draws do not estimate {', '.join(refused)}."
    _require(not (plan.with_earlier and refused), "with_earlier", message)


def _check_of_gains(plan: RoundPlan, measure: Measure) -> None:
    """Guaranteed intervals and the difference estimator are for sums of gains."""
    gains = [name for name, kind in KINDS.items() if kind.family == "gain"]
    message = f"is for {', '.join(gains)}, not for {measure}."
    is_sum = measure.family == "gain"
    usual = plan.interval == Round.Interval.STUDENT
    _require(usual or is_sum, "interval", f"A guaranteed interval {message}")
    _require(not plan.estimator or is_sum, "estimator", f"The difference estimator {message}")


def _check_by_topics(plan: RoundPlan, measures: list[str]) -> None:
    ratios = [text for text in measures if parse_measure(text).family == "ratio"]
    message = (
        f"Pairs of a topic are drawn together for sums of gains, not for {', '.join(ratios)}. Take "
        "1, as it comes."
    )
    _require(plan.topic_minimum == 1 or not ratios, "topic_minimum", message)


def _check_on_top(plan: RoundPlan, measures: list[str]) -> None:
    learns = SAMPLING_METHODS[plan.method].draws == "batches"
    others = [text for text in measures if not is_learned(text, on_top=True)]
    message = (
        f"Rounds that learn do not top up what is judged for {', '.join(others)}. Choose "
        f"{label_of(OTHERWISE)}."
    )
    _require(not (plan.top_up and learns and others), "top_up", message)


def _check_further(plan: RoundPlan, measure: Measure) -> None:
    """What decides how many labels a pair gets, and what variances rest on, must be known."""
    if not plan.further:
        return
    message = f"Further labels go where they pay for sums of gains, not for {measure}. Take 0."
    _require(measure.family == "gain", "further", message)
    message = (
        "Further labels are for rounds that stand alone: not together with earlier ones, and not "
        "on top of what is judged. Take 0."
    )
    _require(not (plan.with_earlier or plan.top_up), "further", message)
    message = (
        f"Expected {LEAST_SHARE} or more: with one label per pair and further ones where they pay, "
        "some pairs of all kinds need a second one, so that intervals know how people differ."
    )
    _require(plan.labels > 1 or plan.extra_share >= LEAST_SHARE, "extra_share", message)


def _check_scores(campaign: Campaign, plan: RoundPlan, measures: list[str]) -> None:
    of_scores = [text for text in measures if parse_measure(text).family == "prediction"]
    if not of_scores:
        return
    fault = scores.first_fault(campaign, depth=plan.depth or campaign.depth)
    field_name = "measure" if of_scores[0] == measures[0] else "reported"
    _require(fault is None, field_name, f"{of_scores[0]} is impossible: {fault}.")

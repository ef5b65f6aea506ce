"""What may be said of a machine judge once people have judged what it graded, in words."""

from collections.abc import Mapping
from typing import Any

from estimation.agreement_figures import bounded
from estimation.figures import number, signed
from estimation.findings import LIMIT, NOTE, OPEN, SURE, Finding
from estimation.scales import decimals

FEW = 100
"""Judgments below which the interval itself is to be taken with care."""
ROUGH = 2
"""Figures that a number of judgments is told with: it is a ratio of estimated variances."""


def findings_on(agreement: Mapping[str, Any]) -> list[Finding]:
    """The sentences of a stored agreement, in order of importance; none without one."""
    if not agreement:
        return []
    found = [_kappa(agreement), *_alpha(agreement), _bias(agreement), _worth(agreement["worth"])]
    if not agreement["weighted"]:
        text = (
            "The pairs of this round were chosen while it was judged, so that their probabilities "
            "are not used here: this is how far machine and people agree on just these pairs."
        )
        found.append(Finding(LIMIT, text))
    if agreement["labels"] < FEW:
        count = agreement["labels"]
        text = f"This rests on {count} judgment{'' if count == 1 else 's'} only; look again later."
        found.append(Finding(LIMIT, text))
    return found


def _kappa(agreement: Mapping[str, Any]) -> Finding:
    value, low, high = agreement["kappa"]
    if value is None:
        text = "All these grades are one and the same, so that agreement cannot be told from luck."
        return Finding(OPEN, text)
    same = f"{100 * agreement['equal']:.0f} % of the judgments are equal to the machine's grade"
    said = f"Quadratically weighted kappa with people is {number(value, 2)}"
    if low is None:
        why = "disagreement to learn from" if abs(value) == 1.0 else "pairs of more topics"
        return Finding(OPEN, f"{said}; {same}. An interval needs {why}.")
    ends = f"{number(low, 2)} to {number(high, 2)}"
    return Finding(NOTE, f"{said} (95 % interval {ends}); {same}.")


def _alpha(agreement: Mapping[str, Any]) -> list[Finding]:
    """None of an agreement of an earlier version, nor where all grades are one, as kappa says."""
    plain = agreement.get("plain")
    if not plain or plain["ordinal"][0] is None:
        return []
    said = f"Krippendorff's alpha (ordinal) of machine and people is {bounded(plain['ordinal'])}"
    drawn, alone = agreement["drawn"], agreement["alone"]
    if drawn and drawn["ordinal"][0] is not None:
        weighted = bounded(drawn["ordinal"])
        said += f" on these pairs; weighted by the draw, for all pairs of the pool, {weighted}"
    found = [Finding(NOTE, f"{said}.")]
    if alone and alone["ordinal"][0] is not None:
        text = (
            f"People among themselves have {bounded(alone['ordinal'])}, on the "
            f"{alone['pairs']:,} of these pairs that two or more judged."
        )
        found.append(Finding(NOTE, text))
    elif not alone:
        text = (
            "No two people judged the same of these pairs, so that nobody knows whether the "
            "machine differs from people more than they do from each other."
        )
        found.append(Finding(OPEN, text))
    if "skewed" in plain["cautions"]:
        text = (
            "Nine of ten grades or more are one grade: chance explains most of any agreement then, "
            "and alpha says little."
        )
        found.append(Finding(LIMIT, text))
    return found


def _bias(agreement: Mapping[str, Any]) -> Finding:
    value, low, high = agreement["bias"]
    word = "more lenient" if value > 0 else "stricter"
    if low is None or low <= 0.0 <= high:
        bounds = "" if low is None else f" (95 % interval {signed(low, 2)} to {signed(high, 2)})"
        text = "It is neither surely stricter nor surely more lenient"
        return Finding(OPEN, f"{text}: {signed(value, 2)} grades{bounds}.")
    places = decimals((high - low) / 2)
    ends = sorted((abs(low), abs(high)))
    bounds = f"{ends[0]:.{places}f} to {ends[1]:.{places}f}"
    text = f"The machine is {word} than people, by {abs(value):.{places}f} grades on average"
    corrected = "Rounds that are estimated with its grades correct for that."
    return Finding(SURE, f"{text} (95 % interval {bounds}). {corrected}")


def _worth(worth: Mapping[str, Any]) -> Finding:
    if "unsaid" in worth:
        return Finding(NOTE, f"What its grades save cannot be said here. {worth['unsaid']}")
    saved, of = worth["judgments"], worth["of"]
    if saved < 0.5:
        text = (
            f"Its grades save nothing here: the {of:,} judged pairs tell as much of "
            f"{worth['measure']} without them."
        )
        return Finding(NOTE, text)
    about = f"{_rough(saved):,} judgment{'' if _rough(saved) == 1 else 's'}"
    text = (
        f"Its grades are worth about {about} here: with them, {of:,} judged pairs tell as much of "
        f"{worth['measure']} as {of + _rough(saved):,} would without, by the estimated variances."
    )
    return Finding(NOTE, text)


def _rough(number: float) -> int:
    """To its first two figures."""
    return int(float(f"{number:.{ROUGH - 1}e}")) if number >= 1 else 1

"""How much each judged document of a topic counts in estimates from an active sample.

Two answers: by inclusion probabilities (Horvitz and Thompson; Li and Kanoulas 2017, section 3), or
document by document in the order of drawing (Des Raj 1956).
"""

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray, IntArray, refuse, share_of
from .lists import ActiveError


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of m judged documents of a topic.

    The total of y over the topic is estimated by sum w_i y_i, that of y_il over pairs of documents
    by sum w_il y_il, and the covariance of two estimated totals by sum V_il y_i z_l.
    """

    single: FloatArray  # w_i, (m,)
    pair: FloatArray  # w_il, (m, m)
    quadratic: FloatArray  # V_il, (m, m)


@dataclass(frozen=True, eq=False)
class Inclusion:
    """Inclusion probabilities of m documents of a topic."""

    single: FloatArray  # pi_i, (m,)
    joint: FloatArray  # pi_il, with pi_ii = pi_i, (m, m)
    excess: FloatArray  # pi_il - pi_i pi_l, to full precision also where it is tiny, (m, m)


def joint_inclusion(probability: FloatArray, *, draws: IntArray) -> Inclusion:
    """Return the exact inclusion probabilities of draws with replacement in T rounds.

    pi_i = 1 - prod_t (1 - p_t(i))^N_t and pi_il = pi_i + pi_l - 1 + prod_t (1 - p_t(i) -
    p_t(l))^N_t (Li and Kanoulas 2017, section 3.1), for p_t and N_t that are fixed beforehand. With
    the odds o = p / (1 - p) it is pi_il - pi_i pi_l = (1 - pi_i)(1 - pi_l) (prod_t (1 - o_i
    o_l)^N_t - 1), which loses no digits however small p is.

    ``probability`` has p_t(i), shape (T, m), in a round at most 1 together; ``draws`` N_t >= 0.
    Raises ActiveError if shapes differ or a value is out of range.
    """
    _check_rounds(probability, draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = probability / (1.0 - probability)
        absent = _added(draws, np.log1p(-probability))
        change = np.zeros((probability.shape[1],) * 2)
        for number, each in zip(draws.tolist(), odds, strict=True):
            product = np.minimum(np.multiply.outer(each, each), 1.0)  # rounding, when p + p' = 1
            change += number * np.nan_to_num(np.log1p(-product), nan=0.0, neginf=-np.inf)
    single = -np.expm1(absent)
    left = np.exp(absent)
    excess = np.multiply.outer(left, left) * np.expm1(change)
    np.fill_diagonal(excess, left * single)
    joint = np.maximum(np.multiply.outer(single, single) + excess, 0.0)
    np.fill_diagonal(joint, single)
    return Inclusion(single, joint, excess)


def _check_rounds(probability: FloatArray, draws: IntArray) -> None:
    if probability.ndim != 2 or draws.shape != probability.shape[:1]:
        shapes = f"not the shapes {probability.shape} and {draws.shape}"
        raise ActiveError(f"probability must have a row for each of the draws, {shapes}")
    wrong = ~((probability >= 0.0) & (probability <= 1.0))
    refuse(wrong, probability, name="probability", rule="lie between 0 and 1", error=ActiveError)
    refuse(draws < 0, draws, name="draws", rule="be at least 0", error=ActiveError)


def _added(draws: IntArray, logs: FloatArray) -> FloatArray:
    """Sum of draws times logs, round by round, as the sampling itself adds them up."""
    total = np.zeros(logs.shape[1])
    for number, each in zip(draws.tolist(), logs, strict=True):
        if number:
            total += number * each
    return total


def inclusion_weights(inclusion: Inclusion) -> Weights:
    """Return w_i = 1/pi_i, w_il = 1/pi_il and V_il = (pi_il - pi_i pi_l) / (pi_il pi_i pi_l)."""
    single = 1.0 / inclusion.single
    pair = share_of(np.ones_like(inclusion.joint), of=inclusion.joint)
    return Weights(single, pair, inclusion.excess * pair * np.multiply.outer(single, single))


def sequential_weights(conditional: FloatArray, *, documents: int, steps: IntArray) -> Weights:
    """Return weights that are unbiased for totals however the past has steered the sampling.

    Take the n documents in the order in which they were new, the s-th with the conditional
    probability q_s given everything before. T_s = (total over the s - 1 documents before) +
    y_s / q_s is then an unbiased estimate of the total, given everything before: it may have
    decided on q_s in any way that leaves no unknown document without a chance. So is
    sum_s c_s T_s with c_s fixed beforehand, and the errors of the T_s are uncorrelated
    (Des Raj 1956 for probabilities that do not depend on labels). Here c_s ~ s / (N - s + 1)^2 for
    N documents in the topic, since later T_s are better; with n = N only T_N counts and is exact.

    In w_il = w_i w_l (1 + sum of c_s^2 while both are unknown) the bracket makes up, to first
    order, for E[w_i w_l] being short of 1 by so much in expectation.

    E[(T_s - T_t)^2] is the sum of the variances of T_s and T_t. So V, the form in y of sum_(s<t)
    b_st (T_s - T_t)^2 with sum_t b_st = c_s^2 for every s, is exactly unbiased; here b_st =
    (c_s^2 + c_t^2) / (n - 2) - sum c^2 / ((n - 1) (n - 2)). In samples of a few documents it may
    come out a little below 0. Fewer than three documents show no variance: V is 0.

    ``conditional`` has q_s, shape (n,); ``documents`` is N; ``steps`` are the places, counted from
    0, of the m documents whose weights are wanted. Raises ActiveError unless 0 < q_s <= 1.
    """
    number = len(conditional)
    wrong = ~((conditional > 0.0) & (conditional <= 1.0))
    refuse(wrong, conditional, name="conditional", rule="lie in (0, 1]", error=ActiveError)
    share = step_shares(number, documents)
    scaled = 1.0 / conditional[steps]
    single = share[steps] * scaled + tails(share)[steps]
    both_unknown = np.cumsum(share**2)[np.minimum.outer(steps, steps)]
    pair = np.multiply.outer(single, single) * (1.0 + both_unknown)
    np.fill_diagonal(pair, single)
    return Weights(single, pair, _step_form(share, steps, scaled))


def lacking_of_inclusion(probability: FloatArray, *, draws: IntArray) -> FloatArray:
    """Return w_i^2 - V_ii = 1 / pi_i of `inclusion_weights`, for arguments of `joint_inclusion`."""
    _check_rounds(probability, draws)
    with np.errstate(divide="ignore"):
        absent = _added(draws, np.log1p(-probability))
    return np.asarray(-1.0 / np.expm1(absent))


def lacking_of_steps(conditional: FloatArray, *, documents: int) -> FloatArray:
    """Return w_i^2 - V_ii of `sequential_weights` for the documents of all n steps, shape (n,).

    What the form V lacks, per unit of the variance of a label.
    """
    number, scaled = len(conditional), 1.0 / conditional
    share = step_shares(number, documents)
    single = (share * scaled + tails(share)) ** 2
    if number < 3 or share[-1] == 1.0:
        return np.asarray(single)
    squares, slope = share**2, 1.0 / (number - 2)
    level = -squares.sum() * slope / (number - 1)
    weighted, total = squares * scaled + tails(squares), scaled + tails(np.ones(number))
    each = (squares * scaled**2 + tails(squares)) * (1.0 + 2.0 * slope)
    plain = scaled**2 + tails(np.ones(number)) - total**2
    return np.asarray(single - (each + plain * level - 2.0 * slope * weighted * total))


def tails(values: FloatArray) -> FloatArray:
    """Sums over all later elements."""
    return np.append(np.cumsum(values[::-1])[::-1][1:], 0.0)


def _step_form(share: FloatArray, steps: IntArray, scaled: FloatArray) -> FloatArray:
    """sum_(s<t) b_st (T_s - T_t)^2 as a form in y; b as in `sequential_weights`."""
    number, squares = len(share), share**2
    if number < 3 or share[-1] == 1.0:
        return np.zeros((len(steps), len(steps)))
    slope = 1.0 / (number - 2)
    level = -squares.sum() * slope / (number - 1)
    weighted, total = squares[steps] * scaled + tails(squares)[steps], scaled + number - 1.0 - steps
    each = _products(squares, steps, scaled) * (1.0 + 2.0 * slope)
    plain = _products(np.ones(number), steps, scaled) - np.multiply.outer(total, total)
    cross = np.multiply.outer(weighted, total) * slope
    return np.asarray(each + plain * level - cross - cross.T)


def _products(factors: FloatArray, steps: IntArray, scaled: FloatArray) -> FloatArray:
    """sum_s f_s b_si b_sl, with b_si the weight of document i in T_s.

    It is 0 before the step of the document, 1/q_s in it, and 1 later.
    """
    own, later = factors[steps] * scaled, tails(factors)[steps]
    is_later = np.greater_equal.outer(steps, steps)
    products = np.where(is_later, (own + later)[:, None], (own + later)[None, :])
    np.fill_diagonal(products, own * scaled + later)
    return np.asarray(products)


def step_shares(number: int, documents: int) -> FloatArray:
    """Return c_s of n of N documents, which add up to 1."""
    if number == documents:
        return np.concatenate([np.zeros(number - 1), [1.0]])
    step = np.arange(1.0, number + 1.0)
    raw = step / (documents - step + 1.0) ** 2
    return np.asarray(raw / raw.sum())

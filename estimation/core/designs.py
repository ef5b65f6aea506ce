"""Sampling designs: with which probability every pair of a pool is drawn, batch by batch.

Two methods. ``poisson``: every pair is in the sample, or not, by its own permanent random number;
after batch b it is in with probability min(1, c_b * size). ``iid``: draws with replacement from
the distribution `size`; after batch b there were n_b of them (Schnabel et al. 2016, section 3).
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

import numpy as np

from estimation.core.archives import ArchiveFile, read_archive, write_archive
from estimation.core.arrays import BoolArray, FloatArray, check_fraction, frozen
from estimation.core.goals import Goal, effective_weights
from estimation.core.measures import Measure, parse_measure
from estimation.core.pool import Pool
from estimation.core.priors import Prior

FORMAT = "evalsite-design-1"
Method: TypeAlias = Literal["iid", "poisson"]
Rule: TypeAlias = Literal["first", "second"]
METHODS: tuple[Method, ...] = ("poisson", "iid")
RULES: tuple[Rule, ...] = ("first", "second")
MAX_BATCHES = 100_000


class DesignError(ValueError):
    """A design that cannot be made; the message is a sentence for the organizer."""


@dataclass(frozen=True, eq=False)
class Design:
    """Sampling probabilities of the N pairs of a pool, for all batches.

    Build one with `make_design`.

    Attributes
    ----------
    method : {"poisson", "iid"}
    size : ndarray of float64, shape (N,)
        Sums to 1. ``iid``: the probability Q_i of one draw. ``poisson``: relative size, to which
        the inclusion probability is proportional until it reaches 1. 0: never sampled.
    steps : ndarray of float64, shape (B,)
        Per batch, increasing. ``iid``: draws n_b made so far (whole numbers). ``poisson``:
        constant c_b; infinite when every eligible pair is certain.
    goal, measure, reported, prior, rule, budget, batch_size, eps, floor
        What the design was made from, as given to `make_design`.
    pool_digest : str
        Digest of the pool that the design belongs to.
    """

    method: Method
    size: FloatArray
    steps: FloatArray
    goal: Goal
    measure: Measure
    reported: tuple[Measure, ...]
    prior: str
    rule: Rule
    budget: int
    batch_size: int
    eps: float
    floor: float
    pool_digest: str

    @property
    def eligible(self) -> BoolArray:
        """Which pairs can be sampled at all, shape (N,)."""
        return np.asarray(self.size > 0.0)

    @property
    def batches(self) -> int:
        """The number B of batches."""
        return len(self.steps)

    @property
    def is_census(self) -> bool:
        """Whether the full budget takes every eligible pair with probability 1."""
        return self.method == "poisson" and bool(np.isinf(self.steps[-1]))

    def step(self, batches: int | None = None) -> float:
        """Return n_b or c_b after the first `batches` batches (default: all).

        Raises
        ------
        ValueError
            If `batches` is not between 1 and B.
        """
        last = self.batches if batches is None else batches
        if not 1 <= last <= self.batches:
            raise ValueError(f"batches must lie between 1 and {self.batches}, not {last}")
        return float(self.steps[last - 1])

    def inclusion(self, batches: int | None = None) -> FloatArray:
        """Return the probability that each pair is in the sample after some batches.

        ``poisson``: min(1, c_b * size). ``iid``: 1 - (1 - Q)^n_b.

        Parameters
        ----------
        batches : int, optional
            Number of batches, counted from the first; by default all.

        Returns
        -------
        ndarray of float64, shape (N,)
            0 exactly where the pair is not eligible.
        """
        return inclusion_probabilities(self.size, method=self.method, step=self.step(batches))

    def save(self, file: ArchiveFile) -> None:
        """Write the design to a path or a binary file; `load` gives back the same bits."""
        facts = {name: getattr(self, name) for name in _PLAIN}
        facts |= {"goal": asdict(self.goal), "measure": str(self.measure)}
        facts |= {"reported": [str(measure) for measure in self.reported]}
        write_archive(file, FORMAT, facts, {"size": self.size, "steps": self.steps})

    @classmethod
    def load(cls, file: ArchiveFile) -> "Design":
        """Read what `save` wrote; raise ValueError if it is damaged or something else."""
        facts, arrays = read_archive(file, FORMAT, ("size", "steps"))
        goal = facts["goal"]
        facts["goal"] = Goal(goal["kind"], tuple(goal["runs"]), goal["against"])
        facts["measure"] = parse_measure(facts["measure"])
        facts["reported"] = tuple(parse_measure(text) for text in facts["reported"])
        return cls(size=frozen(arrays["size"]), steps=frozen(arrays["steps"]), **facts)


_PLAIN = (
    "method", "prior", "rule", "budget", "batch_size", "eps", "floor", "pool_digest"
)  # fmt: skip


def make_design(
    pool: Pool,
    *,
    goal: Goal,
    measure: Measure,
    prior: Prior,
    budget: int,
    batch_size: int,
    method: Method = "poisson",
    rule: Rule | None = None,
    reported: Sequence[Measure] = (),
    eps: float = 0.0,
    floor: float = 0.1,
) -> Design:
    """Compute the sampling probabilities that serve a goal best.

    With the goal's weight a_i (`effective_weights`) and the prior's expected utility p_i and
    second moment s2_i, a pair's size is proportional to a_i * p_i (rule "first"; Schnabel et al.
    2016, eq. 4, 9, 11 and 13) or to a_i * sqrt(s2_i) (rule "second", which minimizes the
    expected variance when the utility is not certain).

    Parameters
    ----------
    pool : Pool
    goal, measure : Goal, Measure
        What the sample is optimized for.
    prior : Prior
        From `make_prior`, for the same pool.
    budget : int
        ``iid``: number of draws, at least 2. ``poisson``: expected number of pairs; at least the
        number of eligible pairs gives a census, every one with probability exactly 1.
    batch_size : int
        ``iid``: draws per batch, at least 2. ``poisson``: expected pairs per batch. The last
        batch takes what is left.
    method : {"poisson", "iid"}
    rule : {"first", "second"}, optional
        By default "second" for ``poisson`` and "first", the papers' rule, for ``iid``.
    reported : sequence of Measure
        Further measures that will be estimated: pairs with a weight under any of them, for any
        run of the pool, are eligible.
    eps : float
        ``iid`` only, on the scale of p * lambda: added to every eligible pair.
    floor : float
        ``poisson`` only: share of the sizes that is spread evenly over the eligible pairs, so
        that no pair with a weight is out of reach. 0 restricts the sample to the goal's pairs.

    Raises
    ------
    DesignError
        If a number is out of range, or the goal leaves nothing to sample.
    PoolError
        If the goal names a run that the pool does not have.
    """
    rule = rule or ("second" if method == "poisson" else "first")
    _check_design(pool, prior, method, rule, budget, batch_size, eps, floor)
    weights = effective_weights(pool, goal, measure)
    if not weights.any():
        raise DesignError(_nothing_to_sample(goal, measure))
    belief = prior.expected if rule == "first" else np.sqrt(prior.second_moment)
    touched = _touched(pool, (measure, *reported))
    if method == "poisson":
        size = _floored(weights * belief, touched, floor)
        steps = poisson_thresholds(size, targets=_targets(budget, batch_size, size))
    else:
        size = _normalized(weights * belief + touched * (eps / len(pool.topics)))
        steps = _cumulative(budget, batch_size)
    return Design(
        method=method,
        size=frozen(size),
        steps=frozen(steps),
        goal=goal,
        measure=measure,
        reported=tuple(reported),
        prior=prior.name,
        rule=rule,
        budget=budget,
        batch_size=batch_size,
        eps=eps if method == "iid" else 0.0,
        floor=floor if method == "poisson" else 0.0,
        pool_digest=pool.digest,
    )


def inclusion_probabilities(size: FloatArray, *, method: Method, step: float) -> FloatArray:
    """Return inclusion probabilities from sizes and the number of draws or the constant c.

    Parameters
    ----------
    size : ndarray of float64
        Relative sizes or draw probabilities, >= 0.
    method : {"poisson", "iid"}
    step : float
        ``poisson``: c > 0, possibly infinite. ``iid``: number of draws.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        if method == "poisson":
            probability = np.minimum(1.0, step * size)
        else:
            probability = -np.expm1(step * np.log1p(-np.minimum(size, 1.0)))
    return np.where(size > 0.0, probability, 0.0)


def poisson_thresholds(size: FloatArray, *, targets: FloatArray) -> FloatArray:
    """Solve sum_i min(1, c * size_i) = target for c.

    Parameters
    ----------
    size : ndarray of float64, shape (N,)
        Relative sizes, at least one of them positive.
    targets : ndarray of float64, shape (B,)
        Expected numbers of pairs, > 0.

    Returns
    -------
    ndarray of float64, shape (B,)
        The constants; infinite where the target reaches the number of positive sizes.
    """
    falling = np.sort(size[size > 0.0])[::-1]
    rest = np.cumsum(falling[::-1])[::-1]  # rest[s]: total size when the s largest are certain
    certain = np.arange(len(falling))
    reached = certain + rest / falling  # the expected number at which the s-th becomes certain
    saturated = np.searchsorted(reached, targets, side="right")
    inside = np.minimum(saturated, len(falling) - 1)
    constants = (targets - inside) / rest[inside]
    # Rounding must not pull the constant below the one that makes the certain pairs certain.
    constants = np.maximum(constants, np.append(0.0, 1.0 / falling)[inside])
    return np.where(targets >= len(falling), np.inf, constants)


def _check_design(
    pool: Pool,
    prior: Prior,
    method: str,
    rule: str,
    budget: int,
    batch_size: int,
    eps: float,
    floor: float,
) -> None:
    if method not in METHODS or rule not in RULES:
        raise DesignError(f"the method is one of {METHODS} and the rule one of {RULES}")
    if len(prior.expected) != len(pool):
        raise DesignError("the prior belongs to another pool")
    if budget < 1 or batch_size < 1:
        raise DesignError("The budget and the batch size must be at least 1.")
    if method == "iid" and min(budget, batch_size) < 2:
        raise DesignError("Draws with replacement need at least 2 draws in the first batch.")
    reach = min(budget, len(pool)) if method == "poisson" else budget
    if reach > MAX_BATCHES * batch_size:
        raise DesignError(f"A budget can be cut into at most {MAX_BATCHES} batches.")
    if not (eps >= 0.0 and math.isfinite(eps)):
        raise DesignError("eps must be a finite number of at least 0.")
    check_fraction(floor, name="floor")


def _nothing_to_sample(goal: Goal, measure: Measure) -> str:
    runs = ", ".join(goal.all_runs)
    if goal.kind in ("single", "absolute"):
        return f"There is nothing to sample: no document of {runs} has a weight under {measure}."
    return f"There is nothing to sample: {runs} do not differ under {measure}."


def _touched(pool: Pool, measures: Sequence[Measure]) -> BoolArray:
    """Which pairs have a weight in some run under some measure."""
    touched = np.zeros(len(pool), dtype=bool)
    for measure in measures:
        touched[pool.entry_pair[pool.entry_weights(measure) > 0.0]] = True
    return touched


def _normalized(size: FloatArray) -> FloatArray:
    return np.asarray(size / size.sum(), dtype=np.float64)


def _floored(size: FloatArray, eligible: BoolArray, floor: float) -> FloatArray:
    return (1.0 - floor) * _normalized(size) + floor * _normalized(eligible.astype(np.float64))


def _cumulative(budget: int, batch_size: int) -> FloatArray:
    full = np.arange(batch_size, budget, batch_size, dtype=np.float64)
    return np.append(full, float(budget))


def _targets(budget: int, batch_size: int, size: FloatArray) -> FloatArray:
    return _cumulative(min(budget, int(np.count_nonzero(size))), batch_size)

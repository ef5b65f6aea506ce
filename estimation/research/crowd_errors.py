"""How far estimates are off with a crowd of whom some do not read, by who is excluded.

Pairs are drawn one by one in proportion to their weights, so that the estimate of a weighted sum is
the mean of the drawn pairs' mean labels. Everybody judges as many pairs, and gold beside them. Who
is excluded by a rule is replaced: those who are left judge the places again, so that every pair has
as many labels under each rule. Held against is what all readers together would say of all pairs.

* ``clean``: the same crowd without those who do not read; others have judged in their place.
* ``nobody``: nobody is excluded.
* ``gold and time``: the product's own rules (`judging.gold_scores`, `judging.conduct`). Gold comes
  at turns with the product's chance (`judging.gold_turns`), and each of its answers from the tenth
  on is a look at the score, as a worker has it: who is out judges no further.
* ``agreement``: as many as there are spammers and as many again, who have the same grade as others
  least often. It picks by the labels that count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from estimation.research.crowds import KINDS, CrowdPlan, kinds_of
from judging.conduct import HASTY, LEAST_QUICK, too_fast
from judging.gold_scores import score_of
from judging.gold_turns import MOST_CHANCE, chance_of_gold

MIDDLE, SPREAD = 0.5, 1.2
"""Of the level of a pair, before it is cut to the scale: most are low, as in pools."""
SHIFT = {"lenient": 0.8, "severe": -0.8}
RULES = ("clean", "nobody", "gold and time", "agreement")
LEAST_ANSWERS = 10
"""To gold, before there is a score: the least that an organizer may ask for."""
Z = 1.959964
Levels = NDArray[np.float64]
Grades = NDArray[np.int64]


@dataclass(frozen=True)
class GoldPlan:
    """One pair in ``every`` is gold; with ``first`` above 0 one in three, until somebody has
    answered so many. Half of its pairs are surely low, half surely high: right is the lower or the
    upper half of the scale. ``below``: who is excluded, by the end of their score. ``hasty``: share
    of those who do not read that do not wait either.
    """

    every: int = 8
    first: int = 0
    below: float = 0.8
    hasty: float = 0.5


@dataclass(frozen=True)
class ErrorsOfRule:
    """Over all crowds: root mean square error, bias with its standard error, share of 95 %
    intervals that hold the truth; how many of whom were excluded. For each label that counts: how
    many were given in vain, and how many answers to gold."""

    error: float
    bias: float
    bias_error: float
    coverage: float
    spammers: float
    readers: float
    in_vain: float
    gold: float


def measure_errors(
    plan: CrowdPlan, gold: GoldPlan, *, crowds: int, seed: int = 0
) -> dict[str, ErrorsOfRule]:
    """Make crowds up, and estimate with each rule from the same pairs."""
    truth = expected(plan)
    rows: dict[str, list[tuple[float, ...]]] = {rule: [] for rule in RULES}
    for number in range(crowds):
        kinds = kinds_of(plan, seed + number)
        random = np.random.default_rng([seed + number, 1])
        for rule, row in _one_crowd(plan, gold, kinds, random, truth).items():
            rows[rule].append(row)
    return {rule: _summed(np.array(each)) for rule, each in rows.items()}


def _summed(rows: NDArray[np.float64]) -> ErrorsOfRule:
    off, half, spammers, readers, in_vain, gold = rows.T
    several = len(off) > 1
    return ErrorsOfRule(
        error=float(np.sqrt(np.mean(off**2))),
        bias=float(off.mean()),
        bias_error=float(off.std(ddof=1) / np.sqrt(len(off))) if several else float("nan"),
        coverage=float(np.mean(np.abs(off) <= half)),
        spammers=float(spammers.mean()),
        readers=float(readers.mean()),
        in_vain=float(in_vain.mean()),
        gold=float(gold.mean()),
    )


def expected(plan: CrowdPlan) -> float:
    """What all readers say of all pairs, on average: by the middles of 20 000 equal parts."""
    parts = (np.arange(20_000) + 0.5) / 20_000
    normal = MIDDLE + SPREAD * ndtri(parts)
    level = np.clip(normal, 0, plan.grades - 1)
    shares = {kind: getattr(plan, kind) for kind in ("lenient", "severe", "drifting")}
    shares["fair"] = 1.0 - plan.spammers - sum(shares.values())
    total = sum(shares.values())
    means = {
        "fair": _mean_grade(plan, level),
        **{kind: _mean_grade(plan, level + shift) for kind, shift in SHIFT.items()},
        "drifting": np.mean([_mean_grade(plan, level + at) for at in np.linspace(0, 1, 201)]),
    }
    return float(sum(share * means[kind] for kind, share in shares.items()) / total)


def _mean_grade(plan: CrowdPlan, seen: Levels) -> float:
    steps = np.arange(1, plan.grades) - 0.5
    return float(np.mean(sum(ndtr((seen - step) / plan.noise) for step in steps)))


def _one_crowd(
    plan: CrowdPlan,
    gold: GoldPlan,
    kinds: list[str],
    random: np.random.Generator,
    truth: float,
) -> dict[str, tuple[float, ...]]:
    pairs = plan.people * plan.judgments // plan.labels
    level = np.clip(random.normal(MIDDLE, SPREAD, pairs), 0, plan.grades - 1)
    who = _places(plan, pairs, random)
    said = _said(plan, kinds, who, level, random)
    spams = np.array([kind in KINDS for kind in kinds])
    all_of_it = np.full(plan.people, plan.judgments)
    by_gold, until, answers = _by_gold(plan, gold, kinds, random)
    until = np.where(by_gold, until, all_of_it)
    found = {
        "clean": (spams, 0 * all_of_it, 0.0),
        "nobody": (np.zeros(plan.people, dtype=np.bool_), all_of_it, 0.0),
        "gold and time": (by_gold | _by_time(plan, gold, kinds, random), until, answers),
        "agreement": (_by_agreement(who, said, out=2 * int(spams.sum())), all_of_it, 0.0),
    }
    rows: dict[str, tuple[float, ...]] = {}
    for rule, (out, given, of_gold) in found.items():
        labels = _judged_again(plan, kinds, who, said, level, out, random)
        mean = labels.mean(axis=1)
        half = Z * mean.std(ddof=1) / np.sqrt(pairs)
        vain = float(given[out].sum()) / who.size
        off = float(mean.mean()) - truth
        excluded = float(out[spams].sum()), float(out[~spams].sum())
        rows[rule] = (off, float(half), *excluded, vain, of_gold / who.size)
    return rows


def _places(plan: CrowdPlan, pairs: int, random: np.random.Generator) -> Grades:
    """Who judges each pair, ``labels`` different people, everybody about as often."""
    turns = [random.permutation(plan.people) for _ in range(pairs * plan.labels // plan.people + 1)]
    return np.concatenate(turns)[: pairs * plan.labels].reshape(pairs, plan.labels)


def _said(
    plan: CrowdPlan, kinds: list[str], who: Grades, level: Levels, random: np.random.Generator
) -> Grades:
    """Everybody's grades in the order of judging; copiers repeat the label beside theirs."""
    said = np.zeros(who.shape, dtype=np.int64)
    for person, kind in enumerate(kinds):
        at = np.nonzero(who == person)
        slide = np.linspace(0.0, 1.0, len(at[0]))
        said[at] = _grades(plan, kind, level[at[0]], slide, random)
    for person, kind in enumerate(kinds):
        if kind == "copying":
            row, column = np.nonzero(who == person)
            beside = said[row, (column + 1) % plan.labels]
            copies = random.random(len(row)) < plan.together
            said[row, column] = np.where(copies, beside, said[row, column])
    return said


def _grades(
    plan: CrowdPlan, kind: str, level: Levels, slide: Levels, random: np.random.Generator
) -> Grades:
    """Of readers as they see it; a copier without somebody to copy answers by luck."""
    count = len(level)
    if kind == "one grade":
        return np.full(count, random.integers(plan.grades))
    if kind in ("random", "copying"):
        return random.integers(plan.grades, size=count)
    if kind == "alternating":
        return np.resize(random.permutation(plan.grades)[: 2 + random.integers(2)], count)
    shift = SHIFT.get(kind, 0.0) + (slide if kind == "drifting" else 0.0)
    seen = level + shift + random.normal(0.0, plan.noise, count)
    return np.clip(np.round(seen), 0, plan.grades - 1).astype(np.int64)


def _by_gold(
    plan: CrowdPlan, gold: GoldPlan, kinds: list[str], random: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64], int]:
    """Who is out by answers to gold and by nothing else, after how many labels, and how many such
    answers there were. There is nobody's label beside gold to copy."""
    half = plan.grades // 2
    out, until, count = np.zeros(plan.people, dtype=np.bool_), np.zeros(plan.people, np.int64), 0
    for person, kind in enumerate(kinds):
        labels_before = _turns_of_gold(plan, gold, random)
        high = random.random(len(labels_before)) < 0.5
        level = np.where(high, plan.grades - 1.0, 0.0)
        given = _grades(plan, kind, level, labels_before / plan.judgments, random).tolist()
        right = [range(half, plan.grades) if each else range(half) for each in high.tolist()]
        answers = list(zip(given, right, strict=True))
        looks = range(LEAST_ANSWERS, len(answers) + 1)
        fails = next((look for look in looks if _is_out(answers[:look], gold.below)), None)
        count += fails or len(answers)
        if fails:
            out[person], until[person] = True, labels_before[fails - 1]
    return out, until, count


def _is_out(answers: list[tuple[int, range]], below: float) -> bool:
    score = score_of(answers, least=LEAST_ANSWERS)
    return score.high is not None and score.high < below


def _turns_of_gold(
    plan: CrowdPlan, gold: GoldPlan, random: np.random.Generator
) -> NDArray[np.int64]:
    """How many labels somebody had given before each of their gold pairs."""
    labels, found = 0, list[int]()
    while labels < plan.judgments:
        chance = chance_of_gold(gold.every, had=labels + len(found), gold=len(found))
        if random.random() < (MOST_CHANCE if len(found) < gold.first else chance):
            found.append(labels)
        else:
            labels += 1
    return np.array(found, dtype=np.int64)


def _by_time(
    plan: CrowdPlan, gold: GoldPlan, kinds: list[str], random: np.random.Generator
) -> NDArray[np.bool_]:
    """By seconds and lengths alone; those who do not read are quick or dawdle."""
    out = []
    for kind in kinds:
        length = random.integers(300, 4000, plan.judgments).astype(np.float64)
        hasty = kind in KINDS and random.random() < gold.hasty
        middle = np.log(0.7) if hasty else np.log(4.0 + length / 150.0)
        seconds = np.exp(middle + random.normal(0.0, 0.4, plan.judgments))
        quick = int(too_fast(seconds, length).sum())
        out.append(quick >= max(LEAST_QUICK, HASTY * plan.judgments))
    return np.array(out)


def _by_agreement(who: Grades, said: Grades, *, out: int) -> NDArray[np.bool_]:
    """Those who give the same grade as others of the pair least often."""
    people = int(who.max()) + 1
    same = (said[:, :, None] == said[:, None, :]).sum(axis=2) - 1
    share = np.bincount(who.ravel(), same.ravel(), people) / np.bincount(who.ravel(), None, people)
    worst = np.argsort(share, kind="stable")[:out]
    found = np.zeros(people, dtype=np.bool_)
    found[worst] = True
    return found


def _judged_again(
    plan: CrowdPlan,
    kinds: list[str],
    who: Grades,
    said: Grades,
    level: Levels,
    out: NDArray[np.bool_],
    random: np.random.Generator,
) -> Grades:
    """The places of those who are out go to somebody who is left and has not judged the pair."""
    labels = said.copy()
    left = np.flatnonzero(~out)
    rows, columns = np.nonzero(out[who])
    taken = [set(each.tolist()) for each in who]
    judges = []
    for row in rows.tolist():
        free = [person for person in random.permutation(left).tolist() if person not in taken[row]]
        taken[row].add(free[0])
        judges.append(free[0])
    by = np.array(judges, dtype=np.int64)
    for person in np.unique(by).tolist():
        at = by == person
        slide = random.random(int(at.sum()))
        given = _grades(plan, kinds[person], level[rows[at]], slide, random)
        labels[rows[at], columns[at]] = given
    return labels

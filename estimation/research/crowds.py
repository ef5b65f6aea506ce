"""Crowds that are made up, some of whom do not read: how many of these the rules find, and whom
they accuse wrongly.

The level of a pair is mostly low, as in pools; whoever reads says it with noise of their own, and
may be lenient, severe, or slide over time. Four kinds do not read: one grade for all, grades by
luck, grades in turn, and the answers of somebody who judged before them. Grades are all that is
looked at; haste is another matter.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from judging.habits import SaidOfPair, patterns

KINDS = ("one grade", "random", "alternating", "copying")
READERS = ("fair", "lenient", "severe", "drifting")


@dataclass(frozen=True)
class CrowdPlan:
    """Of whom a crowd is made. Shares are of all ``people``; each judges ``judgments`` pairs.

    ``labels`` people judge a pair. ``together``: share of a copier's pairs that the other judged.
    """

    people: int = 50
    judgments: int = 40
    labels: int = 5
    spammers: float = 0.1
    lenient: float = 0.1
    severe: float = 0.1
    drifting: float = 0.1
    noise: float = 0.55
    together: float = 0.8
    grades: int = 4


@dataclass
class MadeUpCrowd:
    """Who is what, everybody's grades in their order, and the answers by pair."""

    kinds: list[str]
    orders: dict[int, list[int]] = field(default_factory=dict)
    shared: dict[int, list[SaidOfPair]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class CrowdTally:
    """How many of whom the rules name, over all crowds."""

    spammers: int
    named: int
    rightly: int
    by_kind: dict[str, tuple[int, int]]

    @property
    def recall(self) -> float:
        """Share of those who do not read that are named."""
        return self.rightly / self.spammers if self.spammers else float("nan")

    @property
    def precision(self) -> float:
        """Share of those named that do not read."""
        return self.rightly / self.named if self.named else float("nan")


def make_crowd(plan: CrowdPlan, *, seed: int) -> MadeUpCrowd:
    """Draw a crowd and its answers; kinds that do not read come by turns, from seed to seed."""
    random = np.random.default_rng(seed)
    kinds = kinds_of(plan, seed)
    pairs = plan.people * plan.judgments // plan.labels
    level = np.clip(random.normal(0.5, 1.2, pairs), 0, plan.grades - 1)
    work = _work(plan, kinds, pairs, random)
    said: dict[int, dict[int, int]] = {}
    for who in sorted(range(plan.people), key=lambda each: kinds[each] == "copying"):
        source = said[_source(kinds, who)] if kinds[who] == "copying" else {}
        grades = _grades(plan, kinds[who], level[work[who]], random)
        chosen = zip(work[who].tolist(), grades.tolist(), strict=True)
        said[who] = {pair: source.get(pair, grade) for pair, grade in chosen}
    crowd = MadeUpCrowd(kinds)
    at = 0
    for who in sorted(said, key=lambda each: kinds[each] == "copying"):
        crowd.orders[who] = list(said[who].values())
        for pair, grade in said[who].items():
            crowd.shared[pair].append(SaidOfPair(who, at, grade, True, False))
            at += 1
    return crowd


def measure(plan: CrowdPlan, *, crowds: int, seed: int = 0) -> CrowdTally:
    """Have the rules name people in many crowds."""
    spammers = named = rightly = 0
    tally: dict[str, list[int]] = {kind: [0, 0] for kind in (*KINDS, *READERS)}
    for number in range(crowds):
        crowd = make_crowd(plan, seed=seed + number)
        names = {who: str(who) for who in crowd.orders}
        found = patterns(crowd.orders, crowd.shared, grades=plan.grades, names=names)
        for who, kind in enumerate(crowd.kinds):
            tally[kind][0] += 1
            tally[kind][1] += who in found
        spams = {who for who, kind in enumerate(crowd.kinds) if kind in KINDS}
        spammers, named = spammers + len(spams), named + len(found)
        rightly += len(spams & set(found))
    by_kind = {kind: (count, caught) for kind, (count, caught) in tally.items()}
    return CrowdTally(spammers, named, rightly, by_kind)


def kinds_of(plan: CrowdPlan, seed: int) -> list[str]:
    """What everybody is; those who do not read come first."""
    spammers = round(plan.spammers * plan.people)
    found = [KINDS[(seed + at) % len(KINDS)] for at in range(spammers)]
    for kind in READERS[1:]:
        found += [kind] * round(getattr(plan, kind) * plan.people)
    return found + ["fair"] * (plan.people - len(found))


def _source(kinds: list[str], who: int) -> int:
    """Whom a copier copies: each somebody else, of those who read."""
    readers = [at for at, kind in enumerate(kinds) if kind == "fair"]
    return readers[who % len(readers)]


def _work(
    plan: CrowdPlan, kinds: list[str], pairs: int, random: np.random.Generator
) -> list[np.ndarray]:
    """Which pairs everybody judges, in their order: by chance, and of copiers most of another's."""
    places = np.tile(np.arange(pairs), plan.labels)
    for start in range(0, len(places), pairs):
        places[start : start + pairs] = random.permutation(pairs)
    work = [np.unique(each) for each in np.array_split(places, plan.people)]
    work = [random.permutation(each) for each in work]
    for who, kind in enumerate(kinds):
        if kind == "copying":
            same = work[_source(kinds, who)][: round(plan.together * plan.judgments)]
            own = work[who][~np.isin(work[who], same)][: plan.judgments - len(same)]
            work[who] = np.concatenate([same, own])
    return work


def _grades(
    plan: CrowdPlan, kind: str, level: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    count, best = len(level), plan.grades - 1
    if kind == "one grade":
        return np.full(count, random.integers(plan.grades))
    if kind == "random":
        return random.integers(plan.grades, size=count)
    if kind == "alternating":
        return np.resize(random.permutation(plan.grades)[: 2 + random.integers(2)], count)
    shift = {"lenient": 0.8, "severe": -0.8}.get(kind, 0.0)
    slide = np.linspace(0.0, 1.0, count) if kind == "drifting" else 0.0
    seen = level + shift + slide + random.normal(0.0, plan.noise, count)
    return np.clip(np.round(seen), 0, best).astype(np.int64)


def every_answer(plan: CrowdPlan, level: np.ndarray, *, seed: int) -> np.ndarray:
    """What each of a crowd would say of every pair, (pairs, people), if all judged them all."""
    random, kinds = np.random.default_rng(seed), kinds_of(plan, seed)
    said = np.stack([_grades(plan, kind, level, random) for kind in kinds], axis=1)
    for who, kind in enumerate(kinds):
        if kind == "copying":
            same = random.random(len(level)) < plan.together
            said[same, who] = said[same, _source(kinds, who)]
    return said

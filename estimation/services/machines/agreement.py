"""How far a machine judge agrees with people, once they have judged pairs that it graded too.

The pairs are those of the complete batches of the latest round: a sample with known probabilities,
by one over which each judgment counts, divided among the judgments of its pair. Rounds whose
probabilities are not known beforehand (active ones) are told without weights, and said to be.
Alpha is told both ways, by grade, by topic and by batch, as it is of people (`agreement_facts`),
and beside it theirs, among themselves, for the same pairs. Nothing of this goes back into a design
or an estimate: it is read by people.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction

from estimation.core.arrays import BoolArray, FloatArray, IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.pool import Pool
from estimation.core.estimates.agreement import GradeAgreement, agreement
from estimation.core.labels.alpha import reliability
from estimation.core.labels.ratings import OneAgainstOthers
from estimation.core.measures.table import Measure
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.methods import SAMPLING_METHODS, with_option
from estimation.machine_versions import origins_of
from estimation.models import MachineAnswer, MachineJudge, MachinePrompt, Round
from estimation.selectors import complete_batches
from estimation.services import collections, designing, together
from estimation.services.agreement_facts import (
    LabeledPairs,
    agreement_facts,
    alphas,
    interval,
    ratings_of,
)
from estimation.services.machines.worth import worth_to_models, worth_without_replacement
from estimation.services.pair_weights import pair_weights
from estimation.services.round_labels import RoundLabels
from judging.services import jobs

FEWEST = 30
"""Judged pairs with a machine's grade, below which nothing is said of what they are worth."""


@dataclass(frozen=True)
class Judged:
    """A round's sample with its judgments, what people ``said``, whether or not a senior grade
    counts in its place, and what the machine says of all pairs of the pool."""

    row: Round
    collection: RoundCollection
    said: RoundLabels
    grades: FloatArray

    @property
    def pool(self) -> Pool:
        return self.collection.pool


def compare(job: jobs.Running) -> None:
    """The job: works out the agreement anew, from what is there."""
    judge = MachineJudge.objects.select_related("campaign").filter(pk=job.target).first()
    if judge is None:
        return
    found = compared(judge)
    with transaction.atomic():
        job.fence()
        MachineJudge.objects.filter(pk=judge.pk).update(agreement=found)


def compared(judge: MachineJudge) -> dict[str, Any]:
    """Plain numbers for the page; empty as long as nobody judged what the machine graded."""
    row = _round(judge)
    if row is None:
        return {}
    for prompt in _versions(judge, row):
        found = _judged(row, prompt)
        labels = found.collection.labels
        given = ~np.isnan(found.grades[labels.pair])
        if given.any():
            return _compared(judge, prompt, found, given)
    return {}


def _versions(judge: MachineJudge, row: Round) -> list[MachinePrompt]:
    """Those that the round uses before others, and of these the latest first."""
    origins = origins_of(judge.campaign)
    files = judge.campaign.predictions.filter(name__in=row.predicted_by)
    found = [origins[pk] for pk in files.values_list("upload", flat=True) if pk in origins]
    used = {origin.version for origin in found if origin.judge.pk == judge.pk}
    scale = len(judge.campaign.grades)
    graded = judge.prompts.filter(answers__outcome=MachineAnswer.Outcome.GRADED).distinct()
    answering = [each for each in graded if len(each.grades) == scale]
    return sorted(answering, key=lambda each: (each.number not in used, -each.number))


def _compared(
    judge: MachineJudge, prompt: MachinePrompt, found: Judged, given: BoolArray
) -> dict[str, Any]:
    labels = found.collection.labels
    pair, grade = labels.pair[given], labels.grade[given]
    weight, weighted = _weights(found.collection, pair)
    said = agreement(
        found.grades[pair].astype(np.int64),
        grade,
        weight=weight,
        topic=found.pool.topic[pair].astype(np.int64),
        topics=len(found.pool.topics),
        max_grade=judge.campaign.max_grade,
    )
    alpha = _alpha(found, pair, grade)
    told = alpha | _told(said, alpha["topics"], found.pool)
    pairs = alpha["plain"]["pairs"]
    told |= {"round": found.row.number, "pairs": pairs, "labels": len(pair), "weighted": weighted}
    return told | {"prompt": prompt.number, "worth": _worth(found, pairs)}


def _alpha(found: Judged, pair: IntArray, grade: IntArray) -> dict[str, Any]:
    """Alpha of the machine against people, and of people alone where two judged such a pair."""
    place, which = np.unique(pair, return_inverse=True)
    grades = found.collection.max_grade + 1
    counts = np.bincount(which * grades + grade, minlength=len(place) * grades)
    of_people = counts.reshape(len(place), grades)
    machine = OneAgainstOthers(found.grades[place].astype(np.int64), of_people)
    judged = LabeledPairs.of(found.collection, place)
    told = agreement_facts(machine, judged, found.pool.topics)
    del told["grades"]["table"]  # of which grades people gave what the machine said is told
    rows = np.flatnonzero(~found.said.decided & ~np.isnan(found.grades[found.said.pair]))
    _, _, alone = ratings_of(found.said, rows, grades=grades)
    return told | {"alone": alphas(reliability(alone)) if alone.several.any() else None}


def _round(judge: MachineJudge) -> Round | None:
    """The latest round of documents with a complete batch."""
    rows = judge.campaign.rounds.exclude(pool=None).exclude(state__in=Round.NOT_DRAWN)
    for row in rows.select_related("campaign", "pool", "predictions").order_by("-number"):
        of_documents = designing.measures_of(row)[0].family != "preference"
        if of_documents and complete_batches(row):
            return row
    return None


def _judged(row: Round, prompt: MachinePrompt) -> Judged:
    gathered = collections.gather(row, together.counted(row)[-1:])
    pool = gathered.collection.pool
    answers = MachineAnswer.objects.filter(prompt=prompt, outcome=MachineAnswer.Outcome.GRADED)
    said = {
        (topic, docno): grade
        for topic, docno, grade in answers.values_list("topic__topic_id", "docno", "grade")
    }
    names = zip(pool.topic.tolist(), pool.docno.tolist(), strict=True)
    grades = (said.get((pool.topics[topic], docno.decode()), np.nan) for topic, docno in names)
    said_by_people = gathered.said.people or gathered.said
    of_pool = np.fromiter(grades, dtype=np.float64, count=len(pool))
    return Judged(row, gathered.collection, said_by_people, of_pool)


def _weights(collection: RoundCollection, pair: IntArray) -> tuple[FloatArray, bool]:
    """What each judgment's pair stands for, divided among its judgments; whether that is known."""
    known = pair_weights(collection)
    weight = np.ones(len(collection)) if known is None else known
    each = np.bincount(pair, minlength=len(collection))[pair]
    return weight[pair] / each, known is not None


def _worth(found: Judged, pairs: int) -> dict[str, Any]:
    """How many judgments the predictions would be worth in this round; or why nobody can say."""
    measure, told = designing.measures_of(found.row)[0], _telling(found)
    if told is None:
        return {"unsaid": f"It can be said of {_TELLING} rounds only."}
    if measure.family != "gain":
        return {"unsaid": f"It can be said of sums of gains only, and {measure} is none."}
    if pairs < FEWEST:
        return {"unsaid": f"It can be said once {FEWEST} pairs that it graded are judged."}
    worth = told(found.collection, measure, found.grades)
    if not np.isfinite(worth):
        return {"unsaid": "Too little is known of the runs of this round to say it."}
    sampled = len(found.collection.sampled)
    worth = min(worth, float(len(found.pool) - sampled))
    return {"judgments": worth, "of": sampled, "measure": str(measure)}


def _telling(found: Judged) -> Callable[[RoundCollection, Measure, FloatArray], float] | None:
    """What works it out for rounds like this."""
    drawn = found.collection.drawn
    if isinstance(drawn, AdaptiveRound):
        return worth_to_models
    of_pairs = found.row.method in with_option("difference") and isinstance(drawn, PairRound)
    return worth_without_replacement if of_pairs else None


_TELLING = " and ".join(
    SAMPLING_METHODS[name].short for name in ("adaptive", *with_option("difference"))
)


def _told(said: GradeAgreement, alphas_of: list[dict[str, Any]], pool: Pool) -> dict[str, Any]:
    worst = np.argsort(-np.nan_to_num(said.topic_error, nan=-1.0), kind="stable")
    alpha = {each["topic"]: each for each in alphas_of}
    return {
        "kappa": interval(said.kappa),
        "bias": interval(said.bias),
        "equal": said.equal,
        "table": said.table.tolist(),
        "counts": said.counts.tolist(),
        "topics": [
            alpha[pool.topics[place]]
            | {
                "labels": int(said.topic_pairs[place]),
                "bias": float(said.topic_bias[place]),
                "error": float(said.topic_error[place]),
            }
            for place in worst.tolist()
            if said.topic_pairs[place]
        ],
    }

"""Which pairs a machine judge is asked about first: those where a prediction pays.

Why the order biases nothing: it decides only which pairs have a predicted grade. What is predicted
of a pair, or that nothing is, is fixed before a round that uses it is drawn; the design then gives
every pair a known probability, and the difference estimator is unbiased whatever was predicted.
"""

import json
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, column_sums
from estimation.core.data.pool import Pool
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.sampling.designs import Design
from estimation.models import MachineAnswer, MachineJudge, MachinePrompt, Round
from estimation.plans import NAMED
from estimation.services import designing, files, pools
from judging import selectors as judging
from judging.errors import UserError


@dataclass(frozen=True)
class AskingOrder:
    """All pairs that are worth asking about, best first, as (topic, docno); and by what."""

    pairs: list[tuple[str, str]]
    by: str


def make(judge: MachineJudge, prompt: MachinePrompt) -> AskingOrder:
    """The pairs with a text that were not answered yet, as many as calls are left and one more.

    The one more tells whether the ceiling, or the pool, is what ends the asking.

    Raises UserError ``nothing_to_pool`` (409) without topics or runs.
    """
    pool, sizes, by = _sizes(judge)
    place = {name: number for number, name in enumerate(pool.topics)}
    answers = MachineAnswer.objects.filter(prompt=prompt)
    done = {(place.get(topic), docno) for topic, docno in answers.values_list(*_NAMED)}
    texts = set(judging.documents(judge.campaign).values_list("docno", flat=True))
    pairs: list[tuple[str, str]] = []
    for pair in np.argsort(-sizes, kind="stable").tolist():
        topic, docno = int(pool.topic[pair]), pool.docno[pair].decode()
        if len(pairs) > judge.max_calls - judge.calls or sizes[pair] <= 0.0:
            break
        if docno in texts and (topic, docno) not in done:
            pairs.append((pool.topics[topic], docno))
    return AskingOrder(pairs, by)


_NAMED = ("topic__topic_id", "docno")


def keep(order: AskingOrder) -> str:
    """The order as a file, so that a worker that takes over goes on where another one was."""
    return files.keep("machine-orders", json.dumps(order.pairs).encode())


def read_back(name: str) -> list[tuple[str, str]]:
    return [(topic, docno) for topic, docno in json.loads(files.path_of(name).read_bytes())]


def _sizes(judge: MachineJudge) -> tuple[Pool, FloatArray, str]:
    """How much each pair of the pool matters, shape (N,)."""
    drafted = judge.campaign.rounds.filter(state=Round.State.DRAFTED).order_by("-number")
    for row in drafted.select_related("campaign", *NAMED):
        try:
            _, pool = designing.pool_for(row)
            design = None if pool.is_of_preferences else designing.design_of(row, pool)
        except UserError:
            continue
        if isinstance(design, AdaptivePlan):
            design = design.design  # from which the first batch is drawn
        if isinstance(design, Design):
            return pool, design.size, f"by the design of round {row.number} ({row.measure})"
    _, pool = pools.ensure(judge.campaign)
    return pool, _returned(pool), "by how many runs return them, and how high"


def _returned(pool: Pool) -> FloatArray:
    """1 / log2(1 + rank), summed over the runs that return the pair."""
    worth = 1.0 / np.log2(1.0 + pool.rank)
    return column_sums(pool.entry_pair, worth, number=len(pool))

"""A campaign with documents of many lengths, tables of costs, and designs by the core alone."""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from estimation.core.data.pool import Pool
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.priors import Prior, make_prior
from estimation.models import Prediction, Round
from estimation.services import files, pools
from judging.models import Campaign
from tests.support import evaluation, factories

MEASURE = parse_measure("DCG@10")
WORDS = {f"d{n}": 40 * n for n in range(1, 24)}  # d24 has no text
WITH_LENGTHS = replace(
    evaluation.SMALL,
    documents="".join(
        json.dumps({"docno": docno, "title": "a title", "text": "word " * (words - 2)}) + "\n"
        for docno, words in WORDS.items()
    ).encode(),
)


def pool_of(campaign: Campaign) -> Pool:
    return pools.ensure(campaign)[1]


def keys(pool: Pool) -> list[tuple[str, str]]:
    return [(pool.topics[t], d.decode()) for t, d in zip(pool.topic, pool.docno, strict=True)]


def table(campaign: Campaign, *, name: str = "prices.tsv", leave_out: int = 0) -> np.ndarray:
    """Uploads a cost for every pair but the first ones; returns the costs in the pool's order."""
    pool = pool_of(campaign)
    cost = 0.25 + np.arange(len(pool)) % 7
    lines = [f"{t} {d} {c!r}" for (t, d), c in zip(keys(pool), cost.tolist(), strict=True)]
    content = "\n".join(["topic docno cost", *lines[leave_out:]]).encode()
    upload = factories.stored_upload(campaign, content, name=name)
    assert upload.state == "accepted", upload.errors
    return cost


def grades(campaign: Campaign, name: str = "judge.tsv") -> Prediction:
    lines = [f"{topic} {docno} 1" for topic, docno in keys(pool_of(campaign))]
    upload = factories.stored_upload(
        campaign, "\n".join(lines).encode(), name=name, kind="predictions"
    )
    assert upload.state == "accepted", upload.errors
    return upload.prediction


def design_file(row: Round) -> Design:
    stored = files.path_of(row.design_file)
    return AdaptivePlan.load(stored).design if row.method == "adaptive" else Design.load(stored)


def rank_prior(pool: Pool) -> Prior:
    goal = goals.absolute(*pool.runs)
    return make_prior(pool, name="rank", goal=goal, measure=MEASURE, max_grade=3)


def core_design(pool: Pool, **options: Any) -> Design:
    goal, prior = goals.absolute(*pool.runs), rank_prior(pool)
    chosen = {"budget": 60, "batch_size": 20, "reported": [parse_measure("P@10")]} | options
    return make_design(pool, goal=goal, measure=MEASURE, prior=prior, max_grade=3, **chosen)

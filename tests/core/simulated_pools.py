"""A pool as large as statistics need: runs that rank documents by their grades and by chance."""

import numpy as np

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists

TOPICS, DOCUMENTS, RUNS, DEPTH = 20, 120, 6, 30
SHARES = (0.85, 0.08, 0.04, 0.03)  # of the grades 0 to 3


def simulated_pool() -> tuple[Pool, np.ndarray]:
    """A pool of six runs over twenty topics, and the grade of each of its pairs."""
    rng = np.random.default_rng(5)
    grades = rng.choice(len(SHARES), size=(TOPICS, DOCUMENTS), p=SHARES)
    names = [f"t{topic:02}" for topic in range(TOPICS)]
    runs = {}
    for run in range(RUNS):
        scores = grades + rng.normal(scale=1.0 + run / 2.0, size=grades.shape)
        order = np.argsort(-scores, axis=1)[:, :DEPTH]
        docnos = np.array([f"d{document:03}".encode() for document in order.ravel()])
        runs[f"r{run}"] = RankedLists(tuple(names), np.arange(TOPICS + 1) * DEPTH, docnos)
    pool = build_pool(names, runs, depth=DEPTH)
    documents = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return pool, grades[pool.topic, documents]


def harmful_predictions(grades: np.ndarray) -> dict[str, np.ndarray]:
    """Predicted grades from 0 to 3 that know nothing of the truth, or the contrary."""
    rng, pairs = np.random.default_rng(6), len(grades)
    return {
        "noise": 3.0 * rng.random(pairs),
        "whole grades by chance": rng.integers(4, size=pairs).astype(float),
        "0 or 3 by chance": 3.0 * (rng.random(pairs) < 0.06),
        "heavy tails": np.where(rng.random(pairs) < 0.003, 3.0, 0.006),
        "constant": np.full(pairs, 1.5),
        "upside down": 3.0 - helpful_predictions(grades),
        "upside down, whole": 3.0 - np.round(helpful_predictions(grades)),
    }


def helpful_predictions(grades: np.ndarray) -> np.ndarray:
    """Predicted grades from 0 to 3 that have a correlation of 0.6 with the truth."""
    noise = np.random.default_rng(7).normal(size=len(grades))
    said = grades + grades.std() * np.sqrt(1.0 / 0.36 - 1.0) * noise
    return 3.0 * (said - said.min()) / np.ptp(said)

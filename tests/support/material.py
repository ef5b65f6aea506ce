"""A small made-up collection, as files, the same for every call."""

import json
import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Material:
    topics: bytes
    documents: bytes
    runs: dict[str, bytes]
    truth: dict[tuple[str, str], int]


def small_material(
    *, topics: int = 20, documents: int = 60, runs: int = 6, depth: int = 30, seed: int = 7
) -> Material:
    """Runs of falling quality over topics ``t1``, ``t2``, … and documents ``d1``, ``d2``, …"""
    rng = random.Random(seed)
    topic_ids = [f"t{n}" for n in range(1, topics + 1)]
    docnos = [f"d{n}" for n in range(1, documents + 1)]
    truth = {
        (topic, docno): rng.choices(range(4), weights=(70, 15, 10, 5))[0]
        for topic in topic_ids
        for docno in docnos
    }
    tags = [f"run{n}" for n in range(1, runs + 1)]
    return Material(
        topics="".join(f"{topic}\tabout {topic}\n" for topic in topic_ids).encode(),
        documents="".join(
            json.dumps({"docno": docno, "title": docno, "text": f"What {docno} says. " * 20}) + "\n"
            for docno in docnos
        ).encode(),
        runs={
            f"{tag}.run": _run(tag, truth, topic_ids, docnos, depth, noise, rng)
            for noise, tag in enumerate(tags, start=1)
        },
        truth=truth,
    )


def _run(
    tag: str,
    truth: dict[tuple[str, str], int],
    topics: list[str],
    docnos: list[str],
    depth: int,
    noise: int,
    rng: random.Random,
) -> bytes:
    lines = []
    for topic in topics:
        scores = {docno: truth[topic, docno] + rng.gauss(0, noise) for docno in docnos}
        best = sorted(scores, key=lambda docno: -scores[docno])[:depth]
        lines += [
            f"{topic} Q0 {docno} {rank} {scores[docno]:.6f} {tag}\n"
            for rank, docno in enumerate(best, start=1)
        ]
    return "".join(lines).encode()

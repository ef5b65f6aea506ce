"""Retrieval models over an inverted index; every result is deterministic.

A model maps an index and the query's terms to one score per document; a document that the
model does not return has the score minus infinity.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Terms = Mapping[str, float]

EXCLUDED = -np.inf


@dataclass(frozen=True)
class Index:
    """Inverted index: term -> (document numbers, term frequencies), and document lengths."""

    postings: dict[str, tuple[NDArray[np.int64], Floats]]
    lengths: Floats

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.lengths)

    @cached_property
    def tfidf_norms(self) -> Floats:
        """Length of every document's vector of (1 + ln tf) * idf."""
        squares = np.zeros(self.size)
        for term, (documents, frequencies) in self.postings.items():
            squares[documents] += (self.idf(term) * (1 + np.log(frequencies))) ** 2
        return np.maximum(np.sqrt(squares), 1e-9)

    @cached_property
    def terms(self) -> list[list[tuple[str, float]]]:
        """Every document's terms in alphabetical order, with their frequencies."""
        found: list[list[tuple[str, float]]] = [[] for _ in range(self.size)]
        for term, (documents, frequencies) in self.postings.items():
            for document, frequency in zip(documents.tolist(), frequencies.tolist(), strict=True):
                found[document].append((term, frequency))
        return found

    def idf(self, term: str) -> float:
        """Logarithm of the inverse document frequency, 0 for an unknown term."""
        found = self.postings.get(term)
        return float(np.log(self.size / len(found[0]))) if found else 0.0

    def matching(self, terms: Terms) -> NDArray[np.bool_]:
        """Which documents contain at least one of the terms."""
        matched = np.zeros(self.size, dtype=np.bool_)
        for term in terms:
            if term in self.postings:
                matched[self.postings[term][0]] = True
        return matched


def build_index(texts: Sequence[Sequence[str]]) -> Index:
    """Index of the documents' term lists, in the given order."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for number, terms in enumerate(texts):
        for term, frequency in Counter(terms).items():
            documents, frequencies = found.setdefault(term, ([], []))
            documents.append(number)
            frequencies.append(float(frequency))
    postings = {
        term: (np.array(documents, dtype=np.int64), np.array(frequencies))
        for term, (documents, frequencies) in sorted(found.items())
    }
    return Index(postings, np.array([float(len(terms)) for terms in texts]))


def query_terms(terms: Sequence[str]) -> Terms:
    """Terms of a query with their frequencies."""
    return {term: float(count) for term, count in sorted(Counter(terms).items())}


def bm25(index: Index, query: Terms, *, k1: float = 1.2, b: float = 0.75) -> Floats:
    """Okapi BM25 (Robertson and Zaragoza 2009), with idf floored at zero."""
    scores = np.zeros(index.size)
    norm = k1 * (1 - b + b * index.lengths / index.lengths.mean())
    for term, weight in _known(index, query):
        documents, frequencies = index.postings[term]
        inside = (index.size - len(documents) + 0.5) / (len(documents) + 0.5)
        gain = frequencies * (k1 + 1) / (frequencies + norm[documents])
        scores[documents] += weight * np.log1p(inside) * gain
    return _only(index, query, scores)


def tfidf_cosine(index: Index, query: Terms) -> Floats:
    """Cosine of the vectors (1 + ln tf) * idf of query and document."""
    scores = np.zeros(index.size)
    for term, weight in _known(index, query):
        documents, frequencies = index.postings[term]
        scores[documents] += weight * index.idf(term) ** 2 * (1 + np.log(frequencies))
    return _only(index, query, scores / index.tfidf_norms)


def query_likelihood_dirichlet(index: Index, query: Terms, *, mu: float) -> Floats:
    """Query likelihood with Dirichlet smoothing (Zhai and Lafferty 2004), rank-equivalent form."""
    total = float(index.lengths.sum())
    scores = sum(query.values()) * np.log(mu / (index.lengths + mu))
    for term, weight in _known(index, query):
        documents, frequencies = index.postings[term]
        scores[documents] += weight * np.log1p(frequencies * total / (mu * frequencies.sum()))
    return _only(index, query, scores)


def query_likelihood_jelinek_mercer(index: Index, query: Terms, *, smoothing: float) -> Floats:
    """Query likelihood with Jelinek-Mercer smoothing, rank-equivalent form."""
    total = float(index.lengths.sum())
    scores = np.zeros(index.size)
    for term, weight in _known(index, query):
        documents, frequencies = index.postings[term]
        inside = frequencies / index.lengths[documents] * total / frequencies.sum()
        scores[documents] += weight * np.log1p((1 - smoothing) / smoothing * inside)
    return _only(index, query, scores)


def dph(index: Index, query: Terms) -> Floats:
    """The parameter-free divergence from randomness model DPH (Amati 2006)."""
    scores = np.zeros(index.size)
    mean_length = index.lengths.mean()
    for term, weight in _known(index, query):
        documents, frequencies = index.postings[term]
        length = index.lengths[documents]
        share = np.minimum(frequencies / length, 1 - 1e-9)
        norm = (1 - share) ** 2 / (frequencies + 1)
        information = np.log2(
            frequencies * mean_length / length * index.size / frequencies.sum()
        ) * frequencies + 0.5 * np.log2(2 * np.pi * frequencies * (1 - share))
        scores[documents] += weight * norm * information
    return _only(index, query, scores)


def coordination(index: Index, query: Terms) -> Floats:
    """Number of different query terms in the document, short documents first."""
    counts = np.zeros(index.size)
    for term, _ in _known(index, query):
        counts[index.postings[term][0]] += 1
    return _only(index, query, counts + 1 / (2 + index.lengths))


def longest_first(index: Index, query: Terms) -> Floats:
    """Length of the document, among those with a term of the query: a deliberately poor model."""
    return _only(index, query, index.lengths.copy())


def expand_rm3(
    index: Index,
    query: Terms,
    scores: Floats,
    *,
    documents: int,
    terms: int,
    original: float,
) -> Terms:
    """The query mixed with the best terms of its top documents (RM3, Abdul-Jaleel et al. 2004)."""
    best = best_documents(scores, documents)
    weights = scores[best] / max(float(scores[best].sum()), 1e-9)
    model: dict[str, float] = {}
    for document, weight in zip(best.tolist(), weights.tolist(), strict=True):
        for term, frequency in index.terms[document]:
            share = frequency / float(index.lengths[document])
            model[term] = model.get(term, 0.0) + weight * share * index.idf(term)
    chosen = sorted(model.items(), key=lambda item: (-round(item[1], 9), item[0]))[:terms]
    return _mixed(query, dict(chosen), original=original)


def best_documents(scores: Floats, count: int) -> NDArray[np.int64]:
    """Numbers of the highest returned scores; ties (to 4 decimals) by higher number first.

    Documents are numbered in docno order, so that this is trec_eval's order.
    """
    rounded = np.round(scores, 4)
    order = np.lexsort((-np.arange(len(scores)), -rounded))
    return order[np.isfinite(rounded[order])][:count].astype(np.int64)


def reciprocal_rank_fusion(rankings: Sequence[Floats], *, depth: int, k: float = 60.0) -> Floats:
    """Sum of 1 / (k + rank) over the rankings (Cormack et al. 2009)."""
    fused = np.full(len(rankings[0]), 0.0)
    for scores in rankings:
        best = best_documents(scores, depth)
        fused[best] += 1 / (k + 1 + np.arange(len(best)))
    # Scaled, because scores are written with four decimals.
    return np.where(fused > 0, 1000 * fused, EXCLUDED)


def reversed_top(scores: Floats, *, depth: int) -> Floats:
    """The same documents down to the depth, the last one first."""
    best = best_documents(scores, depth)
    result = np.full(len(scores), EXCLUDED)
    result[best] = np.arange(1, len(best) + 1)
    return result


def hashed_scores(docnos: Sequence[str], *, salt: str) -> Floats:
    """Numbers that look random, the same on every machine."""
    digests = (hashlib.sha256(f"{salt}|{docno}".encode()).digest() for docno in docnos)
    return np.array([int.from_bytes(digest[:6], "big") / 2**48 for digest in digests])


def _known(index: Index, query: Terms) -> list[tuple[str, float]]:
    return [(term, weight) for term, weight in query.items() if term in index.postings]


def _only(index: Index, query: Terms, scores: Floats) -> Floats:
    return np.where(index.matching(query), scores, EXCLUDED)


def _mixed(query: Terms, model: Terms, *, original: float) -> Terms:
    total, mass = sum(query.values()), max(sum(model.values()), 1e-9)
    names = sorted({*query, *model})
    return {
        name: original * query.get(name, 0.0) / total + (1 - original) * model.get(name, 0.0) / mass
        for name in names
    }

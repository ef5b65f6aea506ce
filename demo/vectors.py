"""Retrieval in few dimensions: latent semantic indexing and word vectors."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from demo.retrieval import EXCLUDED, Floats, Index, Terms

ITERATIONS = 25


@dataclass(frozen=True)
class VectorSpace:
    """Unit vectors of documents, and the vectors of terms that make a query's vector."""

    documents: Floats
    terms: Floats
    columns: dict[str, int]

    def scores(self, query: Terms) -> Floats:
        """Cosine of every document with the sum of the query's term vectors."""
        vector = np.zeros(self.terms.shape[1])
        for term, weight in query.items():
            if term in self.columns:
                vector += weight * self.terms[self.columns[term]]
        cosine = self.documents @ _unit(vector[np.newaxis, :])[0]
        return np.where(cosine > 0, cosine, EXCLUDED)


def latent_semantic_space(index: Index, *, dimensions: int, least: int = 2) -> VectorSpace:
    """LSI (Deerwester et al. 1990) of the tf-idf matrix, over terms of `least` documents."""
    columns = _columns(index, least)
    matrix = _unit_rows(_tfidf_matrix(index, columns))
    basis, values = left_singular_vectors(matrix, dimensions)
    terms = matrix.T @ basis / values
    return VectorSpace(_unit(matrix @ terms), _by_idf(index, columns, terms), columns)


def word_vector_space(
    index: Index, texts: Sequence[Sequence[str]], *, dimensions: int, window: int, least: int = 3
) -> VectorSpace:
    """Word vectors from positive pointwise mutual information; a document is their weighted sum."""
    columns = _columns(index, least)
    information = _positive_information(_cooccurrences(texts, columns, window))
    basis, values = left_singular_vectors(information, dimensions)
    vectors = _unit(basis * np.sqrt(values))
    documents = _tfidf_matrix(index, columns) @ vectors
    return VectorSpace(_unit(documents), _by_idf(index, columns, vectors), columns)


def left_singular_vectors(matrix: csr_array, count: int) -> tuple[Floats, Floats]:
    """The first left singular vectors and singular values, by subspace iteration.

    The start is a fixed matrix of signs, so that nothing depends on a random generator.
    """
    basis = _signs(matrix.shape[0], count + 20)
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(matrix @ (matrix.T @ basis)).Q
    projected: Floats = matrix.T @ basis
    rotation, values, _ = np.linalg.svd(projected.T, full_matrices=False)
    vectors = basis @ rotation[:, :count]
    return vectors.astype(np.float64), values[:count].astype(np.float64)


def _signs(rows: int, columns: int) -> Floats:
    needed = rows * columns // 8 + 1
    stream = b"".join(
        hashlib.sha256(f"signs|{block}".encode()).digest() for block in range(needed // 32 + 1)
    )
    bits = np.unpackbits(np.frombuffer(stream, dtype=np.uint8))[: rows * columns]
    return 2.0 * bits.reshape(rows, columns).astype(np.float64) - 1.0


def _columns(index: Index, least: int) -> dict[str, int]:
    terms = [term for term, (documents, _) in index.postings.items() if len(documents) >= least]
    return {term: column for column, term in enumerate(terms)}


def _tfidf_matrix(index: Index, columns: dict[str, int]) -> csr_array:
    rows, places, values = [], [], []
    for term, column in columns.items():
        documents, frequencies = index.postings[term]
        rows.append(documents)
        places.append(np.full(len(documents), column))
        values.append((1 + np.log(frequencies)) * index.idf(term))
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(places)))
    return csr_array(entries, shape=(index.size, len(columns)))


def _by_idf(index: Index, columns: dict[str, int], terms: Floats) -> Floats:
    weights = np.array([index.idf(term) for term in columns])
    return np.asarray(terms * weights[:, np.newaxis])


def _cooccurrences(
    texts: Sequence[Sequence[str]], columns: dict[str, int], window: int
) -> csr_array:
    pairs: Counter[tuple[int, int]] = Counter()
    for text in texts:
        numbers = [columns[term] for term in text if term in columns]
        for distance in range(1, window + 1):
            pairs.update(zip(numbers, numbers[distance:], strict=False))
    rows, places = np.array(list(pairs)).T
    counts = np.array(list(pairs.values()), dtype=np.float64)
    matrix = csr_array((counts, (rows, places)), shape=(len(columns), len(columns)))
    return csr_array(matrix + matrix.T)


def _positive_information(counts: csr_array) -> csr_array:
    totals = np.maximum(counts.sum(axis=1), 1.0)
    # Context counts to the power 0.75 keep rare contexts from dominating (Levy et al. 2015).
    contexts = totals**0.75 / (totals**0.75).sum()
    found = counts.tocoo()
    rows, places = found.coords
    values = np.log(found.data / (totals[rows] * contexts[places]))
    return csr_array((np.maximum(values, 0.0), (rows, places)), shape=counts.shape)


def _unit_rows(matrix: csr_array) -> csr_array:
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    return csr_array(diags_array(1 / np.maximum(lengths, 1e-12)) @ matrix)


def _unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))

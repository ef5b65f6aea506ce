"""The demo's runs: which retrieval methods rank the documents, under which tags."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from demo.analysis import character_ngrams, stems, words
from demo.documents import Document
from demo.relevance import Topic
from demo.retrieval import (
    Floats,
    Index,
    Terms,
    best_documents,
    bm25,
    build_index,
    coordination,
    dph,
    expand_rm3,
    hashed_scores,
    longest_first,
    query_likelihood_dirichlet,
    query_likelihood_jelinek_mercer,
    query_terms,
    reciprocal_rank_fusion,
    reversed_top,
    tfidf_cosine,
)
from demo.vectors import VectorSpace, latent_semantic_space, word_vector_space

DEPTH = 100
TITLE_WEIGHT = 3

Analyzer = Callable[[str], list[str]]
Ranker = Callable[[Topic], Floats]


@dataclass(frozen=True)
class Indexes:
    """The documents, indexed in every way that a run needs."""

    docnos: list[str]
    both: Index
    title: Index
    body: Index
    stemmed: Index
    ngrams: Index
    lsi: VectorSpace
    word_vectors: VectorSpace


def build_indexes(documents: Sequence[Document]) -> Indexes:
    """All indexes and vector spaces of the documents."""
    stemmed = [stems(_weighted(d)) for d in documents]
    stem_index = build_index(stemmed)
    return Indexes(
        docnos=[d.docno for d in documents],
        both=build_index([words(f"{d.title} {d.text}") for d in documents]),
        title=build_index([words(d.title) for d in documents]),
        body=build_index([words(d.text) for d in documents]),
        stemmed=stem_index,
        ngrams=build_index([character_ngrams(f"{d.title} {d.text}") for d in documents]),
        lsi=latent_semantic_space(stem_index, dimensions=100),
        word_vectors=word_vector_space(stem_index, stemmed, dimensions=100, window=5),
    )


def rankers(ix: Indexes) -> dict[str, Ranker]:
    """Tag -> the function that scores all documents for a topic."""
    plain: dict[str, Ranker] = {
        "bm25": lambda t: bm25(ix.both, _title(t, words)),
        "bm25-b072": lambda t: bm25(ix.both, _title(t, words), b=0.72),
        "bm25-title": lambda t: bm25(ix.title, _title(t, words)),
        "bm25-body": lambda t: bm25(ix.body, _title(t, words)),
        "bm25-stemmed": lambda t: bm25(ix.stemmed, _title(t, stems), b=0.4),
        "bm25-long-query": lambda t: bm25(ix.stemmed, _long(t, stems), b=0.4),
        "bm25-rm3": lambda t: _feedback(ix, t, documents=10, terms=20, original=0.6),
        "feedback-only": lambda t: _feedback(ix, t, documents=5, terms=30, original=0.0),
        "tfidf-cosine": lambda t: tfidf_cosine(ix.both, _title(t, words)),
        "dph": lambda t: dph(ix.both, _title(t, words)),
        "ql-dirichlet": lambda t: query_likelihood_dirichlet(ix.both, _title(t, words), mu=100),
        "ql-jelinek-mercer": lambda t: query_likelihood_jelinek_mercer(
            ix.stemmed, _title(t, stems), smoothing=0.5
        ),
        "coordination": lambda t: coordination(ix.both, _title(t, words)),
        "char-4grams": lambda t: tfidf_cosine(ix.ngrams, _title(t, character_ngrams)),
        "lsi-100": lambda t: ix.lsi.scores(_title(t, stems)),
        "word-vectors": lambda t: ix.word_vectors.scores(_title(t, stems)),
        "longest-first": lambda t: longest_first(ix.both, _title(t, words)),
        "random": lambda t: hashed_scores(ix.docnos, salt=f"random|{t.id}"),
    }
    return dict(sorted({**plain, **_derived(plain)}.items()))


def ranking(scores: Floats, docnos: Sequence[str]) -> list[tuple[str, float]]:
    """The first documents by trec_eval's order with their scores to four decimals."""
    best = best_documents(scores, DEPTH).tolist()
    return [(docnos[number], round(float(scores[number]), 4)) for number in best]


def run_lines(tag: str, topic: str, ranked: Sequence[tuple[str, float]]) -> Iterator[str]:
    """One topic's lines in the six columns of TREC."""
    for rank, (docno, score) in enumerate(ranked, start=1):
        yield f"{topic} Q0 {docno} {rank} {score:.4f} {tag}\n"


def _derived(plain: dict[str, Ranker]) -> dict[str, Ranker]:
    parts = ("bm25-long-query", "bm25-rm3", "lsi-100", "char-4grams")
    return {
        "bm25-reversed": lambda t: reversed_top(plain["bm25"](t), depth=DEPTH),
        "fusion-rrf": lambda t: reciprocal_rank_fusion(
            [plain[part](t) for part in parts], depth=DEPTH
        ),
    }


def _feedback(ix: Indexes, topic: Topic, *, documents: int, terms: int, original: float) -> Floats:
    query = _title(topic, stems)
    first = bm25(ix.stemmed, query, b=0.4)
    expanded = expand_rm3(
        ix.stemmed, query, first, documents=documents, terms=terms, original=original
    )
    return bm25(ix.stemmed, expanded, b=0.4)


def _weighted(document: Document) -> str:
    return " ".join([document.title] * TITLE_WEIGHT + [document.text])


def _title(topic: Topic, analyzer: Analyzer) -> Terms:
    return query_terms(analyzer(topic.title))


def _long(topic: Topic, analyzer: Analyzer) -> Terms:
    return query_terms(analyzer(topic.title) * 2 + analyzer(topic.description))

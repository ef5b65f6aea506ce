"""The demo's topics, and the grade of every document for every topic by rules and corrections."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from demo.documents import Document

TOPICS_FILE = Path(__file__).with_name("topics.toml")
CORRECTIONS_FILE = Path(__file__).with_name("corrections.tsv")
GRADES = {"perfect": 3, "relevant": 2, "related": 1}

Grades = dict[tuple[str, str], int]


@dataclass(frozen=True)
class Rule:
    """A docno pattern, and a word that title or text must contain ("" for none)."""

    pattern: str
    word: str
    grade: int

    def matches(self, document: Document) -> bool:
        """Whether the rule gives its grade to the document."""
        if not fnmatchcase(document.docno, self.pattern):
            return False
        return self.word.lower() in f"{document.title}\n{document.text}".lower()


@dataclass(frozen=True)
class Topic:
    """A hand-written topic with its rules of relevance."""

    id: str
    title: str
    description: str
    narrative: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Correction:
    """A grade set by hand, with the reason."""

    topic: str
    docno: str
    grade: int
    reason: str


def load_topics(path: Path = TOPICS_FILE) -> list[Topic]:
    """The topics in the file's order, numbered from 1."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["topic"]
    return [_topic(str(number), entry) for number, entry in enumerate(entries, start=1)]


def load_corrections(path: Path = CORRECTIONS_FILE) -> list[Correction]:
    """Corrections: lines of topic, docno, grade and reason, separated by tabs."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return [Correction(topic, docno, int(grade), reason) for topic, docno, grade, reason in rows]


def grade_all(
    topics: Sequence[Topic], documents: Sequence[Document], corrections: Sequence[Correction]
) -> Grades:
    """(topic, docno) -> grade, for all grades above 0; what is missing is not relevant."""
    grades: Grades = {}
    for topic in topics:
        grades.update(_by_rules(topic, documents))
    for correction in corrections:
        grades[correction.topic, correction.docno] = correction.grade
    return {pair: grade for pair, grade in sorted(grades.items()) if grade > 0}


def unmatched_rules(topics: Sequence[Topic], documents: Sequence[Document]) -> list[str]:
    """Rules to which no document answers, as "topic: pattern"."""
    return [
        f"{topic.id}: {rule.pattern}"
        for topic in topics
        for rule in topic.rules
        if not any(rule.matches(document) for document in documents)
    ]


def qrels_lines(grades: Grades) -> Iterator[str]:
    """The grades above 0 in trec_eval's four columns, by topic number and docno."""
    for topic, docno in sorted(grades, key=lambda pair: (int(pair[0]), pair[1])):
        yield f"{topic} 0 {docno} {grades[topic, docno]}\n"


def _topic(number: str, entry: Mapping[str, object]) -> Topic:
    title, description, narrative = (
        str(entry[key]) for key in ("title", "description", "narrative")
    )
    return Topic(number, title, description, narrative, tuple(_rules(entry)))


def _rules(entry: Mapping[str, object]) -> Iterator[Rule]:
    for name, grade in GRADES.items():
        patterns = entry.get(name, [])
        if not isinstance(patterns, list):
            raise TypeError(f"{name} must be a list of patterns")
        for text in patterns:
            pattern, _, word = str(text).partition(" ~ ")
            yield Rule(pattern, word, grade)


def _by_rules(topic: Topic, documents: Sequence[Document]) -> Grades:
    found: Grades = {}
    for document in documents:
        grade = max((r.grade for r in topic.rules if r.matches(document)), default=0)
        if grade:
            found[topic.id, document.docno] = grade
    return found

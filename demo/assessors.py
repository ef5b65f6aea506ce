"""Simulated assessors of the demo campaign: standard library only, no state, no chance.

An assessor's grade for a pair follows from the true grade, the assessor's confusion table and
a hash of (seed, assessor, topic, docno), so that the same campaign is judged alike every time.
"""

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

Truth = Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class AssessorProfile:
    """A simulated assessor.

    ``confusion[g][h]`` is the probability that a document of true grade g gets the grade h.
    """

    username: str
    name: str
    description: str
    confusion: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        size = len(self.confusion)
        for row in self.confusion:
            if len(row) != size or min(row) < 0 or abs(sum(row) - 1) > 1e-9:
                raise ValueError(f"{self.username}: {row} is not a row of {size} probabilities")


def load_truth(path: Path) -> dict[tuple[str, str], int]:
    """(topic, docno) -> true grade, from qrels (plain or .gz); pairs left out have grade 0."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    rows = (line.split() for line in text.splitlines() if line.strip())
    return {(topic, docno): int(grade) for topic, _, docno, grade in rows}


def load_profiles(path: Path) -> list[AssessorProfile]:
    """The assessors that a campaign.json describes, in its order."""
    entries = json.loads(path.read_text(encoding="utf-8"))["assessors"]
    return [_profile(entry) for entry in entries]


def simulated_grade(
    truth: Truth, profile: AssessorProfile, *, seed: int, topic: str, docno: str
) -> int:
    """The grade that the assessor gives to the document for the topic.

    Parameters
    ----------
    truth : mapping
        (topic, docno) -> true grade; a missing pair has grade 0.
    profile : AssessorProfile
        Who judges.
    seed : int
        Another seed gives other, independent errors.
    topic, docno : str
        The pair.
    """
    row = profile.confusion[truth.get((topic, docno), 0)]
    number = uniform(seed, profile.username, topic, docno)
    bounds = list(accumulate(row))[:-1]
    return sum(number >= bound for bound in bounds)


def expected_grade(profile: AssessorProfile, grade: int) -> float:
    """Mean of the grades that the assessor gives to documents of a true grade."""
    return sum(given * share for given, share in enumerate(profile.confusion[grade]))


def uniform(*parts: object) -> float:
    """A number in [0, 1), uniform over different parts, the same for the same parts."""
    text = json.dumps([str(part) for part in parts])
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def _profile(entry: Mapping[str, object]) -> AssessorProfile:
    rows = entry["confusion"]
    if not isinstance(rows, list):
        raise ValueError("confusion must be a list of rows")
    return AssessorProfile(
        username=str(entry["username"]),
        name=str(entry["name"]),
        description=str(entry["description"]),
        confusion=tuple(tuple(float(share) for share in row) for row in rows),
    )

"""Simulated assessors judge the same way every time, and err as their profiles say."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from demo.assessors import (
    AssessorProfile,
    expected_grade,
    load_profiles,
    load_truth,
    simulated_grade,
    uniform,
)

ROOT = Path(__file__).parents[2]
COLLECTION = ROOT / "demo" / "collection"
PROFILES = load_profiles(COLLECTION / "campaign.json")
SAMPLE = 6000
# Two-sided: five standard deviations of a binomial share; 80 shares are looked at.
WIDTH = 5.0


def made_up_truth(grade: int) -> dict[tuple[str, str], int]:
    return {("1", f"doc{number}"): grade for number in range(SAMPLE)}


def shares(profile: AssessorProfile, grade: int, *, seed: int = 11) -> list[float]:
    truth = made_up_truth(grade)
    given = Counter(
        simulated_grade(truth, profile, seed=seed, topic=topic, docno=docno)
        for topic, docno in truth
    )
    return [given[g] / SAMPLE for g in range(4)]


def errs_as_told(profile: AssessorProfile, told: AssessorProfile, grade: int) -> bool:
    for share, p in zip(shares(profile, grade), told.confusion[grade], strict=True):
        if abs(share - p) > WIDTH * (p * (1 - p) / SAMPLE) ** 0.5:
            return False
    return True


def test_there_are_five_different_assessors() -> None:
    assert len(PROFILES) == 5
    assert len({profile.username for profile in PROFILES}) == 5
    assert len({profile.confusion for profile in PROFILES}) == 5


@pytest.mark.parametrize("grade", range(4))
@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.username)
def test_errors_have_the_told_probabilities(profile: AssessorProfile, grade: int) -> None:
    assert errs_as_told(profile, profile, grade)


def test_another_confusion_would_be_noticed() -> None:
    ada, dora = PROFILES[0], PROFILES[3]
    slightly = replace(ada, confusion=(ada.confusion[0], (0.08, 0.84, 0.08, 0), *ada.confusion[2:]))
    assert not errs_as_told(dora, ada, 1)
    assert not errs_as_told(slightly, ada, 1)


@pytest.mark.parametrize(
    ("username", "bias"),
    [("ada", 0.0), ("ben", 0.25), ("chen", -0.25), ("dora", 0.0), ("emil", 0.0)],
)
def test_bias_of_each_assessor(username: str, bias: float) -> None:
    profile = next(p for p in PROFILES if p.username == username)
    expected = [expected_grade(profile, grade) for grade in range(4)]
    assert expected == pytest.approx([0, 1 + bias, 2 + bias, 3])


def test_the_five_together_are_unbiased_at_every_grade() -> None:
    for grade in range(4):
        mean = sum(expected_grade(profile, grade) for profile in PROFILES) / len(PROFILES)
        assert mean == pytest.approx(grade, abs=1e-12)


def test_same_question_same_answer_in_another_process() -> None:
    truth = load_truth(COLLECTION / "qrels.txt.gz")
    pairs = sorted(truth)[:300]
    here = [
        simulated_grade(truth, PROFILES[4], seed=3, topic=topic, docno=docno)
        for topic, docno in pairs
    ]
    program = (
        "import json, pathlib; from demo.assessors import *\n"
        f"folder = pathlib.Path({str(COLLECTION)!r})\n"
        "truth = load_truth(folder / 'qrels.txt.gz')\n"
        "emil = load_profiles(folder / 'campaign.json')[4]\n"
        "print(json.dumps([simulated_grade(truth, emil, seed=3, topic=t, docno=d)\n"
        "                  for t, d in sorted(truth)[:300]]))"
    )
    command = [sys.executable, "-c", program]
    there = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=60)
    assert json.loads(there.stdout) == here


def test_seed_assessor_topic_and_docno_all_matter() -> None:
    truth = {**made_up_truth(1), **{("2", docno): 1 for _, docno in made_up_truth(1)}}
    dora, emil = PROFILES[3], PROFILES[4]
    namesake = replace(dora, username="dora2")

    def answers(profile: AssessorProfile, seed: int, topic: str) -> list[int]:
        docnos = [f"doc{number}" for number in range(200)]
        return [simulated_grade(truth, profile, seed=seed, topic=topic, docno=d) for d in docnos]

    told = [answers(dora, 1, "1"), answers(dora, 2, "1"), answers(dora, 1, "2")]
    told += [answers(namesake, 1, "1"), answers(emil, 1, "1")]
    assert len({tuple(answer) for answer in told}) == 5
    assert len(set(told[0])) > 1


def test_errors_of_different_assessors_are_independent() -> None:
    dora = PROFILES[3]
    truth = made_up_truth(1)
    namesake = replace(dora, username="another")
    both = sum(
        simulated_grade(truth, dora, seed=5, topic=t, docno=d) != 1
        and simulated_grade(truth, namesake, seed=5, topic=t, docno=d) != 1
        for t, d in truth
    )
    assert abs(both / SAMPLE - 0.16) < WIDTH * (0.16 * 0.84 / SAMPLE) ** 0.5


def test_numbers_are_uniform_and_parts_are_kept_apart() -> None:
    numbers = [uniform("x", n) for n in range(SAMPLE)]
    assert all(0 <= number < 1 for number in numbers)
    tenths = Counter(int(10 * number) for number in numbers)
    assert all(abs(tenths[k] - SAMPLE / 10) < WIDTH * (SAMPLE * 0.09) ** 0.5 for k in range(10))
    assert uniform("ab", "c") != uniform("a", "bc")


def test_pairs_left_out_of_the_truth_are_not_relevant() -> None:
    assert [
        simulated_grade({}, profile, seed=1, topic="1", docno="none") for profile in PROFILES
    ] == [0] * 5


def test_truth_is_read_plain_and_compressed(tmp_path: Path) -> None:
    text = "1 0 str.strip 3\n2 0 str.lower 1\n"
    (tmp_path / "qrels.txt").write_text(text, encoding="utf-8")
    (tmp_path / "qrels.txt.gz").write_bytes(gzip.compress(text.encode()))
    expected = {("1", "str.strip"): 3, ("2", "str.lower"): 1}
    assert load_truth(tmp_path / "qrels.txt") == expected
    assert load_truth(tmp_path / "qrels.txt.gz") == expected


@pytest.mark.parametrize("row", [(0.5, 0.6), (1.2, -0.2), (1.0,)])
def test_a_table_without_probabilities_is_refused(row: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="broken"):
        AssessorProfile("broken", "Broken", "", ((1.0, 0.0), row))


def test_the_module_needs_the_standard_library_only() -> None:
    program = (
        "import sys; before = set(sys.modules); import demo.assessors\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names) - {'demo'}))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]"

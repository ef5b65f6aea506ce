"""Made-up crowds: the rules find who does not read, and accuse hardly anybody else."""

import io
import math

import pytest
from django.core.management import CommandError, call_command

from estimation.research.crowds import CrowdPlan, make_crowd, measure
from judging import habits


@pytest.mark.slow
def test_nine_of_ten_spammers_are_found_and_nine_of_ten_named_are_spammers() -> None:
    """After 40 judgments of each of 50 people, a tenth of whom do not read."""
    found = measure(CrowdPlan(), crowds=24)
    assert found.spammers == 24 * 5
    assert found.recall >= 0.9
    assert found.precision >= 0.9
    for kind in ("one grade", "random", "alternating", "copying"):
        count, caught = found.by_kind[kind]
        assert caught >= 0.85 * count > 0
    for kind in ("lenient", "severe", "drifting"):
        count, caught = found.by_kind[kind]
        assert caught <= 0.05 * count


@pytest.mark.slow
def test_a_crowd_that_reads_is_left_alone() -> None:
    assert measure(CrowdPlan(spammers=0.0), crowds=8).named <= 2


def test_without_its_rule_a_kind_of_spammer_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(habits.conduct, "correlation", lambda *_: None)
    found = measure(CrowdPlan(), crowds=8)
    count, caught = found.by_kind["random"]
    assert caught < 0.3 * count


def test_a_crowd_is_as_planned() -> None:
    crowd = make_crowd(CrowdPlan(), seed=3)
    assert len(crowd.kinds) == 50
    assert {kind: crowd.kinds.count(kind) for kind in set(crowd.kinds) & {"lenient", "severe"}} == {
        "lenient": 5,
        "severe": 5,
    }
    assert all(35 <= len(order) <= 45 for order in crowd.orders.values())
    assert max(len(said) for said in crowd.shared.values()) <= 7
    again = make_crowd(CrowdPlan(), seed=3)
    assert (again.orders, again.shared) == (crowd.orders, crowd.shared)


def test_the_command_prints_what_was_measured() -> None:
    said = io.StringIO()
    call_command("crowd", crowds=4, people=20, spammers=0.2, stdout=said)
    plan = CrowdPlan(people=20, spammers=0.2)
    found = measure(plan, crowds=4)
    lines = said.getvalue().splitlines()
    assert lines[-1] == f"recall {found.recall:.3f}, precision {found.precision:.3f}"
    assert [line.split()[-2:] for line in lines[1:-1]] == [
        [str(people), str(named)] for people, named in found.by_kind.values()
    ]


def test_where_nobody_is_found_the_command_says_so() -> None:
    said = io.StringIO()
    call_command("crowd", crowds=1, people=10, judgments=20, spammers=0.0, stdout=said)
    told = "recall - (nobody is to be found), precision - (nobody is named)"
    assert said.getvalue().splitlines()[-1] == told


def test_of_one_crowd_no_standard_error_is_told(recwarn: pytest.WarningsRecorder) -> None:
    said = io.StringIO()
    call_command("crowd", errors=True, crowds=1, people=10, judgments=20, stdout=said)
    assert [line[14:].split()[3] for line in said.getvalue().splitlines()] == ["s.e.", *"----"]
    assert not [each for each in recwarn if issubclass(each.category, RuntimeWarning)]


@pytest.mark.parametrize(
    "asked",
    [
        {"spammers": 1.5}, {"spammers": 0.9}, {"people": 5}, {"labels": 99}, {"crowds": 0},
        {"noise": math.nan}, {"noise": -0.5}, {"noise": math.inf}, {"seed": -1},
    ],
)  # fmt: skip
def test_a_crowd_that_cannot_be_is_refused(asked: dict[str, float]) -> None:
    with pytest.raises(CommandError):
        call_command("crowd", **asked)

"""What fixtures keep: the same rows and files as the services made, and never in a wrong place."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from judging.models import Campaign, Upload, User
from tests.support import evaluation, factories, kept, tables
from tests.support.kept import keeping

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_states", {})


class Material:
    """Makes a campaign, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Campaign:
        self.times += 1
        return evaluation.with_material()


def one_test(act: Callable[[kept.Kept], Any]) -> Any:
    """What a test sees that begins with empty tables, and leaves none of its rows."""
    with transaction.atomic():
        with keeping() as states:
            seen = act(states)
        transaction.set_rollback(True)
    assert not User.objects.exists()
    return seen


def rows() -> dict[str, list[tuple[Any, ...]]]:
    return {model._meta.label: sorted(kept._rows(model), key=repr) for model in tables.models()}


def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes between what is made and what is put back."""
    monkeypatch.setattr(kept, "_moved", lambda value, _passed: value)


@pytest.mark.slow
def test_all_rows_and_files_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    still(monkeypatch)
    make = Material()

    def act(states: kept.Kept) -> tuple[Campaign, dict[str, list[tuple[Any, ...]]], bytes]:
        campaign = states("material", make)
        file = Path(settings.MEDIA_ROOT) / Upload.objects.order_by("pk")[0].file.name
        content = file.read_bytes()
        file.write_bytes(b"changed by a test")
        return campaign, rows(), content

    first, second = one_test(act), one_test(act)
    assert first == second
    assert make.times == 1
    assert len(first[1]["judging.Document"]) == 24


@pytest.mark.slow
def test_what_follows_is_put_in_the_place_of_what_was(monkeypatch: pytest.MonkeyPatch) -> None:
    still(monkeypatch)
    make, drawn = Material(), []

    def act(states: kept.Kept) -> tuple[str, dict[str, list[tuple[Any, ...]]]]:
        campaign = states("material", make)
        states("drawn", lambda: drawn.append(1) or evaluation.drawn(campaign), campaign)
        return campaign.state, rows()

    assert one_test(act) == one_test(act)
    assert one_test(act)[0] == Campaign.State.OPEN
    assert (make.times, drawn) == (1, [1])


@pytest.mark.slow
def test_ids_go_on_after_those_that_are_put_back() -> None:
    make = Material()
    for _ in range(2):
        one_test(lambda states: (states("material", make), factories.user("one more")))


@pytest.mark.slow
def test_nothing_is_put_back_where_something_was_written() -> None:
    make = Material()

    def act(states: kept.Kept) -> None:
        factories.user("first")
        states("material", make)
        assert User.objects.count() == 2

    for _ in range(2):
        one_test(act)
    assert make.times == 2
    with transaction.atomic():
        factories.user("earlier")
        with keeping() as states:
            states("material", make)
        assert make.times == 3
        transaction.set_rollback(True)


@pytest.mark.slow
def test_times_are_moved_on() -> None:
    make = Material()

    def act(states: kept.Kept) -> Any:
        states("material", make)
        return Upload.objects.order_by("pk")[0].created

    before = one_test(act)
    for way, state in kept._states.items():
        kept._states[way] = replace(state, taken=state.taken - 3600)
    passed = one_test(act) - before
    assert timedelta(hours=1) <= passed < timedelta(hours=2)


def test_states_that_two_files_call_the_same_are_apart() -> None:
    """Whichever of them the process comes to first."""

    def nobody() -> None:
        return None

    def somebody() -> User:
        return factories.user("somebody")

    somebody.__module__ = "another_file"
    for _ in range(2):
        assert one_test(lambda states: states("judged", nobody)) is None
        assert one_test(lambda states: states("judged", somebody)).username == "somebody"

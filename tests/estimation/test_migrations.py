"""Schema changes of rounds go forwards and backwards, and lose no wish on the way."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from estimation.models import Round
from estimation.services import rounds
from judging.models import Campaign
from tests.support import evaluation, factories

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def migrate_to(name: str) -> None:
    MigrationExecutor(connection).migrate([("estimation", name)])


def migrate_to_the_latest() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def state_of(row: Round) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT state FROM estimation_round WHERE id = %s", [row.pk])
        return str(cursor.fetchone()[0])


@pytest.fixture(autouse=True)
def latest() -> Iterator[None]:
    """Leaves the schema as it was found, whatever the test does to it."""
    yield
    migrate_to_the_latest()


def test_a_draw_that_was_asked_for_before_the_change_is_done_after_it(campaign: Campaign) -> None:
    asked, draft = evaluation.drafted(campaign), evaluation.drafted(campaign, seed="t")
    rounds.request_draw(row=asked, by=campaign.created_by)

    migrate_to("0008_unknown_values")
    assert [state_of(asked), state_of(draft)] == ["drafted", "drafted"]
    migrate_to("0010_draws_under_way")

    assert [state_of(asked), state_of(draft)] == ["drawing", "drafted"]
    migrate_to_the_latest()
    factories.run_due_jobs()
    assert [state_of(asked), state_of(draft)] == ["drawn", "drafted"]

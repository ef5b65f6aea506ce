"""Schema changes go forwards and backwards, and lose nothing on the way."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.executor import MigrationExecutor

from judging.models import Pair, Upload
from judging.services import batches
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


def migrate_to(name: str) -> None:
    MigrationExecutor(connection).migrate([("judging", name)])


def migrate_to_latest() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


@pytest.fixture(autouse=True)
def latest() -> Iterator[None]:
    """Leaves the schema as it was found, whatever the test does to it."""
    yield
    migrate_to_latest()


def columns() -> set[str]:
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, Pair._meta.db_table)
    return {column.name for column in described}


def stored(column: str) -> list[tuple[str, object]]:
    """As it stands in the table, which has not all columns that `Pair` has."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT docno, {column} FROM judging_pair ORDER BY id")
        return [tuple(row) for row in cursor.fetchall()]


@pytest.mark.slow
def test_pairs_of_one_document_survive_the_way_back_and_forth() -> None:
    made = factories.campaign(topics=1)
    factories.released_batch(made, ["a", "b"], labels=2)

    migrate_to("0001_initial")
    assert "other" not in columns()
    assert stored("wanted") == [("a", 2), ("b", 2)]
    migrate_to("0002_preference_pairs")

    assert stored("other") == [("a", ""), ("b", "")]
    migrate_to_latest()
    batch = batches.new_batch(made)
    wanted = [batches.WantedPair(made.topics.get().pk, "a", 1, other) for other in ("", "b")]
    batches.prepare(batch, wanted)
    assert Pair.objects.count() == 3


@pytest.mark.slow
def test_preferences_are_not_turned_into_grades_of_documents() -> None:
    made = factories.campaign(topics=1)
    factories.preference_batch(made, [("a", "b")])

    with pytest.raises(IrreversibleError, match="Preferences would be lost: 1"):
        migrate_to("0001_initial")

    assert "other" in columns()
    assert stored("other") == [("a", "b")]


@pytest.mark.slow
def test_predicted_grades_are_not_left_to_a_schema_that_cannot_read_them() -> None:
    made = factories.campaign(topics=1)
    accepted = factories.stored_upload(made, b"t1 a 1\n", name="p.tsv", kind="predictions")
    rejected = factories.stored_upload(made, b"t1 a 9\n", name="bad.tsv", kind="predictions")

    with pytest.raises(IrreversibleError, match="Predicted grades would be lost: 1"):
        migrate_to("0002_preference_pairs")
    forget("estimation_prediction", "upload_id", accepted.pk)
    forget("judging_upload", "id", accepted.pk)
    with pytest.raises(IrreversibleError, match="Uploads of predicted grades are in the way: 1"):
        migrate_to("0002_preference_pairs")
    forget("judging_upload", "id", rejected.pk)
    migrate_to("0002_preference_pairs")
    migrate_to_latest()

    assert Upload.objects.count() == 1


def forget(table: str, column: str, pk: int) -> None:
    """In a schema on the way, which no service of today knows."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE {column} = %s", [pk])
        assert cursor.rowcount == 1

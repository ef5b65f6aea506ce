"""After a test that commits, the database is as it was before."""

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType

from tests.support import evaluation, tables
from tests.support.tables import OF_MIGRATIONS, models

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def rows() -> dict[str, int]:
    return {each._meta.label: each._base_manager.count() for each in models()}


@pytest.mark.parametrize("large", [0, tables.LARGE])
def test_no_row_is_left_but_those_of_migrations(
    monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """Whether rows are deleted, or all tables are made anew."""
    monkeypatch.setattr(tables, "LARGE", large)
    of_migrations = ContentType.objects.count(), Permission.objects.count()
    assert min(of_migrations) > 20
    evaluation.drawn(evaluation.with_material())
    assert sum(map(bool, rows().values())) > 15

    tables.empty()

    assert not any(rows().values())
    assert (ContentType.objects.count(), Permission.objects.count()) == of_migrations
    assert not OF_MIGRATIONS & rows().keys()

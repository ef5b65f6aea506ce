"""What a benchmark sends again is sent as it was: a floor that is dearer than the work is none."""

from typing import Any

import pytest
from django.db import connection

from benchmarks.replays import Said, recorded, send
from judging.models import Campaign


@pytest.mark.django_db
def test_statements_are_sent_again_with_their_values() -> None:
    said: list[Said] = []
    with recorded(said):
        Campaign.objects.filter(slug="a").exists()
        Campaign.objects.filter(slug="b").update(slug="c")
    again: list[Said] = []
    with recorded(again):
        send(said)
    assert again == said
    assert [each.values[-1] for each in said][1] == "b"


@pytest.mark.django_db
@pytest.mark.postgres_only
def test_what_was_prepared_is_prepared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalsite.postgres.base import PreparingCursor

    prepared: list[str] = []
    execute = PreparingCursor.execute

    def counting(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        prepared.append(str(query))
        return execute(cursor, query, *args, **options)

    monkeypatch.setattr(PreparingCursor, "execute", counting)
    said: list[Said] = []
    with recorded(said):
        with connection.prepared(), connection.cursor() as cursor:
            cursor.execute("SELECT %s::int + 1", [1])
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::int + 2", [1])
    send(said)
    assert [each.prepared for each in said] == [True, False]
    assert [text for text in prepared if "+ 1" in text] == prepared
    assert len(prepared) == 2

"""Schema changes go backwards and forwards, and lose nothing on the way.

A way through all of them takes half a minute, nearly all of it for Django's models of every state,
so that one is gone for all tests: rows are made, the schema goes back in steps and forward again,
and what was there at each station is noted.

It begins with the tables of a new site, which one migration of each application makes at once, and
goes back to those of the very first ones. These are the ones that the very first ones make, and the
later ones lead from there to the tables that it began with: so a site that went from one to the
next has the same as a new one.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from pytest_django.plugin import DjangoDbBlocker

from estimation.models import Report, Round
from estimation.services import rounds
from estimation.services.report_files.table import REPORTS
from evalsite.management import backups
from judging import names
from judging.errors import UserError
from judging.models import Assignment, Campaign, Membership, Pair, Upload, User
from judging.services import batches, judgments, members
from tests.core.length import LONG
from tests.support import earlier, evaluation, factories, schema, tables
from tests.support.schema import Facts
from tests.support.site import manage

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
CYRILLIC_A = "\u0430"
JUDGED = 45
ALIKE = ("ann", "ANN", f"{CYRILLIC_A}nn", "carl")
FIRST = [("judging", "0001_initial"), ("estimation", "0001_initial")]
OURS = {app for app, _ in FIRST}


@dataclass
class Way:
    """What was made before, and what was found on the way back and forth, by station."""

    pairs: Campaign
    preferences: Campaign
    accepted: Upload
    rejected: Upload
    asked: Round
    draft: Round
    reports: int
    found: dict[str, Any] = field(default_factory=dict)


def migrate_to(app: str, name: str) -> None:
    earlier.migrate((app, name))


def migrate_to_the_latest() -> None:
    call_command("migrate", verbosity=0)


def refusal(app: str, name: str) -> str:
    with pytest.raises(IrreversibleError) as refused:
        migrate_to(app, name)
    return str(refused.value)


def rows(sql: str, *values: object) -> list[tuple[Any, ...]]:
    """As they stand in a schema on the way, which no model of today knows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [tuple(row) for row in cursor.fetchall()]


def change(sql: str, pk: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, [pk])
        assert cursor.rowcount == 1


def columns() -> set[str]:
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, Pair._meta.db_table)
    return {column.name for column in described}


def stored(made: Campaign, column: str) -> list[tuple[Any, ...]]:
    found = f"SELECT docno, {column} FROM judging_pair WHERE campaign_id = %s ORDER BY id"
    return rows(found, made.pk)


def states(way: Way) -> list[str]:
    found = dict(rows("SELECT id, state FROM estimation_round"))
    return [found[way.asked.pk], found[way.draft.pk]]


def report_names() -> set[str]:
    return {name for (name,) in rows("SELECT name FROM estimation_report")}


@pytest.fixture(scope="module")
def way(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Way]:
    """Leaves the schema as it was found, whatever happens on the way."""
    with django_db_blocker.unblock():
        try:
            made = begun()
            go_back(made)
            go_forward(made)
            yield made
        finally:
            migrate_to_the_latest()
            call_command("flush", verbosity=0, interactive=False, allow_cascade=False)


def begun() -> Way:
    at_once = schema.facts()
    judged = evaluation.with_material(slug="judged")
    row = evaluation.drawn(judged)
    evaluation.judge(judged, JUDGED)
    held = Assignment.objects.order_by("pk")[0]
    other = judgments.Saying(grade=0 if held.judgments.get().grade else 1, key="another")
    judgments.correct(assignment=held, by=held.assessor, saying=other, revision=1)
    evaluation.made_reports(row)
    pairs = factories.campaign(topics=1, slug="pairs")
    factories.released_batch(pairs, ["a", "b"], labels=2)
    preferences = factories.campaign(topics=1, slug="preferences")
    factories.preference_batch(preferences, [("a", "b")])
    predicted = factories.campaign(topics=1, slug="predicted")
    accepted = factories.stored_upload(predicted, b"t1 a 1\n", name="p.tsv", kind="predictions")
    rejected = factories.stored_upload(predicted, b"t1 a 9\n", name="bad.tsv", kind="predictions")
    drawing = evaluation.with_material(slug="drawing")
    asked, draft = evaluation.drafted(drawing), evaluation.drafted(drawing, seed="t")
    rounds.request_draw(row=asked, by=drawing.created_by)
    made = Report.objects.count()
    way = Way(pairs, preferences, accepted, rejected, asked, draft, reports=made)
    way.found["tables at once"] = at_once
    return way


def go_back(way: Way) -> None:
    call_command("migrate", "judging", "0005_keys_end", verbosity=0)
    way.found["after the command"] = schema.table_names()
    before = MigrationExecutor(connection).loader.project_state([("judging", "0005_keys_end")])
    for name in ALIKE:
        before.apps.get_model("judging", "User").objects.create(username=name)
    migrate_to("estimation", "0008_unknown_values")
    way.found["states before"] = states(way)
    migrate_to("estimation", "0010_draws_under_way")
    way.found["states after"] = states(way)
    way.found["predictions"] = refusal("judging", "0002_preference_pairs")
    change("DELETE FROM estimation_prediction WHERE upload_id = %s", way.accepted.pk)
    change("DELETE FROM judging_upload WHERE id = %s", way.accepted.pk)
    way.found["uploads"] = refusal("judging", "0002_preference_pairs")
    change("DELETE FROM judging_upload WHERE id = %s", way.rejected.pk)
    migrate_to("judging", "0002_preference_pairs")
    migrate_to("estimation", "0001_initial")
    way.found["reports"] = report_names()
    way.found["preferences"] = refusal("judging", "0001_initial")
    way.found["preferences left"] = ("other" in columns(), stored(way.preferences, "other"))
    change("UPDATE judging_pair SET other = '' WHERE campaign_id = %s", way.preferences.pk)
    migrate_to("judging", "0001_initial")
    way.found["first"] = ("other" in columns(), stored(way.pairs, "wanted"))
    way.found["tables at first"] = schema.facts()


def go_forward(way: Way) -> None:
    migrate_to("judging", "0002_preference_pairs")
    way.found["others"] = stored(way.pairs, "other")
    migrate_to_the_latest()
    way.found["tables at last"] = schema.facts()
    assert planned() == []
    way.found["reports at last"] = Report.objects.count()
    way.found["uploads at last"] = Upload.objects.filter(kind="predictions").count()
    factories.run_due_jobs()
    way.found["states at last"] = states(way)
    way.found["campaigns"] = rows(
        "SELECT p.campaign_id - a.campaign_id, COUNT(*) FROM judging_assignment a "
        "JOIN judging_pair p ON p.id = a.pair_id GROUP BY 1"
    )
    way.found["labels"] = rows(
        "SELECT a.grade - j.grade, COUNT(*) FROM judging_assignment a "
        "JOIN judging_judgment j ON j.assignment_id = a.id AND j.revision = a.revision GROUP BY 1"
    )
    way.found["corrected"] = Assignment.objects.filter(revision=2).count()


def test_a_draw_that_was_asked_for_before_the_change_is_done_after_it(way: Way) -> None:
    assert way.found["states before"] == ["drafted", "drafted"]
    assert way.found["states after"] == ["drawing", "drafted"]
    assert way.found["states at last"] == ["drawn", "drafted"]


def test_pairs_of_one_document_survive_the_way_back_and_forth(way: Way) -> None:
    assert way.found["first"] == (False, [("a", 2), ("b", 2)])
    assert way.found["others"] == [("a", ""), ("b", "")]
    batch = batches.new_batch(way.pairs)
    topic = way.pairs.topics.get().pk
    batches.prepare(batch, [batches.WantedPair(topic, "a", 1, other) for other in ("", "b")])
    assert Pair.objects.filter(campaign=way.pairs).count() == 3


def test_assignments_learn_of_which_campaign_their_pairs_are(way: Way) -> None:
    assert way.found["campaigns"] == [(0, JUDGED)]


def test_labels_are_those_of_the_judgments_that_count(way: Way) -> None:
    assert way.found["labels"] == [(0, JUDGED)]
    assert way.found["corrected"] == 1


def test_preferences_are_not_turned_into_grades_of_documents(way: Way) -> None:
    assert "Preferences would be lost: 1" in way.found["preferences"]
    assert way.found["preferences left"] == (True, [("a", "b")])


def test_predicted_grades_are_not_left_to_a_schema_that_cannot_read_them(way: Way) -> None:
    assert "Predicted grades would be lost: 1" in way.found["predictions"]
    assert "Uploads of predicted grades are in the way: 1" in way.found["uploads"]
    assert way.found["uploads at last"] == 0


def test_reports_go_back_without_what_was_unknown(way: Way) -> None:
    assert way.found["reports"] == {*REPORTS} - {"collection.zip"}
    assert way.found["reports at last"] == way.reports - 1


def test_accounts_that_looked_alike_before_go_on(way: Way) -> None:
    found: Any = User.objects.filter(username__in=ALIKE).order_by("pk")
    keys = dict(found.values_list("username", "name_key"))
    assert [bool(keys[name]) for name in ALIKE] == [True, False, False, True]
    for user in User.objects.all():
        user.save()
    assert add(way.pairs, "ANN").username == "ANN"
    assert add(way.pairs, "Ann").username == "ann"
    assert names.skeleton("ANN") == names.skeleton(f"{CYRILLIC_A}nn")
    with pytest.raises(UserError, match="looks like"):
        add(way.pairs, "ᴀɴɴ")


def add(campaign: Campaign, username: str) -> User:
    role, by = Membership.Role.ASSESSOR, campaign.created_by
    return members.add(campaign=campaign, by=by, username=username, role=role)[0].user


def test_the_tables_of_a_new_site_are_those_that_the_migrations_lead_to(way: Way) -> None:
    assert_same(way.found["tables at last"], way.found["tables at once"])


STEPS = {"the first": "tables at first"} | ({"all": "tables at once"} if LONG else {})
"""All of them at length only: in two steps it is said in less time."""


@pytest.mark.parametrize("step", STEPS)
def test_the_migrations_one_by_one_make_the_tables_that_were_there(
    way: Way, step: str, tmp_path: Path
) -> None:
    leaves = earlier.executor().loader.graph.leaf_nodes()
    first = [*FIRST, *(key for key in leaves if key[0] not in OURS)]
    made = tables_of_another(tmp_path, *(first if step == "the first" else leaves))
    assert_same(made, way.found[STEPS[step]])


MAKE = """
import json
from tests.support import earlier, schema

earlier.migrate(*map(tuple, {targets}))
print(json.dumps(sorted(schema.facts(), key=str)))
"""


def tables_of_another(data: Path, *targets: tuple[str, str]) -> Facts:
    """Of a database that began without any."""
    code = MAKE.format(targets=json.dumps(targets))
    env = tables.empty_one_of_the_same_kind(data)
    made = manage(env, "shell", "--no-imports", "--command", code)
    return {tuple(fact) for fact in json.loads(made)}


NAMED = re.compile(r"\bestimation_(?:stored)?poo\w*")
"""What belongs to the pool is called by its name of then or of now, or both cut off and hashed."""
CAST = re.compile(r"\(('\w+'::character varying)\)::text")
CAST_TOGETHER = re.compile(r"\((ARRAY\[[^]]*\])\)::text\[\]")


def assert_same(found: Facts, others: Facts) -> None:
    """But for what no statement can tell: names of indexes that nobody chose, the order of columns
    in the file of SQLite, and whether PostgreSQL casts words one by one or together."""
    told, expected = ({plain(fact) for fact in facts} for facts in (found, others))
    assert sorted(told - expected) == []
    assert sorted(expected - told) == []
    assert len(told) > 400


def plain(fact: tuple[Any, ...]) -> str:
    if connection.vendor == "sqlite" and fact[0] == "column":
        fact = (*fact[:2], *fact[3:])
    words = json.dumps(fact)
    return CAST_TOGETHER.sub(r"\1", CAST.sub(r"\1", NAMED.sub("pool", words)))


def test_a_site_that_goes_back_loses_no_tables_but_those_that_came_since(way: Way) -> None:
    left = way.found["after the command"]
    assert left >= {"judging_user", "judging_judgment", "estimation_round", "estimation_report"}
    assert not left & {"judging_exclusion", "estimation_machinejudge"}


SINCE = {
    "0027_blocking_ends_sessions",
    "0030_ratio_bias",
    "0031_adaptive_top_ups",
    "0032_keep_to_hours",
}
"""Migrations that are not in the one of their application that new sites begin with."""


@pytest.mark.sqlite_only
@pytest.mark.parametrize("late", sorted(OURS))
@pytest.mark.django_db
def test_from_wherever_a_site_is_it_goes_the_rest_of_the_way(late: str) -> None:
    """From each station, if the migrations of this application come as late as they may."""
    recorder, loader = MigrationRecorder(connection), earlier.executor().loader
    ends = sorted(loader.graph.leaf_nodes(), key=lambda key: key[0] == late)
    order = dict.fromkeys(key for end in ends for key in loader.graph.forwards_plan(end))
    ours = [key for key in order if key[0] in OURS]
    assert len(ours) == len([key for key in loader.disk_migrations if key[0] in OURS])
    assert planned() == []
    told = backups._applied()
    of_admin = [*recorder.migration_qs.filter(app="admin")]
    recorder.migration_qs.filter(app__in=OURS | {"admin"}).delete()  # which needs the users
    anew = [name for _, name in planned() if name not in SINCE]
    assert [name.startswith("0001_squashed") for name in anew] == [True, True]
    for passed, key in enumerate(ours, start=1):
        recorder.record_applied(*key)
        if passed == 1:
            recorder.migration_qs.bulk_create(of_admin)
        begun, left = {app for app, _ in ours[:passed]}, planned()
        rest = [each for each in ours[passed:] if each[0] in begun]
        assert sorted(each for each in left if each[0] in begun) == sorted(rest)
        anew = [name for app, name in left if app not in begun and name not in SINCE]
        assert all(name.startswith("0001_squashed") for name in anew)
    assert planned() == []
    assert backups._applied() == told, "a new site takes no backup of this one"


def planned() -> list[tuple[str, str]]:
    made = MigrationExecutor(connection)
    made.loader.check_consistent_history(connection)
    plan = made.migration_plan(made.loader.graph.leaf_nodes())
    return [(each.app_label, each.name) for each, _ in plan if each.app_label in OURS]

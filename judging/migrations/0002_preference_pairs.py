"""Pairs of two documents, of which assessors say which is better."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.state import StateApps


def refuse_to_lose_preferences(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Without ``other`` a preference would pass for the grade of one document."""
    pairs = apps.get_model("judging", "Pair").objects.using(editor.connection.alias)
    if count := pairs.exclude(other="").count():
        raise IrreversibleError(
            f"Preferences would be lost: {count}. Remove their campaigns first, or keep this schema."
        )


class Migration(migrations.Migration):
    dependencies = [("judging", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="pair",
            name="other",
            field=models.CharField(blank=True, db_default="", default="", max_length=255),
        ),
        migrations.RemoveConstraint(model_name="pair", name="pair_once"),
        migrations.AddConstraint(
            model_name="pair",
            constraint=models.UniqueConstraint(
                fields=("campaign", "topic", "docno", "other"), name="pair_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="pair",
            constraint=models.CheckConstraint(
                condition=models.Q(("other", models.F("docno")), _negated=True),
                name="pair_documents_differ",
            ),
        ),
        # Last, so that it is undone first.
        migrations.RunPython(migrations.RunPython.noop, refuse_to_lose_preferences),
    ]

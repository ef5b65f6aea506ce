"""Predicted grades are one more kind of upload."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.state import StateApps


def refuse_to_keep_what_nothing_reads(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Without the kind nothing could show, read or remove such a file."""
    uploads = apps.get_model("judging", "Upload").objects.using(editor.connection.alias)
    if count := uploads.filter(kind="predictions").count():
        raise IrreversibleError(
            f"Uploads of predicted grades are in the way: {count}. Remove them first."
        )


class Migration(migrations.Migration):
    dependencies = [("judging", "0002_preference_pairs")]

    operations = [
        migrations.AlterField(
            model_name="upload",
            name="kind",
            field=models.CharField(
                choices=[
                    ("topics", "Topics"),
                    ("documents", "Documents"),
                    ("run", "Run"),
                    ("qrels", "Qrels"),
                    ("predictions", "Predicted grades"),
                ],
                max_length=20,
            ),
        ),
        # Last, so that it is undone first.
        migrations.RunPython(migrations.RunPython.noop, refuse_to_keep_what_nothing_reads),
    ]

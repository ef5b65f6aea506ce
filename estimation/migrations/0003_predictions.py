"""Predicted grades, for priors and grade models of rounds."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.state import StateApps


def refuse_to_lose_predictions(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Their uploads would stay accepted, and bring nothing."""
    rows = apps.get_model("estimation", "Prediction").objects.using(editor.connection.alias)
    if count := rows.count():
        raise IrreversibleError(
            f"Predicted grades would be lost: {count}. Remove their uploads first."
        )


class Migration(migrations.Migration):
    dependencies = [
        ("estimation", "0002_collection_report"),
        ("judging", "0003_predicted_grades"),
    ]

    operations = [
        migrations.CreateModel(
            name="Prediction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                (
                    "form",
                    models.CharField(
                        choices=[("grades", "Grades"), ("probabilities", "Probabilities")],
                        max_length=15,
                    ),
                ),
                ("max_grade", models.PositiveSmallIntegerField()),
                ("file", models.CharField(max_length=255)),
                ("digest", models.CharField(max_length=64)),
                ("topic_count", models.PositiveIntegerField()),
                ("pair_count", models.PositiveIntegerField()),
                (
                    "created",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="predictions",
                        to="judging.campaign",
                    ),
                ),
                (
                    "upload",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="prediction",
                        to="judging.upload",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("campaign", "name"), name="prediction_name_once"
                    )
                ],
            },
        ),
        # Last, so that it is undone first.
        migrations.RunPython(migrations.RunPython.noop, refuse_to_lose_predictions),
    ]

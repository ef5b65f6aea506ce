"""Work can be excluded: stored, and counted nowhere. What organizers have looked at is noted."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("judging", "0013_deleting_and_pseudonyms"),
    ]

    operations = [
        migrations.CreateModel(
            name="Exclusion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "ground",
                    models.CharField(
                        choices=[
                            ("time", "Time: too fast to have read"),
                            (
                                "attention",
                                "Attention: failed checks that are no part of the sample",
                            ),
                            (
                                "identity",
                                "Identity: not who they said, or two accounts of one person",
                            ),
                            ("consent", "They withdrew their consent"),
                            ("grades", "Grades: what they gave, or how far they agree with others"),
                        ],
                        max_length=10,
                    ),
                ),
                ("reason", models.CharField(max_length=500)),
                (
                    "created",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("ended", models.DateTimeField(blank=True, null=True)),
                ("ended_reason", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="SeenItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("apart", "Disagreement"), ("comment", "Comment")], max_length=10
                    ),
                ),
                ("target", models.BigIntegerField()),
                ("version", models.CharField(max_length=40)),
                (
                    "created",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.AddField(
            model_name="assignment",
            name="set_aside",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name="assignment",
            name="state",
            field=models.CharField(
                choices=[
                    ("leased", "Leased"),
                    ("judged", "Judged"),
                    ("skipped", "Skipped"),
                    ("lapsed", "Lapsed"),
                    ("excluded", "Excluded"),
                ],
                default="leased",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(("state", "excluded"), ("set_aside", 0), _connector="OR"),
                name="assignment_excluded_set_aside",
            ),
        ),
        migrations.AddField(
            model_name="exclusion",
            name="assessor",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="exclusions",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="exclusion",
            name="campaign",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="exclusions",
                to="judging.campaign",
            ),
        ),
        migrations.AddField(
            model_name="exclusion",
            name="decided_by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="exclusion",
            name="ended_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="seenitem",
            name="campaign",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="seen_items",
                to="judging.campaign",
            ),
        ),
        migrations.AddField(
            model_name="seenitem",
            name="seen_by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="exclusion",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended", None)),
                fields=("campaign", "assessor"),
                name="exclusion_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="seenitem",
            constraint=models.UniqueConstraint(
                fields=("campaign", "kind", "target", "version"), name="seen_item_once"
            ),
        ),
    ]

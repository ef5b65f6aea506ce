"""Batches that a round does not need any more are dropped."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0007_workers_say_what_they_serve")]

    operations = [
        migrations.AlterField(
            model_name="batch",
            name="state",
            field=models.CharField(
                choices=[
                    ("preparing", "Preparing"),
                    ("waiting", "Waiting"),
                    ("open", "Open"),
                    ("complete", "Complete"),
                    ("dropped", "Dropped"),
                ],
                default="preparing",
                max_length=10,
            ),
        )
    ]

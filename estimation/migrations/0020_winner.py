"""Adaptive rounds may look for the best run."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("estimation", "0019_top_up")]

    operations = [
        migrations.AlterField(
            model_name="round",
            name="goal",
            field=models.CharField(
                choices=[
                    ("absolute", "Absolute values of all runs"),
                    ("ranking", "Ranking of all runs"),
                    ("winner", "Find the best run"),
                    ("baseline", "All runs against a baseline"),
                    ("pair", "Difference of two runs"),
                    ("single", "Value of one run"),
                ],
                default="absolute",
                max_length=10,
            ),
        ),
    ]

"""Estimates of adaptive rounds have an estimator of their own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("estimation", "0015_seconds_per_judgment")]

    operations = [
        migrations.AlterField(
            model_name="estimate",
            name="estimator",
            field=models.CharField(
                choices=[
                    ("ht", "Horvitz-Thompson"),
                    ("is", "importance sampling"),
                    ("sn", "self-normalized importance sampling"),
                    ("sq", "active sampling, sequential weights"),
                    ("co", "active sampling, product formula"),
                    ("pa", "active sampling, as published"),
                    ("di", "difference (prediction-powered)"),
                    ("ad", "adaptive (sequential difference)"),
                ],
                max_length=2,
            ),
        )
    ]

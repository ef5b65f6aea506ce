"""A round may say which differences do not matter; until now all did."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("estimation", "0016_adaptive_estimates")]

    operations = [
        migrations.AddField(
            model_name="round",
            name="negligible",
            field=models.FloatField(
                default=0.0, help_text="differences up to this one do not matter; 0: all do"
            ),
        )
    ]

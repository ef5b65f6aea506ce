"""Adaptive rounds may learn from several predicted grades."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("estimation", "0019_top_up")]

    operations = [
        migrations.AddField(
            model_name="round",
            name="more_predictions",
            field=models.JSONField(blank=True, default=list, help_text="names of further ones"),
        ),
    ]

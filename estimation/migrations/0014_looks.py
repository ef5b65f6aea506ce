"""Estimates say at how many looks their intervals hold; older ones hold at one and say nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("estimation", "0013_machine_judges")]

    operations = [
        migrations.AddField(
            "estimateset",
            "look",
            models.PositiveIntegerField(
                default=0,
                help_text="which of the planned looks it is, "
                "if it holds at all of them at once; 0: at one",
            ),
        ),
        migrations.AddField(
            "estimateset",
            "looks",
            models.PositiveIntegerField(
                default=0,
                help_text="looks that were planned before the draw; 0: from an earlier version",
            ),
        ),
    ]

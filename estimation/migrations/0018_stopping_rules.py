"""Rounds may end by a rule that was chosen before the draw; until now all went on to their end."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("estimation", "0017_negligible")]

    operations = [
        migrations.AddField(
            model_name="round",
            name="stop_when",
            field=models.CharField(
                blank=True,
                choices=[
                    ("best", "The best run is known"),
                    ("top", "The first few runs are known"),
                    ("width", "All intervals are short enough"),
                ],
                default="",
                help_text="empty: when the budget is spent",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="round",
            name="stop_top",
            field=models.PositiveIntegerField(default=3, help_text="so many runs are the first"),
        ),
        migrations.AddField(
            model_name="round",
            name="stop_width",
            field=models.FloatField(default=0.0, help_text="half width that is short enough"),
        ),
        migrations.AddField(
            model_name="round",
            name="stopping",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="the rule that was found true, after which batch, and what that saved",
            ),
        ),
        migrations.AlterField(
            model_name="round",
            name="state",
            field=models.CharField(
                choices=[
                    ("drafted", "Drafted"),
                    ("drawing", "Drawing"),
                    ("drawn", "Drawn"),
                    ("judging", "Judging"),
                    ("complete", "Complete"),
                    ("stopped", "Stopped"),
                ],
                default="drafted",
                max_length=10,
            ),
        ),
    ]

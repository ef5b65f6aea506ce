"""Rounds can be made to add to what is judged when they are drawn."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("estimation", "0018_stopping_rules")]

    operations = [
        migrations.AddField(
            model_name="round",
            name="top_up",
            field=models.BooleanField(
                default=False, help_text="made to add to what is judged when it is drawn"
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=Q(top_up=False) | Q(method="poisson"), name="round_top_up_can_be"
            ),
        ),
    ]

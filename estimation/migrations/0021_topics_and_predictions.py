"""Several predicted grades to learn from, pairs of a topic together, and how long a topic takes."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("estimation", "0020_winner")]

    operations = [
        migrations.AddField(
            model_name="round",
            name="more_predictions",
            field=models.JSONField(blank=True, default=list, help_text="names of further ones"),
        ),
        migrations.AddField(
            model_name="round",
            name="topic_minimum",
            field=models.PositiveIntegerField(default=1, help_text="pairs of a topic in a batch"),
        ),
        migrations.AddField(
            model_name="round",
            name="topic_seconds",
            field=models.PositiveIntegerField(default=0, help_text="that reading a topic takes"),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=Q(topic_minimum=1) | Q(method="adaptive"), name="round_by_topics_can_be"
            ),
        ),
    ]

"""Rounds whose draw was asked for before there was a state for it."""

from django.db import migrations
from django.db.migrations.state import StateApps


def enter(apps: StateApps, _editor: object) -> None:
    rounds, jobs = apps.get_model("estimation", "Round"), apps.get_model("judging", "Job")
    asked = jobs.objects.filter(kind="draw", state__in=["queued", "running"]).values("target")
    rounds.objects.filter(state="drafted", pk__in=asked).update(state="drawing")


def leave(apps: StateApps, _editor: object) -> None:
    apps.get_model("estimation", "Round").objects.filter(state="drawing").update(state="drafted")


class Migration(migrations.Migration):
    dependencies = [("estimation", "0009_drawing"), ("judging", "0004_costs_are_uploads")]

    operations = [migrations.RunPython(enter, leave)]

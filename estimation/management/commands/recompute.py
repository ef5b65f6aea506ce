"""``manage.py recompute``: do the stored numbers follow from the stored rows?"""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from estimation.models import Round
from estimation.plans import NAMED
from estimation.selectors import latest_estimates
from estimation.services import estimates, redrawing
from judging.models import Campaign


class Command(BaseCommand):
    help = (
        "Computes the estimates of every drawn round from scratch and compares them, bit for "
        "bit, with the stored ones; draws its sample again, and compares the row with the design "
        "that was drawn, and files with what they are named by. Writes nothing. Exit code 1 if any "
        "differ."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("campaign", nargs="?", help="slug; by default all campaigns")

    def handle(self, *_args: Any, **options: Any) -> None:
        rounds = Round.objects.exclude(state__in=Round.NOT_DRAWN).select_related(
            "campaign", "pool", *NAMED
        )
        if slug := options["campaign"]:
            if not Campaign.objects.filter(slug=slug).exists():
                raise CommandError(f"There is no campaign {slug!r}.")
            rounds = rounds.filter(campaign__slug=slug)
        differing = [row for row in rounds.order_by("pk") if not self._same(row)]
        if differing:
            many = f"{len(differing)} rounds differ" if len(differing) > 1 else "1 round differs"
            raise CommandError(f"{many} from what is stored.")

    def _same(self, row: Round) -> bool:
        stored, faults = latest_estimates(row), redrawing.damages_of(row)
        outcome = found = None
        if not faults:
            outcome = estimates.from_scratch(row)
            found, faults = outcome.digest if outcome else None, redrawing.faults_of(row)
        same = found == (stored.digest if stored else None) and not faults
        due = not (same or faults) and outcome is not None and estimates.is_due(row, outcome.inputs)
        verdict = "equal" if same else "due" if due else "DIFFERENT"
        self.stdout.write(f"{row.campaign.slug} round {row.number}: {verdict} {found or '-'}")
        for fault in faults:
            self.stdout.write(f"  {fault}")
        return same or due

"""``manage.py demo_truth``: do the demo's intervals meet the truth?"""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from estimation.models import Round
from estimation.services import truth


class Command(BaseCommand):
    help = "Prints the demo's estimates beside the values that its complete relevance table gives."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--measure", default="DCG@10")
        parser.add_argument("--round", type=int, default=2, help="its number (default 2)")

    def handle(self, *_args: Any, **options: Any) -> None:
        demo_rounds = Round.objects.filter(campaign__slug="python-functions")
        wanted = demo_rounds.filter(number=options["round"])
        row = wanted.select_related("campaign", "pool").first()
        lines = truth.met(row, options["measure"]) if row else []
        if not lines:
            raise CommandError("There is no demo round with estimates of this measure.")
        self.stdout.write(f"{'run':<20} {'truth':>7} {'estimate':>9} {'95 % interval':>17}")
        for line in lines:
            ranked = line.row
            interval = f"{ranked.low:.2f} to {ranked.high:.2f}"
            verdict = "" if line.inside else "  missed"
            value = "not known" if ranked.value is None else f"{ranked.value:.2f}"
            self.stdout.write(
                f"{ranked.tag:<20} {line.truth:>7.2f} {value:>9} {interval:>17}{verdict}"
            )
        inside = sum(line.inside for line in lines)
        self.stdout.write(f"{inside} of {len(lines)} intervals contain the truth.")

"""``manage.py crowd``: whom do the rules for patterns find in a made-up crowd, and whom wrongly?"""

import argparse
from dataclasses import fields
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from estimation.research.crowds import CrowdPlan, measure

SHARES = ("spammers", "lenient", "severe", "drifting", "together")


class Command(BaseCommand):
    help = (
        "Makes crowds up, some of whom do not read (one grade, by luck, in turn, copying), and "
        "says how many of these the rules name, and who else."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--crowds", type=int, default=40)
        parser.add_argument("--seed", type=int, default=0)
        for each in fields(CrowdPlan):
            default = each.default
            kind = float if isinstance(default, float) else int
            parser.add_argument(
                f"--{each.name}", type=kind, default=default, help=f"default {default}"
            )

    def handle(self, *_args: Any, **options: Any) -> None:
        plan = CrowdPlan(**{each.name: options[each.name] for each in fields(CrowdPlan)})
        self._check(plan, options["crowds"])
        found = measure(plan, crowds=options["crowds"], seed=options["seed"])
        self.stdout.write(f"{'kind':<14} {'people':>7} {'named':>7}")
        for kind, (people, named) in found.by_kind.items():
            self.stdout.write(f"{kind:<14} {people:>7,} {named:>7,}")
        self.stdout.write(f"recall {found.recall:.3f}, precision {found.precision:.3f}")

    def _check(self, plan: CrowdPlan, crowds: int) -> None:
        for name in SHARES:
            if not 0.0 <= getattr(plan, name) <= 1.0:
                raise CommandError(f"--{name} must be a share from 0 to 1.")
        if plan.spammers + plan.lenient + plan.severe + plan.drifting > 0.9:
            raise CommandError("A tenth of the people at least must just read: lower the shares.")
        if min(crowds, plan.people - 9, plan.judgments, plan.labels, plan.grades - 1) < 1:
            raise CommandError("It takes a crowd of ten people or more, a judgment, two grades.")
        if plan.labels > plan.people:
            raise CommandError("--labels cannot be more than there are --people.")

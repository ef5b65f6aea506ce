"""``manage.py crowd``: whom do the rules for patterns find in a made-up crowd, and whom wrongly?

With ``--errors``: how far are estimates off, by who is excluded?
"""

import argparse
import math
from dataclasses import fields
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from estimation.research.crowd_errors import GoldPlan, measure_errors
from estimation.research.crowds import CrowdPlan, measure

SHARES = ("spammers", "lenient", "severe", "drifting", "together")


class Command(BaseCommand):
    help = (
        "Makes crowds up, some of whom do not read (one grade, by luck, in turn, copying), and "
        "says how many of these the rules name, and who else."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--crowds", type=int, default=40)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument(
            "--errors", action="store_true", help="estimates instead of names, by who is excluded"
        )
        for each in (*fields(CrowdPlan), *fields(GoldPlan)):
            default = each.default
            kind = float if isinstance(default, float) else int
            parser.add_argument(
                f"--{each.name}", type=kind, default=default, help=f"default {default}"
            )

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["seed"] < 0:
            raise CommandError(f"--seed must be at least 0, not {options['seed']}.")
        plan = CrowdPlan(**{each.name: options[each.name] for each in fields(CrowdPlan)})
        self._check(plan, options["crowds"])
        if options["errors"]:
            self._tell_errors(plan, options)
            return
        found = measure(plan, crowds=options["crowds"], seed=options["seed"])
        self.stdout.write(f"{'kind':<14} {'people':>7} {'named':>7}")
        for kind, (people, named) in found.by_kind.items():
            self.stdout.write(f"{kind:<14} {people:>7,} {named:>7,}")
        recall = _figure(found.recall, ".3f", "- (nobody is to be found)")
        precision = _figure(found.precision, ".3f", "- (nobody is named)")
        self.stdout.write(f"recall {recall}, precision {precision}")

    def _tell_errors(self, plan: CrowdPlan, options: dict[str, Any]) -> None:
        gold = GoldPlan(**{each.name: options[each.name] for each in fields(GoldPlan)})
        if gold.every < 3 or not 0.0 < gold.below < 1.0 or not 0.0 <= gold.hasty <= 1.0:
            raise CommandError("Expected --every from 3, --below between 0 and 1, --hasty a share.")
        if gold.first < 0:
            raise CommandError("--first cannot be below 0.")
        found = measure_errors(plan, gold, crowds=options["crowds"], seed=options["seed"])
        clean = found["clean"].error
        self.stdout.write(
            f"{'excluded by':<14} {'error':>7} {'ratio':>6} {'bias':>8} {'s.e.':>7} {'holds':>6}"
            f" {'spammers':>9} {'readers':>8} {'in vain':>8} {'gold':>6}"
        )
        for rule, each in found.items():
            unsure = _figure(each.bias_error, ".4f", "-")
            self.stdout.write(
                f"{rule:<14} {each.error:>7.4f} {each.error / clean:>6.3f} {each.bias:>+8.4f}"
                f" {unsure:>7} {each.coverage:>6.3f} {each.spammers:>9.2f}"
                f" {each.readers:>8.2f} {each.in_vain:>8.3f} {each.gold:>6.3f}"
            )

    def _check(self, plan: CrowdPlan, crowds: int) -> None:
        for name in SHARES:
            if not 0.0 <= getattr(plan, name) <= 1.0:
                raise CommandError(f"--{name} must be a share from 0 to 1.")
        if plan.spammers + plan.lenient + plan.severe + plan.drifting > 0.9:
            raise CommandError("A tenth of the people at least must just read: lower the shares.")
        if not 0.0 <= plan.noise < math.inf:
            raise CommandError("--noise must be a number of at least 0.")
        if min(crowds, plan.people - 9, plan.judgments, plan.labels, plan.grades - 1) < 1:
            raise CommandError(
                "It takes a crowd, ten people or more, a judgment, a label a pair, two grades."
            )
        if plan.labels > plan.people:
            raise CommandError("--labels cannot be more than there are --people.")


def _figure(value: float, form: str, none: str) -> str:
    return none if math.isnan(value) else format(value, form)

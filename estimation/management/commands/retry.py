"""``manage.py retry``: what failed in the background is tried again."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from estimation import work
from estimation.services import retrying
from judging.errors import UserError
from judging.models import Campaign


class Command(BaseCommand):
    help = (
        "Tries again what failed in the background, of one campaign or of all, and lists it. "
        "Workers do the work. A draw that failed is asked for again on its round's page."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("campaign", nargs="?", help="slug; by default all campaigns")
        parser.add_argument("--list", action="store_true", help="only list it")

    def handle(self, *_args: Any, **options: Any) -> None:
        campaigns = Campaign.objects.order_by("slug")
        if options["campaign"]:
            campaigns = campaigns.filter(slug=options["campaign"])
            if not campaigns.exists():
                raise CommandError(f"There is no campaign {options['campaign']!r}.")
        found = [(campaign, each) for campaign in campaigns for each in work.failed(campaign)]
        named = [(f"{of.slug} round {each.round}" if each.round else of.slug, each)
                 for of, each in found]  # fmt: skip
        if not options["campaign"]:
            named += [("the site", each) for each in work.failed_of_site()]
        for place, each in named:
            outcome = "" if options["list"] else f" -> {_again(each)}"
            self.stdout.write(f"{place}: {each.name}: {each.job.error}{outcome}")
        if not named:
            self.stdout.write("Nothing has failed.")


def _again(each: work.FailedWork) -> str:
    try:
        retrying.retry(job=each.job, by=None)
    except UserError as error:
        return error.message
    return "tried again"

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
        for campaign, each in found:
            outcome = "" if options["list"] else f" -> {_again(each)}"
            place = f"{campaign.slug} round {each.round}" if each.round else campaign.slug
            self.stdout.write(f"{place}: {each.name}: {each.job.error}{outcome}")
        if not found:
            self.stdout.write("Nothing has failed.")


def _again(each: work.FailedWork) -> str:
    try:
        retrying.retry(job=each.job, by=None)
    except UserError as error:
        return error.message
    return "tried again"

"""``manage.py load_demo``: the demo campaign, once."""

from typing import Any

from django.core.management.base import BaseCommand

from estimation.services import demo


class Command(BaseCommand):
    help = "Loads the demo campaign and its accounts, unless there is a campaign already."
    requires_system_checks = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        campaign = demo.load()
        if campaign is None:
            self.stdout.write("There is a campaign already; the demo was not loaded.")
        else:
            self.stdout.write(f"Loaded the demo campaign {campaign.slug}.")

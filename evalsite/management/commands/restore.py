"""``manage.py restore FOLDER``: a site from a backup."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evalsite.management.backups import BackupError, restore


class Command(BaseCommand):
    help = (
        "Fills a new, migrated site with what manage.py backup wrote: all of it or, if anything is "
        "wrong, nothing. Then manage.py recompute shows that the estimates follow from the rows."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            restore(options["folder"], say=self.stdout.write)
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from None

"""``manage.py backup FOLDER``: all of the site, while people judge."""

import argparse
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evalsite.management.backups import BackupError, back_up


class Command(BaseCommand):
    help = (
        "Writes all rows, as they are at one moment, and all files into a new folder, from which "
        "manage.py restore fills another site, on SQLite or PostgreSQL. The site may be in use."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="empty, or not there yet")

    def handle(self, *_args: Any, **options: Any) -> None:
        os.umask(0o077)  # what stands in a backup is for the account of the site alone
        try:
            back_up(options["folder"], say=self.stdout.write)
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from None

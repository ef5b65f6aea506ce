"""``manage.py import_campaign DIR``: a campaign from a folder of files."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from estimation.services import importing
from judging.errors import UserError
from judging.models import Upload, User
from judging.services.campaigns import CampaignPlan


class Command(BaseCommand):
    help = (
        "Makes a campaign of DIR/topics.*, DIR/docs.*, DIR/runs/* and DIR/qrels.*. "
        "An optional DIR/campaign.json gives name, slug, guidelines, grades and depth. "
        "All or nothing: errors are listed as file, line, field, message."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--organizer", required=True, help="user name of the organizer")
        parser.add_argument("--name", help="name of the campaign")
        parser.add_argument("--slug", help="its address, e.g. trec8")
        parser.add_argument("--depth", type=int, help="depth of the pool")

    def handle(self, *_args: Any, **options: Any) -> None:
        folder = options["folder"]
        if not folder.is_dir():
            raise CommandError(f"{folder} is not a folder.")
        organizer = User.objects.filter(username=options["organizer"]).first()
        if organizer is None:
            raise CommandError(f"There is no user {options['organizer']!r}.")
        try:
            given = {k: options[k] for k in ("name", "slug", "depth") if options[k] is not None}
            plan: CampaignPlan = replace(importing.plan_of(folder), **given)
            campaign, uploads = importing.import_folder(
                folder, by=organizer, plan=plan, progress=self._tell
            )
        except UserError as error:
            raise CommandError(error.message) from None
        for each in importing.left_out(folder):
            self.stdout.write(f"left out: {each}")
        if campaign is None:
            rejected = sum(upload.state != Upload.State.ACCEPTED for upload in uploads)
            files = "1 file was" if rejected == 1 else f"{rejected} files were"
            raise CommandError(f"{files} rejected; nothing was imported.")
        self.stdout.write(f"Imported campaign {campaign.slug}: {len(uploads)} files.")

    def _tell(self, upload: Upload) -> None:
        facts = ", ".join(f"{key} {value}" for key, value in upload.summary.items())
        self.stdout.write(f"{upload.state}: {upload.name} ({upload.kind}) {facts}")
        for kind in ("errors", "warnings"):
            listed = getattr(upload, kind)
            for problem in listed:
                place = f"{problem['file']}:{problem['line'] or '-'}"
                text = f"  {kind[:-1]}: {place}: {problem['field'] or '-'}: {problem['message']}"
                self.stdout.write(text)
            more = getattr(upload, f"{kind[:-1]}_count") - len(listed)
            if more > 0:
                self.stdout.write(f"  … and {more} more {kind}")

"""``python manage.py doctor``: one table; exit code 1 if something needed is missing."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from evalsite.management.diagnosis import MISSING, OK, WARNING, Diagnosis, diagnose


class Command(BaseCommand):
    help = "Shows what is configured, what answers and what is missing."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        findings = diagnose()
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            self._show(finding, width)
        if any(finding.status == MISSING for finding in findings):
            sys.exit(1)

    def _show(self, finding: Diagnosis, width: int) -> None:
        styles = {OK: self.style.SUCCESS, WARNING: self.style.WARNING, MISSING: self.style.ERROR}
        status = styles[finding.status](f"{finding.status:<7}")
        self.stdout.write(f"{finding.name:<{width}}  {status}  {finding.seen}")
        if finding.mend:
            self.stdout.write(f"{'':<{width}}  {'':<7}  -> {finding.mend}")

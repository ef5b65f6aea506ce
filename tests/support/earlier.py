"""Migrations one by one, as older sites went through them."""

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader


class OneByOne(MigrationLoader):
    """Knows no migration that replaces others."""

    def load_disk(self) -> None:
        super().load_disk()
        known = self.disk_migrations.items()
        self.disk_migrations = {key: each for key, each in known if not each.replaces}


def executor() -> MigrationExecutor:
    made = MigrationExecutor(connection)
    made.loader = OneByOne(connection)
    return made


def migrate(*targets: tuple[str, str]) -> None:
    """To these, back or forth."""
    executor().migrate([*targets])

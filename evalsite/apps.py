import sys

from django.apps import AppConfig, apps
from django.conf import settings
from django.db import connections
from django.db.models.signals import post_migrate

OWN = ("estimation", "judging")  # of other applications the note may be all that is left
POSTGRES_FIELDS = "django.contrib.postgres.fields"
CLIENT = "requests"  # with it REST framework offers a client for tests


class EvalsiteConfig(AppConfig):
    name = "evalsite"

    def ready(self) -> None:
        sqlite = settings.DATABASES["default"]["ENGINE"] == "evalsite.sqlite"
        load_rest_framework_without(CLIENT, *([POSTGRES_FIELDS] if sqlite else []))
        # Binds shared tasks to this project's Celery application in every process.
        from evalsite.celery import app  # noqa: PLC0415

        app.set_default()
        post_migrate.connect(forget_replacements, sender=apps.get_app_config("estimation"))


def forget_replacements(using: str, **_: object) -> None:
    """Takes out the note that a migration which replaces others was applied; theirs say it already.

    With the note, Django would undo it as well when a site goes back to one of the others, and drop
    all tables; and backups would tell sites apart that have the same tables.
    """
    from django.db.migrations.recorder import MigrationRecorder  # noqa: PLC0415  (no web process)

    applied = MigrationRecorder(connections[using]).migration_qs
    applied.filter(app__in=OWN, name__startswith="0001_squashed_").delete()


def load_rest_framework_without(*unused: str) -> None:
    """As if these were not installed, which it allows for: each would take 10 MB in every process.

    A module that is None cannot be imported; afterwards it can be again, by whoever needs it.
    """
    hidden = [name for name in unused if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        import rest_framework.compat  # noqa: F401, PLC0415
    finally:
        for name in hidden:
            del sys.modules[name]

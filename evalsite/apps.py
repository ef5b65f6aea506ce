import sys

from django.apps import AppConfig
from django.conf import settings

POSTGRES_FIELDS = "django.contrib.postgres.fields"


class EvalsiteConfig(AppConfig):
    name = "evalsite"

    def ready(self) -> None:
        if settings.DATABASES["default"]["ENGINE"] == "evalsite.sqlite":
            load_rest_framework_without_postgres()
        # Binds shared tasks to this project's Celery application in every process.
        from evalsite.celery import app  # noqa: PLC0415

        app.set_default()


def load_rest_framework_without_postgres() -> None:
    """As if psycopg were not installed, which it allows for: it would be loaded and never used.

    A module that is None cannot be imported; afterwards it can be again, by whoever needs it.
    """
    if POSTGRES_FIELDS in sys.modules:
        return
    sys.modules[POSTGRES_FIELDS] = None  # type: ignore[assignment]
    try:
        import rest_framework.compat  # noqa: F401, PLC0415
    finally:
        del sys.modules[POSTGRES_FIELDS]

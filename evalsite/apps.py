import sys

from django.apps import AppConfig
from django.conf import settings

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

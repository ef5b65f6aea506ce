"""The product's settings without its queue of writers: what the queue must be better than."""

from evalsite.settings import *  # noqa: F403

DATABASES["default"]["ENGINE"] = "django.db.backends.sqlite3"  # noqa: F405

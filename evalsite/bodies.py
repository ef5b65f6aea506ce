"""How long the body of a request may be; known from its address, before any of it is read."""

from functools import cache

from django.conf import settings
from django.urls import Resolver404, resolve, reverse

UPLOADS = ("material", "api-uploads")
PARTS_BYTES = 2**20  # what a form adds to the files that it sends


def takes_files(path: str) -> bool:
    """Is this one of the addresses that files are sent to?

    How it ends is looked at first, as this is asked twice of every request.
    """
    if not path.endswith(_ends()):
        return False
    try:
        return resolve(path).url_name in UPLOADS
    except Resolver404:
        return False


@cache
def _ends() -> tuple[str, ...]:
    """Of these addresses, after the name of a campaign."""
    return tuple(reverse(name, args=["a"]).rpartition("/a/")[2] for name in UPLOADS)


def most_bytes(path: str) -> int:
    """Of a body sent there; all files of an upload count together."""
    if takes_files(path):
        return int(settings.UPLOAD_MAX_BYTES) + PARTS_BYTES
    return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)

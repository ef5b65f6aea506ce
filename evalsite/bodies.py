"""How long the body of a request may be; known from its address, before any of it is read."""

from django.conf import settings
from django.urls import Resolver404, resolve

UPLOADS = {"material", "api-uploads"}
PARTS_BYTES = 2**20  # what a form adds to the files that it sends


def takes_files(path: str) -> bool:
    """Is this one of the addresses that files are sent to?"""
    try:
        return resolve(path).url_name in UPLOADS
    except Resolver404:
        return False


def most_bytes(path: str) -> int:
    """Of a body sent there; all files of an upload count together."""
    if takes_files(path):
        return int(settings.UPLOAD_MAX_BYTES) + PARTS_BYTES
    return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)

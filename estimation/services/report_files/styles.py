"""The site's style files as text, for documents that must look right by themselves."""

from functools import lru_cache

from django.contrib.staticfiles import finders


def styles(*paths: str) -> str:
    """The files one after the other. Raises FileNotFoundError."""
    return "\n".join(map(_style, paths))


@lru_cache(maxsize=8)
def _style(path: str) -> str:
    found = finders.find(path)
    if not isinstance(found, str):
        raise FileNotFoundError(path)
    with open(found, encoding="utf-8") as file:
        return file.read()

"""Every address of the site, from the URL resolver."""

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver


def patterns(resolver: URLResolver, route: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        here = route + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield here, pattern
        else:
            yield from patterns(pattern, here)


def routes() -> set[str]:
    """All addresses outside the REST interface and the administration."""
    found = {route for route, _ in patterns(get_resolver())}
    return {route for route in found if not route.startswith(("api/", "admin/"))}

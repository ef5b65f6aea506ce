"""Our own desk, by the page and by REST: a site on SQLite, its web server and its worker."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from benchmarks.clients import people, sites
from benchmarks.desks.desk import Desk, Label, numbered
from tests.support.site import Site

NAMES = PAGE, REST = "evalsite by page", "evalsite by REST"
STORED = """
import json
from judging.models import Judgment
given = Judgment.objects.filter(assignment__campaign__slug="SLUG")
fields = ("assignment__pair_id", "assignment__assessor__username", "grade")
print(json.dumps(list(given.values_list(*fields))))
"""


@contextmanager
def started() -> Iterator[Mapping[str, Desk]]:
    """Both, on one site with a campaign for each."""
    with sites(postgres=False) as (site, _):
        processes = [each.pid for each in (site.web, *site.workers)]
        yield {
            PAGE: Desk(processes, people(site, "page"), lambda: stored(site, "page")),
            REST: Desk(processes, people(site, "rest"), lambda: stored(site, "rest")),
        }


def stored(site: Site, slug: str) -> list[Label]:
    rows = json.loads(site.python(STORED.replace("SLUG", slug)).strip().splitlines()[-1])
    return [Label(str(pair), numbered(name), grade) for pair, name, grade in rows]

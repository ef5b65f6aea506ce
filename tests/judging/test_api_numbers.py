"""Numbers in addresses that no database has: nothing is found, and nothing breaks."""

import re
from typing import Any

import pytest
from django.urls import reverse

from tests.judging.test_api_roles import ALLOWED, BODIES, undone
from tests.support import rest
from tests.support.kept import Kept

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]
__all__ = ["undone"]
HUGE = 2**70


@pytest.mark.parametrize("role", ["organizer", "assessor"])
def test_a_number_that_no_database_has(kept: Kept, undone: Any, role: str) -> None:
    world = rest.World(kept)
    ids: dict[str, Any] = {**world.ids(), "token": 1, "factor": 1}
    found = {}
    for path, method in ALLOWED:
        for place in re.findall(r"{(\w+)}", path):
            if isinstance(ids[place], int):
                url = path.format(**{**ids, place: HUGE})
                answer = undone(world.clients[role], method, url, BODIES.get((path, method)))
                found[method, path, place] = answer.status_code
    assert len(found) > 60
    assert {each: status for each, status in found.items() if status not in (400, 403, 404)} == {}


def test_nobody_of_such_a_number_is_admitted_on_the_page(kept: Kept) -> None:
    world = rest.World(kept)
    admit = reverse("training-admit", args=[world.ids()["slug"], HUGE])
    assert world.browser("organizer").post(admit).status_code == 404

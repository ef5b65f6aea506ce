"""The product's settings with the mistake that the drill of crowd links is there to find: whether a
place is left is looked up first, and whoever found one then takes it, whatever came between.
"""

from collections.abc import Callable
from typing import Any

from evalsite.settings import *  # noqa: F403

MIDDLEWARE = [*MIDDLEWARE, "tests.support.lookers.Lookers"]  # noqa: F405


class Lookers:
    """Is no part of a request: it is made when the server begins, with all models there."""

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        from django.db.models import F
        from django.db.models.functions import Least

        from judging.models import CrowdLink, User
        from judging.services import crowd_links, entering

        def account(link: CrowdLink) -> User:
            now_or_full = Least(F("people") + 1, F("most_people"))
            CrowdLink.objects.filter(pk=link.pk).update(people=now_or_full)
            made = User(username=f"guest-{crowd_links.new_code()}".lower(), is_guest=True)
            made.set_unusable_password()
            made.save()
            return made

        entering._account = account
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        return self.get_response(request)

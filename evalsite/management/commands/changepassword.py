"""``manage.py changepassword``: Django's own, for a user name however it is written."""

from typing import Any

from django.contrib.auth.management.commands import changepassword

from judging.models import User


class Command(changepassword.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        named = User.objects.named(options["username"] or "")
        if named is not None:
            options["username"] = named.username
        return super().handle(*args, **options)

"""What accounts may do on the whole site: who changes it, and that an admin is always left."""

import threading
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from judging.accounts import QRELS
from judging.errors import UserError
from judging.models import AuditEntry, User
from judging.services.rights import Rights, change
from tests.support import factories
from tests.support.pages import text

pytestmark = pytest.mark.django_db
PLAIN = Rights(creates=False, admin=False, active=True)
ADMIN = Rights(creates=False, admin=True, active=True)


def admin(name: str = "root") -> User:
    return factories.user(name, is_superuser=True, is_staff=True)


def page(by: User, of: User) -> tuple[Client, str]:
    client = Client()
    client.force_login(by)
    return client, reverse("site-person", args=[of.pk])


def test_rights_are_given_and_taken_with_an_entry_each() -> None:
    by, user = admin(), factories.user("ann")
    client, there = page(by, user)
    client.post(there, {"creates": "on", "admin": "on", "active": "on"})
    user.refresh_from_db()
    assert Rights.of(user) == Rights(creates=True, admin=True, active=True)
    assert user.is_staff
    client.post(there, {"active": "on"})
    user.refresh_from_db()
    assert (Rights.of(user), user.is_staff) == (PLAIN, False)
    entries = AuditEntry.objects.filter(action="change rights").order_by("pk")
    assert [entry.data["after"]["admin"] for entry in entries] == [True, False]
    client.post(there, {"active": "on"})
    assert entries.count() == 2, "nothing was changed"


def test_who_is_blocked_is_signed_out_at_once() -> None:
    by, user = admin(), factories.user("ann")
    theirs, _ = page(user, user)
    assert theirs.get("/account/").status_code == 200
    client, there = page(by, user)
    client.post(there, {})
    assert theirs.get("/account/").status_code == 302
    client.post(there, {"active": "on"})
    user.refresh_from_db()
    assert user.is_active


@pytest.mark.parametrize("given", [{"active": "on"}, {"admin": "on"}, {}])
def test_nobody_takes_their_own(given: dict[str, str]) -> None:
    by = admin()
    client, there = page(by, by)
    answer = client.post(there, given)
    assert answer.status_code == 409
    assert "another admin can" in text(answer)
    by.refresh_from_db()
    assert Rights.of(by) == ADMIN
    assert not AuditEntry.objects.filter(action="change rights").exists()
    client.post(there, {"creates": "on", "admin": "on", "active": "on"})
    by.refresh_from_db()
    assert by.is_organizer, "that is no way to be locked out"


def test_others_are_told_no() -> None:
    user = factories.user("ann", is_organizer=True)
    client, there = page(user, user)
    for answer in (client.get(there), client.post(there, {"admin": "on", "active": "on"})):
        assert answer.status_code == 403
    with pytest.raises(UserError, match="no admin any more"):
        change(user=user, by=user, rights=ADMIN)
    assert not User.objects.get(pk=user.pk).is_superuser


def test_the_name_of_grades_from_files_stays_as_it_is() -> None:
    stands_for = User.objects.create(username=QRELS)
    with pytest.raises(UserError, match="Nobody signs in"):
        change(user=stands_for, by=admin(), rights=ADMIN)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_take_each_others_rights_one_is_left() -> None:
    one, other = admin("one"), admin("other")
    told: list[str] = []

    def take(by: User, of: User) -> Callable[[], None]:
        def work() -> None:
            try:
                change(user=of, by=by, rights=PLAIN)
            except UserError as error:
                told.append(error.code)
            finally:
                connection.close()

        return work

    threads = [threading.Thread(target=take(*two)) for two in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == ["not_an_admin"]
    assert User.objects.filter(is_superuser=True).count() == 1

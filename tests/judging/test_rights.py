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
from judging.services import members, resets
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


def in_the_administration(by: User, of: User, active: bool) -> None:
    client = Client()
    client.force_login(by)
    sent = {"username": of.username, "email": of.email}
    for name in ("last_login", "date_joined"):
        sent |= {f"{name}_0": "2026-01-01", f"{name}_1": "12:00:00"}
    there = reverse("admin:judging_user_change", args=[of.pk])
    assert client.post(there, sent | ({"is_active": "on"} if active else {})).status_code == 302


def rights_sent(of: User, **changed: bool) -> dict[str, str]:
    """What the form of an account under ``/admin/`` sends, with boxes ticked or not."""
    sent = {"username": of.username, "email": of.email}
    for name in ("last_login", "date_joined"):
        sent |= {f"{name}_0": "2026-01-01", f"{name}_1": "12:00:00"}
    boxes = {name: getattr(of, name) for name in ("is_active", "is_organizer", "is_superuser")}
    return sent | {name: "on" for name, ticked in (boxes | changed).items() if ticked}


@pytest.mark.parametrize("box", ["is_active", "is_superuser"])
def test_nobody_blocks_themselves_in_the_administration(box: str) -> None:
    by, other = admin(), factories.user("other", is_superuser=True, is_staff=True)
    client = Client()
    client.force_login(by)
    there = reverse("admin:judging_user_change", args=[by.pk])
    refused = client.post(there, rights_sent(by, **{box: False}))
    assert refused.status_code == 200
    assert "You cannot block yourself" in text(refused)
    by.refresh_from_db()
    assert (by.is_active, by.is_superuser, by.is_staff) == (True, True, True)

    assert client.post(there, rights_sent(by, is_organizer=True)).status_code == 302
    of_other = reverse("admin:judging_user_change", args=[other.pk])
    assert client.post(of_other, rights_sent(other, **{box: False})).status_code == 302
    other.refresh_from_db()
    by.refresh_from_db()
    assert (by.is_organizer, by.is_superuser, by.is_staff) == (True, True, True)
    assert not getattr(other, box)
    assert other.is_staff == other.is_superuser


@pytest.mark.parametrize("written", ["{}", "0{}"])
def test_nobody_takes_away_their_own_password_in_the_administration(written: str) -> None:
    by, other = admin(), factories.user("other")
    client = Client()
    client.force_login(by)
    sent = {"usable_password": "false", "unset-password": "Disable"}
    for of in (by, other):
        there = reverse("admin:auth_user_password_change", args=[written.format(of.pk)])
        client.post(there, sent)
        of.refresh_from_db()
        assert of.has_usable_password() == (of == by)


def test_an_address_that_an_admin_writes_down_is_not_confirmed() -> None:
    by = admin()
    ann, ben = (
        factories.user(name, email=f"{name}@example.org", address_confirmed=True)
        for name in ("ann", "ben")
    )
    client = Client()
    client.force_login(by)
    there = reverse("admin:judging_user_change", args=[ann.pk])
    assert client.post(there, rights_sent(ann, is_organizer=True)).status_code == 302
    ann.refresh_from_db()
    assert ann.address_confirmed
    for address in ("other@example.org", "Ben@example.org"):
        assert client.post(there, rights_sent(ann) | {"email": address}).status_code == 302
        ann.refresh_from_db()
        assert (ann.email, ann.address_confirmed) == (address, False)
    assert resets.asked_for("ben@example.org") == ben


def test_a_guest_gets_no_rights_in_the_administration() -> None:
    by, guest = admin(), factories.user("guest", is_guest=True)
    client = Client()
    client.force_login(by)
    there = reverse("admin:judging_user_change", args=[guest.pk])
    refused = client.post(there, rights_sent(guest, is_organizer=True))
    assert refused.status_code == 200
    guest.refresh_from_db()
    assert not guest.is_organizer


def on_the_page(by: User, of: User, active: bool) -> None:
    client, there = page(by, of)
    client.post(there, {"active": "on"} if active else {})


@pytest.mark.parametrize("set_active", [on_the_page, in_the_administration])
def test_sessions_and_keys_of_who_was_blocked_stay_ended(
    set_active: Callable[[User, User, bool], None],
) -> None:
    by, user = admin(), factories.user("ann")
    key = members.create_token(user=user, name="nightly")
    theirs, _ = page(user, user)
    set_active(by, user, False)
    assert not User.objects.get(pk=user.pk).is_active
    set_active(by, user, True)
    assert theirs.get("/account/").status_code == 302
    assert members.user_of_token(key) is None
    user.refresh_from_db()
    theirs.force_login(user)
    assert "or by blocking" in text(theirs.get("/account/"))
    set_active(by, user, True)
    assert theirs.get("/account/").status_code == 200, "only blocking ends them"


@pytest.mark.parametrize("set_active", [on_the_page, in_the_administration])
def test_links_from_before_a_block_stay_void(
    set_active: Callable[[User, User, bool], None],
) -> None:
    by, user = admin(), factories.user("ann", email="ann@example.org", address_confirmed=True)
    invited = factories.user("ben", invited_by=by)
    User.objects.filter(pk=invited.pk).update(password="!")
    invited.refresh_from_db()
    reset, invitation = resets.link(user), members.invitation(invited, by=by)
    assert invitation is not None
    assert (resets.found(*reset), members.invited(*invitation)) == (user, invited)
    for each in (user, invited):
        set_active(by, each, False)
        set_active(by, each, True)
        each.refresh_from_db()
    with pytest.raises(UserError, match="Ask for another one"):
        resets.found(*reset)
    with pytest.raises(UserError, match="Ask the organizer"):
        members.invited(*invitation)
    assert resets.found(*resets.link(user)) == user, "those of afterwards work"


@pytest.mark.parametrize("set_active", [on_the_page, in_the_administration])
def test_the_entry_of_blocking_says_what_ended(
    set_active: Callable[[User, User, bool], None],
) -> None:
    by, user = admin(), factories.user("ann")
    for active in (False, True, True):
        set_active(by, user, active)
    entries = AuditEntry.objects.filter(action="change rights").order_by("pk")
    assert [row.data.get("ended") for row in entries] == ["all sessions and keys", None]
    assert {(row.actor, row.data["user"]) for row in entries} == {(by, "ann")}


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

"""Keys of the REST interface: until when they work, and for what."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import ApiToken, AuditEntry, User
from judging.services import members
from tests.support import factories, rest

pytestmark = pytest.mark.django_db
DAY = 86_400
OLD, NEW = "correct horse battery", "a staple of another kind"


def account(name: str = "anna") -> User:
    made: User = User.objects.create_user(name, password=OLD)
    return made


def with_key(key: str) -> rest.RestClient:
    client = rest.RestClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    return client


def on_the_page(user: User) -> None:
    client = Client()
    client.force_login(user)
    sent = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW}
    assert client.post(reverse("password"), sent).status_code == 302


def by_an_admin(user: User) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    sent = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    url = reverse("admin:auth_user_password_change", args=[user.pk])
    assert client.post(url, sent).status_code == 302


def on_the_command_line(user: User) -> None:
    user.set_password(NEW)  # as the command changepassword does
    user.save()


def taken_away(user: User) -> None:
    user.set_unusable_password()
    user.save(update_fields=["password"])


@pytest.mark.parametrize("change", [on_the_page, by_an_admin, on_the_command_line, taken_away])
def test_keys_end_with_a_change_of_password(change: Any) -> None:
    anna, ben = account(), account("ben")
    key, other = (members.create_token(user=user, name="k") for user in (anna, ben))
    assert with_key(key).get("/api/me/").status_code == 200

    change(anna)

    refused = with_key(key).get("/api/me/")
    assert refused.status_code == 401
    assert "not valid" in refused.json()["message"]
    assert with_key(other).get("/api/me/").status_code == 200
    anna.refresh_from_db()
    again = members.create_token(user=anna, name="k2")
    assert with_key(again).get("/api/me/").status_code == 200
    assert list(anna.api_tokens.values_list("name", flat=True)) == ["k2"]


def test_a_key_made_while_the_password_changes_is_void() -> None:
    anna = account()
    elsewhere = User.objects.get(pk=anna.pk)
    elsewhere.set_password(NEW)
    elsewhere.save()

    assert with_key(members.create_token(user=anna, name="k")).get("/api/me/").status_code == 401


@pytest.mark.slow
def test_a_password_that_is_only_hashed_anew_ends_no_key(settings: Any) -> None:
    anna = account()
    key = members.create_token(user=anna, name="k")
    before = anna.password
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
        *settings.PASSWORD_HASHERS,
    ]
    assert anna.check_password(OLD)

    anna.refresh_from_db()
    assert anna.password != before
    assert with_key(key).get("/api/me/").status_code == 200


def test_a_key_ends_on_its_day() -> None:
    anna = account()
    key = members.create_token(user=anna, name="k", days=30)
    row = ApiToken.objects.get()
    assert (row.expires - row.created).total_seconds() == pytest.approx(30 * DAY, abs=5)
    ApiToken.objects.update(expires=seconds_from_now(30))
    assert with_key(key).get("/api/me/").status_code == 200

    ApiToken.objects.update(expires=seconds_from_now(-1))

    assert with_key(key).get("/api/me/").status_code == 401


@pytest.mark.parametrize("days", [0, -1, 367])
def test_a_key_works_for_a_year_at_most(days: int) -> None:
    with pytest.raises(UserError) as refused:
        members.create_token(user=account(), name="k", days=days)

    assert refused.value.field == "expires_in_days"
    assert not ApiToken.objects.exists()


def test_keys_from_before_there_were_days_work_on() -> None:
    key = members.create_token(user=account(), name="k")
    ApiToken.objects.update(expires=None)

    assert with_key(key).get("/api/me/").status_code == 200


CHANGES = {
    "POST": ("campaigns/", {"name": "mine"}),
    "PATCH": ("campaigns/test/", {"name": "mine"}),
    "DELETE": ("tokens/{token}/", None),
}


@pytest.mark.parametrize("method", CHANGES)
def test_a_key_for_reading_changes_nothing(method: str) -> None:
    campaign = factories.campaign()
    organizer = campaign.created_by
    client = with_key(members.create_token(user=organizer, name="k", scope="read"))
    token, entries = ApiToken.objects.get(), AuditEntry.objects.count()
    assert client.get("/api/campaigns/test/").status_code == 200
    assert client.head("/api/campaigns/test/").status_code == 200

    address, sent = CHANGES[method]
    call = getattr(client, method.lower())
    refused = call(f"/api/{address.format(token=token.pk)}", sent, format="json")

    assert (refused.status_code, refused.json()["code"]) == (403, "read_only_key")
    assert "full" in refused.json()["message"]
    assert AuditEntry.objects.count() == entries
    full = with_key(members.create_token(user=organizer, name="f"))
    assert getattr(full, method.lower())(
        f"/api/{address.format(token=token.pk)}", sent, format="json"
    ).status_code in {200, 201, 204}


OPEN_TO_ANYBODY = ("/api/tokens/", "/api/password-reset/", "/api/password-reset/set/")
"""Ways in, which look at no key."""


@pytest.mark.parametrize("operation", rest.operations(), ids=lambda o: f"{o.method} {o.path}")
def test_no_address_changes_anything_for_a_key_for_reading(operation: rest.Operation) -> None:
    if operation.method == "GET" or operation.path in OPEN_TO_ANYBODY:
        return
    user = factories.user("root", is_superuser=True)
    client = with_key(members.create_token(user=user, name="k", scope="read"))
    path = re.sub(r"{\w+}", "1", operation.path.replace("{slug}", "none"))

    answer = client.generic(operation.method, path, "{}", content_type="application/json")

    assert answer.json()["code"] == "read_only_key", path


def test_the_last_use_is_noted_and_not_at_every_request(
    django_assert_num_queries: Any,
) -> None:
    client = with_key(members.create_token(user=account(), name="k"))
    assert ApiToken.objects.get().last_used is None

    client.get("/api/me/")
    noted = ApiToken.objects.get().last_used
    assert noted is not None
    with django_assert_num_queries(2):
        client.get("/api/me/")
    assert ApiToken.objects.get().last_used == noted
    ApiToken.objects.update(last_used=seconds_from_now(-3600))
    client.get("/api/me/")
    assert ApiToken.objects.get().last_used >= noted


@pytest.mark.parametrize("name", ["a\nb", "a\u202eb"])
def test_the_name_of_a_key_is_one_line(name: str) -> None:
    anna, client = account(), Client()
    client.force_login(anna)
    sent = {"name": name, "scope": "read", "days": "7"}
    assert "The name cannot be kept" in client.post(reverse("account"), sent).content.decode()
    body = {"username": "anna", "password": OLD, "name": name}
    refused = rest.client_of(None).post(reverse("api-tokens"), body)
    assert (refused.status_code, refused.json()["code"]) == (400, "key_name_invalid")
    assert not ApiToken.objects.exists()


def test_a_key_is_made_over_rest_with_its_end_and_scope() -> None:
    account()
    sent = {"username": "anna", "password": OLD, "scope": "read", "expires_in_days": 7}
    made = rest.client_of(None).post("/api/tokens/", sent)
    assert made.status_code == 201, made.content
    client = with_key(made.json()["key"])

    (listed,) = client.get("/api/tokens/").json()

    assert (listed["scope"], listed["state"]) == ("read", "works")
    assert listed["expires"] == made.json()["expires"] is not None
    assert listed["last_used"] is not None
    wrong = rest.client_of(None).post("/api/tokens/", {**sent, "expires_in_days": 1000})
    assert wrong.json()["errors"][0]["field"] == "expires_in_days"
    assert rest.client_of(None).post("/api/tokens/", {**sent, "scope": "all"}).status_code == 400


def test_the_account_page_shows_scope_last_use_and_end() -> None:
    anna = account()
    client = Client()
    client.force_login(anna)
    url = reverse("account")
    assert "No key yet" in client.get(url).content.decode()
    client.post(url, {"name": "nightly", "scope": "read", "days": "7"})
    members.create_token(user=anna, name="old")
    ApiToken.objects.filter(name="old").update(expires=seconds_from_now(-1))

    page = client.get(url).content.decode()

    assert "Read only" in page
    assert "never" in page
    assert "expired" in page
    assert ApiToken.objects.get(name="nightly").scope == "read"
    anna.set_password(NEW)
    anna.save()
    client.force_login(anna)
    page = client.get(url).content.decode()
    assert page.count("ended with the password") == 2

"""Codes, recovery codes and the second step: who gets in, and who must not."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pyotp
import pytest
from django.db import connection
from django.test import Client

from judging.errors import UserError
from judging.models import AuditEntry, RecoveryCode, SecondFactor, User
from judging.services import factors, members, passkeys
from judging.services.factors import STEP_SECONDS, TRIES_OF_CODES
from tests.support import factories

pytestmark = pytest.mark.django_db
RIGHT = "correct horse battery"
Clock = Callable[[int], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time goes on in steps of a code, as told."""
    began, passed = int(time.time()) // STEP_SECONDS * STEP_SECONDS, [0]
    monkeypatch.setattr(factors.time, "time", lambda: began + passed[0])

    def go_on(steps: int) -> None:
        passed[0] += steps * STEP_SECONDS

    return go_on


@pytest.fixture
def anna(clock: Clock) -> User:
    user: User = User.objects.create_user("anna", password=RIGHT)
    return user


def code_of(secret: str, aside: int = 0) -> str:
    return str(pyotp.TOTP(secret).at(int(factors.time.time()) + aside * STEP_SECONDS))


def set_up(user: User) -> tuple[str, list[str]]:
    """Its secret and recovery codes."""
    draft = factors.draft(user=user)
    fresh = factors.set_up_codes(user=user, token=draft.token, code=code_of(draft.secret))
    user.refresh_from_db()
    return draft.secret, fresh


def outcome(user: User, code: str) -> str:
    try:
        factors.verify(user=user, code=code)
    except UserError as error:
        return error.code
    return "in"


# ------------------------------------------------------------------------------ codes


def test_codes_are_those_of_the_standard() -> None:
    """RFC 6238, appendix B, of which apps show the last six digits."""
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
    for second, code in {59: "287082", 1111111109: "081804", 2000000000: "279037"}.items():
        assert pyotp.TOTP(secret).at(second) == code


def test_a_code_opens_once_and_none_before_it_afterwards(anna: User, clock: Clock) -> None:
    secret, _ = set_up(anna)
    assert outcome(anna, code_of(secret)) == "code_wrong", "it was shown when it was set up"
    clock(2)
    assert outcome(anna, code_of(secret)) == "in"
    assert outcome(anna, code_of(secret)) == "code_wrong"
    assert outcome(anna, code_of(secret, -1)) == "code_wrong"
    assert outcome(anna, code_of(secret, +1)) == "in", "a clock may be off by one"
    clock(4)
    assert outcome(anna, code_of(secret, -2)) == "code_wrong"
    assert outcome(anna, code_of(secret, +2)) == "code_wrong"
    assert outcome(anna, f" {code_of(secret)[:3]} {code_of(secret)[3:]} ") == "in"


def test_tries_are_few_and_counted_for_the_account(anna: User, clock: Clock) -> None:
    secret, recovery = set_up(anna)
    clock(2)
    assert [outcome(anna, "000000") for _ in range(TRIES_OF_CODES)] == ["code_wrong"] * 5
    assert outcome(anna, code_of(secret)) == "too_many_tries"
    assert outcome(anna, recovery[0]) == "too_many_tries"
    ben = User.objects.create_user("ben")
    assert outcome(ben, "000000") == "code_wrong"


def test_who_knows_the_code_has_all_tries_again(anna: User, clock: Clock) -> None:
    secret, _ = set_up(anna)
    for _ in range(3):
        clock(2)
        assert [outcome(anna, "000000") for _ in range(TRIES_OF_CODES - 1)] == ["code_wrong"] * 4
        assert outcome(anna, code_of(secret)) == "in"


@pytest.mark.parametrize("code", ["", " ", "-", "½½½½½½", "١٢٣٤٥٦", "0" * 1000, "\x00"])
def test_what_is_no_code_is_refused(anna: User, code: str) -> None:
    set_up(anna)
    assert outcome(anna, code) == "code_wrong"


def test_nothing_is_set_up_before_a_code_fits(anna: User) -> None:
    draft = factors.draft(user=anna)
    with pytest.raises(UserError, match="not the code"):
        factors.set_up_codes(user=anna, token=draft.token, code="000000")
    assert not SecondFactor.objects.exists()
    anna.refresh_from_db()
    assert not anna.has_second_factor


def test_no_two_factors_have_one_name(anna: User) -> None:
    """Who has lost a device would remove the other one."""
    for name, given in (
        ("Phone", "Phone"),
        ("phone", "phone (2)"),
        ("Phone (2)", "Phone (2) (2)"),
        ("authenticator app", "authenticator app"),
        ("x" * 100, "x" * 100),
        ("X" * 100, f"{'X' * 90} (2)"),
    ):
        assert factors.free_name(anna, name) == given
        SecondFactor.objects.create(user=anna, kind="passkey", name=given, credential=given[-64:])
    set_up(anna)
    assert anna.factors.get(kind="codes").name == "Authenticator app (2)"


def test_a_draft_is_of_one_person_and_of_this_hour(anna: User, monkeypatch: Any) -> None:
    draft, ben = factors.draft(user=anna), User.objects.create_user("ben")
    with pytest.raises(UserError, match="too long"):
        factors.drafted(user=ben, token=draft.token)
    with pytest.raises(UserError, match="too long"):
        factors.drafted(user=anna, token=draft.token[:-1] + "x")
    monkeypatch.setattr(factors, "DRAFT_SECONDS", -1)
    with pytest.raises(UserError, match="too long"):
        factors.drafted(user=anna, token=draft.token)


def test_the_secret_is_not_in_the_database(anna: User, settings: Any) -> None:
    secret, _ = set_up(anna)
    assert secret not in SecondFactor.objects.get().secret
    settings.SECRET_KEY = "another" * 9
    assert outcome(anna, code_of(secret, 1)) == "code_wrong"


# ------------------------------------------------------------------------------ recovery


def test_a_recovery_code_opens_once(anna: User) -> None:
    _, recovery = set_up(anna)
    assert len(set(recovery)) == 10
    assert outcome(anna, recovery[3].upper().replace("-", " ")) == "in"
    assert outcome(anna, recovery[3]) == "code_wrong"
    assert factors.unused_recovery_codes(anna) == 9
    assert not RecoveryCode.objects.filter(digest__in=recovery).exists()
    assert AuditEntry.objects.filter(action="use recovery code", actor=anna).count() == 1


def test_new_recovery_codes_end_the_old_ones(anna: User) -> None:
    _, old = set_up(anna)
    new = factors.renew_recovery_codes(user=anna)
    assert outcome(anna, old[0]) == "code_wrong"
    assert outcome(anna, new[0]) == "in"


def test_recovery_codes_of_one_open_nothing_of_another(anna: User) -> None:
    _, recovery = set_up(anna)
    ben = User.objects.create_user("ben")
    set_up(ben)
    assert outcome(ben, recovery[0]) == "code_wrong"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_many_that_send_a_code_at_once_one_is_in(
    anna: User, clock: Clock, monkeypatch: Any
) -> None:
    """With a twin that looks before it writes, which lets several in."""
    monkeypatch.setattr(factors, "TRIES_OF_CODES", 100)
    secret, recovery = set_up(anna)
    clock(2)
    assert at_once(lambda: outcome(anna, code_of(secret))).count("in") == 1
    assert at_once(lambda: outcome(anna, recovery[0])).count("in") == 1
    clock(2)
    monkeypatch.setattr(factors, "_take_code", looks_first)
    assert at_once(lambda: outcome(anna, code_of(secret))).count("in") > 1


def looks_first(user: User, code: str) -> bool:
    factor = user.factors.get(kind="codes")
    step = factors._step_of(factors._opened(factor.secret), code)
    if step is None or factor.counter >= step:
        return False
    time.sleep(0.3)
    SecondFactor.objects.filter(pk=factor.pk).update(counter=step)
    return True


def at_once(act: Callable[[], str], threads: int = 6) -> list[str]:
    said: list[str] = []
    together = threading.Barrier(threads)

    def one() -> None:
        together.wait()
        try:
            said.append(act())
        finally:
            connection.close()

    running = [threading.Thread(target=one) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return said


# ------------------------------------------------------------------------------ passkeys


@pytest.mark.parametrize(
    ("site", "said"),
    [
        ("https://eval.example.org", "https://eval.example.org"),
        ("https://Eval.Example.org", "https://eval.example.org"),
        ("https://eval.example.org:443", "https://eval.example.org"),
        ("https://eval.example.org:8443", "https://eval.example.org:8443"),
        ("http://localhost:80", "http://localhost"),
    ],
)
def test_the_address_of_the_site_is_known_as_browsers_say_it(
    settings: Any, site: str, said: str
) -> None:
    settings.SITE_URL = site
    verify = passkeys._server()._verify
    assert verify(said)
    others = (f"{said}.evil.example", f"{said}:1", said.replace("://", "://www."), "null", "")
    assert not any(verify(other) for other in others)


def test_who_tries_a_passkey_in_vain_is_not_led_elsewhere() -> None:
    client = Client()
    sent = {"credential": "{}", "next": "/docs/guide.md"}
    answer = client.post("/sign-in/passkey/", sent)
    page = client.get(answer["Location"])
    assert "The passkey was not accepted." in page.content.decode()
    assert page.context["next"] == "/docs/guide.md"
    outside = client.post("/sign-in/passkey/", {**sent, "next": "https://evil.example/"})
    assert "evil" not in outside["Location"]


# ------------------------------------------------------------------------------ removal


def test_without_the_last_factor_the_password_is_enough(anna: User) -> None:
    set_up(anna)
    factors.remove(factor=anna.factors.get(), by=anna)
    anna.refresh_from_db()
    assert not anna.has_second_factor
    assert not RecoveryCode.objects.exists()


def test_an_admin_takes_off_those_of_others_and_it_is_kept(anna: User) -> None:
    set_up(anna)
    admin = User.objects.create_superuser("root")
    set_up(admin)
    with pytest.raises(UserError, match="account page"):
        factors.take_off(user=admin, by=admin)
    with pytest.raises(UserError, match="no admin"):
        factors.take_off(user=admin, by=anna)
    assert factors.take_off(user=anna, by=admin) == 1
    anna.refresh_from_db()
    assert not anna.has_second_factor
    row = AuditEntry.objects.get(action="take off second factors")
    assert (row.actor, row.data) == (admin, {"user": "anna", "factors": 1})
    with pytest.raises(UserError, match="has no second"):
        factors.take_off(user=anna, by=admin)


def test_guests_have_none() -> None:
    guest = User.objects.create_user("guest-1", is_guest=True)
    with pytest.raises(UserError, match="guest"):
        factors.draft(user=guest)
    client = Client()
    client.force_login(guest)
    assert client.get("/account/factors/").status_code == 409
    assert client.get("/account/factors/codes/").status_code == 409


# ------------------------------------------------------------------------------ signing in


def password(client: Client, address: str = "/sign-in/") -> str:
    return str(client.post(address, {"username": "anna", "password": RIGHT}).get("Location"))


def is_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_the_password_alone_opens_nothing(anna: User, clock: Clock) -> None:
    secret, _ = set_up(anna)
    clock(2)
    client = Client()
    assert password(client, "/sign-in/?next=/docs/guide.md") == "/sign-in/second/"
    assert not is_in(client)
    assert client.get("/api/me/").status_code == 401
    wrong = client.post("/sign-in/second/", {"code": "000000"})
    assert "does not fit" in wrong.content.decode()
    assert not is_in(client)
    before = client.session.session_key
    answer = client.post("/sign-in/second/", {"code": code_of(secret)})
    assert answer["Location"] == "/docs/guide.md"
    assert is_in(client)
    assert client.session.session_key != before, "a key that somebody planted is nobody's"


def test_the_second_step_is_over_when_it_should_be(anna: User, clock: Clock) -> None:
    """After ten minutes; with the password that was given; with the account."""
    secret, _ = set_up(anna)
    clock(2)
    for end in ("late", "password", "blocked"):
        client = Client()
        password(client)
        if end == "late":
            session = client.session
            session["second_step"] = {**session["second_step"], "since": time.time() - 700}
            session.save()
        elif end == "password":
            anna.set_password("a new one 7")
            anna.save()
        else:
            User.objects.filter(pk=anna.pk).update(is_active=False)
        answer = client.post("/sign-in/second/", {"code": code_of(secret)})
        assert answer["Location"] == "/sign-in/", end
        assert not is_in(client)
        anna.set_password(RIGHT)
        anna.is_active = True
        anna.save()


def test_another_site_is_not_where_one_is_sent(anna: User, clock: Clock) -> None:
    secret, _ = set_up(anna)
    for number, bad in enumerate(("https://evil.example/", "//evil.example", "/\\evil.example")):
        clock(2)
        client = Client()
        password(client, f"/sign-in/?next={bad}")
        answer = client.post("/sign-in/second/", {"code": code_of(secret)})
        assert answer["Location"] == "/", (number, bad)
    client.force_login(anna)
    again = client.post("/account/confirm/?next=//evil.example", {"password": RIGHT})
    assert again["Location"] == "/"


def test_forms_of_other_sites_are_refused(anna: User) -> None:
    """Nobody is signed in, or to another account, by a page elsewhere."""
    strict = Client(enforce_csrf_checks=True)
    for address in (
        "/sign-in/",
        "/sign-in/second/",
        "/sign-in/passkey/",
        "/sign-in/passkey/options/",
    ):
        assert strict.post(address, {"username": "anna", "password": RIGHT}).status_code == 403


def test_what_opens_the_account_is_changed_by_who_knows_the_password(anna: User) -> None:
    client = Client()
    client.force_login(anna)
    for address in ("codes/", "passkeys/"):
        answer = client.get(f"/account/factors/{address}")
        assert answer["Location"].startswith("/account/confirm/")
    wrong = client.post("/account/confirm/?next=/account/factors/codes/", {"password": "no"})
    assert "not your password" in wrong.content.decode()
    right = client.post("/account/confirm/?next=/account/factors/codes/", {"password": RIGHT})
    assert right["Location"] == "/account/factors/codes/"
    page = client.get(right["Location"])
    draft = page.context["draft"]
    data = {"token": draft.token, "code": "000000"}
    told = client.post(right["Location"], data)
    assert "not the code" in told.content.decode()
    assert told.context["draft"].secret == draft.secret
    done = client.post(right["Location"], {**data, "code": code_of(draft.secret)})
    assert len(done.context["codes"]) == 10
    assert AuditEntry.objects.filter(action="add second factor", actor=anna).exists()
    seen = client.get("/account/factors/")
    assert done.context["codes"][0] not in seen.content.decode()


def test_who_has_no_password_is_told_how_to_show_who_they_are(anna: User) -> None:
    """Whose account was opened by a provider has one that nobody knows."""
    client = Client()
    client.force_login(anna)
    asked = client.get(client.get("/account/factors/codes/")["Location"]).content.decode()
    assert "Sign out, and sign in again" in asked
    client.post("/sign-out/")
    password(client)  # as a provider or a passkey does
    assert client.get("/account/factors/codes/").status_code == 200


def test_a_session_from_before_cannot_remove_what_protects(anna: User) -> None:
    set_up(anna)
    client = Client()
    client.force_login(anna)
    factor = anna.factors.get()
    assert client.post(f"/account/factors/{factor.pk}/remove/")["Location"].startswith(
        "/account/conf"
    )
    assert client.post("/account/factors/recovery/")["Location"].startswith("/account/confirm/")
    assert SecondFactor.objects.filter(pk=factor.pk).exists()
    client.post("/account/confirm/", {"password": RIGHT})
    client.post(f"/account/factors/{factor.pk}/remove/")
    assert not SecondFactor.objects.filter(pk=factor.pk).exists()


# ------------------------------------------------------------------------------ programs


def token(**more: str) -> Any:
    body = {"username": "anna", "password": RIGHT, **more}
    return Client().post("/api/tokens/", body, content_type="application/json")


def test_keys_are_given_to_who_has_both(anna: User, clock: Clock) -> None:
    assert token().status_code == 201
    secret, recovery = set_up(anna)
    clock(2)
    assert (token().status_code, token().json()["code"]) == (401, "second_factor_needed")
    assert token(code="000000").json()["code"] == "code_wrong"
    assert token(code=code_of(secret)).status_code == 201
    assert token(code=code_of(secret)).json()["code"] == "code_wrong"
    assert token(code=recovery[0]).status_code == 201


def test_programs_set_up_and_remove_what_pages_do(anna: User, clock: Clock) -> None:
    key = members.create_token(user=anna, name="program")
    client, json = Client(headers={"Authorization": f"Bearer {key}"}), "application/json"

    def post(address: str, **body: str) -> Any:
        return client.post(f"/api/me/{address}", body, content_type=json)

    assert post("second-factors/codes/", password="wrong").status_code == 403
    draft = post("second-factors/codes/", password=RIGHT).json()
    assert post("second-factors/codes/set-up/", token=draft["token"], code="1").status_code == 400
    made = post("second-factors/codes/set-up/", token=draft["token"], code=code_of(draft["secret"]))
    assert len(made.json()["recovery_codes"]) == 10
    (row,) = client.get("/api/me/second-factors/").json()
    assert (row["kind"], client.get("/api/me/").json()["has_second_factor"]) == ("codes", True)
    assert post("recovery-codes/", password="wrong").status_code == 403
    assert len(post("recovery-codes/", password=RIGHT).json()["recovery_codes"]) == 10
    assert post(f"second-factors/{row['id']}/remove/", password="wrong").status_code == 403
    assert post(f"second-factors/{row['id']}/remove/", password=RIGHT).status_code == 204
    assert client.get("/api/me/second-factors/").json() == []


# ------------------------------------------------------------------------------ wanted by the site


@pytest.mark.parametrize(
    ("wanted", "who", "sent"),
    [
        ([], "admin", False),
        (["admins"], "admin", True),
        (["admins"], "creator", False),
        (["admins", "organizers"], "creator", True),
        (["organizers"], "organizer", True),
        (["admins", "organizers"], "assessor", False),
    ],
)
def test_who_must_have_one_is_sent_to_set_it_up(
    settings: Any, clock: Clock, wanted: list[str], who: str, sent: bool
) -> None:
    made = factories.campaign()
    users = {
        "admin": User.objects.create_superuser("root"),
        "creator": User.objects.create_user("creator", is_organizer=True),
        "organizer": User.objects.create_user("helper"),
        "assessor": factories.assessors(made, "judge")[0],
    }
    members.add(campaign=made, by=made.created_by, username="helper", role="organizer")
    settings.SECOND_FACTOR_FOR = wanted
    user, client = users[who], Client()
    client.force_login(user)
    home, rest = client.get("/c/new/"), client.get("/api/campaigns/")
    assert (home.get("Location") == "/account/factors/", rest.status_code == 403) == (sent, sent)
    if sent:
        assert rest.json()["code"] == "second_factor_wanted"
        assert client.get("/account/factors/").status_code == 200
        assert client.get("/sign-in/").status_code == 302
    set_up(user)
    assert client.get("/api/campaigns/").status_code == 200

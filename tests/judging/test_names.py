"""No two accounts have names that people cannot tell apart."""

import pytest
from django.contrib.auth import get_user
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from judging.errors import UserError
from judging.models import Campaign, Membership, User
from judging.services import members, sign_in
from tests.support import factories
from tests.support.races import at_once

pytestmark = pytest.mark.django_db
CYRILLIC_A, WIDE_A = "\u0430", "\uff41"


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign()
    factories.assessors(made, "ann")
    return made


def add(campaign: Campaign, username: str) -> User:
    role = Membership.Role.ASSESSOR
    return members.add(campaign=campaign, by=campaign.created_by, username=username, role=role)[
        0
    ].user


def accounts() -> set[str]:
    return set(
        User.objects.exclude(username__startswith="organizer").values_list("username", flat=True)
    )


@pytest.mark.parametrize("name", ["ANN", "Ann", f"{WIDE_A}nn", "ａｎｎ", "ᵃnn", " ann "])
def test_another_way_to_write_a_name_is_the_same_account(campaign: Campaign, name: str) -> None:
    assert add(campaign, name).username == "ann"
    assert accounts() == {"ann"}


@pytest.mark.parametrize("name", [f"{CYRILLIC_A}nn", "аnn".upper(), "aոn", "aνn", "xаx", "п1an"])
def test_a_name_of_mixed_scripts_is_refused(campaign: Campaign, name: str) -> None:
    with pytest.raises(UserError) as refused:
        add(campaign, name)

    assert (refused.value.code, refused.value.field) == ("username_invalid", "username")
    assert "mixes letters" in refused.value.message
    assert accounts() == {"ann"}


@pytest.mark.parametrize(
    ("taken", "name"),
    [("ace", "асе"), ("ВОСК", "bock"), ("ΑΝΗ", "anh"), ("ɑɡo", "ago"), ("ᴀɴɴ", "ann")],
)
def test_a_name_of_another_script_that_looks_the_same_is_refused(
    campaign: Campaign, taken: str, name: str
) -> None:
    User.objects.filter(username="ann").delete()
    add(campaign, taken)

    with pytest.raises(UserError) as refused:
        add(campaign, name)

    assert refused.value.code == "username_taken"
    assert "looks like" in refused.value.message


@pytest.mark.parametrize("name", ["ᎪᏁᏁ", "𐐀𐐁", "ann\u200d", "a b", "", "a/b", "x" * 151])
def test_a_name_of_strange_letters_is_refused(campaign: Campaign, name: str) -> None:
    with pytest.raises(UserError) as refused:
        add(campaign, name)

    assert refused.value.code == "username_invalid"


ORDINARY = [
    "ben",
    "Ben-2",
    "b.e_n@x+1",
    "анна",
    "Ольга",
    "Ελένη",
    "josé",
    "張偉",
    "田中はな",
    "김하나",
    "user1",
    "userl",
]


def test_ordinary_names_of_many_scripts_are_accounts_of_their_own(campaign: Campaign) -> None:
    assert [add(campaign, name).username for name in ORDINARY] == ORDINARY
    assert accounts() == {"ann", *ORDINARY}


def test_an_admin_is_told_too() -> None:
    User.objects.create_user("ace")
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    url = reverse("admin:judging_user_add")
    sent = {"usable_password": "false", "password1": "", "password2": ""}

    for name, told in (
        ("ACE", "already exists"),
        ("асе", "looks like"),
        (f"{CYRILLIC_A}ce", "mixes letters"),
    ):
        page = client.post(url, {**sent, "username": name})
        assert page.status_code == 200
        assert told in page.content.decode()
    assert client.post(url, {**sent, "username": "ben"}).status_code == 302

    assert accounts() == {"ace", "ben", "root"}


def test_the_command_line_is_told_too() -> None:
    User.objects.create_user("ann")

    for name, told in (("ANN", "already taken"), ("ᴀɴɴ", "looks like")):
        with pytest.raises(CommandError, match=told):
            call_command("createsuperuser", username=name, email="a@example.org", interactive=False)


PASSWORD = "correct horse battery"


def signed_in_as(name: str, password: str = PASSWORD) -> tuple[str, str]:
    """The account that the page and REST open for a name; empty where they refuse."""
    sent = {"username": name, "password": password}
    browser = Client()
    browser.post(reverse("sign-in"), sent)
    account = get_user(browser)
    answer = Client().post("/api/tokens/", sent, content_type="application/json")
    if answer.status_code != 201:
        return account.get_username(), ""
    key = {"Authorization": f"Bearer {answer.json()['key']}"}
    return account.get_username(), Client().get("/api/me/", headers=key).json()["username"]


@pytest.mark.parametrize("name", ["ann", "ANN", "Ann", f"{WIDE_A}nn", "ᵃnn", " ann "])
def test_whoever_writes_the_name_otherwise_signs_in_as_the_same_account(name: str) -> None:
    User.objects.create_user("ann", password=PASSWORD)

    assert signed_in_as(name) == ("ann", "ann")
    assert signed_in_as(name, "wrong") == ("", "")


@pytest.mark.parametrize("name", [f"{CYRILLIC_A}nn", "ᴀɴɴ", "anna", ""])
def test_a_name_that_only_looks_the_same_signs_in_nobody(name: str) -> None:
    User.objects.create_user("ann", password=PASSWORD)

    assert signed_in_as(name) == ("", "")


@pytest.mark.slow
def test_accounts_from_before_names_were_compared_open_with_their_exact_name() -> None:
    User.objects.create_user("ann", password=PASSWORD)
    old = User.objects.create_user("ben", password="another horse")
    User.objects.filter(pk=old.pk).update(username="ANN", name_key=None)

    assert signed_in_as("ANN", "another horse") == ("ANN", "ANN")
    assert signed_in_as("ANN") == ("", "")
    assert signed_in_as("Ann") == signed_in_as("ann") == ("ann", "ann")


def test_a_refusal_does_not_tell_which_accounts_exist() -> None:
    User.objects.create_user("ann", password=PASSWORD)
    refusals = set()
    for name in ("ann", "ANN", "nobody"):
        with CaptureQueriesContext(connection) as queries, pytest.raises(UserError) as refused:
            sign_in.authenticate(username=name, password="wrong", address=f"of {name}")
        asked = [query["sql"] for query in queries if "judging_user" in query["sql"]]
        refusals.add((refused.value.code, refused.value.message, len(asked)))

    assert len(refusals) == 1


def test_the_command_line_finds_a_name_however_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    User.objects.create_user("ann", password="another horse")
    monkeypatch.setattr("getpass.getpass", lambda prompt: PASSWORD)

    call_command("changepassword", "ANN")

    assert signed_in_as("ann") == ("ann", "ann")
    with pytest.raises(CommandError, match="nobody"):
        call_command("changepassword", "nobody")


def test_an_account_keeps_its_name_and_can_be_changed_otherwise(campaign: Campaign) -> None:
    ann, ben = User.objects.get(username="ann"), add(campaign, "ben")
    ann.first_name = "Ann"
    ann.full_clean(exclude=["password"])
    ann.save()
    ben.username = "Ann"

    with pytest.raises(IntegrityError), transaction.atomic():
        ben.save()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_ways_to_write_one_name_at_once_make_one_account() -> None:
    made = factories.campaign()

    outcomes = at_once([lambda n=name: add(made, n) for name in ("ann", "ANN", "Ann", "aNN") * 2])

    assert {each.pk for each in outcomes} == {User.objects.exclude(pk=made.created_by_id).get().pk}


def test_pages_call_a_user_name_by_one_name() -> None:
    client = Client()
    pages = [client.get(reverse("sign-in"))]
    client.force_login(User.objects.create_superuser("root"))
    pages += [client.get(reverse(f"admin:judging_user_{name}")) for name in ("changelist", "add")]
    for page in pages:
        told = page.content.decode()
        assert "User name" in told
        assert ">Username" not in told

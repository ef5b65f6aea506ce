"""How often one may try to sign in, from where, and to which account."""

from collections import Counter

import pytest

from judging.errors import UserError
from judging.models import User
from judging.services import sign_in

pytestmark = pytest.mark.django_db
RIGHT = "correct horse battery"


@pytest.fixture(autouse=True)
def anna(db: None) -> User:
    user: User = User.objects.create_user("anna", password=RIGHT)
    return user


def outcome(address: str, password: str = "wrong", username: str = "anna") -> str:
    try:
        sign_in.authenticate(username=username, password=password, address=address)
    except UserError as error:
        return error.code
    return "signed in"


def tries(addresses: list[str], username: str = "anna") -> Counter[str]:
    return Counter(outcome(address, username=username) for address in addresses)


REFUSED, TOO_MANY = "sign_in_refused", "too_many_tries"
HERE, MOST = sign_in.TRIES_PER_ACCOUNT, sign_in.TRIES_PER_NAME


def test_a_network_of_ipv6_is_one_origin() -> None:
    network = [f"2001:db8:1:2:{n:x}::{n:x}" for n in range(1, 41)]

    assert tries(network) == {REFUSED: HERE, TOO_MANY: 40 - HERE}
    assert outcome("2001:db8:1:2::77", RIGHT) == TOO_MANY
    assert outcome("2001:db8:1:3::77", RIGHT) == "signed in"


def test_an_ipv4_address_is_the_same_when_it_is_written_as_ipv6() -> None:
    assert tries(["192.0.2.1", "::ffff:192.0.2.1"] * 10) == {REFUSED: HERE, TOO_MANY: 20 - HERE}
    assert outcome("192.0.2.2", RIGHT) == "signed in"


@pytest.mark.slow
def test_what_is_no_address_is_an_origin_too() -> None:
    for named in ("", "unix:", "192.0.2.1:8080", "fe80::1%eth0", "ü" * 300):
        assert tries([named] * (HERE + 1), username="x" + named[:3]) == {REFUSED: HERE, TOO_MANY: 1}


@pytest.mark.slow
def test_an_account_cannot_be_tried_for_ever_from_everywhere() -> None:
    everywhere = [f"2001:db8:{n:x}::1" for n in range(MOST + 20)]

    assert tries(everywhere) == {REFUSED: MOST, TOO_MANY: 20}
    assert outcome("2001:db8:ffff::1", RIGHT) == TOO_MANY
    assert outcome("2001:db8:ffff::1", username="ben") == REFUSED


def test_one_cannot_escape_the_count_by_writing_the_name_otherwise() -> None:
    names = ["anna", "ANNA", "Anna", "\uff41nna", "anna "] * 4

    counted = Counter(outcome("192.0.2.1", username=name) for name in names)

    assert counted == {REFUSED: HERE, TOO_MANY: len(names) - HERE}


@pytest.mark.slow
def test_those_who_know_the_password_do_not_use_up_what_is_allowed() -> None:
    for n in range(MOST + 20):
        assert outcome(f"2001:db8:{n:x}::1", RIGHT) == "signed in"
    assert outcome("192.0.2.1") == REFUSED


def test_a_success_elsewhere_gives_who_guesses_no_new_tries() -> None:
    tries(["192.0.2.1"] * HERE)
    assert outcome("192.0.2.2", RIGHT) == "signed in"

    assert outcome("192.0.2.1", RIGHT) == TOO_MANY

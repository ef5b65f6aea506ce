"""Judging over HTTP: once, however often and however parallel it is sent; corrections; tries."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from judging.clock import seconds_from_now
from judging.models import ApiToken, Assignment, Campaign, Judgment, Pair, SignInTries, User
from judging.services import campaigns, sign_in, tries
from tests.support import factories, rest

URL = "/api/campaigns/test/judgments/"
NEXT = "/api/campaigns/test/assignments/next/"
PARALLEL = 50

database = pytest.mark.django_db


def assessor() -> rest.RestClient:
    """An assessor of a campaign with an open batch of two topics and three documents."""
    made = factories.campaign()
    (user,) = factories.assessors(made, "anna")
    factories.released_batch(made, ["d1", "d2", "d3"])
    return rest.client_of(user)


@pytest.fixture
def client(db: None) -> rest.RestClient:
    return assessor()


@pytest.fixture
def held(client: rest.RestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.post(NEXT).json()["assignment"]
    return found


def judge(client: rest.RestClient, body: dict[str, Any], key: str | None = None) -> Any:
    headers = {"Idempotency-Key": key} if key is not None else {}
    return client.post(URL, body, headers=headers)


@pytest.mark.sqlite_only
def test_an_assignment_has_what_an_assessor_needs(held: dict[str, Any]) -> None:
    assert set(held) == {
        "id", "topic", "docno", "document", "grades", "guidelines", "lease_until", "progress",
        "other", "other_document", "swapped",
    }  # fmt: skip
    assert held["topic"]["title"].startswith("topic")
    assert (held["document"], len(held["grades"])) == (None, 4)
    assert (held["other"], held["other_document"], held["swapped"]) == ("", None, False)
    assert held["progress"] == {"judged": 0, "judged_today": 0, "skipped": 0}


@pytest.mark.sqlite_only
def test_claiming_again_gives_the_same_pair_under_a_new_lease(
    client: rest.RestClient, held: dict[str, Any]
) -> None:
    again = client.post(NEXT).json()["assignment"]
    assert again["id"] == held["id"]
    assert again["lease_until"] > held["lease_until"]


@pytest.mark.sqlite_only
def test_one_request_judges_and_claims_the_next(
    client: rest.RestClient, held: dict[str, Any]
) -> None:
    body = {"assignment": held["id"], "grade": 2, "comment": "good", "seconds": 3.5}
    answer = judge(client, body)
    assert answer.status_code == 201
    said = answer.json()["judgment"]
    assert (said["grade"], said["revision"], said["comment"], said["seconds"]) == (
        2,
        1,
        "good",
        3.5,
    )
    following = answer.json()["next"]
    assert following["id"] != held["id"]
    assert following["topic"] == held["topic"]
    assert following["progress"]["judged"] == 1
    assert answer.json()["reason"] is None


@pytest.mark.parametrize("key", ["one-key", None])
@pytest.mark.sqlite_only
def test_a_replay_changes_nothing(
    client: rest.RestClient, held: dict[str, Any], key: str | None
) -> None:
    body = {"assignment": held["id"], "grade": 2}
    first, again = judge(client, body, key), judge(client, body, key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == {**again.json(), "next": first.json()["next"]}
    assert first.json()["next"]["id"] == again.json()["next"]["id"]
    assert Judgment.objects.count() == 1


@pytest.mark.sqlite_only
def test_the_same_key_for_something_else_is_refused(
    client: rest.RestClient, held: dict[str, Any]
) -> None:
    following = judge(client, {"assignment": held["id"], "grade": 2}, "k").json()["next"]
    for other in ({"grade": 1}, {"comment": "now with one"}, {"assignment": following["id"]}):
        answer = judge(client, {"assignment": held["id"], "grade": 2, **other}, "k")
        assert (answer.status_code, answer.json()["code"]) == (422, "key_reused")
    assert Judgment.objects.count() == 1


@pytest.mark.parametrize("key", ["another", None])
@pytest.mark.sqlite_only
def test_a_second_judgment_of_the_pair_is_refused(
    client: rest.RestClient, held: dict[str, Any], key: str | None
) -> None:
    judge(client, {"assignment": held["id"], "grade": 2}, "k")
    answer = judge(client, {"assignment": held["id"], "grade": 1}, key)
    assert (answer.status_code, answer.json()["code"]) == (409, "already_judged")
    assert Judgment.objects.get().grade == 2


@pytest.mark.parametrize("key", ["", "x" * 65, "two words", "é"])
@pytest.mark.sqlite_only
def test_keys_that_are_none(client: rest.RestClient, held: dict[str, Any], key: str) -> None:
    answer = judge(client, {"assignment": held["id"], "grade": 2}, key)
    assert (answer.status_code, answer.json()["code"]) == (400, "key_invalid")


@pytest.mark.slow
@pytest.mark.parametrize("grade", [-1, 4, 10**30, 1.5, "1", True, None, [1]])
@pytest.mark.sqlite_only
def test_grades_that_are_none(client: rest.RestClient, held: dict[str, Any], grade: Any) -> None:
    answer = judge(client, {"assignment": held["id"], "grade": grade})
    assert answer.status_code == 400
    assert [line["field"] for line in answer.json()["errors"]] == ["grade"]
    assert not Judgment.objects.exists()


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_corrections_supersede_and_keep_what_was_said(
    client: rest.RestClient, held: dict[str, Any]
) -> None:
    judge(client, {"assignment": held["id"], "grade": 2, "comment": "good"})
    url = f"{URL}{held['id']}/"
    changed = client.patch(url, {"grade": 1, "revision": 1})
    assert (changed.status_code, changed.json()["revision"]) == (200, 2)
    assert (changed.json()["grade"], changed.json()["comment"]) == (1, "good")
    assert client.patch(url, {"grade": 1, "revision": 1}).json() == changed.json()
    late = client.patch(url, {"grade": 3, "revision": 1})
    assert (late.status_code, late.json()["code"]) == (409, "superseded")
    back = judge(client, {"assignment": held["id"], "grade": 2, "revision": 2})
    assert (back.status_code, back.json()["judgment"]["revision"]) == (201, 3)
    assert client.patch(url, {"grade": 2}).status_code == 400
    assert client.patch(url, {"grade": 2, "revision": 9}).status_code == 404
    assert list(Judgment.objects.order_by("pk").values_list("grade", flat=True)) == [2, 1, 2]
    assert [row["revision"] for row in client.get(URL).json()["results"]] == [3]


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_skipping_and_putting_off_answer_with_the_next(
    client: rest.RestClient, held: dict[str, Any]
) -> None:
    base = "/api/campaigns/test/assignments/"
    later = client.post(f"{base}{held['id']}/later/").json()["assignment"]
    assert later["id"] != held["id"]
    assert client.post(f"{base}{later['id']}/skip/", {"reason": " "}).status_code == 400
    after = client.post(f"{base}{later['id']}/skip/", {"reason": "in Greek"}).json()["assignment"]
    assert after["id"] not in (held["id"], later["id"])
    again = client.post(f"{base}{later['id']}/skip/", {"reason": "in Greek"})
    assert (again.status_code, again.json()["code"]) == (409, "not_held")
    assert Assignment.objects.get(pk=later["id"]).skip_reason == "in Greek"


@pytest.mark.slow
@database
@pytest.mark.sqlite_only
def test_why_there_is_nothing_to_judge() -> None:
    made = factories.campaign()
    anna, ben = (rest.client_of(user) for user in factories.assessors(made, "anna", "ben"))

    def reason(client: rest.RestClient) -> Any:
        answer = client.post(NEXT)
        assert (answer.status_code, answer.json()["assignment"]) == (200, None)
        return answer.json()["reason"]

    assert reason(anna) == "campaign_not_open"
    Campaign.objects.update(state=Campaign.State.OPEN)
    made.refresh_from_db()
    assert reason(anna) == "nothing_drawn"
    factories.released_batch(made, ["d1"])
    both = [anna.post(NEXT).json()["assignment"] for _ in range(1)]
    both.append(ben.post(NEXT).json()["assignment"])
    answer = judge(ben, {"assignment": both[1]["id"], "grade": 0}).json()
    assert (answer["next"], answer["reason"]) == (None, "waiting_for_others")
    answer = judge(anna, {"assignment": both[0]["id"], "grade": 0}).json()
    assert (answer["next"], answer["reason"]) == (None, "batch_complete")
    campaigns.close(campaign=made, by=made.created_by)
    assert reason(anna) == "campaign_not_open"


def in_parallel(calls: list[Callable[[], Any]]) -> list[Any]:
    """The results of the calls, each made in a thread of its own, all at once."""
    barrier, results = threading.Barrier(len(calls)), [None] * len(calls)

    def run(number: int, call: Callable[[], Any]) -> None:
        try:
            barrier.wait()
            results[number] = call()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def parallel_posts(posts: list[tuple[dict[str, Any], str | None]]) -> list[Any]:
    client = assessor()
    header = client._credentials["HTTP_AUTHORIZATION"]
    held = client.post(NEXT).json()["assignment"]["id"]

    def post(body: dict[str, Any], key: str | None) -> Callable[[], Any]:
        own = rest.RestClient(raise_request_exception=False)
        own.credentials(HTTP_AUTHORIZATION=header)
        return lambda: judge(own, {"assignment": held, **body}, key)

    return in_parallel([post(body, key) for body, key in posts])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", ["k", None])
def test_fifty_at_once_are_stored_once(key: str | None) -> None:
    answers = parallel_posts([({"grade": 2}, key)] * PARALLEL)
    assert Counter(a.status_code for a in answers) == {201: 1, 200: PARALLEL - 1}
    assert {str(a.json()["judgment"]) for a in answers} == {str(answers[0].json()["judgment"])}
    assert Judgment.objects.count() == 1
    judged = Pair.objects.get(assignments__judgments__isnull=False)
    assert (judged.judged, judged.held) == (1, 1)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_different_ones_at_once_the_first_counts() -> None:
    """Other grades under the same key are 422, other keys 409; nothing is stored twice."""
    posts = [({"grade": number % 2}, "k" if number < 25 else f"k{number}") for number in range(50)]
    answers = parallel_posts(posts)
    assert Judgment.objects.count() == 1
    stored = Judgment.objects.get()
    for (body, key), answer in zip(posts, answers, strict=True):
        same = key == stored.key and body["grade"] == stored.grade
        expected = {200, 201} if same else {422} if key == stored.key else {409}
        assert answer.status_code in expected
    assert sum(answer.status_code == 201 for answer in answers) == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_correction_sent_many_times_at_once_is_made_once() -> None:
    client = assessor()
    header = client._credentials["HTTP_AUTHORIZATION"]
    held = client.post(NEXT).json()["assignment"]["id"]
    judge(client, {"assignment": held, "grade": 0})

    def correct() -> Any:
        own = rest.RestClient(raise_request_exception=False)
        own.credentials(HTTP_AUTHORIZATION=header)
        return own.patch(f"{URL}{held}/", {"revision": 1, "grade": 3})

    answers = in_parallel([correct] * 20)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert list(Judgment.objects.order_by("pk").values_list("grade", flat=True)) == [0, 3]


TOKENS = "/api/tokens/"
SIGN_IN = {"username": "anna", "password": "right one"}


@pytest.fixture
def anna(db: None) -> User:
    user: User = User.objects.create_user("anna", password="right one")
    return user


@pytest.mark.sqlite_only
def test_a_key_for_name_and_password(anna: User) -> None:
    client = rest.client_of(None)
    made = client.post(TOKENS, {**SIGN_IN, "name": "laptop"})
    assert made.status_code == 201
    assert made.json()["key"].startswith("evs_")
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.json()['key']}")
    assert client.get("/api/me/").json()["username"] == "anna"
    listed = client.get(TOKENS).json()
    assert [row["name"] for row in listed] == ["laptop"]
    assert made.json()["key"] not in str(listed)
    assert client.delete(f"{TOKENS}{listed[0]['id']}/").status_code == 204
    assert client.get("/api/me/").status_code == 401


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_wrong_passwords_are_counted(anna: User) -> None:
    client = rest.client_of(None)
    wrong = {**SIGN_IN, "password": "wrong"}
    statuses = [client.post(TOKENS, wrong).status_code for _ in range(12)]
    assert statuses == [401] * sign_in.TRIES_PER_ACCOUNT + [429] * 2
    refused = client.post(TOKENS, SIGN_IN)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) == tries.WINDOW_SECONDS
    elsewhere = client.post(TOKENS, SIGN_IN, REMOTE_ADDR="192.0.2.7")
    assert elsewhere.status_code == 201
    faked = client.post(TOKENS, SIGN_IN, headers={"X-Forwarded-For": "192.0.2.8"})
    assert faked.status_code == 429
    assert ApiToken.objects.count() == 1


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_right_password_clears_the_count(anna: User) -> None:
    client = rest.client_of(None)
    for _ in range(3):
        for _ in range(sign_in.TRIES_PER_ACCOUNT - 1):
            assert client.post(TOKENS, {**SIGN_IN, "password": "wrong"}).status_code == 401
        assert client.post(TOKENS, SIGN_IN).status_code == 201


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_tries_are_forgotten_in_time(anna: User) -> None:
    client = rest.client_of(None)
    for _ in range(sign_in.TRIES_PER_ACCOUNT + 1):
        client.post(TOKENS, {**SIGN_IN, "password": "wrong"})
    assert client.post(TOKENS, SIGN_IN).status_code == 429
    SignInTries.objects.update(since="2020-01-01T00:00:00Z")
    assert client.post(TOKENS, SIGN_IN).status_code == 201


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_tries_under_a_clock_that_was_ahead_are_forgotten_when_it_is_set_back(anna: User) -> None:
    """“Wait 15 minutes” was said, and meant a day."""
    client = rest.client_of(None)
    for _ in range(sign_in.TRIES_PER_ACCOUNT + 1):
        client.post(TOKENS, {**SIGN_IN, "password": "wrong"})
    SignInTries.objects.update(since=seconds_from_now(tries.WINDOW_SECONDS - 60))
    assert client.post(TOKENS, SIGN_IN).status_code == 429
    SignInTries.objects.update(since=seconds_from_now(86_400))
    assert client.post(TOKENS, SIGN_IN).status_code == 201
    assert not SignInTries.objects.filter(since__gt=seconds_from_now(60)).exists()


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_an_address_cannot_try_all_accounts(anna: User) -> None:
    client = rest.client_of(None)
    bodies = [{"username": f"u{n}", "password": "guess"} for n in range(101)]
    statuses = Counter(client.post(TOKENS, body).status_code for body in bodies)
    assert statuses == {401: sign_in.TRIES_PER_ADDRESS, 429: 1}


@pytest.mark.sqlite_only
def test_the_answer_does_not_tell_which_accounts_there_are(anna: User) -> None:
    client = rest.client_of(None)
    User.objects.create_user("gone", password="right one", is_active=False)
    bodies = [{"username": name, "password": "wrong"} for name in ("anna", "nobody", "gone")]
    bodies.append({"username": "gone", "password": "right one"})
    assert len({client.post(TOKENS, body).content for body in bodies}) == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_tries_at_once_count_too() -> None:
    User.objects.create_user("anna", password="right one")
    client = rest.client_of(None)
    wrong = {**SIGN_IN, "password": "wrong"}
    answers = in_parallel([lambda: client.post(TOKENS, wrong)] * 30)
    counts = Counter(answer.status_code for answer in answers)
    assert counts == {401: sign_in.TRIES_PER_ACCOUNT, 429: 30 - sign_in.TRIES_PER_ACCOUNT}

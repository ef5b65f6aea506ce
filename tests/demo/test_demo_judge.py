"""The demo's language model knows the demo, answers as an endpoint does, and errs as told."""

import http.client
import json
from collections import Counter
from urllib.parse import urlsplit

import pytest

from demo.judge import PROFILE, SEED, Grader, UnknownPairError, serving
from estimation.endpoints import Endpoint
from estimation.services.machines import calls, prompts

WIDTH = 5.0
"""Two-sided, in standard deviations of a binomial share; 16 shares are looked at."""


@pytest.fixture(scope="module")
def grader() -> Grader:
    return Grader()


def question(topic: str, document: str) -> str:
    said = prompts.messages(
        prompts.DEFAULT,
        grades=[{"name": "no"}, {"name": "yes"}],
        topic={"title": topic},
        document=document,
        chars=8000,
    )
    return said[-1]["content"]


def test_it_errs_as_its_profile_says(grader: Grader) -> None:
    found: dict[int, Counter[int]] = {grade: Counter() for grade in range(4)}
    titles = {docno: title for title, docno in grader.documents.items()}
    topics = {topic: title for title, topic in grader.topics.items()}
    useless = [(topic, docno) for topic in topics for docno in list(titles)[:20]]
    for topic, docno in [*grader.truth, *useless]:
        grade = grader.grade(question(topics[topic], f"{titles[docno]}\nwhat it does"))
        found[grader.truth.get((topic, docno), 0)][grade] += 1
    for true, given in found.items():
        number = given.total()
        assert number > 100
        for grade, p in enumerate(PROFILE.confusion[true]):
            assert abs(given[grade] / number - p) <= WIDTH * (p * (1 - p) / number) ** 0.5


def test_the_same_pair_gets_the_same_grade_whatever_stands_around_it(grader: Grader) -> None:
    title, document = next(iter(grader.topics)), next(iter(grader.documents))
    first = grader.grade(question(title, f"{document}\nAll about it."))
    again = grader.grade("Other words.\n" + question(title, f"{document}\nAnd other text."))
    assert first == again
    assert SEED == 7, "another seed is another demo"


@pytest.mark.parametrize(
    ("topic", "document"),
    [("how to cook rice", "abs(x, /)"), ("remove spaces at start and end of string", "rice")],
)
def test_what_is_not_of_the_demo_gets_no_grade(grader: Grader, topic: str, document: str) -> None:
    with pytest.raises(UnknownPairError):
        grader.grade(question(topic, document))


def test_it_answers_as_an_endpoint_does(grader: Grader) -> None:
    title, document = next(iter(grader.topics)), next(iter(grader.documents))
    asked = question(title, document)
    with serving() as url:
        endpoint = Endpoint("demo", url, (PROFILE.username,))
        assert calls.probe(endpoint) == ""
        reply = calls.ask(endpoint, {"messages": [{"role": "user", "content": asked}]})
        with pytest.raises(calls.CallFault, match="topics and documents of the demo"):
            calls.ask(endpoint, {"messages": [{"role": "user", "content": "rice?"}]})
        assert posted(url, b"[1") == 400
        assert posted(url, b"{}") == 400
    assert json.loads(reply.text)["grade"] == grader.grade(asked)
    assert reply.model == PROFILE.username


def posted(url: str, content: bytes) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    connection.request("POST", f"{parts.path}/chat/completions", body=content)
    status = connection.getresponse().status
    connection.close()
    return status

"""Names that nobody knows are answered with the nearest ones: by REST, by commands and of files."""

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from estimation.formats.collections.facts import check_fields, one_of
from judging.formats.problems import Problems
from judging.models import Membership
from tests.formats.stored_collections import STORED
from tests.support import evaluation, rest
from tests.support.site import REPO

RUNS, QRELS = REPO / "demo/collection/runs", REPO / "demo/collection/qrels.txt.gz"


@pytest.mark.slow
@pytest.mark.django_db
def test_by_rest() -> None:
    campaign = evaluation.with_material()
    organizer = campaign.memberships.get(role=Membership.Role.ORGANIZER).user
    client, base = rest.client_of(organizer), f"/api/campaigns/{campaign.slug}/"
    tag = campaign.runs.values_list("tag", flat=True)[0]

    def told(answer: Any) -> str:
        assert answer.status_code == 400
        (error,) = answer.json()["errors"]
        return str(error["message"])

    def of(**changed: Any) -> str:
        return told(client.post(f"{base}rounds/", rest.ROUND | changed, format="json"))

    assert of(method="poison").startswith("Expected one of ")
    assert of(method="poison").endswith(", not 'poison' (did you mean 'poisson'?).")
    assert of(goal="rankin").endswith("not 'rankin' (did you mean 'ranking'?).")
    assert of(prior="zzz").endswith("not 'zzz'.")
    assert of(interval="studnt").endswith("(did you mean 'student'?).")
    assert of(measure="DGC@5").endswith("(did you mean 'DCG'?)")
    assert of(goal="single", run=f"{tag}x").startswith(
        f"This goal needs a run of the campaign (did you mean '{tag}'"
    )
    assert of(mesure="P@5") == "Unknown field (did you mean 'measure'?)."
    assert told(client.get(f"{base}rounds/?pge=2")) == "Unknown field (did you mean 'page'?)."
    assert told(client.get(f"{base}rounds/?zzz=2")) == "Unknown field."


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (
            ("simulate", RUNS, QRELS, "--method", "poison"),
            "not 'poison' (did you mean 'poisson'?).",
        ),
        (("simulate", RUNS, QRELS, "--goal", "rankin"), "not 'rankin' (did you mean 'ranking'?)."),
        (("simulate", RUNS, QRELS, "--prior", "fussion"), "(did you mean 'fusion'?)."),
        (("simulate", RUNS, QRELS, "--measure", "DGC@10"), "(did you mean 'DCG'?)"),
        (("score", STORED / "poisson.zip", RUNS, "--interval", "studnt"), "mean 'student'?)"),
        (("score", STORED / "poisson.zip", RUNS, "--format", "jsn"), "mean 'json'?)"),
        (("shards", "there", RUNS, "--goal", "rankin"), "mean 'ranking'?)"),
        (("shards", "there", RUNS, "--prior", "rnk"), "mean 'rank'?)"),
        (("reproduce", "exakt"), "no table 'exakt' (did you mean 'exact'"),
    ],
)
def test_by_commands(arguments: tuple[Any, ...], meant: str) -> None:
    with pytest.raises(CommandError) as caught:
        call_command(*map(str, arguments))
    assert meant in str(caught.value)


def test_of_files() -> None:
    problems = Problems("collection.zip")
    found = {"methd": 1, "rule": "frist"}
    fields = {"rule": one_of("first", "second"), "method": one_of("iid")}
    assert not check_fields(found, fields, problems)
    told = json.dumps(problems.as_dict())
    assert "expected no such field (did you mean 'method'?)" in told
    assert "expected one of first, second, found 'frist' (did you mean 'first'?)" in told

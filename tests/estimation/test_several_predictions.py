"""Adaptive rounds learn from several predicted grades; other methods from one."""

import numpy as np
import pytest
from django.test import Client

from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.forms import RoundForm
from estimation.models import Round
from estimation.services import collections, files, rounds
from judging.errors import UserError
from judging.models import Campaign, Upload
from judging.services import uploads
from tests.support import evaluation, factories
from tests.support.choices import keys, pool_of
from tests.support.kept import Kept
from tests.support.later import report_of
from tests.support.pages import address, text
from tests.support.rest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
NAMES = ["first", "second", "third"]
ADAPTIVE = {
    "method": "adaptive",
    "reported": [],
    "extra_share": 0.0,
    "budget": 60,
    "batch_size": 20,
}


def predict(campaign: Campaign, name: str, seed: int) -> Upload:
    """A grade for two pairs of three, another one in each file."""
    grades = np.random.default_rng(seed).integers(0, 4, 10_000).tolist()
    found = keys(pool_of(campaign))
    lines = [f"{t} {d} {grades[at]}" for at, (t, d) in enumerate(found) if (at + seed) % 3]
    content = "\n".join(lines).encode()
    upload = factories.stored_upload(campaign, content, name=f"{name}.tsv", kind="predictions")
    assert upload.state == "accepted", upload.errors
    return upload


def made() -> Campaign:
    campaign = evaluation.with_material()
    for seed, name in enumerate(NAMES):
        predict(campaign, name, seed)
    return campaign


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("several predictions", made)


def plan_of(row: Round) -> AdaptivePlan:
    row.refresh_from_db()
    return AdaptivePlan.load(files.path_of(row.design_file))


@pytest.mark.slow
def test_each_is_a_column_and_what_nobody_said_is_missing(campaign: Campaign) -> None:
    row = evaluation.drawn(
        campaign, **ADAPTIVE, predictions="second", more_predictions=["first", "third"]
    )
    predicted = plan_of(row).predicted
    assert predicted is not None
    assert predicted.shape == (row.pool.pair_count, 3)
    missing = np.arange(row.pool.pair_count)[:, None] + [1, 0, 2]
    assert np.array_equal(np.isnan(predicted), missing % 3 == 0)
    assert row.predicted_by == ["second", "first", "third"]


@pytest.mark.slow
def test_estimates_report_and_collection_rest_on_all_of_them(
    campaign: Campaign, client: Client
) -> None:
    row = evaluation.drawn(
        campaign, **ADAPTIVE, prior="scores", predictions="first", more_predictions=["second"]
    )
    for _ in range(20):
        if Round.objects.get(pk=row.pk).state == "complete":
            break
        evaluation.judge(campaign, 200)
    evaluation.made_reports(row)
    said = report_of(row)
    assert "so far and from the predicted grades first and second" in said
    assert "from the predicted grades first and second; those of the first batch" in said
    row.refresh_from_db()
    sampled = collections.columns_of(row)[1].sample
    assert sampled.steps[-1].model is not None
    client.force_login(campaign.created_by)
    page = text(client.get(address("round-detail", campaign, row.number)))
    assert "first, second" in page


@pytest.mark.parametrize(
    ("given", "kept_as"),
    [
        ({"predictions": "first", "more_predictions": ["first", "second"]}, ["first", "second"]),
        ({"more_predictions": ["second", "third"]}, ["second", "third"]),
        ({"predictions": "first"}, ["first"]),
        ({"method": "poisson", "predictions": "first"}, []),
    ],
)
def test_each_name_counts_once_and_only_where_it_is_used(
    campaign: Campaign, given: dict, kept_as: list[str]
) -> None:
    assert evaluation.drafted(campaign, **ADAPTIVE | given).predicted_by == kept_as


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "poisson"}, "does not learn from more predicted grades; take none. Methods"),
        ({"more_predictions": ["second", "second"]}, "“second” is there more than once"),
    ],
)
def test_what_a_method_cannot_use_or_is_named_twice_is_refused(
    campaign: Campaign, given: dict, message: str
) -> None:
    """Both were taken in silence."""
    asked = ADAPTIVE | {"predictions": "first", "more_predictions": ["second"]} | given
    with pytest.raises(UserError, match=message) as refused:
        evaluation.drafted(campaign, **asked)
    assert refused.value.field == "more_predictions"


@pytest.mark.slow
def test_what_is_not_there_and_too_many_are_refused(campaign: Campaign) -> None:
    for names, message in ((["fourth"], "no predicted grades “fourth”"), (["x"] * 30, "“x”")):
        with pytest.raises(UserError, match=message) as refused:
            evaluation.drafted(campaign, **ADAPTIVE, predictions="first", more_predictions=names)
        assert refused.value.field == "more_predictions"
    for number in range(9):
        predict(campaign, f"another{number}", number)
    many = [f"another{number}" for number in range(9)]
    with pytest.raises(UserError, match="at most 9 further"):
        evaluation.drafted(
            campaign, **ADAPTIVE, predictions="first", more_predictions=[*many, "second"]
        )
    assert evaluation.drafted(campaign, **ADAPTIVE, predictions="first", more_predictions=many)


@pytest.mark.slow
def test_they_stay_while_a_round_names_them(campaign: Campaign) -> None:
    row = evaluation.drafted(campaign, **ADAPTIVE, predictions="first", more_predictions=["second"])
    second, third = (campaign.uploads.get(name=f"{name}.tsv") for name in ("second", "third"))
    with pytest.raises(UserError, match="names what this file brought"):
        uploads.remove(upload=second, by=campaign.created_by)
    uploads.remove(upload=third, by=campaign.created_by)
    rounds.amend(row=row, by=campaign.created_by, chosen={"more_predictions": []})
    uploads.remove(upload=second, by=campaign.created_by)
    assert list(campaign.predictions.values_list("name", flat=True)) == ["first"]


@pytest.mark.on_both
def test_a_program_names_several(campaign: Campaign) -> None:
    client = client_of(campaign.created_by)
    start = f"/api/campaigns/{campaign.slug}/rounds/"
    asked = ADAPTIVE | {"measure": "DCG@10", "predictions": "first", "seed": "s"}
    sent = client.post(start, asked | {"more_predictions": ["second"]}, format="json")
    assert sent.status_code == 201, sent.content
    assert client.get(f"{start}1/").json()["more_predictions"] == ["second"]
    changed = client.patch(f"{start}1/", {"more_predictions": []}, format="json")
    assert changed.status_code == 200, changed.content
    assert changed.json()["more_predictions"] == []
    assert changed.json()["predictions"] == "first"
    for wrong in ("second", ["x" * 300], [1.5], ["second"] * 10):
        refused = client.post(start, asked | {"more_predictions": wrong}, format="json")
        assert refused.status_code == 400, wrong


@pytest.mark.slow
def test_the_form_asks_for_several_where_there_are_several(
    campaign: Campaign, client: Client
) -> None:
    client.force_login(campaign.created_by)
    page = client.get(address("round-new", campaign))
    assert page.content.decode().count('name="more_predictions"') == 3
    assert "<legend>More predicted grades</legend>" in page.content.decode()
    form = RoundForm(campaign)
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    sent = {name: value for name, value in values.items() if value not in (None, False)}
    sent |= {"method": "adaptive", "predictions": "first", "more_predictions": NAMES[1:]}
    assert client.post(address("round-new", campaign), sent).status_code == 302
    assert Round.objects.get().predicted_by == NAMES
    detail = client.get(address("round-detail", campaign, 1)).content.decode()
    assert detail.count("checked") >= 2


@pytest.mark.slow
def test_one_is_no_question_of_several(client: Client) -> None:
    campaign = evaluation.with_material()
    predict(campaign, "first", 0)
    client.force_login(campaign.created_by)
    page = client.get(address("round-new", campaign)).content.decode()
    assert "more_predictions" not in page.split('name="shown"')[0].split("<form")[-1]
    assert 'name="more_predictions"' not in page

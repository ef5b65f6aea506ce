"""Rounds that add to what is judged, for runs that came since."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from django.db.models.functions import Now
from django.test import Client

from estimation import selectors
from estimation.core.data.scope import Scope
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.combining import RoundsTogether, part_over, union_of
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.forms import values_of
from estimation.models import Draw, EstimateSet, Round
from estimation.services import choices, estimates, redrawing, rounds
from estimation.services.collections import columns_of
from judging.errors import UserError
from judging.models import Campaign, Job, Judgment, User
from judging.services import exclusions
from tests.core.length import bounded
from tests.estimation.test_later_runs import join, with_news
from tests.estimation.test_score_command import assert_same_numbers
from tests.estimation.test_together import latest, parts_of, values
from tests.estimation.test_while_it_is_drawn import in_the_middle
from tests.support import evaluation, factories, rest
from tests.support.kept import Kept
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]

TRUTH = defaultdict(int, evaluation.SMALL.truth)
TOP_UP = {"top_up": True, "budget": 20, "batch_size": 10, "seed": "t", "extra_share": 1.0}


def judged(campaign: Campaign, **first: object) -> Round:
    """A round that is judged completely, and a run that came then."""
    chosen = {"budget": 40, "batch_size": 20, "seed": "s", "extra_share": 0.0}
    row = evaluation.drawn(campaign, **chosen | first)
    while evaluation.judge(campaign, 1000, truth=TRUTH):  # some plan batches as they go
        pass
    join(campaign, with_news("novel"), "novel.run")
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    return row


@pytest.fixture
def first(campaign: Campaign, kept: Kept) -> Round:
    return kept("judged, and a run came", lambda: judged(campaign), campaign)


def topped_up(campaign: Campaign, **chosen: object) -> Round:
    row = evaluation.drawn(campaign, **TOP_UP | chosen)
    evaluation.judge(campaign, 1000, truth=TRUTH)
    row.refresh_from_db()
    return row


def shown_of(row: Round) -> EstimateSet:
    assert row.state == Round.State.COMPLETE
    return latest(row)


# ------------------------------------------------------------------------- together with earlier


def test_together_it_fills_up_the_chances_of_the_earlier_round(
    campaign: Campaign, first: Round
) -> None:
    second = topped_up(campaign, with_earlier=True)
    (smaller, one), (pool, two) = columns_of(first), columns_of(second)
    assert isinstance(one, PairRound)
    assert isinstance(two, PairRound)
    place = Scope.of(smaller, pool)
    earlier, own = place.spread(one.design.inclusion()), two.design.inclusion()
    union = union_of([("s", earlier), ("t", own)])
    assert np.sum(union - earlier) == pytest.approx(20.0)
    touched = pool.weights(parse_measure("DCG@10")).sum(axis=1) > 0
    novel = touched & (earlier == 0)
    assert novel.any()
    assert np.all(own[novel] > 0.0)
    assert np.all(own[earlier == 1.0] == 0.0)
    seldom = touched & (earlier > 0) & (earlier < 0.5)
    ratio = np.max(union[novel]) / np.min(union[novel])
    assert ratio < np.max(own[seldom]) / np.min(own[seldom])
    shown = shown_of(second)
    assert shown.earlier == {"1": 2}
    assert second.provenance["added_to"] == "round 1 (2 batches)"


def test_together_the_numbers_are_those_of_the_union(campaign: Campaign, first: Round) -> None:
    before = Judgment.objects.filter(assignment__pair__in=first.draws.values("pair"))
    number = before.count()
    second = topped_up(campaign, with_earlier=True)
    assert set(first.draws.values_list("pair")) & set(second.draws.values_list("pair"))
    assert before.count() == number
    shown = shown_of(second)
    (smaller, _), (pool, _) = columns_of(first), columns_of(second)
    one, two = parts_of([first, second])
    over = part_over(one, pool=smaller, joined=pool, like=two.design)
    expected = evaluate(
        pool,
        RoundsTogether((over, two)),
        labels=estimates.gather(second).collection.labels,
        measures=[parse_measure("DCG@10")],
        max_grade=campaign.max_grade,
    ).results[0]
    named = zip(expected.runs, expected.estimate.value.tolist(), strict=True)
    assert values(shown) == dict(named)
    outcome = estimates.from_scratch(second)
    assert outcome is not None
    assert outcome.digest == shown.digest


def test_what_has_no_round_to_add_to_says_why(campaign: Campaign, organizer: Client) -> None:
    row = evaluation.drafted(campaign, **TOP_UP)
    assert "no batch of any round is complete" in row.preview["error"]
    evaluation.drawn(campaign, method="iid", seed="a")
    evaluation.drawn(campaign, seed="b")
    row = evaluation.drafted(campaign, **TOP_UP, with_earlier=True)
    assert "round 2: its method is Independent draws" in row.preview["error"]
    assert "round 3: no batch is complete" in row.preview["error"]
    assert "There is no round to top up" in text(
        organizer.get(address("round-detail", campaign, row.number))
    )


def test_rounds_that_learned_do_not_count_and_are_taken_for_certain(campaign: Campaign) -> None:
    judged(campaign, method="adaptive")
    row = evaluation.drafted(campaign, **TOP_UP, with_earlier=True)
    assert "its probabilities followed from judgments" in row.preview["error"]
    alone = evaluation.drafted(campaign, **TOP_UP)
    assert alone.preview["error"] is None
    assert alone.preview["top_up"]["batches"] == {"1": 2}


@pytest.mark.usefixtures("first")
def test_a_seed_of_another_round_is_refused(campaign: Campaign) -> None:
    for together in (False, True):
        row = evaluation.drafted(campaign, **TOP_UP | {"seed": "s"}, with_earlier=together)
        assert "round 1 has its seed" in row.preview["error"]


@pytest.mark.parametrize("method", ["iid", "priority", "active", "query", "per-query"])
def test_only_poisson_and_adaptive_rounds_top_up(campaign: Campaign, method: str) -> None:
    with pytest.raises(UserError, match=r"top up what is judged: “Adaptive.*”, “Poisson") as caught:
        evaluation.drafted(campaign, **TOP_UP, method=method, measure="P@5", reported=[])
    assert caught.value.field == "top_up"


# -------------------------------------------------------------------- judged pairs for certain


@pytest.mark.parametrize(
    "method", ["poisson", "active", "query", *bounded([], ["iid", "adaptive"])]
)
def test_alone_it_takes_all_judged_pairs_of_any_round(campaign: Campaign, method: str) -> None:
    measures: dict[str, object] = {"measure": "P@5", "reported": []}
    size = {"budget": 80, "batch_size": 40} if method == "query" else {}
    first = judged(campaign, method=method, **measures | size)
    before = set(first.draws.values_list("pair", flat=True))
    said = Judgment.objects.filter(assignment__pair__in=before).count()
    second = topped_up(campaign, **measures)
    draws = {each.pair_id: each for each in second.draws.all()}
    assert before <= set(draws)
    assert all(draws[pair].probability == 1.0 for pair in before)
    assert {draws[pair].batch_number for pair in before} == {1}
    new = set(draws) - before
    assert 5 < len(new) < 36
    assert Judgment.objects.filter(assignment__pair__in=before).count() == said
    each = {pair: Judgment.objects.filter(assignment__pair=pair).count() for pair in new}
    assert set(each.values()) == {2}
    shown = shown_of(second)
    assert (shown.earlier, shown.pair_count) == ({}, len(draws))
    assert shown.estimates.filter(run__tag="novel", late=False).exists()
    outcome = estimates.from_scratch(second)
    assert outcome is not None
    assert outcome.digest == shown.digest


@pytest.mark.usefixtures("first")
def test_a_round_that_took_judged_pairs_for_certain_does_not_count_later(
    campaign: Campaign,
) -> None:
    topped_up(campaign)
    row = evaluation.drafted(campaign, seed="u", with_earlier=True)
    assert row.preview["earlier"]["counting"] == [1]
    assert "its probabilities followed from draws" in row.preview["earlier"]["left_out"]["2"]
    third = topped_up(campaign, seed="v", budget=10)
    assert third.provenance["added_to"] == "round 1 (2 batches), round 2 (2 batches)"
    assert (
        shown_of(third).pair_count
        > shown_of(Round.objects.get(campaign=campaign, number=2)).pair_count
    )


def test_it_can_be_drawn_while_an_earlier_round_is_judged(campaign: Campaign) -> None:
    """With as many batches as are complete; what the others bring counts all the same."""
    first = evaluation.drawn(campaign, budget=40, batch_size=20, seed="s", extra_share=0.0)
    while not choices.complete(campaign):
        evaluation.judge(campaign, 1)
    second = evaluation.drawn(campaign, **TOP_UP, with_earlier=True)
    assert second.provenance["added_to"] == "round 1 (1 batch)"
    evaluation.judge(campaign, 1000)
    second.refresh_from_db()
    assert shown_of(second).earlier == {"1": 2}
    assert first.round_batches.count() == 2


def test_a_batch_that_is_completed_meanwhile_makes_another_design(campaign: Campaign) -> None:
    evaluation.drawn(campaign, budget=40, batch_size=20, seed="s", extra_share=0.0)
    while not choices.complete(campaign):
        evaluation.judge(campaign, 1)
    row = evaluation.drafted(campaign, **TOP_UP)
    evaluation.judge(campaign, 1000)
    with pytest.raises(UserError) as caught:
        evaluation.rounds.request_draw(
            row=row, by=campaign.created_by, design=row.preview["design"]
        )
    assert caught.value.code == "design_changed"


@pytest.mark.usefixtures("first")
def test_a_program_is_told_how_to_mend_what_exclusions_made_another_design(
    campaign: Campaign,
) -> None:
    evaluation.drafted(campaign, **TOP_UP)
    first = User.objects.filter(memberships__role="assessor").order_by("pk")[0]
    exclusions.exclude(
        campaign=campaign,
        assessor=first,
        by=campaign.created_by,
        ground="attention",
        reason="Guessed.",
    )
    while not choices.complete(campaign):
        evaluation.judge(campaign, 1, truth=TRUTH)
    assert choices.complete(campaign) == {1: 1}
    program, base = rest.client_of(campaign.created_by), f"/api/campaigns/{campaign.slug}/rounds/2/"
    old = {"design": program.get(base).json()["preview"]["design"]}
    for refused in (
        program.post(f"{base}draw/", old), program.get(f"{base}reach/", {"wanted": 0.1})
    ):  # fmt: skip
        assert refused.status_code == 409
        assert "by a PATCH of {} to the round" in refused.json()["message"]
    assert program.patch(base, {}).status_code == 200
    factories.run_due_jobs()
    new = {"design": program.get(base).json()["preview"]["design"]}
    assert program.post(f"{base}draw/", new).status_code == 202


@pytest.mark.on_both
def test_a_batch_that_is_completed_during_the_draw_has_it_begin_anew(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the round is said to add to is what its probabilities follow from."""
    evaluation.drawn(campaign, budget=40, batch_size=20, seed="s", extra_share=0.0)
    while not choices.complete(campaign):
        evaluation.judge(campaign, 1)
    row = evaluation.drafted(campaign, **TOP_UP)
    in_the_middle(monkeypatch, lambda: evaluation.judge(campaign, 1000))
    evaluation.rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    Job.objects.filter(kind="draw").update(due=Now())
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.DRAWN
    assert row.provenance["added_to"] == "round 1 (2 batches)"
    judged = set(Draw.objects.filter(round__number=1).values_list("pair", flat=True))
    chances = dict(row.draws.values_list("pair", "probability"))
    assert {chances[pair] for pair in judged} == {1.0}


@pytest.mark.parametrize("together", [False, True])
def test_costs_are_paid_for_new_pairs_alone(campaign: Campaign, together: bool) -> None:
    """Whatever the pairs of the earlier round cost, or were thought to cost."""
    judged(campaign, costs="length")
    for seed, costs in (("t", "length"), ("u", "equal")):
        row = evaluation.drafted(
            campaign, **TOP_UP | {"seed": seed}, costs=costs, with_earlier=together
        )
        key = "expected_cost" if costs == "length" else "expected_pairs"
        assert row.preview[key] == pytest.approx(20.0)


@pytest.mark.parametrize("together", [False, True])
def test_preferences_are_topped_up_as_well(campaign: Campaign, together: bool) -> None:
    """Judged pairs of documents are found again in the pool of pairs; documents are no pairs."""
    swaps = {
        "measure": "#ofSwaps", "reported": [], "prior": "constant", "depth": 4,
        "extra_share": 0.0,
    }  # fmt: skip
    documents = evaluation.drawn(campaign, seed="d", budget=10, batch_size=10)
    first = evaluation.drawn(campaign, **swaps, seed="s", budget=30, batch_size=30)
    evaluation.judge(campaign, 1000, truth=defaultdict(lambda: 1))
    join(campaign, with_news("novel"), "novel.run")
    second = evaluation.drawn(campaign, **TOP_UP | swaps, with_earlier=together)
    before = set(first.draws.values_list("pair", flat=True))
    drawn = set(second.draws.values_list("pair", flat=True))
    assert (before <= drawn) == (not together)
    assert not set(documents.draws.values_list("pair", flat=True)) & drawn
    new = second.preview["top_up"]
    assert new["pairs"] == pytest.approx(len(before), abs=0 if not together else 15)


def test_a_round_that_looked_at_another_depth_is_taken_for_certain(campaign: Campaign) -> None:
    judged(campaign, depth=5, measure="P@5", reported=[])
    row = evaluation.drafted(campaign, **TOP_UP, with_earlier=True)
    assert "it looked 5 ranks deep" in row.preview["error"]
    row = evaluation.drafted(campaign, **TOP_UP)
    assert row.preview["error"] is None


def test_when_everything_is_judged_nothing_is_left(campaign: Campaign) -> None:
    evaluation.drawn(campaign, budget=1000, batch_size=1000, extra_share=0.0)
    evaluation.judge(campaign, 10_000)
    for together in (False, True):
        row = evaluation.drafted(campaign, **TOP_UP, with_earlier=together)
        assert "judged already: nothing is left" in row.preview["error"]
    join(campaign, with_news("novel"), "novel.run")
    row = evaluation.drawn(campaign, **TOP_UP | {"budget": 500, "batch_size": 500})
    assert row.preview["is_census"]
    evaluation.judge(campaign, 1000, truth=TRUTH)
    row.refresh_from_db()
    errors = [each.se for each in shown_of(row).estimates.filter(primary=True)]
    assert max(errors) < 0.1, "but for the disagreement on pairs that were judged once"


# ------------------------------------------------------------------------------ what is shown


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.usefixtures("first")
def test_pages_say_what_it_adds_to(campaign: Campaign, organizer: Client, together: bool) -> None:
    row = evaluation.drafted(campaign, **TOP_UP, with_earlier=together)
    assert row.preview["expected_pairs"] == pytest.approx(20.0)
    assert row.preview["reached"]
    said = text(organizer.get(address("round-detail", campaign, 2)))
    assert "About 20 new pairs of" in said
    if together:
        assert "This adds to round 1 (2 batches): the chances that their pairs had" in said
        assert "from the judgments of this round alone" not in said
    else:
        assert "pairs of this pool are judged already, in round 1 (2 batches)" in said
    drawn = topped_up(campaign, seed="u", with_earlier=together)
    said = text(organizer.get(address("round-detail", campaign, 3)))
    assert "Adds toround 1 (2 batches)" in said
    report = evaluation.made_reports(drawn, "report.html")[0]
    told = estimates.files.path_of(report.file).read_text()
    assert "made to add to what was judged when it was drawn, in round 1 (2 batches)" in told
    assert ("given what had been judged" in told) == (not together)


@pytest.mark.on_both
@pytest.mark.usefixtures("first")
def test_the_preview_of_rounds_together_is_of_all_of_them(
    campaign: Campaign, organizer: Client
) -> None:
    chosen = {"budget": 20, "batch_size": 10, "seed": "t"}
    alone, together = (
        evaluation.drafted(campaign, **chosen, with_earlier=each) for each in (False, True)
    )
    one, both = (
        {line["run"]: line["half_width"] for line in row.preview["measures"][0]["half_widths"]}
        for row in (alone, together)
    )
    assert all(both[run] < one[run] for run in one)
    assert both["novel"] / one["novel"] > both["run1"] / one["run1"]
    assert together.preview["expected_pairs"] < alone.preview["expected_pairs"] == 20.0
    said = text(organizer.get(address("round-detail", campaign, together.number)))
    assert "from the judgments of this round and of what it adds to" in said
    assert "new pairs" in said
    shared = evaluation.drafted(campaign, **chosen | {"seed": "s"}, with_earlier=True)
    assert (
        shared.preview["measures"][0]["half_widths"] == alone.preview["measures"][0]["half_widths"]
    )


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.usefixtures("first")
def test_the_collection_gives_the_numbers_of_the_page(
    campaign: Campaign, tmp_path: Path, together: bool
) -> None:
    row = topped_up(campaign, with_earlier=together)
    shown_of(row)
    assert_same_numbers(row, tmp_path, later={"novel.run": with_news("novel")})


@pytest.mark.parametrize("method", ["poisson", "iid", "adaptive"])
def test_the_page_of_a_new_round_offers_it_to_runs_that_came(
    campaign: Campaign, organizer: Client, method: str
) -> None:
    page = address("round-new", campaign)
    assert "joined since" not in text(organizer.get(page))
    judged(campaign, method=method)
    said = text(organizer.get(page))
    assert "1 run joined since round 1 was drawn" in said
    assert ("Top up, together with earlier rounds" in said) == (method != "iid")
    for way, together in (("together", True), ("alone", False), ("nonsense", None)):
        form = organizer.get(f"{page}?top_up={way}").context["form"]
        chosen = [form.initial.get(name, False) for name in ("top_up", "with_earlier")]
        assert chosen == ([False, False] if together is None else [True, together])
        learns = together is not None and (method == "adaptive" or not together)
        usual = method if together is None else "poisson"
        assert form.initial["method"] == ("adaptive" if learns else usual)
    topped_up(campaign)
    assert "joined since" not in text(organizer.get(page))


@pytest.mark.usefixtures("first")
def test_a_button_that_tops_up_keeps_what_was_typed(campaign: Campaign, organizer: Client) -> None:
    page = address("round-new", campaign)
    shown = organizer.get(page).content.decode()
    assert '<button class="btn" form="new-round" name="add" value="together"' in shown
    typed = {
        "measure": "DCG@5", "budget": "37", "goal": "winner", "reported": "P@10, nonsense(",
        "labels": "2", "extra_share": "0", "prior": "rank", "method": "adaptive", "further": "1.5",
        "seed": "typed", "interval": "student", "topic_minimum": "5", "stop_when": "",
    }  # fmt: skip
    for way, together in (("together", True), ("alone", False)):
        answer = organizer.post(page, typed | {"add": way})
        assert answer.status_code == 200
        assert not Round.objects.exclude(number=1).exists(), "nothing is planned by it"
        form = answer.context["form"]
        assert not form.is_bound, "what is wrong is said when it is sent"
        kept = ("measure", "budget", "reported", "labels", "seed")
        assert {name: form[name].value() for name in kept} == {n: typed[n] for n in kept}
        chosen = [form[name].value() for name in ("method", "top_up", "with_earlier", "goal")]
        drawn_at_once = ["poisson", True, True, "ranking"]  # as the round that it adds to
        assert chosen == (drawn_at_once if together else ["adaptive", True, False, "winner"])
        sent = {name: form[name].value() for name in form.fields} | {"reported": "P@10"}
        flags = {name: "on" for name, value in sent.items() if value is True}
        rest = {name: value for name, value in sent.items() if value not in (None, True, False)}
        assert organizer.post(page, rest | flags).status_code == 302
        row = Round.objects.latest("number")
        assert (row.measure, row.budget, row.top_up, row.with_earlier) == (
            "DCG@5", 37, True, together,
        )  # fmt: skip
        rounds.discard(row=row, by=campaign.created_by)


@pytest.mark.usefixtures("first")
def test_the_next_round_is_no_top_up_by_itself(campaign: Campaign) -> None:
    row = evaluation.drafted(campaign, **TOP_UP)
    assert values_of(row, same_seed=True)["top_up"] is True
    assert values_of(row, same_seed=False)["top_up"] is False


@pytest.mark.on_both
@pytest.mark.usefixtures("first")
def test_recompute_finds_nothing_amiss(campaign: Campaign) -> None:
    for together, seed in ((False, "t"), (True, "u")):
        row = topped_up(campaign, with_earlier=together, seed=seed)
        assert redrawing.faults_of(row) == []
    assert selectors.latest_estimates(row) is not None
    assert Draw.objects.filter(round=row, probability__gt=1).count() == 0
    factories.run_due_jobs()

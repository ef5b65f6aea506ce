"""Every method and every kind of measure, from the draft to estimates that are the truth."""

import re
from itertools import product

import numpy as np
import pytest
from django.db.models import F
from django.test import Client

from estimation import selectors
from estimation.core.rounds.active.rounds import ActiveRound
from estimation.core.sampling.methods import SAMPLING_METHODS
from estimation.findings import findings
from estimation.models import Draw, Estimate, Round
from estimation.services import collections, estimates, files, rounds
from judging.errors import UserError
from judging.models import Batch, Campaign, Judgment, Pair, Upload
from judging.services import assignments, campaigns, jobs, judgments
from tests.core.length import bounded
from tests.support import factories
from tests.support.kept import Kept
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
TOPICS, DOCUMENTS = 4, 12
RUNS = {
    "forward": list(range(12)),
    "backward": list(range(11, -1, -1)),
    "odd": [*range(1, 12, 2), *range(0, 12, 2)],
}
PERSON = "ada"


def grade_of(topic: str, docno: str) -> int:
    return (int(docno[1:]) * int(topic[1:])) % 4


def preference_of(topic: str, docno: str, other: str) -> int:
    return int(np.sign(grade_of(topic, docno) - grade_of(topic, other))) + 1


def run_lines(tag: str, order: list[int]) -> bytes:
    return b"".join(
        f"t{topic} Q0 d{doc} {rank} {12 - rank} {tag}\n".encode()
        for topic in range(1, TOPICS + 1)
        for rank, doc in enumerate(order, start=1)
    )


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("runs of methods", _with_runs)


def _with_runs() -> Campaign:
    made = factories.campaign(topics=TOPICS)
    for tag, order in RUNS.items():
        factories.stored_upload(made, run_lines(tag, order), name=f"{tag}.run", kind="run")
    return made


def drafted(campaign: Campaign, **values: object) -> Round:
    plan = {"measure": "DCG@10", "budget": 24, "batch_size": 12, "seed": "s", "method": "poisson"}
    plan |= values
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=rounds.RoundPlan(**plan))
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.preview["error"] is None
    return row


def drawn(campaign: Campaign, **values: object) -> Round:
    row = drafted(campaign, **values)
    rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    campaigns.open_for_judging(campaign=campaign, by=campaign.created_by)
    row.refresh_from_db()
    assert row.state == Round.State.DRAWN
    return row


def judge_all(row: Round, *, number: int = 10_000) -> Round:
    """Judges whatever is served, truthfully, and lets the workers work."""
    (person,) = factories.assessors(row.campaign, PERSON)
    for _ in range(number):
        assignment = assignments.claim_next(campaign=row.campaign, by=person)
        if assignment is None:
            factories.run_due_jobs()
            assignment = assignments.claim_next(campaign=row.campaign, by=person)
        if assignment is None:
            break
        pair = assignment.pair
        grade = grade_of(pair.topic.topic_id, pair.docno)
        if pair.other:
            grade = preference_of(pair.topic.topic_id, pair.docno, pair.other)
        saying = judgments.Saying(grade, f"{assignment.pk}")
        judgments.record(assignment=assignment, by=person, saying=saying)
    factories.run_due_jobs()
    row.refresh_from_db()
    return row


def values(row: Round, measure: str) -> dict[str, Estimate]:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    found = shown.estimates.filter(measure=measure, primary=True).select_related("run")
    return {estimate.run.tag: estimate for estimate in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "served"),
    [
        ("adaptive", None),
        ("priority", 24),
        ("poisson", None),
        ("iid", None),
        ("per-query", None),
        ("active", 24),
    ],
)
def test_every_method_ends_with_estimates_that_can_be_recomputed(campaign, method, served) -> None:
    measure = "AP" if method == "active" else "DCG@10"
    row = judge_all(drawn(campaign, method=method, measure=measure, reported=["P@5"]))
    assert row.state == Round.State.COMPLETE
    if served is not None:
        assert Draw.objects.filter(round=row).count() == served
    shown = selectors.latest_estimates(row)
    assert shown is not None
    assert estimates.from_scratch(row).digest == shown.digest
    for each in (measure, "P@5"):
        for estimate in values(row, each).values():
            assert estimate.low <= estimate.value <= estimate.high
            assert estimate.support == 1.0


MEASURES = ["DCG@10", "AP", "nDCG@10", "Rprec", "Mean", "MAE", "Accuracy"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "measure"),
    [
        *product(["poisson"], MEASURES),
        *product(["priority"], MEASURES[1 :: bounded(3, 1)]),
        *product(["query"], MEASURES[1 : 4 : bounded(2, 1)]),
        *product(["adaptive"], bounded(["Mean"], ["DCG@10", "Mean"])),
        *bounded([], [("priority", "DCG@10"), ("query", "DCG@10")]),
    ],
)
def test_a_census_gives_the_values_that_hold(campaign: Campaign, method: str, measure: str) -> None:
    prior = "constant" if measure in ("MAE", "Accuracy") else "rank"
    row = drawn(campaign, method=method, measure=measure, prior=prior, budget=48, batch_size=48)
    row = judge_all(row)
    for tag, estimate in values(row, measure).items():
        assert estimate.value == pytest.approx(true_value(measure, RUNS[tag]), abs=1e-12)
        assert estimate.se == 0


def true_value(measure: str, order: list[int]) -> float:
    """Mean over the topics, by the textbook, ranks and scores as in the run files."""
    return float(np.mean([topic_value(measure, order, f"t{t}") for t in range(1, TOPICS + 1)]))


def topic_value(measure: str, order: list[int], topic: str) -> float:
    grades = np.array([grade_of(topic, f"d{doc}") for doc in order])
    scores = 12.0 - np.arange(1, len(order) + 1)
    relevant = (grades >= 1).astype(float)
    discount = np.where(np.arange(len(order)) < 10, 1 / np.log2(np.arange(2, len(order) + 2)), 0)
    hits, ranks = np.cumsum(relevant), np.arange(1, len(order) + 1)
    number = int(relevant.sum())
    if number == 0 and measure in ("AP", "nDCG@10", "Rprec"):
        return 0.0
    return {
        "DCG@10": grades @ discount,
        "nDCG@10": grades @ discount / max(np.sort(grades)[::-1] @ discount, 1e-9),
        "AP": (relevant * hits / ranks).sum() / max(number, 1),
        "Rprec": relevant[: max(number, 1)].mean(),
        "MAE": np.abs(scores - grades).mean(),
        "Accuracy": (scores == grades).mean(),
        "Mean": grades.mean(),
    }[measure]


@pytest.mark.slow
def test_whole_topics_serve_expected_reciprocal_rank(campaign: Campaign) -> None:
    row = drawn(
        campaign, method="query", measure="ERR@5", reported=["DCG@5"], budget=48, batch_size=48
    )
    topics = set(Pair.objects.filter(draws__round=row).values_list("topic__topic_id", flat=True))
    assert topics == {f"t{number}" for number in range(1, TOPICS + 1)}
    row = judge_all(row)
    for tag, estimate in values(row, "ERR@5").items():
        assert estimate.estimator == Estimate.Estimator.IS
        assert estimate.value == pytest.approx(reciprocal_rank(RUNS[tag]), abs=1e-12)
    assert set(values(row, "DCG@5")) == set(RUNS)


@pytest.mark.slow
def test_whole_topics_serve_ratios_without_their_bias(campaign: Campaign) -> None:
    """A drawn topic is judged whole, though the measure looks at ten ranks: it counts exactly."""
    reported = ["AP", "Rprec", "P@5"]
    asked = {"method": "query", "measure": "nDCG@10", "reported": reported, "batch_size": 24}
    row = judge_all(drawn(campaign, **asked))
    design, sample = collections.columns_of(row)[1].design, collections.columns_of(row)[1].sample
    weight = 1 / (len(sample.draws) * TOPICS * design.probability[sample.draws])
    for measure in ("nDCG@10", "AP", "Rprec"):
        for tag, estimate in values(row, measure).items():
            drawn_values = [topic_value(measure, RUNS[tag], f"t{t + 1}") for t in sample.draws]
            assert estimate.value == pytest.approx(weight @ drawn_values, abs=1e-12)


def reciprocal_rank(order: list[int]) -> float:
    found = []
    for topic in range(1, TOPICS + 1):
        total, going_on = 0.0, 1.0
        for rank, doc in enumerate(order[:5], start=1):
            g = (2 ** grade_of(f"t{topic}", f"d{doc}") - 1) / 2**3
            total, going_on = total + going_on * g / rank, going_on * (1 - g)
        found.append(total)
    return float(np.mean(found))


@pytest.mark.slow
@pytest.mark.on_both
def test_some_topics_are_judged_whole_or_not_at_all(campaign: Campaign) -> None:
    row = judge_all(drawn(campaign, method="query", measure="ERR", budget=30, batch_size=30))
    by_topic = {}
    for topic in Pair.objects.filter(draws__round=row).values_list("topic__topic_id", flat=True):
        by_topic[topic] = by_topic.get(topic, 0) + 1
    assert 0 < len(by_topic) < TOPICS
    assert set(by_topic.values()) == {DOCUMENTS}
    assert all(estimate.high > estimate.low for estimate in values(row, "ERR").values())


@pytest.mark.slow
@pytest.mark.on_both
def test_preferences_between_two_documents_give_the_swaps(campaign: Campaign) -> None:
    row = drawn(
        campaign,
        measure="#ofSwaps",
        reported=["wSwaps"],
        prior="constant",
        depth=4,
        budget=500,
        batch_size=500,
    )
    assert set(Pair.objects.filter(draws__round=row).values_list("other", flat=True)) != {""}
    row = judge_all(row)
    for tag, estimate in values(row, "#ofSwaps").items():
        assert estimate.value == pytest.approx(swaps(RUNS[tag][:4]), abs=1e-12)
    assert set(values(row, "wSwaps")) == set(RUNS)


def swaps(order: list[int]) -> float:
    found = []
    for topic in range(1, TOPICS + 1):
        grades = [grade_of(f"t{topic}", f"d{doc}") for doc in order]
        pairs = [(i, j) for i in range(len(order)) for j in range(i + 1, len(order))]
        found.append(np.mean([grades[j] > grades[i] for i, j in pairs]))
    return float(np.mean(found))


# --------------------------------------------------------------------------- active sampling


PLANNED = {
    "active": {"method": "active", "measure": "AP", "budget": 24, "batch_size": 8},
    "adaptive": {"method": "adaptive", "measure": "DCG@10", "budget": 36, "batch_size": 9},
}


def judge_first_batch(row: Round) -> Round:
    return judge_all(row, number=row.draws.count())


@pytest.mark.slow
def test_an_active_round_plans_its_next_batch_from_the_judgments(campaign: Campaign) -> None:
    row = drawn(campaign, method="active", measure="AP", budget=24, batch_size=8)
    assert row.round_batches.count() == 1
    assert Draw.objects.filter(round=row).count() == 8
    before = row.sample_file
    row = judge_all(row, number=8)
    assert row.round_batches.count() == 2
    assert row.sample_file != before
    assert row.state == Round.State.JUDGING
    second = row.round_batches.get(number=2).batch
    assert second.state in (Batch.State.WAITING, Batch.State.OPEN)
    _, stored = collections.columns_of(row)
    assert isinstance(stored, ActiveRound)
    planned = set(stored.sample.latest.tolist())
    drawn_pairs = Draw.objects.filter(round=row, batch_number=2)
    assert set(drawn_pairs.values_list("position", flat=True)) == planned
    assert judge_all(row).state == Round.State.COMPLETE
    assert Draw.objects.filter(round=row).count() == 24


def plan_again(row: Round) -> None:
    jobs.request("plan-batch", row.pk, campaign=row.campaign)
    factories.run_due_jobs()


@pytest.mark.slow
@pytest.mark.parametrize("method", PLANNED)
def test_planning_again_adds_nothing(campaign: Campaign, method: str) -> None:
    row = judge_first_batch(drawn(campaign, **PLANNED[method]))
    count = Draw.objects.filter(round=row).count()
    plan_again(row)
    row.refresh_from_db()
    assert row.round_batches.count() == 2
    assert Draw.objects.filter(round=row).count() == count


@pytest.mark.slow
@pytest.mark.parametrize("method", PLANNED)
@pytest.mark.on_both
def test_a_batch_that_was_cut_off_is_planned_anew_with_the_same_pairs(
    campaign: Campaign, method: str
) -> None:
    row = judge_first_batch(drawn(campaign, **PLANNED[method]))
    first = set(Draw.objects.filter(round=row, batch_number=2).values_list("position", flat=True))
    link = row.round_batches.get(number=2)
    pool, stored = collections.columns_of(row)
    shorter = stored.prefix(pool, 1)
    row.sample_file = files.keep_written("samples", shorter.sample.save)
    row.save(update_fields=["sample_file"])
    Batch.objects.filter(pk=link.batch_id).update(state=Batch.State.PREPARING)
    plan_again(row)
    again = Draw.objects.filter(round=row, batch_number=2)
    assert set(again.values_list("position", flat=True)) == first
    assert row.round_batches.count() == 2


# ------------------------------------------------------------------------- predicted grades


@pytest.mark.slow
def test_predicted_grades_serve_as_prior_and_as_grade_model(campaign: Campaign) -> None:
    lines = [
        f"t{topic} d{doc} {grade_of(f't{topic}', f'd{doc}')}\n"
        for topic in range(1, TOPICS + 1)
        for doc in range(DOCUMENTS)
    ]
    factories.stored_upload(
        campaign, "".join(lines).encode(), name="judge.tsv", kind=Upload.Kind.PREDICTIONS
    )
    by_rank = drafted(campaign, measure="DCG@10")
    helped = drafted(campaign, measure="DCG@10", prior="scores", predictions="judge")
    assert helped.predictions.name == "judge"
    assert helped.preview["measures"][0] != by_rank.preview["measures"][0]
    whole = drafted(campaign, method="query", measure="ERR@5", predictions="judge", budget=30,
                    batch_size=30)  # fmt: skip
    assert whole.predictions.name == "judge"
    assert drafted(campaign, predictions="judge").predictions is None


# ------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("sizes", "what"),
    [({"budget": 48, "batch_size": 2}, "batch size"),
     ({"budget": 2, "batch_size": 2}, "budget, and a batch size,")],
)  # fmt: skip
def test_what_whole_topics_cost_is_said_in_words_of_the_form(
    campaign: Campaign, sizes: dict, what: str
) -> None:
    """It said "batch size (batch_budget)", a name that nobody can set."""
    asked = {"method": "query", "measure": "DCG@5"}
    plan = rounds.RoundPlan(**asked | sizes)
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan)
    factories.run_due_jobs()
    row.refresh_from_db()
    said = re.fullmatch(
        rf"Expected a {what} of (\d+) at least: of whole topics every batch must pay for the two "
        r"that cost most, “t\d+” and “t\d+”\.", row.preview["error"]
    )  # fmt: skip
    assert said is not None, row.preview["error"]
    drafted(campaign, **asked, budget=48, batch_size=int(said[1]))  # has no error


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        ({"measure": "ERR@5"}, "measure", "Poisson.*estimates P, DCG.*not ERR@5"),
        ({"measure": "MAE", "method": "query"}, "measure", "Whole topics.*not MAE"),
        ({"measure": "nDCG@5", "method": "active"}, "measure",
         r"Active.*not nDCG@5\. Methods that do: “Adaptive[^.]*topics[^.]*”\.$"),
        ({"measure": "MAE"}, "prior", "needs the constant prior"),
        ({"measure": "DCG@5", "reported": ["#ofSwaps"], "prior": "constant"}, "reported",
         "a round of their own"),
        ({"prior": "scores"}, "predictions", "needs predicted grades"),
        ({"prior": "scores", "predictions": "none"}, "predictions", "no predicted grades"),
        ({"depth": 101}, "depth", "1 to 100"),
        ({"method": "magic"}, "method", f"one of {', '.join(SAMPLING_METHODS)}"),
    ],
)  # fmt: skip
def test_rounds_that_cannot_be_are_refused_with_the_field(campaign, values, field, message) -> None:
    plan = rounds.RoundPlan(
        **{"measure": "DCG@10", "budget": 24, "batch_size": 12, "method": "poisson"} | values
    )
    with pytest.raises(UserError, match=message) as caught:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan)
    assert caught.value.field == field
    assert not Round.objects.exists()


@pytest.mark.slow
def test_nothing_is_judged_twice_across_methods(campaign: Campaign) -> None:
    """Pairs that an earlier round had judged keep their judgments in a later one."""
    judge_all(drawn(campaign, method="poisson", budget=48, batch_size=48))
    count = Judgment.objects.count()
    plan = rounds.RoundPlan(measure="AP", method="active", budget=12, batch_size=12, seed="t")
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan)
    factories.run_due_jobs()
    rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    row = judge_all(row)
    assert Judgment.objects.count() == count
    assert row.state == Round.State.COMPLETE


@pytest.mark.slow
def test_the_smallest_error_leads(campaign: Campaign) -> None:
    row = judge_all(drawn(campaign, measure="MAE", prior="constant", budget=48, batch_size=48))
    table = selectors.ranking_table(row)
    assert table is not None
    shown = [line.value for line in table.rows]
    assert shown == sorted(shown)
    assert shown[0] < shown[-1]


@pytest.mark.slow
def test_a_ratio_that_the_sample_reaches_in_part_is_no_lower_bound(campaign: Campaign) -> None:
    row = judge_all(drawn(campaign, measure="AP", reported=["P@5"], budget=48, batch_size=48))
    shown = row.estimate_sets.get()
    shown.estimates.filter(run__tag="odd").update(support=0.7)
    page = Client()
    page.force_login(campaign.created_by)
    said = {
        measure: text(page.get(address("live", campaign, row.number), {"measure": measure}))
        for measure in ("AP", "P@5")
    }
    assert (said["AP"].count("~"), said["AP"].count("≥")) == (1, 0)
    assert (said["P@5"].count("~"), said["P@5"].count("≥")) == (0, 1)
    assert "Its value takes the rest for not relevant" in said["AP"]


@pytest.mark.slow
def test_what_is_taken_off_ratios_is_stored_and_told(campaign: Campaign, client: Client) -> None:
    row = judge_all(drawn(campaign, measure="AP", reported=["P@5"], budget=30, batch_size=30))
    table = selectors.ranking_table(row)
    assert table is not None
    assert table.pairs is not None
    inputs = estimates.gather(row)
    by_ap, by_p = estimates.compute(row, inputs).evaluation.results
    known = by_ap.estimate.unknown == 0
    assert by_p.ratio_bias is None
    assert known.any()
    assert by_ap.ratio_bias is not None
    taken = pytest.approx(by_ap.ratio_bias[known].mean())
    assert table.estimate_set.ratio_bias == {"AP": taken}
    assert any("free of bias" in each.text for each in findings(table, table.pairs))
    client.force_login(campaign.created_by)
    shown = client.get(address("api-estimates", campaign)).json()
    assert shown["estimate_set"]["ratio_bias"] == {"AP": taken}


@pytest.mark.slow
def test_few_relevant_documents_are_said_to_be_few(campaign: Campaign) -> None:
    row = judge_all(drawn(campaign, measure="AP", reported=["P@5"], budget=48, batch_size=48))
    table, pairs = selectors.ranking_table(row), selectors.pairwise
    assert table is not None
    assert table.estimate_set.relevant_found == 7.5
    texts = [each.text for each in findings(table, pairs(table.estimate_set, "AP"))]
    assert not any("relevant documents found" in said for said in texts), "nothing is left to find"
    table.estimate_set.estimates.filter(measure="AP").update(high=F("value") + 0.1)
    table = selectors.ranking_table(row)
    assert table is not None
    texts = [each.text for each in findings(table, pairs(table.estimate_set, "AP"))]
    assert any("7.5 relevant documents found per topic" in said for said in texts)
    other = selectors.ranking_table(row, "P@5")
    assert other is not None
    texts = [each.text for each in findings(other, pairs(other.estimate_set, "P@5"))]
    assert not any("relevant documents found" in said for said in texts)

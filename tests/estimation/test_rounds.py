"""From a draft to estimates and reports, through the services and the real jobs."""

import csv
import io
import json
from collections.abc import Callable

import numpy as np
import pytest
from django.db import IntegrityError, transaction

from estimation import comparisons, selectors
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.inference.looks import Look
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.designs import Design
from estimation.core.sampling.samples import Sample
from estimation.models import Draw, Estimate, EstimateSet, Report, Round, RoundBatch
from estimation.services import drawing, estimates, files, reports, rounds
from estimation.services.report_files.table import REPORTS
from judging.errors import UserError
from judging.models import Batch, BatchPair, Campaign, Job, Judgment, Pair, User
from judging.services import batches, campaigns, decisions, jobs, judgments
from tests.support import factories
from tests.support.kept import Kept

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
GRADES = {f"d{n}": n % 4 for n in range(12)}
ZIP = "collection.zip"


def run_lines(tag: str, order: list[int], topics: int = 3) -> bytes:
    lines = [
        f"t{topic} Q0 d{doc} {rank} {100 - rank} {tag}"
        for topic in range(1, topics + 1)
        for rank, doc in enumerate(order, start=1)
    ]
    return "\n".join(lines).encode() + b"\n"


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("runs of rounds", _with_runs)


def _with_runs() -> Campaign:
    made = factories.campaign(topics=3)
    for tag, order in {
        "forward": list(range(12)),
        "backward": list(range(11, -1, -1)),
        "odd": [*range(1, 12, 2), *range(0, 12, 2)],
    }.items():
        factories.stored_upload(made, run_lines(tag, order), name=f"{tag}.run", kind="run")
    return made


def plan(**values: object) -> rounds.RoundPlan:
    return rounds.RoundPlan(
        **{"measure": "DCG@10", "budget": 18, "batch_size": 6, "seed": "s", "method": "poisson"}
        | values
    )


def drawn(campaign: Campaign, **values: object) -> Round:
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan(**values))
    rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    campaigns.open_for_judging(campaign=campaign, by=campaign.created_by)
    return row


def judge_batches(campaign: Campaign, people: list[User], number: int) -> None:
    """Judges, whoever is next, until so many batches are complete."""
    complete = Batch.objects.filter(campaign=campaign, state=Batch.State.COMPLETE)
    for turn in range(10_000):
        if complete.count() >= number:
            return
        person = people[turn % len(people)]
        judge(campaign, person)
    raise AssertionError("the batches do not end")


def judge(campaign: Campaign, person: User) -> None:
    from judging.services import assignments

    assignment = assignments.claim_next(campaign=campaign, by=person)
    if assignment is not None:
        grade = (GRADES[assignment.pair.docno] + len(person.username)) % 4
        saying = judgments.Saying(grade, f"{assignment.pk}")
        judgments.record(assignment=assignment, by=person, saying=saying)


@pytest.mark.slow
def test_a_draft_is_previewed_and_can_be_changed(campaign: Campaign) -> None:
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan())
    factories.run_due_jobs()
    row.refresh_from_db()

    assert row.preview["error"] is None
    assert row.preview["pool_pairs"] == 36
    assert row.preview["expected_pairs"] == pytest.approx(18)
    assert [each["run"] for each in row.preview["measures"][0]["half_widths"]] == [
        "backward",
        "forward",
        "odd",
    ]
    widths = [point["half_width"] for point in row.preview["curve"]]
    assert widths == sorted(widths, reverse=True)
    before = row.preview["measures"][0]["half_widths"][0]["half_width"]

    rounds.change(row=row, by=campaign.created_by, plan=plan(budget=30))
    assert row.preview == {}
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.preview["measures"][0]["half_widths"][0]["half_width"] < before
    assert not row.preview["is_census"]
    assert not Draw.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "priority", "query"])
def test_a_budget_above_the_pool_buys_the_pool_and_says_so(campaign: Campaign, method: str) -> None:
    wanted = plan(method=method, budget=10_000_000, batch_size=10_000_000)
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=wanted)
    factories.run_due_jobs()
    row.refresh_from_db()

    assert row.preview["error"] is None
    assert row.preview["is_census"]
    assert row.preview["expected_pairs"] == row.preview["eligible_pairs"] == 36
    assert row.preview["batches"] == 1


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"measure": "Fancy@10"}, "measure"),
        ({"reported": ["P@0"]}, "reported"),
        ({"budget": 0}, "budget"),
        ({"batch_size": 19}, "batch_size"),
        ({"labels": 0}, "labels"),
        ({"extra_share": 1.5}, "extra_share"),
        ({"eps": float("nan")}, "eps"),
        ({"goal": "world peace"}, "goal"),
        ({"goal": "single"}, "run"),
        ({"goal": "baseline", "baseline": "nobody"}, "baseline"),
        ({"goal": "pair", "run": "odd", "baseline": "odd"}, "baseline"),
        ({"seed": "a\x00b"}, "seed"),
    ],
)
def test_a_bad_plan_names_its_field(
    campaign: Campaign, values: dict[str, object], field: str
) -> None:
    with pytest.raises(UserError) as refused:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan(**values))

    assert refused.value.field == field
    assert not Round.objects.exists()


@pytest.mark.slow
def test_a_goal_that_leaves_nothing_to_sample_says_so() -> None:
    made = factories.campaign(topics=1)
    for tag in ("a", "b"):
        factories.stored_upload(made, run_lines(tag, [0, 1], 1), name=tag, kind="run")
    same = plan(goal="pair", run="a", baseline="b", budget=2, batch_size=2)
    row = rounds.draft(campaign=made, by=made.created_by, plan=same)
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()

    assert row.preview["error"]
    assert row.state == Round.State.DRAFTED
    job = Job.objects.get(kind="draw")
    assert (job.state, job.error) == (Job.State.FAILED, row.preview["error"])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_the_draw_is_what_the_core_draws_and_all_of_it_waits(
    campaign: Campaign, method: str
) -> None:
    row = drawn(campaign, method=method)

    pool = Pool.load(files.path_of(row.pool.file))
    design = Design.load(files.path_of(row.design_file))
    sample = Sample.load(files.path_of(row.sample_file))
    assert row.state == Round.State.DRAWN
    stored = Draw.objects.order_by("position").values_list(
        "position", "batch_number", "probability", "pair__topic__topic_id", "pair__docno"
    )
    expected = [
        (p, b, pi, pool.topics[pool.topic[p]], pool.docno[p].decode())
        for p, b, pi in zip(
            sample.pair.tolist(), sample.batch.tolist(), sample.probability.tolist(), strict=True
        )
    ]
    assert list(stored) == expected
    assert RoundBatch.objects.count() == design.batches == 3
    assert set(Batch.objects.values_list("state", flat=True)) == {Batch.State.WAITING}
    for link in RoundBatch.objects.all():
        served = BatchPair.objects.filter(batch=link.batch).values_list("pair", flat=True)
        entering = Draw.objects.filter(batch_number=link.number).values_list("pair", flat=True)
        assert sorted(served) == sorted(entering)
    if method == "iid":
        counts = np.bincount(sample.draws, minlength=len(pool))
        assert [d.count for d in Draw.objects.order_by("position")] == counts[sample.pair].tolist()


@pytest.mark.slow
def test_a_drawn_round_is_frozen(campaign: Campaign) -> None:
    row = drawn(campaign)
    by = campaign.created_by

    for attempt in (
        lambda: rounds.change(row=row, by=by, plan=plan()),
        lambda: rounds.request_draw(row=row, by=by),
        lambda: rounds.discard(row=row, by=by),
    ):
        with pytest.raises(UserError) as refused:
            attempt()
        assert refused.value.code == "frozen"


@pytest.mark.slow
def test_a_draw_that_was_cut_off_is_done_again_from_nothing(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan())
    factories.run_due_jobs()

    def cut_off(*_args: object) -> None:
        raise jobs.LeaseLost("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(drawing, "_freeze", cut_off)
        rounds.request_draw(row=row, by=campaign.created_by)
        job = Job.objects.get(kind="draw")
        jobs.run(job.pk)
    assert Draw.objects.exists()
    assert set(Batch.objects.values_list("state", flat=True)) == {Batch.State.PREPARING}
    Job.objects.filter(pk=job.pk).update(lease_until=job.created)
    factories.run_due_jobs()

    row.refresh_from_db()
    assert row.state == Round.State.DRAWN
    assert Batch.objects.count() == 3
    sample = Sample.load(files.path_of(row.sample_file))
    assert Draw.objects.count() == len(sample) == BatchPair.objects.count()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid"])
def test_estimates_after_each_batch_are_those_of_the_core_bit_for_bit(
    campaign: Campaign, method: str
) -> None:
    row = drawn(campaign, method=method, labels=2, extra_share=0.5, reported=["P@5"])
    people = factories.assessors(campaign, "a", "bb", "ccc")

    for number in (1, 2, 3):
        judge_batches(campaign, people, number)
        factories.run_due_jobs()
        shown = selectors.latest_estimates(row)
        assert shown is not None
        assert shown.batches == number
        assert_equal_to_core(row, shown)

    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    assert Pair.objects.filter(judged__gt=3).count() == 0
    assert {2, 3} == set(Pair.objects.values_list("wanted", flat=True))


def assert_equal_to_core(row: Round, shown: EstimateSet) -> None:
    pool = Pool.load(files.path_of(row.pool.file))
    positions = dict(Draw.objects.values_list("pair_id", "position"))
    judged = Judgment.objects.filter(
        assignment__pair__draws__batch_number__lte=shown.batches
    ).values_list("assignment__pair", "grade")
    labels = [(positions[pair], grade) for pair, grade in judged]
    evaluation = evaluate(
        pool,
        PairRound(
            Design.load(files.path_of(row.design_file)), Sample.load(files.path_of(row.sample_file))
        ),
        labels=LabelRows(np.array([p for p, _ in labels]), np.array([g for _, g in labels])),
        measures=[parse_measure(text) for text in ("DCG@10", "P@5")],
        max_grade=3,
        batches=shown.batches,
        look=Look(shown.batches, 3) if shown.batches < 3 else None,
    )
    for result in evaluation.results:
        for name, estimator in result.estimators.items():
            rows = Estimate.objects.filter(
                estimate_set=shown, measure=str(result.measure), estimator=name
            ).order_by("run__tag")
            assert [e.value.hex() for e in rows] == [v.hex() for v in estimator.value.tolist()]
            assert [e.low.hex() for e in rows] == [v.hex() for v in estimator.low.tolist()]
            assert [e.high.hex() for e in rows] == [v.hex() for v in estimator.high.tolist()]
        pairs = selectors.pairwise(shown, str(result.measure))
        assert np.array_equal(pairs.covariance, result.estimate.covariance)
        assert np.array_equal(pairs.verdicts, result.ranking.verdicts)


@pytest.mark.slow
def test_batches_that_complete_out_of_order_wait_for_the_prefix(campaign: Campaign) -> None:
    row = drawn(campaign, budget=36, batch_size=12)
    while batches.open_next(campaign.pk):
        pass
    links = {link.number: link.batch for link in RoundBatch.objects.all()}

    def close(number: int) -> None:
        for link in BatchPair.objects.filter(batch=links[number]).select_related("pair"):
            decisions.decide(pair=link.pair, by=campaign.created_by, grade=1, reason="test")
        factories.run_due_jobs()

    close(2)
    assert selectors.latest_estimates(row) is None
    close(1)
    shown = selectors.latest_estimates(row)
    assert shown is not None
    assert (shown.batches, shown.decided_count) == (2, shown.pair_count)


@pytest.mark.slow
def test_a_recompute_is_idempotent_and_a_correction_makes_a_new_one(campaign: Campaign) -> None:
    row = drawn(campaign)
    (anna,) = factories.assessors(campaign, "anna")
    judge_batches(campaign, [anna], 1)
    factories.run_due_jobs()
    jobs.request("recompute", row.pk)
    factories.run_due_jobs()
    assert row.estimate_sets.count() == 1

    judgment = Judgment.objects.order_by("pk").first()
    assert judgment is not None
    judgments.correct(
        assignment=judgment.assignment,
        by=anna,
        saying=judgments.Saying((judgment.grade + 1) % 4, "corrected"),
        revision=1,
    )
    factories.run_due_jobs()

    first, second = row.estimate_sets.all()
    assert (first.batches, second.batches) == (1, 1)
    assert first.label_digest != second.label_digest
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    assert outcome.digest == second.digest


@pytest.mark.slow
@pytest.mark.on_both
def test_the_ranking_table_is_in_order_and_knows_who_cannot_be_told_from_the_leader(
    campaign: Campaign,
) -> None:
    row = drawn(campaign, budget=36, batch_size=36)
    for _ in range(40):
        batches.open_next(campaign.pk)
    for pair in Pair.objects.all():
        grade = GRADES[pair.docno]
        decisions.decide(pair=pair, by=campaign.created_by, grade=grade, reason="truth")
    factories.run_due_jobs()

    table = selectors.ranking_table(row)

    assert table is not None
    values = [each.value for each in table.rows]
    assert values == sorted(values, reverse=True)
    assert [each.rank for each in table.rows] == [1, 2, 3]
    assert [each.as_good_as_leader for each in table.rows] == [True, False, False]
    assert all(each.low == each.value == each.high for each in table.rows)
    comparison = comparisons.compare(table, table.rows[0].tag, table.rows[2].tag)
    assert comparison is not None
    assert comparison.verdict == 1
    assert selectors.ranking_table(row, "P@10") is None
    assert comparisons.compare(table, "forward", "nobody") is None


@pytest.mark.slow
def test_reports_are_made_once_and_agree_with_the_rows(campaign: Campaign) -> None:
    row = drawn(campaign, labels=2)
    by = campaign.created_by
    with pytest.raises(UserError) as early:
        reports.request(row=row, by=by)
    assert early.value.code == "nothing_to_report"
    people = factories.assessors(campaign, "a", "bb")
    judge_batches(campaign, people, 3)
    factories.run_due_jobs()
    for _ in range(2):
        reports.request(row=row, by=by)
        factories.run_due_jobs()

    assert {report.name for report in Report.objects.all()} == set(REPORTS)
    written = Report.objects.filter(refused="")
    found = {report.name: files.path_of(report.file) for report in written}
    texts = ("csv", "json", "html", "txt", "tex")
    made = {name: path.read_text() for name, path in found.items() if name.endswith(texts)}
    table = list(csv.DictReader(io.StringIO(made["estimates.csv"])))
    stored = {
        (e.run.tag, e.measure, e.estimator): e
        for e in Estimate.objects.filter(estimate_set=selectors.latest_estimates(row))
    }
    assert len(table) == len(stored)
    for line in table:
        estimate = stored[line["run"], line["measure"], line["estimator"]]
        assert float(line["value"]).hex() == estimate.value.hex()
    document = json.loads(made["estimates.json"])
    assert document["design"]["seed"] == "s"
    assert document["digest"] == selectors.latest_estimates(row).digest  # type: ignore[union-attr]
    lines = list(csv.DictReader(io.StringIO(made["judgments.csv"])))
    assert len(lines) == Judgment.objects.count()
    assert {float(line["probability"]) for line in lines} <= set(
        Draw.objects.values_list("probability", flat=True)
    )
    assert len(made["qrels.txt"].splitlines()) == Draw.objects.count()
    for tag in ("forward", "backward", "odd"):
        assert tag in made["report.html"]
    assert "<script" not in made["report.html"]


def rejected(change: Callable[[], object]) -> bool:
    try:
        with transaction.atomic():
            change()
    except IntegrityError:
        return True
    return False


@pytest.mark.slow
@pytest.mark.on_both
def test_the_database_holds_the_invariants_of_draws_and_rounds(campaign: Campaign) -> None:
    row = drawn(campaign)
    draws, drawn_rounds = Draw.objects.filter(round=row), Round.objects.filter(pk=row.pk)

    assert rejected(lambda: draws.update(probability=0.0))
    assert rejected(lambda: draws.update(probability=1.0001))
    assert rejected(lambda: draws.update(count=0))
    assert rejected(lambda: drawn_rounds.update(pool=None))
    assert rejected(lambda: drawn_rounds.update(budget=0))
    assert not rejected(lambda: draws.update(probability=1.0))

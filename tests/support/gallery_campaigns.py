"""Campaigns in the states that pages of the gallery show."""

import io
from collections import defaultdict
from decimal import Decimal
from functools import cache
from typing import Any

from django.core.files.base import File

from estimation.models import Round
from estimation.services import extending, pausing, replacing, reports, withdrawals
from judging.models import Campaign, CrowdLink, Job, Membership, Pair, User
from judging.queue import APART, queue
from judging.services import (
    assignments,
    campaigns,
    crowd_links,
    described,
    entering,
    exclusions,
    gold,
    jobs,
    judgments,
    members,
    quality,
    seniors,
    uploads,
)
from tests.support import choices, evaluation, factories, later
from tests.support.material import Material, small_material

ERROR = "OperationalError: the connection to the database was lost while the estimates were written"
SWAPS = {
    "measure": "#ofSwaps", "reported": ["wSwaps"], "prior": "constant", "depth": 4,
    "extra_share": 0.0, "budget": 40, "batch_size": 20,
}  # fmt: skip
ERRORS = {
    "measure": "MSE", "reported": ["MAE", "Accuracy"], "prior": "constant", "depth": 6,
    "method": "adaptive", "extra_share": 0.0, "budget": 60, "batch_size": 15,
}  # fmt: skip
NAMES = ("READWARE", "iit99ma", "fub99", "bm25-rm3-tuned-on-2019.v", "mds08a", "dense_ce_")

WORDS = ("Not relevant", "Related", "Partly relevant", "Highly relevant", "Perfectly relevant")
FIVE = [
    {"name": name, "meaning": f"{name}: what the guidelines call so, seen from the topic alone."}
    for name in WORDS
]
YES_NO = [{"name": "Not relevant", "meaning": ""}, {"name": "Relevant", "meaning": "Of use."}]
MANY = [{"name": f"{5 * number} of 100", "meaning": ""} for number in range(21)]


def organized(made: Campaign) -> Campaign:
    role = Membership.Role.ORGANIZER
    members.add(campaign=made, by=made.created_by, username="organizer", role=role)
    return made


def with_material(slug: str, material: Material = evaluation.SMALL) -> Campaign:
    return organized(evaluation.with_material(material=material, slug=slug))


def unjudged() -> Campaign:
    made = with_material("unjudged")
    evaluation.drawn(made)
    return made


def active() -> Campaign:
    """Half judged, with comments, skipped pairs, reports, and a label more for some pairs."""
    made = with_material("active")
    row = evaluation.drawn(made, budget=80, batch_size=20)
    evaluation.judge(made, 60)
    for name in ("anna", "ben"):
        by = User.objects.get(username=name)
        for _ in range(2):
            if held := assignments.claim_next(campaign=made, by=by):
                assignments.skip(assignment=held, by=by, reason="The text breaks off in the middle")
    commented(made)
    reports.request(row=row, by=made.created_by)
    factories.run_due_jobs()
    return made


def crowded(slug: str = "crowded", labels: int = 3) -> Campaign:
    """Four people and some labels a pair: one is severe, one too fast and answers in turn."""
    made = with_material(slug)
    evaluation.drawn(made, labels=labels, extra_share=0.0, budget=60, batch_size=20)
    made.refresh_from_db()
    people = [*factories.assessors(made, "severe", "swift"), *_assessors(made)]
    idle = given = 0
    while idle < len(people):
        by = people[given % len(people)]
        held, given = assignments.claim_next(campaign=made, by=by), given + 1
        idle = 0 if held else idle + 1
        if held:
            true = evaluation.SMALL.truth[held.pair.topic.topic_id, held.pair.docno]
            grade = {"severe": max(0, true - 1), "swift": 3 * (given // len(people) % 2)}
            said = grade.get(by.username, min(3, true + (held.pk % 5 == 0)))
            took = 0.4 if by.username == "swift" else 9.0 + held.pk % 7
            saying = judgments.Saying(grade=said, key=f"crowd-{held.pk}", seconds=took)
            judgments.record(assignment=held, by=by, saying=saying)
    factories.run_due_jobs()
    return made


def excluded() -> Campaign:
    """Two of them are excluded, on two grounds, and the others have judged in their place."""
    made = crowded("excluded", labels=2)
    for name, ground, reason in (
        ("swift", "time", "Half a second each."), ("severe", "grades", "One below everybody."),
    ):  # fmt: skip
        who = User.objects.get(username=name)
        exclusions.exclude(
            campaign=made, assessor=who, by=made.created_by, ground=ground, reason=reason
        )
    evaluation.judge(made, 1000)
    return made


def golden() -> Campaign:
    """Two people and gold: one knows the grades, one answers in turn, and waits to be looked at."""
    made = with_material("golden")
    evaluation.drawn(made, labels=2, extra_share=0.0, budget=90, batch_size=30)
    made.refresh_from_db()
    drawn = set(made.pairs.values_list("topic__topic_id", "docno"))
    known = [pair for pair in sorted(evaluation.SMALL.truth) if pair not in drawn][:60]
    rows = [
        f"{topic},{docno},{evaluation.SMALL.truth[topic, docno]},Beyond doubt."
        for topic, docno in known
    ]
    found, problems = gold.read(made, "\n".join(["topic,docno,grade,reason", *rows]), "gold.csv")
    added = gold.add(campaign=made, by=made.created_by, found=found, problems=problems)
    gold.retire(gold=added[0], by=made.created_by)
    gold.mix(campaign=made, by=made.created_by, every=3)
    for by in _assessors(made):
        while held := assignments.claim_next(campaign=made, by=by):
            true = evaluation.SMALL.truth[held.pair.topic.topic_id, held.pair.docno]
            grade = held.pk % 4 if by.username == "ben" else true
            saying = judgments.Saying(grade=grade, key=f"golden-{held.pk}", seconds=8.0)
            judgments.record(assignment=held, by=by, saying=saying)
    quality.set_rules(campaign=made, by=made.created_by, plan=quality.RulesPlan(hold_below=0.5))
    factories.run_due_jobs()
    return made


def settled(made: Campaign) -> int:
    """A pair on which people disagree, after two senior grades, one of which is in force."""
    pair = Pair.objects.select_related("campaign").get(pk=queue(made).of(APART)[-1].pair)
    for grade, reason in ((2, "The abstract says it."), (1, "The text takes it back.")):
        seniors.give(pair=pair, by=made.created_by, grade=grade, reason=reason)
    factories.run_due_jobs()
    return pair.pk


def _assessors(made: Campaign) -> list[User]:
    return list(User.objects.filter(username__in=["anna", "ben"]).order_by("username"))


def adaptive() -> Campaign:
    """A round that is planned as it goes and keeps to hours, half judged, and a draft that learns
    from predictions."""
    made = with_material("adaptive")
    asked = {"method": "adaptive", "extra_share": 0.0, "keeps_hours": True}
    row = evaluation.drawn(made, **asked, budget=80, batch_size=20)
    for _ in range(2):
        evaluation.judge(made, row.draws.count())
    for name in ("judge a", "judge b", "judge c"):
        choices.grades(made, f"{name}.tsv")
    evaluation.drafted(made, **asked, predictions="judge a", more_predictions=["judge b"])
    return made


def predicted() -> Campaign:
    """Predicted grades of all pairs, and probabilities of grades of one topic."""
    made = with_material("predicted")
    choices.grades(made, "judge.tsv")
    lines = [f"t1 d{n} 0.{9 - n} 0.{n} 0 0" for n in range(1, 9)]
    content = "\n".join(lines).encode()
    factories.stored_upload(made, content, name="a model.tsv", kind="predictions")
    evaluation.drafted(made, method="adaptive", extra_share=0.0, predictions="judge")
    return made


def race() -> Campaign:
    """A round that looks for the best run, most of it judged, and a draft of another one."""
    made = with_material("race")
    asked = {"method": "adaptive", "goal": "winner", "extra_share": 0.0}
    row = evaluation.drawn(made, **asked, budget=120, batch_size=15)
    for _ in range(4):
        evaluation.judge(made, row.draws.count())
    evaluation.drafted(made, **asked)
    return made


def joined() -> Campaign:
    """A run came after a round was judged, and one of the others was withdrawn."""
    made = with_material("joined")
    evaluation.drawn(made, extra_share=0.0)
    evaluation.judge(made, 1000)
    later.join(made, later.with_news("novel"), "novel.run")
    withdrawals.withdraw(run=made.runs.get(tag="run2"), by=made.created_by)
    factories.run_due_jobs()
    return made


def replaced() -> Campaign:
    """A run was replaced after a round was judged, and another one has a new version that waits.

    All that people can say of a run is said of one; files came at once, some of them bad.
    """
    made = with_material("replaced")
    by = made.created_by
    evaluation.drawn(made)
    evaluation.judge(made, 45)
    later.join(made, later.lines_of("run3", "copy-of-run3"), "copy.run")
    head = b"# ir_metadata.start\n# actor:\n#   team: The team\n#   fields: [nlp, ir]\n"
    described.set_fields(campaign=made, by=by, names=["Year", "Index"])
    for tag in ("run2", "run1"):
        run = made.runs.get(tag=tag)
        said = {"team": "The team", "description": "BM25, then a model.", "fields": {"Year": "26"}}
        described.describe(upload=run.upload, by=by, **said)
        content = head + b"# ir_metadata.end\n" + later.with_news(tag)
        file: File[bytes] = File(io.BytesIO(content), name=f"{tag}-second.run")
        upload = replacing.replace(run=run, by=by, file=file, name=f"{tag}-second.run")
        factories.run_due_jobs()
        if tag == "run2":
            upload.refresh_from_db()
            replacing.confirm(upload=upload, by=by)
            factories.run_due_jobs()
    drop = uploads.new_drop()
    for name, content in (("short", b"t1 Q0 d1 1 2.0 s\nt1 Q0 d2\n"), ("also-short", b"t1 Q0 d\n")):
        bad: File[bytes] = File(io.BytesIO(content), name=f"{name}.run")
        uploads.store(
            campaign=made,
            by=by,
            file=bad,
            name=f"{name}.run",
            kind="run",
            drop=drop,
            check_only=True,
        )
    factories.run_due_jobs()
    return made


def topped_up() -> Campaign:
    """A run came after a round was judged: one that adds to it, half judged, and drafts of two."""
    made = with_material("topped-up")
    asked = {"top_up": True, "budget": 30, "batch_size": 15, "extra_share": 0.0}
    evaluation.drawn(made, extra_share=0.0)
    evaluation.judge(made, 1000)
    later.join(made, later.with_news("novel"), "novel.run")
    evaluation.drawn(made, **asked, seed="t", with_earlier=True)
    evaluation.judge(made, 20, truth=defaultdict(int, evaluation.SMALL.truth))
    evaluation.drafted(made, **asked, seed="u", with_earlier=True)
    evaluation.drafted(made, **asked, seed="v")
    return made


def gone_on() -> Campaign:
    """A run came after an adaptive round: one that goes on with it, half judged, and a draft."""
    made, truth = with_material("gone-on"), defaultdict(int, evaluation.SMALL.truth)
    chosen = {"method": "adaptive", "measure": "P@5", "reported": ["DCG@10"], "extra_share": 0.0}
    evaluation.drawn(made, **chosen)
    while evaluation.judge(made, 1000, truth=truth):
        pass
    later.join(made, later.with_news("novel"), "novel.run")
    asked = chosen | {"top_up": True, "budget": 30, "batch_size": 10}
    evaluation.drawn(made, **asked, seed="t", with_earlier=True)
    evaluation.judge(made, 18, truth=truth)
    evaluation.drafted(made, **asked, seed="v")
    return made


def commented(made: Campaign) -> None:
    by = User.objects.get(username="anna")
    held = assignments.claim_next(campaign=made, by=by)
    assert held is not None
    comment = "Answers another question, though the words are the same."
    judgments.record(assignment=held, by=by, saying=judgments.Saying(1, "comment", comment))


def stopped() -> Campaign:
    """A round whose rule came true, with runs that are as good as equal."""
    made = with_material("stopped")
    ends: dict[str, Any] = {"negligible": 8.0, "stop_when": "width", "stop_width": 12.0}
    evaluation.drawn(made, budget=90, batch_size=15, extra_share=0.0, **ends)
    while evaluation.judge(made, 5):
        pass
    return made


def finished() -> Campaign:
    """Judged to the end, one label per pair, and closed."""
    made = with_material("finished")
    evaluation.drawn(made, extra_share=0.0)
    evaluation.judge(made, 1000)
    assert Round.objects.get(campaign=made).state == Round.State.COMPLETE
    campaigns.close(campaign=made, by=made.created_by)
    return made


def rounds_after_one_another() -> Campaign:
    """One that pauses in the middle, one that counts its judgments, and a draft that goes on."""
    made = with_material("rounds")
    first = evaluation.drawn(made, extra_share=0.0)
    evaluation.judge(made, 30)
    evaluation.drawn(made, seed="u", with_earlier=True, extra_share=0.0)
    pausing.pause(row=first, by=made.created_by)
    extending.extend(row=first, by=made.created_by, budget=20)
    factories.run_due_jobs()
    return made


def paused() -> Campaign:
    """Paused before its first batch was judged."""
    made = with_material("paused")
    evaluation.drawn(made)
    campaigns.pause(campaign=made, by=made.created_by)
    return made


def archived() -> Campaign:
    made = with_material("archived")
    evaluation.drawn(made, extra_share=0.0)
    evaluation.judge(made, 20)
    campaigns.close(campaign=made, by=made.created_by)
    campaigns.archive(campaign=made, by=made.created_by)
    return made


def many_runs() -> Campaign:
    """As many runs as a large track brings, judged little, so that much is not known."""
    made = with_material("many-runs", material := large())
    evaluation.drawn(made, budget=240, batch_size=60, extra_share=0.2)
    for _ in range(2):
        evaluation.judge(made, 120, truth=material.truth)
    return made


def many_drafted() -> Campaign:
    """The preview of as many runs."""
    made = with_material("many-drafted", large())
    evaluation.drafted(made, budget=240, batch_size=60)
    return made


@cache
def large() -> Material:
    material = small_material(topics=8, documents=60, runs=37, depth=15)
    runs = {}
    for number, content in enumerate(material.runs.values(), start=1):
        tag = f"{NAMES[number % len(NAMES)]}{number}"
        runs[f"{tag}.run"] = content.replace(f" run{number}\n".encode(), f" {tag}\n".encode())
    return Material(material.topics, material.documents, runs, material.truth)


def failed() -> Campaign:
    """Its estimates could not be computed, nor its report made."""
    made = with_material("failed")
    row = evaluation.drawn(made)
    evaluation.judge(made, 40)
    for kind in ("recompute", "report"):
        fail(jobs.request(kind, row.pk, campaign=made))
    return made


def fail(job: Job) -> None:
    running = jobs.claim(job.pk)
    assert running is not None
    jobs._fail(running, ERROR)


def preferences() -> Campaign:
    made = with_material("which-is-better")
    evaluation.drawn(made, **SWAPS)
    by = User.objects.get(username="anna")
    for number in range(25):
        if held := assignments.claim_next(campaign=made, by=by):
            saying = judgments.Saying(grade=number % 3, key=f"better-{number}")
            judgments.record(assignment=held, by=by, saying=saying)
    factories.run_due_jobs()
    return made


def scored() -> Campaign:
    """Errors of scores, half judged."""
    made = with_material("errors-of-scores")
    row = evaluation.drawn(made, **ERRORS)
    for _ in range(2):
        evaluation.judge(made, row.draws.count())
    reports.request(row=row, by=made.created_by)
    factories.run_due_jobs()
    return made


def waiting_for_others() -> Campaign:
    """A round with a rule, of which one person has judged all that one person can."""
    made = with_material("others")
    ends: dict[str, Any] = {"stop_when": "width", "stop_width": 12.0}
    evaluation.drawn(made, labels=2, budget=60, batch_size=15, extra_share=0.0, **ends)
    made.refresh_from_db()
    anna, _ = _assessors(made)
    while held := assignments.claim_next(campaign=made, by=anna):
        saying = judgments.Saying(grade=held.pk % 4, key=f"others-{held.pk}")
        judgments.record(assignment=held, by=anna, saying=saying)
    factories.run_due_jobs()
    return made


def crowd_link(made: Campaign, name: str, **values: Any) -> CrowdLink:
    consent = "You read documents, and say how well each fits.\n\nYou may stop at any time."
    plan = crowd_links.LinkPlan(
        name,
        most_people=20,
        judgments=2,
        consent=consent,
        return_address="https://app.prolific.com/submissions/complete?cc={code}",
        per_hour=Decimal(12),
        bonus=Decimal("0.05"),
        **values,
    )
    return crowd_links.make(campaign=made, by=made.created_by, plan=plan)


def crowd_guest(link: CrowdLink, participant: str, device: str = "", answer: str = "Yes") -> Any:
    who = entering.visitor([("PROLIFIC_PID", participant)], device or participant)
    return entering.enter(link=link, who=who, answer=answer, address="192.0.2.1").account

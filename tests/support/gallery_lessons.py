"""Campaigns of people who learn, in every state that pages of training show."""

from collections.abc import Callable, Iterator

from judging import lessons
from judging.models import Campaign, TrainingAnswer, User
from judging.services import gold, training
from tests.support import evaluation, factories
from tests.support.gallery_campaigns import FIVE, with_material

LESSONS: dict[str, tuple[int, ...]] = {
    "new": (), "next": (-1,), "passed": (3,), "again": (0,), "failed": (0, 1),
}  # fmt: skip
"""Tries of the assessor, by how many answers are right; a negative one goes on."""


def learned() -> Campaign:
    """Who learns: one in the middle, one who has passed, one with a try left, one without."""
    made = with_material("training")
    evaluation.drawn(made, budget=30, batch_size=30)
    truth = evaluation.SMALL.truth
    _bring(made, [(topic, docno, truth[topic, docno]) for topic, docno in sorted(truth)[:7]])
    by = made.created_by
    training.set_plan(campaign=made, by=by, plan=training.TrainingPlan(obligatory=True))
    for name, tries in (("middle", [-3]), ("passed", [7]), ("again", [1]), ("failed", [2, 4])):
        (user,) = factories.assessors(made, name)
        for right in tries:
            learn(made, user, right)
    factories.assessors(made, "fresh")
    return made


def learn(made: Campaign, by: User, right: int) -> None:
    """A try with so many right answers; a negative number stops after so many."""
    lesson = training.begin(campaign=made, by=by)
    while lesson.pair is not None and -lesson.done != right:
        known = lesson.pair.accepted[0]
        grade = known if lesson.done < abs(right) else 3 - known
        training.answer(campaign=made, by=by, pair=lesson.pair.pk, grade=grade)
        lesson = lessons.lesson(made, by)


def of_learners(bare: Callable[..., Campaign]) -> Iterator[str]:
    """The addresses of the training in every state, and of what is told after an answer."""
    for state, tries in LESSONS.items():
        made = bare(f"lesson-{state}", FIVE)
        _bring(made, [("t1", f"FT934-48{n}", n) for n in range(3)])
        by = User.objects.get(username="assessor")
        plan = training.TrainingPlan(obligatory=True, threshold=0.9)
        training.set_plan(campaign=made, by=made.created_by, plan=plan)
        for right in tries:
            learn(made, by, right)
        yield f"/c/{made.slug}/training/"
        for said in TrainingAnswer.objects.filter(attempt__campaign=made, attempt__ended=None):
            yield f"/c/{made.slug}/training/?said={said.pair_id}"


def _bring(made: Campaign, pairs: list[tuple[str, str, int]]) -> None:
    why = "The first sentence says it: look there before all."
    rows = [f"{topic},{docno},{grade},{why}" for topic, docno, grade in pairs]
    text = "\n".join(["topic,docno,grade,reason", *rows])
    found, problems = gold.read(made, text, "training.csv")
    training.add(campaign=made, by=made.created_by, found=found, problems=problems)

"""A campaign whose names are as long as people give them, and all the pages of its organizers."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache

from benchmarks import visits
from estimation.models import Prediction, Round
from estimation.services import extending, pausing, reports, rounds, stopping
from estimation.services.machines import judges
from judging.models import Assignment, Campaign, CrowdLink, NormingSession, Pair, User
from judging.queue import APART, queue
from judging.services import assignments, campaigns, gold, judgments, members, seniors, training
from tests.support import evaluation, factories
from tests.support import gallery_campaigns as states
from tests.support.material import Material, small_material

SLUG = "long-names"
NAME = "Dense retrieval for questions of law in three languages: a reproduction with new judgments"
WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
TOPIC = (
    f"{WORD}: what must a landlord prove before a court orders a tenant who has paid late for "
    "years to leave, and how long may the tenant then stay there? (no. {})"
)
TAG = "bm25_rm3_bert_base_uncased_msmarco_doc_rerank1000_fusion_v{}"
"""Nothing in it, nor in the names below, at which a browser would begin a new line."""
SHORT = "neural"
"""The tag of the last run, which must not be broken where the others are."""
TOPIC_ID = "law_2024_three_languages_{}"
DOCNO = (
    "https://en.wikipedia.org/wiki/List_of_municipalities_of_Switzerland_by_population_density_"
    "and_language_in_the_year_2024_{}"
)
GRADES = [
    {"name": f"{name} ({number} of 11)", "meaning": f"{name}, as the guidelines have it."}
    for number, name in enumerate(
        ("Off topic", "Same field of law", "Mentions the question", "Background", "Hints",
         "A part of the answer", "Half of the answer", "Most of the answer", "Answers with gaps",
         "Answers in other words", "Answers it", "Answers it and says why")
    )
]  # fmt: skip
PEOPLE = ("maximilian.mustermann@lehrstuhl.example", "anna-lena_von-und-zu-hohenstein")


@cache
def material() -> Material:
    """Six topics of 250 characters, three runs of 60 and a short one, documents of 120."""
    small = small_material(topics=6, documents=24, runs=4, depth=12)
    topics = "".join(f"{TOPIC_ID.format(n)}\t{TOPIC.format(n)}\n" for n in range(1, 7)).encode()
    runs = {}
    for number, content in enumerate(small.runs.values(), start=1):
        tag = TAG.format(number) if number < len(small.runs) else SHORT
        lines = [line.split() for line in content.decode().splitlines()]
        named = "".join(
            f"{_topic(topic)} Q0 {_docno(docno)} {rank} {score} {tag}\n"
            for topic, _, docno, rank, score, _ in lines
        )
        runs[f"input.{tag}.run"] = named.encode()
    documents = small.documents.replace(b'"docno": "d', f'"docno": "{_docno("d")}'.encode())
    truth = {
        (_topic(topic), _docno(docno)): 3 * grade for (topic, docno), grade in small.truth.items()
    }
    return Material(topics, documents, runs, truth)


def _topic(small: str) -> str:
    return TOPIC_ID.format(small.removeprefix("t"))


def _docno(small: str) -> str:
    return DOCNO.format(small.removeprefix("d"))


def addresses() -> list[str]:
    """Of all pages of the campaign that the resolver knows, with the names as long as can be."""
    made, organizer = _campaign(), User.objects.get(username="organizer")
    drawn, draft = made.rounds.get(number=1), made.rounds.get(state=Round.State.DRAFTED)
    rows = visits.rows_in(made, drawn=drawn, draft=draft)
    for model, name in ((CrowdLink, "name"), (NormingSession, "title"), (Prediction, "name")):
        model.objects.filter(campaign=made).update(**{name: NAME})
    found = visits.pages(organizer=organizer, admin=_admin(), rows=rows)
    return [*(each.address for each in found if each.who == organizer), _lately(made)]


def _admin() -> User:
    return User.objects.get(username="admin")


def _campaign() -> Campaign:
    """Rounds that ended early, stopped, pause and go on, and something on every other page."""
    made = _with_material()
    by, asked = made.created_by, {"budget": 60, "batch_size": 15, "extra_share": 0.0}
    first = _drawn(made, **asked, labels=2, seed="a")
    people = factories.assessors(made, *PEOPLE)
    _judge(made, 70)
    _say(made, people)
    reports.request(row=first, by=by)
    factories.run_due_jobs()
    stopping.by_hand(row=first, by=by)
    factories.run_due_jobs()
    _drawn(made, **asked, seed="b", stop_when="width", stop_width=13.5)
    _judge(made, 20)
    paused = _drawn(made, top_up=True, budget=20, batch_size=10, extra_share=0.0, seed="c")
    _judge(made, 12)
    pausing.pause(row=paused, by=by)
    _drawn(made, **asked, seed="d", with_earlier=True)
    _judge(made, 5)
    extending.extend(row=first, by=by, budget=20)
    _beside(made)
    factories.run_due_jobs()
    return made


def _lately(made: Campaign) -> str:
    """The page of a file that could not be read, of which the overview tells first."""
    row = factories.stored_upload(made, b"no run", name=f"input.{TAG.format(5)}.run", kind="run")
    return f"/c/{SLUG}/material/files/{row.pk}/"


def _with_material() -> Campaign:
    by = factories.user("organizer-long", is_organizer=True)
    plan = campaigns.CampaignPlan(name=NAME, slug=SLUG, grades=GRADES)
    made = states.organized(campaigns.create(by=by, plan=plan))
    given = material()
    factories.stored_upload(made, given.topics, name="topics-of-law_three-languages.tsv")
    factories.stored_upload(made, given.documents, name="documents.jsonl", kind="documents")
    for name, content in given.runs.items():
        factories.stored_upload(made, content, name=name, kind="run")
    return made


def _drawn(made: Campaign, **asked: object) -> Round:
    row = evaluation.drafted(made, **asked)
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    if made.state != Campaign.State.OPEN:
        campaigns.open_for_judging(campaign=made, by=made.created_by)
        made.refresh_from_db()
    return row


def _judge(made: Campaign, labels: int) -> None:
    evaluation.judge(made, labels, truth=defaultdict(int, material().truth))


def _say(made: Campaign, people: Sequence[User]) -> None:
    """A comment, skipped pairs, a disagreement and its senior grade."""
    for by, grade in zip(people, (0, 11), strict=True):
        for _ in range(2):
            if held := assignments.claim_next(campaign=made, by=by):
                assignments.skip(assignment=held, by=by, reason=TOPIC.format(0))
        if held := assignments.claim_next(campaign=made, by=by):
            saying = judgments.Saying(grade, f"said-{by}", TOPIC.format(grade), seconds=4321.0)
            judgments.record(assignment=held, by=by, saying=saying)
    far = Assignment.objects.filter(pair__campaign=made, state="judged").order_by("pair_id")
    for pair in Pair.objects.filter(pk__in=far.values("pair"), judged=2)[:3]:
        held = pair.assignments.order_by("pk")[0]
        grade = 11 if held.judgments.latest("pk").grade < 6 else 0
        saying = judgments.Saying(grade, f"far-{pair.pk}")
        judgments.correct(assignment=held, by=held.assessor, saying=saying, revision=1)
    apart = queue(made).of(APART)[-1].pair
    pair = Pair.objects.select_related("campaign").get(pk=apart)
    seniors.give(pair=pair, by=made.created_by, grade=5, reason=TOPIC.format(0))


def _beside(made: Campaign) -> None:
    """What is known of pairs, a machine judge, and others who are invited."""
    by, free = made.created_by, set(material().truth)
    free -= set(made.pairs.values_list("topic__topic_id", "docno"))
    rows = [f'{topic},{docno},11,"{TOPIC.format(0)}"' for topic, docno in sorted(free)[:6]]
    for name, add, known in (("gold", gold.add, rows[:3]), ("training", training.add, rows[3:])):
        text = "\n".join(["topic,docno,grade,reason", *known])
        found, problems = gold.read(made, text, f"{name}.csv")
        add(campaign=made, by=by, found=found, problems=problems)
    plan = judges.MachinePlan(NAME[:60], "local", "qwen2.5-7b-instruct", max_calls=500)
    judges.create(campaign=made, by=by, plan=plan)
    for name in ("newcomer-of-the-winter-term-2026@students.university.example", "x" * 40):
        members.add(campaign=made, by=by, username=name, role="assessor")

"""Campaigns of people who judge alone and then talk, in every state that pages of norming show."""

from collections.abc import Callable, Iterator

from judging.models import Campaign, NormingSession, User
from judging.services import gold, training
from judging.services import norming as services
from tests.support import factories, norms
from tests.support.gallery_campaigns import FIVE, organized

DOCUMENTS = tuple(f"FT934-48{number}" for number in range(4))
PAIRS = "".join(f"{topic},{docno}\n" for topic in ("t1", "t2") for docno in DOCUMENTS)
SAID = {"anna": (0, 1, 2, 3, 4, 2, 2, 0), "ben": (4, 1, 3, 3, 4, 2, 0, 0),
        "assessor": (2, 1, 3, 1, 4, 2, 4, 0), "cara": (0, 1, 2, 4, 3, 2, 4, 0)}  # fmt: skip
WROTE = (
    ("anna", "The first sentence is about another thing of the same name."),
    ("ben", "But the second one answers it:\n<b>see the number</b>. That is all one asks for."),
    ("", "What is only in a table counts as well. I shall write that into the guidelines."),
)


def _brought(bare: Callable[..., Campaign], slug: str, title: str, **plan: bool) -> NormingSession:
    made = organized(bare(slug, FIVE))
    factories.assessors(made, "anna", "ben", "cara")
    row = norms.session(made, lines=f"topic,docno\n{PAIRS}", begin=False, **plan)
    NormingSession.objects.filter(pk=row.pk).update(title=title)
    row.refresh_from_db()
    return row


def _said(row: NormingSession, *but: str) -> None:
    people = {User.objects.get(username=name): SAID[name] for name in SAID if name not in but}
    norms.answers(row, people)


def of_norming(bare: Callable[..., Campaign]) -> Iterator[tuple[str, str]]:
    """Who looks, and at which address."""
    none = organized(bare("norming-none", FIVE))
    yield "assessor", f"/c/{none.slug}/norming/"
    draft = _brought(bare, "norming-draft", "A draft")
    _offer(draft.campaign)
    empty = norms.session(draft.campaign, lines="", begin=False)
    blind = _brought(bare, "norming-blind", "What is enough of an answer?")
    waits = _brought(bare, "norming-waits", "All but one")
    talks = _brought(bare, "norming-talks", "What is enough of an answer?")
    closed = _brought(bare, "norming-closed", "The first one, closed", named=True)
    for row in (blind, waits, talks, closed):
        services.begin(session=row, by=row.created_by)
    _said(blind, "assessor", "cara")
    _said(waits, "cara")
    for row in (talks, closed):
        _said(row)
        _talked(row)
    services.close(session=closed, by=closed.created_by)
    for row in (draft, empty, blind, waits, talks, closed):
        yield "organizer", f"/c/{row.campaign.slug}/norming/sessions/{row.pk}/"
    for row in (blind, waits):
        yield "assessor", f"/c/{row.campaign.slug}/norming/{row.pk}/"
    yield "organizer", f"/c/{draft.campaign.slug}/norming/sessions/"
    yield "assessor", f"/c/{talks.campaign.slug}/norming/"
    factories.released_batch(talks.campaign, DOCUMENTS)
    yield "assessor", f"/c/{talks.campaign.slug}/judge/"
    for row in (talks, closed):
        pairs = row.pairs.order_by("pk")
        for who in ("assessor", "organizer"):
            yield who, f"/c/{row.campaign.slug}/norming/{row.pk}/discussion/"
            yield who, f"/c/{row.campaign.slug}/norming/{row.pk}/pairs/{pairs[0].pk}/"
    yield (
        "assessor",
        f"/c/{talks.campaign.slug}/norming/{talks.pk}/pairs/{talks.pairs.all()[7].pk}/",
    )


def _offer(made: Campaign) -> None:
    found, problems = gold.read(made, f"topic,docno,grade\nt1,{DOCUMENTS[0]},2\n", "t.csv")
    training.add(campaign=made, by=made.created_by, found=found, problems=problems)
    factories.released_batch(made, DOCUMENTS[:2], labels=2)
    for name, grades in (("anna", 0), ("ben", 3)):
        while factories.judge_next(made, User.objects.get(username=name), grades):
            pass


def _talked(row: NormingSession) -> None:
    first = row.pairs.order_by("pk")[0]
    for number, (name, text) in enumerate(WROTE):
        by = User.objects.get(username=name) if name else row.created_by
        said = {"text": text, "key": str(number), "organizes": not name}
        services.comment(session=row, by=by, pair=first.pk, **said)
    for name, grade in (("anna", 3), ("assessor", 3)):
        services.revise(session=row, by=User.objects.get(username=name), pair=first.pk, grade=grade)

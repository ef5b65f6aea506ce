"""Campaigns in which people judge alone and then talk, made through the services."""

from collections.abc import Mapping, Sequence

from judging import norming
from judging.models import Campaign, Document, NormingComment, NormingSession, Upload, User
from judging.services import gold
from judging.services import norming as services
from judging.services.norming import SessionPlan
from tests.support import factories

LINES = "topic,docno\nt1,a\nt1,b\nt2,a\n"


def campaign(*names: str, slug: str = "test") -> Campaign:
    """With texts of four documents, and these assessors."""
    made = factories.campaign(slug=slug)
    upload = Upload.objects.create(
        campaign=made, kind=Upload.Kind.DOCUMENTS, name="d", file="none", size=0, sha256="",
        state=Upload.State.ACCEPTED, created_by=made.created_by,
    )  # fmt: skip
    Document.objects.bulk_create(
        Document(campaign=made, upload=upload, docno=docno, title=f"of {docno}", text="A text.")
        for docno in "abcd"
    )
    factories.assessors(made, *names)
    return made


def bring(session: NormingSession, lines: str = LINES) -> None:
    found, problems = gold.read(session.campaign, lines, "pairs.csv", graded=False)
    services.add(session=session, by=session.created_by, found=found, problems=problems)


def session(
    made: Campaign, *, lines: str = LINES, begin: bool = True, **plan: bool
) -> NormingSession:
    """With all assessors, and these pairs; people judge in it, unless ``begin`` is false."""
    by = made.created_by
    row = services.create(campaign=made, by=by, plan=SessionPlan("First talk", **plan))
    if lines:
        bring(row, lines)
    if begin:
        services.begin(session=row, by=by)
    row.refresh_from_db()
    return row


def answers(session: NormingSession, said: Mapping[User, Sequence[int]]) -> None:
    """Of everybody, grades of the pairs in the order in which they were added."""
    pairs = list(session.pairs.order_by("pk").values_list("pk", flat=True))
    for user, grades in said.items():
        for pair, grade in zip(pairs, grades, strict=False):
            services.answer(session=session, by=user, pair=pair, grade=grade)
    session.refresh_from_db()


def seat(session: NormingSession, user: User | None = None) -> norming.Seat:
    """Of somebody who takes part, or of the organizer."""
    return norming.Seat(session, user or session.created_by, user is None)


def named(name: str) -> User:
    return User.objects.get(username=name)


def talk(
    made: Campaign, anna: tuple[int, ...], ben: tuple[int, ...], **plan: bool
) -> NormingSession:
    """A session in which both have answered all."""
    row = session(made, **plan)
    answers(row, {named("anna"): anna, named("ben"): ben})
    return row


def comment(
    row: NormingSession, by: User, text: str, key: str = "k", **more: object
) -> NormingComment:
    asked = {"pair": row.pairs.all()[0].pk, "organizes": False, **more}
    return services.comment(session=row, by=by, text=text, key=key, **asked)  # type: ignore[arg-type]

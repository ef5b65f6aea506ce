"""Campaigns whose files are in the states that pages of the gallery show."""

import io
import zipfile

from django.core.files.base import File

from judging.models import Campaign, KnownGrade, Pair, Upload
from judging.services import duplicates, known_grades, taking_in, uploads
from tests.support import evaluation, factories
from tests.support.gallery_campaigns import organized, with_material

ODD = b"t1 Q0 d1 9 2.0 odd\nt1 Q0 d2 1 1.0 odd\n"
BAD = b"t1 Q0 d1 1 2.0 bad\nt1 Q0 d1 2 1.0 bad\n"


def good(tag: str) -> bytes:
    return evaluation.SMALL.runs["run1.run"].replace(b"run1", tag.encode())


def shown() -> list[tuple[Campaign, tuple[str, ...]]]:
    """Files that were only checked, and what qrels leave of a round."""
    made = dropped()
    archive = made.uploads.get(kind=Upload.Kind.ARCHIVE)
    checked = made.uploads.filter(kind=Upload.Kind.RUN, state=Upload.State.CHECKED)[0]
    files = tuple(f"material/files/{each.pk}/" for each in (archive, checked))
    return [(made, ("material/", "", *files)), (from_qrels(), ("decisions/",))]


def dropped() -> Campaign:
    """Three drops that were only checked: one all good, an archive, and one of which all was found;
    of one more what was good is taken in."""
    made = with_material("dropped")
    _drop(made, {f"a{n}.run": good(f"a{n}") for n in range(3)})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in {"b1.run": good("b1"), "b2.run": good("b2"), "x.run": BAD}.items():
            archive.writestr(name, content)
    _drop(made, {"b.zip": packed.getvalue()}, kind="archive")
    drop = _drop(made, {"c.run": good("c"), "bad1.run": BAD, "bad2.run": BAD})
    taking_in.take_in_drop(campaign=made, by=made.created_by, drop=drop)
    factories.run_due_jobs()
    _drop(made, {"d1.run": good("d1"), "d2.run": good("d2"), "odd.run": ODD, "bad.run": BAD})
    return made


def _drop(made: Campaign, files: dict[str, bytes], kind: str = "run") -> str:
    drop = uploads.new_drop()
    for name, content in files.items():
        file: File[bytes] = File(io.BytesIO(content), name=name)
        uploads.store(
            campaign=made, by=made.created_by, file=file, name=name, kind=kind, drop=drop,
            check_only=True,
        )  # fmt: skip
    factories.run_due_jobs()
    return drop


def from_qrels() -> Campaign:
    """Judged from qrels that know all pairs but four, where many want a second label."""
    made = with_material("from-qrels")
    evaluation.drawn(made, extra_share=0.3)
    upload = made.uploads.all()[0]
    rows = Pair.objects.filter(campaign=made).order_by("pk")[4:]
    KnownGrade.objects.bulk_create(
        KnownGrade(campaign=made, upload=upload, topic=pair.topic, docno=pair.docno, grade=1)
        for pair in rows
    )
    known_grades.request(campaign=made, by=made.created_by)
    factories.run_due_jobs()
    return made


def copied() -> Campaign:
    """A campaign like another one, whose files are still being copied."""
    other = Campaign.objects.get(slug="dropped")
    made = duplicates.duplicate(campaign=other, by=other.created_by, name="Copied", with_files=True)
    return organized(made)

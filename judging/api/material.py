"""Topics, documents and uploads."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from judging import drops, selectors
from judging.api.base import ORGANIZER, CampaignView, FilesBody, page
from judging.api.fields import Body, NoBody, OneOf, Text, checked
from judging.api.pagination import PageQuery, Pages, page_shape
from judging.api.serializers import (
    DocumentDetailRow,
    DocumentRow,
    DropRow,
    ListedTopicRow,
    UploadRow,
)
from judging.errors import UserError
from judging.formats.guess import guess_kind, unknown_kind
from judging.models import Campaign, Document, Job, Topic, Upload
from judging.services import described, taking_in, uploads

EXCERPT = 500
MAX_FILES = 500


class Topics(CampaignView):
    section = "Material"
    query = PageQuery
    access = {"GET": ORGANIZER}

    @extend_schema(responses=page_shape(ListedTopicRow))
    def get(self, request: Request, slug: str) -> Response:
        """The topics of a campaign."""
        rows: QuerySet[Topic] = self.campaign.topics.order_by("topic_id")
        return page(request, rows, ListedTopicRow)


class DocumentSearch(PageQuery):
    search = Text(
        max_length=200, default="", allow_blank=True, help_text="Part of a docno or title."
    )


class Documents(CampaignView):
    section = "Material"
    query = DocumentSearch
    access = {"GET": ORGANIZER}

    @extend_schema(responses=page_shape(DocumentRow))
    def get(self, request: Request, slug: str) -> Response:
        """The documents of a campaign, by docno, with the beginning of their texts."""
        sought = self.asked["search"]
        rows = selectors.documents(self.campaign).order_by("docno")
        if sought:
            rows = rows.filter(Q(docno__icontains=sought) | Q(title__icontains=sought))
        return page(
            request, rows.defer("text").annotate(excerpt=Left("text", EXCERPT)), DocumentRow
        )


class DocumentDetail(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER}

    @extend_schema(responses=DocumentDetailRow)
    def get(self, request: Request, slug: str, document: int) -> Response:
        """One document with its whole text."""
        rows: QuerySet[Document] = selectors.documents(self.campaign)
        return Response(DocumentDetailRow(get_object_or_404(rows, pk=document)).data)


class UploadBody(Body):
    files = serializers.ListField(
        child=serializers.FileField(allow_empty_file=True),  # it is refused by its name
        min_length=1, max_length=MAX_FILES,
        help_text="One file or many, each in a part of this name; plain or gzip.",
    )  # fmt: skip
    kind = OneOf(
        Upload.Kind.choices, required=False, help_text="Guessed from each file if left out."
    )
    check_only = serializers.BooleanField(
        default=False, help_text="Only report problems; load nothing."
    )


class RunFieldsBody(Body):
    fields = serializers.ListField(  # type: ignore[assignment]
        child=Text(max_length=200), max_length=described.MAX_FIELDS, help_text="Their names."
    )


@dataclass(frozen=True)
class UploadWork:
    """An upload with the job that reads it."""

    upload: Upload
    job: Job | None

    @property
    def progress(self) -> int:
        if self.upload.state in (Upload.State.STORED, Upload.State.READING):
            return self.job.progress if self.job else 0
        return 100


class Uploads(CampaignView):
    section = "Material"
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}
    refusals = {"POST": (507,)}

    def get_parsers(self) -> list[Any]:
        return [FilesBody()]

    @extend_schema(responses=page_shape(UploadRow))
    def get(self, request: Request, slug: str) -> Response:
        """The uploads of a campaign, newest first."""
        pages = Pages()
        newest = self.campaign.uploads.select_related("created_by").order_by("-pk")
        rows = pages.paginate_queryset(newest, request) or []
        return pages.get_paginated_response(_shown(rows))

    @extend_schema(
        request={"multipart/form-data": UploadBody}, responses={201: UploadRow(many=True)}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Upload files: topics, documents, runs, qrels or predicted grades.

        They are stored at once and read by the worker: poll the uploads until they are accepted
        or rejected. If one of the files cannot be taken, none is stored.

        Predicted grades have lines of `topic docno grade`, a number from 0 to the best grade of
        the scale, or of `topic docno p0 p1 …` with the probability of every grade.
        """
        given = checked(UploadBody, request.data)
        _refuse_any(given["files"], given.get("kind"))
        uploads.ensure_room(sum(file.size or 0 for file in given["files"]))
        drop = uploads.new_drop()
        stored = [
            uploads.store(
                campaign=self.campaign,
                by=self.user,
                file=file,
                name=file.name or "",
                kind=given.get("kind"),
                check_only=given["check_only"],
                drop=drop,
            )
            for file in given["files"]
        ]
        return Response(_shown(stored), status=201)


class DropDetail(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER, "DELETE": ORGANIZER}

    @extend_schema(responses=DropRow)
    def get(self, request: Request, slug: str, drop: str) -> Response:
        """Files that came at once: how they fared, and what is wrong with them, kind by kind.

        An upload names its `drop`; the files of an archive have that of the archive.
        """
        return Response(DropRow(_drop(self.campaign, drop)).data)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, slug: str, drop: str) -> Response:
        """Remove all files of a drop of which nothing was taken in: only checked, or rejected.

        What is still being read stays, and so does what was taken in.
        """
        _drop(self.campaign, drop)
        taking_in.dismiss(campaign=self.campaign, by=self.user, drop=drop)
        return Response(status=204)


class DropTakeIn(CampaignView):
    section = "Material"
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses={202: DropRow})
    def post(self, request: Request, slug: str, drop: str) -> Response:
        """Take in all files of a drop that were only checked and are good; they are read once more.

        Files without errors count as good, also with warnings. 409 where they are read against
        topics, and the campaign has none; asked again, it does nothing.
        """
        checked(NoBody, request.data)
        _drop(self.campaign, drop)
        taking_in.take_in_drop(campaign=self.campaign, by=self.user, drop=drop)
        return Response(DropRow(_drop(self.campaign, drop)).data, status=202)


def _drop(campaign: Campaign, drop: str) -> drops.Drop:
    found = drops.drop_of(campaign, drop)
    if found is None:
        raise NotFound("There are no files of this drop.")
    return found


class RunFields(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER, "PATCH": ORGANIZER}

    @extend_schema(responses=RunFieldsBody)
    def get(self, request: Request, slug: str) -> Response:
        """The fields that runs of this campaign have, beside team and description."""
        return Response({"fields": self.campaign.run_fields})

    @extend_schema(request=RunFieldsBody, responses=RunFieldsBody)
    def patch(self, request: Request, slug: str) -> Response:
        """Say which fields runs have. What was said under a name that goes comes back with it."""
        given = checked(RunFieldsBody, request.data)
        described.set_fields(campaign=self.campaign, by=self.user, names=given["fields"])
        return Response({"fields": self.campaign.run_fields})


class UploadDetail(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER, "DELETE": ORGANIZER}

    @extend_schema(responses=UploadRow)
    def get(self, request: Request, slug: str, upload: int) -> Response:
        """One upload: how far it is read, and what is wrong with it."""
        return Response(_shown([_upload(self.campaign, upload)])[0])

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, slug: str, upload: int) -> Response:
        """Remove an upload and all it brought, while nothing rests on it."""
        uploads.remove(upload=_upload(self.campaign, upload), by=self.user)
        return Response(status=204)


class CancelUpload(CampaignView):
    section = "Material"
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=UploadRow)
    def post(self, request: Request, slug: str, upload: int) -> Response:
        """End the reading of an upload; 409 when it has been read already."""
        checked(NoBody, request.data)
        uploads.cancel(upload=_upload(self.campaign, upload), by=self.user)
        return Response(_shown([_upload(self.campaign, upload)])[0])


def _upload(campaign: Campaign, pk: int) -> Upload:
    return get_object_or_404(campaign.uploads.select_related("created_by", "campaign"), pk=pk)


def _shown(rows: list[Upload]) -> list[dict[str, Any]]:
    found = Job.objects.filter(kind="upload", target__in=[row.pk for row in rows])
    jobs = {job.target: job for job in found}
    shown = [UploadWork(row, jobs.get(row.pk)) for row in rows]
    return list(UploadRow(shown, many=True).data)


def refuse_empty(files: "list[UploadedFile[bytes]]", *, field: str) -> None:
    """Refuses all files of a field, naming those of them that are empty."""
    if empty := [(file, f"{file.name} is empty.") for file in files if not file.size]:
        raise _refused("invalid", "Some files are empty: see errors.", empty, 400, field=field)


def _refuse_any(files: "list[UploadedFile[bytes]]", kind: str | None) -> None:
    """Refuses all of them before any is stored if one cannot be taken."""
    refuse_empty(files, field="files")
    large = [file for file in files if (file.size or 0) > settings.UPLOAD_MAX_BYTES]
    if large:
        limit = f"Expected at most {settings.UPLOAD_MAX_BYTES // 2**20} MB."
        raise _refused("too_large", "A file is too large.", [(f, limit) for f in large], 413)
    unknown = [] if kind else [file for file in files if not _is_known(file)]
    if unknown:
        told = [(file, unknown_kind(file.name or "", _head(file))) for file in unknown]
        raise _refused("kind_unknown", "It is not clear what a file is.", told, 400)


def _is_known(file: "UploadedFile[bytes]") -> bool:
    return guess_kind(file.name or "", _head(file)) is not None


def _head(file: "UploadedFile[bytes]") -> bytes:
    head: bytes = file.read(uploads.HEAD_BYTES)
    file.seek(0)
    return head


def _refused(
    code: str,
    message: str,
    told: "list[tuple[UploadedFile[bytes], str]]",
    status: int,
    field: str = "files",
) -> UserError:
    rows = [{"file": file.name, "field": field, "message": each} for file, each in told]
    return UserError(code, message, status=status, data={"errors": rows})

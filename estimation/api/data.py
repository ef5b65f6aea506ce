"""One run, its versions, and one topic."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from estimation.models import Run
from estimation.run_facts import RunFacts, alike_runs, run_facts
from estimation.services import replacing
from estimation.topic_facts import topic_facts
from judging.api.base import ORGANIZER, CampaignView, FilesBody
from judging.api.fields import Body, NoBody, Number, Text, checked
from judging.api.material import refuse_empty
from judging.models import Upload
from judging.services import described

CharField = serializers.CharField
IntegerField = serializers.IntegerField
DateTimeField = serializers.DateTimeField
Flag = serializers.BooleanField
Row = serializers.Serializer[Any]

STATES = ("counts", "withdrawn", "earlier", "waiting", "reading", "rejected")


class VersionRow(Row):
    number = IntegerField()
    upload = IntegerField(source="upload.pk")
    name = CharField(source="upload.name")
    run = IntegerField(source="run.pk", default=None, allow_null=True)
    tag = CharField(source="run.tag", default=None, allow_null=True)
    state = serializers.ChoiceField(
        STATES, help_text="waiting: checked, until somebody confirms it; earlier: before any draw."
    )
    changes = serializers.DictField(
        source="upload.summary.changes",
        default=None,
        allow_null=True,
        help_text="What it changes, for every round that was drawn when it was read.",
    )
    created = DateTimeField(source="upload.created")
    created_by = CharField(source="upload.created_by.username")


class JudgedSoFarRow(Row):
    """Of the documents that the run returns down to the depth of a round."""

    round = IntegerField()
    depth = IntegerField()
    documents = IntegerField()
    outside = IntegerField(help_text="Not in the pool of the round, so that none could be drawn.")
    drawn = IntegerField()
    judged = IntegerField()


class AlikeRow(Row):
    id = IntegerField()
    tag = CharField()
    withdrawn = Flag()
    first_10 = Number(source="shallow", help_text="Share of this run's documents there.")
    first_100 = Number(source="deep")
    same = Flag(help_text="All of the first 100 are the same, in one order.")


class RunEstimateRow(Row):
    round = IntegerField(source="round.number")
    estimate_set = IntegerField(source="estimate_set.number")
    measure = CharField(source="line.measure")
    value = Number(source="line.value", allow_null=True)
    low = Number(source="line.low")
    high = Number(source="line.high")
    rank_low = IntegerField(source="line.rank_low", allow_null=True)
    rank_high = IntegerField(source="line.rank_high", allow_null=True)
    support = Number(source="line.support")
    unknown = CharField(source="line.unknown", allow_null=True)


class AboutRow(Row):
    """What is said of a run."""

    team = CharField()
    description = CharField()
    fields = serializers.DictField(  # type: ignore[assignment]
        child=CharField(allow_blank=True), help_text="By the names that the campaign has for them."
    )
    ir_metadata = serializers.DictField(
        child=CharField(), help_text="What the head of its file says."
    )


class LeavingRow(Row):
    """What it changes that a run is withdrawn. No value of another run changes."""

    estimate = RunEstimateRow(allow_null=True, help_text="What is told of it now.")
    ranked = IntegerField(help_text="Runs in that ranking, this one included; 0 without one.")
    decided = IntegerField(help_text="Verdicts about it, which are told no more.")
    may_be_best = Flag(help_text="No run is surely better.")
    rivals = IntegerField(help_text="Of how many other runs that is so.")
    foretold = Flag(help_text="A forecast is told; none is while a run is withdrawn.")
    standings = JudgedSoFarRow(many=True, help_text="What stays in the sample of each drawn round.")
    drafts = serializers.ListField(
        child=IntegerField(), help_text="Drafted rounds that name it and cannot be drawn then."
    )
    refused = CharField(help_text="Why it cannot be withdrawn; empty if it can.")


class RunDetailRow(Row):
    id = IntegerField()
    tag = CharField()
    upload = IntegerField()
    withdrawn = DateTimeField(allow_null=True)
    topics = IntegerField()
    lines = IntegerField()
    about = AboutRow()
    versions = VersionRow(many=True)
    standings = JudgedSoFarRow(many=True, help_text="One for every drawn round.")
    alike = AlikeRow(many=True, help_text="The other runs, the most alike first.")
    estimate = RunEstimateRow(allow_null=True, help_text="In the round that was drawn last.")


def _shown(facts: RunFacts) -> dict[str, Any]:
    run = facts.run
    answer = {
        "id": run.pk,
        "tag": run.tag,
        "upload": facts.upload.pk,
        "withdrawn": run.withdrawn,
        "topics": run.topic_count,
        "lines": run.line_count,
        "about": {
            "team": facts.team,
            "description": facts.description,
            "fields": dict(facts.fields),
            "ir_metadata": dict(facts.ir_metadata),
        },
        "versions": facts.versions,
        "standings": [standing for standing, _ in facts.standings],
        "alike": alike_runs(run).every,
        "estimate": facts.estimate,
    }
    return dict(RunDetailRow(answer).data)


class AboutBody(Body):
    team = Text(required=False, allow_blank=True, max_length=described.MAX_TEXT)
    description = Text(required=False, allow_blank=True, max_length=described.MAX_DESCRIPTION)
    fields = serializers.DictField(  # type: ignore[assignment]
        child=Text(allow_blank=True, max_length=described.MAX_TEXT),
        required=False,
        help_text="By the names that the campaign has for them; those left out stay.",
    )


class RunView(CampaignView):
    """A view of one run."""

    section = "Material"
    run: Run

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        rows = self.campaign.runs.select_related("campaign", "upload__created_by")
        self.run = get_object_or_404(rows, pk=kwargs["run"])


class RunDetail(RunView):
    access = {"GET": ORGANIZER, "PATCH": ORGANIZER}

    @extend_schema(responses=RunDetailRow)
    def get(self, request: Request, slug: str, run: int) -> Response:
        """One run: what is said of it, its versions, how far it is judged, runs that are alike."""
        return Response(_shown(run_facts(self.run)))

    @extend_schema(request=AboutBody, responses=RunDetailRow)
    def patch(self, request: Request, slug: str, run: int) -> Response:
        """Change what is said of a run; what is left out stays. No number rests on it."""
        given = checked(AboutBody, request.data)
        described.describe(upload=self.run.upload, by=self.user, **given)
        return Response(_shown(run_facts(self.run)))


class VersionBody(Body):
    file = serializers.FileField(
        allow_empty_file=True,  # it is refused by its name
        help_text="The new version: plain or gzip.",
    )


class StoredVersionRow(Row):
    upload = IntegerField(source="pk")
    check_only = Flag(help_text="Whether it is taken in only when somebody confirms it.")


class RunVersions(RunView):
    access = {"POST": ORGANIZER}
    refusals = {"POST": (507,)}

    def get_parsers(self) -> list[Any]:
        return [FilesBody()]

    @extend_schema(request={"multipart/form-data": VersionBody}, responses={201: StoredVersionRow})
    def post(self, request: Request, slug: str, run: int) -> Response:
        """Replace a run by a new version.

        Before any draw it takes the place of the old one once it is read. After a draw it is only
        checked: poll the upload, look at `summary.changes`, and confirm it by `take-in`. The old
        version is then withdrawn, and the new one a later run.
        """
        file = checked(VersionBody, request.data)["file"]
        refuse_empty([file], field="file")
        stored = replacing.replace(run=self.run, by=self.user, file=file, name=file.name or "")
        return Response(StoredVersionRow(stored).data, status=201)


class TakeIn(CampaignView):
    section = "Material"
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses={202: StoredVersionRow})
    def post(self, request: Request, slug: str, upload: int) -> Response:
        """Take in a file that was only checked and is good; it is read once more.

        For a new version of a run this confirms what it changes. 409 where another round was drawn
        since it was checked.
        """
        checked(NoBody, request.data)
        rows = self.campaign.uploads.select_related("campaign", "replaces")
        found: Upload = get_object_or_404(rows, pk=upload)
        replacing.confirm(upload=found, by=self.user)
        found.refresh_from_db()
        return Response(StoredVersionRow(found).data, status=202)


class ContributionRow(Row):
    value = Number(allow_null=True, help_text="Null where nothing is judged that tells of it.")
    judged = IntegerField(allow_null=True, help_text="Judged pairs of the topic that tell of it.")
    noisy = Flag(help_text="Fewer than ten are: a hint where to look, and no finding.")


class TopicRunRow(Row):
    """Documents that a run returns for the topic, down to the campaign's depth."""

    id = IntegerField()
    tag = CharField()
    withdrawn = Flag()
    documents = IntegerField()
    drawn = IntegerField()
    judged = IntegerField()
    relevant = IntegerField(help_text="Judged better than grade 0 by somebody.")
    adds = ContributionRow(
        allow_null=True,
        help_text="To the run's value under the first measure of that round; null without one.",
    )


class TopicAgreementRow(Row):
    double = IntegerField(help_text="Pairs that several people judged.")
    differ = IntegerField(help_text="Those of them with different answers.")
    usual = Number(help_text="Their share in the whole campaign.")
    noisy = Flag(help_text="Whether it is more here than chance would have it.")


class TopicFactsRow(Row):
    id = CharField(source="topic.topic_id")
    title = CharField(source="topic.title")
    round = IntegerField(source="round.number", default=None, allow_null=True)
    pooled = IntegerField(allow_null=True, help_text="Pairs in the pool of that round.")
    drawn = IntegerField()
    judged = IntegerField()
    relevant = IntegerField()
    grades = serializers.ListField(
        child=IntegerField(), help_text="How often each grade was given, from 0 upwards."
    )
    agreement = TopicAgreementRow()
    uncertainty = Number(
        allow_null=True,
        help_text="Its share of the sampling variance of all runs together under the first measure "
        "of that round; null where the sample does not tell it topic by topic.",
    )
    runs = TopicRunRow(many=True)


class TopicDetail(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER}

    @extend_schema(responses=TopicFactsRow)
    def get(self, request: Request, slug: str, topic: int) -> Response:
        """How far one topic is judged, how people agree, and what every run brings to it."""
        rows = self.campaign.topics.select_related("campaign")
        return Response(TopicFactsRow(topic_facts(get_object_or_404(rows, pk=topic))).data)

"""Machine judges: list, add, change, start, stop, remove."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from estimation import machine_rows
from estimation.api.label_quality import AlphaRow, BatchAlphaRow, GradeAlphaRow, TopicAlphaRow
from estimation.machine_findings import findings_on
from estimation.machine_versions import answers_of, version_of, versions_of
from estimation.machines import NANO
from estimation.models import MachineAnswer, MachineJudge
from estimation.services.machines import judges, prompts
from estimation.services.machines.judges import MachinePlan
from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import Body, Flag, NoBody, Number, Text, Whole, checked
from judging.api.pagination import PageQuery, Pages, page_shape

CharField, IntegerField = serializers.CharField, serializers.IntegerField
Row = serializers.Serializer[Any]


class MachineChange(Body):
    max_calls = Whole(required=False, help_text="Ceiling: every request counts.")
    max_cost = Number(
        required=False, allow_null=True, help_text="Ceiling, in units of the endpoint's prices."
    )
    prompt = Text(
        required=False, max_length=prompts.MAX_PROMPT, trim_whitespace=False,
        help_text="With {title}, {document}, {grades} and perhaps {description}, {narrative}.",
    )  # fmt: skip
    with_schema = Flag(required=False, help_text="Whether a JSON schema is sent.")
    document_chars = Whole(required=False, help_text="Where longer documents are cut.")


class MachineBody(MachineChange):
    name = Text(max_length=judges.MAX_NAME)
    endpoint = Text(max_length=40, help_text="Its name; see machine-endpoints/.")
    model = Text(max_length=200)
    max_calls = Whole(help_text="Ceiling: every request counts.")


class EndpointRow(Row):
    name = CharField()
    host = CharField(help_text="Where documents are sent.")
    models = serializers.ListField(child=CharField())
    price_in = Number(allow_null=True, help_text="Of a million tokens; null: not known.")
    price_out = Number(allow_null=True)


class FailureRow(Row):
    outcome = serializers.ChoiceField(MachineAnswer.Outcome.choices)
    count = IntegerField()
    example = CharField(help_text="What came back the last time.")


class MachineTopicRow(TopicAlphaRow):
    pairs = IntegerField(default=0)
    labels = IntegerField()
    bias = Number(help_text="Predicted minus judged grades, weighted.")
    error = Number(help_text="Grades apart, weighted.")


class AgreementRow(Row):
    """How far it agrees with people on the judged pairs of the latest round."""

    round = IntegerField()
    prompt = IntegerField(help_text="The version whose answers were compared.")
    pairs = IntegerField()
    labels = IntegerField()
    weighted = serializers.BooleanField(help_text="With one over inclusion probabilities.")
    kappa = serializers.ListField(
        child=Number(allow_null=True), help_text="Quadratically weighted; with its interval."
    )
    bias = serializers.ListField(
        child=Number(allow_null=True), help_text="Predicted minus judged; with its interval."
    )
    equal = Number()
    table = serializers.ListField(
        child=serializers.ListField(child=Number()), help_text="Shares, judged by predicted."
    )
    counts = serializers.ListField(child=serializers.ListField(child=IntegerField()))
    topics = MachineTopicRow(many=True, help_text="The worst first.")
    plain = AlphaRow(
        allow_null=True, default=None,
        help_text="Krippendorff's alpha of machine and people, of the judged pairs as they are.",
    )  # fmt: skip
    drawn = AlphaRow(
        allow_null=True, default=None,
        help_text="The same of all pairs of the pool, as the draw lets it be estimated. Null: the "
        "chances are not known.",
    )  # fmt: skip
    alone = AlphaRow(
        allow_null=True, default=None,
        help_text="Of people among themselves, of those of these pairs that two or more judged, as "
        "judged. Null: none is.",
    )  # fmt: skip
    grades = GradeAlphaRow(allow_null=True, default=None)
    batches = BatchAlphaRow(many=True, default=[])
    worth = serializers.DictField(help_text="In judgments, or unsaid and why.")
    findings = serializers.ListField(child=CharField(), help_text="The same in sentences.")


class MachineRow(Row):
    id = IntegerField(source="pk")
    name = CharField()
    endpoint = CharField()
    model = CharField()
    state = serializers.ChoiceField(MachineJudge.State.choices)
    ended = CharField(help_text="Why it asks no more; else empty.")
    calls = IntegerField()
    max_calls = IntegerField()
    cost = Number(help_text="At most; 0 without prices.")
    max_cost = Number(allow_null=True)
    with_schema = serializers.BooleanField()
    document_chars = IntegerField()
    upload = IntegerField(
        source="upload_id", allow_null=True, help_text="The file that its grades came in with."
    )
    created = serializers.DateTimeField()


class MachineVersionRow(Row):
    number = IntegerField(source="prompt.number")
    prompt = CharField(source="prompt.text")
    digest = CharField(
        source="prompt.digest", help_text="Of everything that is the same in all its questions."
    )
    created = serializers.DateTimeField(source="prompt.created")
    answered = IntegerField()
    graded = IntegerField()
    predictions = serializers.ListField(
        child=CharField(), source="names", help_text="Names for rounds, the earliest first."
    )


class MachineAnswerRow(Row):
    topic = CharField(source="topic.topic_id")
    docno = CharField()
    outcome = serializers.ChoiceField(MachineAnswer.Outcome.choices)
    grade = IntegerField(allow_null=True, help_text="Null where the outcome is no grade.")
    reply = CharField(help_text="What came back, as far as it is kept.")
    model = CharField(help_text="As the endpoint names it.")
    tokens_in = IntegerField(allow_null=True)
    tokens_out = IntegerField(allow_null=True)
    cost = serializers.SerializerMethodField(help_text="At most; 0 without prices.")
    tries = IntegerField()
    seconds = Number()
    when = serializers.DateTimeField(source="created")

    def get_cost(self, row: MachineAnswer) -> float:
        return float(row.cost / NANO)


class WhichAnswers(PageQuery):
    version = IntegerField(
        required=False, min_value=1, help_text="Number of the version; else the latest."
    )


class MachineDetailRow(MachineRow):
    prompt = CharField()
    prompt_version = IntegerField()
    prompt_digest = CharField(help_text="Of everything that is the same in all questions.")
    planned = IntegerField(help_text="Pairs to ask about, with those answered.")
    answered = IntegerField()
    graded = IntegerField()
    failures = FailureRow(many=True)
    tokens_in = IntegerField()
    tokens_out = IntegerField()
    predictions = CharField(allow_null=True, help_text="Name for rounds, once it is read.")
    predictions_version = IntegerField(
        allow_null=True, help_text="The version whose grades these are; perhaps not the latest."
    )
    versions = MachineVersionRow(many=True, help_text="Of the prompt, the latest first.")
    agreement = AgreementRow(allow_null=True, help_text="Null until people judged its pairs.")


class Endpoints(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER}

    @extend_schema(responses=EndpointRow(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """What machine judges can be made of, as the administrator declares it."""
        rows = [
            {"name": each.name, "host": each.host, "models": list(each.models)}
            | dict(zip(("price_in", "price_out"), each.prices or (None, None), strict=True))
            for each in machine_rows.endpoints()
        ]
        return Response(EndpointRow(rows, many=True).data)


class Machines(CampaignView):
    section = "Material"
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(MachineRow))
    def get(self, request: Request, slug: str) -> Response:
        """The machine judges of a campaign."""
        pages = Pages()
        rows = pages.paginate_queryset(machine_rows.judges_of(self.campaign), request) or []
        return pages.get_paginated_response(MachineRow(rows, many=True).data)

    @extend_schema(request=MachineBody, responses={201: MachineDetailRow})
    def post(self, request: Request, slug: str) -> Response:
        """Add a machine judge. Nothing is sent before it is started."""
        plan = MachinePlan(**checked(MachineBody, request.data))
        judge = judges.create(campaign=self.campaign, by=self.user, plan=plan)
        return Response(shown(judge), status=201)


class MachineView(CampaignView):
    """A view of one machine judge, found by its id."""

    section = "Material"
    judge: MachineJudge

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        rows = machine_rows.judges_of(self.campaign)
        self.judge = get_object_or_404(rows, pk=kwargs["machine"])


class MachineDetail(MachineView):
    access = {"GET": ORGANIZER, "PATCH": ORGANIZER, "DELETE": ORGANIZER}

    @extend_schema(responses=MachineDetailRow)
    def get(self, request: Request, slug: str, machine: int) -> Response:
        """One machine judge: how far it is, what failed, and how far people agree."""
        return Response(shown(self.judge))

    @extend_schema(request=MachineChange, responses=MachineDetailRow)
    def patch(self, request: Request, slug: str, machine: int) -> Response:
        """Change ceilings and prompt; fields left out stay. Another prompt is another version."""
        given = checked(MachineChange, request.data)
        judges.change(judge=self.judge, by=self.user, chosen=given)
        return Response(shown(self.judge))

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, slug: str, machine: int) -> Response:
        """Remove a machine judge with its answers; predicted grades that came in stay."""
        judges.remove(judge=self.judge, by=self.user)
        return Response(status=204)


class MachineAnswers(MachineView):
    query = WhichAnswers
    access = {"GET": ORGANIZER}

    @extend_schema(responses=page_shape(MachineAnswerRow))
    def get(self, request: Request, slug: str, machine: int) -> Response:
        """What it answered of each pair, by topic and document: to one version of its prompt."""
        number, prompts = self.asked.get("version"), self.judge.prompts
        prompt = get_object_or_404(prompts, number=number) if number else prompts.last()
        pages = Pages()
        found = answers_of(prompt) if prompt else MachineAnswer.objects.none()
        rows = pages.paginate_queryset(found, request) or []
        return pages.get_paginated_response(MachineAnswerRow(rows, many=True).data)


class MachineStart(MachineView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses={202: MachineDetailRow})
    def post(self, request: Request, slug: str, machine: int) -> Response:
        """Have a worker ask, from the best pair without an answer; poll until it has ended."""
        checked(NoBody, request.data)
        judges.start(judge=self.judge, by=self.user)
        return Response(shown(self.judge), status=202)


class MachineStop(MachineView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses={202: MachineDetailRow})
    def post(self, request: Request, slug: str, machine: int) -> Response:
        """Send nothing more; what was answered comes in as predicted grades."""
        checked(NoBody, request.data)
        judges.stop(judge=self.judge, by=self.user)
        return Response(shown(self.judge), status=202)


def shown(judge: MachineJudge) -> dict[str, Any]:
    """A machine judge as answers tell it."""
    standing = machine_rows.standing(judge)
    told = {name: getattr(standing, name) for name in _OF_STANDING}
    said = [found.text for found in findings_on(judge.agreement)]
    versions, upload = versions_of(judge), judge.upload
    told |= {
        "prompt": standing.prompt.text,
        "prompt_version": standing.prompt.number,
        "prompt_digest": standing.prompt.digest,
        "planned": judge.planned,
        "predictions": getattr(getattr(upload, "prediction", None), "name", None),
        "predictions_version": version_of(upload, versions),
        "versions": versions,
        "agreement": judge.agreement | {"findings": said} if judge.agreement else None,
    }
    return dict(MachineRow(judge).data) | dict(_Details(told).data)


_OF_STANDING: tuple[str, ...] = ("answered", "graded", "failures", "tokens_in", "tokens_out")


class _Details(MachineDetailRow):
    """What a detailed answer has beside the line of a list."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        return {name: field for name, field in fields.items() if name not in MachineRow().fields}

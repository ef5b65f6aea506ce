"""How good the labels are that estimates rest on: the numbers of the tab *Quality*."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from estimation import report_data, selectors
from estimation.api.results import RoundQuery, round_asked_for
from estimation.api.serializers import EstimateSetRow
from estimation.exclusion_figures import ExclusionFigure
from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import Number

CharField = serializers.CharField
IntegerField = serializers.IntegerField
Row = serializers.Serializer[Any]


def numbers(**given: Any) -> serializers.ListField:
    return serializers.ListField(child=Number(allow_null=True), **given)


INTERVAL = "Value, and the ends of its 95 % interval; null: not known."


class AlphaRow(Row):
    nominal = numbers(help_text=INTERVAL)
    ordinal = numbers(help_text=INTERVAL)
    interval = numbers(help_text=INTERVAL)
    pairs = IntegerField(help_text="With two labels or more.")
    labels = IntegerField(help_text="Of these pairs.")
    cautions = serializers.ListField(
        child=CharField(),
        help_text="Why it cannot be relied on yet: none, constant, few (below 30 pairs), skewed.",
    )


class GradeAlphaRow(Row):
    again = numbers(help_text="Of the labels beside one of a grade, the share that is of it too.")
    alpha = numbers(help_text="Of each grade against all others, as judged.")
    drawn = numbers(
        allow_null=True, default=None,
        help_text="The same, each pair weighed by one over its chance; null: not known.",
    )  # fmt: skip


class ByGradeRow(GradeAlphaRow):
    table = serializers.ListField(
        child=numbers(), help_text="Of labels beside one of the row's grade, the share of each."
    )
    counts = serializers.ListField(
        child=serializers.ListField(child=IntegerField()),
        help_text="The same in comparisons of two people.",
    )


class TopicAlphaRow(Row):
    topic = CharField()
    alpha = Number(
        allow_null=True, default=None, help_text="Ordinal, as judged; null: one grade only."
    )
    drawn = Number(
        allow_null=True, default=None,
        help_text="Of all pairs of the topic, as the draw lets it be estimated; null: not known.",
    )  # fmt: skip
    pairs = IntegerField()


class BatchAlphaRow(Row):
    batch = IntegerField()
    alpha = Number(allow_null=True, help_text="Ordinal, as judged.")
    pairs = IntegerField()


class CoupleRow(Row):
    first = CharField()
    second = CharField()
    pairs = IntegerField()
    linear = Number(allow_null=True, help_text="Kappa with linear weights.")
    quadratic = Number(allow_null=True, help_text="Kappa with quadratic weights.")
    drawn = Number(
        allow_null=True,
        help_text="Quadratic, each pair weighed by one over its chance; null: not known.",
    )
    counts = serializers.ListField(
        child=serializers.ListField(child=IntegerField()),
        help_text="Pairs by the grade of the first (row) and of the second (column).",
    )


class AssessorQualityRow(Row):
    name = CharField()
    labels = IntegerField()
    shared = IntegerField(help_text="Pairs that somebody else judged too.")
    same = Number(allow_null=True, help_text="Share of the same grades. Null: fewer than 5 pairs.")
    bias = numbers(
        help_text="Grades above the mean of the others, for the same pairs, with its interval; "
        "nulls: not known, or of preferences."
    )
    spread = Number(allow_null=True, help_text="Standard deviation of that.")
    untold = CharField(
        allow_blank=True,
        help_text="Why the model does not tell of them: few (below 20 shared pairs), one (other "
        "person), two (people in all); else empty.",
    )
    competence = Number(
        allow_null=True, help_text="Chance to say the true grade, by Dawid and Skene's model."
    )
    informed = Number(
        allow_null=True, help_text="What their grade tells of the true one, from 0 to 1."
    )
    confusion = serializers.ListField(
        child=numbers(), allow_null=True,
        help_text="Chance to say a grade (column) where another is true (row).",
    )  # fmt: skip


class OtherwiseRow(Row):
    """The goal's measure, were labels put together in another way. No estimates."""

    measure = CharField()
    runs = serializers.ListField(child=CharField())
    values = serializers.DictField(
        child=numbers(),
        help_text="Of each run: mean (the estimate), majority, likely, adjusted, and with"
        " senior grades (senior) or without them (people), whichever does not count.",
    )
    lower = serializers.BooleanField(help_text="whether lower values are better")
    tau = serializers.DictField(
        child=Number(allow_null=True), help_text="Kendall's tau with the order by the mean."
    )


class FindingRow(Row):
    kind = CharField(help_text="sure, open, limit or note.")
    text = CharField()


class NoiseOfRun(Row):
    run = CharField()
    share = Number(help_text="Of the variance of its value.")
    narrower = Number(help_text="By which part its interval would be narrower without.")


class NoiseRow(Row):
    """What people who differ over the same pair add to intervals, and what lessens it."""

    measure = CharField()
    lines = NoiseOfRun(many=True, help_text="The largest share first.")
    findings = FindingRow(many=True)


class VerdictsRow(Row):
    count = IntegerField()
    named = serializers.ListField(
        child=serializers.ListField(child=CharField()),
        help_text="The better and the worse run, of at most 20.",
    )


class ChangedVerdictsRow(Row):
    appear = VerdictsRow(help_text="Surely better then, and not now.")
    fall = VerdictsRow(help_text="Surely better now, and not then.")
    turn = VerdictsRow(help_text="Surely better now, and surely worse then.")


class MovedRow(Row):
    measure = CharField()
    runs = serializers.ListField(child=CharField())
    lower = serializers.BooleanField(help_text="whether lower values are better")
    values = numbers(help_text="Of each run, as estimated; null: not known.")
    half_widths = numbers(help_text="The longer side of its interval; null: not known, or endless.")
    otherwise = numbers(help_text="If the excluded work counted.")
    verdicts = ChangedVerdictsRow()


class WayBackRow(Row):
    ground = CharField(allow_blank=True, help_text="Empty: all excluded work.")
    people = IntegerField()
    labels = IntegerField(help_text="That would count, of the batches that estimates rest on.")
    measures = MovedRow(many=True)


class WithoutExclusionsRow(Row):
    """How far the numbers move without the exclusions. No estimates."""

    known = serializers.BooleanField(
        help_text="Whether a worker has looked at the exclusions as they are now."
    )
    findings = FindingRow(many=True)
    ways = WayBackRow(
        many=True, help_text="All first and, where there are several grounds, that of each."
    )


class LabelQualityRow(Row):
    round = IntegerField()
    estimate_set = EstimateSetRow(allow_null=True, help_text="Whose labels they are.")
    findings = FindingRow(many=True)
    labels = IntegerField(default=0)
    pairs = IntegerField(default=0)
    plain = AlphaRow(allow_null=True, default=None, help_text="Of the judged pairs as they are.")
    drawn = AlphaRow(
        allow_null=True, default=None,
        help_text="Weighted by one over the chances of the draw: of all pairs of the pool. Null: "
        "the chances are not known.",
    )  # fmt: skip
    grades = ByGradeRow(allow_null=True, default=None)
    topics = TopicAlphaRow(many=True, default=[], help_text="The least agreed on first.")
    batches = BatchAlphaRow(many=True, default=[])
    couples = CoupleRow(many=True, default=[], help_text="With ten pairs in common or more.")
    people = AssessorQualityRow(many=True, default=[])
    otherwise = OtherwiseRow(allow_null=True, default=None)
    noise = NoiseRow(
        allow_null=True, help_text="Null: no pair has two labels, or too little is known."
    )
    exclusions = WithoutExclusionsRow(allow_null=True, help_text="Null: nobody's work is excluded.")


class LabelQuality(CampaignView):
    section = "Results"
    query = RoundQuery
    access = {"GET": ORGANIZER}

    @extend_schema(responses=LabelQualityRow)
    def get(self, request: Request, slug: str) -> Response:
        """How far the labels agree, how good each assessor is, and what hangs on the mean.

        Worked out with the estimates, from the same labels. Nothing of it goes into them.
        """
        row = round_asked_for(self.campaign, self.asked)
        shown = selectors.latest_estimates(row)
        figure = report_data.quality_of(row, shown) if shown else None
        told = [*figure.findings, *figure.otherwise_findings] if figure else []
        found = selectors.label_quality(shown) if shown else {}
        answer = {"round": row.number, "estimate_set": shown, "findings": told}
        noise = report_data.noise_of(row, shown, row.measure, figure) if shown else None
        without = report_data.without_exclusions(row, shown) if shown else None
        beside = {"noise": noise, "exclusions": without and _without(without, found)}
        return Response(LabelQualityRow({**found, **answer, **beside}).data)


def _without(figure: ExclusionFigure, found: dict[str, Any]) -> dict[str, Any]:
    ways = found["excluded"]["ways"] if figure.known else []
    return {"known": figure.known, "findings": figure.findings, "ways": ways}

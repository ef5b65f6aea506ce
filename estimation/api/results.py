"""Estimates, rankings and reports."""

from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from estimation import listings, selectors
from estimation.api.rankings import RankingRow
from estimation.api.rounds import round_of
from estimation.api.serializers import EstimatesRow, PseudonymRow, ReportsRow
from estimation.conclusions import pair_states, why_open
from estimation.core.arrays import nearest
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.forecasts import forecast_facts
from estimation.models import Estimate, EstimateSet, Report, Round
from estimation.numbers import estimate_lines, unknown_differences
from estimation.services import files, reports
from estimation.services.report_files.table import REPORTS
from judging import selectors as judging
from judging.api.base import ORGANIZER, AnyAccept, CampaignView
from judging.api.fields import Body, NoBody, OneOf, Query, Text, Whole, checked
from judging.models import Campaign
from judging.services import pseudonyms


class RoundQuery(Query):
    round = serializers.IntegerField(
        required=False, min_value=1, help_text="Its number; left out: the last one drawn."
    )


class MeasureQuery(RoundQuery):
    measure = Text(required=False, max_length=60, help_text="One of the round's measures.")

    def validate_measure(self, text: str) -> str:
        try:
            return str(parse_measure(text))
        except MeasureError as error:
            raise serializers.ValidationError(str(error)) from None


class AfterBatchesQuery(MeasureQuery):
    estimator = OneOf(Estimate.Estimator.choices, required=False)
    batches = serializers.IntegerField(
        required=False, min_value=1,
        help_text="The estimates after so many batches; left out: the latest.",
    )  # fmt: skip


class Estimates(CampaignView):
    section = "Results"
    query = AfterBatchesQuery
    access = {"GET": ORGANIZER}

    @extend_schema(responses=EstimatesRow)
    def get(self, request: Request, slug: str) -> Response:
        """Every run's value of every measure, with its interval."""
        asked = self.asked
        row = round_asked_for(self.campaign, asked)
        shown = _estimate_set(row, asked.get("batches"))
        rows: QuerySet[Estimate] = Estimate.objects.filter(estimate_set=shown)
        for name in ("measure", "estimator"):
            if name in asked:
                rows = rows.filter(**{name: asked[name]})
        lines = estimate_lines(row, shown, rows) if shown else []
        answer = {"round": row.number, "estimate_set": shown, "estimates": lines}
        return Response(EstimatesRow(answer).data)


class RankingQuery(MeasureQuery):
    pairs = serializers.BooleanField(
        default=False, help_text="Whether to add the comparisons of every two runs."
    )


class Ranking(CampaignView):
    section = "Results"
    query = RankingQuery
    access = {"GET": ORGANIZER}

    @extend_schema(responses=RankingRow)
    def get(self, request: Request, slug: str) -> Response:
        """The runs tier by tier, with intervals of value and rank, as the live page has it.

        Inside a tier they stand by possible ranks, then by tag. The ranking is empty before the
        first batch is complete.
        """
        asked = self.asked
        row = round_asked_for(self.campaign, asked)
        measure = asked.get("measure", row.measure)
        table = selectors.ranking_table(row, measure)
        shown = table.estimate_set if table else None
        pairs = table.pairs if table and asked["pairs"] else None
        answer = {
            "round": row.number,
            "measure": measure,
            "measures": selectors.measures_of(row),
            "supported": table.supported if table else True,
            "estimate_set": shown,
            "ranking": table.rows if table else [],
            "judged_again": selectors.judged_again(row) if row.is_drawn else None,
            "forecast": forecast_facts(row, shown, measure) if shown else None,
            "as_good_as_best": table.pairs.enough if table and table.pairs else [],
            "pairs": _compared(row, shown, pairs) if shown and pairs else None,
            "unknown_differences": unknown_differences(pairs, table.purpose)
            if table and pairs
            else None,
        }
        return Response(RankingRow(answer).data)


def _compared(row: Round, shown: EstimateSet, pairs: selectors.Pairwise) -> dict[str, Any]:
    states = pair_states(row, pairs)
    return {
        **vars(pairs),
        "shown_margin": pairs.shown_margin,
        "equivalent": pairs.equivalent.astype(int),
        "states": states.state,
        "more": states.more,
        "why_open": why_open(row, shown, pairs),
    }


class ReportBody(Body):
    round = Whole(min_value=1, required=False, help_text="Left out: the last one drawn.")


class Reports(CampaignView):
    section = "Results"
    query = RoundQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=ReportsRow)
    def get(self, request: Request, slug: str) -> Response:
        """The report files of a round, and how far the worker is with the next ones."""
        row = round_asked_for(self.campaign, self.asked)
        return Response(_reports(row))

    @extend_schema(request=ReportBody, responses={202: ReportsRow})
    def post(self, request: Request, slug: str) -> Response:
        """Have the worker make the reports of the latest estimates."""
        row = round_asked_for(self.campaign, checked(ReportBody, request.data))
        reports.request(row=row, by=self.user)
        return Response(_reports(row), status=202)


class ReportNames(CampaignView):
    section = "Results"
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=PseudonymRow(many=True))
    def post(self, request: Request, slug: str) -> Response:
        """Who is behind the pseudonyms of report files; the audit log has that you asked."""
        checked(NoBody, request.data)
        known = pseudonyms.reveal(campaign=self.campaign, by=self.user)
        return Response(PseudonymRow(known, many=True).data)


class ReportFile(CampaignView):
    section = "Results"
    access = {"GET": ORGANIZER}
    content_negotiation_class = AnyAccept

    @extend_schema(responses={(200, "*/*"): OpenApiResponse(OpenApiTypes.BINARY)})
    def get(self, request: Request, slug: str, report: int) -> FileResponse:
        """Download a report file."""
        rows = Report.objects.filter(estimate_set__round__campaign=self.campaign, refused="")
        row = get_object_or_404(rows.select_related("estimate_set__round"), pk=report)
        path = files.path_of(row.file)
        if not path.exists():
            raise exceptions.NotFound("The file is missing from the server's storage.")
        return FileResponse(
            path.open("rb"),
            as_attachment=True,
            filename=f"{slug}-round{row.estimate_set.round.number}-{row.name}",
            content_type=REPORTS[row.name].content_type,
        )


def round_asked_for(campaign: Campaign, asked: dict[str, Any]) -> Round:
    """The round that was asked for. A measure it does not have is an error."""
    number = asked.get("round")
    row = selectors.current_round(campaign) if number is None else round_of(campaign, number)
    if row is None:
        raise exceptions.NotFound("There is no round yet.")
    measure, there = asked.get("measure", row.measure), selectors.measures_of(row)
    if measure not in there:
        told = f"Expected one of {', '.join(there)}, not {measure!r}"
        raise serializers.ValidationError({"measure": [f"{told}{nearest(measure, there)}."]})
    return row


def _estimate_set(row: Round, batches: int | None) -> EstimateSet | None:
    if batches is None:
        return selectors.latest_estimates(row)
    found = row.estimate_sets.filter(batches=batches).last()
    if found is None:
        raise exceptions.NotFound("There are no estimates after so many batches.")
    return found


def _reports(row: Round) -> dict[str, Any]:
    every = Report.objects.filter(estimate_set__round=row).select_related("estimate_set__round")
    made, latest = every.filter(refused=""), selectors.latest_estimates(row)
    answer = {
        "round": row.number,
        "job": judging.job_of("report", row.pk),
        "reports": made.order_by("-estimate_set__number", "name"),
        "refused": listings.refused_reports(latest) if latest else [],
    }
    return dict(ReportsRow(answer).data)

"""What answers of the estimation side look like."""

from typing import Any

from rest_framework import serializers

from estimation.api.options import answers
from estimation.conclusions import STATES
from estimation.models import Estimate, EstimateSet, Round
from estimation.services.report_files.table import PURPOSES, REPORTS
from estimation.unknown import CHOICES, name_of
from estimation.validity import KINDS, validity_of
from judging.api.fields import Number
from judging.api.serializers import JobRow
from judging.models import Batch

CharField = serializers.CharField
IntegerField = serializers.IntegerField
DateTimeField = serializers.DateTimeField
Row = serializers.Serializer[Any]


class RunRow(Row):
    tag = CharField()
    topics = IntegerField()
    lines = IntegerField()
    warnings = IntegerField()
    upload = IntegerField()
    created = DateTimeField()


class JobsRow(Row):
    """The round's work in the background; null: never asked for."""

    preview = JobRow(allow_null=True)
    draw = JobRow(allow_null=True)
    recompute = JobRow(allow_null=True)
    plan_batch = JobRow(allow_null=True, help_text="Of an active round.")
    report = JobRow(allow_null=True)


class FailedWorkRow(Row):
    """Failed work; `jobs` of rounds, reports and decisions show it as well."""

    name = CharField(help_text="What it was, in words.")
    kind = CharField(source="job.kind")
    round = IntegerField(allow_null=True, help_text="Number of the round that it was for.")
    job = JobRow()


class RoundRow(Row):
    number = IntegerField()
    state = serializers.ChoiceField(Round.State.choices)
    pool = CharField(
        source="pool.digest", default=None, allow_null=True, help_text="Null until it is drawn."
    )
    created = DateTimeField()
    drawn = DateTimeField(allow_null=True)
    jobs = JobsRow()

    def get_fields(self) -> dict[str, Any]:
        """What there is to say of a round, the choices after its state."""
        said = super().get_fields()
        first = {name: said.pop(name) for name in ("number", "state")}
        return first | answers() | said


class RoundDetailRow(RoundRow):
    preview = serializers.DictField(
        help_text="What the design would buy; empty until worked out. Its design names the choices "
        "and the material that it was worked out for."
    )


class RoundBatchRow(Row):
    number = IntegerField()
    state = serializers.ChoiceField(Batch.State.choices)
    pairs = IntegerField()
    finished = IntegerField()
    opened = DateTimeField(allow_null=True)
    completed = DateTimeField(allow_null=True)


class RoundProgressRow(Row):
    batches = RoundBatchRow(many=True)
    used = IntegerField(help_text="Complete batches in a row: what estimates rest on.")
    pairs = IntegerField()
    finished = IntegerField()
    stuck = IntegerField(help_text="Pairs that wait for a decision.")
    workers = IntegerField(
        source="workers.serving", help_text="Workers seen lately that recompute estimates."
    )
    recompute = JobRow(allow_null=True)


class ValidityRow(Row):
    """At which looks intervals, verdicts and possible ranks hold."""

    kind = serializers.ChoiceField(
        KINDS,
        help_text="anytime: at all planned looks at once, so that one may look and stop at any. "
        "fixed-time: at the end that was planned before the draw.",
    )
    look = IntegerField(allow_null=True, help_text="Which look it is; null: fixed-time.")
    looks = IntegerField(
        allow_null=True,
        help_text="How many were planned, one after each batch; null: estimates of an earlier "
        "version.",
    )
    why = CharField(help_text="The same in a sentence.")

    def to_representation(self, instance: EstimateSet) -> dict[str, Any]:
        found: dict[str, Any] = super().to_representation(validity_of(instance))
        return found


class EstimateSetRow(Row):
    number = IntegerField()
    batches = IntegerField(help_text="Complete batches that it rests on.")
    earlier = serializers.DictField(
        child=IntegerField(),
        help_text="Complete batches of rounds that are estimated together with it, by number.",
    )
    intervals = serializers.DictField(
        child=serializers.ChoiceField(Round.Interval.choices),
        help_text="Kind of each measure's intervals, verdicts and possible ranks.",
    )
    validity = ValidityRow(source="*")
    pairs = IntegerField(source="pair_count")
    labels = IntegerField(source="label_count")
    decided = IntegerField(source="decided_count")
    noise_measured = serializers.BooleanField()
    left_out = serializers.ListField(
        child=CharField(), help_text="Runs that joined later and are not in these estimates."
    )
    relevant_found = Number(
        allow_null=True, help_text="Median per topic; null without AP, nDCG and Rprec."
    )
    digest = CharField(help_text="Of every number; a recompute from scratch gives the same.")
    label_digest = CharField()
    provenance = serializers.DictField(help_text="Versions it was made with.")
    created = DateTimeField()


class UnknownRow(Row):
    """Why something is not known."""

    unknown = serializers.ChoiceField(
        CHOICES, allow_null=True,
        help_text="Null: known. Else why it is not: too_little was judged that tells, or (AP, "
        "nDCG, Rprec) few_relevant documents were found. There is then neither value nor rank.",
    )  # fmt: skip
    unknown_why = CharField(
        allow_null=True, help_text="The reason in a sentence, with what would mend it."
    )


class EstimateRow(UnknownRow):
    run = CharField()
    measure = CharField()
    estimator = serializers.ChoiceField(Estimate.Estimator.choices)
    primary = serializers.BooleanField(help_text="Whether rankings use this estimator.")
    value = Number(allow_null=True, help_text="Null: not known.")
    se = Number(allow_null=True)
    df = Number(allow_null=True, help_text="Degrees of freedom; null: infinite, or not known.")
    low = Number(allow_null=True)
    high = Number(allow_null=True)
    support = Number(help_text="Below 1 the value is a lower bound only.")
    sample_size = Number(allow_null=True, help_text="Effective sample size.")
    late = serializers.BooleanField(help_text="Accepted after the round was drawn.")
    rank = IntegerField(
        allow_null=True,
        help_text="Among the runs whose value is known; null for the others, and for estimators "
        "that no ranking uses.",
    )
    rank_low = IntegerField(allow_null=True)
    rank_high = IntegerField(allow_null=True)


class EstimatesRow(Row):
    round = IntegerField()
    estimate_set = EstimateSetRow(allow_null=True, help_text="Null: no batch is complete yet.")
    estimates = EstimateRow(many=True)


class RankedRow(UnknownRow):
    run = CharField(source="tag")
    tier = IntegerField(
        allow_null=True,
        help_text="Every run of a tier is surely better than every run of the tiers below; inside "
        "a tier no order is certain. Null: the value is not known.",
    )
    first = IntegerField(allow_null=True, help_text="The places that its tier takes up, from …")
    last = IntegerField(allow_null=True, help_text="… to.")
    rank = IntegerField(
        allow_null=True,
        help_text="Place by estimate, among the runs whose value is known; inside a tier it claims "
        "nothing.",
    )
    rank_low = IntegerField()
    rank_high = IntegerField()
    value = Number(allow_null=True, help_text="Null: not known.")
    se = Number(allow_null=True)
    low = Number(allow_null=True)
    high = Number(allow_null=True)
    support = Number()
    sample_size = Number(allow_null=True)
    estimator = serializers.ChoiceField(Estimate.Estimator.choices)
    late = serializers.BooleanField(help_text="Accepted after the round was drawn.")
    as_good_as_leader = serializers.BooleanField()
    moved = IntegerField(
        allow_null=True,
        help_text="Ranks gained for sure since the estimates before: 0 unless the possible ranks "
        "of then and now exclude each other. Null: new.",
    )
    ranks_before = serializers.ListField(
        child=IntegerField(), allow_null=True,
        help_text="Lowest and highest possible rank in the estimates before; null: new.",
    )  # fmt: skip


class Square(serializers.ListField):
    """A square of numbers, a row for each run; null where one is undefined."""

    child = serializers.ListField(child=Number(allow_null=True))

    def to_representation(self, data: Any) -> list[Any]:
        number = Number()
        return [[number.to_representation(value) for value in row] for row in data.tolist()]


class Names(serializers.ListField):
    """A square of names of reasons, a row for each run; null where nothing is unknown."""

    child = serializers.ListField(child=serializers.ChoiceField(CHOICES, allow_null=True))

    def to_representation(self, data: Any) -> list[Any]:
        return [[name_of(reason) for reason in row] for row in data.tolist()]


class StateNames(serializers.ListField):
    """A square of states, a row for each run."""

    child = serializers.ListField(child=serializers.ChoiceField(["", *STATES]))

    def to_representation(self, data: Any) -> list[Any]:
        states: list[Any] = data.tolist()
        return states


class UnknownDifferencesRow(Row):
    """Differences that are not known for the same reason."""

    unknown = serializers.ChoiceField(CHOICES)
    unknown_why = CharField(help_text="The reason in a sentence, with what would mend it.")
    pairs = serializers.ListField(child=serializers.ListField(child=CharField()))


class PairwiseRow(Row):
    """Comparisons of every two runs, in the order of ``runs``."""

    runs = serializers.ListField(child=CharField())
    verdicts = Square(help_text="1: the row's run is surely better; -1: surely worse; 0: open.")
    unknown = Names(help_text="Why a difference is not known; its verdict is 0 then.")
    adjusted_p = Square()
    margin = Square(
        source="shown_margin",
        help_text="Half width of the 95 % interval of the difference; null where it is not known.",
    )
    covariance = Square()
    equivalent = Square(
        help_text="1 where the runs surely differ by no more than what the round calls negligible.",
    )
    states = StateNames(
        help_text="What may be concluded: decided (as in verdicts), equivalent, go on (foretold to "
        "be one of these within the budget), out of reach with this budget, open (nothing is "
        "foretold), unknown. Empty on the diagonal.",
    )
    more = Square(
        help_text="How many more judgments are foretold to settle it; null: none, or no number."
    )


class ReachedRow(Row):
    """What a budget reaches, as expected before anything is judged."""

    budget = Number()
    work = Number(help_text="Distinct pairs, or documents of average length.")
    half_width = Number(allow_null=True, help_text="Of the middle run, as the prior expects.")
    half_width_most = Number(allow_null=True, help_text="The same if much more is relevant.")
    decided_least = Number(help_text="Share of the differences between two runs, at least …")
    decided_most = Number(help_text="… and at most.")


class ReachRow(Row):
    """Which budget reaches what is wanted."""

    target = CharField(allow_null=True)
    wanted = Number(allow_null=True)
    hoped = IntegerField(
        allow_null=True, help_text="Enough if all is as the prior expects; null: out of reach."
    )
    careful = IntegerField(
        allow_null=True, help_text="Enough as well if much more is relevant, or runs differ less."
    )
    budget = IntegerField(allow_null=True, help_text="The one to take; null: out of reach.")
    hours = Number(allow_null=True, help_text="That it takes.")
    reached = ReachedRow(allow_null=True, help_text="What it reaches.")
    text = CharField()


class ForetoldRow(Row):
    """What is expected after some more judgments; the first is the present."""

    batches = IntegerField(allow_null=True, help_text="Null: beyond the budget.")
    pairs = Number(help_text="Judged pairs, as expected.")
    half_width = Number(help_text="Of the middle run.")
    decided = Number(help_text="Differences between two runs that have a verdict.")
    best = Number(help_text="Chance that one run is surely better than all others.")
    settled = Number(
        allow_null=True,
        help_text="Differences decided or negligible; null: all matter.",
    )
    enough = Number(
        allow_null=True,
        help_text="Chance that a run is surely as good as the best; null as above.",
    )


class ProspectRow(Row):
    """Whether something is decided, or will be."""

    state = serializers.ChoiceField(STATES[:4])
    judgments = IntegerField(
        allow_null=True, help_text="How many more; null: not even the whole pool will do."
    )
    least = IntegerField(
        allow_null=True, help_text="One in ten that fewer will do; of the best run only."
    )
    most = IntegerField(allow_null=True, help_text="One in ten that it takes more.")
    text = CharField()


class ForecastRow(Row):
    """What more judgments will bring, from those so far; earlier forecasts stay as they were."""

    batches = IntegerField(help_text="Complete batches that it rests on.")
    differences = IntegerField(help_text="Between two runs.")
    share_decided = Number(help_text="Of the differences: so many verdicts decide a ranking.")
    steps = ForetoldRow(many=True)
    best = ProspectRow(help_text="Of the best run.")
    ranking = ProspectRow(help_text="Of the ranking.")


class RankingRow(Row):
    round = IntegerField()
    measure = CharField()
    measures = serializers.ListField(child=CharField(), help_text="What can be asked for.")
    supported = serializers.BooleanField(help_text="False: values are lower bounds only.")
    estimate_set = EstimateSetRow(allow_null=True, help_text="Null: no batch is complete yet.")
    ranking = RankedRow(many=True)
    as_good_as_best = serializers.ListField(
        child=CharField(),
        help_text="Runs that are surely the best, or worse by no more than the round calls "
        "negligible.",
    )
    forecast = ForecastRow(
        allow_null=True, help_text="Of the round's own measure, where there is a forecast."
    )
    pairs = PairwiseRow(allow_null=True, help_text="Only with ?pairs=1.")
    unknown_differences = UnknownDifferencesRow(
        many=True, allow_null=True, help_text="Why differences are not known; with ?pairs=1."
    )


class ReportPurpose(serializers.CharField):
    """The sentence of a kind of report, by its name."""

    def to_representation(self, value: Any) -> str:
        return REPORTS[value].purpose


class ReportRow(Row):
    id = IntegerField(source="pk")
    round = IntegerField(source="estimate_set.round.number")
    estimate_set = IntegerField(source="estimate_set.number")
    batches = IntegerField(source="estimate_set.batches")
    name = serializers.ChoiceField(PURPOSES)
    purpose = ReportPurpose(source="name", help_text="What the file is good for.")
    size = IntegerField(help_text="Bytes.")
    digest = CharField(help_text="SHA-256.")
    created = DateTimeField()


class ReportsRow(Row):
    round = IntegerField()
    job = JobRow(allow_null=True)
    reports = ReportRow(many=True, help_text="Of the latest estimates first.")

"""What answers of the estimation side look like."""

from typing import Any

from rest_framework import serializers

from estimation.api.options import answers
from estimation.endings import HAND, end_in_words, ended_at, still_because
from estimation.models import Estimate, EstimateSet, Round
from estimation.services import choices
from estimation.services.report_files.table import PURPOSES, REPORTS
from estimation.unknown import CHOICES
from estimation.validity import KINDS, validity_of
from judging.api.fields import Number
from judging.api.serializers import JobRow
from judging.models import Batch

CharField = serializers.CharField
IntegerField = serializers.IntegerField
DateTimeField = serializers.DateTimeField
Row = serializers.Serializer[Any]


class RunRow(Row):
    id = IntegerField()
    tag = CharField()
    topics = IntegerField()
    lines = IntegerField()
    warnings = IntegerField()
    upload = IntegerField()
    team = CharField()
    withdrawn = DateTimeField(allow_null=True, help_text="Since when it is left out of rankings.")
    created = DateTimeField()


class RoundWorkRow(Row):
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


class StoppingRow(Row):
    """The end that a rule or an organizer has made; null while neither has."""

    rule = serializers.ChoiceField([*Round.Stop.choices, (HAND, "Ended by its organizer")])
    batch = IntegerField(help_text="After which it came true, …")
    batches = IntegerField(help_text="… of so many that were planned.")
    saved = IntegerField(
        allow_null=True, help_text="Judgments that nobody has to give; null: not ended yet."
    )
    ended = DateTimeField(allow_null=True, help_text="Null: not ended yet.")
    text = CharField()

    def get_attribute(self, instance: Round) -> dict[str, Any] | None:
        found = instance.stopping
        said = {"saved": None, **found, "ended": ended_at(instance)}
        return said | {"text": end_in_words(instance)} if found else None


class PaceRow(Row):
    """What a batch of a round that keeps to hours was planned by."""

    batch = IntegerField()
    judgments = IntegerField(help_text="That count, of the batches before it, …")
    timed = IntegerField(help_text="… and those of which a time is known.")
    seconds = Number(help_text="Of a judgment; what was assumed counts as much as two of them.")
    hours = Number(help_text="That the round keeps to.")
    used = Number(help_text="Hours, before this batch.")
    budget = Number(help_text="Pairs that the hours paid for then, in all.")
    expected = Number(help_text="Pairs of all batches, as this one was planned.")


class RoundRow(Row):
    number = IntegerField()
    state = serializers.ChoiceField(Round.State.choices)
    pool = CharField(
        source="pool.digest", default=None, allow_null=True, help_text="Null until it is drawn."
    )
    created = DateTimeField()
    drawn = DateTimeField(allow_null=True)
    paused = DateTimeField(
        allow_null=True, help_text="Since when none of its batches is handed out."
    )
    stands_still = serializers.SerializerMethodField(
        help_text="Why nobody is handed anything of it though it is drawn and has not ended: it is "
        "paused, or the campaign is. Empty: somebody is."
    )
    stopping = StoppingRow(allow_null=True)
    paces = PaceRow(
        many=True, help_text="Of a round that keeps to hours, by batch, from the second one on."
    )
    jobs = RoundWorkRow()

    def get_stands_still(self, row: Round) -> str:
        return still_because(row)

    def get_fields(self) -> dict[str, Any]:
        """What there is to say of a round, the choices after its state."""
        said = super().get_fields()
        first = {name: said.pop(name) for name in ("number", "state")}
        return first | answers() | said


class RoundDetailRow(RoundRow):
    cannot_be_drawn = serializers.SerializerMethodField(
        help_text="Of a draft that names a run which was withdrawn since: what to do. Else null."
    )

    def get_cannot_be_drawn(self, row: Round) -> str | None:
        return (None if row.is_drawn else choices.withdrawn_choice(row)) or None

    preview = serializers.DictField(
        help_text="What the design would buy; empty until worked out. Its design names the choices "
        "and the material that it was worked out for. Of a round that learns its half widths and "
        "difference are the wide ends of ranges, beside half_width_least and difference_least."
    )


class RoundBatchRow(Row):
    number = IntegerField()
    state = serializers.ChoiceField(Batch.State.choices, help_text="held: its round pauses.")
    pairs = IntegerField()
    finished = IntegerField()
    opened = DateTimeField(allow_null=True)
    completed = DateTimeField(allow_null=True)


class RoundProgressRow(Row):
    batches = RoundBatchRow(many=True)
    used = IntegerField(help_text="Complete batches in a row: what estimates rest on.")
    pairs = IntegerField()
    finished = IntegerField()
    stuck = IntegerField(help_text="Pairs of the campaign that wait for a decision.")
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
    ratio_bias = serializers.DictField(
        child=Number(),
        help_text="What was taken off values by AP, nDCG and Rprec for their bias, on average over "
        "runs, by measure; empty where nothing is known, and in estimates of earlier versions.",
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
    support = Number(
        help_text="Below 1 part of what counts is out of reach, and taken for not relevant: a sum "
        "of gains is then a lower bound only, a ratio may be off either way."
    )
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


class ReachedRow(Row):
    """What a budget reaches, as expected before anything is judged."""

    budget = Number()
    work = Number(
        help_text="Distinct pairs, or documents of average length, and the reading of topics, as "
        "many as take as long."
    )
    half_width = Number(
        allow_null=True,
        help_text="Of the middle run, as the prior expects; of a round that learns, "
        "the narrowest that was played.",
    )
    half_width_most = Number(
        allow_null=True,
        help_text="The same if much more is relevant; of a round that learns, the widest.",
    )
    decided_least = Number(help_text="Share of the differences between two runs, at least …")
    decided_most = Number(help_text="… and at most.")
    best_least = Number(help_text="Chance that the best two runs are told apart, at least …")
    best_most = Number(help_text="… and at most.")
    pairs = Number(default=0.0, help_text="Distinct pairs alone, without the reading of topics.")


class KnownNowRow(Row):
    """What is known already of the measure of a drafted round."""

    round = IntegerField(help_text="Whose latest estimates are the narrowest.")
    batches = IntegerField(help_text="That these rest on.")
    half_width = Number(help_text="Of the middle one of the runs that have a value there.")


class ReachRow(Row):
    """Which budget reaches what is wanted."""

    target = CharField(allow_null=True)
    wanted = Number(allow_null=True)
    hoped = IntegerField(
        allow_null=True,
        help_text="Enough if all is as the prior expects, or at best for a round that learns; "
        "null: out of reach.",
    )
    careful = IntegerField(
        allow_null=True, help_text="Enough as well if much more is relevant, or runs differ less."
    )
    budget = IntegerField(allow_null=True, help_text="The one to take; null: out of reach.")
    hours = Number(allow_null=True, help_text="That it takes.")
    reached = ReachedRow(allow_null=True, help_text="What it reaches.")
    text = CharField()
    known = KnownNowRow(
        allow_null=True, help_text="Before this round; null where it was not asked or nothing is."
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


class RefusedReportRow(Row):
    name = serializers.ChoiceField(PURPOSES)
    why = CharField(source="refused", help_text="Why there is no such file.")


class PseudonymRow(Row):
    pseudonym = CharField(help_text="As report files have it.")
    username = CharField()
    name = CharField(help_text="In full; it may be empty.")


class ReportsRow(Row):
    round = IntegerField()
    job = JobRow(allow_null=True)
    reports = ReportRow(many=True, help_text="Of the latest estimates first.")
    refused = RefusedReportRow(
        many=True, help_text="Files that there are not of the latest estimates."
    )

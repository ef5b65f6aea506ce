"""What the ranking looks like as an answer: runs, pairs of runs, and what is foretold."""

from typing import Any

from rest_framework import serializers

from estimation.api.serializers import EstimateSetRow, UnknownRow
from estimation.conclusions import FORETOLD, STATES
from estimation.models import Estimate
from estimation.unknown import CHOICES, name_of
from judging.api.fields import Number

CharField = serializers.CharField
IntegerField = serializers.IntegerField
Row = serializers.Serializer[Any]


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
    as_good_as_leader = serializers.BooleanField(
        help_text="Its value is known, and no run is surely better: it may be the best."
    )
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
        "be one of these within the budget), out of reach with this budget, stopped (the round "
        "ended early, before it was one of these), open (see why_open), unknown. Empty on the "
        "diagonal.",
    )
    more = Square(
        help_text="How many more judgments are foretold to settle it, or would have been needed, "
        "of a round that has stopped; null: none, or no number."
    )
    why_open = CharField(
        help_text="Why it is not said of open pairs what more judgments would bring; empty where "
        "it is."
    )


class ForetoldRow(Row):
    """What is expected after some more judgments; the first is the present."""

    batches = IntegerField(allow_null=True, help_text="Null: beyond the budget.")
    pairs = Number(help_text="Judged pairs, as expected.")
    half_width = Number(help_text="Of the middle run.")
    decided = Number(help_text="Differences between two runs that have a verdict.")
    best = Number(help_text="Chance that one run has surely been better than all others by then.")
    settled = Number(
        allow_null=True,
        help_text="Differences decided or negligible; null: all matter.",
    )
    enough = Number(
        allow_null=True,
        help_text="Chance that a run has surely been as good as the best; null as above.",
    )


class ProspectRow(Row):
    """Whether something is decided, or will be."""

    state = serializers.ChoiceField(FORETOLD)
    judgments = IntegerField(
        allow_null=True,
        help_text="How many more, with even chances; null: not even the whole pool will do.",
    )
    least = IntegerField(
        allow_null=True, help_text="One in ten that fewer will do; of the best run only."
    )
    most = IntegerField(
        allow_null=True, help_text="One in ten that it takes more; null: never, as far as is told."
    )
    chance = Number(
        allow_null=True,
        help_text="That it is so within the budget; of the best run only. Null: no batch is left, "
        "or the round has stopped.",
    )
    text = CharField()


class ForecastRow(Row):
    """What more judgments will bring, from those so far; earlier forecasts stay as they were."""

    batches = IntegerField(help_text="Complete batches that it rests on.")
    differences = IntegerField(help_text="Between two runs.")
    share_decided = Number(help_text="Of the differences: so many verdicts decide a ranking.")
    steps = ForetoldRow(many=True)
    best = ProspectRow(help_text="Of the best run.")
    ranking = ProspectRow(help_text="Of the ranking.")


class FreedBatchRow(Row):
    number = IntegerField()
    pairs = IntegerField(help_text="That lack labels now.")


class JudgedAgainRow(Row):
    """Batches that were complete and are judged again, as somebody's work was excluded."""

    excluded = serializers.ListField(child=CharField(), help_text="Whose work is.")
    freed = FreedBatchRow(many=True)
    pairs = IntegerField()
    used = IntegerField(help_text="Batches that the numbers rest on meanwhile.")
    text = CharField(help_text="What happened, and what mends it, as pages say it.")


class RankingRow(Row):
    round = IntegerField()
    measure = CharField()
    measures = serializers.ListField(child=CharField(), help_text="What can be asked for.")
    supported = serializers.BooleanField(
        help_text="False: of some runs part of what counts is out of reach; see support."
    )
    estimate_set = EstimateSetRow(allow_null=True, help_text="Null: no batch is complete yet.")
    ranking = RankedRow(many=True)
    judged_again = JudgedAgainRow(
        allow_null=True, help_text="Work was excluded: numbers that were there may be gone."
    )
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

"""Rows of answers about people, exclusions and the queue."""

from typing import Any

from rest_framework import serializers

from judging.api.fields import Number
from judging.api.serializers import PREFERENCE, NewMemberRow, second_docno
from judging.conduct import CYCLE, ONE_GRADE, SAME, UNRELATED
from judging.models import Exclusion
from judging.queue import KINDS

CharField = serializers.CharField
IntegerField = serializers.IntegerField
DateTimeField = serializers.DateTimeField
BooleanField = serializers.BooleanField
Row = serializers.Serializer[Any]


class AddedRow(Row):
    added = NewMemberRow(many=True)


class WithOthersRow(Row):
    pairs = IntegerField(help_text="That others judged too.")
    share = Number(help_text="Of equal answers, from 0 to 1.")
    above = Number(
        allow_null=True,
        help_text="Grades above those of others on average. Null: preferences have no height.",
    )


class ExclusionRow(Row):
    """Somebody's work that counts nowhere; or did not, until it was taken back."""

    id = IntegerField()
    assessor = CharField(source="assessor.username")
    ground = serializers.ChoiceField(Exclusion.Ground.choices)
    looks_at_grades = BooleanField(
        help_text="Whether who is excluded depends on grades, so that estimates may be biased."
    )
    reason = CharField()
    by_rule = BooleanField(help_text="A rule found it, that whoever decided has set.")
    decided_by = CharField(source="decided_by.username")
    created = DateTimeField()
    ended = DateTimeField(allow_null=True, help_text="When it was taken back; else null.")
    ended_by = CharField(source="ended_by.username", allow_null=True, default=None)
    ended_reason = CharField()


class PatternRow(Row):
    """Answers as nobody gives them who reads; organizers look before they decide."""

    kind = serializers.ChoiceField(
        [(each, each) for each in (ONE_GRADE, CYCLE, UNRELATED, SAME)],
        help_text="one grade: for nearly all, where others differ; cycle: answers come round in an "
        "order; unrelated: to what others say; same: as another person's.",
    )
    matching = IntegerField(help_text="Answers that show it; 0 for unrelated.")
    among = IntegerField()
    sentence = CharField()


class GoldScoreRow(Row):
    answers = IntegerField()
    right = IntegerField()
    by_chance = Number(
        allow_null=True, help_text="Share that their own grades, dealt at random, would get right."
    )
    score = Number(
        allow_null=True, help_text="1: always right; about 0: no relation to it. Null: see untold."
    )
    low = Number(allow_null=True, help_text="Of the 95 % interval.")
    high = Number(allow_null=True)
    untold = serializers.ChoiceField(
        [("few", "few"), ("skewed", "skewed")], allow_blank=True, help_text="Why there is no score."
    )


class GoldRow(Row):
    """A pair whose grade is known. Only organizers can tell it from others."""

    id = IntegerField(source="gold.pk")
    topic = CharField(source="gold.pair.topic.topic_id")
    docno = CharField(source="gold.pair.docno")
    grades = serializers.ListField(child=IntegerField(), source="gold.accepted", help_text="Right.")
    reason = CharField(source="gold.reason")
    retired = DateTimeField(source="gold.retired", allow_null=True)
    answers = IntegerField()
    right = IntegerField()
    by_grade = serializers.ListField(child=IntegerField(), help_text="Answers, from grade 0.")


class RulesRow(Row):
    every = IntegerField(source="campaign.gold_every", help_text="One in so many is gold; 0: none.")
    least = IntegerField(help_text="Answers to gold from which a score is told.")
    warn_below = Number(allow_null=True)
    hold_below = Number(allow_null=True)
    exclude_below = Number(allow_null=True)
    exclude_hasty = BooleanField(help_text="Whoever is too fast to have read, by times alone.")


class GoldAnswerRow(Row):
    topic = CharField(source="judgment.assignment.pair.topic.topic_id")
    docno = CharField(source="judgment.assignment.pair.docno")
    grade = IntegerField(source="judgment.grade")
    grades = serializers.ListField(child=IntegerField(), source="accepted", help_text="Right.")
    is_right = BooleanField()


class PersonRow(Row):
    """A member, or somebody who left and has judged."""

    id = IntegerField(source="user.pk")
    username = CharField(source="user.username")
    roles = serializers.ListField(child=CharField(), help_text="Empty: they left.")
    judged = IntegerField(help_text="Pairs that they have judged, whether that counts or not.")
    left = IntegerField(help_text="Pairs of open batches that they could still judge.")
    per_hour = Number(
        source="manner.per_hour",
        allow_null=True,
        help_text="Judgments an hour, without pauses over ten minutes. Null: too few.",
    )
    seconds = Number(
        source="manner.seconds",
        allow_null=True,
        help_text="The median of a judgment. Null: too few.",
    )
    agreement = WithOthersRow(
        source="manner.agreement",
        allow_null=True,
        help_text="With others; null: fewer than 5 pairs in common.",
    )
    quick = IntegerField(source="manner.quick", help_text="Judgments too fast to have read.")
    skips = IntegerField()
    comments = IntegerField(source="manner.comments")
    last = DateTimeField(allow_null=True, help_text="When they last did something here.")
    patterns = PatternRow(source="manner.patterns", many=True)
    invited = BooleanField(source="is_invited", help_text="Has no password yet.")
    excluded = BooleanField(source="is_excluded")
    gold = GoldScoreRow(help_text="How well they answer pairs whose grade is known.")
    held = DateTimeField(
        source="held.held", default=None, allow_null=True,
        help_text="Since when they are handed nothing new; else null.",
    )  # fmt: skip
    held_why = CharField(source="held.held_why", default="")


class DayRow(Row):
    day = serializers.DateField()
    judged = IntegerField()


class GradeUseRow(Row):
    theirs = serializers.ListField(child=IntegerField(), help_text="How often, by grade from 0.")
    same_pairs = serializers.ListField(
        child=IntegerField(), help_text="Of the pairs that others judged too."
    )
    others = serializers.ListField(child=IntegerField(), help_text="What others gave these.")


class PairNamed(Row):
    pair = IntegerField(source="judgment.assignment.pair_id")
    topic = CharField(source="judgment.assignment.pair.topic.topic_id")
    docno = CharField(source="judgment.assignment.pair.docno")
    other = second_docno("judgment.assignment.pair.other")
    grade = IntegerField(source="judgment.grade", help_text=PREFERENCE)


class QuickRow(PairNamed):
    """Took far less than they usually need for a text of that length, or than anybody needs."""

    seconds = Number()
    usual = Number()
    nobody = BooleanField(help_text="Whether no reader is so fast, whatever they usually need.")


class StretchRow(Row):
    """A part of their judgments, in order, counted from 1."""

    first = IntegerField()
    last = IntegerField()
    seconds = Number(allow_null=True, help_text="The median; null: too few are known.")
    above = Number(allow_null=True, help_text="Grades above those of others; null: too few.")
    shared = IntegerField()


class ChangeRow(Row):
    parts = StretchRow(many=True)
    drift = Number(
        allow_null=True,
        help_text="Grades that the last part is above the first; null: no more than luck brings.",
    )


class CompetenceRow(Row):
    """As found with the latest estimates, of labels that count; see `label-quality/`."""

    round = IntegerField()
    labels = IntegerField()
    shared = IntegerField()
    bias = serializers.ListField(child=Number(allow_null=True))
    spread = Number(allow_null=True)
    untold = CharField(allow_blank=True)
    competence = Number(allow_null=True)
    informed = Number(allow_null=True)
    confusion = serializers.ListField(child=serializers.ListField(child=Number()), allow_null=True)


class ApartRow(PairNamed):
    """Differs from the mean of what others said of the pair."""

    difference = Number()


class PersonDetailRow(Row):
    person = PersonRow()
    days = DayRow(many=True)
    grades = GradeUseRow()
    timed = IntegerField(help_text="Judgments of which time and length are known; 10 tell haste.")
    quick_count = IntegerField(help_text="Judgments too fast to have read.")
    quick = QuickRow(many=True, help_text="The quickest of them, 20 at most.")
    apart = ApartRow(many=True)
    change = ChangeRow(allow_null=True, help_text="Over their judgments; null: fewer than 20.")
    competence = CompetenceRow(allow_null=True, help_text="Null: not in the latest estimates.")
    exclusions = ExclusionRow(many=True)
    gold = GoldAnswerRow(many=True, help_text="Their answers to gold, wrong ones first.")


class SaidGradeRow(Row):
    assessor = CharField()
    grade = IntegerField(help_text=PREFERENCE)


class ItemRow(Row):
    """Something that needs an organizer: a pair that waits, labels far apart, or a comment."""

    kind = serializers.ChoiceField(KINDS, source="key.kind")
    target = IntegerField(source="key.target", help_text="To name it when it is marked as seen.")
    version = CharField(source="key.version", help_text="What it was like when it was read.")
    pair = IntegerField(source="pair.pk")
    topic = CharField(source="pair.topic.topic_id")
    docno = CharField(source="pair.docno")
    other = second_docno("pair.other")
    spread = IntegerField(source="key.spread", help_text="Grades between the labels.")
    weight = Number(source="key.weight", help_text="About how many pairs it stands for.")
    labels = SaidGradeRow(many=True, help_text="Of a disagreement.")
    skips = serializers.ListField(child=CharField(), source="waits.skips", default=[])
    nobody_left = BooleanField(source="waits.nobody_left", default=False)
    comment = CharField(source="said.comment", default="")
    assessor = CharField(source="said.assessor.username", default="", help_text="Who wrote it.")
    seen_by = CharField(
        source="seen.seen_by.username", default=None, allow_null=True, help_text="Null: to do."
    )

"""Rows of answers about norming."""

from typing import Any

from rest_framework import serializers

from judging.api.fields import Number
from judging.api.serializers import DocumentText
from judging.api.serializers_training import LearnPair
from judging.models import NormingSession

CharField = serializers.CharField
IntegerField = serializers.IntegerField
BooleanField = serializers.BooleanField
DateTimeField = serializers.DateTimeField
Row = serializers.Serializer[Any]

STATES = NormingSession.State.choices


class NormingRow(Row):
    """A session, as organizers see it."""

    id = IntegerField(source="pk")
    title = CharField()
    state = serializers.ChoiceField(STATES, help_text="Blind until the discussion.")
    by_itself = BooleanField(help_text="The discussion begins when everybody has answered.")
    named = BooleanField(help_text="Those who take part see user names, and no numbers.")
    created = DateTimeField()
    discussed = DateTimeField(allow_null=True)
    closed = DateTimeField(allow_null=True)
    pairs = IntegerField(source="pair_count")
    people = IntegerField(source="person_count")
    answers = IntegerField(source="answer_count", help_text="Of all people, on all pairs.")


class NormingPairRow(Row):
    id = IntegerField(source="pk")
    topic = CharField(source="topic.topic_id")
    docno = CharField()


class NormingAgreementRow(Row):
    """How far people agree."""

    pairs = IntegerField(help_text="With two answers or more.")
    twos = IntegerField(help_text="Every two people, on every pair that both answered.")
    equal = IntegerField(help_text="Of these, how many gave one grade.")
    alpha = Number(allow_null=True, help_text="Krippendorff's, ordinal; null: nothing to compare.")


class NormingDistanceRow(Row):
    """How far from the median of the grades of a pair, in grades."""

    pairs = IntegerField()
    mean = Number()
    above = Number(help_text="Positive: more lenient than the median.")


class NormingPersonRow(Row):
    username = CharField(source="person.user.username")
    number = IntegerField(source="person.number", help_text="What the others know them by.")
    answered = IntegerField()


class NormingApartRow(Row):
    username = CharField(source="line.person.user.username")
    before = NormingDistanceRow(allow_null=True)
    after = NormingDistanceRow(allow_null=True)
    revised = IntegerField(help_text="How many grades they changed.")


class NormingFindingsRow(Row):
    """What the session tells, once the discussion has begun."""

    before = NormingAgreementRow()
    after = NormingAgreementRow()
    people = NormingApartRow(many=True, help_text="The farthest from the median first.")
    open = IntegerField(source="open_count", help_text="Pairs on which people differ still.")
    settled = IntegerField(help_text="Pairs on which they differed, and do not any more.")


class NormingDetailRow(NormingRow):
    listed = NormingPairRow(many=True, help_text="The pairs.")
    assessors = NormingPersonRow(many=True)
    findings = NormingFindingsRow(allow_null=True, help_text="null while people judge alone.")


class OwnNormingRow(Row):
    """A session in which the caller takes part."""

    id = IntegerField(source="session.pk")
    title = CharField(source="session.title")
    state = serializers.ChoiceField(STATES, source="session.state")
    asked = IntegerField(source="pairs")
    done = IntegerField(source="answered")


class NormingTurnRow(Row):
    """How far the caller is: `pair` and `document` are what to answer next, if anything is."""

    state = serializers.ChoiceField(STATES)
    asked = IntegerField()
    done = IntegerField()
    pair = LearnPair(allow_null=True)
    document = DocumentText(allow_null=True, required=False)


class NormingAnswerRow(Row):
    """What the caller said of a pair."""

    pair = IntegerField(source="pair_id")
    grade = IntegerField(help_text="Said while it was blind.")
    revised = IntegerField(allow_null=True, help_text="Said after the discussion, if another.")
    revised_at = DateTimeField(allow_null=True)


class NormingSaidRow(Row):
    name = CharField(help_text="“You”, a user name, or “Assessor 3”.")
    grade = IntegerField(source="answer.grade", help_text="Said while it was blind.")
    revised = IntegerField(source="answer.revised", allow_null=True)
    revised_at = DateTimeField(source="answer.revised_at", allow_null=True)


class NormingDiscussedRow(Row):
    """A pair, with what everybody said of it."""

    id = IntegerField(source="pair.pk")
    topic = CharField(source="pair.topic.topic_id")
    docno = CharField(source="pair.docno")
    spread = IntegerField(help_text="From the lowest to the highest first grade.")
    said = NormingSaidRow(many=True)
    comments = IntegerField(help_text="How many.")


class NormingCommentRow(Row):
    id = IntegerField(source="row.pk")
    name = CharField(help_text="“You”, a user name, “Assessor 3”, or “Organizer”.")
    text = CharField(source="row.text", help_text="Plain text.")
    created = DateTimeField(source="row.created")

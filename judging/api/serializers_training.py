"""Rows of answers about training."""

from typing import Any

from rest_framework import serializers

from judging.api.fields import Number
from judging.api.serializers import DocumentText

CharField = serializers.CharField
IntegerField = serializers.IntegerField
BooleanField = serializers.BooleanField
DateTimeField = serializers.DateTimeField
Row = serializers.Serializer[Any]


class TrainingPairRow(Row):
    """A pair whose grade is known, from which people learn."""

    id = IntegerField(source="pair.pk")
    topic = CharField(source="pair.topic.topic_id")
    docno = CharField(source="pair.docno")
    grades = serializers.ListField(child=IntegerField(), source="pair.accepted", help_text="Right.")
    reason = CharField(source="pair.reason", help_text="What learners are told.")
    answers = IntegerField()
    right = IntegerField()


class TryRow(Row):
    number = IntegerField()
    ended = DateTimeField(allow_null=True)
    asked = IntegerField()
    right = IntegerField()
    passed = BooleanField(allow_null=True)


class LearnerRow(Row):
    id = IntegerField(source="membership.user_id")
    username = CharField(source="membership.user.username")
    learns = BooleanField(source="membership.learns", help_text="They may not judge yet.")
    tries = TryRow(many=True)


class TrainingRow(Row):
    obligatory = BooleanField(help_text="New assessors pass it before they judge.")
    threshold = Number(help_text="Share of the pairs that must be right.")
    tries = IntegerField(help_text="0: as many as they like.")
    learners = LearnerRow(many=True)


class LearnPair(Row):
    id = IntegerField(source="pk")
    topic = CharField(source="topic.topic_id")
    title = CharField(source="topic.title")
    description = CharField(source="topic.description")
    narrative = CharField(source="topic.narrative")
    docno = CharField()


class LessonRow(Row):
    """How far the caller is: `pair` and `document` are what to answer next, if anything is."""

    state = serializers.ChoiceField(["new", "learning", "passed", "again", "failed"])
    asked = IntegerField()
    done = IntegerField()
    right = IntegerField()
    needed = IntegerField(help_text="So many must be right.")
    left = IntegerField(allow_null=True, help_text="Tries; null: any number.")
    pair = LearnPair(allow_null=True)
    document = DocumentText(allow_null=True, required=False)


class LearnedRow(Row):
    """What was said, what is right, and how far the caller is by now."""

    pair = IntegerField(source="pair_id")
    grade = IntegerField()
    right = BooleanField()
    grades = serializers.ListField(child=IntegerField(), source="pair.accepted", help_text="Right.")
    reason = CharField(source="pair.reason")
    state = CharField(source="lesson.state")
    done = IntegerField(source="lesson.done")
    asked = IntegerField(source="lesson.asked")

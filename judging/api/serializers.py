"""What answers of the judging side look like."""

from typing import Any

from rest_framework import serializers

from judging.api.fields import Number
from judging.api.schema import ErrorLine
from judging.drops import ProblemKind
from judging.models import (
    ApiToken,
    Assignment,
    Campaign,
    Decision,
    Job,
    Letter,
    Membership,
    Upload,
)

CharField = serializers.CharField
IntegerField = serializers.IntegerField
DateTimeField = serializers.DateTimeField
Row = serializers.Serializer[Any]

PREFERENCE = "Of a preference: 2 `docno` is better, 1 equally good, 0 `other` is better."


def second_docno(source: str | None = None) -> serializers.CharField:
    """The second docno of a preference."""
    told = "With which `docno` is compared, if the pair is a preference; else empty."
    return CharField(source=source, help_text=told)


class GradeRow(Row):
    name = CharField()
    meaning = CharField(default="")


class JobRow(Row):
    """Work of the server in the background."""

    id = IntegerField(source="pk")
    state = serializers.ChoiceField(Job.State.choices)
    progress = IntegerField(help_text="Percent.")
    note = CharField()
    error = CharField(help_text="Why it failed; else empty.")
    started = DateTimeField(allow_null=True)
    finished = DateTimeField(allow_null=True)


KEY_STATES = ("works", "expired", "ended")


class TokenRow(Row):
    id = IntegerField()
    name = CharField()
    scope = serializers.ChoiceField(
        ApiToken.Scope.choices, help_text="What it may do: all that you may do, or only read."
    )
    state = serializers.ChoiceField(
        KEY_STATES, help_text="Whether it works. Keys end when their owner's password is changed."
    )
    created = DateTimeField()
    expires = DateTimeField(allow_null=True, help_text="Null: made before keys had an end.")
    last_used = DateTimeField(allow_null=True, help_text="To some minutes. Null: never.")


class NewTokenRow(TokenRow):
    key = CharField(help_text="Shown this once.")


class MembershipRow(Row):
    campaign = CharField(source="campaign.slug")
    name = CharField(source="campaign.name")
    state = serializers.ChoiceField(Campaign.State.choices, source="campaign.state")
    role = serializers.ChoiceField(Membership.Role.choices)


class MeRow(Row):
    username = CharField()
    is_admin = serializers.BooleanField(source="is_superuser")
    may_create_campaigns = serializers.BooleanField()
    has_second_factor = serializers.BooleanField(help_text="Whether signing in asks for one.")
    memberships = MembershipRow(many=True)


class CampaignRow(Row):
    """A campaign as every member sees it; the other fields are for its organizers."""

    slug = CharField()
    name = CharField()
    state = serializers.ChoiceField(Campaign.State.choices)
    guidelines = CharField()
    grades = GradeRow(many=True, help_text="The scale, from grade 0 upwards.")
    roles = serializers.ListField(
        child=serializers.ChoiceField(Membership.Role.choices), help_text="The caller's."
    )


class MaterialRow(Row):
    topics = IntegerField()
    documents = IntegerField()
    known_grades = IntegerField()
    uploads_pending = IntegerField()
    uploads_rejected = IntegerField(help_text="Not those that were only to be checked.")
    uploads_checked = IntegerField(
        help_text="Good topics, documents and runs that were only checked."
    )
    copying = serializers.BooleanField(
        help_text="Files of the campaign from which this one was made are still to come."
    )


class OrganizedCampaignRow(CampaignRow):
    depth = IntegerField(required=False, help_text="How deep runs are pooled.")
    lease_minutes = IntegerField(required=False)
    hour_cost = Number(required=False)
    currency = CharField(required=False)
    senior_grades = CharField(required=False)
    archived = DateTimeField(required=False, allow_null=True)
    created = DateTimeField(required=False)
    created_by = CharField(required=False, source="created_by.username")


class CampaignDetailRow(OrganizedCampaignRow):
    material = MaterialRow(required=False)


class TopicRow(Row):
    id = CharField(source="topic_id")
    title = CharField()
    description = CharField()
    narrative = CharField()


class ListedTopicRow(TopicRow):
    number = IntegerField(source="pk", help_text="Names it in addresses.")


class DocumentRow(Row):
    id = IntegerField(source="pk")
    docno = CharField()
    title = CharField()
    excerpt = CharField(help_text="The first 500 characters of the text.")


class DocumentDetailRow(Row):
    id = IntegerField(source="pk")
    docno = CharField()
    title = CharField()
    text = CharField()


class ProblemRows(serializers.ListField):
    """Problems of an upload, in the row shape of all errors."""

    child = ErrorLine()

    def to_representation(self, data: Any) -> list[dict[str, Any]]:
        return [
            {name: problem[name] or None for name in ("file", "line", "field")}
            | {"message": problem["message"]}
            for problem in data
        ]


class UploadRow(Row):
    """An uploaded file and what reading it brought."""

    id = IntegerField(source="upload.pk")
    kind = serializers.ChoiceField(Upload.Kind.choices, source="upload.kind")
    kind_why = CharField(
        source="upload.kind_why", help_text="By what its kind was told; empty: somebody said it."
    )
    drop = CharField(source="upload.drop", help_text="The same for files that came at once.")
    replaces = IntegerField(
        source="upload.replaces_id", allow_null=True, help_text="The upload of the version before."
    )
    name = CharField(source="upload.name")
    size = IntegerField(source="upload.size", help_text="Bytes.")
    sha256 = CharField(source="upload.sha256")
    check_only = serializers.BooleanField(source="upload.check_only")
    state = serializers.ChoiceField(Upload.State.choices, source="upload.state")
    progress = IntegerField(help_text="Percent.")
    errors = ProblemRows(source="upload.errors")  # type: ignore[assignment]
    error_count = IntegerField(source="upload.error_count")
    warnings = ProblemRows(source="upload.warnings")
    warning_count = IntegerField(source="upload.warning_count")
    summary = serializers.DictField(source="upload.summary", help_text="Numbers of rows read.")
    job = JobRow(allow_null=True)
    created = DateTimeField(source="upload.created")
    created_by = CharField(source="upload.created_by.username")
    finished = DateTimeField(source="upload.finished", allow_null=True)


class ProblemKindRow(Row):
    """Problems that say the same but for names and numbers."""

    severity = serializers.ChoiceField(["error", "warning"])
    field = CharField(allow_blank=True)
    message = CharField(help_text="That of the first.")
    count = IntegerField(help_text="Of those that are kept with their files, 50 of each severity.")
    more = serializers.BooleanField(help_text="Whether there are others, which are only counted.")
    files = serializers.SerializerMethodField(help_text="The uploads that have it.")

    def get_files(self, row: ProblemKind) -> list[int]:
        return [upload.pk for upload in row.files]


class DropRow(Row):
    """Files that came at once."""

    id = CharField()
    check_only = serializers.BooleanField()
    files = IntegerField()
    good = IntegerField(help_text="Accepted, or checked, without warnings.")
    warned = IntegerField(help_text="Accepted, or checked, with warnings.")
    refused = IntegerField()
    waiting = IntegerField()
    to_take_in = IntegerField(help_text="Only checked, and good: these can be taken in at once.")
    to_dismiss = IntegerField(help_text="Nothing of these was taken in: only checked, or rejected.")
    problems = ProblemKindRow(many=True)


class DocumentText(Row):
    title = CharField()
    text = CharField()


class ProgressRow(Row):
    judged = IntegerField()
    judged_today = IntegerField(help_text="In the last 24 hours.")
    skipped = IntegerField()


class AssignmentRow(Row):
    """A pair to judge, with all that an assessor needs to know.

    A preference has two documents: which of them is better for the topic? Its grade is 2 if
    `docno` is better, 1 if both are equally good, 0 if `other` is better, wherever they are shown.
    """

    id = IntegerField()
    topic = TopicRow()
    docno = CharField()
    document = DocumentText(allow_null=True, help_text="Null: the campaign has no text of it.")
    other = second_docno()
    other_document = DocumentText(
        allow_null=True, help_text="The text of `other`. Null: there is none."
    )
    swapped = serializers.BooleanField(
        help_text="Show `other` first. Settled by chance for each assignment, so that what stands"
        " first gains nothing by it on average."
    )
    grades = GradeRow(many=True, help_text="What the grades of this pair mean, from 0 upwards.")
    guidelines = CharField()
    lease_until = DateTimeField(help_text="Until when the pair is kept for the assessor.")
    progress = ProgressRow()


REASONS = (
    "batch_complete", "being_chosen", "choosing_failed", "waiting_for_others", "held_back",
    "campaign_not_open", "nothing_drawn", "work_excluded", "work_looked_at",
    "enough_judged", "training_first",
)  # fmt: skip


class NextRow(Row):
    assignment = AssignmentRow(allow_null=True)
    reason = serializers.ChoiceField(
        REASONS, allow_null=True, help_text="Why there is no assignment."
    )


class HeldRow(Row):
    """An assignment in a list: who has, or had, which pair."""

    id = IntegerField()
    topic = CharField(source="pair.topic.topic_id")
    docno = CharField(source="pair.docno")
    other = second_docno("pair.other")
    assessor = CharField(source="assessor.username")
    state = serializers.ChoiceField(Assignment.State.choices)
    lease_until = DateTimeField(help_text="Until when the pair is kept, while it is leased.")
    skip_reason = CharField(help_text="Why it was skipped; else empty.")
    created = DateTimeField()
    changed = DateTimeField()


class JudgmentRow(Row):
    assignment = IntegerField(source="assignment_id")
    topic = CharField(source="assignment.pair.topic.topic_id")
    docno = CharField(source="assignment.pair.docno")
    other = second_docno("assignment.pair.other")
    assessor = CharField(source="assessor.username")
    grade = IntegerField(help_text=PREFERENCE)
    revision = IntegerField(help_text="1, and one more with every correction.")
    comment = CharField()
    seconds = Number(allow_null=True)
    excluded = serializers.BooleanField(
        source="is_excluded",
        help_text="Stored, and counts nowhere: the assessor's work in this campaign is excluded.",
    )
    created = DateTimeField()


class JudgedRow(Row):
    judgment = JudgmentRow()
    next = AssignmentRow(allow_null=True, help_text="The next assignment, already claimed.")
    reason = serializers.ChoiceField(REASONS, allow_null=True, help_text="Why next is null.")


class StuckRow(Row):
    """A pair that waits for the organizer."""

    pair = IntegerField()
    topic = CharField(source="topic_id")
    docno = CharField()
    other = second_docno()
    wanted = IntegerField()
    judged = IntegerField()
    skips = serializers.ListField(child=CharField(), help_text="Reasons of those who skipped it.")
    nobody_left = serializers.BooleanField()


class QrelsLeftRow(Row):
    """Every pair counts once, by what keeps it from its end."""

    pairs = IntegerField()
    further = IntegerField(help_text="Qrels have given their one label, and more are wanted.")
    known = IntegerField(help_text="They would be judged if qrels were asked now.")
    held = IntegerField(help_text="Their grade is known, and assessors hold or have judged them.")
    unknown = IntegerField(help_text="Not among the qrels.")
    compared = IntegerField(help_text="Comparisons of two documents, which qrels do not answer.")


class DecisionRow(Row):
    pair = IntegerField(source="pair_id")
    topic = CharField(source="pair.topic.topic_id")
    docno = CharField(source="pair.docno")
    other = second_docno("pair.other")
    kind = serializers.ChoiceField(Decision.Kind.choices)
    grade = IntegerField(allow_null=True, help_text=PREFERENCE)
    reason = CharField()
    decided_by = CharField(source="decided_by.username")
    created = DateTimeField()


class MemberRow(Row):
    id = IntegerField(source="pk")
    username = CharField(source="user.username")
    role = serializers.ChoiceField(Membership.Role.choices)
    judged = IntegerField(help_text="Pairs the member has judged in this campaign.")
    created = DateTimeField()


class LetterRow(Row):
    """An e-mail that a worker sends."""

    address = CharField()
    state = serializers.ChoiceField(Letter.State.choices)
    error = CharField(help_text="What the mail server says who refuses it; else empty.")
    sent = DateTimeField(allow_null=True)


class NewMemberRow(Row):
    id = IntegerField(source="pk")
    username = CharField(source="user.username")
    role = serializers.ChoiceField(Membership.Role.choices)
    invitation = serializers.URLField(
        allow_null=True,
        help_text="Where an account without a password sets one; told here only.",
    )
    letter = LetterRow(allow_null=True, help_text="The last one that invites them; or none did.")

"""The administration of the judging side.

Rows are written by services, which check and audit; here admins look things up. Accounts are the
exception: an admin makes them, sets passwords, and says who may create campaigns.
"""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from judging.access import user_of
from judging.errors import UserError
from judging.models import (
    ApiToken,
    Assignment,
    AuditEntry,
    Batch,
    Campaign,
    Decision,
    Document,
    Job,
    Judgment,
    KnownGrade,
    Membership,
    Pair,
    SeniorGrade,
    Topic,
    Upload,
    User,
    WorkerHeartbeat,
)
from judging.services import rights

admin.site.site_header = "evalsite administration"
admin.site.site_title = "evalsite"
admin.site.index_title = "Rows of the database"
admin.site.unregister(Group)


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]  # no subscript at run time
    """Looks at rows; changes none. Counts only what it shows, for tables of millions of rows."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class AccountForm(UserChangeForm):  # type: ignore[type-arg]
    by: User

    def clean(self) -> dict[str, Any] | None:
        """Rights are refused for the reasons for which the page of people refuses them."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        names = ("is_organizer", "is_superuser", "is_active")
        wanted = rights.Rights(*(given[name] for name in names))
        if wanted != rights.Rights.of(self.instance):
            try:
                rights.checked(user=self.instance, by=self.by, rights=wanted)
            except UserError as error:
                raise ValidationError(error.message) from None
        return given


@admin.register(User)
class AccountAdmin(UserAdmin):  # type: ignore[type-arg]
    """Accounts. They are made inactive rather than deleted: judgments refer to them."""

    list_display = ("user_name", "is_organizer", "is_superuser", "is_active", "last_login")
    list_filter = ("is_organizer", "is_superuser", "is_active")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email", "invited_by")}),
        ("Rights", {"fields": ("is_active", "is_organizer", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"fields": ("username", "usable_password", "password1", "password2")}),
        ("Rights", {"fields": ("is_organizer",)}),
    )
    readonly_fields = ("last_login", "date_joined", "invited_by")
    filter_horizontal = ()
    form = AccountForm

    @admin.display(description="User name", ordering="username")
    def user_name(self, obj: User) -> str:
        return obj.username

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "username":
            kwargs["label"] = "User name"
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_form(  # type: ignore[override]  # the signature of Django's own
        self, request: HttpRequest, obj: Any = None, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, **kwargs)
        form.by = user_of(request)
        return form

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """What blocking ends, and the entry of other rights, are here as they are elsewhere."""
        if not change:
            super().save_model(request, obj, form, change)
            return
        before = rights.Rights.of(User.objects.get(pk=obj.pk))
        obj.is_staff = obj.is_superuser
        if "email" in form.changed_data:
            obj.address_confirmed = False  # by its owner: links for a password go there
        rights.end_if_blocked(obj, before)
        super().save_model(request, obj, form, change)
        rights.record(user=obj, by=user_of(request), before=before)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """Their own they change where the old one is asked for, and cannot be switched off."""
        if self.get_object(request, unquote(id)) == user_of(request):
            return redirect("password")
        return super().user_change_password(request, id, form_url)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Campaign)
class CampaignAdmin(ReadOnly):
    list_display = ("slug", "name", "state", "depth", "created_by", "created")
    list_filter = ("state",)
    search_fields = ("slug", "name")

    def view_on_site(self, obj: Model) -> str:
        return reverse("campaign-settings", args=[obj.slug])  # type: ignore[attr-defined]


@admin.register(Membership)
class MembershipAdmin(ReadOnly):
    list_display = ("user", "role", "campaign", "created")
    list_filter = ("role", "campaign")
    search_fields = ("user__username",)
    list_select_related = ("user", "campaign")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    """Keys; only their digests are stored. Deleting one revokes it."""

    list_display = ("name", "user", "scope", "created", "expires", "last_used")
    list_filter = ("scope",)
    search_fields = ("name", "user__username")
    exclude = ("digest", "epoch")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True


@admin.register(Upload)
class UploadAdmin(ReadOnly):
    list_display = ("name", "kind", "state", "campaign", "size", "error_count", "created")
    list_filter = ("kind", "state", "campaign")
    search_fields = ("name", "sha256")
    exclude = ("file",)


@admin.register(Topic)
class TopicAdmin(ReadOnly):
    list_display = ("topic_id", "title", "campaign")
    list_filter = ("campaign",)
    search_fields = ("topic_id", "title")


@admin.register(Document)
class DocumentAdmin(ReadOnly):
    list_display = ("docno", "title", "campaign")
    list_filter = ("campaign",)
    search_fields = ("=docno",)


@admin.register(KnownGrade)
class KnownGradeAdmin(ReadOnly):
    list_display = ("topic", "docno", "grade", "campaign")
    list_filter = ("campaign",)
    list_select_related = ("topic", "campaign")
    search_fields = ("=docno",)


@admin.register(Batch)
class Batches(ReadOnly):
    list_display = ("number", "campaign", "state", "pair_count", "remaining", "opened", "completed")
    list_filter = ("state", "campaign")


@admin.register(Pair)
class PairAdmin(ReadOnly):
    list_display = ("topic", "docno", "other", "wanted", "held", "judged", "decided", "campaign")
    list_filter = ("decided", "campaign")
    list_select_related = ("topic", "campaign")
    search_fields = ("=docno", "=other", "=topic__topic_id")


@admin.register(Assignment)
class AssignmentAdmin(ReadOnly):
    list_display = ("pair", "assessor", "state", "revision", "lease_until", "changed")
    list_filter = ("state",)
    list_select_related = ("pair", "assessor")
    search_fields = ("=pair__docno", "=pair__other", "=assessor__username")


@admin.register(Judgment)
class JudgmentAdmin(ReadOnly):
    list_display = ("assignment_id", "assessor", "revision", "grade", "seconds", "created")
    list_filter = ("grade",)
    list_select_related = ("assessor",)
    search_fields = (
        "=assignment__pair__docno",
        "=assignment__pair__other",
        "=assessor__username",
    )


@admin.register(Decision)
class DecisionAdmin(ReadOnly):
    list_display = ("pair", "kind", "grade", "reason", "decided_by", "created")
    list_filter = ("kind",)
    list_select_related = ("pair", "decided_by")


@admin.register(SeniorGrade)
class SeniorGradeAdmin(ReadOnly):
    list_display = ("pair", "grade", "counts", "reason", "given_by", "created", "ended")
    list_filter = ("counts",)
    list_select_related = ("pair", "given_by")


@admin.register(Job)
class JobAdmin(ReadOnly):
    list_display = ("kind", "target", "state", "progress", "attempts", "started", "finished")
    list_filter = ("kind", "state")
    exclude = ("token",)


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(ReadOnly):
    list_display = ("name", "seen")


@admin.register(AuditEntry)
class AuditEntries(ReadOnly):
    list_display = ("created", "actor", "action", "target", "campaign")
    list_filter = ("action", "campaign")
    list_select_related = ("actor", "campaign")
    search_fields = ("action", "target", "=actor__username")
    date_hierarchy = "created"

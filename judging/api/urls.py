"""Addresses of the judging side, under /api/."""

from django.urls import URLPattern, URLResolver, path

from judging.api import (
    accounts,
    assessing,
    campaigns,
    decisions,
    documentation,
    material,
    people,
    queue,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", documentation.documentation, name="api-docs"),
    path("schema/", documentation.SchemaDocument.as_view(), name="api-schema"),
    path("tokens/", accounts.Tokens.as_view(), name="api-tokens"),
    path("tokens/<int:token>/", accounts.Token.as_view(), name="api-token"),
    path("me/", accounts.Me.as_view(), name="api-me"),
    path("campaigns/", campaigns.Campaigns.as_view(), name="api-campaigns"),
]

campaign_urlpatterns: list[URLPattern | URLResolver] = [
    path("", campaigns.CampaignDetail.as_view(), name="api-campaign"),
    path("open/", campaigns.OpenCampaign.as_view(), name="api-campaign-open"),
    path("archive/", campaigns.ArchiveCampaign.as_view(), name="api-campaign-archive"),
    path("duplicate/", campaigns.DuplicateCampaign.as_view(), name="api-campaign-duplicate"),
    path("deletion/", campaigns.DeleteCampaign.as_view(), name="api-campaign-delete"),
    path("pause/", campaigns.PauseCampaign.as_view(), name="api-campaign-pause"),
    path("close/", campaigns.CloseCampaign.as_view(), name="api-campaign-close"),
    path("topics/", material.Topics.as_view(), name="api-topics"),
    path("documents/", material.Documents.as_view(), name="api-documents"),
    path("documents/<int:document>/", material.DocumentDetail.as_view(), name="api-document"),
    path("uploads/", material.Uploads.as_view(), name="api-uploads"),
    path("uploads/drops/<slug:drop>/", material.DropDetail.as_view(), name="api-drop"),
    path("runs/fields/", material.RunFields.as_view(), name="api-run-fields"),
    path("uploads/<int:upload>/", material.UploadDetail.as_view(), name="api-upload"),
    path("uploads/<int:upload>/cancel/", material.CancelUpload.as_view(), name="api-upload-cancel"),
    path("assignments/", assessing.Assignments.as_view(), name="api-assignments"),
    path("assignments/next/", assessing.NextAssignment.as_view(), name="api-next"),
    path("assignments/<int:assignment>/skip/", assessing.SkipAssignment.as_view(), name="api-skip"),
    path(
        "assignments/<int:assignment>/later/",
        assessing.PutOffAssignment.as_view(),
        name="api-later",
    ),
    path("judgments/", assessing.Judgments.as_view(), name="api-judgments"),
    path("judgments/<int:assignment>/", assessing.JudgmentDetail.as_view(), name="api-judgment"),
    path("decisions/", decisions.Decisions.as_view(), name="api-decisions"),
    path("decisions/rest/", decisions.DecideRest.as_view(), name="api-decide-rest"),
    path("decisions/from-qrels/", decisions.FromQrels.as_view(), name="api-from-qrels"),
    path("decisions/ask-again/", decisions.AskAgain.as_view(), name="api-ask-again"),
    path("members/", people.Members.as_view(), name="api-members"),
    path("members/many/", people.ManyMembers.as_view(), name="api-members-many"),
    path("members/<int:member>/", people.Member.as_view(), name="api-member"),
    path("members/<int:member>/invitation/", people.Invitation.as_view(), name="api-invitation"),
    path("people/", people.People.as_view(), name="api-people"),
    path("people/<int:person>/", people.PersonDetail.as_view(), name="api-person"),
    path("exclusions/", people.Exclusions.as_view(), name="api-exclusions"),
    path(
        "exclusions/<int:exclusion>/back/",
        people.ExclusionBack.as_view(),
        name="api-exclusion-back",
    ),
    path("queue/", queue.Queue.as_view(), name="api-queue"),
    path("queue/seen/", queue.Seen.as_view(), name="api-queue-seen"),
    path("queue/unseen/", queue.Unseen.as_view(), name="api-queue-unseen"),
    path("audit/", people.Audit.as_view(), name="api-audit"),
]

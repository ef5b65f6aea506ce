"""Pages of the judging side."""

from django.contrib.auth.views import LogoutView, PasswordChangeView
from django.urls import URLPattern, URLResolver, path, reverse_lazy

from judging import urls_material
from judging.views import (
    account,
    assess,
    browse,
    campaigns,
    comments,
    crowd,
    decisions,
    deletion,
    home,
    own_work,
    people,
    queue,
    work,
)

change_password = PasswordChangeView.as_view(
    template_name="judging/password.html", success_url=reverse_lazy("account")
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("sign-in/", account.sign_in, name="sign-in"),
    path("sign-out/", LogoutView.as_view(), name="sign-out"),
    path("join/<str:uid>/<str:token>/", account.join, name="join"),
    path("work/<str:key>/", work.begin, name="work"),
    path("work/<str:key>/done/", work.done, name="work-done"),
    path("account/", account.account, name="account"),
    path("account/password/", change_password, name="password"),
    path("account/keys/<int:pk>/revoke/", account.revoke, name="token-revoke"),
    path("c/new/", campaigns.new, name="campaign-new"),
    path("c/<slug:slug>/settings/", campaigns.settings, name="campaign-settings"),
    path("c/<slug:slug>/settings/open/", campaigns.open_campaign, name="campaign-open"),
    path("c/<slug:slug>/settings/archive/", campaigns.archive, name="campaign-archive"),
    path("c/<slug:slug>/settings/unarchive/", campaigns.unarchive, name="campaign-unarchive"),
    path("c/<slug:slug>/settings/duplicate/", campaigns.duplicate, name="campaign-duplicate"),
    path("c/<slug:slug>/settings/delete/", deletion.delete, name="campaign-delete"),
    path("c/<slug:slug>/settings/pause/", campaigns.pause_campaign, name="campaign-pause"),
    path("c/<slug:slug>/settings/close/", campaigns.close_campaign, name="campaign-close"),
    path("c/<slug:slug>/people/", people.people, name="people"),
    path("c/<slug:slug>/people/many/", people.many, name="people-many"),
    path("c/<slug:slug>/people/<int:pk>/again/", people.again, name="member-again"),
    path("c/<slug:slug>/people/<int:pk>/remove/", people.remove, name="member-remove"),
    path("c/<slug:slug>/assessors/<int:pk>/", people.person, name="person"),
    path("c/<slug:slug>/assessors/<int:pk>/exclude/", people.exclude, name="person-exclude"),
    path("c/<slug:slug>/exclusions/<int:pk>/back/", people.take_back, name="exclusion-back"),
    path("c/<slug:slug>/links/", crowd.links, name="crowd-links"),
    path("c/<slug:slug>/links/<int:pk>/", crowd.link, name="crowd-link"),
    path("c/<slug:slug>/links/<int:pk>/close/", crowd.close, name="crowd-link-close"),
    path("c/<slug:slug>/links/<int:pk>/reopen/", crowd.reopen, name="crowd-link-reopen"),
    path("c/<slug:slug>/links/<int:pk>/payments/", crowd.payments_file, name="crowd-payments"),
    path("c/<slug:slug>/queue/", queue.todo, name="queue"),
    path("c/<slug:slug>/queue/seen/", queue.mark, name="queue-seen"),
    path("c/<slug:slug>/queue/unseen/", queue.unmark, name="queue-unseen"),
    path("c/<slug:slug>/decisions/", queue.waiting, name="decisions"),
    path("c/<slug:slug>/decisions/<int:pk>/", decisions.decide, name="decide"),
    path("c/<slug:slug>/decisions/rest/", decisions.decide_rest, name="decide-rest"),
    path("c/<slug:slug>/decisions/qrels/", decisions.from_qrels, name="judge-from-qrels"),
    path("c/<slug:slug>/comments/", queue.comments, name="comments"),
    path("c/<slug:slug>/comments/file/", comments.comments_file, name="comments-file"),
    path("c/<slug:slug>/judgments/", browse.judgment_list, name="judgment-list"),
    path("c/<slug:slug>/judgments/<int:pk>/", browse.pair_detail, name="pair-detail"),
    path("c/<slug:slug>/settings/log/", browse.audit_log, name="audit-log"),
    path("c/<slug:slug>/settings/log/file/", browse.audit_file, name="audit-file"),
    path("c/<slug:slug>/judge/", assess.judge, name="judge"),
    path("c/<slug:slug>/judge/<int:pk>/", assess.save, name="judge-save"),
    path("c/<slug:slug>/judge/<int:pk>/skip/", assess.skip, name="judge-skip"),
    path("c/<slug:slug>/judge/<int:pk>/later/", assess.later, name="judge-later"),
    path("c/<slug:slug>/judged/", own_work.own_work, name="own-work"),
    path("c/<slug:slug>/judged/<int:pk>/", own_work.correct, name="judge-correct"),
    *urls_material.urlpatterns,
]

"""Pages for admins, under /site/."""

from django.urls import URLPattern, URLResolver, path

from evalsite.administration import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.campaign_list, name="site-campaigns"),
    path("people/", views.person_list, name="site-people"),
    path("accounts/<int:pk>/", views.person_rights, name="site-person"),
    path("accounts/<int:pk>/factors/remove/", views.factors_off, name="site-factors-off"),
    path("storage/", views.storage_page, name="site-storage"),
    path("work/", views.work_page, name="site-work"),
    path("work/<int:pk>/again/", views.work_retry, name="site-work-again"),
    path("report/", views.report_page, name="site-report"),
    path("report/file/", views.report_file, name="site-report-file"),
    path("report/pdf/", views.report_paper, name="site-report-pdf"),
]

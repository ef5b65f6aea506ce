"""Everything under /api/."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from estimation.api.urls import campaign_urlpatterns as estimation_of_campaign
from evalsite.administration import api as administration
from judging.api.base import UnknownAddress
from judging.api.urls import campaign_urlpatterns as judging_of_campaign
from judging.api.urls import urlpatterns as judging_urlpatterns

urlpatterns: list[URLPattern | URLResolver] = [
    *judging_urlpatterns,
    path("site/report/", administration.Report.as_view(), name="api-site-report"),
    path("campaigns/<slug:slug>/", include(judging_of_campaign)),
    path("campaigns/<slug:slug>/", include(estimation_of_campaign)),
    re_path(r"", UnknownAddress.as_view(), name="api-unknown"),
]

"""Every address of the site."""

from django.contrib import admin
from django.urls import include, path

from evalsite import health, manual
from judging.views.sign_in import to_sign_in

admin.autodiscover()
handler500 = "evalsite.errors.of_server"
urlpatterns = [
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
    path("admin/login/", to_sign_in),
    path("admin/", admin.site.urls),
    path("site/", include("evalsite.administration.urls")),
    path("docs/", manual.start, name="manual-start"),
    path("docs/<path:path>", manual.page, name="manual"),
    path("api/", include("evalsite.api_urls")),  # first, as others are looked through one by one
    path("", include("judging.urls")),
    path("", include("estimation.urls")),
]

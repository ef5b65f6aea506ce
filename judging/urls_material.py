"""Pages of a campaign's material; part of judging.urls."""

from django.urls import URLPattern, URLResolver, path

from judging.views import material

urlpatterns: list[URLPattern | URLResolver] = [
    path("c/<slug:slug>/material/", material.material, name="material"),
    path("c/<slug:slug>/material/files/", material.upload_list, name="upload-list"),
    path("c/<slug:slug>/material/files/<int:pk>/", material.upload_detail, name="upload-detail"),
    path(
        "c/<slug:slug>/material/files/<int:pk>/remove/",
        material.upload_remove,
        name="upload-remove",
    ),
    path(
        "c/<slug:slug>/material/files/<int:pk>/cancel/",
        material.upload_cancel,
        name="upload-cancel",
    ),
    path(
        "c/<slug:slug>/material/drops/<slug:drop>/take-in/",
        material.drop_take_in,
        name="drop-take-in",
    ),
    path(
        "c/<slug:slug>/material/drops/<slug:drop>/dismiss/",
        material.drop_dismiss,
        name="drop-dismiss",
    ),
    path("c/<slug:slug>/material/topics/", material.topic_list, name="topic-list"),
    path("c/<slug:slug>/material/documents/", material.document_list, name="document-list"),
    path(
        "c/<slug:slug>/material/documents/<int:pk>/",
        material.document_detail,
        name="document-detail",
    ),
]

"""All addresses: REST and indexers from api, pages from frontend."""

from django.urls import include, path

urlpatterns = [
    path("", include("controlplane.api.urls")),
    path("", include("frontend.login_urls")),
    path("", include("frontend.urls")),
]

handler400 = "controlplane.config.error_pages.bad_request"
handler403 = "controlplane.config.error_pages.not_allowed"
handler404 = "controlplane.config.error_pages.not_found"
handler500 = "controlplane.config.error_pages.failed"

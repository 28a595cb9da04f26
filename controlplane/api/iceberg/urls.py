"""The catalog's addresses, as the specification has them: without a slash at the end."""

from django.urls import path

from controlplane.api.iceberg import views
from controlplane.api.iceberg.oauth import OAuthTokensView

urlpatterns = [
    path("config", views.ConfigView.as_view(), name="iceberg-config"),
    path("oauth/tokens", OAuthTokensView.as_view(), name="iceberg-oauth-tokens"),
    path("namespaces", views.NamespacesView.as_view(), name="iceberg-namespaces"),
    path("namespaces/<str:team>", views.NamespaceView.as_view(), name="iceberg-namespace"),
    path("namespaces/<str:team>/tables", views.TablesView.as_view(), name="iceberg-tables"),
    path("namespaces/<str:team>/tables/<str:name>", views.TableView.as_view(), name="iceberg-table"),
    path("<path:rest>", views.OtherView.as_view(), name="iceberg-other"),
]

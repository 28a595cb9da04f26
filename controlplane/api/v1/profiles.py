"""What the columns of a datasource hold."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, query_of
from controlplane.api.v1.serializers import profiles as serializers
from controlplane.datasources.selectors import find_datasource
from controlplane.query.profiles import read_profile


class ProfileView(HeadgateView):
    @extend_schema(
        operation_id="get_column_profile",
        tags=["datasources"],
        parameters=[serializers.ProfileQuery],
        responses=serializers.DatasourceColumnSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """Nulls, distinct values, extremes and most frequent values of a column, by default in the newest rows."""
        query = query_of(request, serializers.ProfileQuery)
        profile = read_profile(
            user=self.actor,
            datasource=find_datasource(self.actor, name),
            column=query["column"],
            start=query.get("from"),
            end=query.get("to"),
        )
        return Response(serializers.DatasourceColumnSerializer(profile).data)

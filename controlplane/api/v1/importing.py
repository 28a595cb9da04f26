"""The import of a Druid cluster's supervisors."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_PARAMETER, HeadgateView, query_of
from controlplane.api.v1.serializers import importing as serializers
from controlplane.loading.druid_import import ImportOptions, import_supervisors


class ImportView(HeadgateView):
    @extend_schema(
        operation_id="import_supervisors",
        tags=["supervisors"],
        parameters=[TEAM_PARAMETER, serializers.ImportQuery],
        request=serializers.ListedSerializer(many=True),
        responses=serializers.ImportVerdictSerializer(many=True),
    )
    def post(self, request: Request) -> Response:
        """Preview the import of a Druid cluster's supervisors. With `dry_run=false`, import them. Needs the role admin.

        The body is Druid's answer to `GET /druid/indexer/v1/supervisor?full`. Supervisors are imported independently.
        """
        query = query_of(request, serializers.ImportQuery)
        options = ImportOptions(
            dry_run=query["dry_run"],
            suspended=query["suspended"],
            connection=query.get("connection", ""),
            team_name=self.team_name,
        )
        verdicts = import_supervisors(user=self.actor, listed=request.data, options=options)
        return Response(serializers.ImportVerdictSerializer(verdicts, many=True).data)

"""Taking over the supervisors of a Druid cluster."""

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
        """What each supervisor of a Druid cluster would become here; with `dry_run=false` it is made. For admins.

        The body is what `GET /druid/indexer/v1/supervisor?full` answers there. One that is refused holds up no other.
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

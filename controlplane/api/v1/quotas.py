"""A team's quotas and their use."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import BodySerializer, HeadgateView, body_of
from controlplane.api.dry_runs import DRY_RUN, with_dry_run
from controlplane.quotas.services import LIMITS, MAX_VALUES, set_quota, team_over_quota
from controlplane.tasks.quota_use import shares
from controlplane.teams.models import Team
from controlplane.teams.selectors import get_team


class ShareSerializer(serializers.Serializer[Any]):
    limit = serializers.IntegerField(allow_null=True, help_text="The limit. Null if there is none.")
    used = serializers.IntegerField(allow_null=True, help_text="Null for limits of queries.")


class QuotasSerializer(serializers.Serializer[Any]):
    indexers = ShareSerializer(help_text="Indexers that run at the same time.")
    rows_a_day = ShareSerializer(help_text="Rows published since 0:00 UTC.")
    stored_bytes = ShareSerializer(help_text="Bytes of used segments.")
    sql_seconds = ShareSerializer(help_text="Seconds of a query in SQL.")
    sql_mebibytes = ShareSerializer(help_text="Memory of a query in SQL, in MiB.")
    sql_rows = ShareSerializer(help_text="Rows of a query's result.")
    sql_queries = ShareSerializer(help_text="Queries in SQL that run at the same time, in each web process.")
    used_up = serializers.CharField(
        help_text="The used-up quota that stops the team's tasks: `rows_a_day` or `stored_bytes`. Else empty."
    )
    since = serializers.DateTimeField(allow_null=True)
    until = serializers.DateTimeField(
        allow_null=True, help_text="When the limit resets. Null if it does not reset by itself."
    )
    text = serializers.CharField(help_text="The used-up quota as a sentence. Else empty.")


class QuotasBody(BodySerializer):
    """The new limits. A limit that is null or left out is removed."""

    def get_fields(self) -> dict[str, Any]:
        limits = {
            name: serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=MAX_VALUES[name])
            for name in LIMITS
        }
        return {**super().get_fields(), **limits}


class QuotasView(HeadgateView):
    @extend_schema(operation_id="get_quotas", tags=["teams"], responses=QuotasSerializer)
    def get(self, request: Request, name: str) -> Response:
        """A team's limits and their use. Needs the role admin."""
        return self._answer(get_team(self.actor, name))

    @extend_schema(
        operation_id="set_quotas", tags=["teams"], parameters=[DRY_RUN], request=QuotasBody, responses=QuotasSerializer
    )
    @with_dry_run
    def put(self, request: Request, name: str) -> Response:
        """Set a team's limits. Only for site administrators."""
        team = get_team(self.actor, name)
        set_quota(user=self.actor, team=team, limits=body_of(request, QuotasBody))
        return self._answer(team)

    def _answer(self, team: Team) -> Response:
        used = {share.name: share for share in shares(self.actor, team)}
        stop = team_over_quota(team.pk)
        limit_fields: dict[str, Any] = {"used_up": "", "since": None, "until": None, "text": ""}
        if stop is not None:
            limit_fields = {"used_up": stop.limit, "since": stop.since, "until": stop.until, "text": stop.text}
        return Response(QuotasSerializer({**used, **limit_fields}).data)

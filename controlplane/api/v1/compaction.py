"""The compaction of a datasource: its status, due merges and past merges."""

from __future__ import annotations

from datetime import datetime

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of, query_of
from controlplane.api.dry_runs import DRY_RUN, with_dry_run
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.api.v1.serializers import compaction as serializers
from controlplane.compaction import configs, selectors
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import find_datasource
from controlplane.tasks.residents import running


class CompactionView(HeadgateView):
    @extend_schema(
        operation_id="get_compaction",
        tags=["datasources"],
        parameters=[serializers.CompactionQuery],
        responses=serializers.CompactionSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """The compaction status: merged and awaiting segments, due merges, and why an interval is not merged.

        With settings in the query, the answer shows their effect. Nothing is changed.
        """
        query = query_of(request, serializers.CompactionQuery)
        datasource, tried = find_datasource(self.actor, name), None
        if query:
            rows, skip = query.get("max_rows_per_segment"), query.get("skip_offset_from_latest")
            tried = configs.Policy.of(configs.changed_config(datasource, max_rows=rows, skip_offset=skip))
        return _compaction(datasource, tried)

    @extend_schema(
        operation_id="set_compaction",
        tags=["datasources"],
        parameters=[DRY_RUN],
        request=serializers.CompactionBody,
        responses=serializers.CompactionSerializer,
    )
    @with_dry_run
    def put(self, request: Request, name: str) -> Response:
        """Turn automatic compaction on with this `config`, in Druid's format, or off with null.

        Needs the role operator.
        """
        datasource, document = find_datasource(self.actor, name), body_of(request, serializers.CompactionBody)["config"]
        if document is not None:
            config = configs.read_config({**document, "dataSource": name})
            configs.set_config(user=self.actor, datasource=datasource, config=config)
        elif configs.config_of(datasource) is not None:
            configs.turn_off(user=self.actor, datasource=datasource)
        return _compaction(datasource)


def _compaction(datasource: Datasource, tried: configs.Policy | None = None) -> Response:
    application = running()
    status = selectors.status_of(datasource, tried)
    intervals = selectors.list_fragmented(datasource, simulated=tried)
    fields = {
        "status": status,
        "health": selectors.health_of(status, intervals),
        "config": configs.config_of(datasource),
        "application": application.pk if application else None,
        "intervals": intervals,
    }
    return Response(serializers.CompactionSerializer(fields).data)


class CompactionJobsView(HeadgateView):
    order = (Key("created_at", datetime, descending=True), Key("id", str, descending=True))

    @extend_schema(
        operation_id="list_compaction_jobs",
        tags=["datasources"],
        parameters=[PageQuery],
        responses=page_schema(serializers.CompactionJobSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """The datasource's merges, newest first: the replaced segments and the result."""
        query = query_of(request, PageQuery)
        jobs = selectors.list_jobs(find_datasource(self.actor, name)).shown_to(self.actor)
        return page_response(page_of(request, jobs, self.order, query), serializers.CompactionJobSerializer)

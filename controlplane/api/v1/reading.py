"""What readers of a datasource need: rows, files, publishes, and the time until which it is complete."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, query_of
from controlplane.api.pagination import Key, PageQuery, page_of, page_response, page_schema
from controlplane.api.v1.datasources import SegmentsView
from controlplane.api.v1.serializers import reading as serializers
from controlplane.api.v1.serializers.datasources import WindowQuery
from controlplane.common.streaming import download
from controlplane.datasources.selectors import find_datasource
from controlplane.feed.entries import list_publishes, published_files
from controlplane.feed.manifest import address_chunks, manifest, publish_watermark, root_address
from controlplane.segments.columns import columns_of
from controlplane.segments.newest_rows import newest_rows
from controlplane.supervisors.completeness import completeness


class ManifestView(SegmentsView):
    @extend_schema(
        operation_id="get_manifest",
        tags=["datasources"],
        parameters=[serializers.ManifestQuery],
        responses=serializers.ManifestSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """The datasource's files with full addresses, as of one moment. All pages of the list use the same moment."""
        query = query_of(request, serializers.ManifestQuery)
        datasource = find_datasource(self.actor, name)
        as_of = query.get("as_of") or publish_watermark()
        files = manifest(self.actor, datasource, as_of=as_of, start=query.get("from"), end=query.get("to"))
        page = page_of(
            request, files, self.order, query, extra_params={"as_of": as_of.isoformat().replace("+00:00", "Z")}
        )
        context = {"deep_storage": root_address()}
        answer = {"as_of": as_of, **context, "results": page.rows, "next": page.next}
        return Response(serializers.ManifestSerializer(answer, context=context).data)


class AddressesView(HeadgateView):
    @extend_schema(
        operation_id="get_manifest_addresses",
        tags=["datasources"],
        parameters=[WindowQuery],
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        """The addresses of all files, one in each line, as of one moment."""
        query = query_of(request, WindowQuery)
        datasource = find_datasource(self.actor, name)
        lines = address_chunks(self.actor, datasource, start=query.get("from"), end=query.get("to"))
        return download(lines, "addresses.txt", "text/plain; charset=utf-8")


class ColumnsView(HeadgateView):
    @extend_schema(
        operation_id="list_columns",
        tags=["datasources"],
        parameters=[PageQuery],
        responses=page_schema(serializers.FileColumnSerializer),
    )
    def get(self, request: Request, name: str) -> Response:
        """All columns of the datasource's files, by id. A name with two types is two columns."""
        query = query_of(request, PageQuery)
        columns = columns_of(find_datasource(self.actor, name))
        return page_response(page_of(request, columns, [Key("number", int)], query), serializers.FileColumnSerializer)


class PublishesView(HeadgateView):
    order = (Key("number", int),)

    @extend_schema(
        operation_id="list_publishes",
        tags=["datasources"],
        parameters=[serializers.PublishesQuery],
        responses=serializers.PublishesSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """The datasource's publishes in order, each with its files, without compactions. New ones always come last."""
        query = query_of(request, serializers.PublishesQuery)
        latest, entries = list_publishes(self.actor, find_datasource(self.actor, name))
        after = query["after"]
        page = page_of(request, entries.filter(number__gt=after), self.order, query, extra_params={"after": str(after)})
        context = {"deep_storage": root_address()}
        answer = {"latest": latest, **context, "results": published_files(page.rows), "next": page.next}
        return Response(serializers.PublishesSerializer(answer, context=context).data)


class CompletenessView(HeadgateView):
    @extend_schema(operation_id="get_completeness", tags=["datasources"], responses=serializers.CompletenessSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The time before which all records of the topics were stored, thrown away or quarantined."""
        report = completeness(find_datasource(self.actor, name))
        return Response(serializers.CompletenessSerializer(report).data)


class RowsView(HeadgateView):
    @extend_schema(
        operation_id="list_newest_rows",
        tags=["datasources"],
        parameters=[serializers.RowsQuery],
        responses=serializers.NewestRowsSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """The datasource's latest rows by time. Without the role operator, texts, lists and JSON are masked."""
        query = query_of(request, serializers.RowsQuery)
        datasource = find_datasource(self.actor, name)
        rows = newest_rows(
            user=self.actor,
            datasource=datasource,
            start=query.get("from"),
            end=query.get("to"),
            limit=query["limit"],
        )
        return Response(serializers.NewestRowsSerializer(rows).data)

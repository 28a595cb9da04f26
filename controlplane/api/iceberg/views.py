"""Namespaces and tables of the catalog. Namespaces are teams, tables are datasources."""

from __future__ import annotations

from typing import Any

from django.utils.decorators import method_decorator
from django.views.decorators.http import conditional_page
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.iceberg.base import IcebergView
from controlplane.catalog import tables
from controlplane.common.errors import InvalidInput, NotFound
from controlplane.datasources.models import Datasource

_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_LISTED = ("all", "refs")  # snapshots
ENDPOINTS = [
    f"GET {_NAMESPACES}",
    f"GET {_NAMESPACE}",
    f"HEAD {_NAMESPACE}",
    f"GET {_NAMESPACE}/tables",
    f"GET {_TABLE}",
    f"HEAD {_TABLE}",
]


def _described(operation: str, *parameters: OpenApiParameter) -> Any:
    return extend_schema(
        operation_id=f"iceberg_{operation}",
        tags=["iceberg"],
        parameters=list(parameters),
        responses=OpenApiTypes.OBJECT,
    )


def _exists() -> Response:
    return Response(status=status.HTTP_204_NO_CONTENT)


class ConfigView(IcebergView):
    @_described("config")
    def get(self, request: Request) -> Response:
        """What the catalog supports. Clients ask for this first."""
        return Response({"defaults": {}, "overrides": {}, "endpoints": ENDPOINTS})


class NamespacesView(IcebergView):
    @_described("list_namespaces")
    def get(self, request: Request) -> Response:
        """Your teams. Namespaces have one level, so no namespace is within another."""
        parent = request.query_params.get("parent")
        if parent:
            tables.find_namespace(self.actor, parent)
        teams = [] if parent else tables.list_namespaces(self.actor)
        return Response({"namespaces": [[team.name] for team in teams]})


class NamespaceView(IcebergView):
    @_described("get_namespace")
    def get(self, request: Request, team: str) -> Response:
        """One of your teams."""
        found = tables.find_namespace(self.actor, team)
        properties = {"comment": found.description} if found.description else {}
        return Response({"namespace": [found.name], "properties": properties})

    @extend_schema(exclude=True)
    def head(self, request: Request, team: str) -> Response:
        """Whether it is one of your teams."""
        tables.find_namespace(self.actor, team)
        return _exists()


class TablesView(IcebergView):
    @_described("list_tables")
    def get(self, request: Request, team: str) -> Response:
        """The team's datasources whose files you may read."""
        namespace = tables.find_namespace(self.actor, team)
        names = tables.list_tables(self.actor, namespace)
        return Response({"identifiers": [{"namespace": [namespace.name], "name": name} for name in names]})


class TableView(IcebergView):
    # Also where there is no such namespace: for the name ``team.table.files`` Java clients then try a metadata table.
    missing = "NoSuchTableException"

    @_described("load_table", OpenApiParameter("snapshots", enum=_LISTED, description="`all` by default."))
    @method_decorator(conditional_page)
    def get(self, request: Request, team: str, name: str) -> Response:
        """A datasource as a table, with a snapshot of its used segments. Their files stay for a lease.

        `snapshots=refs` lists the current snapshot alone. A load with the `ETag` of an earlier one as `If-None-Match`
        answers 304 if nothing has changed, and renews the leases too.
        """
        listed = request.query_params.get("snapshots") or "all"
        if listed not in _LISTED:
            raise InvalidInput("snapshots must be all or refs.")
        metadata = tables.load_metadata(self._find(team, name), current_only=listed == "refs")
        content = {"metadata": metadata, "config": tables.storage_properties()}
        return Response(content, headers={"Cache-Control": "private, no-cache"})  # not no-store: it has an ETag

    @extend_schema(exclude=True)
    def head(self, request: Request, team: str, name: str) -> Response:
        """Whether there is such a table."""
        self._find(team, name)
        return _exists()

    def _find(self, team: str, name: str) -> Datasource:
        return tables.find_table(self.actor, tables.find_namespace(self.actor, team), name)


class OtherView(IcebergView):
    """All other addresses of the specification: they write, or list what a datasource does not have."""

    missing = "NoSuchEndpointException"

    @extend_schema(exclude=True)
    def get(self, request: Request, rest: str) -> Response:
        raise NotFound("This catalog has no such endpoint. GET /iceberg/v1/config lists those that it has.")

    @extend_schema(exclude=True)
    def post(self, request: Request, rest: str) -> Response:
        raise MethodNotAllowed("POST")

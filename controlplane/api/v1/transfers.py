"""Transfers of datasources and connections to another team."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import BodySerializer, HeadgateView, body_of
from controlplane.connections.selectors import get_connection
from controlplane.datasources.selectors import find_datasource
from controlplane.transfers.services import transfer_connection, transfer_datasource


class TransferBody(BodySerializer):
    team = serializers.CharField(max_length=63, help_text="The team that gets it.")


class DatasourceTransferBody(TransferBody):
    connections = serializers.BooleanField(
        default=False,
        help_text="Whether connections that its specs name are transferred too, if the new team does not have them.",
    )


class TransferredSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    team = serializers.CharField(help_text="The team that now owns it.")
    connections = serializers.ListField(
        child=serializers.CharField(), help_text="Names of the connections that were transferred too."
    )


class DatasourceTransferView(HeadgateView):
    @extend_schema(
        operation_id="transfer_datasource",
        tags=["datasources"],
        request=DatasourceTransferBody,
        responses=TransferredSerializer,
    )
    def post(self, request: Request, name: str) -> Response:
        """Transfer a datasource with its supervisors, segments and quarantine. Running tasks continue.

        Needs the role admin in both teams.
        """
        body, datasource = body_of(request, DatasourceTransferBody), find_datasource(self.actor, name)
        moved = transfer_datasource(
            user=self.actor, datasource=datasource, team_name=body["team"], along=body["connections"]
        )
        return Response(TransferredSerializer({"name": name, "team": body["team"], "connections": moved}).data)


class ConnectionTransferView(HeadgateView):
    @extend_schema(
        operation_id="transfer_connection",
        tags=["connections"],
        request=TransferBody,
        responses=TransferredSerializer,
    )
    def post(self, request: Request, team: str, name: str) -> Response:
        """Transfer an unused connection to another team. Needs the role admin in both teams."""
        body, connection = body_of(request, TransferBody), get_connection(self.actor, team, name)
        moved = transfer_connection(user=self.actor, connection=connection, team_name=body["team"])
        return Response(TransferredSerializer({"name": moved.name, "team": moved.team.name, "connections": []}).data)

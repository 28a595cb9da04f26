"""Supervisors' share groups, and imports of dead-letter topics."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import HeadgateView, body_of
from controlplane.api.v1.serializers import share_group as serializers
from controlplane.supervisors import dead_letter_imports, share_group
from controlplane.supervisors.selectors import get_supervisor


class ShareGroupView(HeadgateView):
    @extend_schema(operation_id="get_share_group", tags=["supervisors"], responses=serializers.ShareGroupSerializer)
    def get(self, request: Request, supervisor_id: str) -> Response:
        """The group's members, leases, hold times, coverage by partition, repairs and gaps. Kafka is not asked."""
        group = share_group.share_group(get_supervisor(self.actor, supervisor_id))
        return Response(serializers.ShareGroupSerializer(group).data)


class GroupConfigView(HeadgateView):
    @extend_schema(
        operation_id="get_group_configuration", tags=["supervisors"], responses=serializers.GroupConfigurationSerializer
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """The group's settings on the broker compared with the spec. 503 if Kafka does not answer."""
        configuration = share_group.group_configuration(get_supervisor(self.actor, supervisor_id))
        return Response(serializers.GroupConfigurationSerializer(configuration).data)

    @extend_schema(
        operation_id="apply_group_configuration",
        tags=["supervisors"],
        request=None,
        responses=serializers.GroupConfigurationSerializer,
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Apply the spec's group settings on the broker, as each starting task does. Needs the role operator."""
        supervisor = get_supervisor(self.actor, supervisor_id)
        configuration = share_group.apply_group_config(user=self.actor, supervisor=supervisor)
        return Response(serializers.GroupConfigurationSerializer(configuration).data)


class DeadLettersView(HeadgateView):
    @extend_schema(
        operation_id="list_dead_letter_imports",
        tags=["supervisors"],
        responses=serializers.DeadLetterImportsSerializer,
    )
    def get(self, request: Request, supervisor_id: str) -> Response:
        """Imports of dead-letter topics, the newest first, with what became of the records. Kafka is not asked."""
        imports = dead_letter_imports.import_statuses(get_supervisor(self.actor, supervisor_id))
        return Response(serializers.DeadLetterImportsSerializer({"imports": imports}).data)

    @extend_schema(
        operation_id="import_dead_letters",
        tags=["supervisors"],
        request=serializers.DeadLetterImportBody,
        responses={202: serializers.DeadLetterImportSerializer},
    )
    def post(self, request: Request, supervisor_id: str) -> Response:
        """Import the records of a dead-letter topic into the quarantine, each once. Needs the role operator.

        A worker reads them. A second request during an import changes nothing. 503 if Kafka refuses.
        """
        body = body_of(request, serializers.DeadLetterImportBody)
        supervisor = get_supervisor(self.actor, supervisor_id)
        started = dead_letter_imports.start_import(user=self.actor, supervisor=supervisor, topic=body.get("topic", ""))
        return Response(serializers.DeadLetterImportSerializer(started).data, status=status.HTTP_202_ACCEPTED)

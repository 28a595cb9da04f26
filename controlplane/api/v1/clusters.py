"""Connection tests, and the topics, records and groups of a connection's cluster."""

from __future__ import annotations

import base64
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import TEAM_PARAMETER, HeadgateView, body_of, query_of
from controlplane.api.v1.serializers import clusters as serializers
from controlplane.connections import browsing, connection_tests
from controlplane.connections.newest_records import newest_records
from controlplane.connections.probe import NeededRights
from controlplane.connections.selectors import get_cluster, get_connection
from controlplane.teams.permissions import team_for_new
from ingestion.specs.inputs.connection import Kind
from ingestion.specs.messages.newest_records import NewestRecord
from ingestion.specs.messages.sampling import Bytes


class TestView(HeadgateView):
    __test__ = False  # pytest takes it for one of its own

    @extend_schema(
        operation_id="test_connection",
        tags=["connections"],
        request=serializers.TestBody,
        responses=serializers.VerdictSerializer,
    )
    def post(self, request: Request, team: str, name: str) -> Response:
        """Test a connection. The answer has a failure's cause. Takes at most ten seconds. Needs the role operator."""
        connection = get_connection(self.actor, team, name)
        verdict = connection_tests.try_connection(
            user=self.actor, connection=connection, wanted=NeededRights(**body_of(request, serializers.TestBody))
        )
        return Response(serializers.VerdictSerializer(verdict).data)


class DraftTestView(HeadgateView):
    @extend_schema(
        operation_id="test_connection_draft",
        tags=["connections"],
        parameters=[TEAM_PARAMETER],
        request=serializers.DraftTestBody,
        responses=serializers.VerdictSerializer,
    )
    def post(self, request: Request) -> Response:
        """Test connection properties without storing them. Takes at most ten seconds. Needs the role admin."""
        team, body = team_for_new(self.actor, self.team_name), body_of(request, serializers.DraftTestBody)
        like = get_connection(self.actor, team.name, body["like"]) if body["like"] else None
        verdict = connection_tests.try_draft(
            user=self.actor,
            team=team,
            kind=Kind(body["kind"]),
            properties=body["properties"],
            like=like,
            wanted=NeededRights(body["topic"], body["group"]),
        )
        return Response(serializers.VerdictSerializer(verdict).data)


class TopicsView(HeadgateView):
    @extend_schema(
        operation_id="list_topics",
        tags=["connections"],
        parameters=[serializers.TopicsQuery],
        responses=serializers.TopicListSerializer,
    )
    def get(self, request: Request, team: str, name: str) -> Response:
        """The topics of a Kafka cluster, by name. Only those that the connection's Kafka user may describe."""
        connection = get_cluster(self.actor, team, name)
        listing = browsing.list_topics(connection, **query_of(request, serializers.TopicsQuery))
        return Response(serializers.TopicListSerializer(listing).data)


class TopicView(HeadgateView):
    @extend_schema(operation_id="get_topic", tags=["connections"], responses=serializers.TopicSerializer)
    def get(self, request: Request, team: str, name: str, topic: str) -> Response:
        """A topic's partitions and configuration."""
        detail = browsing.get_topic(get_cluster(self.actor, team, name), topic)
        return Response(serializers.TopicSerializer(detail).data)


class NewestView(HeadgateView):
    @extend_schema(
        operation_id="list_newest_records",
        tags=["connections"],
        parameters=[serializers.NewestQuery],
        responses=serializers.NewestSerializer,
    )
    def get(self, request: Request, team: str, name: str, topic: str) -> Response:
        """A topic's newest records, or its first, read without a consumer group. Needs the role operator."""
        query = query_of(request, serializers.NewestQuery)
        answer = newest_records(user=self.actor, connection=get_cluster(self.actor, team, name), topic=topic, **query)
        newest = {"records": [_record_fields(record) for record in answer.records], "stopped_by": answer.stopped_by}
        return Response(serializers.NewestSerializer(newest).data)


class GroupsView(HeadgateView):
    @extend_schema(
        operation_id="list_groups",
        tags=["connections"],
        parameters=[serializers.ListingQuery],
        responses=serializers.GroupListSerializer,
    )
    def get(self, request: Request, team: str, name: str) -> Response:
        """The groups of a Kafka cluster, by name. Only those that the connection's Kafka user may describe."""
        connection = get_cluster(self.actor, team, name)
        listing = browsing.list_groups(connection, **query_of(request, serializers.ListingQuery))
        return Response(serializers.GroupListSerializer(listing).data)


class GroupView(HeadgateView):
    @extend_schema(operation_id="get_group", tags=["connections"], responses=serializers.GroupSerializer)
    def get(self, request: Request, team: str, name: str, group: str) -> Response:
        """A consumer group's members and offsets."""
        detail = browsing.get_group(get_cluster(self.actor, team, name), group)
        return Response(serializers.GroupSerializer(detail).data)


def _record_fields(record: NewestRecord) -> dict[str, Any]:
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _piece(record.key),
        "payload": _piece(record.payload),
        "headers": [{"name": name, "value": _piece(value)} for name, value in record.headers],
    }


def _piece(data: Bytes | None) -> dict[str, Any] | None:
    return None if data is None else {"base64": base64.b64encode(data.start).decode(), "size_bytes": data.size}

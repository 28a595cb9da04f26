"""Alerts, their history, rules, receivers and silences."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.alerts import receivers, selectors, services
from controlplane.alerts.rule_kinds import KINDS
from controlplane.api.base import TEAM_PARAMETER, HeadgateView, body_of, query_of
from controlplane.api.dry_runs import DRY_RUN, with_dry_run
from controlplane.api.pagination import Key, page_of, page_response, page_schema
from controlplane.api.v1.serializers import alerts as serializers
from controlplane.common.errors import FieldError, InvalidInput
from controlplane.datasources.selectors import find_datasource
from controlplane.teams.models import Team
from controlplane.teams.selectors import get_team, list_teams

GONE = OpenApiResponse(description="Deleted.")
BY_NAME = (Key("team_name", str), Key("name", str))
NEWEST = (Key("id", int, descending=True),)


class AlertsView(HeadgateView):
    @extend_schema(
        operation_id="list_alerts",
        tags=["alerts"],
        parameters=[serializers.AlertsQuery],
        responses=page_schema(serializers.AlertSerializer),
    )
    def get(self, request: Request) -> Response:
        """The state of each rule for each of its supervisors or datasources. `state=firing`: only firing ones."""
        query = query_of(request, serializers.AlertsQuery)
        page = page_of(request, selectors.list_alerts(self.actor, serializers.filters_of(query)), NEWEST, query)
        return page_response(page, serializers.AlertSerializer)


class AcknowledgeView(HeadgateView):
    @extend_schema(
        operation_id="acknowledge_alert", tags=["alerts"], request=None, responses=serializers.AlertSerializer
    )
    def post(self, request: Request, number: int) -> Response:
        """Acknowledge an alert: it no longer counts as open. Needs the role operator."""
        alert = services.acknowledge(user=self.actor, alert=selectors.get_alert(self.actor, number))
        return Response(serializers.AlertSerializer(alert).data)


class KindsView(HeadgateView):
    @extend_schema(operation_id="list_alert_kinds", tags=["alerts"], responses=serializers.AlertKindsSerializer)
    def get(self, request: Request) -> Response:
        """The kinds of rules, with their parameters."""
        return Response(serializers.AlertKindsSerializer({"kinds": list(KINDS.values())}).data)


class HistoryView(HeadgateView):
    @extend_schema(
        operation_id="list_alert_events",
        tags=["alerts"],
        parameters=[serializers.HistoryQuery],
        responses=page_schema(serializers.AlertEventSerializer),
    )
    def get(self, request: Request) -> Response:
        """The history of the last 90 days, newest first. Each event has its messages and their delivery status."""
        query = query_of(request, serializers.HistoryQuery)
        page = page_of(request, selectors.list_events(self.actor, serializers.filters_of(query)), NEWEST, query)
        return page_response(page, serializers.AlertEventSerializer)


class RulesView(HeadgateView):
    @extend_schema(
        operation_id="list_alert_rules",
        tags=["alerts"],
        parameters=[serializers.RulesQuery],
        responses=page_schema(serializers.AlertRuleSerializer),
    )
    def get(self, request: Request) -> Response:
        """Your teams' alert rules, by team and name."""
        query = query_of(request, serializers.RulesQuery)
        rules = selectors.list_rules(self.actor, query.get("team", ""), query.get("datasource", ""))
        return page_response(page_of(request, rules, BY_NAME, query), serializers.AlertRuleSerializer)

    @extend_schema(
        operation_id="create_alert_rule",
        tags=["alerts"],
        parameters=[DRY_RUN, TEAM_PARAMETER],
        request=serializers.RuleBody,
        responses={201: serializers.AlertRuleSerializer},
    )
    @with_dry_run
    def post(self, request: Request) -> Response:
        """Create an alert rule. Needs the role admin."""
        rule = services.create_rule(user=self.actor, team_name=self.team_name, **body_of(request, serializers.RuleBody))
        return _created_response(serializers.AlertRuleSerializer(rule).data, "alert-rule", rule.pk)


class RuleView(HeadgateView):
    @extend_schema(operation_id="get_alert_rule", tags=["alerts"], responses=serializers.AlertRuleSerializer)
    def get(self, request: Request, number: int) -> Response:
        """One alert rule."""
        return Response(serializers.AlertRuleSerializer(selectors.get_rule(self.actor, number)).data)

    @extend_schema(
        operation_id="change_alert_rule",
        tags=["alerts"],
        parameters=[DRY_RUN],
        request=serializers.RuleChangeBody,
        responses=serializers.AlertRuleSerializer,
    )
    @with_dry_run
    def put(self, request: Request, number: int) -> Response:
        """Replace all fields of a rule except its kind. Needs the role admin."""
        body = body_of(request, serializers.RuleChangeBody)
        rule = selectors.get_rule(self.actor, number)
        changed = services.change_rule(user=self.actor, rule=rule, **body)
        return Response(serializers.AlertRuleSerializer(changed).data)

    @extend_schema(operation_id="delete_alert_rule", tags=["alerts"], responses={204: GONE})
    def delete(self, request: Request, number: int) -> Response:
        """Delete a rule. Its history stays. Needs the role admin."""
        services.delete_rule(user=self.actor, rule=selectors.get_rule(self.actor, number))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ReceiversView(HeadgateView):
    @extend_schema(
        operation_id="list_alert_receivers",
        tags=["alerts"],
        parameters=[serializers.TeamQuery],
        responses=page_schema(serializers.AlertReceiverSerializer),
    )
    def get(self, request: Request) -> Response:
        """Your teams' receivers, each with its delivery status."""
        query = query_of(request, serializers.TeamQuery)
        listed = selectors.list_receivers(self.actor, query.get("team", ""))
        return page_response(page_of(request, listed, BY_NAME, query), serializers.AlertReceiverSerializer)

    @extend_schema(
        operation_id="create_alert_receiver",
        tags=["alerts"],
        parameters=[DRY_RUN, TEAM_PARAMETER],
        request=serializers.ReceiverBody,
        responses={201: serializers.AlertReceiverSerializer},
    )
    @with_dry_run
    def post(self, request: Request) -> Response:
        """Create a receiver. Its secret is never shown again. Needs the role admin."""
        body = body_of(request, serializers.ReceiverBody)
        receiver = receivers.create_receiver(user=self.actor, team_name=self.team_name, **body)
        return _created_response(serializers.AlertReceiverSerializer(receiver).data, "alert-receiver", receiver.pk)


class ReceiverView(HeadgateView):
    @extend_schema(operation_id="get_alert_receiver", tags=["alerts"], responses=serializers.AlertReceiverSerializer)
    def get(self, request: Request, number: int) -> Response:
        """One receiver."""
        return Response(serializers.AlertReceiverSerializer(selectors.get_receiver(self.actor, number)).data)

    @extend_schema(
        operation_id="change_alert_receiver",
        tags=["alerts"],
        parameters=[DRY_RUN],
        request=serializers.ReceiverChangeBody,
        responses=serializers.AlertReceiverSerializer,
    )
    @with_dry_run
    def put(self, request: Request, number: int) -> Response:
        """Change a receiver's name or address. Needs the role admin.

        Without `url`, address and secret stay. With `url`, give the secret again. Waiting messages are sent at once.
        """
        body = body_of(request, serializers.ReceiverChangeBody)
        receiver = selectors.get_receiver(self.actor, number)
        changed = receivers.change_receiver(user=self.actor, receiver=receiver, **body)
        return Response(serializers.AlertReceiverSerializer(changed).data)

    @extend_schema(operation_id="delete_alert_receiver", tags=["alerts"], responses={204: GONE})
    def delete(self, request: Request, number: int) -> Response:
        """Delete a receiver and the messages that wait for it. Needs the role admin."""
        receivers.delete_receiver(user=self.actor, receiver=selectors.get_receiver(self.actor, number))
        return Response(status=status.HTTP_204_NO_CONTENT)


class TestView(HeadgateView):
    @extend_schema(
        operation_id="test_alert_receiver", tags=["alerts"], request=None, responses=serializers.TestedSerializer
    )
    def post(self, request: Request, number: int) -> Response:
        """Send a test message to a receiver. Takes at most ten seconds. Needs the role admin."""
        receiver = selectors.get_receiver(self.actor, number)
        outcome = receivers.test_receiver(user=self.actor, receiver=receiver)
        return Response(serializers.TestedSerializer(outcome).data)


class SilencesView(HeadgateView):
    @extend_schema(
        operation_id="list_alert_silences",
        tags=["alerts"],
        parameters=[serializers.SilencesQuery],
        responses=page_schema(serializers.SilenceSerializer),
    )
    def get(self, request: Request) -> Response:
        """Your teams' current silences, newest first. With `ended`, also those that ended in the last 90 days."""
        query = query_of(request, serializers.SilencesQuery)
        silences = selectors.list_silences(self.actor, query.get("team", ""), ended=query["ended"])
        return page_response(page_of(request, silences, NEWEST, query), serializers.SilenceSerializer)

    @extend_schema(
        operation_id="create_alert_silence",
        tags=["alerts"],
        parameters=[DRY_RUN],
        request=serializers.SilenceBody,
        responses={201: serializers.SilenceSerializer},
    )
    @with_dry_run
    def post(self, request: Request) -> Response:
        """Silence a rule, a datasource or a team for a time. Needs the role operator.

        Alerts that begin to fire meanwhile notify nobody. If they still fire when the silence ends, they notify then.
        """
        body = body_of(request, serializers.SilenceBody)
        silence = services.silence(user=self.actor, reason=body["reason"], ends_at=_end_time(body), **self._of(body))
        return _created_response(serializers.SilenceSerializer(silence).data, "alert-silence", silence.pk)

    def _of(self, body: dict[str, Any]) -> dict[str, Any]:
        rule = selectors.get_rule(self.actor, body["rule"]) if "rule" in body else None
        datasource = find_datasource(self.actor, body["datasource"]) if "datasource" in body else None
        named = rule.team if rule else datasource.team if datasource else None
        return {"rule": rule, "datasource": datasource, "team": named or self._team(body.get("team", ""))}

    def _team(self, name: str) -> Team:
        if name:
            return get_team(self.actor, name)
        teams = list(list_teams(self.actor)[:2])
        if len(teams) != 1:
            raise InvalidInput(
                "Choose the team of the silence.",
                [FieldError("/team", "is required: you are in several teams", "team")],
            )
        return teams[0]


def _end_time(body: dict[str, Any]) -> Any:
    if ("ends_at" in body) == ("for_s" in body):
        raise InvalidInput("Give the end of the silence.", [FieldError("", "give either ends_at or for_s")])
    return body.get("ends_at") or timezone.now() + timedelta(seconds=body["for_s"])


class SilenceView(HeadgateView):
    @extend_schema(operation_id="get_alert_silence", tags=["alerts"], responses=serializers.SilenceSerializer)
    def get(self, request: Request, number: int) -> Response:
        """One silence."""
        return Response(serializers.SilenceSerializer(selectors.get_silence(self.actor, number)).data)

    @extend_schema(operation_id="end_alert_silence", tags=["alerts"], responses={204: GONE})
    def delete(self, request: Request, number: int) -> Response:
        """End a silence now. Alerts that still fire send their notifications. Needs the role operator."""
        services.end_silence(user=self.actor, silence=selectors.get_silence(self.actor, number))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _created_response(body: Any, name: str, number: int) -> Response:
    return Response(body, status.HTTP_201_CREATED, headers={"Location": reverse(f"api:{name}", args=[number])})

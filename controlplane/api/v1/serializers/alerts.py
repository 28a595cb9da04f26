"""Alerts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.alerts.models import AboutKind, Alert, Delivery, Event, Receiver
from controlplane.alerts.rule_kinds import KINDS
from controlplane.alerts.selectors import AlertFilter
from controlplane.api.base import BodySerializer
from controlplane.api.pagination import PageQuery

KIND_CHOICES = [(kind.code, kind.label) for kind in KINDS.values()]
PARAMS = (
    "The parameters of the rule's kind: see `/api/v1/alerts/kinds/`. Parameters that are left out have their defaults."
)


class TeamQuery(PageQuery):
    team = serializers.CharField(required=False, max_length=63)


class RulesQuery(TeamQuery):
    datasource = serializers.CharField(required=False, max_length=200)


class SilencesQuery(TeamQuery):
    ended = serializers.BooleanField(
        required=False, default=False, help_text="Whether silences that have ended are listed too."
    )


class WantedQuery(RulesQuery):
    subject = serializers.CharField(
        required=False, max_length=200, help_text="The id of a supervisor or the name of a datasource."
    )
    rule = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)


class AlertsQuery(WantedQuery):
    state = serializers.ChoiceField(Alert.State.choices, required=False)


class HistoryQuery(WantedQuery):
    event = serializers.ChoiceField(Event.Transition.choices, required=False)


def filters_of(query: dict[str, Any]) -> AlertFilter:
    """The filters of a validated query."""
    return AlertFilter(**{name: query[name] for name in AlertFilter.__dataclass_fields__ if name in query})


class AlertParamSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field of ours
    default = serializers.JSONField()
    unit = serializers.CharField()
    least = serializers.IntegerField()
    most = serializers.IntegerField()
    choices = serializers.ListField(child=serializers.CharField())


class AlertKindSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    about = serializers.CharField()
    text = serializers.CharField()
    params = AlertParamSerializer(many=True)
    hold_s = serializers.IntegerField()
    clear_s = serializers.IntegerField()


class AlertKindsSerializer(serializers.Serializer[Any]):
    kinds = AlertKindSerializer(many=True)


class AlertSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    team = serializers.CharField(source="team.name")
    rule = serializers.IntegerField(source="rule_id")
    rule_name = serializers.CharField(source="rule.name")
    kind = serializers.CharField(source="rule.kind")
    about = serializers.ChoiceField(AboutKind.choices)
    subject = serializers.CharField()
    datasource = serializers.CharField()
    state = serializers.ChoiceField(Alert.State.choices)
    since = serializers.DateTimeField()
    value = serializers.FloatField(allow_null=True)
    text = serializers.CharField(help_text="The cause, and what to do.")
    cause = serializers.CharField(help_text="Why it is so.")
    action = serializers.CharField(help_text="What to do next; empty where it goes on by itself.")
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField()


class AlertRuleSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    team = serializers.CharField(source="team.name")
    name = serializers.CharField()
    kind = serializers.ChoiceField(KIND_CHOICES)
    datasource = serializers.CharField(source="datasource.name", default=None, allow_null=True)
    params = serializers.JSONField(help_text=PARAMS)
    hold_s = serializers.IntegerField()
    clear_s = serializers.IntegerField()
    enabled = serializers.BooleanField()
    receivers = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    changed_at = serializers.DateTimeField()
    evaluated_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the rule was last evaluated. Null if it never was. A disabled rule keeps its last time.",
    )

    def get_receivers(self, rule: Any) -> list[int]:
        return [r.pk for r in rule.receivers.all()]


class RuleChangeBody(BodySerializer):
    name = serializers.CharField(max_length=100)
    datasource = serializers.CharField(
        required=False,
        allow_null=True,
        max_length=200,
        help_text="The datasource that the rule watches. If left out, the rule watches all of the team's.",
    )
    params = serializers.JSONField(required=False, help_text=PARAMS)
    hold_s = serializers.IntegerField(
        required=False, help_text="Seconds for which the condition must hold before the alert fires."
    )
    clear_s = serializers.IntegerField(
        required=False, help_text="Seconds for which the condition must be false before the alert ends."
    )
    enabled = serializers.BooleanField(required=False, default=True)
    receivers = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), required=False, max_length=100
    )


class RuleBody(RuleChangeBody):
    kind = serializers.ChoiceField(KIND_CHOICES)


class AlertReceiverSerializer(serializers.Serializer[Any]):
    """A receiver without its secret. A web address shows only its host."""

    id = serializers.IntegerField()
    team = serializers.CharField(source="team.name")
    name = serializers.CharField()
    kind = serializers.ChoiceField(Receiver.Kinds.choices)
    addresses = serializers.ListField(child=serializers.CharField())
    address = serializers.CharField(
        source="shown", help_text="The e-mail address. For a webhook or Slack only the host."
    )
    failures = serializers.IntegerField(help_text="Number of consecutive failed deliveries.")
    last_error = serializers.CharField()
    failing_since = serializers.DateTimeField(allow_null=True)
    next_try_at = serializers.DateTimeField(allow_null=True)
    sent_at = serializers.DateTimeField(
        allow_null=True, help_text="When it last accepted a message. Null if it never did."
    )
    waiting = serializers.SerializerMethodField(help_text="Number of messages that are waiting to be sent.")

    def get_waiting(self, receiver: Any) -> int:
        return int(getattr(receiver, "waiting", 0))


class ReceiverChangeBody(BodySerializer):
    name = serializers.CharField(max_length=100)
    addresses = serializers.ListField(child=serializers.CharField(max_length=254), required=False, max_length=100)
    url = serializers.CharField(
        required=False, max_length=1000, help_text="The address of a webhook or of Slack. It is never shown again."
    )
    secret = serializers.CharField(
        required=False, max_length=200, help_text="Key that signs a webhook's messages. It is never shown."
    )


class ReceiverBody(ReceiverChangeBody):
    kind = serializers.ChoiceField(Receiver.Kinds.choices)


class TestedSerializer(serializers.Serializer[Any]):
    ok = serializers.BooleanField()
    text = serializers.CharField(help_text="The receiver's answer, or why there was none.")


class SilenceSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    team = serializers.CharField(source="team.name")
    rule = serializers.IntegerField(source="rule_id", allow_null=True)
    datasource = serializers.CharField(source="datasource.name", default=None, allow_null=True)
    reason = serializers.CharField()
    begins_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    created_by = serializers.CharField()
    ended_by = serializers.CharField()


class SilenceBody(BodySerializer):
    reason = serializers.CharField(max_length=500)
    rule = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    datasource = serializers.CharField(required=False, max_length=200)
    team = serializers.CharField(
        required=False,
        max_length=63,
        help_text="The team. Required if you are in several and give no rule and no datasource.",
    )
    ends_at = serializers.DateTimeField(required=False)
    for_s = serializers.IntegerField(
        required=False, min_value=1, max_value=365 * 86_400, help_text="Duration in seconds, instead of ends_at."
    )


class DeliverySerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="uuid", help_text="The id that the sent message has too.")
    receiver = serializers.CharField(source="receiver.name")
    state = serializers.ChoiceField(Delivery.State.choices)
    attempts = serializers.IntegerField()
    next_at = serializers.DateTimeField(help_text="When the next attempt is made, if the message is still waiting.")
    ended_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()


class AlertEventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    team = serializers.CharField(source="team.name")
    rule = serializers.IntegerField(
        source="rule_id", allow_null=True, help_text="The rule's id. Null if the rule was deleted."
    )
    rule_name = serializers.CharField()
    kind = serializers.CharField()
    about = serializers.ChoiceField(AboutKind.choices)
    subject = serializers.CharField()
    datasource = serializers.CharField()
    episode = serializers.IntegerField()
    event = serializers.ChoiceField(Event.Transition.choices, source="transition")
    at = serializers.DateTimeField()
    since = serializers.DateTimeField()
    value = serializers.FloatField(allow_null=True)
    text = serializers.CharField(help_text="The cause, and what to do.")
    cause = serializers.CharField(help_text="Why the state changed.")
    action = serializers.CharField(help_text="What to do next. Empty if nobody must act.")
    silenced = serializers.CharField(help_text="Why no notification was sent when it happened. Empty if one was sent.")
    interval_start = serializers.DateTimeField(allow_null=True)
    interval_end = serializers.DateTimeField(allow_null=True)
    deliveries = DeliverySerializer(many=True)

"""Rules, how they stand, whom they tell, and what was told."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

from controlplane.common.health import one_text
from controlplane.datasources.models import Datasource
from controlplane.teams.models import Team, User


class Receiver(models.Model):
    """Where a team's messages go."""

    class Kinds(models.TextChoices):
        EMAIL = "email", "E-mail"
        WEBHOOK = "webhook", "Webhook"
        SLACK = "slack", "Slack"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="alert_receivers")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=Kinds.choices)
    addresses = models.JSONField(default=list)  # of e-mail
    shown = models.CharField(max_length=300, blank=True)  # what may be seen of an address of the web
    secrets = models.TextField(blank=True)  # sealed: ``url``, and ``secret`` that signs
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    # How it does: while it fails nothing is sent before ``next_try_at``; one worker at a time has its lease.
    failures = models.IntegerField(default=0)  # in a row
    last_error = models.CharField(max_length=500, blank=True)
    failing_since = models.DateTimeField(null=True)
    next_try_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    leased_until = models.DateTimeField(null=True)
    tested_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["team__name", "name"]
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="one_alert_receiver_per_name")]

    def __str__(self) -> str:
        return self.name


class Rule(models.Model):
    """What a team wants to be told, of one datasource (and its supervisors) or of all of them."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="alert_rules")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20)  # of ``alerts.kinds``
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, null=True, related_name="alert_rules")
    params = models.JSONField(default=dict)  # as its kind says
    hold_s = models.IntegerField(default=0)  # how long it must be so before it fires
    clear_s = models.IntegerField(default=0)  # and how long it must be well before it ends
    enabled = models.BooleanField(default=True)
    receivers = models.ManyToManyField(Receiver, related_name="rules")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(auto_now=True)
    evaluated_at = models.DateTimeField(null=True)  # the last round that looked at it; None: none has yet

    class Meta:
        ordering = ["team__name", "name"]
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="one_alert_rule_per_name")]

    def __str__(self) -> str:
        return self.name


class AboutKind(models.TextChoices):
    """What a rule's kind is about."""

    SUPERVISOR = "supervisor", "Supervisor"
    DATASOURCE = "datasource", "Datasource"


class WithCause(models.Model):
    """What health says of the subject."""

    cause = models.TextField(blank=True)
    action = models.TextField(blank=True)

    class Meta:
        abstract = True

    @property
    def text(self) -> str:
        return one_text(self.cause, self.action)


class Alert(WithCause):
    """How one rule stands for one subject."""

    class State(models.TextChoices):
        OK = "ok", "ok"
        PENDING = "pending", "pending"  # bad, and not for long enough
        FIRING = "firing", "firing"
        UNKNOWN = "unknown", "unknown"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="alerts")
    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, related_name="alerts")
    about = models.CharField(max_length=10, choices=AboutKind.choices)
    subject = models.CharField(max_length=200)
    datasource = models.CharField(max_length=200)  # the subject, or what it fills
    state = models.CharField(max_length=10, choices=State.choices)
    since = models.DateTimeField()
    bad_since = models.DateTimeField(null=True)
    good_since = models.DateTimeField(null=True)
    value = models.FloatField(null=True)
    # Of what fires: milliseconds of when it began, which names it; the event of it, and whether it was sent on.
    episode = models.BigIntegerField(default=0)
    fired = models.ForeignKey("Event", on_delete=models.SET_NULL, null=True, related_name="+")
    told = models.BooleanField(default=False)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)
    mark = models.DateTimeField(null=True)  # up to where complete intervals were told

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rule", "about", "subject"], name="one_alert_per_subject")]
        indexes = [
            models.Index(fields=["team"], name="alert_firing", condition=models.Q(state="firing")),
        ]


class Silence(models.Model):
    """For a while nothing that begins to fire is sent: of one rule, one datasource, or the whole team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="alert_silences")
    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, null=True, related_name="silences")
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, null=True, related_name="alert_silences")
    reason = models.CharField(max_length=500)
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    ended_by = models.CharField(max_length=150, blank=True)  # who ended it before its time

    class Meta:
        indexes = [models.Index(fields=["ends_at"], name="alert_silence_by_end")]

    @property
    def holds(self) -> bool:
        return self.ends_at > timezone.now()


class Event(WithCause):
    """Something that a rule said, once. Names stand as text, so that it outlives what it speaks of."""

    class Transition(models.TextChoices):
        FIRED = "fired", "fired"
        ENDED = "ended", "ended"
        COMPLETE = "complete", "complete"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="alert_events")
    rule = models.ForeignKey(Rule, on_delete=models.SET_NULL, null=True, related_name="events")
    rule_name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20)
    about = models.CharField(max_length=10, choices=AboutKind.choices)
    subject = models.CharField(max_length=200)
    datasource = models.CharField(max_length=200)
    episode = models.BigIntegerField()
    transition = models.CharField(max_length=10, choices=Transition.choices)
    at = models.DateTimeField()
    since = models.DateTimeField()
    value = models.FloatField(null=True)
    silenced = models.CharField(max_length=500, blank=True)  # why it was not sent when it happened
    # Of a complete interval.
    interval_start = models.DateTimeField(null=True)
    interval_end = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "about", "subject", "episode", "transition"], name="an_alert_says_it_once"
            )
        ]
        indexes = [
            models.Index(fields=["team", "-id"], name="alert_event_by_team"),
            models.Index(fields=["at"], name="alert_event_by_age"),
        ]


class Delivery(models.Model):
    """A message that one receiver is to get: made in the transaction that made its event."""

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        SENT = "sent", "sent"
        REFUSED = "refused", "refused"  # a "no": it is not tried again
        GIVEN_UP = "given_up", "given up"

    uuid = models.UUIDField(default=uuid.uuid4, unique=True)  # by which a receiver can tell a repeat
    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="deliveries")
    receiver = models.ForeignKey(Receiver, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    created_at = models.DateTimeField()
    attempts = models.IntegerField(default=0)  # begun; whoever records one names its number
    next_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["event", "receiver"], name="a_receiver_is_told_once")]
        indexes = [
            models.Index(
                fields=["receiver", "next_at"], name="alert_delivery_waiting", condition=models.Q(state="waiting")
            )
        ]

"""What became of records, as numbers; and reasons."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class TotalsSerializer(serializers.Serializer[Any]):
    """``polled`` is the sum of published, rolled_up, thrown_away, unparseable, duplicates, released, redundant."""

    polled = serializers.IntegerField()
    published = serializers.IntegerField()
    rolled_up = serializers.IntegerField()
    thrown_away = serializers.IntegerField()
    unparseable = serializers.IntegerField()
    duplicates = serializers.IntegerField()
    released = serializers.IntegerField()
    redundant = serializers.IntegerField(help_text="Read by a replica when another one had published them.")
    redelivered = serializers.IntegerField(help_text="Of all polled: delivered before.")
    quarantined = serializers.IntegerField(help_text="Of the unparseable: kept whole.")
    filtered = serializers.IntegerField(help_text="Of those thrown away: by the filter.")
    outside_window = serializers.IntegerField(help_text="Of those thrown away: too late or too early.")
    tombstones = serializers.IntegerField(help_text="Of those thrown away: without a value.")
    processed_with_error = serializers.IntegerField(
        help_text="Of published and rolled_up: a field was no good and is null."
    )
    input_bytes = serializers.IntegerField()
    segments = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    publishes = serializers.IntegerField()
    replayed = serializers.IntegerField(
        help_text="Taken from the quarantine since. A task still counts them as unparseable; totals over tasks do not."
    )
    rows_per_s = serializers.FloatField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    first_publish_at = serializers.DateTimeField(allow_null=True)
    last_publish_at = serializers.DateTimeField(allow_null=True)
    adds_up = serializers.BooleanField()


class ReasonSerializer(serializers.Serializer[Any]):
    """Why there is nothing to show."""

    code = serializers.CharField()
    text = serializers.CharField()

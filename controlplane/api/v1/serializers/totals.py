"""Counters of records, and reasons for their absence."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.common.health import Kind
from controlplane.publishing.selectors.totals import Totals
from ingestion.specs.counters import IN_DRUID, counters_of


class TotalsSerializer(serializers.Serializer[Any]):
    """Counters of records.

    ``polled`` plus ``further_rows`` is the sum of the outcomes. Other counters describe some of these records.
    """

    rows_per_s = serializers.FloatField(allow_null=True)
    adds_up = serializers.BooleanField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """One field for each total, with its meaning."""
        meanings = {counter.name: counter.meaning for counter in counters_of(Totals)}
        totals = {
            name: serializers.IntegerField(help_text=meanings.get(name))
            if field.annotation is int
            else serializers.DateTimeField(allow_null=True)
            for name, field in Totals.model_fields.items()
        }
        return {**totals, **super().get_fields()}


class RatesSerializer(serializers.Serializer[Any]):
    """Rates per second, one for each counter that Druid has too."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """One field for each counter that Druid has too."""
        return {name: serializers.FloatField() for name in IN_DRUID}


HEALTH_KINDS = [kind.value for kind in Kind]


class ReasonSerializer(serializers.Serializer[Any]):
    """A reason why there is nothing to show."""

    kind = serializers.ChoiceField(HEALTH_KINDS, help_text="How severe it is, and who acts next.")
    code = serializers.CharField(help_text="For programs; it does not change.")
    label = serializers.CharField()  # type: ignore[assignment]  # the stubs know Field.label only
    text = serializers.CharField(help_text="The cause, and what to do.")
    cause = serializers.CharField(help_text="Why it is so.")
    action = serializers.CharField(help_text="What to do next; empty where it goes on by itself.")

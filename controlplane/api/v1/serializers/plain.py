"""A fast serializer for answers with thousands of items: it skips the fields' own conversion code."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers


class PlainSerializer(serializers.Serializer[Any]):
    """Returns the values of its fields unchanged, and times in UTC as ``DateTimeField`` does."""

    def to_representation(self, instance: Any) -> dict[str, Any]:
        values = {name: getattr(instance, name) for name in map(str, self.fields)}
        return {name: _shown(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _shown(at: datetime) -> str:
    """The database gives times in UTC."""
    return at.isoformat().replace("+00:00", "Z")

"""A filter of records by a Kafka header, before decoding: Druid's ``headerBasedFilterConfig``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, field_validator

from ingestion.specs.base import SpecModel
from ingestion.specs.schema.filters import InFilter, Scalar

Headers = Sequence[tuple[str, bytes | None]]
Encoding = Literal["UTF-8", "UTF-16", "UTF-16BE", "UTF-16LE", "ISO-8859-1", "US-ASCII"]


class HeaderBasedFilterConfig(SpecModel):
    """Keeps records whose header ``filter.dimension`` has one of ``filter.values``. Others are not decoded."""

    filter: InFilter
    encoding: Encoding = "UTF-8"
    stringDecodingCacheSize: int | None = Field(default=None, ge=1)  # without effect

    @field_validator("filter", mode="before")
    @classmethod
    def _check_filter_kind(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("type") not in (None, "in"):
            raise ValueError('must be a filter of type "in": a header\'s name as dimension, and its values')
        return value

    @cached_property
    def _values(self) -> frozenset[str]:
        return frozenset(_scalar_text(value) for value in self.filter.values if value is not None)

    def matches(self, headers: Headers) -> bool:
        """Whether a record with these (name, value) is read: as in Druid one without the header is.

        Of several headers of the name the last one counts; bytes that are no text in the encoding become U+FFFD.
        """
        value = next((v for name, v in reversed(headers) if name == self.filter.dimension), None)
        return value is None or value.decode(self.encoding, "replace") in self._values


def _scalar_text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Druid's ``indexSpec``: how a segment's columns are compressed. Source: Druid's ingestion spec reference."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator

from ingestion.specs.base import SpecModel

Compression = Literal["lz4", "lzf", "zstd", "uncompressed", "none", "auto"]
_COMPRESSIONS = ("dimensionCompression", "metricCompression", "jsonCompression", "complexMetricCompression")


class IndexSpec(SpecModel):
    """The compression of a segment. Headgate chooses values that are left out or ``auto``. Objects have no effect."""

    dimensionCompression: Compression | None = None
    metricCompression: Compression | None = None
    jsonCompression: Compression | None = None
    longEncoding: Literal["auto", "longs"] | None = None
    complexMetricCompression: Compression | None = None
    bitmap: dict[str, Any] | None = None
    stringDictionaryEncoding: dict[str, Any] | None = None
    segmentLoader: dict[str, Any] | None = None
    autoColumnFormatSpec: dict[str, Any] | None = None

    @field_validator(*_COMPRESSIONS, "longEncoding", mode="before")
    @classmethod
    def _ignore_case(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    def without_effect(self) -> dict[str, str]:
        """What is set and does not do what it says in Druid, with the reason."""
        unused = {name: "Parquet has no LZF, LZ4 is used" for name in _COMPRESSIONS[:3] if getattr(self, name) == "lzf"}
        unused |= {name: why for name, why in _NO_COUNTERPART.items() if getattr(self, name) is not None}
        return unused


_NO_COUNTERPART = {
    "complexMetricCompression": "there are no complex metrics",
    "bitmap": "Parquet has no bitmap indexes",
    "stringDictionaryEncoding": "Parquet has one form of dictionaries",
    "segmentLoader": "Parquet files need no loader",
    "autoColumnFormatSpec": "Parquet has one form of columns",
}

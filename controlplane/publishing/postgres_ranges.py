"""Settled offsets as PostgreSQL ranges: a progress key in the high bits, the offset in the low ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from psycopg.types.range import Int8Range

from controlplane.common.errors import InvalidInput
from controlplane.publishing.models import MAX_OFFSET, OFFSET_BITS, ProgressKey
from ingestion.specs import offsets

Ranges = list[offsets.Range]


def span(key: int, start: int, end: int) -> Any:
    """The range of one key's offsets ``[start, end)``. Raises ``InvalidInput`` beyond 2^44 offsets."""
    start, end = check_range(start, end)
    return Int8Range((key << OFFSET_BITS) + start, (key << OFFSET_BITS) + end)


def check_range(start: int, end: int) -> offsets.Range:
    """The range as it is. Raises ``InvalidInput`` when it is empty or goes beyond 2^44 offsets."""
    if not 0 <= start < end <= MAX_OFFSET:
        raise InvalidInput(f"The offset range [{start}, {end}) is empty or beyond {MAX_OFFSET}.")
    return start, end


def unspan(lower: int, upper: int) -> tuple[int, int, int]:
    """(key, start, end) of a stored range."""
    key = lower >> OFFSET_BITS
    return key, lower - (key << OFFSET_BITS), upper - (key << OFFSET_BITS)


def spans(keys: Mapping[int, int], ranges: Mapping[int, Iterable[offsets.Range]]) -> list[Any]:
    """All ranges of all partitions, sorted by key and offset (the order in which they are locked)."""
    flat = [span(keys[p], start, end) for p, some in ranges.items() for start, end in some]
    return sorted(flat, key=lambda r: r.lower or 0)


def get_or_create_keys(source: int, partitions: Iterable[int]) -> dict[int, int]:
    """Partition → progress key, made where missing."""
    keys = ProgressKey.objects.filter(source_id=source, partition__in=set(partitions))
    missing = sorted(set(partitions) - set(keys.values_list("partition", flat=True)))
    ProgressKey.objects.bulk_create(
        [ProgressKey(source_id=source, partition=p) for p in missing], ignore_conflicts=True
    )
    return dict(keys.values_list("partition", "id"))

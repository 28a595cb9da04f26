"""How the pages write numbers, sizes, times, states and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.core.paginator import Page
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane.common.spec_text import spec_text
from controlplane.supervisors.autoscale import wanted_task_count
from controlplane.tasks import capacity
from controlplane.tasks.models import Task
from frontend.payload import Payload, payload_of

register = template.Library()

NOTHING = "–"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STATES = {
    "SUCCESS": "good",
    "RUNNING": "busy",
    "reading": "busy",
    "stored": "good",
    "published": "good",
    "PENDING": "wait",
    "STOPPING": "wait",
    "starting": "wait",
    "restarting": "wait",
    "waiting_for_slot": "wait",
    "paused": "wait",
    "waiting": "wait",
    "finishing": "wait",
    "processed_with_error": "wait",
    "needs attention": "need",
    "FAILED": "bad",
    "UNHEALTHY_SUPERVISOR": "bad",
    "UNHEALTHY_TASKS": "bad",
    "silent": "bad",
    "gap": "bad",
    "skipped": "bad",
    "unparseable": "bad",
    "decoder_crash": "bad",
    "dead_letter": "bad",
    "delivery_limit": "bad",
    "refused": "bad",
    "given_up": "bad",
    "firing": "bad",
    "fired": "bad",
    "pending": "wait",
    "ok": "good",
    "ended": "good",
    "complete": "good",
    "filling": "busy",
    "sent": "good",
    "created": "good",
    "changed": "good",
    "create": "busy",
    "change": "busy",
    "left": "wait",
}


@register.filter
def number(value: float | str | None) -> str:
    """Thousands separators; a dash for nothing."""
    if not isinstance(value, int | float):  # a missing variable comes as empty text
        return NOTHING
    return f"{value:,.1f}" if isinstance(value, float) and not value.is_integer() else f"{int(value):,}"


@register.filter
def total(value: float | None) -> str:
    """A sum of doubles with the digits for which they are exact, and thousands separators; a dash for nothing."""
    return NOTHING if value is None else f"{value:,.15g}"


@register.filter
def size(value: int | None) -> str:
    """Bytes with a binary unit."""
    if value is None:
        return NOTHING
    left = float(value)
    for unit in _UNITS:
        if abs(left) < 1024 or unit == _UNITS[-1]:
            return f"{int(left):,} {unit}" if unit == "B" else f"{left:,.1f} {unit}"
        left /= 1024
    raise AssertionError("the last unit takes all")


@register.filter
def exact(value: int | None) -> str:
    """Bytes without a unit prefix, for a tooltip."""
    return NOTHING if value is None else f"{value:,} bytes"


@register.filter
def when(value: datetime | str | None) -> str | SafeString:
    """A time in UTC as a ``time`` element, its ISO form as the tooltip; a script adds the reader's local time."""
    time = _utc(value)
    if time is None:
        return NOTHING
    iso = time.isoformat().replace("+00:00", "Z")
    text = time.replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")
    return format_html('<time datetime="{}" title="{}">{} UTC</time>', iso, iso, text)


@register.filter
def edge(value: datetime | None) -> str | SafeString:
    """An interval's edge: a ``time`` element with no more digits than the time needs."""
    time = _utc(value)
    if time is None:
        return NOTHING
    iso = time.isoformat().replace("+00:00", "Z")
    return format_html('<time datetime="{}" title="{}">{}</time>', iso, iso, short_time(time))


def short_time(time: datetime) -> str:
    """A date for midnight, else down to minutes, seconds or milliseconds, as needed."""
    if (time.hour, time.minute, time.second, time.microsecond) == (0, 0, 0, 0):
        return time.date().isoformat()
    unit = "milliseconds" if time.microsecond else "seconds" if time.second else "minutes"
    return time.replace(tzinfo=None).isoformat(sep=" ", timespec=unit)


@register.filter
def iso(value: datetime | None) -> str:
    """ISO 8601 in UTC, for an address."""
    time = _utc(value)
    return "" if time is None else time.isoformat().replace("+00:00", "Z")


@register.filter
def lasted(start: datetime | None, end: datetime | None) -> str:
    """How long from one time to another (to now while there is no end)."""
    if start is None:
        return NOTHING
    return duration((end or datetime.now(UTC)) - start)


@register.filter
def duration(value: timedelta) -> str:
    """Whole seconds in the two largest units."""
    seconds = max(0, int(value.total_seconds()))
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count:,} {unit}")
    return " ".join(parts[:2])


@register.filter
def state(value: str | None) -> SafeString:
    """A state as a word with a mark: good, busy, wait, bad or quiet."""
    return format_html('<span class="state state-{}">{}</span>', _STATES.get(str(value), "quiet"), words(value))


# What became of offsets: Bootstrap's colours, which both themes have; the words beside them say the same.
_COVERS = {
    "stored": "var(--bs-success)",
    "thrown_away": "var(--bs-secondary)",
    "unparseable": "var(--bs-orange)",
    "duplicate": "var(--bs-purple)",
    "empty": "var(--bs-gray-400)",
    "gap": "var(--bs-danger)",
    "skipped": "var(--bs-pink)",
    "settled": "var(--bs-teal)",
    "in_flight": "var(--bs-info)",
    "hole": "var(--bs-yellow)",
    "waiting": "var(--bs-tertiary-bg)",
}


@register.filter
def cover(value: str) -> str:
    """The colour of a state of offsets."""
    return _COVERS[value]


@register.filter
def waiting_for_slot(tasks: Iterable[Task]) -> set[str]:
    """See ``tasks.capacity``."""
    return capacity.waiting_for_slot(tasks)


@register.filter
def at(values: dict[str, str], key: str) -> str:
    """One of the values; empty when there is none."""
    return values.get(key, "")


@register.filter
def words(value: str | None) -> str:
    """``waiting_for_slot`` as ``waiting for slot``."""
    return str(value or "").replace("_", " ")


@register.filter
def pretty(value: Any) -> str:
    """A spec as indented JSON; the template escapes it."""
    return spec_text(value)


@register.filter
def payload(value: bytes | memoryview | None) -> Payload:
    """A record's key or value, ready to be shown as text."""
    return payload_of(value)


@register.filter
def preview(record: Any) -> Payload:
    """The beginning of a listed record's payload: the list does not fetch the whole."""
    return payload_of(record.payload_start, size_bytes=record.payload_size)


@register.filter
def from_ms(value: int | None) -> datetime | None:
    """A record's timestamp; None where it is no time."""
    if value is None:
        return None
    try:
        return datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


@register.filter
def listed(value: Any, action: str = "") -> str:
    """A value of the detail of an entry: lists and mappings one after the other; None stands for all, in a quota for
    no limit.
    """
    if isinstance(value, dict):
        names = (name.replace("_", " ") if action == "quota" else name for name in value)
        return (
            ", ".join(f"{name}: {listed(item, action)}" for name, item in zip(names, value.values(), strict=True))
            or "–"
        )
    if isinstance(value, list):
        return ", ".join(listed(item, action) for item in value) or "–"
    if value is None:
        return "no limit" if action == "quota" else "all"
    return str(value) or "–"


@register.filter
def indexers(supervisor: Any) -> int:
    """How many indexers a listed supervisor wants."""
    return wanted_task_count(supervisor.io_config, supervisor.decided_task_count)


@register.filter
def get(mapping: dict[Any, Any] | None, key: Any) -> Any:
    """One value of a mapping."""
    return (mapping or {}).get(key)


@register.filter
def elided(page: Page[Any]) -> Iterator[int | str]:
    """The page numbers to offer: the first, the last, and those around this one."""
    return page.paginator.get_elided_page_range(page.number, on_each_side=2, on_ends=1)


def _utc(value: datetime | str | None) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if value is None:
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

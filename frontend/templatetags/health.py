"""How the pages show health: one colour for each kind."""

from __future__ import annotations

from django import template

from controlplane.common.health import Code, Health, Kind

register = template.Library()

_CLASSES = {
    Kind.OK: "good",
    Kind.WORKING: "busy",
    Kind.WAITING: "wait",
    Kind.NEEDS_ATTENTION: "need",
    Kind.FAILED: "bad",
}
_AT_REST = (Code.SUSPENDED, Code.TERMINATED, Code.IDLE, Code.NOT_TRACKED, Code.OFF)


@register.filter
def health_class(health: Health) -> str:
    """The class of its state; what rests by intent is quiet."""
    return "quiet" if health.code in _AT_REST else _CLASSES[health.kind]


@register.filter
def is_standstill(health: Health) -> bool:
    """Whether something is not read, whatever was published before."""
    return health.code in (Code.KAFKA_REFUSES, Code.STRANGERS_IN_GROUP)


@register.filter
def spark_state(health: Health) -> str:
    """The colour of its lag's drawing: one only where somebody is needed."""
    return {Kind.NEEDS_ATTENTION: "need", Kind.FAILED: "bad"}.get(health.kind, "")

"""How the pages show a supervisor's standing."""

from __future__ import annotations

from django import template

from controlplane.supervisors.health import Code, Kind, Standing

register = template.Library()

_CLASSES = {Kind.OK: "good", Kind.WORKING: "busy", Kind.WAITING: "wait", Kind.NEEDS_YOU: "need", Kind.FAILED: "bad"}
_AT_REST = (Code.SUSPENDED, Code.TERMINATED, Code.IDLE)


@register.filter
def standing_class(standing: Standing) -> str:
    """The class of its state; what rests by intent is quiet."""
    return "quiet" if standing.code in _AT_REST else _CLASSES[standing.kind]


@register.filter
def spark_state(standing: Standing) -> str:
    """The colour of its lag's drawing: one only where somebody is needed."""
    return {Kind.NEEDS_YOU: "need", Kind.FAILED: "bad"}.get(standing.kind, "")

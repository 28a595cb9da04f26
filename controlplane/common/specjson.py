"""A spec's JSON in the order in which people write it. The database keeps keys in an order of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from ingestion.specs.tasks.ingestion_spec import SupervisorSpec


def spec_text(spec: Any) -> str:
    """Indented JSON, its keys ordered as the spec models name them, others after them by name."""
    return json.dumps(_ordered(spec), indent=2, ensure_ascii=False)


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (_RANKS.get(name, len(_RANKS)), name))
        return {name: _ordered(value[name]) for name in names}
    return [_ordered(v) for v in value] if isinstance(value, list) else value


def _names(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        for inner in _models(field.annotation):
            yield from _names(inner)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models an annotation holds. Filters hold filters: their keys need no order of ours."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel) and not part.__name__.endswith("Filter"):
            yield part


_RANKS = {name: rank for rank, name in enumerate(dict.fromkeys(_names(SupervisorSpec)))}

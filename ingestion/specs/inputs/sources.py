"""Every source there is, by its names: the one place that knows which there are.

A new one is a module with the model of its ioConfig, its traits, and who makes it (``ingestion.spark.sources``). Its
model is named here. Nothing else asks for a source by name: see ``source_traits``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError, core_schema

from ingestion.specs.inputs.io_config import IOConfig, KafkaIOConfig, ShareGroupIOConfig
from ingestion.specs.source_traits import Progress, SourceTraits

SOURCES: tuple[type[IOConfig], ...] = (ShareGroupIOConfig, KafkaIOConfig)


def all_traits() -> list[SourceTraits]:
    """Of all sources."""
    return [traits for model in SOURCES for traits in model.TRAITS]


def progress_of(kind: str) -> Progress:
    """By the kind that is stored; of one that nobody knows any more nothing is true."""
    by_kind = {traits.progress.kind: traits.progress for traits in all_traits()}
    return by_kind.get(kind) or Progress(kind=kind, label=kind, keeps_offsets=False)


def source_types() -> list[str]:
    """Every name that an ioConfig's type may have."""
    return [name for model in SOURCES for name in model.NAMES]


def model_named(name: Any) -> type[IOConfig] | None:
    """The model of the source that has this type."""
    return next((model for model in SOURCES if name in model.NAMES), None)


def model_of(written: Any) -> type[IOConfig] | None:
    """The model that an ioConfig, as it is written, is to be read as."""
    return model_named(written.get("type")) if isinstance(written, Mapping) else None


def _read_io_config(written: Any) -> IOConfig:
    if isinstance(written, IOConfig):
        return written
    model = model_of(written)
    if model is None:
        names = ", ".join(map(repr, source_types()))
        raise PydanticCustomError("source_type", "type must be one of {names}", {"names": names})
    return model.model_validate(written)


class _AnySource:
    """Read as the model that is registered under its type, and written with all that this one has."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        serializer = core_schema.wrap_serializer_function_ser_schema(
            lambda value, serialize: serialize(value), schema=core_schema.any_schema()
        )
        return core_schema.no_info_plain_validator_function(_read_io_config, serialization=serializer)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"oneOf": [handler(model.__pydantic_core_schema__) for model in SOURCES]}


AnyIOConfig = Annotated[IOConfig, _AnySource()]


class DruidType:
    """A text that is one of Druid's types of the sources: ``type_of`` says which."""

    def __init__(self, type_of: Callable[[SourceTraits], str]) -> None:
        self._type_of = type_of

    def names(self) -> list[str]:
        """Each once."""
        return list(dict.fromkeys(self._type_of(traits) for traits in all_traits()))

    def check(self, written: Any) -> str:
        """Raises as a ``Literal`` would."""
        names = self.names()
        if not isinstance(written, str) or written not in names:
            *first, last = map(repr, names)
            raise PydanticKnownError("literal_error", {"expected": f"{', '.join(first)} or {last}"})
        return written

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.check, serialization=core_schema.to_string_ser_schema()
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "enum": self.names()}

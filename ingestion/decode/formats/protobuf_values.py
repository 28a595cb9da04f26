"""A Protobuf message's values as JSON has them, roughly by Protobuf's own mapping, as in Druid.

64-bit integers stay numbers, enums become their names, bytes base64, a Timestamp or Duration its text. A field that is
not set is missing; in proto3 that is also one that holds 0, "" or false without being ``optional``: the message does
not say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]

from ingestion.decode.written_numbers import of_single

Convert = Callable[[Any], Any]


def _descriptors() -> dict[str, Any]:
    files = {}
    modules = (any_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2)
    for module in (*modules, wrappers_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        files[file.name] = file
    return files


WELL_KNOWN = _descriptors()  # file name → FileDescriptorProto
_WRAPPERS = {
    f"google.protobuf.{kind}Value"
    for kind in ("Bool", "Int32", "UInt32", "Int64", "UInt64", "String", "Bytes", "Float", "Double")
}


class MessageReader:
    """Messages to dicts. A field is called as in the .proto file, unless ``names`` (what the spec names) holds only
    its JSON name: ``httpMethod`` for ``http_method``.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._fields: dict[Any, tuple[str, Convert]] = {}
        self._special: dict[str, Convert] = {
            "google.protobuf.Timestamp": lambda m: m.ToJsonString(),
            "google.protobuf.Duration": lambda m: m.ToJsonString(),
            "google.protobuf.FieldMask": lambda m: m.ToJsonString(),
            "google.protobuf.Struct": lambda m: {k: self._value(v) for k, v in m.fields.items()},
            "google.protobuf.Value": self._value,
            "google.protobuf.ListValue": lambda m: [self._value(v) for v in m.values],
            "google.protobuf.Any": _any,
            **dict.fromkeys(_WRAPPERS, lambda m: m.value),
            "google.protobuf.FloatValue": lambda m: of_single(m.value),
        }

    def fields(self, message: Any) -> dict[str, Any]:
        """The fields that are set."""
        values = {}
        known = self._fields
        for field, value in message.ListFields():
            if field not in known:
                known[field] = (self._name(field), self._converter(field))
            name, convert = known[field]
            values[name] = convert(value)
        return values

    def _name(self, field: Any) -> str:
        plain, json_name = str(field.name), str(field.json_name)
        return json_name if json_name in self._names and plain not in self._names else plain

    def _converter(self, field: Any) -> Convert:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            convert = self._single(field.message_type.fields_by_name["value"])
            return lambda value: {_key(k): convert(v) for k, v in value.items()}
        single = self._single(field)
        return (lambda value: [single(v) for v in value]) if field.is_repeated else single

    def _single(self, field: Any) -> Convert:
        if field.type in (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP):
            return self._special.get(field.message_type.full_name, self.fields)
        if field.type == FieldDescriptor.TYPE_ENUM:
            if field.enum_type.full_name == "google.protobuf.NullValue":
                return lambda _: None
            names = {number: v.name for number, v in field.enum_type.values_by_number.items()}
            return lambda value: names.get(value, value)
        return of_single if field.type == FieldDescriptor.TYPE_FLOAT else _same

    def _value(self, message: Any) -> Any:
        kind = message.WhichOneof("kind")
        if kind in (None, "null_value"):
            return None
        value = getattr(message, kind)
        if kind == "struct_value":
            return {k: self._value(v) for k, v in value.fields.items()}
        return [self._value(v) for v in value.values] if kind == "list_value" else value


def _same(value: Any) -> Any:
    return value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _any(message: Any) -> Any:
    """An Any by its type, where that is known; else its bytes."""
    try:
        return json_format.MessageToDict(message, descriptor_pool=message.DESCRIPTOR.file.pool)
    except (TypeError, json_format.Error):
        return {"@type": message.type_url, "value": message.value}

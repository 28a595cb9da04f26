"""A Protobuf message's values as JSON has them, roughly by Protobuf's own mapping, as in Druid.

64-bit integers stay numbers, enums become their names, bytes base64, a Timestamp or Duration its text, an Any its
message's fields beside ``@type``. A field that is not set is missing; in proto3 that is also one that holds 0, "" or
false without being ``optional``: the message does not say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf import message_factory  # type: ignore[import-untyped]
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError as ProtobufError  # type: ignore[import-untyped]

from ingestion.decode.exact_numbers import single_number
from ingestion.decode.formats.base import BadRecord

Convert = Callable[[Any], Any]
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
            "google.protobuf.Any": self._any,
            **dict.fromkeys(_WRAPPERS, lambda m: m.value),
            "google.protobuf.FloatValue": lambda m: single_number(m.value),
        }

    def fields(self, message: Any) -> dict[str, Any]:
        """The fields that are set."""
        values = {}
        converters = self._fields
        for field, value in message.ListFields():
            if field not in converters:
                converters[field] = (self._name(field), self._converter(field))
            name, convert = converters[field]
            values[name] = convert(value)
        return values

    def _name(self, field: Any) -> str:
        plain, json_name = str(field.name), str(field.json_name)
        return json_name if json_name in self._names and plain not in self._names else plain

    def _converter(self, field: Any) -> Convert:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            convert = self._single(field.message_type.fields_by_name["value"])
            return lambda value: {_map_key(k): convert(v) for k, v in value.items()}
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
        return single_number if field.type == FieldDescriptor.TYPE_FLOAT else _identity

    def _value(self, message: Any) -> Any:
        kind = message.WhichOneof("kind")
        if kind in (None, "null_value"):
            return None
        value = getattr(message, kind)
        if kind == "struct_value":
            return {k: self._value(v) for k, v in value.fields.items()}
        return [self._value(v) for v in value.values] if kind == "list_value" else value

    def _any(self, message: Any) -> dict[str, Any]:
        """By Protobuf's own mapping: the packed message's fields beside ``@type``, or in ``value`` what is no object.

        Of a type that is not in the schema the bytes stay, in ``value``, too. Raises ``BadRecord``.
        """
        url = message.type_url
        if not url and not message.value:
            return {}
        name = url.rpartition("/")[2]
        try:
            descriptor = message.DESCRIPTOR.file.pool.FindMessageTypeByName(name)
        except KeyError:
            return {"@type": url, "value": message.value}
        try:
            packed = message_factory.GetMessageClass(descriptor).FromString(message.value)
        except ProtobufError:
            raise BadRecord(f"the value in its google.protobuf.Any is not a Protobuf message of type {name}") from None
        special = self._special.get(name)
        return {"@type": url, **({"value": special(packed)} if special else self.fields(packed))}


def _identity(value: Any) -> Any:
    return value


def _map_key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)

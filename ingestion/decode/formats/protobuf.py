"""``protobuf``: messages by a descriptor set, or by a schema registry."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError as ProtobufError  # type: ignore[import-untyped]

from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.formats.access import Access
from ingestion.decode.formats.base import BadRecord, Texts, json_encoder, read_texts
from ingestion.decode.formats.files import read_schema_file
from ingestion.decode.formats.protobuf_imports import known_file
from ingestion.decode.formats.protobuf_values import MessageReader
from ingestion.decode.formats.registry import RegisteredSchema, RegistrySchemas, split_head
from ingestion.specs.formats.input_format import ProtobufFileDecoder, ProtobufInlineDecoder, ProtobufInputFormat

_MAIN = "registered.proto"
_DEEPEST = 32


class ProtobufReader:
    """Reads ``protobuf``. ``names``: what the spec calls fields; see ``MessageReader``."""

    def __init__(self, spec: ProtobufInputFormat, access: Access, names: frozenset[str]) -> None:
        self._values = MessageReader(names)
        self._encode = json_encoder()
        self._message = _message_reader(spec, access)

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        return read_texts(payloads, self._text, empty_is_a_record=True)

    def _text(self, payload: bytes) -> str:
        return self._encode(self._values.fields(self._message(payload)))


def _message_reader(spec: ProtobufInputFormat, access: Access) -> Callable[[bytes], Any]:
    decoder = spec.protoBytesDecoder
    if isinstance(decoder, ProtobufFileDecoder):
        return _single_class_reader(
            _message_class(read_schema_file(decoder.descriptor, access.schema_folder), decoder.protoMessageType)
        )
    if isinstance(decoder, ProtobufInlineDecoder):
        return _single_class_reader(_message_class(_from_base64(decoder.descriptorString), decoder.protoMessageType))
    return _registry_reader(RegistrySchemas(decoder, access.registry(decoder), "PROTOBUF", RegisteredFile))


def _from_base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise UnusableSchema(f"descriptorString is not base64: {error}") from None


def _message_class(raw: bytes, name: str | None) -> Any:
    """The class of the message ``name`` (short or full; None: the first) in a serialized descriptor set."""
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(raw).file
        pool = _build_pool(files)
        full_name = _full_name(files, name)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(full_name))
    except (ProtobufError, TypeError, KeyError) as error:
        raise UnusableSchema(f"the descriptor can't be used: {error}") from None


def _full_name(files: Sequence[Any], name: str | None) -> str:
    names = [n for f in files for n in _names_in(f.package, f.message_type)]
    if not names:
        raise UnusableSchema("the descriptor has no message type")
    if name is None:
        return names[0]
    fitting = [n for n in names if n == name] or [n for n in names if n.endswith("." + name)]
    if len(fitting) != 1:
        says = "no message type" if not fitting else "several message types"
        raise UnusableSchema(f"the descriptor has {says} {name}: it has {', '.join(names[:20])}")
    return fitting[0]


def _names_in(scope: str, messages: Iterable[Any]) -> Iterable[str]:
    for message in messages:
        full_name = f"{scope}.{message.name}".lstrip(".")
        yield full_name
        yield from _names_in(full_name, message.nested_type)


def _build_pool(files: Iterable[Any]) -> Any:
    """A pool of these files and of those known ones that they need and don't bring."""
    pool = descriptor_pool.DescriptorPool()
    brought = {f.name: f for f in files}
    added: set[str] = set()

    def add(name: str) -> None:
        file = brought.get(name) or known_file(name)
        if file is not None and name not in added:
            added.add(name)
            for needed in file.dependency:
                add(needed)
            pool.Add(file)

    for name in brought:
        add(name)
    return pool


def _single_class_reader(kind: Any) -> Callable[[bytes], Any]:
    return lambda payload: _parse_message(kind, payload)


def _parse_message(kind: Any, payload: bytes) -> Any:
    try:
        return kind.FromString(payload)
    except ProtobufError:
        raise BadRecord(f"not a Protobuf message of type {kind.DESCRIPTOR.full_name}") from None


class RegisteredFile:
    """A registry's schema: a .proto file, of which a record names one message."""

    def __init__(self, schema: RegisteredSchema) -> None:
        self._file = _parse_file(_MAIN, schema.text)
        self._pool = _build_pool([*(_parse_file(name, text) for name, text in schema.references), self._file])
        self._classes: dict[tuple[int, ...], Any] = {}

    def message(self, path: tuple[int, ...]) -> Any:
        """The class of the message at ``path``: its index in the file, then those of messages within."""
        if path not in self._classes:
            self._classes[path] = message_factory.GetMessageClass(self._pool.FindMessageTypeByName(self._name(path)))
        return self._classes[path]

    def _name(self, path: tuple[int, ...]) -> str:
        name, messages = self._file.package, self._file.message_type
        for index in path:
            if not 0 <= index < len(messages):
                raise BadRecord(f"its schema has no message at index {list(path)}")
            name, messages = f"{name}.{messages[index].name}", messages[index].nested_type
        return str(name).lstrip(".")


def _parse_file(name: str, text: str) -> Any:
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(text, validate=True))
    except ValueError:
        raise BadRecord("the schema registry does not return it as a serialized descriptor") from None
    file.name = name
    return file


def _registry_reader(schemas: RegistrySchemas[RegisteredFile]) -> Callable[[bytes], Any]:
    def read(payload: bytes) -> Any:
        schema_id, start = split_head(payload)
        path, start = _message_path(payload, start)
        return _parse_message(schemas.parsed(schema_id).message(path), payload[start:])

    return read


def _message_path(payload: bytes, position: int) -> tuple[tuple[int, ...], int]:
    """The message's place in the file: a count and this many indexes, or 0 for the first message."""
    count, position = _varint(payload, position)
    if count == 0:
        return (0,), position
    if not 0 < count <= _DEEPEST:
        raise BadRecord(f"not in the schema registry's wire format: a message {count} levels deep")
    path = []
    for _ in range(count):
        index, position = _varint(payload, position)
        path.append(index)
    return tuple(path), position


def _varint(payload: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint, and where the next byte is."""
    value = shift = 0
    while position < len(payload) and shift < 64:
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise BadRecord("not in the schema registry's wire format: the message's index does not end")

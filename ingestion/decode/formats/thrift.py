"""``thrift``: structs by an IDL, in any of Thrift's protocols, read by thriftpy2.

As in Druid enums are numbers, and with protocol ``auto`` the protocol is told by the first byte, and base64 around it
is taken off. Fields are called as in the IDL; binary becomes base64.
"""

from __future__ import annotations

import io
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from thriftpy2.parser import parse_fp
from thriftpy2.protocol import TApacheJSONProtocol, TCompactProtocolFactory, TCyBinaryProtocolFactory
from thriftpy2.thrift import TPayload
from thriftpy2.transport import TMemoryBuffer
from thriftpy2.utils import deserialize

from ingestion.decode.envelope import Envelope
from ingestion.decode.errors import UnusableSchema
from ingestion.decode.formats.access import Access
from ingestion.decode.formats.base import BadRecord, Texts, json_encoder, read_texts
from ingestion.decode.formats.files import read_schema_file
from ingestion.decode.formats.thrift_shape import BinaryShape, CompactShape
from ingestion.specs.formats.input_format import ThriftInputFormat

_BASE64 = re.compile(rb"[A-Za-z0-9+/=\s]+")
_SHORT_FORM = 0x10  # a compact field's head holds the distance to the last field in its upper half
_BINARY: Any = TCyBinaryProtocolFactory()  # type: ignore[no-untyped-call]
_COMPACT: Any = TCompactProtocolFactory()  # type: ignore[no-untyped-call]
_modules = count()
_PLAIN = frozenset({str, int, float, bool, bytes})  # most values are


class ThriftReader:
    """Reads ``thrift``."""

    def __init__(self, spec: ThriftInputFormat, access: Access) -> None:
        self._kind = _struct(spec, access)
        self._protocol: str = spec.protocol
        self._encode = json_encoder()

    def read(self, payloads: Sequence[bytes | None], envelope: Envelope | None) -> Texts:
        return read_texts(payloads, self._text)

    def _text(self, payload: bytes) -> str:
        protocol = self._protocol
        if protocol == "auto":
            payload = _without_base64(payload)
            protocol = _guess_protocol(payload)
        struct = _READERS[protocol](self._kind(), payload)
        return self._encode(_value(struct))


def _struct(spec: ThriftInputFormat, access: Access) -> Any:
    """The struct's class. A name of Java's is taken by its last part."""
    text = spec.thriftIdl
    if spec.thriftFile is not None:
        text = read_schema_file(spec.thriftFile, access.schema_folder).decode(errors="replace")
    try:  # from text: so an include is refused, which would read another file
        name = f"spec_{next(_modules)}_thrift"
        module = parse_fp(io.StringIO(text), name, enable_cache=False)  # type: ignore[no-untyped-call]
    except Exception as error:  # the parser's grammar and its checks raise as they like
        raise UnusableSchema(f"the Thrift IDL can't be used: {error}") from None
    name = re.split(r"[.$]", spec.thriftClass)[-1]
    kind = getattr(module, name, None)
    if not (isinstance(kind, type) and issubclass(kind, TPayload)):
        raise UnusableSchema(f"the Thrift IDL has no struct {name}")
    return kind


def _without_base64(payload: bytes) -> bytes:
    if payload[-1] != 0 and _BASE64.fullmatch(payload):
        try:
            return b64decode(payload, validate=False) or payload
        except ValueError:
            return payload
    return payload


def _guess_protocol(payload: bytes) -> str:
    if payload.lstrip().startswith(b"{"):
        return "json"
    return "compact" if payload[0] > _SHORT_FORM else "binary"


def _json(struct: Any, payload: bytes) -> Any:
    """Thrift's JSON, read as the argument of a call, which is how the library takes it."""
    call = TMemoryBuffer(b'[1,"m",1,0,' + payload + b"]")  # type: ignore[no-untyped-call]
    protocol: Any = TApacheJSONProtocol(call)  # type: ignore[no-untyped-call]
    protocol.read_message_begin()
    return protocol.read_struct(struct)


def _binary(struct: Any, payload: bytes) -> Any:
    BinaryShape(payload).check()
    return deserialize(struct, payload, _BINARY)


def _compact(struct: Any, payload: bytes) -> Any:
    CompactShape(payload).check()
    return deserialize(struct, payload, _COMPACT)


_READERS: dict[str, Callable[[Any, bytes], Any]] = {"binary": _binary, "compact": _compact, "json": _json}


def _value(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, TPayload):
        return _fields(value)
    if isinstance(value, dict):
        return {k if isinstance(k, str) else str(_value(k)): _value(v) for k, v in value.items()}
    if isinstance(value, list | set | frozenset | tuple):
        return [_value(v) for v in value]
    return value


def _fields(struct: Any) -> dict[str, Any]:
    members = {}
    for field in struct.thrift_spec.values():
        name, required = field[1], field[-1]
        value = getattr(struct, name)
        if value is not None:
            members[name] = _value(value)
        elif required:
            raise BadRecord(f"not a Thrift {type(struct).__name__}: the required field {name} is missing")
    return members

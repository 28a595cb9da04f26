"""How records are written, as far as their bytes tell it. Pure: bytes in, guesses out.

A guess is an ``inputFormat`` with the share of the records that it reads, and the reason in words. Records without a
value say nothing and are left out. What no format reads is named too, with a share of 0 and what has to change.
"""

from __future__ import annotations

import json
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ingestion.specs.messages.sampling import FormatGuess

MAX_RECORDS = 200  # records; more would tell the same
MAX_RECORD_BYTES = 256 * 1024  # bytes: a record that is larger is left out, unless all are
MAX_SCHEMAS = 16  # ids of a registry: bytes that only look like them have more
_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}
_REGISTRY = {"type": "schema_registry"}
_NO_ADDRESS = "the address of the schema registry"
_HEAD = 5  # bytes: a byte 0 and a schema's number
_SEVERAL = "several JSON objects"
_GZIP = b"\x1f\x8b\x08"
_MAX_UNZIPPED = 64 * 1024
# What no format reads: how records of it are called, and what has to change.
_UNREADABLE = {
    "framed": ("are JSON after a byte 0 and a schema id, as serializers of JSON Schema write it",
               "a serializer that writes JSON alone"),
    "apicurio": ("begin with a byte 0 and the eight bytes of a schema id, as Apicurio's serializers write it",
                 "a serializer that writes four bytes: Apicurio's has an option for Confluent's ids"),
    "utf16": ("are text in UTF-16", "a producer that writes UTF-8"),
    "gzip": ("are compressed with gzip, each by itself",
             "records as they are: Kafka compresses batches of them by the producer's compression.type"),
}  # fmt: skip


def format_guesses(payloads: Sequence[bytes | None]) -> list[FormatGuess]:
    """The likeliest first; empty when nothing fits, or there is nothing to look at."""
    present = [p for p in payloads if p]
    records = ([p for p in present if len(p) <= MAX_RECORD_BYTES] or present)[:MAX_RECORDS]
    if not records:
        return []
    unreadable = {kind: [r for r in records if _unreadable_kind(r) == kind] for kind in _UNREADABLE}
    plain = [r for r in records if _unreadable_kind(r) is None]
    guesses = [
        *_registry_guesses(plain, len(records)),
        *_json_guesses(records),
        *_delimited_guesses(plain, len(records)),
    ]
    read = sorted((g for g in guesses if g.share > 0), key=lambda g: -g.share)
    return [*read, *_unreadable_guesses(unreadable, len(records))]


def _unreadable_guesses(records_by_kind: dict[str, list[bytes]], total: int) -> Iterator[FormatGuess]:
    for kind, records in records_by_kind.items():
        if records:
            called, lacks = _UNREADABLE[kind]
            why = f"{_share_text(len(records), total)} {called}, which no input format reads"
            yield FormatGuess(input_format=_nearest_format(kind, records[0]), share=0.0, why=why, lacks=lacks)


def _nearest_format(kind: str, record: bytes) -> dict[str, Any]:
    """The format of what would be there after the change."""
    if kind == "apicurio":
        return {"type": "avro_stream", "avroBytesDecoder": _REGISTRY}
    if kind == "gzip" and not _unzipped(record).lstrip().startswith(b"{"):
        return {"type": "lines"}
    return {"type": "json"}


def _unzipped(record: bytes) -> bytes:
    """The beginning of it."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(record, _MAX_UNZIPPED)
    except zlib.error:
        return b""


def _unreadable_kind(record: bytes) -> str | None:
    """Which of the ``_UNREADABLE`` it is."""
    if record.startswith(_GZIP):
        return "gzip"
    if _is_utf16(record):
        return "utf16"
    if record[:1] == b"\0" and record[_HEAD : _HEAD + 1] == b"{" and _json_kind(record[_HEAD:]) == "object":
        return "framed"
    if len(record) > 2 * _HEAD and record[:_HEAD] == bytes(_HEAD) and any(record[_HEAD : 2 * _HEAD - 1]):
        return "apicurio"  # no registry calls a schema 0
    return None


def _is_utf16(record: bytes) -> bool:
    if len(record) % 2:
        return False
    if record.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return True
    evens, odds = record[:64:2], record[1:64:2]
    return len(evens) > 1 and ((all(evens) and not any(odds)) or (all(odds) and not any(evens)))


def _registry_guesses(records: list[bytes], total: int) -> Iterator[FormatGuess]:
    """Confluent's framing: a byte 0, four bytes of the schema's id, and for Protobuf the path of the message."""
    framed = [r for r in records if len(r) > _HEAD and r[0] == 0]
    ids = sorted({int.from_bytes(r[1:5], "big") for r in framed})
    if not framed or len(ids) > MAX_SCHEMAS:
        return
    share = len(framed) / total
    why = f"{_share_text(len(framed), total)} begin with a byte 0 and a schema id ({_list_ids(ids)})"
    proto = {"type": "protobuf", "protoBytesDecoder": _REGISTRY}
    avro = {"type": "avro_stream", "avroBytesDecoder": _REGISTRY}
    by_path = all(_is_protobuf(r[6:]) for r in framed if r[5] == 0) and all(r[5] == 0 for r in framed)
    first, second = (proto, avro) if by_path else (avro, proto)
    says = "what follows reads as Protobuf" if by_path else "what follows does not read as Protobuf"
    yield FormatGuess(input_format=first, share=share, why=f"{why}; {says}", lacks=_NO_ADDRESS)
    yield FormatGuess(input_format=second, share=share / 2, why=f"{why}; less likely, but this is not certain",
                      lacks=_NO_ADDRESS)  # fmt: skip


def _is_protobuf(data: bytes) -> bool:
    """Whether these bytes are fields of Protobuf, one after the other, up to the end."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if tag >> 3 == 0 or kind not in (0, 1, 2, 5):
            return False
        if kind == 0:
            _, position = _varint(data, position)
        elif kind == 2:
            length, position = _varint(data, position)
            position += length
        else:
            position += 8 if kind == 1 else 4
    return position == len(data)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if not byte & 128:
            return value, position
    return 0, len(data) + 1  # it has no end: what comes after it can't be read


def _json_guesses(records: list[bytes]) -> Iterator[FormatGuess]:
    kinds = Counter(_json_kind(r) for r in records)
    several = kinds.pop(_SEVERAL, 0)
    objects = kinds.pop("object", 0) + several
    if not objects:
        return
    others = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    why = f"{_share_text(objects, len(records))} are JSON objects"
    if several:
        why = f"{why}, {_share_text(several, objects)} of them have several in one record: each object is a row"
    yield FormatGuess(
        input_format={"type": "json"},
        share=objects / len(records),
        why=f"{why}; the others: {others}" if others else why,
    )


def _json_kind(record: bytes) -> str:
    """Which kind of JSON a record is; in words, as it is shown."""
    try:
        value = json.loads(record.decode("utf-8-sig"))
    except RecursionError:
        return "nested too deeply"
    except ValueError:
        return _broken(record)
    return "object" if isinstance(value, dict) else "JSON but not an object"


def _broken(record: bytes) -> str:
    text, end = record.decode(errors="replace").strip(), 0
    decoder = json.JSONDecoder()
    try:
        while text.startswith("{", end):
            _, end = decoder.raw_decode(text, end)
            while text[end : end + 1].isspace():
                end += 1
    except (ValueError, RecursionError):
        end = 0
    if text and end == len(text):
        return _SEVERAL
    return "broken JSON" if record.lstrip()[:1] in (b"{", b"[") else "not JSON"


def _delimited_guesses(records: list[bytes], total: int) -> Iterator[FormatGuess]:
    texts = [text for text in map(_text, records) if text is not None and text.lstrip()[:1] not in ("{", "[", "")]
    for delimiter, name in _DELIMITERS.items():
        lines = [text.splitlines()[-1] for text in texts]
        counts = Counter(_count_delimiters(line, delimiter) for line in lines)
        counts.pop(0, None)
        if not counts:
            continue
        [(most, fitting)] = counts.most_common(1)
        if most == 1 and delimiter == "," and fitting < len(texts):
            continue  # a comma in a sentence
        form = {"type": "csv"} if delimiter == "," else {"type": "tsv", "delimiter": delimiter}
        columns, how = _columns(texts, delimiter, most + 1)
        why = f"{_share_text(fitting, total)} are lines with {most} {name} each; {how}"
        yield FormatGuess(input_format=form | columns, share=0.99 * fitting / total, why=why)


def _columns(texts: list[str], delimiter: str, count: int) -> tuple[dict[str, Any], str]:
    """Where the names of the columns come from."""
    heads = {text.splitlines()[0] if len(text.splitlines()) > 1 else "" for text in texts}
    if len(heads) == 1 and all(_is_name(part.strip().strip('"')) for part in min(heads).split(delimiter)):
        return {"findColumnsFromHeader": True}, "each begins with the same header row"
    for text in texts:
        names = [part.strip().strip('"') for part in text.split(delimiter)]
        if len(names) == count and len(set(names)) == count and all(map(_is_name, names)) and text != texts[-1]:
            return {"columns": names}, "one of them looks like a header row (it will be read as a record too)"
    return {"columns": [f"column_{n}" for n in range(1, count + 1)]}, "their columns have no names yet"


def _is_name(text: str) -> bool:
    return text.replace("_", "a").replace("-", "a").replace(" ", "a").isalnum() and text[:1].isalpha()


def _count_delimiters(line: str, delimiter: str) -> int:
    """How often it stands outside of quotes, which mean something with commas only."""
    if delimiter != "," or '"' not in line:
        return line.count(delimiter)
    return sum(part.count(delimiter) for part in line.split('"')[::2])


def _text(record: bytes) -> str | None:
    try:
        text = record.decode()
    except UnicodeDecodeError:
        return None
    return text if text.strip() and not any(ord(c) < 9 for c in text[:1000]) else None


def _share_text(some: int, all_: int) -> str:
    return f"all {all_}" if some == all_ else f"{some} of {all_}"


def _list_ids(ids: list[int]) -> str:
    return ", ".join(map(str, ids[:3])) + (" …" if len(ids) > 3 else "")

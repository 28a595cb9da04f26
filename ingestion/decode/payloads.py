"""From payload bytes to text, and what to say about a payload that is no JSON object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import overload

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.decode.engine import RECORDS, Engine

_BOM = "\ufeff"
_MALFORMED = re.compile(r"Malformed JSON at byte (\d+) of input: (.+?)\.\s+Input:", re.DOTALL)
_JSON_TYPE = "SELECT json_type(j) FROM records"
NOT_AN_OBJECT = "not a JSON object"
MAX_EXPLAINED = 200  # of a batch
_KINDS = {"ARRAY": "an array", "VARCHAR": "a string", "BOOLEAN": "true or false", "NULL": "null"}


class JsonLines(Sequence[bytes]):
    """Payloads side by side in memory, as a file has them: none is missing, or empty.

    They are read with the line break that each but the last one ends with, which JSON allows, and shown without it.
    """

    def __init__(self, held: pa.BinaryArray) -> None:
        self.held = held

    @classmethod
    def of(cls, block: bytes, ends: npt.NDArray[np.int64]) -> JsonLines:
        """``ends``: behind the break of each line."""
        offsets = pa.array(np.append(0, ends), pa.int32())
        buffers = [None, offsets.buffers()[1], pa.py_buffer(block)]
        return cls(pa.Array.from_buffers(pa.binary(), len(ends), buffers))

    def __len__(self) -> int:
        return len(self.held)

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> JsonLines: ...

    def __getitem__(self, index: int | slice) -> bytes | JsonLines:
        if isinstance(index, slice):
            return JsonLines(self.held[index])
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        payload: bytes = self.held[index].as_py()
        return payload.removesuffix(b"\n")

    def __contains__(self, payload: object) -> bool:
        return payload is not None and super().__contains__(payload)

    @property
    def size_bytes(self) -> int:
        """Without the breaks."""
        with_breaks: int = pc.sum(pc.binary_length(self.held)).as_py() or 0
        last_has_one = len(self) > 0 and self.held[-1].as_py().endswith(b"\n")
        return with_breaks - max(0, len(self) - 1) - last_has_one


def decode_texts(payloads: Sequence[bytes | None]) -> tuple[pa.Array, dict[int, str]]:
    """The payloads as string array (null where there is no text), and the errors of those nulls by index.

    A byte order mark is dropped, as Jackson and so Druid do.
    """
    raw = payloads.held if isinstance(payloads, JsonLines) else pa.array(payloads, pa.binary())
    errors = {i: empty_reason(p) for i, p in enumerate(payloads) if not p} if _has_empty(raw) else {}
    try:
        texts = raw.cast(pa.string())
    except pa.ArrowInvalid:
        texts, faults = _decoded_one_by_one(payloads)
        errors |= faults
    if pc.any(pc.starts_with(texts, _BOM)).as_py():
        texts = pa.array([t if t is None else t.removeprefix(_BOM) for t in texts.to_pylist()], pa.string())
    return texts, errors


def _has_empty(raw: pa.Array) -> bool:
    return bool(raw.null_count) or pc.min(pc.binary_length(raw)).as_py() == 0


def empty_reason(payload: bytes | None) -> str:
    return "the record has no value (null payload)" if payload is None else "the payload is empty"


def _decoded_one_by_one(payloads: Sequence[bytes | None]) -> tuple[pa.Array, dict[int, str]]:
    texts: list[str | None] = []
    errors: dict[int, str] = {}
    for index, payload in enumerate(payloads):
        try:
            texts.append(None if payload is None else payload.decode())
        except UnicodeDecodeError as error:
            texts.append(None)
            errors[index] = f"not UTF-8: {error.reason} at byte {error.start}"
    return pa.array(texts, pa.string()), errors


def explain_text(engine: Engine, text: str) -> str:
    """Why a text is no JSON object; it costs 0.1 ms."""
    try:
        kind = engine.value(_JSON_TYPE, RECORDS, pa.table({"j": [text]}))
    except duckdb.InvalidInputException as error:
        return _malformed_reason(str(error))
    return f"{NOT_AN_OBJECT} but {_KINDS.get(str(kind), 'a number')}"


def _malformed_reason(message: str) -> str:
    match = _MALFORMED.search(message)
    return f"not JSON: {match[2]} at byte {match[1]}" if match else "not JSON"

"""The process behind ``IsolatedDecoder``: ``python -m ingestion.decode.child_process``, spoken to on standard streams.

It ends when its input ends. While it works it has an alarm set: when the parent is gone and a record hangs the decoder,
the process still ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from base64 import b64decode
from typing import Any

from pydantic import TypeAdapter

from ingestion.decode.envelope import take_records
from ingestion.decode.errors import DecoderBroken, RegistryUnreachable, TooSlow, TooWide, UnusableSchema
from ingestion.decode.formats.access import Access
from ingestion.decode.formats.registry import OpenRegistry
from ingestion.decode.json_decoder import JsonDecoder
from ingestion.decode.pipes import (
    Pipe,
    PipeClosed,
    pack_outcome,
    pack_rows,
    unpack_payloads,
    unpack_window,
)
from ingestion.specs.formats.input_format import InputFormat
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.schema.data_schema import DataSchema
from ingestion.without_pandas import keep_pandas_out

_GRACE_S = 30.0
_FORMAT: TypeAdapter[InputFormat] = TypeAdapter(InputFormat)


def main(open_registry: OpenRegistry | None = None) -> int:
    """Serve until the parent closes the pipe. Who has a registry's client to give calls it from a main of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_pandas_out()
    pipe = _private_pipe()
    try:
        _serve(pipe, open_registry)
    except PipeClosed:
        return 0
    return 1


def _private_pipe() -> Pipe:
    """Standard input and output for frames alone: what a library prints goes to standard error."""
    pipe = Pipe(os.dup(0), os.dup(1))
    os.dup2(2, 1)
    return pipe


def _serve(pipe: Pipe, open_registry: OpenRegistry | None) -> None:
    decoder = _create_decoder(pipe, open_registry)
    if decoder is None:
        return
    try:
        while True:
            request = json.loads(pipe.receive())
            try:
                _answer_request(pipe, decoder, request)
            except RegistryUnreachable as error:
                signal.setitimer(signal.ITIMER_REAL, 0)
                _send(pipe, {"unreachable": str(error), "permanent": error.permanent})
            except TooSlow as error:
                signal.setitimer(signal.ITIMER_REAL, 0)
                _send(pipe, {"too_slow": str(error)})
            except TooWide as error:
                signal.setitimer(signal.ITIMER_REAL, 0)
                _send(pipe, {"too_wide": str(error)})
    except DecoderBroken as error:
        _send(pipe, {"broken": str(error)})
    finally:
        decoder.close()


def _create_decoder(pipe: Pipe, open_registry: OpenRegistry | None) -> JsonDecoder | None:
    settings = json.loads(pipe.receive())
    marker = settings["crash_marker"]
    try:
        decoder = JsonDecoder(
            DataSchema.model_validate(settings["schema"]),
            settings["memory_limit_bytes"],
            None if marker is None else b64decode(marker),
            _FORMAT.validate_python(settings["input_format"]),
            Access(open_registry, settings["schema_folder"], AddressPolicy.model_validate(settings["address_policy"])),
            settings["batch_s"],
            with_digits=settings["with_digits"],
        )
    except UnusableSchema as error:
        _send(pipe, {"unusable": str(error)})
        return None
    _send(pipe, {})
    return decoder


def _answer_request(pipe: Pipe, decoder: JsonDecoder, request: dict[str, Any]) -> None:
    payloads, envelope = unpack_payloads(pipe.receive(), request["topic"])
    window = unpack_window(request["window"])
    signal.setitimer(signal.ITIMER_REAL, request["timeout_s"] + _GRACE_S)
    if request["one_by_one"]:
        for index, payload in enumerate(payloads):
            decoder.decode([payload], window, take_records(envelope, [index]))
            _send(pipe, {})
            signal.setitimer(signal.ITIMER_REAL, request["timeout_s"] + _GRACE_S)
    else:
        decoded = decoder.decode(payloads, window, envelope)
        _send(pipe, pack_outcome(decoded))
        pipe.send(pack_rows(decoded))
    signal.setitimer(signal.ITIMER_REAL, 0)


def _send(pipe: Pipe, answer: dict[str, Any]) -> None:
    pipe.send(json.dumps(answer).encode())


if __name__ == "__main__":
    sys.exit(main())

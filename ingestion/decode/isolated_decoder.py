"""A decoder that a record can't kill: it works in a child process, which may die or hang."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from ingestion.decode.decoded import Decoded, join_decoded
from ingestion.decode.envelope import Envelope, take_records
from ingestion.decode.errors import DecodeError, DecoderBroken, RegistryUnreachable, TooSlow, TooWide, UnusableSchema
from ingestion.decode.formats import JSON
from ingestion.decode.formats.access import Access
from ingestion.decode.json_decoder import DEFAULT_BATCH_S, DEFAULT_MEMORY_LIMIT_BYTES
from ingestion.decode.message_window import UNBOUNDED, MessageWindow
from ingestion.decode.pipes import (
    Pipe,
    PipeClosed,
    PipeTimeout,
    pack_payloads,
    pack_window,
    unpack_decoded,
)
from ingestion.specs.formats.input_format import InputFormat
from ingestion.specs.schema.data_schema import DataSchema

_START_TIMEOUT_S = 120.0


class _ChildFailed(Exception):
    """The child died or hung while it worked; ``finished`` records it had finished one by one before."""

    def __init__(self, message: str, finished: int = 0) -> None:
        super().__init__(message)
        self.done = finished


class IsolatedDecoder:
    """A ``JsonDecoder`` in a child process: what kills or hangs it ends as ``crashed``, its neighbours are decoded.

    When the child fails on a batch, a new one goes through the batch record by record and says after each that it is
    done: so it takes one restart to find each such record, not one for each halving. The others are then decoded as
    one batch. The child (it is started at the first call, and inherits no file but standard error) is used again
    for later calls.

    ``timeout_s`` is for one batch, and again for one record; ``batch_s`` and ``with_digits``: see
    ``JsonDecoder``. ``child_module`` is what the child runs: one that gives ``ingestion.decode.child_process`` a schema
    registry's client, where formats need one; that of ``access`` is not used.
    Not thread-safe. Close it. The first ``decode`` raises ``UnusableSchema``; any raises ``DecoderBroken`` when no
    child can be started, ``RegistryUnreachable``, ``TooSlow`` and ``TooWide``.
    """

    def __init__(
        self,
        schema: DataSchema,
        memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
        crash_marker: bytes | None = None,
        timeout_s: float = 20.0,
        input_format: InputFormat = JSON,
        child_module: str = "ingestion.decode.child_process",
        access: Access = Access(),  # noqa: B008 - it is frozen
        batch_s: float = DEFAULT_BATCH_S,
        *,
        with_digits: bool = False,
    ) -> None:
        self._child_module = child_module
        self._settings = {
            "schema_folder": access.schema_folder,
            "address_policy": access.address_policy.model_dump(mode="json"),
            "input_format": input_format.model_dump(mode="json"),
            "schema": schema.model_dump(mode="json"),
            "memory_limit_bytes": memory_limit_bytes,
            "batch_s": batch_s,
            "with_digits": with_digits,
            "crash_marker": None if crash_marker is None else b64encode(crash_marker).decode(),
        }
        self._timeout_s = timeout_s
        self._child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def decode(
        self,
        payloads: Sequence[bytes | None],
        window: MessageWindow = UNBOUNDED,
        envelope: Envelope | None = None,
    ) -> Decoded:
        """What becomes of every payload. ``envelope``: required by the format ``kafka``."""
        try:
            return self._decode(payloads, window, envelope)
        except _ChildFailed as failure:
            if len(payloads) == 1:
                return self._all_crashed(str(failure), 1, window)
        crashed = self._find_killers(payloads, window, envelope)
        others = [i for i in range(len(payloads)) if i not in crashed]
        rest = [payloads[i] for i in others]
        decoded = self._decode_or_split(rest, window, take_records(envelope, others)).moved(others)
        return replace(decoded, crashed=crashed | decoded.crashed)

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _decode_or_split(
        self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None
    ) -> Decoded:
        """Records none of which fails alone: should they fail together, in halves."""
        try:
            return self._decode(payloads, window, envelope)
        except _ChildFailed as failure:
            if len(payloads) < 2:
                return self._all_crashed(str(failure), len(payloads), window)
        middle = len(payloads) // 2
        second_half = range(middle, len(payloads))
        first = self.decode(payloads[:middle], window, take_records(envelope, range(middle)))
        second = self.decode(payloads[middle:], window, take_records(envelope, second_half))
        return join_decoded([first, second.moved(second_half)])

    def _decode(self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None) -> Decoded:
        try:
            return self._ready().decode(payloads, window, envelope, self._timeout_s)
        except _ChildFailed:
            self.close()
            raise

    def _find_killers(
        self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None
    ) -> dict[int, str]:
        """The records that fail alone, and how."""
        killers: dict[int, str] = {}
        start = 0
        while start < len(payloads):
            try:
                left = take_records(envelope, range(start, len(payloads)))
                self._ready().walk(payloads[start:], window, left, self._timeout_s)
                break
            except _ChildFailed as failure:
                self.close()
                start += failure.done + 1
                killers[start - 1] = str(failure)
        return killers

    def _all_crashed(self, message: str, count: int, window: MessageWindow) -> Decoded:
        try:
            rows = self._decode([], window, Envelope("", [], [], [])).rows
        except _ChildFailed as failure:
            raise DecoderBroken(f"the decoder fails on an empty batch: {failure}") from failure
        return Decoded(rows, crashed=dict.fromkeys(range(count), message))

    def _ready(self) -> _Child:
        if self._child is not None and self._child.is_dead():
            self.close()
        if self._child is None:
            self._child = _Child(self._settings, self._child_module)
        return self._child


class _Child:
    """One child process."""

    def __init__(self, settings: dict[str, Any], module: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
        command = [sys.executable, "-m", module]
        child_reads, we_write = os.pipe()
        we_read, child_writes = os.pipe()
        self._pipe = Pipe(we_read, we_write)
        try:
            self._process = subprocess.Popen(command, stdin=child_reads, stdout=child_writes, env=environment)
        except OSError as error:
            self._pipe.close()
            raise DecoderBroken(f"the decoder's child process does not start: {error}") from error
        finally:
            os.close(child_reads)
            os.close(child_writes)
        self._send_settings(settings)

    def is_dead(self) -> bool:
        return self._process.poll() is not None

    def decode(
        self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None, timeout_s: float
    ) -> Decoded:
        """Raises ``_ChildFailed``."""
        deadline = time.monotonic() + timeout_s
        try:
            self._request(payloads, window, envelope, timeout_s, False, deadline)
            outcome = self._answer(deadline)
            return unpack_decoded(outcome, self._pipe.receive(deadline))
        except (PipeClosed, PipeTimeout) as error:
            raise _ChildFailed(self._exit_message(error, timeout_s)) from error

    def walk(
        self, payloads: Sequence[bytes | None], window: MessageWindow, envelope: Envelope | None, timeout_s: float
    ) -> None:
        """Go through the records one by one. Raises ``_ChildFailed`` with the number of those that went well."""
        finished = 0
        try:
            self._request(payloads, window, envelope, timeout_s, True, time.monotonic() + timeout_s)
            for finished in range(len(payloads)):  # noqa: B007 - used when it fails
                self._answer(time.monotonic() + timeout_s)
        except (PipeClosed, PipeTimeout) as error:
            raise _ChildFailed(self._exit_message(error, timeout_s), finished) from error

    def end(self) -> None:
        """Close the pipes, which ends an idle child, and kill one that is not."""
        self._pipe.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send_settings(self, settings: dict[str, Any]) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        try:
            self._pipe.send(json.dumps(settings).encode(), deadline)
            self._answer(deadline)
        except (PipeClosed, PipeTimeout) as error:
            message = self._exit_message(error, _START_TIMEOUT_S)
            self._pipe.close()
            raise DecoderBroken(f"the decoder's child process does not start: {message}") from error
        except DecodeError:
            self.end()
            raise

    def _answer(self, deadline: float) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._pipe.receive(deadline))
        if "unusable" in answer:
            raise UnusableSchema(answer["unusable"])
        if "broken" in answer:
            raise DecoderBroken(answer["broken"])
        if "unreachable" in answer:
            raise RegistryUnreachable(answer["unreachable"], answer["permanent"])
        if "too_slow" in answer:
            raise TooSlow(answer["too_slow"])
        if "too_wide" in answer:
            raise TooWide(answer["too_wide"])
        return answer

    def _request(
        self,
        payloads: Sequence[bytes | None],
        window: MessageWindow,
        envelope: Envelope | None,
        timeout_s: float,
        one_by_one: bool,
        deadline: float,
    ) -> None:
        topic = None if envelope is None else envelope.topic
        request = {
            "window": pack_window(window),
            "topic": topic,
            "timeout_s": timeout_s,
            "one_by_one": one_by_one,
        }
        self._pipe.send(json.dumps(request).encode(), deadline)
        self._pipe.send(pack_payloads(payloads, envelope), deadline)

    def _exit_message(self, error: PipeClosed | PipeTimeout, timeout_s: float) -> str:
        """How it ended; kills it if it has not."""
        if isinstance(error, PipeTimeout):
            self._process.kill()
            self._process.wait()
            return f"the decoder did not finish within {timeout_s:g} s"
        code = self._process.wait()
        return f"the decoder died: {_exit_cause(code)}"


def _exit_cause(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"

"""The connection to a query's process, seen from the control plane: in parts, at its end, and cancelled."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from controlplane.common.ready_process import ProcessDied
from controlplane.query import conversation
from controlplane.query.conversation import Cancelled, Conversation


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_lines_and_chunks_come_whole(pair: tuple[socket.socket, socket.socket]) -> None:
    process = Conversation(pair[0], lambda: False)
    pair[1].sendall(b'{"a": 1}\n3\nab\n0\n{}\n')
    assert process.read_line() == b'{"a": 1}\n'
    assert [process.read_chunk(), process.read_chunk(), process.read_line()] == [b"ab\n", b"", b"{}\n"]


def test_a_process_that_ends_says_how(pair: tuple[socket.socket, socket.socket]) -> None:
    process = Conversation(pair[0], lambda: False)
    pair[1].sendall(b"100\nhalf of it-14")
    pair[1].close()
    with pytest.raises(ProcessDied) as death:
        process.read_chunk()
    assert death.value.code == -14


def test_a_query_is_cancelled_while_rows_come(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "_CHECK_S", 0.0)
    process = Conversation(pair[0], lambda: True)
    pair[1].sendall(b"1\nx" * 3)
    with pytest.raises(Cancelled):
        process.read_chunk()

"""An S3 server that takes connections and then says nothing: slow to find out, so not among the unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestion.segments.deep_storage import open_deep_storage
from ingestion.segments.errors import DeepStorageError
from tests.support.s3 import CREDENTIALS, s3_server


@pytest.mark.timeout(120)
def test_a_server_that_says_nothing_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "local").write_bytes(b"content")
    with s3_server(tmp_path) as server:
        storage = open_deep_storage(server.location("deep"))
        with server.silent(), pytest.raises(DeepStorageError) as caught:
            storage.put(tmp_path / "local", "a/file")
        assert not caught.value.permanent
        storage.put(tmp_path / "local", "a/another")

"""Decoders whose child processes start at once: forked by the server of ``warm_processes``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.support.warm_processes import warm_processes


@pytest.fixture(scope="module")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What is started instead of ``sys.executable``."""
    with warm_processes(tmp_path_factory.mktemp("warm")) as python:
        yield python


@pytest.fixture
def warm(warm_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the children that an ``IsolatedDecoder`` starts from here on."""
    started_with = SimpleNamespace(executable=warm_python, path=sys.path)
    monkeypatch.setattr("ingestion.decode.isolated_decoder.sys", started_with)

"""An operator compares deep storage with what was registered: real segments, some of them no longer whole."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.core.management import CommandError, call_command
from django.db.models import Value
from django.db.models.functions import Concat

from controlplane.datasources.models import Datasource
from controlplane.segments.models import Segment
from controlplane.segments.verification import MAX_FAILURES
from controlplane.teams.models import Team
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.desk import DAY_MS, Desk, batch_of, schema_of
from tests.support.s3 import CREDENTIALS, s3_server
from tests.support.sql import register as register_files

DAYS = 7

Register = Callable[[str], list[Segment]]


@pytest.fixture
def files(tmp_path: Path, settings: Any) -> list[SegmentFile]:
    """A segment a day."""
    desk = Desk(tmp_path, schema_of())
    settings.DEEP_STORAGE = str(desk.deep)
    desk.add(batch_of([day * DAY_MS for day in range(DAYS)], n=pa.array(range(DAYS))))
    files = desk.write()
    desk.index.close()
    return files


@pytest.fixture
def register(db: None, files: list[SegmentFile]) -> Register:
    def registered(name: str) -> list[Segment]:
        team, _ = Team.objects.get_or_create(name="team")
        datasource = Datasource.objects.create(name=name, team=team)
        return register_files(datasource, files)

    return registered


def verified(*arguments: str) -> list[str]:
    """What it says, line by line, and at last why its exit code is 1, if it is."""
    said = StringIO()
    try:
        call_command("verify_segments", *arguments, stdout=said)
    except CommandError as error:
        assert error.returncode == 1
        return [*said.getvalue().splitlines(), f"failed: {error}"]
    return said.getvalue().splitlines()


def test_damage_is_listed_by_segment(register: Register, tmp_path: Path) -> None:
    """Row 26 of the failure matrix: files that are torn, changed or missing are found, and no other."""
    segments = register("d")
    size_bytes = sum(s.size_bytes for s in segments)
    assert verified() == [f"7 segments ({size_bytes:,} bytes) are whole, 0 are damaged"]
    torn, changed, missing, unused = (tmp_path / "deep" / s.path for s in segments[1:5])
    content = torn.read_bytes()
    torn.write_bytes(content[:-1])
    flipped = bytearray(changed.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    changed.write_bytes(flipped)
    missing.unlink()
    unused.unlink()
    Segment.objects.filter(pk=segments[4].pk).update(used=False)
    said = verified("--datasource", "d")
    assert said[0] == f"{segments[1].identifier}: {segments[1].path} has {len(content) - 1} bytes, not {len(content)}"
    assert said[1].startswith(f"{segments[2].identifier}: {segments[2].path} has the SHA-256 ")
    assert said[2] == f"{segments[3].identifier}: {segments[3].path} does not exist"
    whole = sum(segments[n].size_bytes for n in (0, 5, 6))
    assert said[3:] == [f"failed: 3 segments ({whole:,} bytes) are whole, 3 are damaged"]


def test_one_datasource_is_looked_at(register: Register, tmp_path: Path) -> None:
    gone = register("d")[0]
    (tmp_path / "deep" / gone.path).unlink()
    Datasource.objects.create(name="other", team=gone.datasource.team)
    assert verified("--datasource", "other") == ["0 segments (0 bytes) are whole, 0 are damaged"]
    assert verified("--datasource", "none") == ["failed: There is no datasource 'none'."]


def test_what_can_not_be_looked_at_is_not_called_damaged(register: Register, settings: Any) -> None:
    segments = register("d")
    Segment.objects.filter(pk=segments[0].pk).update(path="/elsewhere")
    said = verified()
    assert said[0].startswith(f"{segments[0].identifier}: '/elsewhere' is not a path inside deep storage")
    assert said[1].endswith("0 are damaged, 1 could not be checked")
    Segment.objects.update(path=Concat(Value("/"), "path"))
    said = verified()
    assert len(said) == MAX_FAILURES + 1
    assert "5 could not be checked. Not everything was checked: " in said[-1]
    settings.DEEP_STORAGE = "gopher://somewhere"
    [said_last] = verified()
    assert said_last.startswith(
        "failed: 0 segments (0 bytes) are whole, 0 are damaged. Not everything was checked: deep storage at gopher://"
    )


@pytest.mark.usefixtures("cold_processes")
def test_on_s3(
    register: Register, files: list[SegmentFile], tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    segments = register("d")
    with s3_server(tmp_path) as server:
        settings.DEEP_STORAGE = server.location("deep")
        storage = open_deep_storage(settings.DEEP_STORAGE)
        for file in files[1:]:
            storage.put(tmp_path / "deep" / file.path, file.path)
        said = verified()
    assert said[0] == f"{segments[0].identifier}: {segments[0].path} does not exist"
    assert said[1].endswith("1 are damaged")

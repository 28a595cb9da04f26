"""Files that a batch task may read: below the folders of the site, whole, and as their suffix and header say."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path
from typing import Any

import pytest

from ingestion.batch.errors import InputChanged, InputRefused
from ingestion.batch.files import Folders
from tests.support.batch_run import CSV, JSON, Run, a_table, below, is_same, local, spec_of


def test_a_file_is_read_below_the_folders_only_whatever_leads_there(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside, inside / "deeper"):
        folder.mkdir()
    (inside / "a.json").write_text("{}")
    (inside / "deeper" / "b.json").write_text("{}")
    (inside / "c.txt").write_text("{}")
    (outside / "secret.json").write_text("{}")
    (inside / "link.json").symlink_to(outside / "secret.json")
    (inside / "leads").symlink_to(outside)
    os.mkfifo(inside / "pipe.json")
    folders = Folders([str(inside)])
    found = folders.list_files(local(baseDir=str(inside), filter="?.js*"))
    assert [Path(f.path).name for f in found] == ["a.json", "b.json"]
    for path, why in (
        (inside / "link.json", "can't be read"),
        (inside / "leads" / "secret.json", "not below"),
        (outside / "secret.json", "not below"),
        (inside / "pipe.json", "not a regular file"),
        (inside / "none.json", "No such file"),
    ):
        with pytest.raises(InputRefused, match=why):
            folders.list_files(local(files=[str(path)]))
    for path in (inside / "leads", outside):
        with pytest.raises(InputRefused, match="not below"):
            folders.list_files(local(baseDir=str(path), filter="*"))
    (inside / "a.json").write_text('{"n": 1}')
    with pytest.raises(InputChanged, match="has changed since the task began"), folders.open_input(found[0]):
        pass


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_are_read_whole(tmp_path: Path, pack: Any) -> None:
    suffix = {"gzip": "gz", "bz2": "bz2", "lzma": "xz"}[pack.__module__]
    wanted = a_table(500)
    (tmp_path / f"x.csv.{suffix}").write_bytes(pack(wanted.to_csv(index=False).encode()))
    run = Run(spec_of(below(tmp_path, "*.csv.*"), CSV), tmp_path, size=1_000)
    assert len(run.splits) == 1
    assert is_same(run.stored(tmp_path), wanted)
    cut = (tmp_path / f"x.csv.{suffix}").read_bytes()[:-20]
    (tmp_path / f"x.csv.{suffix}").write_bytes(cut)
    with pytest.raises(InputRefused, match=r"can't be decompressed"):
        Run(spec_of(below(tmp_path, "*.csv.*"), CSV), tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [("a,a,t\n1,2,3\n", "names columns twice: a"), ("\n1\n", "has no header row"), (b"\xff\n", "is not UTF-8")],
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, text: str | bytes, why: str) -> None:
    (tmp_path / "x.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputRefused, match=why):
        Run(spec_of(below(tmp_path), CSV), tmp_path)


def test_what_there_is_not_or_can_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.json").touch()
    with pytest.raises(InputRefused, match="nothing to read"):
        Run(spec_of(below(tmp_path), JSON), tmp_path)
    (tmp_path / "x.json.zip").write_text("PK")
    with pytest.raises(InputRefused, match="use gz, bz2 or xz"):
        Run(spec_of(below(tmp_path), JSON), tmp_path)
    (tmp_path / "x.json.zip").unlink()
    monkeypatch.setattr("ingestion.batch.lines.MAX_LINE_BYTES", 100)
    (tmp_path / "long.json").write_text('{"t": 1}\n' + '{"t": "%s"}' % ("x" * 100))
    with pytest.raises(InputRefused, match="a line of more than"):
        Run(spec_of(below(tmp_path), JSON), tmp_path)

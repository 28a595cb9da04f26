"""Deep storage in a folder: whole files or none, nothing outside the root, errors that say whether to try again."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DeepStorageError
from ingestion.segments.local import LocalStorage, _rename_into_place


@pytest.fixture
def storage(tmp_path: Path) -> DeepStorage:
    return open_deep_storage(str(tmp_path / "deep"))


@pytest.fixture
def local(tmp_path: Path) -> Path:
    file = tmp_path / "local"
    file.write_bytes(b"content")
    return file


def files_below(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


def test_what_is_put_is_there(storage: DeepStorage, local: Path, tmp_path: Path) -> None:
    storage.put(local, "a/b/file.parquet")
    assert storage.exists("a/b/file.parquet")
    assert storage.size("a/b/file.parquet") == 7
    with storage.open("a/b/file.parquet") as file:
        assert file.read() == b"content"
    assert storage.url("a/b/file.parquet") == (tmp_path / "deep/a/b/file.parquet").as_uri()
    assert files_below(tmp_path / "deep") == ["a/b/file.parquet"]
    assert local.exists()


def test_nothing_is_overwritten(storage: DeepStorage, local: Path, tmp_path: Path) -> None:
    storage.put(local, "a/file")
    local.write_bytes(b"other")
    with pytest.raises(DeepStorageError) as caught:
        storage.put(local, "a/file")
    assert caught.value.permanent
    assert (tmp_path / "deep/a/file").read_bytes() == b"content"
    assert files_below(tmp_path / "deep") == ["a/file"]


def test_without_hard_links_nothing_is_overwritten_either(tmp_path: Path) -> None:
    """The way taken where the file system has no links, for example on some network mounts."""
    (tmp_path / "new").write_bytes(b"new")
    folder = os.open(tmp_path, os.O_RDONLY)
    _rename_into_place(folder, "new", "name")
    (tmp_path / "newer").write_bytes(b"newer")
    with pytest.raises(FileExistsError):
        _rename_into_place(folder, "newer", "name")
    os.close(folder)
    assert (tmp_path / "name").read_bytes() == b"new"


def test_what_is_missing(storage: DeepStorage, local: Path) -> None:
    assert not storage.exists("a/file")
    storage.delete("a/file")
    for question in (storage.size, storage.open):
        with pytest.raises(DeepStorageError, match="No such file"):
            question("a/file")
    storage.put(local, "a/file")
    storage.delete("a/file")
    assert not storage.exists("a/file")
    assert not storage.exists("a/other/file")


@pytest.mark.parametrize(
    "path", ["", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "./a", "a//b", "a/", "a/./b", "a\0b", "a/\0"]
)
def test_paths_that_lead_elsewhere_are_refused(storage: DeepStorage, local: Path, path: str) -> None:
    """Row 14 of the security checklist: no path leads out of deep storage."""
    for action in (
        lambda: storage.put(local, path),
        lambda: storage.exists(path),
        lambda: storage.size(path),
        lambda: storage.open(path),
        lambda: storage.delete(path),
        lambda: storage.url(path),
    ):
        with pytest.raises(DeepStorageError, match="not a path inside deep storage") as caught:
            action()
        assert caught.value.permanent


@given(path=st.lists(st.sampled_from(["..", ".", "", "a", "\0", "...", "..a", "a.."]), max_size=5).map("/".join))
def test_no_path_gets_out(path: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Row 14 of the security checklist: whatever it is made of."""
    root = tmp_path_factory.getbasetemp() / "root"
    try:
        url = LocalStorage(root).url(path)
    except DeepStorageError:
        return
    assert url.startswith(root.resolve().as_uri() + "/")
    assert Path(os.path.normpath(url.removeprefix("file://"))).as_posix() == url.removeprefix("file://")


def test_symbolic_links_are_not_followed(storage: DeepStorage, local: Path, tmp_path: Path) -> None:
    """Row 14 of the security checklist: nor does a link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    storage.put(local, "a/file")
    (tmp_path / "deep/a/link").symlink_to(outside / "secret")
    (tmp_path / "deep/out").symlink_to(outside)
    for path in ("a/link", "out/secret"):
        with pytest.raises(DeepStorageError):
            storage.open(path)
        with pytest.raises(DeepStorageError):
            storage.put(local, path)
    with pytest.raises(DeepStorageError):
        storage.size("a/link")
    with pytest.raises(DeepStorageError):
        storage.delete("out/secret")
    storage.delete("a/link")
    assert files_below(outside) == ["secret"]


def test_a_folder_is_no_file(storage: DeepStorage, local: Path) -> None:
    storage.put(local, "a/b/file")
    with pytest.raises(DeepStorageError):
        storage.size("a/b")
    with pytest.raises(DeepStorageError) as caught:
        storage.put(local, "a/b/file/below")
    assert caught.value.permanent


def test_a_root_that_is_a_link_is_where_it_leads(tmp_path: Path, local: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    open_deep_storage(str(tmp_path / "link")).put(local, "file")
    assert files_below(tmp_path / "real") == ["file"]


def test_locations(tmp_path: Path, local: Path) -> None:
    place = tmp_path / "with blank"
    for location in (str(place), place.as_uri(), f"FILE://localhost{place.as_posix()}"):
        assert open_deep_storage(location).url("f") == (place / "f").as_uri()
    assert not place.exists()


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("file://host/path", "names a host"),
        ("file://", "names a host"),
        ("", "empty"),
        ("  ", "empty"),
        ("/a\0b", "NUL"),
    ],
)
def test_other_locations_are_refused(location: str, message: str) -> None:
    with pytest.raises(DeepStorageError, match=message) as caught:
        open_deep_storage(location)
    assert caught.value.permanent


def test_a_full_disk_leaves_nothing_and_may_pass(storage: DeepStorage, local: Path, tmp_path: Path) -> None:
    """Row 26 of the failure matrix: a limit on the size of files stands for the full disk."""
    local.write_bytes(b"x" * 100_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(DeepStorageError, match="can't store a/file") as caught:
            storage.put(local, "a/file")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not caught.value.permanent
    assert files_below(tmp_path / "deep") == []
    storage.put(local, "a/file")
    assert storage.size("a/file") == 100_000


REFUSED = """
import os, sys
from pathlib import Path
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.segments.errors import DeepStorageError
if os.geteuid() == 0:
    os.setuid(65534)
try:
    open_deep_storage(sys.argv[1]).put(Path(sys.argv[2]), "a/file")
except DeepStorageError as error:
    print(error.permanent, error)
"""


def test_a_refused_write_is_permanent(tmp_path: Path, local: Path) -> None:
    """It is written by a user without rights, for root may write everywhere."""
    place = Path("/usr/share")
    command = [sys.executable, "-c", REFUSED, str(place), os.devnull]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout == "True can't store a/file: Permission denied\n"


def test_files_are_listed_with_size_and_time(storage: DeepStorage, local: Path, tmp_path: Path) -> None:
    assert list(storage.files()) == storage.folders() == []
    for path in ("a/x/1", "a/x/2", "a/y/1", "b/x/1"):
        storage.put(local, path)
    os.utime(tmp_path / "deep/a/x/1", (1000.0, 1000.0))
    (tmp_path / "deep/a/link").symlink_to(tmp_path / "deep/b")
    (tmp_path / "deep/a/x/link").symlink_to(local)
    assert sorted(storage.folders()) == ["a", "b"]
    assert sorted(storage.folders("a")) == ["x", "y"]
    assert storage.folders("nowhere") == []
    assert sorted(f.path for f in storage.files()) == ["a/x/1", "a/x/2", "a/y/1", "b/x/1"]
    times = {f.path: f.modified for f in storage.files("a/x")}
    assert times["a/x/1"] == datetime(1970, 1, 1, 0, 16, 40, tzinfo=UTC)
    assert {f.size_bytes for f in storage.files()} == {7}
    with pytest.raises(DeepStorageError):
        list(storage.files("../deep"))


def test_a_missing_local_file_is_an_error_and_leaves_nothing(storage: DeepStorage, tmp_path: Path) -> None:
    with pytest.raises(DeepStorageError):
        storage.put(tmp_path / "gone", "a/file")
    assert files_below(tmp_path / "deep") == []

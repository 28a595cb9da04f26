"""Deep storage that is no folder of this machine: a real S3 server, and a file system without objects."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from ingestion.segments.batch import write_segments
from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.errors import DeepStorageError
from ingestion.segments.reader import read_segment, verify
from ingestion.segments.remote import ArrowStorage
from ingestion.segments.remote_errors import to_storage_error
from ingestion.specs.schema.data_schema import DataSchema
from tests.support.column_ids import some_ids
from tests.support.ftp import FTP_LOGIN, FtpServer, ftp_server
from tests.support.s3 import BUCKET, CREDENTIALS, S3Server, s3_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["s3", "renaming", "ftp"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> DeepStorage:
    """On S3; as it is done where files grow under their names, on a folder of this machine; and what fsspec reaches."""
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("server")
        return open_deep_storage(server.location(f"deep/{uuid.uuid4()}"))
    if request.param == "ftp":
        ftp: FtpServer = request.getfixturevalue("ftp")
        return open_deep_storage(f"{ftp.location}/{uuid.uuid4()}")
    (tmp_path / "deep").mkdir()
    return ArrowStorage(fs.LocalFileSystem, str(tmp_path / "deep"), "viewfs:///deep", by_object=False)


@pytest.fixture
def ftp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FtpServer]:
    """A server whose login is in the environment."""
    login: dict[str, dict[str, str]] = {}
    for name, value in FTP_LOGIN.items():
        monkeypatch.setenv(f"FSSPEC_FTP_{name.upper()}", value)
    fsspec.config.set_conf_env(login)  # as when a process starts
    monkeypatch.setitem(fsspec.config.conf, "ftp", login["ftp"])
    with ftp_server(tmp_path / "ftp") as running:
        yield running


@pytest.fixture
def local(tmp_path: Path) -> Path:
    file = tmp_path / "local"
    file.write_bytes(b"content")
    return file


def test_what_is_put_is_there(storage: DeepStorage, local: Path) -> None:
    storage.put(local, "a/b/file.parquet")
    assert storage.exists("a/b/file.parquet")
    assert storage.size("a/b/file.parquet") == 7
    with storage.open("a/b/file.parquet") as file:
        assert file.read() == b"content"
    assert storage.url("a/b/file.parquet").endswith("/a/b/file.parquet")
    assert "?" not in storage.url("a/b/file.parquet")
    assert local.exists()


def test_a_large_file_comes_back_as_it_was(storage: DeepStorage, tmp_path: Path) -> None:
    """Larger than what S3 takes in one part."""
    content = os.urandom(25_000_000)
    (tmp_path / "large").write_bytes(content)
    storage.put(tmp_path / "large", "a/large")
    with storage.open("a/large") as file:
        assert file.read() == content


def test_nothing_is_overwritten(storage: DeepStorage, local: Path) -> None:
    storage.put(local, "a/file")
    local.write_bytes(b"other")
    with pytest.raises(DeepStorageError, match="exists") as caught:
        storage.put(local, "a/file")
    assert caught.value.permanent
    with storage.open("a/file") as file:
        assert file.read() == b"content"
    assert [f.path for f in storage.files()] == ["a/file"]


def test_what_is_missing(storage: DeepStorage, local: Path) -> None:
    assert not storage.exists("a/file")
    storage.delete("a/file")
    for question in (storage.size, storage.open):
        with pytest.raises(DeepStorageError, match="No such file"):
            question("a/file")
    storage.put(local, "a/file")
    storage.delete("a/file")
    assert not storage.exists("a/file")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "a/", "a\0b"])
def test_paths_that_lead_elsewhere_are_refused(storage: DeepStorage, local: Path, path: str) -> None:
    """Row 14 of the security checklist: in object stores as well."""
    for action in (
        lambda: storage.put(local, path),
        lambda: storage.exists(path),
        lambda: storage.open(path),
        lambda: storage.delete(path),
        lambda: storage.url(path),
    ):
        with pytest.raises(DeepStorageError, match="not a path inside deep storage") as caught:
            action()
        assert caught.value.permanent


def test_files_are_listed_with_size_and_time(storage: DeepStorage, local: Path) -> None:
    began = datetime.now(UTC)
    for path in ("a/x/1", "a/x/2", "a/y/1", "b/x/1"):
        storage.put(local, path)
    assert sorted(storage.folders()) == ["a", "b"]
    assert sorted(storage.folders("a")) == ["x", "y"]
    assert storage.folders("nowhere") == []
    assert sorted(f.path for f in storage.files()) == ["a/x/1", "a/x/2", "a/y/1", "b/x/1"]
    found = list(storage.files("a/x"))
    assert sorted(f.path for f in found) == ["a/x/1", "a/x/2"]
    assert {f.size_bytes for f in found} == {7}
    for file in found:
        if storage.url("a").startswith("ftp"):
            assert file.modified is None, "such a server's times are not known: no file is called an old orphan"
        else:
            assert file.modified is not None
            assert abs(file.modified - began) < timedelta(minutes=1)
    assert list(storage.files("nowhere")) == []


def test_a_missing_local_file_is_an_error_and_leaves_nothing(storage: DeepStorage, tmp_path: Path) -> None:
    with pytest.raises(DeepStorageError):
        storage.put(tmp_path / "gone", "a/file")
    assert list(storage.files()) == []


def test_segments_are_written_read_and_verified(storage: DeepStorage, tmp_path: Path) -> None:
    times = pa.array([1_748_736_000_000 + n for n in range(100)]).view(pa.timestamp("ms", "UTC"))
    rows = pa.table({"__row": pa.array(range(100), pa.int32()), "__time": times, "n": pa.array(range(100))})
    schema = DataSchema.model_validate({"dataSource": "d", "timestampSpec": {"column": "t"}})
    offsets = np.arange(100)
    written = write_segments(
        rows,
        offsets * 0,
        offsets,
        schema=schema,
        version="v",
        storage=storage,
        scratch=tmp_path / "scratch",
        ids=some_ids(),
    )
    assert [s.rows for s in written] == [100]
    verify(storage, written[0])
    assert read_segment(storage, written[0].path)["n"].to_pylist() == list(range(100))
    assert list((tmp_path / "scratch").iterdir()) == []


def test_readers_see_an_object_whole_or_not_at_all(server: S3Server, tmp_path: Path) -> None:
    """One that is sent in several parts."""
    storage = open_deep_storage(server.location(f"deep/{uuid.uuid4()}"))
    (tmp_path / "large").write_bytes(b"x" * 12_000_000)
    done, sizes = threading.Event(), set()

    def look() -> None:
        while not done.is_set():
            sizes.add(next((f.size_bytes for f in storage.files()), None))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for n in range(3):
            storage.put(tmp_path / "large", f"{n}")
            storage.delete(f"{n}")
    finally:
        done.set()
        looking.join()
    assert sizes <= {None, 12_000_000}


# What goes wrong


def refused(action: Callable[[], object]) -> DeepStorageError:
    with pytest.raises(DeepStorageError) as caught:
        action()
    for value in CREDENTIALS.values():
        assert value not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("folder", ["", "deep"])
def test_a_bucket_that_is_not_there_is_for_a_person(server: S3Server, local: Path, folder: str) -> None:
    storage = open_deep_storage(server.location(folder, "another-bucket"))
    for action in (lambda: storage.put(local, "a/file"), storage.folders, lambda: list(storage.files("a"))):
        error = refused(action)
        assert error.permanent
        assert "there is no such bucket" in str(error)


def test_credentials_that_are_refused_are_for_a_person(server: S3Server, local: Path) -> None:
    storage = open_deep_storage(server.location("refused"))
    server.check_credentials(True)
    try:
        for action in (lambda: storage.put(local, "a/file"), lambda: list(storage.files()), storage.folders):
            error = refused(action)
            assert error.permanent
            assert "credentials" in str(error)
    finally:
        server.check_credentials(False)
    storage.put(local, "a/file")


def test_a_server_that_is_away_may_come_back(tmp_path: Path, local: Path) -> None:
    with s3_server(tmp_path) as server:
        storage = open_deep_storage(server.location("deep"))
        storage.put(local, "a/1")
        port = int(server.endpoint.rpartition(":")[2])
    error = refused(lambda: storage.put(local, "a/2"))
    assert not error.permanent
    with s3_server(tmp_path, port):
        storage.put(local, "a/2")


def test_a_server_that_fsspec_reaches_goes_and_comes_back(ftp: FtpServer, local: Path) -> None:
    storage = open_deep_storage(f"{ftp.location}/deep")
    storage.put(local, "a/file")
    ftp.stop()
    error = refused(lambda: storage.put(local, "a/other"))
    assert not error.permanent
    assert FTP_LOGIN["password"] not in str(error)
    ftp.start()
    storage.put(local, "a/other")
    assert sorted(f.path for f in storage.files()) == ["a/file", "a/other"]
    assert sorted(p.name for p in (ftp.folder / "deep/a").iterdir()) == ["file", "other"]


def test_many_threads_write_by_fsspec(ftp: FtpServer, tmp_path: Path) -> None:
    storage = open_deep_storage(f"{ftp.location}/deep")

    def store(number: int) -> None:
        (tmp_path / str(number)).write_bytes(os.urandom(200_000))
        storage.put(tmp_path / str(number), f"a/{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store, range(24)))
    for number in range(24):
        assert (ftp.folder / "deep/a" / str(number)).read_bytes() == (tmp_path / str(number)).read_bytes()


def test_a_server_of_googles_that_is_away_may_come_back(local: Path) -> None:
    location = "gs://anonymous@bucket/p?endpoint_override=127.0.0.1:1&scheme=http&retry_limit_seconds=0.1"
    assert not refused(lambda: open_deep_storage(location).put(local, "a/file")).permanent


FULL = """
import resource, sys
from pathlib import Path
from pyarrow import fs
from ingestion.segments.errors import DeepStorageError
from ingestion.segments.remote import ArrowStorage
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    ArrowStorage(fs.LocalFileSystem, sys.argv[1], "x", by_object=False).put(Path(sys.argv[2]), "a/file")
except DeepStorageError as error:
    print(error.permanent, error)
"""


def test_a_full_disk_leaves_nothing_and_may_pass(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "local").write_bytes(b"x" * 100_000)
    command = [sys.executable, "-c", FULL, str(tmp_path / "deep"), str(tmp_path / "local")]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout == "False can't store a/file: File too large\n"
    assert [p for p in (tmp_path / "deep").rglob("*") if p.is_file()] == []


# Where it is


def test_endpoint_and_region_may_come_from_the_environment(
    server: S3Server, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    storage = open_deep_storage(f"s3://{BUCKET}/by-environment/")
    storage.put(local, "a/file")
    assert storage.url("a/file") == f"s3://{BUCKET}/by-environment/a/file"
    assert open_deep_storage(server.location("by-environment")).exists("a/file")


@pytest.mark.parametrize(
    "location",
    [
        "s3://AKIA:canary@bucket/folder",
        "s3://AKIA@bucket/folder",
        "s3://bucket/folder?secret_key=canary",
        "gs://user:canary@bucket/folder",
        "sftp://user:canary@host/folder",
        "abfs://container:canary@account.dfs.core.windows.net/folder",
        "abfs://container@account.dfs.core.windows.net/folder?sas_token=canary",
    ],
)
def test_credentials_in_a_location_are_refused_and_not_repeated(location: str) -> None:
    error = refused(lambda: open_deep_storage(location))
    assert error.permanent
    assert "in the environment" in str(error)
    assert "canary" not in str(error)
    assert "AKIA:" not in str(error)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("gopher://host/path", "gopher:// is not supported"),
        ("memory://folder", "memory:// is not supported"),
        ("simplecache::ftp://host/path", "is not supported"),
        ("sftp://host/path", 'requires "paramiko" to be installed'),
        ("s3:///path", "there is no bucket"),
        ("s3://bucket/path?retries=3", "the option 'retries' is not known"),
    ],
)
def test_other_locations_are_refused(location: str, message: str) -> None:
    error = refused(lambda: open_deep_storage(location))
    assert error.permanent
    assert message in str(error)


@pytest.mark.parametrize(
    ("text", "permanent"),
    [
        ("When uploading: AWS Error SIGNATURE_DOES_NOT_MATCH during PutObject operation: The request", True),
        ("When uploading: AWS Error UNKNOWN (HTTP status 301) during PutObject operation: moved", True),
        ("When uploading: AWS Error SLOW_DOWN during PutObject operation: Please reduce your request rate.", False),
        ("When uploading: AWS Error UNKNOWN (HTTP status 503) during PutObject operation: busy", False),
        ("google::cloud::Status(PERMISSION_DENIED: no storage.objects.create)", True),
        ("google::cloud::Status(UNAVAILABLE: try again)", False),
        ("Azure Error: [AuthenticationFailed] 403", True),
    ],
)
def test_texts_of_the_libraries(text: str, permanent: bool) -> None:
    """Those that no server here gives."""
    assert to_storage_error("store a/file", OSError(text)).permanent is permanent


def test_a_server_that_repeats_credentials_is_not_repeated() -> None:
    text = f"AWS Error ACCESS_DENIED during PutObject operation: key {CREDENTIALS['AWS_SECRET_ACCESS_KEY']} is no good"
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in str(to_storage_error("store a/file", OSError(text)))

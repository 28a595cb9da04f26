"""Deep storage by pyarrow's file systems (S3 and what speaks as it does, Google's, Azure's, Hadoop's) and by fsspec's.

Credentials come from the environment, as each vendor's tools read them, and never from the location.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO, cast
from urllib.parse import SplitResult, parse_qsl, urlsplit

import pyarrow as pa
from pyarrow import fs

from ingestion.segments.errors import DeepStorageError
from ingestion.segments.names import parts_of, temporary_name
from ingestion.segments.remote_errors import NO_BUCKET, to_storage_error
from ingestion.segments.stored_file import StoredFile

_ARROW_SCHEMES = frozenset({"gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
_OBJECT_SCHEMES = frozenset({"gs", "gcs"})  # an object shows when it is complete; the others have files that grow
_S3_OPTIONS = frozenset({"endpoint_override", "region", "scheme"})
_SECRET_OPTION = re.compile(r"key|secret|token|password|signature|sas|credential(?!_kind$)", re.IGNORECASE)
CONNECT_S = 5.0
READ_TIMEOUT_S = 10.0  # without a byte from the other side


class ArrowStorage:
    """A ``DeepStorage`` in a file system of pyarrow's: that of ``connect``, which each call is made on.

    ``by_object``: what is written shows once it is complete, as objects do. Else files are written under another name
    and renamed. No such file system can refuse to replace what is there, so ``put`` looks before it writes; between the
    look and the write nobody else comes, as names hold a random UUID that only the caller knows.
    """

    def __init__(self, connect: Callable[[], fs.FileSystem], root: str, address: str, *, by_object: bool) -> None:
        self._connect = connect
        self._root = root.strip("/") if by_object else root.rstrip("/")
        self._address = address.rstrip("/")
        self._by_object = by_object

    def put(self, local: os.PathLike[str], relative: str) -> None:
        """See ``DeepStorage.put``."""
        path = self._path(relative)
        with self._connected(f"store {relative}") as system:
            if system.get_file_info(path).type != fs.FileType.NotFound:
                raise FileExistsError(errno.EEXIST, "it exists")
            size = (_copy if self._by_object else _copy_and_rename)(system, local, path)
            stored = system.get_file_info(path)
        if stored.size != size:
            raise DeepStorageError(f"{relative} has {stored.size} bytes after it was stored, not {size}", False)

    def url(self, relative: str) -> str:
        return "/".join([self._address, *parts_of(relative)])

    def exists(self, relative: str) -> bool:
        return bool(self._info(relative).type != fs.FileType.NotFound)

    def size(self, relative: str) -> int:
        info = self._info(relative)
        if info.type != fs.FileType.File:
            raise DeepStorageError(f"can't look at {relative}: No such file", permanent=False)
        return int(info.size)

    def open(self, relative: str) -> BinaryIO:
        with self._connected(f"open {relative}") as system:
            return cast("BinaryIO", system.open_input_file(self._path(relative)))

    def delete(self, relative: str) -> None:
        with self._connected(f"delete {relative}") as system, suppress(FileNotFoundError):
            system.delete_file(self._path(relative))

    def folders(self, relative: str = "") -> list[str]:
        infos = self._listed(relative, recursive=False)
        return [info.base_name for info in infos if info.type == fs.FileType.Directory]

    def files(self, relative: str = "") -> Iterator[StoredFile]:
        base = self._path(relative) if relative else self._root
        for info in self._listed(relative, recursive=True):
            if info.type == fs.FileType.File:
                below = info.path[len(base) :].lstrip("/")
                yield StoredFile(f"{relative}/{below}" if relative else below, int(info.size), info.mtime)

    def _path(self, relative: str) -> str:
        return "/".join([self._root, *parts_of(relative)])

    def _info(self, relative: str) -> fs.FileInfo:
        with self._connected(f"look at {relative}") as system:
            return system.get_file_info(self._path(relative))

    def _listed(self, relative: str, recursive: bool) -> list[fs.FileInfo]:
        base = self._path(relative) if relative else self._root
        with self._connected(f"list {relative or 'the root'}") as system:
            try:
                return list(system.get_file_info(fs.FileSelector(base, recursive=recursive)))
            except FileNotFoundError:
                if "/" not in base:
                    raise DeepStorageError(f"can't list the root: {NO_BUCKET}", True) from None
                return []

    @contextmanager
    def _connected(self, action: str) -> Iterator[fs.FileSystem]:
        with _storage_errors(action):
            yield self._connect()


def _copy(system: fs.FileSystem, local: os.PathLike[str], path: str) -> int:
    """Write it in one piece: a stream that is left half written would be completed when it is closed."""
    with pa.memory_map(os.fspath(local)) as source:
        content = source.read_buffer()
        with system.open_output_stream(path) as target:
            target.write(content)
        return int(content.size)


def _copy_and_rename(system: fs.FileSystem, local: os.PathLike[str], path: str) -> int:
    folder = path.rpartition("/")[0]
    _make_folder(system, folder)
    temporary = f"{folder}/{temporary_name()}"
    try:
        size = _copy(system, local, temporary)
        system.move(temporary, path)
    except BaseException:
        with suppress(Exception):
            system.delete_file(temporary)
        raise
    return size


def _make_folder(system: fs.FileSystem, folder: str) -> None:
    try:
        system.create_dir(folder, recursive=True)
    except Exception:  # with some, one that is there is an error, each with its own
        if system.get_file_info(folder).type != fs.FileType.Directory:
            raise


def open_remote(location: str) -> ArrowStorage:
    """The deep storage at a URL that is not a file's. Raises ``DeepStorageError`` as ``open_deep_storage`` does."""
    parts = urlsplit(location)
    scheme = parts.scheme.lower()
    _check_without_secrets(scheme, parts)
    address = f"{scheme}://{parts.netloc}{parts.path}"
    if scheme == "s3":
        return _open_s3(parts, address)
    if scheme not in _ARROW_SCHEMES:
        from ingestion.segments import fsspec_storage  # not at the top: it takes long, and most have no use for it

        root = fsspec_storage.root_of(location, scheme)
        return ArrowStorage(partial(fsspec_storage.connect, location), root, address, by_object=False)
    system, root = _open_arrow_system(location, scheme, parts)
    return ArrowStorage(lambda: system, root, address, by_object=scheme in _OBJECT_SCHEMES)


def _check_without_secrets(scheme: str, parts: SplitResult) -> None:
    """A location is written down in settings, tasks and logs: it may hold no credentials."""
    named = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    keyed = scheme == "s3" or scheme in _OBJECT_SCHEMES  # elsewhere it is a container or a user
    key = keyed and parts.username not in (None, "", "anonymous")
    if parts.password is not None or key or any(map(_SECRET_OPTION.search, named)):
        raise DeepStorageError(
            "the deep storage URL contains credentials: give them in the environment, for S3 as AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY",
            True,
        )


def _open_s3(parts: SplitResult, address: str) -> ArrowStorage:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(set(options) - _S3_OPTIONS)
    if unknown or not parts.hostname:
        problem = f"the option {unknown[0]!r} is not known" if unknown else "there is no bucket"
        raise DeepStorageError(
            f"deep storage: {problem}; write s3://bucket/folder, and if needed ?endpoint_override=…&region=…&scheme=…",
            True,
        )
    endpoint = options.get("endpoint_override") or _first_variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    scheme, _, host = endpoint.rpartition("://")
    region = options.get("region") or _first_variable("AWS_REGION", "AWS_DEFAULT_REGION")
    if endpoint and not region:
        region = "us-east-1"  # what servers of one's own expect; the SDK would look for a cloud's metadata service
    with _storage_errors("reach deep storage"):
        system = fs.S3FileSystem(
            region=region or None,
            endpoint_override=host.rstrip("/") or None,
            scheme=options.get("scheme") or scheme or "https",
            connect_timeout=CONNECT_S,
            request_timeout=READ_TIMEOUT_S,
            allow_delayed_open=True,  # a small file is one request
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),  # the breaker retries
        )
    return ArrowStorage(lambda: system, parts.netloc + parts.path, address, by_object=True)


def _first_variable(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _open_arrow_system(location: str, scheme: str, parts: SplitResult) -> Any:
    if scheme in _OBJECT_SCHEMES and "retry_limit_seconds" not in parts.query:
        # Its library retries for 15 minutes by itself; the breaker retries.
        location += ("&" if parts.query else "?") + f"retry_limit_seconds={CONNECT_S:g}"
    with _storage_errors("reach deep storage"):
        return fs.FileSystem.from_uri(location)


@contextmanager
def _storage_errors(action: str) -> Iterator[None]:
    """Turn errors into ``DeepStorageError``: fsspec's file systems have their libraries' own."""
    try:
        yield
    except DeepStorageError:
        raise
    except Exception as error:
        raise to_storage_error(action, error) from None

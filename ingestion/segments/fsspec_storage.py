"""What fsspec's file systems reach and pyarrow's do not: SFTP, FTP, SMB, WebHDFS, and those of other packages."""

from __future__ import annotations

import fsspec
from pyarrow import fs

from ingestion.segments.errors import DeepStorageError

# Files that nobody else sees, files of this machine by another name, and what takes no files.
_UNSUPPORTED_SCHEMES = frozenset(
    {"memory", "local", "dir", "data", "http", "https", "git", "github", "gist", "reference", "zip", "tar"}
)


def connect(location: str) -> fs.FileSystem:
    """A new connection to it. Credentials come from the environment, as fsspec reads them (``FSSPEC_SFTP_PASSWORD``).

    Not thread-safe, as many of fsspec's are not; when it breaks it stays broken. Raises what the file system does.
    """
    system, _ = fsspec.core.url_to_fs(location, skip_instance_cache=True, use_listings_cache=False)
    return fs.PyFileSystem(fs.FSSpecHandler(system))


def root_of(location: str, scheme: str) -> str:
    """The path on it. Raises ``DeepStorageError`` for what is no deep storage, or needs a package that is not there."""
    if scheme in _UNSUPPORTED_SCHEMES or "::" in location or scheme not in fsspec.available_protocols():
        raise DeepStorageError(
            f"deep storage at {scheme}:// is not supported: give a path, s3://, gs://, abfs://, hdfs://, or what "
            "fsspec reaches, such as sftp://, smb://, webhdfs:// and ftp://",
            True,
        )
    try:
        return str(fsspec.get_filesystem_class(scheme)._strip_protocol(location))
    except ImportError as error:
        raise DeepStorageError(f"deep storage at {scheme}:// can't be reached: {error}", True) from None

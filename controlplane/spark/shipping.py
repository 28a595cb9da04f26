"""What the executors of a Spark cluster need of Python, packed once per version: a worker needs Java and Spark alone.

The archive holds the interpreter with its standard library and the libraries that it links to, the packages of the data
plane, and its code. A small script beside it unpacks it, once for each application on a machine, into a folder that the
Spark worker deletes when the application has ended. The C library is the machines' own, so they must be of one kind.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

# What ``ingestion/`` imports; what these need comes with them. PySpark itself is the Spark worker's own.
PACKAGES = (
    "aws-msk-iam-sasl-signer-python",
    "confluent-kafka",
    "datasketches",
    "duckdb",
    "fastavro",
    "fsspec",
    "google-re2",
    "googleapis-common-protos",
    "httpx2",
    "numpy",
    "protobuf",
    "pyarrow",
    "pydantic",
    "pyorc",
    "python-dateutil",
    "sqlglot",
    "structlog",
    "thriftpy2",
    "tzdata",
)
_CODE = "ingestion"
_SCRIPT = "headgate-python"
_VERSIONS_KEPT = 3  # versions: an application that runs on may still hand out the one before
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Parts of the standard library and of packages that no indexer uses.
_EXCLUDED = re.compile(
    r"(^|/)(test|tests|idlelib|tkinter|turtledemo|lib2to3|ensurepip|include|site-packages|dist-packages|config-[^/]*)/"
    r"|(^|/)(_tkinter|_curses\w*|readline|nis|_ctypes_test|_test\w*|_xxtest\w*)\.[^/]*so$"
    r"|(^|/)(_|lib)[^/]*_?flight[^/]*\.so|\.opt-\d\.pyc$|\.(pyi|pyx|pxd|pxi|h|c|cc|cpp|a|exe)$|^\.\.(/|$)"
)
# Of the C library: those of the machine itself must be taken.
_SYSTEM_LIBRARY = re.compile(r"^(ld-|lib(c|m|dl|rt|pthread|util|resolv|nsl|anl|BrokenLocale)\.so)")


@dataclass(frozen=True)
class ShippedPython:
    """Two files for ``spark.files``, and how executors call Python then."""

    files: tuple[Path, Path]
    python: str = f"./{_SCRIPT}"


@functools.cache
def ship_python() -> ShippedPython:
    """Packed now, unless this version was before. Raises ``OSError``."""
    contents = dict(sorted(_contents()))
    digest = _digest(contents)
    folder = Path(settings.TASK_DIR) / ".shipped"
    folder.mkdir(parents=True, exist_ok=True)
    # Not called .tar.gz: of ``spark.files`` Spark would unpack such a one itself, also in the driver's folder.
    archive, script = folder / f"headgate-{digest}.packed", folder / digest / _SCRIPT
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two workers that start their first application at once pack it once
        if not archive.exists() or not script.exists():
            _pack(contents, archive)
            script.parent.mkdir(exist_ok=True)
            script.write_text(_SH.replace("@DIGEST@", digest).replace("@PYTHON@", _VERSION))
            _delete_old(folder)
    return ShippedPython((script, archive))


@functools.cache
def ship_driver() -> str:
    """The name of one file, beside the others, that unpacks itself and runs Python: for drivers on a cluster, and for
    their executors. It is called as one of Java is, or Spark would not take it. Raises ``OSError``."""
    script, archive = ship_python().files
    packed = archive.with_suffix(".jar")
    with (archive.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not packed.exists():
            header = _alone(script.read_text(), archive.name).encode()
            unfinished = archive.with_suffix(".jar-part")
            with unfinished.open("wb") as file, archive.open("rb") as payload:
                file.write(header)
                shutil.copyfileobj(payload, file)
            unfinished.replace(packed)
    return packed.name


def _contents() -> Iterator[tuple[str, Path]]:
    """Name in the archive → file."""
    base = Path(settings.BASE_DIR)
    for file in (base / _CODE).rglob("*.py"):
        yield f"code/{file.relative_to(base)}", file
    binaries = []
    for name, file in (*_packages(), *_interpreter()):
        yield name, file
        if ".so" in file.suffixes or name.startswith("python/bin/"):
            binaries.append(file)
    yield from _libraries(binaries)


def _packages() -> Iterator[tuple[str, Path]]:
    for distribution in with_dependencies((*PACKAGES, *settings.SPARK_PACKAGES)):
        for file in distribution.files or ():
            if not _EXCLUDED.search(str(file)):
                path = Path(str(file.locate()))
                if path.is_file():
                    yield f"packages/{file}", path


def with_dependencies(names: Iterable[str]) -> list[importlib.metadata.Distribution]:
    """The installed distributions of these names, and all that they ask for. Raises ``OSError`` when one is missing."""
    distributions: dict[str, importlib.metadata.Distribution] = {}
    queue = [(name, True) for name in names]
    while queue:
        name, needed = queue.pop()
        if (key := re.sub(r"[-_.]+", "-", name).lower()) in distributions:
            continue
        try:
            distributions[key] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if needed:
                raise OSError(f"the package {name!r}, which executors need, is not installed here") from None
            continue  # for another version of Python, or another system
        requirements = [r for r in distributions[key].requires or () if "extra ==" not in r]
        queue += [(re.split(r"[^\w.-]", r, maxsplit=1)[0], False) for r in requirements]
    return [distributions[key] for key in sorted(distributions)]


def _interpreter() -> Iterator[tuple[str, Path]]:
    yield f"python/bin/{_VERSION}", Path(sys.executable).resolve()
    library = Path(os.__file__).parent
    for file in library.rglob("*"):
        name = str(file.relative_to(library))
        if file.is_file() and not _EXCLUDED.search(name):
            yield f"python/{sys.platlibdir}/{_VERSION}/{name}", file


def _libraries(binaries: list[Path]) -> Iterator[tuple[str, Path]]:
    """What they link to that is neither the C library nor beside them. Without ``ldd``: what the machines have."""
    try:
        ldd_output = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return
    packed_files = {str(binary.resolve()) for binary in binaries}
    for name, path in sorted(set(re.findall(r"^\s+(\S+) => (/\S+) ", ldd_output, re.MULTILINE))):
        if not _SYSTEM_LIBRARY.match(name) and str(Path(path).resolve()) not in packed_files:
            yield f"libraries/{name}", Path(path).resolve()


def _digest(contents: dict[str, Path]) -> str:
    hashed = hashlib.sha256(_SH.encode())
    for name, file in contents.items():
        if file.suffix == ".pyc":
            continue  # they come as modules are imported
        file_stat = file.stat()
        hashed.update(f"{name}\0{file_stat.st_size}\0{file_stat.st_mtime_ns}\n".encode())
    return hashed.hexdigest()[:16]


def _pack(contents: dict[str, Path], archive: Path) -> None:
    unfinished = archive.with_suffix(".part")
    with tarfile.open(unfinished, "w:gz", compresslevel=1, dereference=True) as packed:
        for name, file in contents.items():
            packed.add(file, name, recursive=False, filter=_without_owner)
    unfinished.replace(archive)


def _alone(script: str, archive: str) -> str:
    """The script for a file that holds the archive behind it, from its byte ``start`` on.

    Of an executor's file the script remains: a Spark worker keeps the folder for days. The driver's is for executors.
    """
    unpack, forget = f'tar -xzf "$PWD/{archive}"', f'rm -f "$PWD/{archive}"'
    shrink = (
        'if [ -n "${SPARK_EXECUTOR_DIRS:-}" ]; then\n'
        '    head -c $((start - 1)) "$0" >"$0.$$"; chmod 755 "$0.$$"; mv "$0.$$" "$0"\n'
        "fi\nexec 9>&-"
    )
    alone = script.replace(unpack, 'tail -c "+$start" "$0" | tar -xz', 1).replace(f"exec 9>&-\n{forget}", shrink, 1)
    start = "start=@START@\n"
    alone = alone.replace("set -eu\n", f"set -eu\n{start}", 1)
    return alone.replace("@START@", f"{len(alone.encode()) + 1:<7}", 1)


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _delete_old(folder: Path) -> None:
    archives = sorted(folder.glob("headgate-*.packed"), key=lambda file: file.stat().st_mtime, reverse=True)
    for archive in archives[_VERSIONS_KEPT:]:
        archive.unlink(missing_ok=True)
        archive.with_suffix(".jar").unlink(missing_ok=True)


# SPARK_EXECUTOR_DIRS: folders of this application on this machine, which the Spark worker deletes after it. On YARN:
# LOCAL_DIRS.
_SH = """#!/bin/sh
# The Python of Headgate's executors: unpacked once for each application on a machine.
set -eu
home=${SPARK_EXECUTOR_DIRS:-${LOCAL_DIRS:-$PWD}}
home=${home%%[,:]*}
environment=$home/headgate-@DIGEST@
exec 9>"$home/headgate.lock"
flock 9 2>/dev/null || true
if [ ! -d "$environment" ]; then
    fresh=$(mktemp -d "$home/headgate.XXXXXX")
    tar -xzf "$PWD/headgate-@DIGEST@.packed" --no-same-owner -C "$fresh"
    mv -T "$fresh" "$environment" 2>/dev/null || rm -rf "$fresh"
fi
exec 9>&-
rm -f "$PWD/headgate-@DIGEST@.packed"
export PYTHONHOME="$environment/python"
export PYTHONPATH="$environment/code:$environment/packages${PYTHONPATH:+:$PYTHONPATH}"
export LD_LIBRARY_PATH="$environment/libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$environment/python/bin/@PYTHON@" "$@"
"""

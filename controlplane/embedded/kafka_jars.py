"""The jars of Kafka, fetched once with the Ivy that ships in PySpark and checked against known hashes."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from controlplane.embedded.errors import Cancelled, DownloadFailed, PrerequisiteMissing, quoted, tail
from controlplane.embedded.home import default_cache
from controlplane.embedded.jvm import java
from controlplane.embedded.processes import run_to_end
from controlplane.embedded.waiting import file_lock

VERSION = "4.4.0"
OLDER = ("4.3.1", "4.2.2")  # versions that tests also run
ATTEMPTS = 3
PAUSE_S = 3.0
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Module:
    """A module of Maven Central, and the file with the SHA-256 of each jar that is fetched of it."""

    organisation: str
    name: str
    version: str
    title: str  # what messages call it
    hashes: Path
    with_dependencies: bool = True

    @property
    def known_hashes(self) -> dict[str, str]:
        """SHA-256 of each jar by its name."""
        return {name: digest for digest, name in map(str.split, self.hashes.read_text().splitlines())}

    def wrong_jars(self, folder: Path) -> list[str]:
        """The names of jars that are missing or differ from the known hashes."""
        return [name for name, digest in self.known_hashes.items() if sha256(folder / name) != digest]


def spark_jars() -> Path:
    """The folder of PySpark's jars. Raises PrerequisiteMissing."""
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise PrerequisiteMissing("The Python package pyspark is missing. Run `make` in the project folder.")
    return Path(package.origin).parent / "jars"


def kafka_jars(log: Path, cancel: threading.Event | None = None, version: str = VERSION) -> Path:
    """``fetched`` of Kafka (44 MB, a minute or so)."""
    return fetched(_kafka(version), default_cache() / f"kafka-{version}", log, cancel)


def fetched(module: Module, folder: Path, log: Path, cancel: threading.Event | None = None) -> Path:
    """The folder with all jars of a module whose hashes are known, downloaded the first time.

    Several processes may ask at once: one downloads, the others wait. A folder is complete as soon as it is there.
    Raises DownloadFailed, whose message names the log; Cancelled.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name(folder.name + ".lock"), ATTEMPTS * TIMEOUT_S, cancel):
        if not folder.is_dir():
            _download(module, folder, log, cancel)
    return folder


def _download(module: Module, folder: Path, log: Path, cancel: threading.Event | None) -> None:
    # Ivy keeps what it already has between attempts.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="download-") as temporary:
        jars = Path(temporary) / "jars"
        for attempt in range(ATTEMPTS):
            if attempt and (cancel or threading.Event()).wait(PAUSE_S):
                raise Cancelled("stopped while downloading")
            if _run_ivy(module, Path(temporary), jars, log, cancel) == 0 and not module.wrong_jars(jars):
                jars.rename(folder)
                return
            shutil.rmtree(jars, ignore_errors=True)
    raise DownloadFailed(
        f"The jars of {module.title} {module.version} could not be downloaded from Maven Central "
        f"in {ATTEMPTS} attempts. "
        f"Check the network (or Ivy's and Java's proxy settings) and try again. The log: {log}"
        f"{quoted(tail(log))}"
    )


def _run_ivy(module: Module, temporary: Path, jars: Path, log: Path, cancel: threading.Event | None) -> int:
    command = [java(), "-cp", f"{spark_jars()}/*", "org.apache.ivy.Main", "-cache", str(temporary / "ivy")]
    command += ["-dependency", module.organisation, module.name, module.version, "-confs", "default"]
    command += [] if module.with_dependencies else ["-notransitive"]
    command += ["-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"]
    try:
        return run_to_end(command, log, timeout_s=TIMEOUT_S, cancel=cancel, folder=temporary)
    except TimeoutError:
        return -1


def known_hashes(version: str = VERSION) -> dict[str, str]:
    """SHA-256 of each of Kafka's jars by its name."""
    return _kafka(version).known_hashes


def wrong_jars(folder: Path, version: str = VERSION) -> list[str]:
    """The names of Kafka's jars that are missing or differ from the known hashes."""
    return _kafka(version).wrong_jars(folder)


def _kafka(version: str) -> Module:
    hashes = Path(__file__).with_name(f"kafka-{version}.sha256")
    return Module("org.apache.kafka", "kafka_2.13", version, "Kafka", hashes)


def sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""

"""Jars that only the peers of a benchmark use, fetched once with the Ivy that ships in PySpark."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from controlplane.embedded.home import default_cache
from controlplane.embedded.jvm import java
from controlplane.embedded.kafka_jars import spark_jars
from controlplane.embedded.processes import run_to_end

TIMEOUT_S = 600.0
Module = tuple[str, str, str]  # organisation, name, version
_IVY = """\
<ivy-module version="2.0">
  <info organisation="headgate" module="benchmark"/>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
# Of each module its own jar alone: no sources, and nothing that it asks for, part of which can't be had everywhere.
_DEPENDENCY = '    <dependency org="{0}" name="{1}" rev="{2}" transitive="false" conf="default->master"/>'


def cache() -> Path:
    """Where the peers' programs are kept."""
    return default_cache() / "benchmarks"


def jars(name: str, modules: Sequence[Module]) -> list[Path]:
    """The jars of these modules, downloaded the first time; ``name`` is their folder's. Raises ``RuntimeError``."""
    folder = cache() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _download(folder, modules)
    return sorted(folder.glob("*.jar"))


def _download(folder: Path, modules: Sequence[Module]) -> None:
    log = folder.with_name(folder.name + ".log")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="download-") as temporary:
        ivy_file, jars_folder = Path(temporary) / "ivy.xml", Path(temporary) / "jars"
        ivy_file.write_text(_IVY.format(dependencies="\n".join(_DEPENDENCY.format(*m) for m in modules)))
        command = [java(), "-cp", f"{spark_jars()}/*", "org.apache.ivy.Main", "-cache", str(Path(temporary) / "ivy")]
        command += ["-ivy", str(ivy_file), "-retrieve", f"{jars_folder}/[artifact]-[revision].[ext]"]
        code = run_to_end(command, log, timeout_s=TIMEOUT_S)
        if code != 0 or len(list(jars_folder.glob("*.jar"))) != len(modules):
            raise RuntimeError(f"The jars of {folder.name} could not be downloaded; try again. The log: {log}")
        jars_folder.rename(folder)

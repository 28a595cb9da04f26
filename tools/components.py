"""What Headgate ships: Python packages, jars, scripts of the pages, and the Debian packages of an image's root."""

from __future__ import annotations

import base64
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

from packageurl import PackageURL

from controlplane.embedded.kafka_jars import VERSION as KAFKA
from controlplane.embedded.kafka_jars import known_hashes, sha256, spark_jars
from tools.licences import READ_BY_US, licence_of

PROJECT = Path(__file__).resolve().parents[1]
ASSETS = PROJECT / "frontend" / "assets"
BUNDLED = PROJECT / "frontend" / "static" / "headgate" / "vendor" / "LICENSES.txt"

# The headings of Spark's own list of licences.
_SPARKS_HEADINGS = {
    "license version 2.0:": "Apache-2.0",
    "bsd 0-clause": "0BSD",
    "bsd 2-clause": "BSD-2-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "mit license": "MIT",
    "common development and distribution license (cddl) 1.0": "CDDL-1.0",
    "common development and distribution license (cddl) 1.1": "CDDL-1.1",
    "eclipse distribution license (edl) 1.0": "BSD-3-Clause",
    "eclipse public license (epl) 2.0": "EPL-2.0",
    "unicode/icu license": "Unicode-3.0",
}
# Jars that Spark's list leaves out, and those of Kafka that Spark does not have.
_JARS = {
    "Apache-2.0": "com.google.guava:failureaccess io.vertx:vertx-uri-template com.github.ben-manes.caffeine:caffeine "
    "commons-beanutils:commons-beanutils commons-collections:commons-collections commons-digester:commons-digester "
    "commons-logging:commons-logging commons-validator:commons-validator com.dynatrace.hash4j:hash4j "
    "com.fasterxml.jackson.dataformat:jackson-dataformat-csv com.fasterxml.jackson.datatype:jackson-datatype-jdk8 "
    "org.bitbucket.b_c:jose4j org.jspecify:jspecify "
    "com.typesafe.scala-logging:scala-logging_2.13 com.yammer.metrics:metrics-core-2.2.0",
    "BSD-2-Clause": "org.hdrhistogram:HdrHistogram",
    "BSD-3-Clause": "com.google.re2j:re2j",
    "MIT": "net.sourceforge.argparse4j:argparse4j net.sf.jopt-simple:jopt-simple org.pcollections:pcollections",
}


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """A component.

    *licence* is an SPDX expression, or for Debian the names that its copyright file gives; None: unknown.

    *sha256* has all files of the release that the lock accepts. *optional*: `make up` downloads it, the image lacks it.
    """

    purl: PackageURL
    licence: str | None
    sha256: tuple[str, ...] = ()
    sha512: tuple[str, ...] = ()
    optional: bool = False

    @property
    def kind(self) -> str:
        return str(self.purl.type)


def python_packages() -> Iterator[Shipped]:
    """The packages of requirements.txt, with the hashes of the lock.

    They must be installed, because the lock has no licences. Raises ValueError for another version.
    """
    pins = re.findall(
        r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)(.*\n(?:    .*\n)*)", (PROJECT / "requirements.txt").read_text(), re.M
    )
    for name, version, rest in pins:
        package = distribution(name)
        if package.version != version:
            raise ValueError(
                f"{name} {package.version} is installed and {version} is locked. Run `make venv-dev` first."
            )
        yield Shipped(
            purl=PackageURL("pypi", name=name, version=version),
            licence=READ_BY_US.get(name) or licence_of(package),
            sha256=tuple(re.findall(r"--hash=sha256:(\w+)", rest)),
        )


def jars() -> Iterator[Shipped]:
    """The jars in the Python package of Spark, then those of Kafka that the embedded stack downloads."""
    known = _spark_licences()
    for path in sorted(spark_jars().glob("*.jar")):
        yield _jar(path.stem, sha256(path), known, optional=False)
    for name, digest in known_hashes(KAFKA).items():
        yield _jar(name.removesuffix(".jar"), digest, known, optional=True)


def _jar(stem: str, digest: str, known: dict[str, tuple[str, str]], *, optional: bool) -> Shipped:
    artifact, group, licence = stem, None, None
    while artifact and artifact not in known:
        artifact = artifact.rpartition("-")[0]
    if artifact:
        group, licence = known[artifact]
        artifact = re.split(r"-\d", stem)[0] if artifact == stem else artifact
    elif own := re.match(r"((?:spark|kafka)\w*?)[_-]", stem):
        artifact = re.split(r"-\d", stem)[0]
        group, licence = f"org.apache.{own[1]}", "Apache-2.0"
    artifact = artifact or re.split(r"-\d", stem)[0]
    purl = PackageURL("maven", group, artifact, stem.removeprefix(artifact).strip("-") or None)
    return Shipped(purl=purl, licence=licence, sha256=(digest,), optional=optional)


def _spark_licences() -> dict[str, tuple[str, str]]:
    """By artifact, its group and licence, out of the list that comes with Spark."""
    listed = next(f for f in distribution("pyspark").files or [] if f.match("*.dist-info/licenses/LICENSE"))
    found: dict[str, tuple[str, str]] = {}
    licence: str | None = None
    for line in listed.read_text(encoding="utf-8").splitlines():
        licence = next((spdx for words, spdx in _SPARKS_HEADINGS.items() if line.lower().startswith(words)), licence)
        if licence and (jar := re.match(r"([\w.-]+):([\w.-]+)(?:$|[: ])", line)):
            found[jar[2]] = (jar[1], licence)
            found[f"{jar[2]}_2.13"] = (jar[1], licence)
    for licence, names in _JARS.items():
        found |= {artifact: (group, licence) for group, artifact in (name.split(":") for name in names.split())}
    return found


def page_scripts() -> Iterator[Shipped]:
    """The npm packages that are bundled into the pages' static files; the build lists them beside those."""
    locked = json.loads((ASSETS / "package-lock.json").read_text())["packages"]
    for name, version in re.findall(r"^(@?[a-z][\w./-]*) (\d[\w.-]*) \([^)]+\)$", BUNDLED.read_text(), re.M):
        package = locked[f"node_modules/{name}"]
        if package["version"] != version:
            raise ValueError(
                f"{name} {version} is bundled and {package['version']} is locked. Run `npm run build` first."
            )
        space, _, bare = name.rpartition("/")
        digest = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
        purl = PackageURL("npm", space or None, bare, version)
        yield Shipped(purl=purl, licence=package.get("license"), sha512=(digest,))


def debian_packages(root: Path) -> Iterator[Shipped]:
    """The Debian packages that are installed in a root file system, an unpacked image for example."""
    for paragraph in (root / "var/lib/dpkg/status").read_text().split("\n\n"):
        package = Parser().parsestr(paragraph)
        if "installed" not in (package["Status"] or "").split():
            continue
        copyright_file = root / "usr/share/doc" / package["Package"] / "copyright"
        text = copyright_file.read_text(errors="replace") if copyright_file.exists() else ""
        names = sorted(set(re.findall(r"^License: *(\S.*)$", text, re.M)))
        named = sorted(set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text)))
        yield Shipped(
            purl=PackageURL("deb", "debian", package["Package"], package["Version"], {"arch": package["Architecture"]}),
            licence="; ".join(names or named) or None,
        )


def all_shipped(root: Path | None = None) -> list[Shipped]:
    """All components; those of Debian only with the root of an image. Raises ValueError and LookupError, see below."""
    shipped = [*python_packages(), *jars(), *page_scripts(), *(debian_packages(root) if root else ())]
    # Kafka and Spark have some jars in common.
    return list({str(one.purl): one for one in reversed(shipped)}.values())[::-1]


def version() -> str:
    """Headgate's own version."""
    return str(tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"])

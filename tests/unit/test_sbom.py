"""The list of components: that it is complete, has hashes, and that every licence is allowed."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tools import sbom
from tools.components import BUNDLED, Shipped, all_shipped, debian_packages
from tools.licences import PERMISSIVE, READ_BY_US, WEAK_COPYLEFT, is_allowed

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shipped() -> list[Shipped]:
    return all_shipped()


def test_every_component_has_an_allowed_licence_and_a_hash(shipped: list[Shipped]) -> None:
    assert sbom.not_allowed(shipped) == []
    assert [str(one.purl) for one in shipped if not (one.sha256 or one.sha512)] == []
    assert [str(one.purl) for one in shipped if not one.purl.version] == []
    assert [str(one.purl) for one in shipped if one.kind == "maven" and not one.purl.namespace] == []


def test_what_is_locked_and_bundled_is_listed(shipped: list[Shipped]) -> None:
    counts = Counter(one.kind for one in shipped)
    lock = (PROJECT / "requirements.txt").read_text()
    assert counts["pypi"] == len(re.findall(r"^[\w.\[\],-]+==", lock, re.M))
    assert sum(len(one.sha256) for one in shipped if one.kind == "pypi") == lock.count("--hash=")
    assert counts["npm"] == BUNDLED.read_text().count("=" * 100) + 1
    names = {one.purl.name for one in shipped}
    assert {"django", "pyspark", "bootstrap", "echarts", "spark-core_2.13", "netty-buffer", "kafka-clients"} <= names
    optional = {one.purl.name for one in shipped if one.optional}
    assert "kafka-clients" in optional and "spark-core_2.13" not in optional


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT AND LGPL-3.0-only", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND AGPL-3.0-only", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("Free for all", False),
        ("", False),
    ],
)
def test_an_expression_is_allowed_if_it_can_be_met(expression: str, allowed: bool) -> None:
    assert is_allowed(expression) is allowed


def test_components_without_an_allowed_licence_are_named() -> None:
    bad = Shipped(purl=PackageURL("pypi", name="bad", version="1"), licence="GPL-3.0-only")
    unknown = Shipped(purl=PackageURL("maven", "org.example", "unknown", "2"), licence=None)
    tool = Shipped(purl=PackageURL("deb", "debian", "tool", "3"), licence="GPL-3+")
    assert sbom.not_allowed([bad, unknown, tool]) == [
        "pkg:pypi/bad@1: GPL-3.0-only",
        "pkg:maven/org.example/unknown@2: no licence",
    ]


def test_debians_packages_come_from_the_root(tmp_path: Path) -> None:
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(
        "Package: tool\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2-3\nDescription: a\n tool\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n\n"
    )
    (tmp_path / "usr/share/doc/tool").mkdir(parents=True)
    (tmp_path / "usr/share/doc/tool/copyright").write_text("Files: *\nLicense: GPL-3+\n\nFiles: b\nLicense: Expat\n")
    (one,) = debian_packages(tmp_path)
    assert (str(one.purl), one.licence) == ("pkg:deb/debian/tool@1:2-3?arch=amd64", "Expat; GPL-3+")


def test_the_document_is_cyclonedx(shipped: list[Shipped]) -> None:
    text = sbom.document(shipped)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    parts = {part["purl"]: part for part in json.loads(text)["components"]}
    assert len(parts) == len(shipped)
    django = next(part for purl, part in parts.items() if purl.startswith("pkg:pypi/django@"))
    assert django["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert {digest["alg"] for digest in django["hashes"]} == {"SHA-256"}


def test_the_page_names_the_allowed_licences_and_packages_that_were_read() -> None:
    page = (PROJECT / "docs" / "operations" / "licences.md").read_text()
    rows = dict(re.findall(r"^\| (Permissive|Weak copyleft) \| (.*) \|$", page, re.M))
    assert set(re.findall(r"`([^`]+)`", rows["Permissive"])) == PERMISSIVE
    assert set(re.findall(r"`([^`]+)`", rows["Weak copyleft"])) == WEAK_COPYLEFT
    lock = (PROJECT / "requirements.txt").read_text()
    assert [name for name in READ_BY_US if f"\n{name}==" not in lock] == []

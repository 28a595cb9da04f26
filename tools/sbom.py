"""`make sbom`: a CycloneDX list of what Headgate ships, with hashes and licences (docs/operations/licences.md)."""

from __future__ import annotations

import argparse
import sys
import uuid
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from tools import components
from tools.components import Shipped
from tools.licences import is_allowed


def not_allowed(shipped: Iterable[Shipped]) -> list[str]:
    """The components without an allowed licence, with what they have instead. Debian's packages are not judged."""
    return [
        f"{one.purl}: {one.licence or 'no licence'}"
        for one in shipped
        if one.kind != "deb" and not (one.licence and is_allowed(one.licence))
    ]


def document(shipped: Iterable[Shipped]) -> str:
    """The components as CycloneDX 1.6 in JSON."""
    parts = [_component(one) for one in shipped]
    headgate = Component(
        name="headgate",
        version=components.version(),
        type=ComponentType.APPLICATION,
        purl=PackageURL("pypi", name="headgate", version=components.version()),
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
    )
    bom = Bom(serial_number=uuid.uuid4(), components=parts)
    bom.metadata.timestamp = datetime.now(UTC)
    bom.metadata.component = headgate
    bom.register_dependency(headgate, parts)
    return JsonV1Dot6(bom).output_as_string(indent=1)


def _component(one: Shipped) -> Component:
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in one.sha256]
    hashes += [HashType(alg=HashAlgorithm.SHA_512, content=digest) for digest in one.sha512]
    licences: list[License]
    if one.kind == "deb":
        licences = [DisjunctiveLicense(name=one.licence)] if one.licence else []
    else:
        licences = [LicenseFactory().make_from_string(one.licence)] if one.licence else []
    return Component(
        name=one.purl.name,
        group=one.purl.namespace,
        version=one.purl.version,
        type=ComponentType.LIBRARY,
        scope=ComponentScope.OPTIONAL if one.optional else ComponentScope.REQUIRED,
        purl=one.purl,
        bom_ref=str(one.purl),
        hashes=hashes,
        licenses=licences,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sbom", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("sbom.json"), help="the file to write (sbom.json)")
    parser.add_argument("--root", type=Path, help="a folder with the unpacked image, for its Debian packages")
    options = parser.parse_args()
    if options.root and not (options.root / "var/lib/dpkg/status").is_file():
        parser.error(f"{options.root} has no var/lib/dpkg/status, so it is no root of a Debian image.")
    try:
        shipped = components.all_shipped(options.root)
    except (LookupError, OSError, ValueError) as error:
        parser.error(str(error))
    refused = not_allowed(shipped)
    options.output.write_text(document(shipped) + "\n")
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(Counter(one.kind for one in shipped).items()))
    print(f"{options.output}: {len(shipped)} components ({counts})")
    for line in refused:
        print(f"not on the list of licences: {line}", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())

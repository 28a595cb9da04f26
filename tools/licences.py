"""Which licences a component that Headgate ships may have, and how the licence of a Python package is found."""

from __future__ import annotations

import re
from importlib.metadata import Distribution

from license_expression import (
    AND,
    ExpressionError,
    LicenseExpression,
    LicenseSymbol,
    LicenseWithExceptionSymbol,
    get_spdx_licensing,
)

PERMISSIVE = frozenset(
    (
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "PostgreSQL"),
        *("PSF-2.0", "Unicode-3.0", "Zlib"),
    )
)
# Who changes such a component publishes the changes. Headgate ships them unchanged and as files of their own.
WEAK_COPYLEFT = frozenset(["CDDL-1.0", "CDDL-1.1", "EPL-2.0", "LGPL-3.0-only", "MPL-2.0"])

_SPDX = get_spdx_licensing()
_WORDS = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd 3-clause or apache-2.0": "BSD-3-Clause OR Apache-2.0",
    "cc0": "CC0-1.0",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
}
# Packages whose metadata name several licences or none, by what their licence files say.
READ_BY_US = {
    "ply": "BSD-3-Clause",
    "fido2": "BSD-2-Clause AND Apache-2.0 AND MPL-2.0",
    "python-dateutil": "Apache-2.0 AND BSD-3-Clause",
    "qrcode": "BSD-3-Clause AND MIT",
    "uvloop": "Apache-2.0 OR MIT",
}


def is_allowed(expression: str) -> bool:
    """Whether an SPDX expression can be met by allowed licences alone. An unknown one is not allowed."""
    try:
        return _allows(_SPDX.parse(expression, validate=True))
    except ExpressionError:
        return False


def _allows(node: LicenseExpression | None) -> bool:
    if isinstance(node, LicenseWithExceptionSymbol):
        return False
    if isinstance(node, LicenseSymbol):
        return node.key in PERMISSIVE | WEAK_COPYLEFT
    if node is None:
        return False
    return (all if isinstance(node, AND) else any)(_allows(part) for part in node.args)


def licence_of(package: Distribution) -> str | None:
    """The SPDX expression of an installed package, None where its metadata and files do not say one."""
    metadata = package.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    trove = [word.split(" :: ")[-1] for word in metadata.get_all("Classifier") or [] if word.startswith("License ::")]
    words = [word for word in trove if word != "OSI Approved"] or metadata.get_all("License") or [""]
    if len(words) > 1:
        return None
    word = words[0].strip()
    if word.lower() in ("bsd", "bsd license", "bsd-3-clause license"):
        return _which_bsd(package)
    return _WORDS.get(word.lower()) or (word if word and is_allowed(word) else None)


def _which_bsd(package: Distribution) -> str | None:
    named = [f for f in package.files or [] if re.match(r"(LICEN[CS]E|COPYING)", f.name, re.IGNORECASE)]
    for file in named:
        text = " ".join(file.read_text(encoding="utf-8").split())
        if "Redistribution and use in source and binary forms" in text:
            return (
                "BSD-3-Clause"
                if re.search("(?i)(neither the names?|may not be used to endorse)", text)
                else "BSD-2-Clause"
            )
    return None

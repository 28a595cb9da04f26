"""Certificates and keys as PEM text, also on one line as Java's properties have it. Nothing is decoded here."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----((?:(?!-----).)*)-----END \1-----", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
CERTIFICATE = ("CERTIFICATE",)
KEY = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")
_WIDTH = 64


def pem_of(text: str, labels: tuple[str, ...]) -> str:
    """The blocks with one of these labels, in lines. Raises ``ValueError`` when there is none, or one is not PEM."""
    blocks = [_lines(label, body) for label, body in _BLOCK.findall(text) if label in labels]
    if not blocks:
        raise ValueError(f"must be PEM text: -----BEGIN {labels[0]}----- … -----END {labels[0]}-----")
    return "".join(blocks)


def _lines(label: str, body: str) -> str:
    packed = "".join(body.split())
    if _BASE64.fullmatch(packed) is None:
        raise ValueError("is not PEM: between BEGIN and END there must be base64 only (a key in the form PKCS #8)")
    lines = [packed[i : i + _WIDTH] for i in range(0, len(packed), _WIDTH)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])

"""Secrets at rest: Fernet, its key derived from the site's secret key. Nothing here ever logs."""

from __future__ import annotations

import base64
import json

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


def _fernet() -> Fernet:
    hkdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"headgate spec secrets")
    return Fernet(base64.urlsafe_b64encode(hkdf.derive(settings.SECRET_KEY.encode())))


def seal(secrets: dict[str, str]) -> str:
    """Encrypted text for a database column; empty for no secrets."""
    return _fernet().encrypt(json.dumps(secrets).encode()).decode() if secrets else ""


def unseal(sealed: str) -> dict[str, str]:
    """What ``seal`` was given."""
    opened: dict[str, str] = json.loads(_fernet().decrypt(sealed.encode())) if sealed else {}
    return opened

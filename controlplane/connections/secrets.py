"""Secrets at rest: Fernet, its keys derived from the site's secret keys. Nothing here ever logs.

The first key seals; earlier ones (``HEADGATE_OLD_SECRET_KEYS``) still open, until ``manage.py rotate_secrets`` has
sealed everything anew.
"""

from __future__ import annotations

import base64
import json

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from controlplane.common.errors import Conflict


class SecretsLost(Conflict):
    """What was sealed can't be opened with any of the keys there are."""

    def __init__(self) -> None:
        super().__init__(
            "The stored secrets were encrypted with another HEADGATE_SECRET_KEY. Set that key in "
            "HEADGATE_OLD_SECRET_KEYS, or submit the specs again with their secrets."
        )


def seal(secrets: dict[str, str]) -> str:
    """Encrypted text for a database column; empty for no secrets."""
    return _fernet().encrypt(json.dumps(secrets).encode()).decode() if secrets else ""


def unseal(sealed: str) -> dict[str, str]:
    """What ``seal`` was given. Raises ``SecretsLost``."""
    try:
        opened: dict[str, str] = json.loads(_fernet().decrypt(sealed.encode())) if sealed else {}
    except InvalidToken:
        raise SecretsLost from None
    return opened


def reseal(sealed: str) -> str:
    """Seals these secrets again, with the first key. Raises ``SecretsLost``."""
    try:
        return _fernet().rotate(sealed.encode()).decode()
    except InvalidToken:
        raise SecretsLost from None


def _fernet() -> MultiFernet:
    return MultiFernet([_key(text) for text in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _key(secret: str) -> Fernet:
    hkdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"headgate spec secrets")
    return Fernet(base64.urlsafe_b64encode(hkdf.derive(secret.encode())))

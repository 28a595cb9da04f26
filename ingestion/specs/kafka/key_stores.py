"""Stores of keys and certificates that are files: what is in them, as the PEM texts that a client is given.

As Java does, it reads PKCS12 and JKS by what the file is, under either name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ingestion.specs.kafka import keytool

MOST_BYTES = 1024 * 1024
STORES = ("ssl.truststore", "ssl.keystore")
FORMS = ("PEM", "PKCS12", "JKS")
_A_KEY = bytes.fromhex("060b2a864886f70d010c0a0102")  # what begins each encrypted key of a PKCS12 store

Read = Callable[[str, str], bytes]


class StoreProblem(ValueError):
    """A store can't be used. ``name``: the property at fault; no text holds a value."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


@dataclass(frozen=True)
class _Held:
    """What a store holds, as PEM; an empty key: it has none."""

    certificates: str
    key: str


def form_of(properties: Mapping[str, object], store: str) -> str:
    """Which form of a file is meant: as in Kafka, JKS unless another is named."""
    return str(properties.get(f"{store}.type") or "JKS").upper()


def with_stores(properties: Mapping[str, str], read: Read) -> dict[str, str]:
    """The properties, with texts in place of the stores that they name. ``read`` is given a property and its place.

    Raises ``StoreProblem``, and what ``read`` raises.
    """
    found = dict(properties)
    for store in STORES:
        if f"{store}.location" in found:
            found = _with_store(found, store, read)
    return found


def _with_store(texts: dict[str, str], store: str, read: Read) -> dict[str, str]:
    location = f"{store}.location"
    data = read(location, texts[location])
    others = {k: v for k, v in texts.items() if k not in (location, f"{store}.password", f"{store}.type")}
    if form_of(texts, store) == "PEM":
        text = _ascii(location, data)
        return {**others, **_as_properties(store, _Held(text, text))}
    held = _held(store, data, texts)
    if store == "ssl.keystore":
        others.pop("ssl.key.password", None)  # it is open by now
    return {**others, **_as_properties(store, held)}


def _ascii(location: str, data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise StoreProblem(location, "the file is not PEM text") from None


def _as_properties(store: str, held: _Held) -> dict[str, str]:
    if store == "ssl.truststore":
        return {"ssl.ca.pem": held.certificates}
    return {"ssl.certificate.pem": held.certificates, "ssl.key.pem": held.key}


def _held(store: str, data: bytes, texts: Mapping[str, str]) -> _Held:
    location, password = f"{store}.location", texts.get(f"{store}.password", "")
    found = keytool.Pkcs12(data, password.encode())
    if data.startswith(keytool.MAGIC):
        found = _converted(store, data, password, texts)
    if found.data.count(_A_KEY) > 1:
        raise StoreProblem(location, "there are several private keys in the file: keep one")
    if data.lstrip().startswith(b"-----BEGIN"):
        raise StoreProblem(location, f"the file is PEM text: set {store}.type to PEM")
    held = _unpacked(location, found)
    if not held.certificates:
        raise StoreProblem(location, "the file has no certificate")
    if store == "ssl.keystore" and not held.key:
        raise StoreProblem(location, "the file has no private key")
    return held


def _converted(store: str, data: bytes, password: str, texts: Mapping[str, str]) -> keytool.Pkcs12:
    key_password = texts.get("ssl.key.password", "") if store == "ssl.keystore" else ""
    try:
        return keytool.converted(data, password, key_password)
    except keytool.StorePasswordWrong as error:
        raise StoreProblem(f"{store}.password", str(error)) from None
    except keytool.KeyPasswordWrong as error:
        raise StoreProblem("ssl.key.password", str(error)) from None
    except keytool.NotConverted as error:
        raise StoreProblem(f"{store}.location", str(error)) from None


def _unpacked(location: str, found: keytool.Pkcs12) -> _Held:
    # not at the top: who reads specs needs none of it
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    try:
        store = pkcs12.load_pkcs12(found.data, found.password)
    except ValueError:
        raise StoreProblem(location, "the file is not a PKCS12 or JKS store, or the password is wrong") from None
    entries = [entry.certificate for entry in (store.cert, *store.additional_certs) if entry]
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode() if store.key else ""
    return _Held("".join(c.public_bytes(Encoding.PEM).decode() for c in entries), key)

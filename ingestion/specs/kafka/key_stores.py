"""Stores of keys and certificates that are files: what is in them, as the PEM texts that a client is given.

As Java does, it reads PKCS12 and JKS by what the file is, under either name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ingestion.specs.kafka import keytool

MAX_BYTES = 1024 * 1024
STORES = ("ssl.truststore", "ssl.keystore")
FORMS = ("PEM", "PKCS12", "JKS")
_KEY_MARKER = bytes.fromhex("060b2a864886f70d010c0a0102")  # what begins each encrypted key of a PKCS12 store

Read = Callable[[str, str], bytes]


class StoreProblem(ValueError):
    """A store can't be used. ``name``: the property at fault; no text holds a value."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


@dataclass(frozen=True)
class _StoreContents:
    """What a store holds, as PEM; an empty key: it has none."""

    certificates: str
    key: str


def store_form(properties: Mapping[str, object], store: str) -> str:
    """Which form of a file is meant: as in Kafka, JKS unless another is named."""
    return str(properties.get(f"{store}.type") or "JKS").upper()


def with_stores(properties: Mapping[str, str], read: Read) -> dict[str, str]:
    """The properties, with texts in place of the stores that they name. ``read`` is given a property and its place.

    Raises ``StoreProblem``, and what ``read`` raises.
    """
    texts = dict(properties)
    for store in STORES:
        if f"{store}.location" in texts:
            texts = _with_store(texts, store, read)
    return texts


def _with_store(texts: dict[str, str], store: str, read: Read) -> dict[str, str]:
    location = f"{store}.location"
    data = read(location, texts[location])
    others = {k: v for k, v in texts.items() if k not in (location, f"{store}.password", f"{store}.type")}
    if store_form(texts, store) == "PEM":
        text = _ascii(location, data)
        return {**others, **_as_properties(store, _StoreContents(text, text))}
    contents = _read_store(store, data, texts)
    if store == "ssl.keystore":
        others.pop("ssl.key.password", None)  # it is open by now
    return {**others, **_as_properties(store, contents)}


def _ascii(location: str, data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise StoreProblem(location, "the file is not PEM text") from None


def _as_properties(store: str, contents: _StoreContents) -> dict[str, str]:
    if store == "ssl.truststore":
        return {"ssl.ca.pem": contents.certificates}
    return {"ssl.certificate.pem": contents.certificates, "ssl.key.pem": contents.key}


def _read_store(store: str, data: bytes, texts: Mapping[str, str]) -> _StoreContents:
    location, password = f"{store}.location", texts.get(f"{store}.password", "")
    pkcs12_store = keytool.Pkcs12(data, password.encode())
    if data.startswith(keytool.MAGIC):
        pkcs12_store = _convert_store(store, data, password, texts)
    if pkcs12_store.data.count(_KEY_MARKER) > 1:
        raise StoreProblem(location, "there are several private keys in the file: keep one")
    if data.lstrip().startswith(b"-----BEGIN"):
        raise StoreProblem(location, f"the file is PEM text: set {store}.type to PEM")
    contents = _unpack_store(location, pkcs12_store)
    if not contents.certificates:
        raise StoreProblem(location, "the file has no certificate")
    if store == "ssl.keystore" and not contents.key:
        raise StoreProblem(location, "the file has no private key")
    return contents


def _convert_store(store: str, data: bytes, password: str, texts: Mapping[str, str]) -> keytool.Pkcs12:
    key_password = texts.get("ssl.key.password", "") if store == "ssl.keystore" else ""
    try:
        return keytool.convert_store(data, password, key_password)
    except keytool.StorePasswordWrong as error:
        raise StoreProblem(f"{store}.password", str(error)) from None
    except keytool.KeyPasswordWrong as error:
        raise StoreProblem("ssl.key.password", str(error)) from None
    except keytool.NotConverted as error:
        raise StoreProblem(f"{store}.location", str(error)) from None


def _unpack_store(location: str, pkcs12_store: keytool.Pkcs12) -> _StoreContents:
    # not at the top: who reads specs needs none of it
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    try:
        store = pkcs12.load_pkcs12(pkcs12_store.data, pkcs12_store.password)
    except ValueError:
        raise StoreProblem(location, "the file is not a PKCS12 or JKS store, or the password is wrong") from None
    entries = [entry.certificate for entry in (store.cert, *store.additional_certs) if entry]
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode() if store.key else ""
    return _StoreContents("".join(c.public_bytes(Encoding.PEM).decode() for c in entries), key)

"""Certificates for tests: an authority, what it signs, and the forms in which they are handed over."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Identity:
    """A certificate with its key, and those above it without the first."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    above: tuple[x509.Certificate, ...] = ()

    @property
    def pem(self) -> str:
        """The certificate and those above it."""
        return "".join(c.public_bytes(Encoding.PEM).decode() for c in (self.certificate, *self.above))

    def key_pem(self, password: str = "") -> str:
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def pkcs12(self, password: str) -> bytes:
        """A key store, as keytool and openssl make it."""
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"me", self.key, self.certificate, self.above, encryption)

    def trust_store(self, password: str) -> bytes:
        """A trust store that holds this certificate alone."""
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(self.certificate, b"authority")], encryption)

    def jks(self, password: str, key_password: str = "") -> bytes:
        """A key store in Java's own form. keytool takes no password of fewer than six characters for what it makes."""
        return as_jks(self.pkcs12("pass phrase"), "pass phrase", password, key_password or password)

    def signs(self, name: str, authority: bool = False) -> Identity:
        """A new identity for ``name`` (and for localhost), signed by this one."""
        key = ec.generate_private_key(ec.SECP256R1())
        above = (self.certificate, *self.above) if self.certificate.issuer != self.certificate.subject else ()
        return Identity(key, _certificate(name, key, self, authority), above)


def as_jks(pkcs12_store: bytes, opened_by: str, password: str, key_password: str = "") -> bytes:
    """A PKCS12 store as JKS; with ``key_password`` the key that is called ``me`` has that one."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "p12"), Path(folder, "jks")
        source.write_bytes(pkcs12_store)
        stores = ["-srckeystore", str(source), "-srcstoretype", "PKCS12", "-destkeystore", str(target)]
        words = ["-deststoretype", "JKS", "-srcstorepass:env", "A", "-deststorepass:env", "B"]
        words += ["-srcalias", "me", "-destkeypass:env", "C"] if key_password else []
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "A": opened_by, "B": password, "C": key_password}
        quick = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]  # it runs for a moment
        command = ["keytool", *quick, "-importkeystore", "-noprompt", *stores, *words]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
        return target.read_bytes()


def authority(name: str = "test authority") -> Identity:
    """One that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    return Identity(key, _certificate(name, key, None, True))


def _certificate(name: str, key: ec.EllipticCurvePrivateKey, by: Identity | None, ca: bool) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(names, critical=False)
    )
    return builder.sign(by.key if by else key, hashes.SHA256())

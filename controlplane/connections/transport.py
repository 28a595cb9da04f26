"""From a host's name to a line on which something can be said: DNS, address policy, TCP, TLS; each with its cause."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSlow
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

from controlplane.connections import kafka_handshake
from controlplane.connections.probe_report import Clock, Failed
from ingestion.specs.kafka.addresses import AddressRefused, AddressUnknown

DNS_S, TCP_S, TLS_S = 3.0, 3.0, 3.0
_resolvers = ThreadPoolExecutor(8, "resolver-test")
# OpenSSL's numbers of what may be wrong with a certificate.
_EXPIRED, _NOT_YET, _HOST, _ADDRESS = 10, 9, 62, 64
_UNTRUSTED = (2, 7, 18, 19, 20, 21)  # 7: by an authority of the same name, with another key
_WANTS_CERTIFICATE = (
    "CERTIFICATE_REQUIRED",
    "HANDSHAKE_FAILURE",
    "BAD_CERTIFICATE",
    "UNKNOWN_CA",
    "CERTIFICATE_UNKNOWN",
)


def resolve(host: str, port: int, clock: Clock) -> list[str]:
    """The host's addresses, all of them allowed. Raises ``Failed``."""
    try:
        return _resolvers.submit(settings.ADDRESS_POLICY.resolve, host, port).result(clock.cap(DNS_S))
    except AddressRefused as refused:
        raise Failed(
            "address", f"{refused}.", "Use another address, or ask an administrator to allow this one."
        ) from None
    except AddressUnknown:
        advice = "Check the spelling. Run getent hosts on Headgate's machines to check that they know the name."
        raise Failed("dns", f"The name {host} has no address in DNS.", advice) from None
    except TooSlow:
        message = f"The DNS resolver gave no answer for {host} within {DNS_S:.0f} s."
        raise Failed(
            "dns", message, "Check the name servers of the machine where Headgate's web process runs."
        ) from None


def connect(host: str, addresses: list[str], port: int, clock: Clock) -> socket.socket:
    """A line to the first of the addresses that takes one. Raises ``Failed``."""
    place = f"{host}:{port}"
    failure: Failed | None = None
    for address in addresses[:4]:
        try:
            return socket.create_connection((address, port), clock.cap(TCP_S))
        except ConnectionRefusedError:
            advice = "Check the port. Check that the server runs and listens on this address."
            failure = Failed("tcp", f"{place} refuses the connection: nothing listens there.", advice)
        except TimeoutError:
            advice = "A firewall may block the port, or the machine is off. Check the firewall rules in between."
            failure = Failed("tcp", f"{place} ({address}) does not answer within {TCP_S:.0f} s.", advice)
        except OSError as error:
            advice = "Check the network between Headgate and this address."
            failure = Failed("tcp", f"{place} can't be reached: {error.strerror or 'no route'}.", advice)
    raise failure or Failed("dns", f"{host} has no address.", "Check the name.")


def start_tls(sock: socket.socket, host: str, config: Mapping[str, str], clock: Clock) -> ssl.SSLSocket:
    """The line with TLS as a client with this configuration (librdkafka's names) has it. Raises ``Failed``."""
    address = sock.getpeername()[:2]
    sock.settimeout(clock.cap(TLS_S))
    try:
        return _tls_context(config).wrap_socket(sock, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise _certificate_failure(error, host, config) from None
    except ssl.SSLError as error:
        if "ALERT" in str(error.reason):
            raise _alert_failure(error, config) from None
        raise _no_tls_failure(address, clock, str(error.reason)) from None
    except OSError as error:
        raise _no_tls_failure(address, clock, str(error)) from None


def alert_failure(error: ssl.SSLError, config: Mapping[str, str]) -> Failed:
    """What an alert means that comes after the handshake, as servers of TLS 1.3 send it."""
    return _alert_failure(error, config)


def _tls_context(config: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    checks = config.get("enable.ssl.certificate.verification", "true").lower() == "true"
    context.check_hostname = checks and config.get("ssl.endpoint.identification.algorithm", "https") == "https"
    context.verify_mode = ssl.CERT_REQUIRED if checks else ssl.CERT_NONE
    if config.get("ssl.ca.pem"):
        context.load_verify_locations(cadata=config["ssl.ca.pem"])
    else:
        context.load_default_certs()
    if config.get("ssl.certificate.pem") and config.get("ssl.key.pem"):
        with _in_memory(config["ssl.certificate.pem"]) as chain, _in_memory(config["ssl.key.pem"]) as key:
            context.load_cert_chain(chain, key, config.get("ssl.key.password", ""))
    return context


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """A file's name for what must not touch a disk: OpenSSL's Python door takes keys from files alone."""
    number = os.memfd_create("pem")
    try:
        os.write(number, text.encode())
        yield str(Path(f"/proc/self/fd/{number}"))
    finally:
        os.close(number)


def _certificate_failure(error: ssl.SSLCertVerificationError, host: str, config: Mapping[str, str]) -> Failed:
    code = error.verify_code
    if code in (_HOST, _ADDRESS):
        advice = "Use a name from the certificate, or issue a certificate with this name."
        return Failed("tls", f"The server's certificate is not for {host}.", advice)
    if code in (_EXPIRED, _NOT_YET):
        when = "has expired" if code == _EXPIRED else "is not valid yet"
        return Failed(
            "tls", f"The server's certificate {when}.", "Renew the certificate. Check the clocks of both machines."
        )
    if code in _UNTRUSTED:
        whom = "the authorities of ssl.ca.pem" if config.get("ssl.ca.pem") else "the system's authorities"
        advice = "Add the certificate of the authority that signed it to ssl.ca.pem."
        return Failed("tls", f"The server's certificate is not signed by one of {whom}.", advice)
    return Failed("tls", f"The server's certificate is refused: {error.verify_message}.", "Check the certificate.")


def _alert_failure(error: ssl.SSLError, config: Mapping[str, str]) -> Failed:
    reason = str(error.reason)
    if any(word in reason for word in _WANTS_CERTIFICATE):
        if config.get("ssl.certificate.pem"):
            advice = "Use a certificate from an authority that the server trusts, with its whole chain."
            return Failed("tls", "The server refuses the client certificate.", advice)
        advice = "Set ssl.certificate.pem and ssl.key.pem (or a key store), or use a port that requires none."
        return Failed("tls", "The server requires a client certificate, but the connection has none.", advice)
    if "PROTOCOL_VERSION" in reason:
        advice = "Enable TLS 1.2 or 1.3 on the server."
        return Failed("tls", "Client and server share no version of TLS.", advice)
    return Failed(
        "tls", f"The server aborts the TLS handshake: {reason.lower().replace('_', ' ')}.", "See the server's log."
    )


def _no_tls_failure(address: tuple[str, int], clock: Clock, reason: str) -> Failed:
    if kafka_handshake.speaks_plainly(address, clock.cap(2.0)):
        message = "The server speaks Kafka without TLS on this port, but the connection expects TLS."
        return Failed("tls", message, "Set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or use the port for TLS.")
    advice = "Check that the port is the broker's listener for TLS."
    return Failed("tls", f"The TLS handshake failed: {reason.lower().replace('_', ' ')[:200]}.", advice)


def close(sock: socket.socket) -> None:
    """Close a line, whatever state it is in."""
    with suppress(OSError):
        sock.close()

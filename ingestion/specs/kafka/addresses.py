"""Which addresses a spec may make Headgate connect to: brokers and schema registries, for both planes.

Pure but for ``resolve``, which asks the system's resolver, as the clients do: so whatever it takes for an address
(``2130706433``, ``0x7f.1``, ``0177.0.0.1``) is judged by what it leads to.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from pydantic import BaseModel, ConfigDict

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
MAX_SERVERS = 32
_SERVER = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]{1,253})):([0-9]{1,5})")
# Local NAT64 prefixes are /96 as a rule: the IPv4 address is in the last 32 bits, as in the well-known one.
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))

BUILT_IN: dict[str, str] = {
    "0.0.0.0/8": "means this machine",
    "127.0.0.0/8": "is a loopback address",
    "169.254.0.0/16": "is link-local",
    "169.254.169.254/32": "is a cloud's metadata service",
    "100.100.100.200/32": "is a cloud's metadata service",
    "168.63.129.16/32": "is a cloud's metadata service",
    "192.0.0.192/32": "is a cloud's metadata service",
    "224.0.0.0/4": "is a multicast address",
    "240.0.0.0/4": "is reserved",
    "::/128": "means this machine",
    "::1/128": "is a loopback address",
    "fe80::/10": "is link-local",
    "fd00:ec2::254/128": "is a cloud's metadata service",
    "fd20:ce::254/128": "is a cloud's metadata service",
    "ff00::/8": "is a multicast address",
}
_BUILT_IN: list[tuple[Network, str]] = [(ip_network(text), reason) for text, reason in BUILT_IN.items()]


class AddressProblem(Exception):
    """No connection may be made; the text is for the user."""


class AddressRefused(AddressProblem):
    """The policy forbids the address."""


class AddressUnknown(AddressProblem):
    """The name can't be resolved just now, so nothing can be said of it."""


class AddressPolicy(BaseModel):
    """The most specific network that holds an address decides.

    Of two alike the operator's win over the built-in ones (``BUILT_IN``, all denied), and among the operator's the
    denied one. What no network holds is allowed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    allowed: tuple[IPv4Network | IPv6Network, ...] = ()
    denied: tuple[IPv4Network | IPv6Network, ...] = ()
    ports: tuple[tuple[int, int], ...] = ((80, 80), (443, 443), (1024, 65535))  # ranges, both ends included

    @classmethod
    def of(cls, allowed: Iterable[str], denied: Iterable[str], ports: Iterable[str]) -> AddressPolicy:
        """From networks (``10.0.0.0/8``, ``::1``) and ports (``443``, ``1024-65535``). Raises ``ValueError``."""
        return cls(
            allowed=tuple(map(ip_network, allowed)),
            denied=tuple(map(ip_network, denied)),
            ports=tuple(map(_port_range, ports)),
        )

    def refusal(self, address: str, port: int) -> str:
        """Why nothing may connect to an IP address and port, as a predicate (``is link-local``); empty: it may."""
        if not any(low <= port <= high for low, high in self.ports):
            return f"has the port {port}, which HEADGATE_ALLOWED_PORTS does not allow"
        reasons = (self._refusal(meant) for meant in _effective_addresses(ip_address(address.partition("%")[0])))
        return next((reason for reason in reasons if reason), "")

    def resolve(self, host: str, port: int) -> list[str]:
        """Every IP address of a host, all of them allowed. Blocks. Raises ``AddressRefused``, ``AddressUnknown``."""
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise AddressUnknown(f"{host} can't be resolved") from None
        addresses = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
        for address in addresses:
            self.check(host, address, port)
        return addresses

    def check(self, host: str, address: str, port: int) -> None:
        """Raise ``AddressRefused`` unless the host's IP address may be connected to."""
        reason = self.refusal(address, port)
        if reason:
            shown = host if host == address else f"{host} ({address})"
            way = "" if "HEADGATE_" in reason else " unless HEADGATE_ALLOWED_NETWORKS names its network"
            raise AddressRefused(f"{shown} {reason}: Headgate may not connect to it{way}")

    def _refusal(self, address: Address) -> str:
        rules = [
            *((n.prefixlen, 2, "is in a network that HEADGATE_DENIED_NETWORKS denies") for n in self.denied),
            *((n.prefixlen, 1, "") for n in self.allowed),
        ]
        networks = [*self.denied, *self.allowed]
        holding = [rule for rule, network in zip(rules, networks, strict=True) if address in network]
        holding += [(n.prefixlen, 0, reason) for n, reason in _BUILT_IN if address in n]
        return max(holding, default=(0, 0, ""))[2]


def parse_servers(text: str) -> list[tuple[str, int]]:
    """``bootstrap.servers`` as hosts and ports. Raises ``ValueError``."""
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    if not entries:
        raise ValueError("is required, for example kafka-broker:9092")
    if len(entries) > MAX_SERVERS:
        raise ValueError(f"names {len(entries)} servers; {MAX_SERVERS} at most: the client finds the others by itself")
    return [_parse_server(entry) for entry in entries]


def _parse_server(entry: str) -> tuple[str, int]:
    match = _SERVER.fullmatch(entry)
    if match is None or not 0 < int(match[3]) < 65536:
        raise ValueError(f"must be host:port, comma-separated; {entry[:100]!r} is not")
    return match[1] or match[2], int(match[3])


def checked_servers(servers: Sequence[tuple[str, int]], policy: AddressPolicy) -> list[str]:
    """The servers as ``address:port``, every address allowed.

    Names that can't be resolved are left out, as the client would. Raises ``AddressRefused``, and ``AddressUnknown``
    when none can be resolved.
    """
    addresses: list[str] = []
    unknown: list[str] = []
    for host, port in servers:
        try:
            addresses += [f"[{a}]:{port}" if ":" in a else f"{a}:{port}" for a in policy.resolve(host, port)]
        except AddressUnknown as problem:
            unknown.append(str(problem))
    if not addresses:
        raise AddressUnknown("; ".join(unknown))
    return list(dict.fromkeys(addresses))


def _effective_addresses(address: Address) -> Iterator[Address]:
    """The address, and any IPv4 address that a gateway or the system would make of it."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
        return
    yield address
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if any(address in network for network in _NAT64) or 1 < int(address) < 2**32:
        yield IPv4Address(int(address) & 0xFFFFFFFF)


def _port_range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    try:
        ports = int(low), int(high or low)
    except ValueError:
        raise ValueError(f"{text!r} is neither a port nor a range of ports such as 1024-65535") from None
    if not 0 < ports[0] <= ports[1] < 65536:
        raise ValueError(f"{text!r} is not a range of ports between 1 and 65535")
    return ports

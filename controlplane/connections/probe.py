"""Does a connection work, and if not, why? Name, address, TCP, TLS, login, rights, each tried by itself, in seconds.

librdkafka tells all of these as one lost connection; so what comes before the login is tried here, on a socket, and the
client is asked only then. Blocks for ``TEST_S`` at most.
"""

from __future__ import annotations

import logging
import re
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from django.conf import settings

from controlplane.connections import kafka_handshake, rights, transport
from controlplane.connections.client_properties import PropertyProblem, client_properties
from controlplane.connections.probe_report import Clock, ConnectionReport, Failed, Step
from ingestion.specs.kafka.addresses import AddressProblem, parse_servers
from ingestion.specs.kafka.msk_login import CALLBACK, with_token
from ingestion.specs.kafka.properties import checked_client_config
from ingestion.specs.kafka.providers import Value
from ingestion.specs.kafka.token_endpoint import CLIENT_ID, ENDPOINT, asks_for_tokens, parse_endpoint

TEST_S = 10.0
MAX_SERVERS = 4  # of those that are named or advertised
# In librdkafka's log, of a broker that it was told of: its errors leave out those that say nothing.
_BROKER_IN_LOG = re.compile(r"(?:\w+://)?(?P<host>\S+):(?P<port>\d+)/(?P<id>\d+): ")
T = TypeVar("T")


@dataclass
class Steps:
    """What was tried so far."""

    clock: Clock = field(default_factory=lambda: Clock(TEST_S))
    done: list[Step] = field(default_factory=list)

    def run(self, name: str, do: Callable[[], T], detail: Callable[[T], str] = lambda _: "") -> T:
        """Try one. Raises ``Failed``."""
        if self.clock.is_over:
            message = f"The test stopped after {TEST_S:.0f} s, before the step {name}."
            raise Failed("other", message, "A server answers slowly. Try again.")
        try:
            result = do()
        except Failed as failed:
            self.done.append(Step(name, False, failed.message))
            raise
        self.done.append(Step(name, True, detail(result)))
        return result

    def report(self, do: Callable[[Steps], str]) -> ConnectionReport:
        """``do`` takes the steps, and may leave a remark."""
        try:
            return ConnectionReport(True, "", do(self), "", self.done)
        except Failed as failed:
            return ConnectionReport(False, failed.cause, failed.message, failed.advice, self.done)


@dataclass(frozen=True)
class NeededRights:
    """What the login is to be allowed, each if it is named: to read a topic, to read with a group."""

    topic: str = ""
    group: str = ""


NO_RIGHTS = NeededRights()  # the connection


def try_kafka(properties: Mapping[str, Value], needed: NeededRights = NO_RIGHTS) -> ConnectionReport:
    """Of a cluster by properties with their secrets, not yet resolved."""
    return Steps().report(lambda steps: _test_cluster(steps, properties, needed))


def _test_cluster(steps: Steps, properties: Mapping[str, Value], needed: NeededRights) -> str:
    config = steps.run("Properties", lambda: config_of(properties))
    if asks_for_tokens(config):
        _test_token_endpoint(steps, config)
    failure: Failed | None = None
    reached = 0
    for host, port in parse_servers(config["bootstrap.servers"])[:MAX_SERVERS]:
        try:
            _test_server(steps, host, port, config)
            reached += 1
        except Failed as failed:
            failure = failure or failed
    if not reached and failure is not None:
        raise failure
    remark = "" if failure is None else f"One of the bootstrap servers does not work: {failure.message} "
    return remark + _test_client(steps, config, needed)


def check_reachable(properties: Mapping[str, Value], clock: Clock) -> None:
    """Raise ``Failed`` when none of the servers speaks as is expected, before any login.

    A client would be asked for seconds, and not say why.
    """
    steps, config = Steps(clock), config_of(properties)
    failure: Failed | None = None
    for host, port in parse_servers(config["bootstrap.servers"])[:MAX_SERVERS]:
        try:
            _test_server(steps, host, port, config)
            return
        except Failed as failed:
            failure = failure or failed
    if failure is not None:
        raise failure


def cluster_features(properties: Mapping[str, Value], clock: Clock) -> dict[str, int]:
    """What the first server that answers says of its cluster's features, before any login. Raises ``Failed``."""
    config = config_of(properties)
    failure: Failed | None = None
    for host, port in parse_servers(config["bootstrap.servers"])[:MAX_SERVERS]:
        try:
            sock = transport.connect(host, transport.resolve(host, port, clock), port, clock)
        except Failed as failed:
            failure = failed
            continue
        try:
            if config.get("security.protocol", "PLAINTEXT").upper().endswith("SSL"):
                sock = transport.start_tls(sock, host, config, clock)
            sock.settimeout(clock.cap(3.0))
            return kafka_handshake.features(sock)
        except (OSError, kafka_handshake.NotKafka, IndexError, struct.error) as error:
            failure = Failed("protocol", f"{host}:{port} does not name its features: {error}.", "See the broker's log.")
        except Failed as failed:
            failure = failed
        finally:
            transport.close(sock)
    raise failure or Failed("properties", "There are no servers.", "Set bootstrap.servers.")


def config_of(properties: Mapping[str, Value]) -> dict[str, Any]:
    """A client's configuration. Raises ``Failed``."""
    try:
        return with_token(client_properties(properties))
    except PropertyProblem as problem:
        raise Failed("properties", f"{problem}.", "Correct this property.") from None


def _test_token_endpoint(steps: Steps, config: Mapping[str, str]) -> None:
    """Whether somebody listens where the client gets its tokens. Raises ``Failed``."""
    host, port = parse_endpoint(config[ENDPOINT])
    addresses = steps.run(f"DNS {host}", lambda: transport.resolve(host, port, steps.clock), ", ".join)
    place = f"TCP {host}:{port}"
    transport.close(steps.run(place, lambda: transport.connect(host, addresses, port, steps.clock)))


def _test_server(steps: Steps, host: str, port: int, config: Mapping[str, str]) -> None:
    place, clock = f"{host}:{port}", steps.clock
    addresses = steps.run(f"DNS {host}", lambda: transport.resolve(host, port, clock), ", ".join)
    sock = steps.run(f"TCP {place}", lambda: transport.connect(host, addresses, port, clock))
    try:
        if config.get("security.protocol", "PLAINTEXT").upper().endswith("SSL"):
            plain = sock
            sock = steps.run(f"TLS {place}", lambda: transport.start_tls(plain, host, config, clock), _tls_detail)
        steps.run(f"Kafka {place}", lambda: _greet_broker(sock, place, config, clock), _login_detail)
    finally:
        transport.close(sock)


def _tls_detail(sock: socket.socket) -> str:
    return (sock.version() or "") if isinstance(sock, ssl.SSLSocket) else ""


def _login_detail(offered: tuple[str, ...]) -> str:
    return f"asks for a login: {', '.join(offered)}" if offered else "asks for no login"


def _greet_broker(sock: socket.socket, place: str, config: Mapping[str, str], clock: Clock) -> tuple[str, ...]:
    """The mechanisms for a login that the broker offers; none: it asks for none. Raises ``Failed``."""
    sock.settimeout(clock.cap(3.0))
    secure = isinstance(sock, ssl.SSLSocket)
    try:
        kafka_handshake.hello(sock)
        mechanism = config.get("sasl.mechanisms", "")
        handshake = kafka_handshake.handshake(sock, mechanism or "PLAIN")
    except kafka_handshake.NotKafka as other:
        raise _wrong_protocol(place, other.speaks) from None
    except ssl.SSLError as error:
        raise transport.alert_failure(error, config) from None
    except TimeoutError:
        advice = "Check that the port is a Kafka listener and that no proxy is in between."
        raise Failed("protocol", f"{place} accepts the connection but sends no answer.", advice) from None
    except OSError:
        if secure and not config.get("ssl.certificate.pem"):
            advice = "The broker may require a client certificate. Set ssl.certificate.pem and ssl.key.pem."
            raise Failed("tls", f"{place} closes the connection after the TLS handshake.", advice) from None
        if not secure and kafka_handshake.speaks_tls((sock.getpeername()[0], sock.getpeername()[1]), clock.cap(2.0)):
            raise _wrong_protocol(place, "TLS") from None
        raise Failed(
            "protocol", f"{place} closes the connection at the first request.", "See the broker's log."
        ) from None
    return _check_login(place, config, handshake)


def _wrong_protocol(place: str, speaks: str) -> Failed:
    if speaks == "TLS":
        message = f"{place} speaks TLS, but the connection does not use it."
        return Failed("tls", message, "Set security.protocol to SSL or SASL_SSL, or use the port without TLS.")
    what = "a web server" if speaks == "HTTP" else "not a Kafka broker"
    return Failed(
        "protocol", f"{place} is {what}.", "Check host and port: bootstrap.servers must be listeners of Kafka brokers."
    )


def _check_login(place: str, config: Mapping[str, str], handshake: kafka_handshake.Handshake) -> tuple[str, ...]:
    logs_in = config.get("security.protocol", "").upper().startswith("SASL")
    offered = ", ".join(handshake.mechanisms)
    if handshake.error == kafka_handshake.ILLEGAL_STATE:
        if logs_in:
            plain = "SSL" if config["security.protocol"].upper().endswith("SSL") else "PLAINTEXT"
            message = f"{place} asks for no login, but the connection has one."
            raise Failed("login", message, f"Set security.protocol to {plain}, or use the port with a login.")
        return ()
    if not logs_in:
        name = "SASL_SSL" if config.get("security.protocol", "").upper() == "SSL" else "SASL_PLAINTEXT"
        advice = f"Set security.protocol to {name}, with sasl.mechanism, sasl.username and sasl.password."
        raise Failed("login", f"{place} asks for a login ({offered}), but the connection has none.", advice)
    if handshake.error == kafka_handshake.UNSUPPORTED_MECHANISM:
        message = f"{place} does not offer {config.get('sasl.mechanisms')}."
        raise Failed("login", message, f"Set sasl.mechanism to an offered one: {offered}.")
    return handshake.mechanisms


# With the client


def _test_client(steps: Steps, config: Mapping[str, str], needed: NeededRights) -> str:
    client_log = _ClientLog()
    admin = steps.run("Client", lambda: _make_client(config, client_log))
    cluster = steps.run(
        "Login and metadata", lambda: _fetch_metadata(admin, client_log, config, steps.clock), _cluster_detail
    )
    for broker in list(cluster.brokers.values())[:MAX_SERVERS]:
        name = f"Broker {broker.id} at {broker.host}:{broker.port}"
        steps.run(name, lambda b=broker: _check_advertised(b, steps.clock))  # type: ignore[misc]
    if needed.group:
        steps.run(
            f"Group {needed.group}",
            lambda: rights.check_joinable(admin, needed.group, steps.clock),
            rights.group_detail,
        )
    if needed.topic:
        steps.run(f"Topic {needed.topic}", lambda: rights.check_readable(admin, needed.topic, steps.clock))
        return ""
    if all(name.startswith("__") for name in cluster.topics):
        return "No topic is visible. The cluster has none, or this login lacks the right DESCRIBE on them."
    return ""


class _ClientLog(logging.Handler):
    """What a client says: its errors, and the lines of its log."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Any] = []
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _make_client(config: Mapping[str, str], client_log: _ClientLog) -> AdminClient:
    log = logging.Logger("librdkafka")  # of this client alone
    log.addHandler(client_log)
    timeouts = {"socket.connection.setup.timeout.ms": int(transport.TCP_S * 1000)}
    try:
        checked = checked_client_config(config, settings.ADDRESS_POLICY)
        return AdminClient({**checked, **timeouts, "error_cb": client_log.errors.append}, logger=log)
    except (AddressProblem, ValueError) as problem:
        raise Failed("address", f"{problem}.", "Use other addresses.") from None
    except KafkaException as error:
        raise Failed("properties", f"{error.args[0].str()}.", "Correct the properties.") from None


def _fetch_metadata(admin: AdminClient, client_log: _ClientLog, config: Mapping[str, str], clock: Clock) -> Any:
    """The cluster's. Asked for in short turns: why it does not come is known before the time is over.

    A client that has learned an advertised address asks there and nowhere else: its log says where it can't go on.
    """
    deadline = Clock(clock.cap(6.0))
    while True:
        try:
            return admin.list_topics(timeout=min(1.0, deadline.seconds_left))
        except KafkaException as error:
            admin.poll(0)
            failed = _client_failure([*client_log.errors, error.args[0]], config)
            if failed is not None:
                raise failed from None
            for broker in _learned_brokers(client_log.lines):
                _check_advertised(broker, clock)
            if deadline.is_over:
                reason = str(error.args[0].str())
                raise Failed("other", f"Kafka does not answer: {reason}.", "See the broker's log.") from None
            time.sleep(0.05)


class _LearnedBroker(NamedTuple):
    """A broker at the address that it advertises."""

    id: int
    host: str
    port: int


def _learned_brokers(lines: list[str]) -> list[_LearnedBroker]:
    """Brokers that the client was told of, and could not use: its log names them ``host:port/id: …``."""
    matches = filter(None, map(_BROKER_IN_LOG.search, lines))
    return [_LearnedBroker(int(match["id"]), match["host"], int(match["port"])) for match in matches]


def _client_failure(errors: list[Any], config: Mapping[str, str]) -> Failed | None:
    by_name: dict[str, str] = {error.name(): str(error.str()) for error in reversed(errors)}
    if "_AUTHENTICATION" in by_name and asks_for_tokens(config):
        message = f"The login with a token failed for the client {config[CLIENT_ID]!r}: "
        if "acquire" in by_name["_AUTHENTICATION"]:
            advice = "Check the client id, the client secret, the scope, and the full address of the endpoint."
            return Failed("login", f"{message}the token endpoint issued no token.", advice)
        advice = "See the broker's log. It may expect another issuer, audience or claim."
        return Failed("login", f"{message}the broker refuses the token.", advice)
    if "_AUTHENTICATION" in by_name and CALLBACK in config:
        advice = "Check the keys, aws.region, and the clocks. The policy must allow kafka-cluster:Connect."
        return Failed("login", "The broker refuses the login with these AWS keys.", advice)
    if "_AUTHENTICATION" in by_name:
        user = config.get("sasl.username", "")
        advice = "Enter the password again. Check the user name and the mechanism, and that the broker has this user."
        return Failed("login", f"The broker refuses the login of {user!r}: name or password is wrong.", advice)
    if "_SSL" in by_name:
        return Failed("tls", f"{by_name['_SSL'][:300]}.", "Check the certificates of both sides.")
    if "_UNSUPPORTED_FEATURE" in by_name:
        message = f"The server does not answer like a broker ({by_name['_UNSUPPORTED_FEATURE']})."
        advice = "It may be a controller or a very old broker. Use the address of a broker's listener."
        return Failed("protocol", message, advice)
    return None


def _cluster_detail(cluster: Any) -> str:
    topics = sum(not name.startswith("__") for name in cluster.topics)
    return f"cluster {cluster.cluster_id}; brokers: {len(cluster.brokers)}; visible topics: {topics}"


def _check_advertised(broker: Any, clock: Clock) -> None:
    advice = "Set the broker's advertised.listeners to a host and port that Headgate can reach."
    try:
        addresses = transport.resolve(broker.host, broker.port, clock)
        transport.close(transport.connect(broker.host, addresses, broker.port, clock))
    except Failed as failed:
        message = f"Broker {broker.id} is advertised at {broker.host}:{broker.port}. {failed.message}"
        raise Failed(failed.cause, message, advice) from None

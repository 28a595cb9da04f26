"""A broker with logins and TLS: specs as they are written for Java read from it, whatever form their secrets have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from controlplane.common.errors import InvalidInput
from controlplane.connections import kafka
from controlplane.connections.client_properties import client_properties
from controlplane.supervisors import services, topic_checks
from controlplane.supervisors.run import run
from controlplane.tasks.models import Task
from ingestion.sources.base import SourceProblem
from ingestion.sources.topic import TopicWatch, configure_group
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.django_cast import Cast, spec_for
from tests.support.formats import HERE
from tests.support.in_process import client_of
from tests.support.sampler import PATHS, sample
from tests.support.secured_kafka import PLAIN, SCRAM, Secured, in_folder, login, mutual, read, secured
from tests.support.secured_reading import check_reads, check_shares
from tests.unit.test_specs import changed

__all__ = ["secured"]  # a fixture


def spec_with(secured: Secured, properties: dict[str, Any]) -> dict[str, Any]:
    """A supervisor's, which reads the broker's topic with stored offsets."""
    spec = spec_for(secured.topic, topic=secured.topic, consumerProperties=properties, startDelay="PT0S")
    return changed(("type", "kafka"), ("ioConfig/groupId", ...), of=spec)


@pytest.mark.parametrize("listener", ["LOGIN", "LOGINTLS"])
@pytest.mark.parametrize(("mechanism", "jaas"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)])
def test_a_login_as_java_has_it(secured: Secured, listener: str, mechanism: str, jaas: str) -> None:
    check_reads(secured, read(login(secured, listener, mechanism, jaas)))


def test_a_login_whose_secret_is_in_the_environment(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPEC_SECRET_LOGIN", SCRAM)
    reference = {"type": "environment", "variable": "SPEC_SECRET_LOGIN"}
    check_reads(secured, read(login(secured, "LOGINTLS", "SCRAM-SHA-512", reference)))


def test_a_supervisor_whose_secret_is_in_the_environment(
    secured: Secured, monkeypatch: pytest.MonkeyPatch, cast: Cast
) -> None:
    monkeypatch.setenv("SPEC_SECRET_LOGIN", SCRAM)
    reference = {"type": "environment", "variable": "SPEC_SECRET_LOGIN"}
    spec = spec_with(secured, login(secured, "LOGINTLS", "SCRAM-SHA-512", reference))
    supervisor = services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    [look] = topic_checks.answers([topic_checks.question_for(supervisor)])
    assert (look.problem, look.partitions) == (None, 1)


def test_keys_as_pem_text(secured: Secured) -> None:
    store = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": secured.root.pem,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": secured.client.pem,
        "ssl.keystore.key": secured.client.key_pem("pass phrase").replace("\n", " "),
        "ssl.key.password": "pass phrase",
    }
    check_reads(secured, read(mutual(secured, **store)))


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "PEM"])
def test_stores_in_the_operators_folder(secured: Secured, tmp_path: Path, settings: Any, kind: str) -> None:
    settings.KEY_FOLDER = str(tmp_path)
    check_reads(secured, read(mutual(secured, **in_folder(secured, tmp_path, kind))))


def test_javas_own_stores_are_read_wherever_a_client_is_made(
    secured: Secured, tmp_path: Path, settings: Any, cast: Cast, clients: dict[str, Client]
) -> None:
    """Those of a spec of Druid: no type is named, since JKS is what Kafka takes a store for."""
    settings.KEY_FOLDER = str(tmp_path)
    stores = {n: v for n, v in in_folder(secured, tmp_path, "JKS").items() if not n.endswith(".type")}
    properties = mutual(secured, **stores)
    draft = {"kind": "kafka", "properties": properties, "topic": secured.topic}
    tried = clients["owner"].post("/api/v1/connections/-/test/", draft, content_type="application/json").json()
    assert tried["ok"], tried
    spec = changed(("ioConfig/inputFormat", {"type": "lines"}), of=spec_with(secured, properties))
    spec["dataSchema"]["timestampSpec"] = {"column": "none", "missingValue": "2026-01-01T00:00:00Z"}
    sampled = sample(clients["owner"], spec, PATHS[1])
    assert [row["parsed"]["line"] for row in sampled["data"]] == [str(n) for n in range(10)]
    wrong = changed(("ioConfig/consumerProperties/ssl.keystore.password", "another pass"), of=spec)
    with pytest.raises(InvalidInput) as caught:
        services.submit_supervisor(user=cast.users["owner"], document=wrong, team_name="alpha")
    [fault] = caught.value.errors
    assert fault.pointer.endswith("/ssl.keystore.password") and "the password is wrong" in fault.message
    assert "another pass" not in fault.message
    supervisor = services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    [look] = topic_checks.answers([topic_checks.question_for(supervisor)])
    assert (look.problem, look.partitions) == (None, 1)
    run(supervisor.pk, look)
    given = client_of(Task.objects.get(supervisor_id=supervisor.pk)).assignment().consumer_properties
    told = {name for name in given if name.startswith("ssl.")}
    assert told == {"ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem"}, "it has neither files nor Java's program"
    assert not {"pass one", "pass two", "pass key"} & set(given.values())


def test_a_share_consumer_reads_too(secured: Secured) -> None:
    check_shares(secured, read(login(secured, "LOGINTLS", "SCRAM-SHA-512", SCRAM)))


def test_row_8_a_wrong_password_is_told_without_it(secured: Secured) -> None:
    """Row 8 of the security checklist: a wrong password is told without it."""
    properties = read(login(secured, "LOGINTLS", "PLAIN", PLAIN.replace("4711", "canary")))
    with pytest.raises(kafka.KafkaProblem, match=r"(?i)authentication") as caught:
        kafka.topic_offsets(properties, secured.topic)
    assert "canary" not in str(caught.value)


def test_row_3_brokers_that_are_advertised_at_a_denied_address_are_not_followed(secured: Secured) -> None:
    """Row 3 of the security checklist: brokers that are advertised at a denied address are not followed."""
    properties = read({"bootstrap.servers": secured.addresses["ELSEWHERE"]})
    message = r"broker 1 is advertised as 169\.254\.169\.254 is a cloud's metadata service"
    with pytest.raises(kafka.KafkaProblem, match=message):
        kafka.topic_offsets(properties, secured.topic)
    with pytest.raises(kafka.KafkaProblem, match=message):
        kafka.holds_records(properties, secured.topic, 0, 0, 1)
    with pytest.raises(SourceProblem, match=message):
        TopicWatch(client_properties(properties), secured.topic, HERE).identity()
    io_config = parse_task_spec(changed()).spec.ioConfig
    assert isinstance(io_config, ShareGroupIOConfig)
    with pytest.raises(SourceProblem, match=message):
        configure_group(client_properties(properties), io_config, HERE)


def test_row_3_no_client_is_made_for_a_denied_address(secured: Secured, settings: Any) -> None:
    """Row 3 of the security checklist: no client is made for a denied address."""
    settings.ADDRESS_POLICY = AddressPolicy()
    properties = read(login(secured, "LOGIN", "PLAIN", PLAIN))
    with pytest.raises(kafka.KafkaProblem, match="is a loopback address"):
        kafka.topic_offsets(properties, secured.topic)
    with pytest.raises(kafka.KafkaProblem, match="is a loopback address"):
        kafka.holds_records(properties, secured.topic, 0, 0, 1)
    with pytest.raises(SourceProblem, match="is a loopback address"):
        TopicWatch(client_properties(properties), secured.topic, AddressPolicy()).identity()

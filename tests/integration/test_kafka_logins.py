"""A broker with logins and TLS: specs as they are written for Java read from it, whatever form their secrets have.

Also with tokens: of a token endpoint, under librdkafka's names and Java's, and signed for MSK.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from controlplane.common.errors import InvalidInput
from controlplane.connections import kafka
from controlplane.connections.client_properties import client_properties
from controlplane.connections.probe import NeededRights, try_kafka
from controlplane.supervisors import services, topic_checks
from controlplane.supervisors.run import run
from controlplane.tasks.models import Task
from ingestion.sources.base import SourceProblem
from ingestion.sources.topic import TopicWatch, configure_group
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.kafka import msk_login
from ingestion.specs.kafka.addresses import AddressPolicy
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.support.django_cast import Cast, spec_for
from tests.support.formats import HERE
from tests.support.in_process import client_of
from tests.support.sampler import PATHS, sample
from tests.support.secured_kafka import BEARER, PLAIN, SCRAM, Secured, in_folder, login, mutual, read, secured
from tests.support.secured_reading import check_reads, check_shares
from tests.support.token_endpoint import CLIENT, SECRET, TokenEndpoint, token_endpoint, unsigned
from tests.support.waiting import wait_for
from tests.unit.test_specs import changed

__all__ = ["secured"]  # a fixture
JAAS = f'{BEARER} required clientId="{CLIENT}" clientSecret="{SECRET}" scope="kafka" extension_pool="p-1";'


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


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's client tries on until the end, whatever the first answer was."""
    monkeypatch.setattr(kafka, "TIMEOUT_S", 2.0)


def test_row_8_a_wrong_password_is_told_without_it(secured: Secured, impatient: None) -> None:
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


# Tokens


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint() as found:
        yield found


def java(endpoint: TokenEndpoint, servers: str, jaas: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "sasl.login.callback.handler.class": f"{BEARER.rpartition('.')[0]}.secured.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": jaas,
    }


def test_a_client_of_librdkafkas_names_reads(secured: Secured, endpoint: TokenEndpoint) -> None:
    check_reads(secured, read(endpoint.login(secured.addresses["TOKEN"], **{"sasl.oauthbearer.scope": "a b"})))
    assert {(path, *form["grant_type"], *form["scope"]) for path, form in endpoint.asked} == {
        ("/token", "client_credentials", "a b")
    }


def test_a_client_of_javas_login_module_reads(secured: Secured, endpoint: TokenEndpoint) -> None:
    properties = read(java(endpoint, secured.addresses["TOKEN"], JAAS))
    assert properties["sasl.oauthbearer.extensions"] == "pool=p-1"
    check_reads(secured, properties)
    assert {form["scope"][0] for _, form in endpoint.asked} == {"kafka"}


def test_a_login_module_of_the_environment_reads(
    secured: Secured, endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPEC_SECRET_TOKEN", JAAS)
    check_reads(
        secured,
        read(java(endpoint, secured.addresses["TOKEN"], {"type": "environment", "variable": "SPEC_SECRET_TOKEN"})),
    )


def test_a_share_consumer_reads_with_a_token(secured: Secured, endpoint: TokenEndpoint) -> None:
    check_shares(secured, read(endpoint.login(secured.addresses["TOKEN"])))


def test_a_test_of_a_connection_says_what_is_wrong(secured: Secured, endpoint: TokenEndpoint) -> None:
    servers = secured.addresses["TOKEN"]
    good = try_kafka(read(endpoint.login(servers)), NeededRights(secured.topic))
    assert good.ok
    wrong = try_kafka(read(endpoint.login(servers, **{"sasl.oauthbearer.client.secret": "canary-4711"})))
    assert wrong.cause == "login" and "the token endpoint issued no token" in wrong.message
    assert "canary" not in repr(wrong)
    nobody = {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}
    away = try_kafka(read(endpoint.login(servers, **nobody)))
    assert away.cause in ("address", "tcp") and "127.0.0.1" in away.message
    unknown = try_kafka(read(endpoint.login(secured.addresses["LOGIN"])))
    assert unknown.cause == "login" and "does not offer OAUTHBEARER" in unknown.message


def test_row_2_no_redirect_of_a_token_endpoint_is_followed(
    secured: Secured, endpoint: TokenEndpoint, impatient: None
) -> None:
    """Row 2 of the security checklist: no redirect of a token endpoint is followed."""
    moved = {"sasl.oauthbearer.token.endpoint.url": endpoint.url.replace("/token", "/moved")}
    with pytest.raises(kafka.KafkaProblem):
        kafka.topic_offsets(read(endpoint.login(secured.addresses["TOKEN"], **moved)), secured.topic)
    assert {path for path, _ in endpoint.asked} == {"/moved"}


def test_row_2_no_token_is_asked_for_at_a_denied_address(
    secured: Secured, endpoint: TokenEndpoint, cast: Cast, settings: Any
) -> None:
    """Row 2 of the security checklist: no token is asked for at a denied address."""
    denied = {"sasl.oauthbearer.token.endpoint.url": "http://169.254.169.254/token"}
    properties = endpoint.login(secured.addresses["TOKEN"], **denied)
    spec = spec_with(secured, properties)
    with pytest.raises(InvalidInput) as caught:
        services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    [fault] = caught.value.errors
    assert fault.pointer == "/ioConfig/consumerProperties/sasl.oauthbearer.token.endpoint.url"
    assert "is a cloud's metadata service" in fault.message
    with pytest.raises(kafka.KafkaProblem, match="is a cloud's metadata service"):
        kafka.topic_offsets(read(properties), secured.topic)
    policy = AddressPolicy.of(["127.0.0.1/32", "::1/128"], [], ["1-65535"])
    with pytest.raises(SourceProblem, match="is a cloud's metadata service"):
        TopicWatch(client_properties(read(properties)), secured.topic, policy).identity()
    assert endpoint.asked == []


def test_a_supervisors_secret_is_kept_and_not_shown(secured: Secured, endpoint: TokenEndpoint, cast: Cast) -> None:
    spec = spec_with(secured, endpoint.login(secured.addresses["TOKEN"]))
    supervisor = services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    assert SECRET not in str(supervisor.current.spec)
    del spec["ioConfig"]["consumerProperties"]["sasl.oauthbearer.client.secret"]
    services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    spec["ioConfig"]["consumerProperties"]["sasl.oauthbearer.token.endpoint.url"] = endpoint.url + "2"
    with pytest.raises(InvalidInput) as caught:
        services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    assert caught.value.errors[0].pointer.endswith("sasl.oauthbearer.client.secret")


def msk(secured: Secured) -> dict[str, Any]:
    """A login at Amazon MSK by IAM, as specs for Java have it, with keys of the connection's own."""
    return {
        "bootstrap.servers": secured.addresses["TOKEN"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "aws.accessKeyId": "AKIAEXAMPLE",
        "aws.secretAccessKey": SECRET,
        "aws.region": "eu-central-1",
    }


def test_a_broker_that_is_not_msk_refuses_a_signed_login(secured: Secured, impatient: None) -> None:
    """The broker reads unsigned tokens alone: it is given the signed one, and says no."""
    verdict = try_kafka(read(msk(secured)), NeededRights(secured.topic))
    assert verdict.cause == "login" and "with these AWS keys" in verdict.message
    assert "kafka-cluster:Connect" in verdict.advice
    assert SECRET not in repr(verdict)
    with pytest.raises(kafka.KafkaProblem) as caught:
        kafka.topic_offsets(read(msk(secured)), secured.topic)
    assert SECRET not in str(caught.value)


def test_clients_that_make_their_tokens_read_and_have_new_ones_made(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tokens that this broker can read, in place of the signed ones. The last client's live for three seconds."""
    made: list[float] = []
    lifetimes_s = [60]

    def signing(config: Any) -> Any:
        def token(_: str) -> tuple[str, float]:
            made.append(time.time())
            return unsigned(lifetime_s=lifetimes_s[-1]), made[-1] + lifetimes_s[-1]

        return token

    monkeypatch.setattr(msk_login, "_token_signer", signing)
    properties = read(msk(secured))
    assert try_kafka(properties, NeededRights(secured.topic)).ok
    check_reads(secured, properties)
    check_shares(secured, properties)
    lifetimes_s.append(3)
    with kafka.cluster(properties):
        before = len(made)
        wait_for("a new token", lambda: len(made) > before)


def test_a_supervisors_aws_keys_are_kept_and_not_shown(secured: Secured, cast: Cast) -> None:
    spec = spec_with(secured, msk(secured))
    supervisor = services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    assert SECRET not in str(supervisor.current.spec)
    del spec["ioConfig"]["consumerProperties"]["aws.secretAccessKey"]
    services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    spec["ioConfig"]["consumerProperties"]["aws.accessKeyId"] = "AKIAOTHER"
    with pytest.raises(InvalidInput) as caught:
        services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    assert caught.value.errors[0].pointer.endswith("aws.secretAccessKey")

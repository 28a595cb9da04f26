"""Logins with tokens on a real broker: of a token endpoint, under librdkafka's names and Java's, and signed for MSK."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.common.errors import InvalidInput
from controlplane.connections import kafka
from controlplane.connections.client_properties import client_properties
from controlplane.connections.probe import NeededRights, try_kafka
from controlplane.supervisors import services
from ingestion.sources.base import SourceProblem
from ingestion.sources.topic import TopicWatch
from ingestion.specs.kafka import msk_login
from ingestion.specs.kafka.addresses import AddressPolicy
from tests.integration.test_kafka_logins import spec_with
from tests.support.django_cast import Cast
from tests.support.secured_kafka import BEARER, Secured, read, secured
from tests.support.secured_reading import check_reads, check_shares
from tests.support.token_endpoint import CLIENT, SECRET, TokenEndpoint, token_endpoint, unsigned
from tests.support.waiting import wait_for

__all__ = ["secured"]  # a fixture
JAAS = f'{BEARER} required clientId="{CLIENT}" clientSecret="{SECRET}" scope="kafka" extension_pool="p-1";'


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


def test_row_2_no_redirect_of_a_token_endpoint_is_followed(secured: Secured, endpoint: TokenEndpoint) -> None:
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


def test_a_broker_that_is_not_msk_refuses_a_signed_login(secured: Secured) -> None:
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
    """With tokens that this broker can read, and that live for ten seconds, in place of the signed ones."""
    made: list[float] = []

    def signing(config: Any) -> Any:
        def token(_: str) -> tuple[str, float]:
            made.append(time.time())
            return unsigned(lifetime_s=10), made[-1] + 10

        return token

    monkeypatch.setattr(msk_login, "_token_signer", signing)
    properties = read(msk(secured))
    assert try_kafka(properties, NeededRights(secured.topic)).ok
    check_reads(secured, properties)
    check_shares(secured, properties)
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
